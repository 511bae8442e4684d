"""One run of four ranks that is hurt at random, and what has to be true of it afterwards (faults)."""

import collections
import hashlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build" / "bin"))
RANKS = 4
ITERATIONS = 16
DEADLINE_S = 3
IN_TIME_S = DEADLINE_S + 20  # and the machine may be busy
FINE, WRONG, FAILED, KILLED = 0, 1, 3, 128 + signal.SIGKILL
COMMAND = [ROOT / "scripts/mpi", "-n", RANKS, BIN / "bench_pipeline",
           ROOT / "benchmarks/scenarios/m8-2dc.toml", "--schedule", "1f1b,zb-h1", "--iterations",
           ITERATIONS, "--warmup", "0", "--set", "run.time_scale=0.1", "--deadline",
           f"{DEADLINE_S}s"]

GONE = "is gone (killed or crashed)"
STOPPED = "is stopped (frozen, SIGSTOP)"
STUCK = "has made no progress"


def processes(out, program=b"bench_pipeline"):
    """Ids of the run's processes, by the directory in their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(out) in words and words[0].endswith(program):
            found.append(int(entry.name))
    return found


def segments(out):
    """What is in each file of rows; a run that ends removes them."""
    digests = {}
    for file in Path(out).glob("segment.*.h5"):
        try:
            digests[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        except FileNotFoundError:
            pass
    return digests


def finished(out):
    """(schedule, iteration) of which the rows of every rank are there, by file names."""
    ranks = collections.Counter()
    for name in segments(out):
        schedule, iteration, _, count = re.fullmatch(
            r"segment\.(\d+)\.(\d+)\.(\d+)(?:\+(\d+))?\.h5", name).groups()
        ranks[schedule, iteration] += int(count or 1)
    return {key for key, count in ranks.items() if count == RANKS}


class Round:
    """One run with one fault."""

    def __init__(self, draw, directory):
        self.draw = draw
        self.out = str(Path(directory) / "out")
        self.run = None
        self.codes, self.says = {FAILED}, ""

    def start(self, *more):
        words = [str(word) for word in [*COMMAND, "--out", self.out, *more]]
        self.run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                    text=True)

    def start_with_fault(self, kind, where):
        """By --fault, at an op of a random iteration."""
        self.start("--fault", f"{kind}@{self.draw.randrange(RANKS)}:{where}:"
                              f"{self.draw.randrange(ITERATIONS)}")

    def start_and_wait(self):
        self.start()
        begin = time.monotonic()
        while not finished(self.out) and time.monotonic() - begin < 30:
            time.sleep(0.01)
        time.sleep(self.draw.uniform(0.0, 1.0))

    def strike(self, number):
        self.start_and_wait()
        victims = processes(self.out)
        if self.run.poll() is None and len(victims) == RANKS:
            os.kill(self.draw.choice(victims), number)
        else:
            self.codes.add(FINE)  # it was faster than we

    # What may happen. Each says with which codes the run may end, and what it must say then.
    def rank_killed(self):
        self.codes, self.says = {KILLED, FAILED}, GONE
        self.strike(signal.SIGKILL)

    def rank_killed_in_an_op(self):
        self.codes, self.says = {KILLED, FAILED}, GONE
        self.start_with_fault("kill", self.draw.randrange(8))

    def rank_killed_in_a_send(self):
        self.codes, self.says = {KILLED, FAILED}, GONE
        self.start_with_fault("kill", f"send{self.draw.randrange(8)}")

    def rank_killed_in_a_write(self):
        self.codes, self.says = {KILLED, FAILED, FINE}, GONE  # not every rank writes
        self.start_with_fault("kill", "write0")

    def rank_frozen(self):
        self.codes, self.says = {KILLED, FAILED}, STOPPED
        self.strike(signal.SIGSTOP)

    def rank_frozen_for_a_moment(self):
        self.codes, self.says = {FINE}, ""
        self.start_and_wait()
        for victim in processes(self.out)[:1]:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(self.draw.uniform(0.01, 0.5))
            os.kill(victim, signal.SIGCONT)

    def device_fails(self):
        self.says = "its device failed in rank "
        self.start_with_fault("device", self.draw.randrange(8))

    def message_lost(self):
        self.says = STUCK
        self.start_with_fault("lose", self.draw.randrange(4))

    def receive_not_posted(self):
        self.says = STUCK
        self.start_with_fault("norecv", self.draw.randrange(4))

    def mpirun_told_to_end(self):
        self.codes, self.says = {128 + signal.SIGTERM}, "SIGTERM"
        self.start_and_wait()
        if self.run.poll() is None:
            self.run.terminate()
        else:
            self.codes.add(FINE)

    def mpirun_killed(self):
        self.codes, self.says = {-signal.SIGKILL}, "has lost its launcher"
        self.start_and_wait()
        if self.run.poll() is None:
            self.run.kill()
        else:
            self.codes.add(FINE)

    def check_end(self):
        """It has ended in time, as documented, and leaves nothing but what was finished."""
        _, said = self.run.communicate(timeout=60)
        code = self.run.returncode
        assert code in self.codes, f"it ended with {code}, not one of {self.codes}:\n{said}"
        begin = time.monotonic()
        while processes(self.out) and time.monotonic() - begin < 10:
            time.sleep(0.05)
        assert not processes(self.out), "a rank is left"
        if code == FINE:
            return 0
        if (Path(self.out) / "record.json").is_file():
            return 0  # all was done: the fault came while it left
        for report in Path(self.out).glob("report.*.txt"):  # what stderr may have lost
            said += report.read_text()
        assert self.says in said, f'it ended with {code} and does not say "{self.says}":\n{said}'
        expected = finished(self.out)
        merged = Path(self.out).parent / "merged.h5"
        if not (Path(self.out) / "run.h5").is_file():
            return 0
        answer = subprocess.run([BIN / "longhaul", "trace", "merge", self.out, "--out", merged],
                                capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        if expected:
            subprocess.run([BIN / "longhaul", "check", merged], check=True, capture_output=True)
        summary = subprocess.run([BIN / "longhaul", "trace", "summary", "--json", merged],
                                 capture_output=True, text=True, check=False)
        entries = json.loads(summary.stdout)["schedules"] if expected else []
        readable = sum(schedule["n"] for schedule in entries)
        assert readable == len(expected), f"{readable} of {len(expected)} iterations are readable"
        return len(expected)

    def check_resumed(self):
        """It goes on, and touches nothing that was finished."""
        kept = {name: digest for name, digest in segments(self.out).items()
                if tuple(name.split(".")[1:3]) in finished(self.out)}
        self.start("--resume")
        changed = ""
        while self.run.poll() is None:
            now = segments(self.out)
            changed = changed or next((name for name in kept if name in now
                                       and now[name] != kept[name]), "")
            time.sleep(0.1)
        _, said = self.run.communicate(timeout=10)
        assert self.run.returncode == FINE, f"resumed, it ended with {self.run.returncode}:\n{said}"
        assert not changed, f"{changed} was changed"
        record = json.loads((Path(self.out) / "record.json").read_text())
        for schedule in record["schedules"]:
            assert (schedule["n"], schedule["check"]) == (ITERATIONS, "ok"), schedule["schedule"]
        subprocess.run([BIN / "longhaul", "check", f"{self.out}/trace.h5"], check=True,
                       capture_output=True)
