"""The figures of training, from records as bench_train writes them (synthetic here)."""

import argparse
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pandas as pd

from longhaul import provenance
from longhaul.commands import figure
from longhaul.errors import Failure, guarded
from longhaul.figures.runs import train_blocks, train_foretold, train_methods, train_records
from longhaul.figures.stella import fig12, fig13, train_weather

UPDATES = {"none": 100, "stella": 300, "diloco:20": 200, "diloco:outer=1:steps=10": 200,
           "streaming-diloco:20,4,2": 240}
LOCAL_STEPS = {"diloco:20": 20, "diloco:outer=1:steps=10": 10, "streaming-diloco:20,4,2": 20}


def curve(method, seed, period, updates, timed=False):
    """Of 300 updates; a timed one has none."""
    stale = method == "stella"
    local_steps = LOCAL_STEPS.get(method, 1)
    exchanges = 12 if timed else 300 // local_steps
    return {"method": method, "seed": seed, "learning_rate": 0.01,
            "rival": {"local_steps": local_steps} if method in LOCAL_STEPS else None,
            "kind": "measured" if stale or timed else "composed",
            "settings": {"staleness": int(stale)}, "check": "ok",
            "points": [] if timed else [[150, 150 * period, 3.0, 3.1], [300, 300 * period, 2.0, 2.1]],
            "losses": [] if timed else [2.5] * exchanges, "versions": [[[]]] * exchanges, "exchanges": exchanges,
            "iterations_to_target": None if timed else updates,
            "time_to_target_ns": None if timed or updates is None else updates * period,
            "search_cost_ns": 10 ** 9, "period_ns": period, "predicted_period_ns": period - 10 ** 6,
            "wan": {"payload_bytes": 1000 * exchanges, "nominal_bytes": 2000 * exchanges},
            "pace": {"faithful": True}}


def record(curves):
    return {"benchmark": "bench_train", "numbers": "measured", "command_line": "bench_train x",
            "git_commit": "0123456789ab", "lateness_credit_ns": 10 ** 6, "network": "emulated",
            "compute": "real", "environment": {"load_average": {"before": [1.5], "during": 2.0}},
            "train": {"curves": curves}}


