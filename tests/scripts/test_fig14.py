"""Figure 14: its verdicts on synthetic runs, and the options that it refuses."""

import unittest

import matplotlib.pyplot as plt
import pandas as pd

from longhaul.errors import Failure
from longhaul.figures.crosspipe import fig14
from longhaul.papers.claims import FAILS, HOLDS, PARTLY


class Options:
    latency = 1
    time_limit = 4


def table(constraints, program):
    """Per method and size: (seconds, solved, [(seconds, makespan)])."""
    rows = []
    for method, runs in ((fig14.CONSTRAINTS, constraints), (fig14.PROGRAM, program),
                         (fig14.STARTED, {n: (1, True, [(1, 100)]) for n in constraints}),
                         (fig14.SEARCH, {n: (1, True, [(1, 100)]) for n in constraints})):
        for stages, (seconds, solved, improvements) in runs.items():
            objective = improvements[-1][1] if improvements else float("nan")
            rows += fig14.rows_of(method, stages, {
                "seconds": seconds, "solved": solved, "objective": objective, "bound": 90,
                "improvements": improvements})
    return pd.DataFrame(rows)


class Verdicts(unittest.TestCase):
    def verdicts(self, constraints, program):
        return [one.verdict for one in fig14.verdicts(table(constraints, program))]

    def test_both_claims_hold(self):
        self.assertEqual(self.verdicts(
            {2: (1, True, [(.1, 100)]), 4: (4, True, [(.1, 150), (1, 104)])},
            {2: (2, True, [(2, 100)]), 4: (4, False, [])}), [HOLDS, HOLDS])

    def test_late_is_not_early_and_slower_does_not_scale(self):
        self.assertEqual(self.verdicts(
            {2: (2, True, [(1.9, 100)]), 4: (4, False, [])},
            {2: (1, True, [(1, 100)]), 4: (4, True, [(2, 100)])}), [FAILS, FAILS])

    def test_sooner_but_no_further_is_partly(self):
        self.assertEqual(self.verdicts(
            {2: (1, True, [(.1, 100)]), 4: (4, False, [])},
            {2: (2, True, [(2, 100)]), 4: (4, False, [])}), [PARTLY, PARTLY])

    def test_a_bad_schedule_is_not_a_good_one(self):
        rows = table({2: (4, False, [(.1, 106)])}, {2: (4, False, [])})
        ends = rows[rows["event"] != "improved"].set_index(["method", "stages"])
        self.assertIsNone(fig14.share_before_good(rows, ends, 2))

    def test_the_picture_shows_all_methods(self):
        rows = table({2: (1, True, [(.1, 100)])}, {2: (4, False, [])})
        figure = fig14.figure_of(rows, [2], Options)
        labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        self.assertEqual(labels, list(fig14.LOOKS))
        plt.close(figure)


class Sizes(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual(fig14.parse_sizes("2,16"), [2, 16])
        for text in ("", "1", "two", "2,,4"):
            with self.assertRaisesRegex(Failure, "Write 2,4,8"):
                fig14.parse_sizes(text)


if __name__ == "__main__":
    unittest.main()
