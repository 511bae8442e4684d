"""Centauri's figures from synthetic answers: what they take from them, and how they judge."""

import unittest

import pandas as pd

from longhaul.figures.centauri import (cells, fig1, fig3, fig5, fig6, fig7, fig11, inputs, lanes,
                                       table1, table2, tuned)
from longhaul.papers import claims


def verdict_of(verdicts, claim):
    return next(one for one in verdicts if one.id == claim)


class Lanes(unittest.TestCase):
    def rows(self):
        columns = ["lane", "kind", "operator", "slice", "collective", "step", "level", "start_ns",
                   "end_ns"]
        nothing = (None, -1, None)
        return pd.DataFrame(
            [("compute", "F", "qkv", 0, *nothing, 0, 4_000_000),
             ("compute", "B", "qkv.dgrad", 0, *nothing, 4_000_000, 6_000_000),
             ("compute", "B", "qkv.wgrad", 0, *nothing, 6_000_000, 7_000_000),
             ("send>1:1", "send", None, 0, "all_gather of chunk 0", 0, "node", 0, 1_000_000),
             ("send>1:1", "send", None, 0, "all_gather of chunk 0", 1, "node", 1_000_000,
              2_000_000),
             ("send>1:1", "send", None, 0, "all_gather of chunk 0", 0, "node", 5_000_000,
              6_000_000),
             ("recv<3:4", "recv", None, 0, "reduce_scatter of chunk 0", 0, "datacenter",
              7_000_000, 9_000_000),
             ("send>1", "send", None, 0, "all_gather of chunk 0 of ranks 0, 1", 0, "node",
              3_000_000, 4_000_000)], columns=columns).sort_values("start_ns")

    def test_a_step_that_does_not_ascend_begins_another_collective(self):
        found = lanes.rows_of(self.rows(), tensor=False)
        gathers = found[(found["kind"] == "gather") & (found["what"] == "send>1:1")]
        self.assertEqual(list(zip(gathers["start_ms"], gathers["end_ms"])), [(0, 2), (5, 6)])
        scatter = found[found["kind"] == "scatter"].iloc[0]
        self.assertEqual((scatter["lane"], scatter["end_ms"]), ("between nodes", 9))

    def test_operators_say_which_gradient_they_are(self):
        found = lanes.rows_of(self.rows(), tensor=False)
        device = found[found["lane"] == "device"]
        self.assertEqual(list(device["kind"]), ["F", "D", "W"])
        self.assertEqual(set(device["what"]), {"qkv"})

    def test_the_first_queue_is_that_of_tensor_ranks_where_there_are_some(self):
        kinds = [list(lanes.rows_of(self.rows(), tensor)["kind"]).count("tp")
                 for tensor in (False, True)]
        self.assertEqual(kinds, [0, 1])

    def test_windows(self):
        table = lanes.rows_of(self.rows(), False).assign(overlap="zero3", makespan_ms=9.0)
        self.assertEqual(lanes.forwards(table), {"zero3": (0, 4)})
        self.assertEqual(fig6.windows(table), {"zero3": (4, 9)})
        self.assertNotIn("scatter", set(lanes.within(table, {"zero3": (0, 4)})["kind"]))


