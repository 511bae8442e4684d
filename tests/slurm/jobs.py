"""What tests of jobs have in common: one cluster for all of them, and what is asserted of a job."""

import atexit
import functools
import json
import os
import unittest
from pathlib import Path

from cluster import Cluster

BINARIES = Path(os.environ["LONGHAUL_BIN"])
SMALL = """\
[scenario]
name = "small"
[parallel]
stages = 4
microbatches = 8
[costs]
forward = "2ms"
dgrad = "2ms"
wgrad = "2ms"
activation = "1MiB"
message = "1MiB"
[[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "2ms"
bandwidth = "10Gbps"
"""
LONG = 400  # iterations of the small scenario, 89 ms each: more than the 31 s until a warning


class TestCluster(Cluster):
    """The cluster of all tests. The first job it gets has one minute: until Slurm warns it takes up
    to 30 s, so it runs beside the other tests."""

    def start(self):
        super().start()
        (self.directory / "small.toml").write_text(SMALL)
        self.short_of_time = self.directory / "short of time"
        self.short_job = self.submit(
            "--time", 1, "pipeline", "small.toml", "--schedule", "1f1b", "--iterations", LONG,
            "--out", self.short_of_time, site=self.site("short.env"))


@functools.cache
def the_cluster():
    cluster = TestCluster(os.environ["SCRATCH"])
    atexit.register(cluster.stop)
    cluster.start()
    return cluster


def processes_of(directory):
    """Ids of processes whose command names this directory of results: launcher, ranks, jobs."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(directory) in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


def read_record(directory):
    return json.loads((Path(directory) / "record.json").read_text())


class JobTest(unittest.TestCase):
    def setUp(self):
        self.cluster = the_cluster()
        self.name = self.id().rsplit(".", 1)[1]
        self.out = self.cluster.directory / self.name

    def site(self, **more):
        return self.cluster.site(f"{self.name}.env", **more)

    def pipeline(self, *words, options=(), scenario="small.toml", schedule="1f1b", site=None):
        return self.cluster.submit(*options, "pipeline", scenario, "--schedule", schedule, *words,
                              "--out", self.out, site=site or self.site())

    def assert_ended(self, number, state, code, kind="pipeline"):
        job = self.cluster.ended(number)
        self.assertEqual((job["JobState"], job["ExitCode"]), (state, code),
                         self.cluster.log(number, kind))
        return job

    def assert_valid(self, iterations):
        record = read_record(self.out)
        self.assertEqual([entry["n"] for entry in record["schedules"]], [iterations])
        self.assertEqual([entry["check"] for entry in record["schedules"]], ["ok"])
        done = self.cluster.call(BINARIES / "longhaul", "check", self.out / "trace.h5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return record

    def skip_without_pmix(self):
        listed = self.cluster.call("srun", "--mpi=list")
        if "pmix" not in listed.stdout + listed.stderr:
            self.skipTest("this Slurm has no PMIx plugin (srun --mpi=list)")
