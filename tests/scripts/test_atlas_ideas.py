"""atlas-ideas: the inputs of its comparison and how backward passes are split."""

import tempfile
import unittest
from pathlib import Path

import pandas as pd

from longhaul.figures.atlas import ideas as atlas_ideas, ideas_table as atlas_ideas_table


class Inputs(unittest.TestCase):
    def test_transfer_takes_so_many_forwards(self):
        for ratio in (3, 3.5, 4):
            settings = dict(pair.split("=") for pair in
                            atlas_ideas.Kind(True, True).overrides(ratio))
            forward = int(settings["costs.forward"].removesuffix("ns"))
            self.assertAlmostEqual(atlas_ideas.TRANSFER_NS / forward, ratio, places=6)

    def test_whole_backwards_gain_nothing_by_weights(self):
        settings = dict(pair.split("=") for pair in
                        atlas_ideas.Kind(False, False).overrides(4))
        self.assertEqual(settings["costs.dgrad"], settings["costs.backward"])
        self.assertEqual(settings["costs.wgrad"], "0ns")
        self.assertEqual(settings["memory.recompute"], "false")

    def test_varuna_fits_into_the_largest_budget(self):
        self.assertEqual(atlas_ideas.budgets(4), [1])
        self.assertEqual(atlas_ideas.budgets(16), [1, 4])

    def test_atlas_has_whole_backwards_alone(self):
        kinds = [kind for _, kind, row, _ in atlas_ideas.headings() if row == "atlas"]
        self.assertEqual(kinds, ["B, R", "B"])

    def test_split_one_f_one_b_is_zb_h1(self):
        self.assertEqual(dict(atlas_ideas.names_of(atlas_ideas.Kind(True, True)))["1f1b"], "zb-h1")


class SplitBackward(unittest.TestCase):
    def test_every_b_becomes_d_and_w(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "varuna.csv"
            file.write_text('# name = "1B2"\n0F0,0R0,0B0\n1F0,1B0,11B12\n')
            atlas_ideas.split_backward(file)
            self.assertEqual(file.read_text(), '# name = "1B2"\n0F0,0R0,0I0,0W0\n'
                                               '1F0,1I0,1W0,11I12,11W12\n')


class Gains(unittest.TestCase):
    def test_are_of_one_f_one_b_of_the_same_memory_policy(self):
        place = {"ratio": 3.0, "microbatches": 4, "latency_ms": 40, "budget": 1.0}
        rows = [{**place, "kind": kind, "row": row, "share": share, "over_budget": False,
                 "makespan_ns": {"1f1b": 400, "cross-ud": 300}.get(row, 500)
                 // (2 if share == "shared" else 1) + (200 if kind.endswith("R") else 0)}
                for _, kind, row, share in atlas_ideas.headings()]
        found = atlas_ideas_table.gains_of(pd.DataFrame(rows)).set_index(["ideas", "recompute"])
        gains = found["gain_percent"]
        self.assertAlmostEqual(gains["sharing", False], 50)
        self.assertAlmostEqual(gains["sharing", True], 33.33)
        self.assertAlmostEqual(gains["order (delay-aware)", False], 25)
        self.assertAlmostEqual(gains["all three, delay-aware", True], 41.67)
        self.assertLess(gains["order (searched)", False], 0)


if __name__ == "__main__":
    unittest.main()
