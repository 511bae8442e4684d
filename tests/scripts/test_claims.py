"""Verdicts: the thresholds, and that they follow from the numbers."""

import contextlib
import csv
import io
import tempfile
import unittest
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from longhaul.commands import figure
from longhaul.drawing.figure import Drawn
from longhaul.errors import Failure
from longhaul.figures.crosspipe import table2 as crosspipe_table2, table5 as crosspipe_table5
from longhaul.figures.crosspipe.fig15 import verdict as delay_accumulates
from longhaul.figures.crosspipe.runtimes import Lookup
from longhaul.papers import claims
from longhaul.papers.claims import FAILS, HOLDS, PARTLY
from longhaul.running import tools


class Thresholds(unittest.TestCase):
    def test_counts(self):
        for agree, total, verdict in ((4, 4, HOLDS), (2, 4, PARTLY), (1, 4, FAILS), (0, 0, FAILS)):
            self.assertEqual(claims.by_count(agree, total), verdict)
        for agree, total, verdict in ((6, 9, HOLDS), (5, 9, PARTLY), (3, 9, PARTLY), (2, 9, FAILS),
                                      (0, 0, FAILS)):
            self.assertEqual(claims.mostly(agree, total), verdict)

    def test_numbers(self):
        for ours, verdict in ((96, HOLDS), (104, HOLDS), (80, PARTLY), (124, PARTLY), (126, FAILS)):
            self.assertEqual(claims.within(ours, 100), verdict)
        for ours, verdict in ((300, HOLDS), (95, HOLDS), (94, PARTLY), (50, PARTLY), (49, FAILS)):
            self.assertEqual(claims.at_least(ours, 100), verdict)


class Published(unittest.TestCase):
    def test_ids_are_unique_and_rows_whole(self):
        path = tools.ROOT / "results" / "papers" / "crosspipe-claims.csv"
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        for row in rows:
            self.assertTrue(row["section"] and row["claim"], row)
        self.assertEqual(claims.value("pp-over-dp"), 3.05)

    def test_text_names_ours_and_theirs(self):
        text = claims.text([claims.judge("crossings-fig6", HOLDS, "7", "Because.")])
        self.assertIn("holds here: the critical path of 1F1B", text)
        self.assertIn("ours 7; theirs 8. Because.", text)


class Verdicts(unittest.TestCase):
    """The same code judges numbers for and against a claim."""

    def test_delay_that_is_paid_twice_does_not_accumulate(self):
        self.assertEqual(delay_accumulates({"a": 20, "b": 9}).verdict, HOLDS)
        self.assertEqual(delay_accumulates({"a": 20, "b": 2}).verdict, PARTLY)
        self.assertEqual(delay_accumulates({"a": 2, "b": 2}).verdict, FAILS)

    @staticmethod
    def seconds(wave):
        rows = [{"case": case, "latency_ratio": 2.0 * (case == 3),
                 "transfer_ratio": .25 * (case == 3), "schedule": name, "comm": "decoupled",
                 "predicted_s": value, "measured_min_s": measured}
                for case, name, value, measured in ((1, "zbv", .118, float("nan")),
                                                    (3, "best", .1, float("nan")),
                                                    (3, "cross-wave", .5, wave))]
        return Lookup(pd.DataFrame(rows))

    def test_measured_numbers_come_first(self):
        for wave, verdict in ((.115, HOLDS), (.125, PARTLY), (.2, FAILS)):
            found = crosspipe_table5.wave_hides_latency(self.seconds(wave))
            self.assertEqual(found.verdict, verdict)
            self.assertIn(f"{wave:.4f}", found.ours)
            self.assertEqual(found.theirs, "0.115, 0.118")

    def test_table2(self):
        table = pd.read_csv(crosspipe_table2.PUBLISHED, comment="#")
        for parameters, verdict in ((405.9e9, HOLDS), (480e9, PARTLY), (800e9, FAILS)):
            ours = crosspipe_table2.compare(table, {"llama3-405b": (16384, parameters)})
            found = {one.id: one for one in crosspipe_table2.verdicts(ours)}
            self.assertEqual(found["volume-ratio-llama"].verdict, verdict)
            self.assertEqual(found["volume-ratio-deepseek"].ours, "182.3")


class Saved(unittest.TestCase):
    def test_beside_the_picture(self):
        one = claims.judge("crossings-fig6", FAILS, "7", "")
        with tempfile.TemporaryDirectory() as directory:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                figure.save(Drawn("x", plt.figure(), pd.DataFrame({"a": [1]}), [one]), directory)
            rows = pd.read_csv(Path(directory) / "x-verdicts.csv")
        self.assertEqual(list(rows.columns), claims.FIELDS)
        self.assertEqual(rows.loc[0, "verdict"], FAILS)
        self.assertIn("x-verdicts.csv", said.getvalue())

    def test_gathered_for_a_document(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(Failure, "no .-verdicts.csv"):
                claims.gathered(directory)
            for stem, one in (("b", claims.judge("traversal-crossings", HOLDS, "6, 4, 2")),
                              ("a", claims.judge("delay-accumulates", FAILS, "nothing"))):
                claims.table([one]).to_csv(Path(directory) / f"{stem}-verdicts.csv", index=False)
            lines = claims.gathered(directory).splitlines()
        self.assertIn("| 6, 4, 2 | holds here | b |", lines[2])
        self.assertIn("does not hold | a |", lines[3])
        self.assertEqual(lines[-1], "2 verdicts: 1 holds here, 0 holds partly, 1 does not hold.")


if __name__ == "__main__":
    unittest.main()
