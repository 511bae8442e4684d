"""A sweep that is killed and resumed gives the same as one that is left alone, times apart. Skips
where bench_pipeline or mpirun is missing."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import pandas as pd

from longhaul.errors import Failure
from longhaul.running import tools

SCENARIO = """[scenario]
name = "four"
[costs]
forward = "2ms"
backward = "4ms"
message = "1MiB"
[parallel]
stages = 2
microbatches = 2
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
between = ["west", "east"]
latency = "2ms"
"""
# What each start of a run measures for itself; `checks` counts warm-up iterations, too.
MEASURED = ("measured", "checks", "credit", "without_credit", "critical_messages", "late_per_message",
            "samples_ns", "real_transfer", "lease", "difference_percent", "stopped",
            "outliers", "links", "check_detail", "timer_lateness", "credible", "doubts",
            "own_scale")


def is_built():
    try:
        return tools.binary("bench_pipeline") and shutil.which("mpirun")
    except Failure:
        return False


def processes(directory):
    """Those with the directory in a word of their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.fsencode(directory) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def wait_for(condition, what):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"waited a minute for {what}")


def without_times(record):
    """The part that must be the same in two runs of one input."""
    schedules = [{key: value for key, value in schedule.items() if not key.startswith(MEASURED)}
                 for schedule in record["schedules"]]
    return {key: record[key] for key in ("scenario", "iterations", "warmup", "comm", "git_commit",
                                         "time_scale", "skipped")} | {"schedules": schedules}


@unittest.skipUnless(is_built(), "bench_pipeline is not built, or there is no mpirun")
class KilledSweep(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="longhaul-sweep-")
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name).resolve()
        (self.directory / "four.toml").write_text(SCENARIO)

    def sweep(self, *words):
        return subprocess.Popen([tools.ROOT / "scripts/sweep", *map(str, words)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def begin(self, out):
        return self.sweep("--scenario", self.directory / "four.toml", "--out", out, "--cells",
                          "0:0,0.5:2", "--schedules", "1f1b,zb-h1", "--iterations", 40)

    def test_results_are_those_of_one_that_is_left_alone(self):
        alone, killed = self.directory / "alone", self.directory / "killed"
        first = self.begin(alone)
        self.assertEqual(first.wait(), 0, first.stderr.read())
        first.stderr.close()
        point = "four/decoupled/latency0.5-transfer2"
        faulty = self.begin(killed)
        wait_for(lambda: len(list((killed / point).glob("segment.*"))) > 10, "a few iterations")
        faulty.kill()
        faulty.wait()
        faulty.stderr.close()
        wait_for(lambda: not processes(killed), "the ranks to end with their sweep")
        self.assertFalse((killed / point / "record.json").exists(), "it was cut short")
        done = (killed / "four/decoupled/latency0-transfer0/record.json").read_bytes()
        again = self.sweep("--resume", killed)
        self.assertEqual(again.wait(), 0, again.stderr.read())
        again.stderr.close()
        self.assertEqual((killed / "four/decoupled/latency0-transfer0/record.json").read_bytes(),
                         done, "what was done is not done again")
        self.assert_same(alone, killed)
        parts = json.loads((killed / point / "record.json").read_text())["environment"]["parts"]
        self.assertEqual(len(parts), 2)
        self.assertGreater(sum(parts[1]["finished_before"]), 0, "it went on")

    def assert_same(self, one, other):
        records = [{file.relative_to(out): without_times(json.loads(file.read_text()))
                    for file in out.rglob("record.json")} for out in (one, other)]
        self.assertEqual(len(records[0]), 2)
        self.maxDiff = None
        self.assertEqual(*records)
        tables = [pd.read_csv(out / "sweep.csv") for out in (one, other)]
        for table, out in zip(tables, (one, other)):
            table["command"] = table["command"].str.replace(str(out), "OUT")
        columns = [name for name in tables[0].columns
                   if not name.startswith(MEASURED + ("load",))]
        pd.testing.assert_frame_equal(tables[0][columns], tables[1][columns])


if __name__ == "__main__":
    unittest.main()
