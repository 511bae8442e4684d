"""Arithmetic of BubbleTea's figures."""

import unittest

from longhaul.figures.bubbletea import fig13, fig14
from longhaul.papers import claims, prefill_times


class Figure14(unittest.TestCase):
    def test_stages_follow_each_other(self):
        self.assertAlmostEqual(fig14.ttft_ms(80, 8, 1), 80 + 16)
        # Two chunks: the second leaves the last stage half a stage after the first.
        self.assertAlmostEqual(fig14.ttft_ms(80, 8, 2), 10 * 8 / 2 + 5 + 16)

    def test_the_two_claims_need_two_readings(self):
        said = {one.id: one for one in fig14.verdicts(fig14.numbers())}
        self.assertEqual(said["bubbletea-pp8-short-ms"].verdict, claims.HOLDS)
        self.assertEqual(said["bubbletea-pp1-long"].verdict, claims.FAILS)
        self.assertIn("2 chunks", said["bubbletea-pp1-long"].why)


class Figure13(unittest.TestCase):
    def test_blocks_follow_each_other_between_bubbles(self):
        ops = [{"op": i, "kind": kind, "duration_ns": 10} for i, kind in enumerate("FFB")]
        rows = fig13.blocks(3, ops, [{"before_op": 2, "end_ns": 50}], 60)
        self.assertEqual([row["start_ns"] for row in rows], [0, 10, 50])
        # A bubble around the iteration's end delays the first block.
        rows = fig13.blocks(3, ops, [{"before_op": 0, "end_ns": 65}], 60)
        self.assertEqual([row["start_ns"] for row in rows], [5, 15, 25])


class PrefillTimes(unittest.TestCase):
    def test_linear_between_neighbours(self):
        points = [(10, 2.0), (20, 4.0), (40, 12.0)]
        self.assertEqual(prefill_times.predict(points, 5), 2.0)
        self.assertEqual(prefill_times.predict(points, 30), 8.0)
        self.assertAlmostEqual(prefill_times.leave_one_out(points)[0], (2 + 10 / 3) / 4 - 1)
        with self.assertRaises(ValueError):
            prefill_times.predict(points, 41)


if __name__ == "__main__":
    unittest.main()
