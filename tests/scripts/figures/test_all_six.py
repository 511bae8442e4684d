"""The figure of advice on ranks, drawn from records as the programs write them (synthetic here)."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import matplotlib.image
import pandas as pd

from longhaul.commands import figure
from longhaul.errors import guarded

MADE = {"git_commit": "0123456789ab", "created": "2026-01-01T00:00:00Z", "numbers": "measured",
        "scenario": "three-sites", "check": "ok"}


def plan(ideas, seconds, overlap=None):
    return {"ideas": ideas, "iteration_ns": int(1e9 * seconds), "made_by": "zb-h1",
            "overlap": overlap}


class AllSix(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.results = Path(temporary.name) / "results"
        self.out = Path(temporary.name) / "out"

    def write(self, place, content, name="record.json"):
        (self.results / place).mkdir(parents=True, exist_ok=True)
        (self.results / place / name).write_text(json.dumps(content), encoding="utf-8")

    def pipeline_record(self, place, seconds):
        self.write(place, MADE | {
            "benchmark": "bench_pipeline", "command_line": "bench_pipeline x",
            "schedules": [{"schedule": "zb-h1", "measured_median_ns": 1e9 * seconds, "n": 8,
                           "check": "ok"}]})

    def train_record(self, periods):
        """Of methods, seconds of an exchange; diloco's has ten updates."""
        curve = {"check": "ok", "losses": [1.0], "versions": [0], "exchanges": 1, "points": [[40, 0, 0, 2.5]],
                 "wan": {"payload_bytes": 8, "nominal_bytes": 8}}
        self.write("trained", MADE | {
            "benchmark": "bench_train", "command_line": "bench_train x", "train": {"curves": [
                curve | {"method": method, "period_ns": period and 1e9 * period,
                         "settings": {"staleness": 0}, "rival": {"local_steps": steps}}
                for method, period, steps in periods]}})

    def drawn(self, measured, update=0.1, code=0):
        """Plans of 1.0, 1.2 and 1.5 s that took `measured` seconds, and a method of 0.1 s an update
        that took `update` (0: it is not known); what was said."""
        self.write("layouts", {"plans": [plan(["layout"], 2.0), plan([], 3.0)]}, "advice.json")
        self.write("methods", {"plans": [
            plan(["method"], 0.1) | {"loss": {"method": "diloco:10"}},
            plan([], 0.9) | {"loss": {"method": "none"}}]}, "advice.json")
        for number, seconds in enumerate((2.01, 3.0), 1):
            self.pipeline_record(f"layouts-{number}", seconds)
        self.train_record((("diloco:10", 10 * update or None, 10),))
        self.write("advice", {"plans": [plan(["order", "turns"], 1.0), plan(["order"], 1.2),
                                        plan([], 1.5, "best")]}, "advice.json")
        for number, seconds in enumerate(measured, 1):
            self.pipeline_record(f"plan-{number}", seconds)
        self.write("prefill", MADE | {
            "benchmark": "bench_prefill", "command_line": "bench_prefill x",
            "stretch_iterations": 2, "pairs": {"on_ns": [2.5e9, 2.4e9, 2.42e9, 2.3e9]},  # an even number
            "schedules": [{"schedule": "zb-h1",
                           "utilisation": {"training": 0.5, "total": 0.8},
                           "predicted_utilisation": {"training": 0.5, "total": 0.9}}]})
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            ended = guarded(lambda: figure.main(["all-six", "--results", str(self.results), "--out",
                                                 str(self.out)]), "figure")
        self.assertEqual(ended, code, said.getvalue())
        return said.getvalue()

    def test_a_method_that_exchanged_once_has_no_time(self):
        self.assertIn("diloco:10 has exchanged once", self.drawn((1, 1.2, 1.5), update=0, code=2))

    def test_names_the_farthest_and_the_order(self):
        said = self.drawn((1.01, 1.2, 1.53))
        self.assertIn("within 3%", said)
        self.assertIn("none of given stages, +2.00%", said)
        self.assertIn("in the predicted order", said)
        self.assertIn("80.0% of the GPUs' time is used, predicted 90.0%", said)
        table = pd.read_csv(self.out / "all-six.csv")
        self.assertEqual(list(table["ideas"]), ["order+turns", "order", "none", "layout", "none",
                                                "method", "order+prefill"])
        self.assertEqual(list(table["part"].unique()), ["given stages", "open layouts", "methods"])
        self.assertAlmostEqual(table["measured_s"].iloc[6], 1.205)
        self.assertAlmostEqual(table["measured_s"].iloc[5], 0.1)
        picture = matplotlib.image.imread(self.out / "all-six.png")
        self.assertGreater(picture[..., :3].std(), 0.02)

    def test_holds_an_update_against_the_advice(self):
        self.assertIn("method of methods, +10.00%", self.drawn((1.0, 1.2, 1.5), update=0.11))

    def test_says_what_missed(self):
        said = self.drawn((1.3, 1.2, 1.5))
        self.assertIn("not within 3%", said)
        self.assertIn("in another order", said)


if __name__ == "__main__":
    unittest.main()
