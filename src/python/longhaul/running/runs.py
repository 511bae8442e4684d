"""Runs of a point: which one it is, the load while it went on, and where another one goes. A point
may be measured again, its first run stays."""

import contextlib
import hashlib
import json
import os
import re
import shlex
import threading
from pathlib import Path

from longhaul.provenance import RUN_FILE, command_of, commit_of
from longhaul.records import AGAIN, is_finished, read_record
from longhaul.running import awake, sweep_state, tools

LEDGER = "runs.jsonl"  # in the directory of results: a line for each run that was finished
EVERY_S = 1.0
SCALE = re.compile(r"(--set=)?run\.time_scale=.*")


class Load:
    """The largest 1-minute load average while a block of statements runs."""

    def __enter__(self):
        self._over = threading.Event()
        self.largest = os.getloadavg()[0]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        while not self._over.wait(EVERY_S):
            self.largest = max(self.largest, os.getloadavg()[0])

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self.largest = max(self.largest, os.getloadavg()[0])


def point_of(directory, results):
    """A run's name without the number of its run."""
    return Path(directory).resolve().relative_to(Path(results).resolve()).as_posix().split(AGAIN)[0]


def digest_of(directory):
    """Of all that a run measures: its command, scenario, files and commit. At another time_scale it
    is the same measurement."""
    record = read_record(directory)
    given = sweep_state.kept_input(Path(directory)) or {
        "command": shlex.split(command_of(record)), "scenario": record.get("scenario"),
        "commit": commit_of(record)}
    words = [Path(word).name for word in given["command"] if not SCALE.fullmatch(word)]
    if "--out" in words:
        at = words.index("--out")
        del words[at:at + 2]
    text = json.dumps({**given, "command": words}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def number_of(point, digest, results):
    """Of the next run of a point: removing a run does not make another one the first."""
    try:
        lines = (Path(results) / LEDGER).read_text().splitlines()
    except OSError:
        lines = []
    entries = [json.loads(line) for line in lines]
    return 1 + sum((entry["point"], entry["input"]) == (point, digest) for entry in entries)


@contextlib.contextmanager
def recorded(directory, results):
    """Around the start of a benchmark that writes `directory`, below `results`. No processor of a
    virtual machine halts meanwhile."""
    before, load_before = is_finished(directory), os.getloadavg()[0]
    with awake.held(awake.is_virtual()), Load() as load:
        yield
        held = awake.count()
    if before or not is_finished(directory):
        return
    point, digest = point_of(directory, results), digest_of(directory)
    number = number_of(point, digest, results)
    kept = {"measurement": number, "load_average": load_before,
            "load_average_during": load.largest, "awake_processors": held}
    (Path(directory) / RUN_FILE).write_text(json.dumps(kept) + "\n")
    with open(Path(results) / LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(json.dumps({"point": point, "input": digest,
                                 "measurement": number}) + "\n")


def run(command, directory, results, timeout_s=None, goes_on=False):
    """tools.run for a benchmark that writes `directory`, below `results`. What a run that was cut
    short left there is kept beside it, where this one does not go on with it."""
    if not goes_on:
        sweep_state.set_aside(Path(directory))
    with recorded(directory, results):
        return tools.run(command, timeout_s=timeout_s)


def next_of(directory):
    """Where a point is measured once more: its own directory while that is not finished."""
    if not is_finished(directory):
        return directory
    number = 1
    while is_finished(target := directory.with_name(f"{directory.name}{AGAIN}{number}")):
        number += 1
    return target