class Verdicts(unittest.TestCase):
    def test_fig1_counts_products_that_end_earlier_ahead(self):
        def table(fused):
            return pd.DataFrame([("zero3", "F", "qkv", 4.0), ("dist-einsum", "F", "qkv", fused),
                                 ("centauri", "F", "qkv", 3.0)],
                                columns=["overlap", "kind", "what", "end_ms"])
        self.assertEqual(fig1.verdicts(table(5.0))[0].verdict, claims.HOLDS)
        self.assertEqual(fig1.verdicts(table(3.0))[0].verdict, claims.FAILS)

    def test_fig3_wants_a_gain_of_each_step(self):
        def judged(times):
            names = list(fig3.STEPS)[:len(times)]
            return fig3.verdicts(pd.DataFrame({"option": names, "makespan_ms": times}))[0].verdict
        self.assertEqual(judged([10.0, 9.0, 8.0]), claims.HOLDS)
        self.assertEqual(judged([10.0, 9.0, 9.0]), claims.PARTLY)
        self.assertEqual(judged([10.0, 10.0, 10.0]), claims.FAILS)

    def test_fig5_tells_launches_from_an_idle_device(self):
        def leaf(partition, group, parts, exposed):
            return {"partition": partition, "group": group, "granularity": ["x"] * parts,
                    "cost_ns": 5e6, "exposed_ns": exposed}
        own = {"independent_ns": 1e6, "computation_ns": 3e6, "choice": 4, "leaves": [
            leaf("whole", "flat", 1, 4e6), leaf("16 pieces", "flat", 16, 0.75e6),
            leaf("far first, its user in 2 by group", "far first", 2, 2e6),
            leaf("near first, its user in 3 by group", "near first", 3, 1e6),
            leaf("near first, 4 pieces", "near first", 4, 0.15e6)]}
        table = fig5.ways(own).set_index("way")
        self.assertAlmostEqual(table.loc["b: 16 pieces", "overhead_ms"], 0.75)
        self.assertAlmostEqual(table.loc["b: 16 pieces", "idle_ms"], 0)
        self.assertAlmostEqual(table.loc["d: near groups first, in 3", "idle_ms"], 0.9)
        self.assertEqual(fig5.verdicts(table.reset_index())[0].verdict, claims.HOLDS)
        own["choice"] = 3
        self.assertEqual(fig5.verdicts(fig5.ways(own))[0].verdict, claims.PARTLY)

    def test_fig7_takes_the_fewest_that_hide_as_much(self):
        def judged(times):
            return fig7.verdicts(pd.DataFrame([
                {"overlap": "megatron", "batch": 1, "group": group, "makespan_ms": time,
                 "peak_gb": 10.0 + group}
                for group, time in zip(fig7.GROUPS, times)]))[0]
        found = judged([12.0, 11.0, 10.05, 10.0])
        self.assertEqual(found.verdict, claims.HOLDS)
        self.assertIn("6 of 12, peak 16.0 GB of 22.0", found.ours)
        self.assertEqual(judged([10.0, 10.0, 10.0, 10.0]).verdict, claims.FAILS)

    def test_fig11_reads_groups_of_what_was_decided(self):
        self.assertEqual(fig11.groups_of("6 forward and 4 backward microbatches together; W first",
                                         3), (6, 4))
        self.assertEqual(fig11.groups_of("a baseline as it is", 3), (3, 3))

    def test_table1_wants_no_row_faster_than_ours(self):
        def judged(theirs):
            return table1.verdicts(pd.DataFrame([
                {"cell": "FSDP16", "overlap": "zero3", "makespan_ms": theirs, "fits": True},
                {"cell": "FSDP16", "overlap": "centauri", "makespan_ms": 5.0, "fits": True}]))[0]
        self.assertEqual(judged(6.0).verdict, claims.HOLDS)
        self.assertEqual(judged(4.0).verdict, claims.FAILS)

    def test_table2_judges_what_has_a_root(self):
        def judged(scatter, roots):
            costs = {("reduce-scatter", 8): 10.0}
            return table2.verdicts(pd.DataFrame([
                table2.row_of(8, "reduce-scatter", "itself", True, 10.0, costs),
                table2.row_of(8, "reduce-scatter", "reduce + scatter", False, scatter, costs),
                table2.row_of(8, "reduce-scatter", "reduces of distinct roots", True, roots,
                              costs)]))
        doubled = judged(20.0, 10.0)
        self.assertEqual([one.verdict for one in doubled], [claims.HOLDS, claims.HOLDS])
        equal = judged(10.0, 10.0)
        self.assertEqual(verdict_of(equal, "centauri-reduce-scatter-doubles").verdict,
                         claims.FAILS)
        self.assertEqual(verdict_of(equal, "centauri-rooted").verdict, claims.PARTLY)


class Tuned(unittest.TestCase):
    def test_settings_are_all_combinations_after_the_defaults(self):
        self.assertEqual(tuned.settings({"a": ("1", "2"), "b": ("x",)}),
                         [(), ("a=1", "b=x"), ("a=2", "b=x")])

    def test_the_best_is_the_fastest_that_fits_where_any_does(self):
        def best(*fits):
            rows = [{"model": "small", "batch": 1, "setting": setting, "overlap": "zero3",
                     "makespan_ms": time, "gap": time, "fits": fit, "peak_gb": 1.0}
                    for setting, time, fit in zip((tuned.DEFAULT, "a", "b"), (3.0, 1.0, 2.0), fits)]
            return tuned.best_of(pd.DataFrame(rows)).iloc[0]
        self.assertEqual(best(True, False, True)["setting"], "b")
        self.assertEqual(best(False, False, False)["setting"], "a")
        self.assertEqual(best(True, True, True)["default_ms"], 3.0)


class Inputs(unittest.TestCase):
    def test_mlps_are_as_wide_as_their_model_says(self):
        self.assertEqual(inputs.wide(cells.Cell("centauri-fsdp")), ("model.intermediate=16384",))
        named = cells.Cell("centauri-fsdp", ("model.preset=llama-large",))
        self.assertEqual(inputs.wide(named), ("model.intermediate=32768",))
        self.assertEqual(inputs.wide(cells.Cell("centauri-scale")), ("model.intermediate=26624",))

    def test_cluster_b_is_not_over_pcie(self):
        self.assertEqual(inputs.over_pcie(cells.Cell("x", ("node.preset=centauri-b",))), ())
        self.assertEqual(inputs.over_pcie(cells.Cell("x")), ("node.internal=128Gbps",))

    def test_numbers_are_those_that_claims_are_about(self):
        for claim, ours, number in (
                ("centauri-largest-single", "1.77 times over zero3 (big), 1.75 over fsdp2", 1.77),
                ("centauri-largest-hybrid", "1.00 to 1.30 times over zero3, 1.06 over fsdp2", 1.3),
                ("centauri-small-batches", "at batch 1 1.76 to 1.77, above 1.08 to 1.77", 1.76),
                ("centauri-tp-pp-small", "TP 1.8 to 6.9% of the iteration, PP 0.4 to 1.5%", 6.9),
                ("centauri-memory-steps", "batch 1: 12 of 12; batch 4: 4 of 12, peak 29 GB", 4),
                ("centauri-scale-b", "centauri-rules over zero3 on B: 0.2% at 256 GPUs", 0.2),
                ("centauri-dp-memory", "26 of 32 cells of ddp and ooo do not fit", 26)):
            verdict = claims.judge(claim, claims.HOLDS, ours)
            self.assertEqual(inputs.number_of(verdict), number)


if __name__ == "__main__":
    unittest.main()
