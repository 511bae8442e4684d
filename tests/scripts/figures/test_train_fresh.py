"""Iterations and fresh parts on ranks: from synthetic records, by predictions, and once for real."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pandas as pd

import fakes
from longhaul import provenance
from longhaul.commands import figure
from longhaul.errors import Failure, guarded
from longhaul.figures.stella import methods, train_fresh
from longhaul.papers import claims, expected
from longhaul.running import tools


def record(curves):
    return {"benchmark": "bench_train", "numbers": "measured", "command_line": "bench_train x",
            "git_commit": "0123456789ab", "lateness_credit_ns": 10 ** 6, "network": "emulated",
            "compute": "timed", "environment": {"load_average": {"before": [0.5], "during": 1.0}},
            "train": {"curves": curves}}


def curve(method, period_ms, share):
    """Predicted are 100 ms and half of the parts."""
    return {"method": method, "check": "ok", "exchanges": 40, "losses": [], "versions": [], "points": [],
            "period_ns": round(period_ms * 1e6), "predicted_period_ns": 10 ** 8, "fresh_share": share,
            "predicted_fresh_share": 0.5, "wan": {"payload_bytes": 4000, "nominal_bytes": 8000}}


class TrainFresh(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def keep(self, point, periods, share=0.5):
        """`periods`: ms by (staleness, order)."""
        run = self.directory / "results" / point.name
        run.mkdir(parents=True)
        (run / "record.json").write_text(json.dumps(record(
            [curve(name, periods[variant], share) for name, variant in point.variants().items()])))
        (run / "run.json").write_text(json.dumps({"measurement": 1, "load_average_during": 1.0}))

    def drawn(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main(["train-fresh", "--out", str(self.directory / "drawn"),
                                                *map(str, words)]), "figure")
        self.assertEqual(code, 0, said.getvalue())
        self.assertGreater((self.directory / "drawn" / "train-fresh.png").stat().st_size, 10_000)
        return pd.read_csv(self.directory / "drawn" / "train-fresh.csv")

    def verdicts(self):
        table = pd.read_csv(self.directory / "drawn" / "train-fresh-verdicts.csv")
        return dict(zip(table["id"], table["verdict"]))

    def test_measured_stands_beside_predicted_with_its_source(self):
        for point in train_fresh.points("a"):
            self.keep(point, {(s, order): 102 for s in (0, 1) for order in train_fresh.ORDERS}, share=0.48)
        table = self.drawn("--results", self.directory / "results", "--part", "a")
        self.assertEqual(len(table), len(train_fresh.RATES) * 2 * 2)
        self.assertEqual(table.groupby(["staleness", "serve"])["mbps"].apply(list).tolist(),
                         [list(train_fresh.RATES)] * 4)
        self.assertTrue(((table["period_off_percent"] - 2).abs() < 1e-6).all())
        self.assertTrue(((table["fresh_off_points"] + 2).abs() < 1e-6).all())
        self.assertEqual(set(table["source"]), {"measured"})
        self.assertEqual((set(table["n"]), set(table["payload_sent_bytes"])), ({40}, {100}))
        self.assertEqual(provenance.problems(table), [])

    def test_goals_are_of_the_farthest_run(self):
        periods = {(s, order): 102 for s in (0, 1) for order in train_fresh.ORDERS}
        first, *others = train_fresh.points("a")
        self.keep(first, periods | {(1, "arrival"): 96})
        for point in others:
            self.keep(point, periods)
        self.drawn("--results", self.directory / "results", "--part", "a")
        found = [expected.number_of(expected.Expected(**{**vars(one), "file": "train-fresh"}),
                                    self.directory / "drawn") for one in train_fresh.FIGURE.expected]
        self.assertAlmostEqual(found[0], -4)
        self.assertAlmostEqual(found[1], 0)
        self.assertLess(found[0], train_fresh.FIGURE.expected[0].low)

    def test_claims_are_judged_by_what_ranks_took(self):
        slow = 100 / (1 - claims.value("stella-priority") / 100)
        periods = {(s, order): slow if order == "arrival" else 100
                   for s in (0, 1) for order in train_fresh.ORDERS}
        for point in train_fresh.points("b"):
            self.keep(point, periods, share=claims.value("stella-fresh") / 100)
        self.drawn("--results", self.directory / "results")
        self.assertEqual(self.verdicts(), {"stella-fresh": claims.HOLDS, "stella-priority": claims.HOLDS})

    def test_no_order_of_service_is_worth_nothing(self):
        periods = {(s, order): 100 for s in (0, 1) for order in train_fresh.ORDERS}
        for point in train_fresh.points("b"):
            self.keep(point, periods, share=0.9)
        self.drawn("--results", self.directory / "results", "--part", "b")
        self.assertEqual(self.verdicts(), {"stella-fresh": claims.FAILS, "stella-priority": claims.FAILS})

    def test_records_of_others_are_refused(self):
        point = train_fresh.points("a")[0]
        self.keep(point, {(s, order): 100 for s in (0, 1) for order in train_fresh.ORDERS})
        file = self.directory / "results" / point.name / "record.json"
        file.write_text(file.read_text().replace("stella:staleness=1", "block:staleness=1"))
        with self.assertRaisesRegex(Failure, "a run of block"):
            train_fresh.measured(train_fresh.points("a"), self.directory / "results")
        with self.assertRaisesRegex(Failure, "--measure"):
            train_fresh.measured(train_fresh.points("a"), self.directory / "elsewhere")

    def test_streams_have_no_checkpoints(self):
        """At which stale weights would wait."""
        asked = []
        with mock.patch.object(train_fresh.train_records.runs, "run",
                               lambda command, *_, **__: asked.append(list(map(str, command)))), \
                mock.patch.object(train_fresh.train_records.tools, "binary", lambda name: name), \
                contextlib.redirect_stderr(io.StringIO()):
            train_fresh.measure(train_fresh.points("a")[0], self.directory)
        self.assertNotIn("--checkpoint-every", asked[0])
        self.assertIn("timed", asked[0])
        self.assertIn("link.bandwidth=0.3Mbps", asked[0])


@unittest.skipUnless(fakes.is_built("longhaul"), "longhaul is not built")
class Predicted(unittest.TestCase):
    def test_ranks_run_the_plan_of_the_ablation(self):
        """The small model with other sets, parts and costs: to the nanosecond that of stella-8gpu."""
        for point in (train_fresh.Point("b", 100, 12, (1,), ("deadline",), "vit-b-16", "stella"),
                      train_fresh.Point("b", 500, 8, (0,), ("arrival",), "resnet152", "stella-eq6")):
            words = train_fresh.overrides(point)
            [(staleness, order)] = point.variants().values()
            own = methods.ask(train_fresh.command_of(point, staleness, order, words))["stream"]
            run = methods.Run(point.reading, point.model, point.mbps,
                              more=(f"train.staleness={staleness}", f"train.serve={order}"))
            command = methods.command_of(run)
            command[command.index("--iterations") + 1] = point.iterations
            self.assertEqual(own, methods.ask(command)["stream"])

    @unittest.skipUnless(fakes.is_built("bench_train"), "bench_train is not built")
    def test_four_ranks_measure_one_rate(self):
        said = io.StringIO()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(tools.ROOT)  # whose paths a measured command has
        with tempfile.TemporaryDirectory() as temporary, mock.patch.object(train_fresh, "RATES", (2,)), \
                contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            options = ["train-fresh", "--part", "a", "--iterations", "8"]
            for words in (["--measure", "--results", temporary + "/runs", "--out", temporary + "/measured"],
                          ["--simulate", "--out", temporary + "/simulated"]):
                self.assertEqual(guarded(lambda: figure.main([*options, *words]), "figure"), 0,
                                 said.getvalue())
            found, foretold = (pd.read_csv(Path(temporary) / kind / "train-fresh.csv")
                               for kind in ("measured", "simulated"))
            self.assertTrue((Path(temporary) / "runs" / "a-2Mbps-0-1-8it" / "record.json").is_file())
        for column in ("staleness", "serve", "predicted_period_ms", "predicted_fresh_percent"):
            self.assertEqual(list(found[column]), list(foretold[column]), column)
        self.assertTrue(foretold["period_ms"].isna().all())
        self.assertTrue((found["period_ms"] > 0.9 * found["predicted_period_ms"]).all())
        self.assertEqual(set(found[found["staleness"] == 0]["fresh_percent"]), {100})
        self.assertEqual(set(found["n"]), {8})
        self.assertEqual(set(found["blocks"]), {"timed"})
        self.assertTrue((found["payload_sent_bytes"] > 0).all())
        self.assertEqual([one for one in provenance.problems(found) if "tree with changes" not in one], [])

    @unittest.skipUnless(fakes.is_built("bench_train"), "bench_train is not built")
    def test_eight_ranks_measure_a_model_of_the_paper(self):
        point = train_fresh.Point("b", 100, 8, (0,), ("deadline",), "resnet152", "stella")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(tools.ROOT)
        with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stderr(io.StringIO()):
            train_fresh.measure(point, Path(temporary))
            [row] = train_fresh.measured([point], Path(temporary)).to_dict("records")
        [foretold] = train_fresh.simulated([point]).to_dict("records")
        self.assertEqual(row["predicted_period_ms"], foretold["predicted_period_ms"])
        self.assertGreater(row["period_ms"], 0.9 * row["predicted_period_ms"])
        self.assertEqual((row["model"], row["reading"], row["fresh_percent"]), ("resnet152", "hidden", 100))


if __name__ == "__main__":
    unittest.main()
