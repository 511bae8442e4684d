"""The figure of a run whose links change: from records, and the commands that make them."""

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
from longhaul.figures.crosspipe import hot_switch as crosspipe_hot_switch


def stretch(name, first, predicted_ms, samples):
    predicted = predicted_ms * 1_000_000
    return {"schedule": name, "first_iteration": first, "predicted_ns": predicted,
            "samples_ns": [int(predicted * factor) for factor in samples]}


FIXED = {"scenario": '[scenario]\nname = "tiny"\n', "time_scale": 0.5, "iterations": 5,
         "schedules": [
    stretch("zbv", 0, 100, (1.01, 1.02)), stretch("zbv+change@2", 2, 300, (1.0, 1.01, 1.0))],
    "switches": [{"iteration": 2, "event": "change"}]}
ADAPTIVE = {**FIXED, "schedules": [
    stretch("best", 0, 90, (1.01, 1.02)), stretch("best+change@2", 2, 280, (1.0, 1.01)),
    stretch("best@4", 4, 150, (1.01,))],
    "switches": [{"iteration": 2, "event": "change"}, {"iteration": 2, "event": "deviation"},
                 {"iteration": 4, "event": "switch"}]}


class HotSwitch(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def write(self, fixed, adaptive):
        for name, record in (("fixed", fixed), ("adaptive", adaptive)):
            (self.directory / name).mkdir()
            (self.directory / name / "record.json").write_text(json.dumps(record))

    def figure(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([str(word) for word in words]), "figure")
        return code, said.getvalue()

    def test_iterations_of_both_runs_in_times_of_the_scenario(self):
        self.write(FIXED, ADAPTIVE)
        out = self.directory / "pictures"
        code, said = self.figure("hot-switch", "--results", self.directory, "--out", out)
        self.assertEqual(code, 0, said)
        picture = matplotlib.image.imread(out / "hot-switch.png")
        self.assertGreater(picture[..., :3].std(), 0.05)
        table = pd.read_csv(out / "hot-switch.csv")
        self.assertEqual(list(table["iteration"]), [0, 1, 2, 3, 4] * 2)
        last = table.iloc[-1]
        self.assertEqual((last["run"], last["began_as"], last["schedule"]),
                         ("adaptive", "best", "best@4"))
        self.assertAlmostEqual(last["predicted_s"], 0.3)
        self.assertAlmostEqual(last["measured_s"], 0.303)

    def test_a_record_without_beginnings_is_refused(self):
        old = {**FIXED, "schedules": [{"schedule": "zbv", "predicted_ns": 1, "samples_ns": [1]}]}
        self.write(old, ADAPTIVE)
        code, said = self.figure("hot-switch", "--results", self.directory)
        self.assertEqual(code, 2)
        self.assertIn("Run it again", said)

    def test_nothing_to_draw(self):
        code, said = self.figure("hot-switch")
        self.assertEqual(code, 2)
        self.assertIn("--run", said)

    def test_labels_of_events_after_the_run_are_left_out(self):
        record = {**ADAPTIVE, "switches": [*ADAPTIVE["switches"],
                                           {"iteration": 4, "event": "kept"}]}
        words = {"change": None, "switch": None}
        shown = crosspipe_hot_switch.events_shown(record, words, last=3)
        self.assertEqual([event["event"] for event in shown], ["change"])


if __name__ == "__main__":
    unittest.main()
