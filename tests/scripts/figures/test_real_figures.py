"""Figures of real layers: measured costs and predictions from them, and losses."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import fakes
import matplotlib.image
import pandas as pd

from longhaul.commands import figure
from longhaul.errors import guarded
from longhaul.figures.runs import loss, profile_to_schedule

MS = 1_000_000
SCENARIO = '[scenario]\nname = "small"\n'


def schedule(name, predicted_ms, measured_ms, check="ok"):
    return {"schedule": name, "n": 8, "check": check, "predicted_ns": predicted_ms * MS,
            "measured_median_ns": measured_ms * MS, "measured_min_ns": measured_ms * MS,
            "measured_p95_ns": measured_ms * MS, "measured_median_low_ns": (measured_ms - 1) * MS,
            "measured_median_high_ns": (measured_ms + 2) * MS}


def block(median_ms, width):
    return {"measured_median_ns": median_ms * MS, "measured_median_low_ns": median_ms * MS,
            "measured_median_high_ns": median_ms * MS * (1 + width)}


PROFILE = {"device": "cpu", "number_type": "f32",
           "stages": [{"blocks": {"F": block(10, .01), "B": block(20, .03)}}]}
TIMES = {"ud": [("1f1b", 100, 102), ("zb-h1", 90, 93), ("cross-ud", 85, 84), ("best", 80, 90)],
         "wave": [("zbv", 88, 88), ("cross-wave", 82, 83), ("best", 80, 81)],
         "loop": [("interleaved-1f1b", 99, 99), ("cross-loop", 95, 96)],
         "recompute": [("1f1b", 120, 121), ("cross-ud", 110, 111)]}


def learned(name, losses):
    return {"schedule": name, "check": "ok",
            "real": {"loss": losses, "peak_memory_bytes": [1, 1, 1, 1]}}


class RealFigures(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def write(self, name, record):
        (self.directory / name).mkdir()
        (self.directory / name / "record.json").write_text(json.dumps(record))

    def figure(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([str(word) for word in words]), "figure")
        return code, said.getvalue()

    def drawn(self, name):
        out = self.directory / "pictures"
        code, said = self.figure(name, "--results", self.directory, "--out", out)
        self.assertEqual(code, 0, said)
        self.assertGreater(matplotlib.image.imread(out / f"{name}.png")[..., :3].std(), 0.05)
        return pd.read_csv(out / f"{name}.csv"), said

    def write_profiles(self, times=None):
        for name, entries in (times or TIMES).items():
            self.write(f"profile-{name}", PROFILE)
            self.write(f"run-{name}", {"scenario": SCENARIO, "schedules": [
                schedule(*entry) for entry in entries]})

    def test_predictions_beside_what_was_measured(self):
        self.write_profiles()
        table, said = self.drawn("profile-to-schedule")
        self.assertEqual(len(table), 11)
        best = table[(table["profile"] == "ud") & (table["schedule"] == "best")].iloc[0]
        self.assertAlmostEqual(best["difference_percent"], 12.5)
        self.assertAlmostEqual(best["profile_widest_interval_percent"], 3)
        self.assertIn("from -1.2% to +12.5%", said)
        self.assertIn("furthest best (ud)", said)

    def test_order_of_pairs(self):
        table = pd.DataFrame({"predicted_ms": [100.0, 90.0, 89.9], "measured_median_ms":
                              [100.0, 101.0, 95.0]})
        # The last two have equal predictions; of the other pairs one is as predicted.
        self.assertEqual(profile_to_schedule.order(table), (1, 2))

    def test_what_computed_something_wrong_is_not_drawn(self):
        self.write_profiles({**TIMES, "loop": [("interleaved-1f1b", 99, 99, "wrong")]})
        code, said = self.figure("profile-to-schedule", "--results", self.directory)
        self.assertEqual(code, 3)
        self.assertIn("interleaved-1f1b of run-loop computed something wrong", said)

    def test_commands_profile_before_they_run(self):
        fakes.install(self, self.directory)
        (self.directory / "bench_profile").write_text("")
        code, said = self.figure("profile-to-schedule", "--dry-run", "--results",
                                 self.directory / "runs", "--set", "parallel.microbatches=4")
        self.assertEqual(code, 0, said)
        lines = said.strip().splitlines()
        self.assertEqual(len(lines), 2 * len(profile_to_schedule.RUNS))
        for profile, run in zip(lines[::2], lines[1::2]):
            self.assertIn("-n 2", profile)
            self.assertIn("bench_profile", profile)
            self.assertIn("--compute real", run)
            self.assertIn("costs.toml", run)
            self.assertIn("parallel.microbatches=4", profile)

    def test_losses_lie_on_top_of_one_ranks(self):
        self.write("one-rank", {"schedules": [learned("1f1b", [4.0, 3.0, 2.0])]})
        self.write("schedules", {"scenario": SCENARIO, "schedules": [
            learned("1f1b", [4.0, 3.0, 2.0]), learned("zbv", [4.0, 3.003, 2.001])]})
        table, said = self.drawn("loss")
        self.assertEqual(list(table["iteration"]), 3 * [0, 2])
        self.assertAlmostEqual(table["relative_difference"].max(), 1e-3)  # of iteration 1, between
        self.assertIn("Final losses of 2 schedules differ from one rank's by at most 5.0e-04 (zbv)",
                      said)
        self.assertIn("any iteration by at most 1.0e-03", said)

    def test_records_without_losses_are_refused(self):
        self.write("one-rank", {"schedules": [schedule("1f1b", 1, 1)]})
        code, said = self.figure("loss", "--results", self.directory)
        self.assertEqual(code, 2)
        self.assertIn("--compute real", said)

    def test_one_rank_has_one_stage(self):
        fakes.install(self, self.directory)
        code, said = self.figure("loss", "--dry-run", "--results", self.directory / "runs")
        self.assertEqual(code, 0, said)
        one, all_of_them = said.strip().splitlines()
        self.assertIn("-n 1", one)
        self.assertIn("parallel.stages=1", one)
        self.assertIn(loss.SCHEDULES, all_of_them)

    def test_one_rank_lies_nowhere(self):
        text = ('[model]\nlayers = 4\n[[datacenter]]\nname = "a"\n[run]\nseed = 1\n'
                '[[link]]\nrtt = "1s"\n')
        self.assertEqual(loss.without_places(text), "[model]\nlayers = 4\n[run]\nseed = 1\n")

    def test_the_table_keeps_each_tenth_loss_and_the_farthest_difference_between(self):
        apart = {3: 2e-7, 4: -5e-7, 23: 1e-9}
        rows = [{"schedule": name, "iteration": i, "loss": 4 - 0.1 * i,
                 "relative_difference": apart.get(i, 0.0) if name == "b" else 0.0}
                for name in ("a", "b") for i in range(25)]
        table = loss.thinned(pd.DataFrame(rows))
        own = table[table["schedule"] == "b"]
        self.assertEqual(list(own["iteration"]), [0, 10, 20, 24])
        self.assertEqual(list(own["relative_difference"]), [0, -5e-7, 0, 1e-9])
        self.assertEqual(list(own["loss"]), [4 - 0.1 * i for i in own["iteration"]])
        self.assertEqual(len(table), 8)

    def test_nothing_to_draw(self):
        for name in ("loss", "profile-to-schedule"):
            code, said = self.figure(name)
            self.assertEqual(code, 2)
            self.assertIn("--measure", said)


if __name__ == "__main__":
    unittest.main()
