"""vTrain's figures 5, 7, 8 and 9 on answers of the programs by hand."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import matplotlib.image
import pandas as pd

from longhaul.commands import figure
from longhaul.errors import Failure, guarded
from longhaul.figures.vtrain import fig5, fig7, fig8, fig9, real_runs
from longhaul.papers import claims
from longhaul.running import predict, tools

# Two layers on a stage, one all-reduce of tensor ranks between MHA and FFN, a message to stage 1.
DOT = r"""digraph "1f1b" {
  subgraph cluster_0 { label="stage 0";
    s0o0 [label="F embedding, layer 0\nmicrobatch 0", style=filled, fillcolor=lightblue];
    s0o1 [label="F qkv, layer 1\nmicrobatch 0", style=filled, fillcolor=lightblue];
    s0o2 [label="F attention, layer 1\nmicrobatch 0", style=filled, fillcolor=lightblue];
    s0o3 [label="F down, layer 1\nmicrobatch 0", style=filled, fillcolor=lightblue];
    s0o4 [label="D down, layer 1\nmicrobatch 0", style=filled, fillcolor=palegreen];
    s0o5 [label="W down, layer 1\nmicrobatch 0", style=filled, fillcolor=palegreen];
    s0o6 [label="optimizer, chunk 0", style=filled, fillcolor=khaki];
    s0c0 [label="tp all_reduce\n8 bytes", style=filled, fillcolor=lightgray];
    s0c1 [label="dp all_reduce\n8 bytes", style=filled, fillcolor=lightgray];
  }
  subgraph cluster_1 { label="stage 1";
    s1o0 [label="F down, layer 2\nmicrobatch 0", style=filled, fillcolor=lightblue];
  }
    m1 [label="send F0.0", style=filled, fillcolor=lightgray];
  s0o0 -> s0o1;
  s0o1 -> s0o2;
  s0o2 -> s0c0;
  s0c0 -> s0o3;
  s0o3 -> m1;
  m1 -> s1o0;
  s0o3 -> s0o4;
  s0o4 -> s0o5;
  s0o5 -> s0c1;
  s0c1 -> s0o6;
}
"""
ROWS = ["row,machine,model,gpus,iteration_ms", "1,selene,mt-nlg-530b,8,1000",
        "2,selene,small,8,2000", "3,selene,small,16,4000"]


def op(lane, kind, start, end, operator="layer", step=-1):
    return {"lane": lane, "kind": kind, "start_ns": 1000 * start, "end_ns": 1000 * end,
            "operator": operator, "step": step}


def two_layers():
    """F 0 to 20, B 20 to 60, a bucket a layer of two messages of 5 each, the step from 75."""
    rows = [op("compute", "F", 0, 10), op("compute", "F", 10, 20)]
    for start in (20, 40):
        rows += [op("compute", "B", start, start + 8), op("compute", "B", start + 8, start + 20)]
    rows.append(op("compute", "W", 75, 79, "optimizer"))
    for start in (40, 60):
        rows += [op("send>1", "send", start, start + 5, None, 0),
                 op("send>1", "send", start + 5, start + 10, None, 1)]
    return pd.DataFrame(rows)


class Buckets(unittest.TestCase):
    def test_bars_are_layers_and_buckets(self):
        bars = fig5.bars_of(two_layers())
        self.assertEqual([bar[1] for bar in bars],
                         ["Fwd 1", "Fwd 2", "Bwd 2", "Bwd 1", "WU", "All-Reduce 2", "All-Reduce 1"])
        self.assertEqual(bars[2], ("Bwd", "Bwd 2", 20, 40))
        self.assertEqual(bars[-1], ("All-Reduce", "All-Reduce 1", 60, 70))
        self.assertEqual(fig5.summed_us(bars), 50)

    def test_one_all_reduce_is_of_all_layers(self):
        rows = two_layers()
        rows.loc[(rows["kind"] == "send") & (rows["start_ns"] == 60_000), "step"] = 2
        bars = fig5.bars_of(rows)
        self.assertEqual(bars[-1][1:3], ("All-Reduce 1 & 2", 40))

    def test_all_that_is_exposed_hides_nothing(self):
        table = pd.DataFrame([
            {"model": model, "bucket": bucket, "all_reduce_us": 300.0, "exposed_us": exposed}
            for model, buckets in (("four layers", (fig5.WITH, fig5.WITHOUT)),
                                   ("gpt-3.6b", fig5.BUCKETS))
            for bucket, exposed in zip(buckets, (150.0, 300.0) if len(buckets) == 2
                                       else (300.0, 300.0, 300.0, 300.0, 300.0))])
        self.assertEqual(fig5.verdicts(table)[0].verdict, claims.PARTLY)
        table.loc[table["bucket"] == "25MiB", "exposed_us"] = 30.0
        said = fig5.verdicts(table)[0]
        self.assertEqual((said.verdict, said.ours), (claims.HOLDS, "50% and 90% hidden"))


class InFlight(unittest.TestCase):
    def judged(self, held):
        def ask(question):
            count = int(question.overrides[0].split("=")[1])
            return {"gpipe": {"peak_activation": [float(count)]},
                    "1f1b": {"peak_activation": [float(held(count))]}}
        with mock.patch.object(predict, "ask", ask):
            return fig7.verdicts(Path("s.toml"))[0].verdict

    def test_one_f_one_b_holds_as_many_as_the_pipeline_is_deep(self):
        self.assertEqual(self.judged(lambda count: min(count, 4)), claims.HOLDS)
        self.assertEqual(self.judged(lambda count: count), claims.FAILS)


class Graph(unittest.TestCase):
    def test_operators_between_two_all_reduces_are_one_node(self):
        nodes = fig8.merged(DOT)
        kinds = {name: node.kind for name, node in nodes.items()}
        self.assertEqual(kinds, {
            "s0o0": "F emb.", "s0o1": "F MHA", "s0o3": "F FFN", "s0o4": "B FFN",
            "s0o6": "optimizer", "s0c0": "tp all_reduce", "s0c1": "dp all_reduce",
            "s1o0": "F FFN", "m1": "send"})
        self.assertEqual(nodes["s0o1"].operators, ["F.qkv", "F.attention"])
        self.assertEqual(nodes["s0o4"].operators, ["D.down", "W.down"])
        self.assertEqual(nodes["s1o0"].level, 5)
        self.assertEqual(fig8.place_of(nodes["m1"], nodes), (4, -0.5))

    def test_a_cycle_is_no_graph_of_an_iteration(self):
        with self.assertRaisesRegex(Failure, "has a cycle"):
            fig8.merged(DOT.replace("  s0o3 -> m1;", "  s0o3 -> m1;\n  s1o0 -> s0o1;"))


class Drawing(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.out = Path(temporary.name)
        self.rows = self.out / "rows.csv"
        self.rows.write_text("\n".join(ROWS), encoding="utf-8")
        self.best = 0.3

    def answer(self, command, **_):
        """A prediction is exact at the best alpha, and off by their distance elsewhere."""
        words = [str(word) for word in command]
        if words[1] == "ops":
            Path(words[words.index("--graph") + 1]).write_text(DOT, encoding="utf-8")
            return "{}"
        if words[1] == "profile":
            return json.dumps({"operators": [{}] * 7})
        given = words[words.index("--calibration") + 1]
        alpha = self.best
        if given != "none":
            text = Path(given).read_text(encoding="utf-8")
            alpha = float(text.split("alpha_data = ")[1].split()[0])
        return json.dumps({"rows": [
            {"row": row.row, "iteration_ns": 1e6 * row.measured_ms * (1 + abs(alpha - self.best)),
             "low_ns": 0.9e6 * row.measured_ms, "high_ns": 1.1e6 * row.measured_ms}
            for row in fig9.measured(words[words.index("predict") + 1]).itertuples()]})

    def drawn(self, *words, code=0):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), \
                mock.patch.object(tools, "run", self.answer), \
                mock.patch.object(tools, "binary", Path):
            ended = guarded(lambda: figure.main([*words, "--out", str(self.out)]), "figure")
        self.assertEqual(ended, code, said.getvalue())
        if code:
            return said.getvalue()
        picture = matplotlib.image.imread(self.out / f"{words[0]}.png")
        self.assertGreater(min(picture.shape[:2]), 300)
        self.assertGreater(picture[..., :3].std(), 0.02)
        return pd.read_csv(self.out / f"{words[0]}.csv"), pd.read_csv(
            self.out / f"{words[0]}-verdicts.csv").set_index("id")

    def test_the_graph(self):
        table, verdicts = self.drawn("vtrain-fig8")
        self.assertEqual(len(table), 9)
        self.assertEqual(verdicts.loc["vtrain-necessary", "verdict"], claims.HOLDS)

    def test_rows_that_were_measured(self):
        """Beside those that papers report, whose ranges hold with them too."""
        table, verdicts = self.drawn("vtrain-fig9", "--rows", str(self.rows))
        published = fig9.measured(fig9.ROWS)
        self.assertEqual(len(table), len(published) + 3 + len(fig9.ALPHAS))
        self.assertEqual(table["off_percent"].abs().max(), 0)
        self.assertTrue((table["model"] == "mt-nlg-530b").any())
        sweep = table[table["row"] == "sweep"].set_index("alpha")["mape"]
        self.assertEqual(sweep.idxmin(), self.best)
        self.assertAlmostEqual(sweep[1.0], 70)
        self.assertEqual(set(verdicts["verdict"]), {claims.NOT_JUDGED})  # another cluster's

    def test_rows_of_the_papers_cluster_are_judged(self):
        text = "\n".join(ROWS).replace("selene", fig9.CLUSTER)
        self.rows.write_text(text, encoding="utf-8")
        for self.best, said in ((0.3, claims.FAILS), (1.0, claims.HOLDS)):
            _, verdicts = self.drawn("vtrain-fig9", "--rows", str(self.rows))
            self.assertEqual(verdicts.loc["vtrain-error-multi", "verdict"], claims.HOLDS)
            self.assertEqual(verdicts.loc["vtrain-alpha", "verdict"], said)
            self.assertEqual(verdicts.loc["vtrain-error-single", "verdict"], claims.NOT_JUDGED)

    def test_rows_that_were_not(self):
        self.rows.write_text("\n".join(ROWS).replace(",4000", ","), encoding="utf-8")
        self.assertIn("row 3 has no iteration_ms", self.drawn("vtrain-fig9", "--rows",
                                                              str(self.rows), code=2))
        self.assertIn("cannot be read", self.drawn("vtrain-fig9", "--rows", "none.csv", code=2))


class RealRuns(unittest.TestCase):
    """Figure 9 on this machine: what is run, and what a row of it says."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def test_configurations_are_many_small_and_none_of_the_profiles(self):
        every = real_runs.configurations()
        self.assertEqual(every, real_runs.configurations())
        self.assertEqual(len({one.name for one in every}), 64)
        bases = {(hidden, sequence, batch) for hidden, _, _, _, sequence, batch in real_runs.BASES}
        for one in every:
            self.assertNotIn((one.hidden, one.sequence, one.micro_batch), bases)
            self.assertLessEqual(one.flops(), real_runs.MOST_FLOPS)
            self.assertEqual(one.hidden % (2 * one.heads), 0)
            self.assertLessEqual(one.ranks, 2)
        self.assertEqual({(one.tensor, one.data, one.pipeline) for one in every},
                         set(real_runs.RANKS))
        self.assertEqual({one.schedule for one in every}, set(real_runs.SCHEDULES))
        self.assertEqual({one.recompute for one in every}, {False, True})

    def profile(self, place):
        """Blocks that take twice the sum of their operators: F 100 ns, D 100, W 100."""
        own = self.directory / f"profile-{place}"
        own.mkdir()
        rows = [f"layer,{block},{operator},count={8 + place},f32,2,{median}"
                for block, operator, median in (("F", "copy", 20), ("F", "gemm", 30),
                                                ("D", "gemm", 50), ("W", "gemm", 50))]
        (own / "operators.csv").write_text("\n".join([",".join(real_runs.FIELDS), *rows, ""]))
        (own / "collectives.csv").write_text(
            "operation,ranks,nodes,size_bytes,median_ns\nall_reduce,2,1,64,500\n")
        blocks = {block: {"measured_median_ns": 200} for block in "FDW"}
        (own / "record.json").write_text(json.dumps({"parts": [{"name": "layer",
                                                                "blocks": blocks}]}))

    def test_one_profile_of_all_base_models(self):
        for place in range(len(real_runs.BASES)):
            self.profile(place)
        rows = real_runs.read_csv(real_runs.merged_profile(self.directory))
        self.assertEqual(sum(row["operator"] == "gemm" for row in rows), 3 * len(real_runs.BASES))
        added = next(row for row in rows if row["operator"] == "add")
        self.assertEqual((added["shape"], added["median_ns"]), ("count=8", "30"))
        summed = [row for row in rows if row["operator"] == "all_reduce"]  # once, though all have it
        self.assertEqual([row["shape"] for row in summed], ["bytes=64 ranks=2 nodes=1"])
        self.assertAlmostEqual(real_runs.beside_each_other(self.directory), 0.6931, places=4)

    def test_tensor_ranks_hold_both_ends_whole(self):
        def row(part, operator, median, shape="cut"):
            return {"part": part, "block": "F", "operator": operator, "shape": shape,
                    "median_ns": median}
        cut = [row("layer", "gemm", 5), row("layer", "all_reduce", 9), row("head", "gemm", 20),
               row("head", "all_reduce", 9)]
        alone = [row("layer", "gemm", 10, "whole"), row("head", "gemm", 40, "whole")]
        made = real_runs.with_whole_ends(cut, alone)
        self.assertEqual([each["median_ns"] for each in made], [5, 9, 40, 0])
        self.assertEqual({each["shape"] for each in made}, {"cut"})

    def test_rows_have_an_interval_by_the_laws_errors_and_a_wrong_run_is_refused(self):
        one = real_runs.configurations(1)[0]
        answer = {"operators": [
            {"block": "F", "operator": "gemm", "calls": 3, "median_ns": 100},
            {"block": "F", "operator": "copy", "calls": 1, "median_ns": 100},
            {"block": "update", "operator": "adamw", "calls": 1, "median_ns": 9999}]}
        sigma = real_runs.spread(answer, {"gemm": 0.04, "copy": 0.08}, 0.03)
        self.assertAlmostEqual(sigma ** 2, 0.03 ** 2 + (1.2533 * 0.03) ** 2
                               + (1.2533 * 0.02) ** 2, places=6)
        target = self.directory / one.name
        target.mkdir()
        entry = {"check": "ok", "n": 8, "measured_median_ns": 10e6}
        write = (target / "record.json").write_text
        write(json.dumps({"schedules": [entry], "message_bytes": 64}))
        row = real_runs.row_of(one, target, 11.0, 0.1)
        self.assertEqual((row["off_percent"], row["n"]), (10.0, 8))
        self.assertAlmostEqual(row["low_ms"], 11 * 0.8483, places=3)
        self.assertAlmostEqual(row["high_ms"], 11 * 1.1788, places=3)
        write(json.dumps({"schedules": [{**entry, "check": "wrong"}], "message_bytes": 64}))
        with self.assertRaisesRegex(Failure, "computed something wrong"):
            real_runs.row_of(one, target, 11.0, 0.1)


if __name__ == "__main__":
    unittest.main()