class TrainFigures(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def keep(self, name, curves):
        run = self.directory / "results" / name
        run.mkdir(parents=True)
        (run / "record.json").write_text(json.dumps(record(curves)))
        (run / "run.json").write_text(json.dumps({"measurement": 1, "load_average_during": 2.0}))

    def drawn(self, name, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([name, "--results", str(self.directory / "results"),
                                                "--out", str(self.directory / "drawn"), *words]),
                           "figure")
        self.assertEqual(code, 0, said.getvalue())
        self.assertGreater((self.directory / "drawn" / f"{name}.png").stat().st_size, 10_000)
        return pd.read_csv(self.directory / "drawn" / f"{name}.csv")

    def test_times_at_other_rates_are_composed_of_updates_and_periods(self):
        self.keep("numbers", [curve(method, seed, 10 ** 8, updates)
                              for method, updates in UPDATES.items() for seed in (1, 2)])
        self.keep("5Mbps", [curve(method, 1, 2 * 10 ** 7, None, timed=True) for method in UPDATES])
        table = self.drawn("train-methods")
        there = table[table["rate_mbps"] == 5].set_index(["method", "seed"])
        self.assertAlmostEqual(there.loc[("none", 2), "seconds_to_target"], 100 * 0.02)
        for method, local_steps in LOCAL_STEPS.items():
            self.assertAlmostEqual(there.loc[(method, 1), "seconds_to_target"],
                                   UPDATES[method] / local_steps * 0.02)
        self.assertEqual(set(there["source"]), {"composed"})
        self.assertNotIn("stella", there.index.get_level_values(0))  # links change what it learns
        own = table[(table["rate_mbps"] == 0.576) & (table["method"] == "stella")]
        self.assertEqual(list(own["source"]), ["measured"] * 2)
        self.assertEqual(provenance.problems(table), [])

    def test_first_exchanges_that_send_more_take_longer_at_each_rate(self):
        first = {"onebit": [10 ** 9] * 60, "dgc:ramp=10": [3 * 10 ** 9, 10 ** 9], "none": []}
        there = {"onebit": [5 * 10 ** 7] * 2, "dgc:ramp=10": [2 * 10 ** 7, 10 ** 7], "none": []}
        self.keep("numbers", [curve(method, 1, 10 ** 8, 100) | {"longer_at_first_ns": longer}
                              for method, longer in first.items()])
        self.keep("5Mbps", [curve(method, 1, 2 * 10 ** 7, None, timed=True) | {"longer_at_first_ns": longer}
                            for method, longer in there.items()])
        table = self.drawn("train-methods")
        seconds = table[table["rate_mbps"] == 5].set_index("method")["seconds_to_target"]
        self.assertAlmostEqual(seconds["none"], 2)
        self.assertAlmostEqual(seconds["onebit"], 2 + 60 * 0.05)
        self.assertAlmostEqual(seconds["dgc:ramp=10"], 2 + 0.03)

    def test_what_did_not_reach_the_target_has_no_time(self):
        self.keep("numbers", [curve("none", 1, 10 ** 8, 100), curve("stella", 1, 10 ** 7, None)])
        table = self.drawn("train-methods").set_index("method")
        self.assertTrue(pd.isna(table.loc["stella", "seconds_to_target"]))

    def test_nothing_that_reached_the_target_is_drawn_too(self):
        self.keep("numbers", [curve(method, 1, 10 ** 8, None) for method in ("none", "stella")])
        self.assertTrue(self.drawn("train-methods")["seconds_to_target"].isna().all())

    def test_every_rival_is_tried_at_as_many_rates(self):
        names = [word.split(":")[0] for word in train_methods.METHODS]
        self.assertEqual(sorted(names), sorted((
            "none", "fp16", "int8", "onebit", "powersgd", "dgc", "randomk", "localsgd", "diloco",
            "streaming-diloco", "sparseloco", "demo", "byteps", "bytepscompress", "espresso",
            "stella")))
        self.assertEqual({len(rates) for rates in train_methods.GRIDS.values()},
                         {len(train_methods.GRID)})
        self.assertLessEqual(set(train_methods.GRIDS), set(names))
        asked = []
        with mock.patch.object(train_records, "measure", lambda *call: asked.append(call)), \
                self.assertRaises(Failure):
            train_methods.draw(self.options("--measure"))
        words = list(map(str, asked[0][3]))
        self.assertEqual(words[words.index("--seeds") + 1], "1,2,3")
        self.assertEqual(words[words.index("--lr-grid") + 1],
                         "0.003,0.01;dgc=0.1,0.3;demo=0.0003,0.001;diloco=0.001,0.003;"
                         "streaming-diloco=0.001,0.003;sparseloco=0.001,0.003")
        asked.clear()
        with mock.patch.object(train_records, "measure", lambda *call: asked.append(call)), \
                self.assertRaises(Failure):
            train_methods.draw(self.options("--measure", "--methods", "none,dgc:keep=5%+hetero"))
        words = list(map(str, asked[0][3]))
        self.assertEqual(words[words.index("--lr-grid") + 1], "0.003,0.01;dgc=0.1,0.3")

    def options(self, *words):
        parser = argparse.ArgumentParser()
        train_methods.add_arguments(parser)
        parser.set_defaults(results=str(self.directory / "none"))
        return parser.parse_args(words)

    def test_blocks_are_read_from_the_names_of_methods(self):
        methods = ("none", "block:keep=1%:block=1:share=each", "block:keep=1%:block=16:share=each")
        for size in ("0.05M", "0.13M"):
            self.keep(size, [curve(method, seed, 10 ** 7, None) for method in methods for seed in (1, 2)])
        table = self.drawn("train-blocks")
        self.assertEqual(sorted(table["block"].unique()), [0, 1, 16])
        self.assertEqual(train_blocks.kept(table["method"]), "1%")
        self.assertEqual(train_blocks.kept(["none", "block:keep=10%:block=4:share=each"]), "10%")
        self.assertEqual(sorted(table["size"].unique()), ["0.05M", "0.13M"])
        self.assertEqual(provenance.problems(table), [])

    def test_a_run_that_was_cut_short_goes_on(self):
        asked = []
        results = self.directory / "results"
        with mock.patch.object(train_records.runs, "run", lambda command, *_, **__: asked.append(command)), \
                mock.patch.object(train_records.tools, "binary", lambda name: name), \
                contextlib.redirect_stderr(io.StringIO()):
            train_records.measure(results / "new", results, "train-2dc", [])
            (results / "short").mkdir(parents=True)
            (results / "short" / "progress.json").write_text("{}")
            train_records.measure(results / "short", results, "train-2dc", [])
            self.keep("over", [curve("none", 1, 10 ** 7, 100)])
            train_records.measure(results / "over", results, "train-2dc", [])
        self.assertEqual(["--resume" in command for command in asked], [False, True])
        self.assertTrue(all("--checkpoint-every" in command for command in asked))

    def test_an_iteration_beside_pytorch_is_drawn(self):
        rows = [{"system": system, "iteration_ns": ns, "least_ns": ns, "largest_ns": 2 * ns, "runs": 3,
                 "wan_bytes": 10 ** 6, "speed_up": 1.0, "loss": 2.0}
                for system, ns in (("ddp", 10 ** 8), ("none", 9 * 10 ** 7), ("stella", 10 ** 7))]
        answer = {"command": "scripts/compare-ddp", "commit": "0123456789ab", "load_average": 0.1,
                  "load_average_after": 2.0, "scenario": "train-2dc", "ranks": 4, "latency": "10ms",
                  "iterations": 40, "repeat": 3, "torch": "2",
                  "rates": [{"rate": rate, "rows": rows} for rate in ("20Mbps", "100Mbps")]}
        (self.directory / "results").write_text(json.dumps(answer))
        table = self.drawn("train-ddp")
        self.assertEqual(len(table), 6)
        self.assertEqual(provenance.problems(table), [])

    def keep_kernels(self, times):
        for keep in ("10", "1", "0.1"):
            run = self.directory / "results" / f"kernels-{keep}"
            run.mkdir(parents=True)
            (run / "record.json").write_text(json.dumps({
                "benchmark": "bench_compress", "command_line": "bench_compress --keep", "git_commit":
                "0123456789ab", "environment": {"load_average": {"before": [0.5], "during": 1.0}},
                "kernels": [{"name": name, "median_s": ms / 1e3, "min_s": ms / 2e3,
                             "seconds": [ms / 1e3] * 9, "over_read": 1.0, "over_memcpy": 1.0}
                            for name, ms in times.items()]}))
            (run / "run.json").write_text(json.dumps({"measurement": 1, "load_average_during": 1.0}))

    def test_steps_are_judged_by_the_numbers_of_the_paper(self):
        self.keep_kernels({fig12.DENSE: 172, fig12.SINGLE: 10.2, fig12.BLOCKS: 1.34,
                           "momentum exact": 2})
        table = self.drawn("stella-fig12")
        self.assertEqual(provenance.problems(table), [])
        self.assertEqual(self.verdicts("stella-fig12"),
                         {"stella-sparse-times": "holds here", "stella-sparse-gain": "holds here",
                          "stella-dense-constant": "holds here"})

    def test_learning_by_blocks_is_held_against_single_numbers(self):
        self.keep_kernels(dict.fromkeys(fig13.TIMED, 10.0) | {"threshold of single numbers": 33.5})
        losses = {fig13.DENSE: 1.0, fig13.SINGLE: 1.5, fig13.BLOCKS: 2.5, fig13.RANDOM: 2.4}
        for data in ("text", "digits"):
            curves = [curve(method, 1, 10 ** 7, None) for method in losses]
            for one in curves:
                one["points"][-1][3] = losses[one["method"]]
            self.keep(data, curves)
        table = self.drawn("stella-fig13")
        self.assertEqual(provenance.problems(table), [])
        found = self.verdicts("stella-fig13")
        self.assertEqual(found["stella-threshold-gain"], "holds here")
        self.assertEqual(found["stella-blocks-learn"], "does not hold")
        self.assertEqual(found["stella-random-learns"], "does not hold")
        self.assertEqual(found["stella-threshold-gpu"], "holds partly")  # the kept record of a card
        self.assertEqual(set(self.drawn("stella-fig13", "--part", "b")["part"]), {"b"})
        self.assertNotIn("stella-threshold-time", self.verdicts("stella-fig13"))
        self.assertEqual(set(self.drawn("stella-fig13", "--part", "a")["part"]), {"a"})
        self.assertNotIn("stella-blocks-learn", self.verdicts("stella-fig13"))

    def test_a_pick_is_held_against_the_best_that_was_measured(self):
        def row(method, measured, least, most, picked):
            return {"method": method, "measured_s": measured, "foretold_least_s": least,
                    "foretold_most_s": most, "is_picked": picked}
        table = pd.DataFrame([row("int8", 12.0, 10.0, 13.0, True), row("none", 10.0, 11.0, 13.0, False),
                              row("stella", None, None, None, False)])
        said = train_foretold.verdict(table)
        self.assertIn("int8 was picked and took 12.0 s, none was best with 10.0 s: a regret of 20.0%", said)
        self.assertIn("1 of 3 times", said)

    def verdicts(self, name):
        table = pd.read_csv(self.directory / "drawn" / f"{name}-verdicts.csv")
        return dict(zip(table["id"], table["verdict"]))

    def test_an_outage_adds_what_a_stream_takes_longer(self):
        answer = {"stream": {"iteration_start_ns": [1e9, 2e9, 4.5e9]}}
        self.assertEqual(train_weather.seconds_of(answer), 3.5)
        calm, outage = (train_weather.command_of("stella", length) for length in (0, 0.5))
        self.assertFalse([word for word in calm if "outage" in str(word)])
        self.assertIn('link.outage=[["3s", "0.5s"], ["5.03s", "0.5s"], ["7.06s", "0.5s"], ["9.09s", "0.5s"]]', outage)
        self.assertIn("train.staleness=1", outage)

    def test_rates_are_read_as_scenarios_write_them(self):
        for text, mbps in (("0.1Mbps", 0.1), ("2Gbps", 2000), ("576kbps", 0.576)):
            self.assertAlmostEqual(train_methods.mbps_of(text), mbps)


if __name__ == "__main__":
    unittest.main()
