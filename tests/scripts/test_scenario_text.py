"""What Python reads of a scenario's text."""

import json
import math
import tempfile
import unittest
from pathlib import Path

import pandas as pd

from longhaul import records, scenario_text
from longhaul.errors import Failure
from longhaul.figures.crosspipe import fig11
from longhaul.running import sweep, tools

# No name of its own: what names there are belong to a model, datacenters and a table in a string.
UNNAMED = '''[[datacenter]]
name = "paris"
stages = [0]
[[datacenter]]
name = "oslo"
stages = [1]
[model]
name = "mine"
note = """
[scenario]
name = "in a text"
"""
[parallel]
stages = 2
'''
NAMED = UNNAMED + "[scenario]\nname = 'alps'  # not \"west\"\n"


class Ranks(unittest.TestCase):
    def ranks_of(self, text, overrides=()):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "s.toml"
            file.write_text(text)
            return scenario_text.ranks_of(file, overrides)

    def test_tensor_ranks_and_services_count(self):
        text = "[parallel]\nstages = 3\nreplicas = 2\ntensor = 4\n"
        self.assertEqual(24, self.ranks_of(text))
        self.assertEqual(12, self.ranks_of(text, ["parallel.tensor=2"]))
        self.assertEqual(27, self.ranks_of(text + "[[service]]\ncount = 2\n[[service]]\n"))
        with self.assertRaisesRegex(Failure, "service.count = 0"):
            self.ranks_of(text + "[[service]]\ncount = 0\n")


class Overrides(unittest.TestCase):
    def test_those_of_another_run_are_no_part_of_a_file(self):
        text = "a = 1\n# --set x=1\n # --set y=1\n# --change 3:z=2\n# a note"
        self.assertEqual("a = 1\n # --set y=1\n# a note", scenario_text.without_overrides(text))
        self.assertEqual(NAMED, scenario_text.without_overrides(NAMED))


class Names(unittest.TestCase):
    def test_a_scenario_is_not_called_after_a_datacenter(self):
        command = "longhaul simulate runs/far.toml --schedule 1f1b"
        self.assertEqual("alps", scenario_text.name_of(NAMED, command))
        self.assertEqual("far", scenario_text.name_of(UNNAMED, command))
        self.assertEqual("", scenario_text.name_of(UNNAMED))
        self.assertEqual("set", scenario_text.name_of(NAMED + "# --set scenario.name=set\n"))
        self.assertEqual("table", scenario_text.name_of('scenario = {name = "table"}'))
        for broken in ("[scenario\nname = 'x'", "scenario = 3", "[scenario]\nname = 3"):
            self.assertEqual("", scenario_text.name_of(broken))

    def test_figures_and_records(self):
        info = {"scenario": UNNAMED, "command_line": "longhaul simulate 'a b/far.toml'",
                "creator": "longhaul 1"}
        self.assertEqual("far", tools.scenario_name(info))
        self.assertEqual("alps", tools.scenario_name({**info, "scenario": NAMED}))
        self.assertEqual("longhaul 1", tools.scenario_name({"creator": "longhaul 1"}))
        self.assertEqual("far", records.scenario_of(info))
        self.assertEqual("m70", records.scenario_of({**info, "scenario": "m70"}))


class Settings(unittest.TestCase):
    LINK = '[[link]]\nbetween = ["a", "b"]\nlatency_ratio = 0.5\n'

    def test_links_that_agree(self):
        def of(text, **overrides):
            return scenario_text.setting(text, "link", "latency_ratio", overrides)
        self.assertEqual(0.5, of(self.LINK))
        self.assertEqual(0.5, of(2 * self.LINK))
        self.assertTrue(math.isnan(of(self.LINK + self.LINK.replace("0.5", "2"))))
        self.assertTrue(math.isnan(of(self.LINK + "[[link]]\nlatency = '3ms'\n")))
        self.assertTrue(math.isnan(of("[memory]\nlatency_ratio = 0.5\n")))
        self.assertEqual(2, of(self.LINK + "# --set link.latency_ratio=2\n"))
        self.assertEqual(3, of(self.LINK, **{"link.latency_ratio": "3"}))

    def test_ratios_that_were_not_given(self):
        self.assertEqual(["-", "0", "0.25"],
                         [scenario_text.ratio_text(ratio) for ratio in (math.nan, 0.0, 0.25)])

    def test_of_a_table(self):
        entry = {"schedule": "1f1b", "predicted_ns": 10, "measured_median_ns": 11}
        zbv = {**entry, "schedule": "cross-ud", "predicted_ns": 5, "measured_median_ns": 5}
        record = {"scenario": UNNAMED, "command_line": "bench_pipeline paris.toml",
                  "schedules": [entry, zbv]}
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "record.json").write_text(json.dumps(record))
            self.assertTrue(sweep.gather(directory)["latency_ratio"].isna().all())
            table = pd.read_csv(Path(directory) / "sweep.csv")
            self.assertEqual({"-"}, set(table["latency_ratio"]) | set(table["transfer_ratio"]))
            self.assertEqual({"paris"}, set(table["scenario"]))
            drawn = fig11.draw_table(fig11.read_results(directory))
        self.assertEqual({"-"}, set(drawn.numbers["latency_ratio"]))
        self.assertEqual("paris at (-, -)", fig11.cell_text(("paris", math.nan, math.nan)))
        ticks = [label.get_text() for label in drawn.figure.axes[0].get_xticklabels()]
        self.assertEqual(["-\n-"], ticks)


class Ranks(unittest.TestCase):
    def ranks(self, text, *overrides):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "s.toml"
            file.write_text(text)
            return scenario_text.ranks_of(file, overrides)

    def test_however_they_are_written(self):
        for text in ("[parallel]\nstages = 4\nreplicas = 2\n", "parallel = {stages = 4, replicas = 2}",
                     "parallel.stages = 0x4\nparallel.replicas = 2"):
            self.assertEqual(8, self.ranks(text))
        self.assertEqual(12, self.ranks("parallel.stages = 4", "parallel.replicas = 3"))

    def test_refusals(self):
        for text, why in (("[parallel\n", "not TOML"), ("parallel.stages = 'x'", "no number of ranks"),
                          ("parallel.stages = 0", "no number of ranks")):
            with self.assertRaisesRegex(Failure, why):
                self.ranks(text)
        with self.assertRaisesRegex(Failure, "cannot read"):
            scenario_text.ranks_of("/nowhere/x.toml")


if __name__ == "__main__":
    unittest.main()
