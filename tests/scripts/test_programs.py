"""Records and traces of Longhaul's own programs are read as they mean it. Skips where they are not
built."""

import json
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import pandas as pd

from longhaul import scenario_text
from longhaul.drawing import memory, panels
from longhaul.errors import Failure
from longhaul.figures.runs import timeline
from longhaul.path import critical_path, wan_crossings
from longhaul.running import tools
from longhaul.trace import read_trace, select


def program(name):
    try:
        return tools.binary(name)
    except Failure:
        return None


@unittest.skipUnless(program("longhaul"), "longhaul is not built")
class Simulated(unittest.TestCase):
    def agree(self, scenario, *options):
        """Python's walk over the trace and the tool's record agree."""
        scenario = tools.scenario_file(scenario)
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "t.h5"
            record = json.loads(tools.run([program("longhaul"), "simulate", scenario, "--schedule",
                                           "static", "--out", file, "--json", *options]))
            trace = read_trace(file)
        self.assertEqual(tools.scenario_name(trace.info), scenario.stem)
        self.assertEqual(trace.schedules, [entry["schedule"] for entry in record["schedules"]])
        for entry in record["schedules"]:
            rows = select(trace.predicted, entry["schedule"])
            with self.subTest(scenario=scenario.stem, schedule=entry["schedule"]):
                self.assertEqual(panels.makespan(rows), entry["makespan_ns"])
                self.assertEqual(wan_crossings(critical_path(rows)),
                                 entry["wan_crossings_on_critical_path"])

    def test_two_and_four_datacenters(self):
        self.agree("m70-2dc")
        self.agree("m70-4dc")

    def test_grouped(self):
        self.agree("m70-2dc", "--comm", "grouped")

    def test_replicas_across_datacenters(self):
        self.agree("dp-2dc")

    def test_memory_over_time(self):
        """The tool's export and the figure's own sum are the same lines."""
        with tempfile.TemporaryDirectory() as directory:
            file, exported = Path(directory) / "t.h5", Path(directory) / "memory.csv"
            tools.run([program("longhaul"), "simulate", tools.scenario_file("m70-2dc"),
                       "--schedule", "zbv", "--out", file])
            tools.run([program("longhaul"), "trace", "export", file, "--format", "memory",
                       "--out", exported])
            theirs = pd.read_csv(exported)
            ours = memory.changes(select(read_trace(file).predicted, "zbv"))
        columns = ["rank", "device", "time_ns", "activation_bytes"]
        self.assertGreater(len(ours), 0)
        self.assertEqual(theirs[columns].to_numpy().tolist(), ours[columns].to_numpy().tolist())

    def test_figure_6_of_crosspipe(self):
        scenario = tools.scenario_file("crosspipe-fig6")
        rows = select(tools.simulate(scenario, ["1f1b"]).predicted, "1f1b")
        steps = critical_path(rows)
        self.assertEqual(wan_crossings(steps), 8)
        self.assertEqual((steps[0].start_ns, steps[-1].end_ns), (0, panels.makespan(rows)))

    @unittest.skipUnless(program("bench_pipeline") and shutil.which("mpirun"), "no ranks")
    def test_the_iteration_that_is_shown(self):
        """A figure and `longhaul trace attribution` choose the same of an even number."""
        with tempfile.TemporaryDirectory() as directory:
            run = Path(directory) / "run"
            tools.run([tools.ROOT / "scripts/mpi", "-n", 4, program("bench_pipeline"),
                       tools.scenario_file("crosspipe-fig6"), "--schedule", "1f1b", "--iterations",
                       6, "--set", "run.time_scale=0.05", "--out", run])
            said = tools.run([program("longhaul"), "trace", "attribution", run])
            rows, _ = timeline.measured_of(read_trace(run), "1f1b")
        theirs = re.search(r"critical path, measured, iteration (\d+)", said)[1]
        self.assertEqual({int(theirs)}, set(rows["iteration"]))

    def test_every_scenario_has_its_ranks(self):
        for file in sorted(tools.SCENARIOS.glob("*.toml")):
            if file.stem == "atlas-5dc":  # longhaul plan chooses where its stages lie
                continue
            plan = tools.simulate(file, ["1f1b"])
            self.assertEqual(scenario_text.ranks_of(file), plan.predicted["rank"].nunique(), file)


if __name__ == "__main__":
    unittest.main()
