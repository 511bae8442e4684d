"""A command that is interrupted ends what it started, and runs leave nothing in shared memory."""

import json
import mmap
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from longhaul.running import children, tools
from test_sweep_resume import SCENARIO, is_built, processes, wait_for

SHARED = Path("/dev/shm")
LONGHAUL = Path(os.environ.get("LONGHAUL_BIN", tools.ROOT / "build/bin")) / "longhaul"
# A program that takes its time after SIGTERM and then says that it ended well.
SLOW = """#!/bin/bash
trap 'sleep 0.6; echo told >>"$1"; exit 5' TERM
echo begun >>"$1"
while :; do sleep 0.05; done
"""


def segments():
    """Of this user, of Open MPI and of ours."""
    return {path.name for path in SHARED.iterdir()
            if path.name.startswith(("vader_segment.", "longhaul-"))}


class Children(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.log = self.directory / "log"
        self.program = self.directory / "slow"
        self.program.write_text(SLOW)
        self.program.chmod(0o755)

    def said(self):
        return self.log.read_text().split() if self.log.exists() else []

    def begin(self, patience=10):
        """A command of ours that runs the slow program."""
        code = ("import sys\nfrom longhaul.errors import guarded\n"
                "from longhaul.running import children\n"
                f"guard = lambda: children.run([{str(self.program)!r}, {str(self.log)!r}], {patience})\n"
                "sys.exit(guarded(guard, 'me'))")
        return self.start(code)

    def start(self, code):
        command = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": str(tools.ROOT / "src/python")})
        self.addCleanup(command.stderr.close)
        wait_for(lambda: self.said() == ["begun"], "the program")
        return command

    def test_a_signal_is_passed_on_and_waited_for(self):
        for number, code, word in ((signal.SIGINT, 130, "interrupted"),
                                   (signal.SIGTERM, 143, "told to end")):
            self.log.unlink(missing_ok=True)
            command = self.begin()
            command.send_signal(number)
            time.sleep(0.2)
            command.send_signal(number)  # an impatient user: the program is not told twice
            self.assertEqual(code, command.wait(10))
            self.assertEqual(["begun", "told"], self.said())
            self.assertTrue(command.stderr.read().endswith(f"me: {word}\n"))

    def test_patience_ends(self):
        self.program.write_text(SLOW.replace("sleep 0.6; echo told", "").replace("exit 5", "true"))
        command = self.begin(patience=0.3)
        began = time.monotonic()
        command.send_signal(signal.SIGINT)
        self.assertEqual(130, command.wait(10))
        self.assertLess(time.monotonic() - began, 5)
        wait_for(lambda: not processes(self.log), "the program to be killed")

    def test_a_signal_while_the_program_starts(self):
        """Popen returns late: the program runs, and its parent does not know it yet."""
        code = ("import subprocess, sys, time\nfrom longhaul.errors import guarded\n"
                "from longhaul.running import children\n"
                "class Late(subprocess.Popen):\n"
                "    def __init__(self, *words, **options):\n"
                "        super().__init__(*words, **options)\n"
                "        time.sleep(1)\n"
                "children.subprocess.Popen = Late\n"
                f"guard = lambda: children.run([{str(self.program)!r}, {str(self.log)!r}])\n"
                "sys.exit(guarded(guard, 'me'))")
        command = self.start(code)
        command.send_signal(signal.SIGINT)
        self.assertEqual(130, command.wait(10))
        self.assertEqual(["begun", "told"], self.said())

    def test_a_program_that_ends_by_itself(self):
        done = children.run(["sh", "-c", "echo a; echo b >&2; exit 3"], capture_output=True, text=True)
        self.assertEqual((3, "a\n", "b\n"), (done.returncode, done.stdout, done.stderr))


# An mpirun that hears SIGUSR1 as a program that drains does, or ends by it.
LAUNCHER = """#!/bin/bash
if [[ $1 == --version ]]; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi
trap 'exit @CODE@' USR1
trap 'exit 15' TERM
echo begun >@LOG@
while :; do sleep 0.05; done
"""


class Drain(unittest.TestCase):
    """scripts/mpi hands the first SIGTERM on as SIGUSR1 to bench_prefill, and its code back."""

    def code_after(self, code, orders=1, trap="trap"):
        with tempfile.TemporaryDirectory() as directory:
            log, launcher, program = (Path(directory) / name
                                      for name in ("log", "mpirun", "bench_prefill"))
            text = LAUNCHER.replace("@CODE@", str(code)).replace("@LOG@", str(log))
            launcher.write_text(text.replace("trap 'exit", f"{trap} 'exit", 1))
            program.write_text("#!/bin/bash\n")
            for file in (launcher, program):
                file.chmod(0o755)
            started = subprocess.Popen(
                [tools.ROOT / "scripts/mpi", "-n", "1", program], stderr=subprocess.DEVNULL,
                env={**os.environ, "LONGHAUL_MPIRUN": str(launcher)})
            wait_for(log.exists, "the launcher")
            for _ in range(orders):
                started.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            return started.wait(10)

    def test_the_code_of_a_drained_program_is_its_own(self):
        for code in (0, 1, 2, 3, 139, 143):
            self.assertEqual(code, self.code_after(code))

    def test_what_ends_before_it_can_drain_was_ended(self):
        self.assertEqual(143, self.code_after(138))
        self.assertEqual(143, self.code_after(0, trap=": no trap;"))

    def test_a_second_order_ends_it(self):
        self.assertEqual(143, self.code_after("7 & sleep 5", orders=2))


class Jobs(unittest.TestCase):
    """What becomes of a job of slurm/ that is warned, outside of Slurm."""

    def code_of(self, code, final=""):
        work = f"trap 'exit {code}' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"
        script = (f"set -euo pipefail; job=a-job; . {tools.ROOT}/slurm/lib/job.sh; out=here; "
                  f"final_codes='{final}'; run_and_finish bash -c \"$0\"")
        return subprocess.run(["bash", "-c", script, work], capture_output=True, timeout=30).returncode

    def test_it_goes_back_to_the_queue(self):
        for code in (1, 3, 143):
            self.assertEqual(143, self.code_of(code))
        self.assertEqual(0, self.code_of(0))

    def test_what_another_start_would_say_again_ends_it(self):
        for code in (1, 3):
            self.assertEqual(code, self.code_of(code, "1 3"))
        self.assertEqual(143, self.code_of(143, "1 3"))
        self.assertIn("final_codes='1 3'", (tools.ROOT / "slurm/prefill.sbatch").read_text())


@unittest.skipUnless(is_built(), "bench_pipeline is not built, or there is no mpirun")
class Sweep(unittest.TestCase):
    def test_ctrl_c_leaves_nothing(self):
        """As a terminal does it: SIGINT to the whole foreground group."""
        with tempfile.TemporaryDirectory(prefix="longhaul-sweep-") as directory:
            directory = Path(directory).resolve()
            (directory / "two.toml").write_text(SCENARIO)
            before = segments()
            sweep = subprocess.Popen(
                [tools.ROOT / "scripts/sweep", "--scenario", directory / "two.toml", "--out",
                 directory / "out", "--cells", "0:0", "--schedules", "1f1b", "--iterations", "9999"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.addCleanup(sweep.stderr.close)
            point = directory / "out/two/decoupled/latency0-transfer0"
            wait_for(lambda: len(list(point.glob("segment.*"))) > 3, "a few iterations")
            os.killpg(sweep.pid, signal.SIGINT)
            self.assertEqual(130, sweep.wait(30))
            self.assertFalse(processes(directory), "mpirun and its ranks ended before it did")
            self.assertEqual(set(), segments() - before)
            self.assertIn("interrupted", sweep.stderr.read())


@unittest.skipUnless(LONGHAUL.is_file(), "longhaul is not built")
class Advise(unittest.TestCase):
    SO_FAR = re.compile(r"advise \[\S+\] \d+/100 ([0-9.e+]+) (ns|us|ms|s) so far, (\S+)")
    NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

    def first_answer(self, terminal):
        """What it says it has, once it has something; a process that ends says no more."""
        said, end = "", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                said += os.read(terminal, 4096).decode()
            if found := self.SO_FAR.search(said):
                return float(found[1]) * self.NANOSECONDS[found[2]]
        return self.fail(f"no answer in a minute: {said}")

    def test_ctrl_c_gives_the_best_so_far(self):
        """While it searches orders, which would take minutes: at once, and no worse than it said."""
        terminal, of_program = pty.openpty()
        self.addCleanup(os.close, terminal)
        advise = subprocess.Popen(
            [LONGHAUL, "advise", tools.ROOT / "benchmarks/scenarios/dp-2dc.toml", "--budget-seconds",
             "900", "--json"], stdout=subprocess.PIPE, stderr=of_program, text=True)
        os.close(of_program)
        self.addCleanup(advise.kill)
        first = self.first_answer(terminal)
        self.assertIsNone(advise.poll())
        advise.send_signal(signal.SIGINT)
        said, _ = advise.communicate(timeout=20)
        self.assertEqual(advise.returncode, 0)
        advice = json.loads(said)
        self.assertTrue(advice["stopped"])
        self.assertLessEqual(advice["plans"][0]["iteration_ns"], first * 1.001, "it was shown with four digits")
        self.assertGreater(len(advice["waterfall"]), 0)


@unittest.skipUnless(SHARED.is_dir() and Path("/proc/self/maps").exists(), "no /dev/shm or /proc")
class Leftovers(unittest.TestCase):
    def file(self, name, seconds_old=120, size=64):
        path = SHARED / name
        path.write_bytes(bytes(size))
        os.utime(path, (time.time() - seconds_old,) * 2)
        self.addCleanup(path.unlink, missing_ok=True)
        return path

    def start_a_run(self):
        subprocess.run([tools.ROOT / "scripts/mpi", "-n", "1", "true"], check=False,
                       env={**os.environ, "LONGHAUL_MPIRUN": shutil.which("true")})

    def dead(self):
        """The id of a process that has ended."""
        child = subprocess.Popen(["true"])
        child.wait()
        return child.pid

    def test_what_killed_runs_left_is_removed(self):
        user, dead = os.getuid(), self.dead()
        host = os.uname().nodename.split(".")[0]
        gone = [self.file(f"longhaul-{dead}-17"),
                self.file(f"vader_segment.{host}.{user}.7fff0001.3")]
        mapped = self.file(f"vader_segment.{host}.{user}.7fff0001.4")
        kept = [mapped, self.file(f"longhaul-{os.getpid()}-18"),
                self.file(f"longhaul-{dead}-19", seconds_old=5), self.file(f"longhaul-{dead}-x"),
                self.file(f"longhaul-{dead}"), self.file(f"my-longhaul-{dead}-17"),
                self.file(f"vader_segment.{host}.{user + 1}.7fff0001.5"),
                self.file(f"vader_segment.{host}.{user}.7fff0001.6", seconds_old=5)]

        with open(mapped, "r+b") as file, mmap.mmap(file.fileno(), 0):
            self.start_a_run()
        self.assertEqual([], [path for path in gone if path.exists()])
        self.assertEqual([], [path for path in kept if not path.exists()])

    def test_a_dry_run_removes_nothing(self):
        path = self.file(f"longhaul-{self.dead()}-21")
        subprocess.run([tools.ROOT / "scripts/mpi", "-n", "1", "--dry-run", "true"], check=False,
                       stdout=subprocess.DEVNULL)
        self.assertTrue(path.exists())

    def test_session_directories(self):
        with tempfile.TemporaryDirectory() as directory:
            host = os.uname().nodename.split(".")[0]
            sessions = Path(directory) / f"ompi.{host}.{os.getuid()}"
            dead, alive, other = (sessions / name for name in
                                  (f"pid.{self.dead()}", f"pid.{os.getpid()}", "jf.17"))
            for path in (dead, alive, other):
                (path / "0").mkdir(parents=True)
                os.utime(path, (time.time() - 120,) * 2)
            subprocess.run([tools.ROOT / "scripts/mpi", "-n", "1", "true"], check=False,
                           env={**os.environ, "LONGHAUL_MPIRUN": shutil.which("true"),
                                "TMPDIR": directory})
            self.assertEqual([False, True, True], [path.exists() for path in (dead, alive, other)])


if __name__ == "__main__":
    unittest.main()
