"""atlas-ideas: the inputs of its comparison and how backward passes are split."""

import tempfile
import unittest
from pathlib import Path

from longhaul.figures import atlas_ideas


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

    def test_varuna_needs_recomputation(self):
        rows = [row for row, _ in atlas_ideas.names_of(atlas_ideas.Kind(False, False))]
        self.assertNotIn("varuna", rows)

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


if __name__ == "__main__":
    unittest.main()
