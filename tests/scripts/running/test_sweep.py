"""Sweeps and the tables gathered from records."""

import contextlib
import fcntl
import io
import struct
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import pandas as pd

import fakes
from longhaul import records, scenario_text
from longhaul.commands import sweep
from longhaul.errors import Failure
from longhaul.running import measuring, sweep_points, tools

SCENARIO = """[scenario]
name = "tiny"
[parallel]
stages = 4   # over two datacenters
replicas = 2
microbatches = 8
"""


class Sweep(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.out = self.directory / "out"
        self.scenario = self.directory / "tiny.toml"
        self.scenario.write_text(SCENARIO)
        (self.directory / "bin").mkdir()
        self.bin = fakes.install(self, self.directory / "bin")

    def run_sweep(self, *more):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = sweep.guarded(lambda: sweep.main([
                "--scenario", str(self.scenario), "--out", str(self.out), "--cells", "0:0,0.25:2",
                "--comm", "decoupled,grouped", "--schedules", "1f1b,zbv", *more]), "sweep")
        return code, said.getvalue()

    def test_one_row_a_schedule_and_point(self):
        code, _ = self.run_sweep("--time-scale", "0.5", "--set", "run.seed=3")
        self.assertEqual(code, 0)
        table = pd.read_csv(self.out / "sweep.csv")
        self.assertEqual(list(table.columns), records.COLUMNS)
        self.assertEqual(len(table), 2 * 2 * 2)
        row = table[(table["schedule"] == "zbv") & (table["comm"] == "grouped")
                    & (table["transfer_ratio"] == 2)].iloc[0]
        self.assertEqual(row["latency_ratio"], 0.25)
        self.assertEqual(row["predicted_ns"], int(1e9 * 3.25 * .5 * .9 * 1.3))
        self.assertAlmostEqual(row["difference_percent"], 1.0, places=3)
        self.assertEqual((row["scenario"], row["time_scale"], row["n"], row["check"], row["commit"],
                          row["load_average"]), ("tiny", 0.5, 5, "ok", "c0ffee", 0.5))
        self.assertEqual(row["load_average_after"], 0.7)
        self.assertIn("--set run.seed=3", row["command"])

    def test_finished_points_are_not_run_again(self):
        self.run_sweep()
        self.assertEqual(len(fakes.calls(self.bin)), 4)
        self.assertEqual(self.run_sweep()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 4)

    def test_a_failed_point_is_repeated_alone(self):
        with unittest.mock.patch.dict("os.environ", {"FAIL_ONCE": "latency0.25-transfer2"}):
            code, said = self.run_sweep()
            self.assertEqual(code, 3)
            self.assertIn("2 points failed", said)
            log = self.out / "tiny/grouped/latency0.25-transfer2.log"
            self.assertIn("rank 3 is stuck", log.read_text())
            self.assertEqual(len(pd.read_csv(self.out / "sweep.csv")), 4)
            self.assertEqual(self.run_sweep()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 6)
        self.assertEqual(len(pd.read_csv(self.out / "sweep.csv")), 8)
        left = self.out / "tiny/grouped/latency0.25-transfer2.unfinished-1"
        self.assertTrue(left.is_dir())

    def resume(self, *more):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = sweep.guarded(lambda: sweep.main(["--resume", str(self.out), *more]), "sweep")
        return code, said.getvalue()

    def test_a_point_that_was_cut_short_goes_on(self):
        with unittest.mock.patch.dict("os.environ", {"DIE_ONCE": "latency0.25-transfer2"}):
            self.assertEqual(self.run_sweep("--time-scale", "0.5")[0], 3)
            self.assertEqual(self.resume()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 6, "two of four points again")
        self.assertEqual(list(self.out.rglob("*.unfinished-*")), [])
        table = pd.read_csv(self.out / "sweep.csv")
        self.assertEqual(len(table), 8)
        self.assertEqual(set(table["time_scale"]), {0.5}, "as it was asked for")

    def test_done_points_are_recognised_by_their_full_input(self):
        self.run_sweep()
        self.assertEqual(self.resume()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 4, "nothing is left to do")
        with unittest.mock.patch.dict("os.environ", {"COMMIT": "beef"}):
            self.assertEqual(self.resume()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 8, "another program")
        self.assertEqual(set(pd.read_csv(self.out / "sweep.csv")["commit"]), {"beef"})
        self.assertEqual(len(list(self.out.rglob("*.outdated-1"))), 4)
        with unittest.mock.patch.dict("os.environ", {"COMMIT": "beef"}):
            self.scenario.write_text(SCENARIO + "# other content\n")
            self.assertEqual(self.resume()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 12, "another scenario of the same name")

    def test_files_that_a_point_reads_are_input(self):
        """The weather of a link and a schedule, named by scenario and options."""
        weather, schedule = self.directory / "weather.csv", self.directory / "own.csv"
        weather.write_text("time_s,latency_ms\n0,1\n")
        schedule.write_text("0F0,0B0\n")
        self.scenario.write_text(SCENARIO + '[[link]]\ntrace = "weather.csv"\n')
        self.run_sweep("--schedules", f"1f1b,{schedule}")
        self.assertEqual(self.resume()[0], 0)
        self.assertEqual(len(fakes.calls(self.bin)), 4, "nothing is left to do")
        for number, file in enumerate((weather, schedule), 2):
            file.write_text(file.read_text() + "# other content\n")
            self.assertEqual(self.resume()[0], 0)
            self.assertEqual(len(fakes.calls(self.bin)), 4 * number, file.name)

    def test_the_last_of_several_sweeps_says_what_a_point_is(self):
        self.run_sweep("--iterations", "2")
        self.run_sweep("--iterations", "20")
        self.assertEqual(len(fakes.calls(self.bin)), 4, "what is finished stays")
        for _ in range(2):
            self.assertEqual(self.resume()[0], 0)
            self.assertEqual(len(fakes.calls(self.bin)), 8, "and is done anew once")
        self.assertEqual(len(list(self.out.rglob("*.outdated-*"))), 4)

    def test_a_run_that_goes_on_is_left_alone(self):
        with unittest.mock.patch.dict("os.environ", {"DIE_ONCE": "latency0.25-transfer2"}):
            self.run_sweep()
        point = self.out / "tiny/grouped/latency0.25-transfer2"
        self.scenario.write_text(SCENARIO + "# of other input, which would set it aside\n")
        with open(point / "journal.jsonl", "wb") as journal:
            held = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
            fcntl.fcntl(journal, fcntl.F_OFD_SETLK, held)
            code, said = self.run_sweep()
            self.assertEqual(code, 3)
            self.assertIn("another run is going on", said)
            self.assertTrue((point / "input.json").is_file())
        self.assertEqual(self.run_sweep()[0], 0)
        self.assertTrue(point.with_name(f"{point.name}.unfinished-1").is_dir())

    def test_what_cannot_be_resumed(self):
        self.out.mkdir()
        code, said = self.resume()
        self.assertEqual(code, 2)
        self.assertIn("no sweep to resume", said)

    def test_dry_run_runs_nothing(self):
        self.assertEqual(self.run_sweep("--dry-run")[0], 0)
        self.assertEqual(fakes.calls(self.bin), [])
        self.assertFalse(self.out.exists())

    def test_bad_input(self):
        for more, text in ((["--cells", "1:x"], 'no cells "1:x"'),
                           (["--cells", "-1:0"], 'no cells "-1:0"'),
                           (["--comm", "coupled"], 'no arrangement "coupled"'),
                           (["--scenario", "nowhere.toml"], "no scenario nowhere.toml"),
                           (["--gather"], "no finished record")):
            code, said = self.run_sweep(*[f"{more[0]}={more[1]}"] if more[1:] else more)
            self.assertEqual(code, 2, more)
            self.assertIn(text, said)

    def test_ranks(self):
        self.assertEqual(scenario_text.ranks_of(self.scenario), 8)
        self.assertEqual(scenario_text.ranks_of(self.scenario, ["parallel.replicas=1"]), 4)

    def test_named_cells(self):
        self.assertEqual(len(sweep_points.parse_cells("grid")), 16)
        self.assertEqual(sweep_points.parse_cells("0.5:0,1:2"), ((.5, 0), (1, 2)))


class Records(unittest.TestCase):
    def test_overrides_of_a_command_line(self):
        found = records.overrides_of("bench --set a.b=1 --set=c.d='2 ms' --set a.b=3 s.toml")
        self.assertEqual(found, {"a.b": "3", "c.d": "2 ms"})
        self.assertEqual(records.option_of("bench --comm=grouped s.toml", "--comm"), "grouped")
        self.assertIsNone(records.option_of("bench s.toml", "--comm"))

    def test_scenario_as_text(self):
        record = {"scenario": '[scenario]\nname = "m70"\n[run]\ntime_scale = 0.3\n'}
        self.assertEqual(records.scenario_of(record), "m70")
        self.assertEqual(records.time_scale_of(record, {}), 0.3)

    def test_no_record(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(Failure, "no record"):
                records.read_record(directory)
            (Path(directory) / "record.json").write_text("{")
            with self.assertRaisesRegex(Failure, "not JSON"):
                records.read_record(directory)
            self.assertFalse(records.is_finished(directory))

    def test_a_run_that_drained_is_not_finished(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "record.json"
            file.write_text('{"stopped": {"signal": "SIGTERM", "pairs": 1, "pairs_asked": 20}}')
            self.assertFalse(records.is_finished(directory))
            with self.assertRaisesRegex(Failure, "stopped after 1 of 20 pairs"):
                records.read_finished(directory)
            file.write_text("{}")
            self.assertTrue(records.is_finished(directory))
            self.assertEqual({}, records.read_finished(directory))

    def test_half_a_run_is_set_aside(self):
        with tempfile.TemporaryDirectory() as directory:
            run = Path(directory) / "run"
            run.mkdir()
            (run / "record.json").write_text('{"stopped": {}}')
            write = "import sys, pathlib as p; d = p.Path(sys.argv[2]); d.mkdir(); " \
                    "(d / 'record.json').write_text('{\"command_line\": \"x\"}')"
            for _ in range(2):
                measuring.run_once([sys.executable, "-c", write], run, Path(directory))
            self.assertTrue(records.is_finished(run))
            aside = sorted(path.name for path in Path(directory).glob("run.unfinished-*"))
            self.assertEqual(["run.unfinished-1"], aside)


if __name__ == "__main__":
    unittest.main()
