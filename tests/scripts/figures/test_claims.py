"""Verdicts: the thresholds, that they follow from the numbers, and what pages say of kept ones."""

import contextlib
import csv
import io
import re
import tempfile
import unittest
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from longhaul.commands import figure
from longhaul.drawing.figure import Drawn
from longhaul.errors import Failure
from longhaul.figures.crosspipe import (accuracy as crosspipe_accuracy, fig11 as crosspipe_fig11,
                                        table2 as crosspipe_table2, table5 as crosspipe_table5)
from longhaul.figures.crosspipe.fig15 import verdict as delay_accumulates
from longhaul.figures.crosspipe.runtimes import Lookup
from longhaul.papers import claims, expected, headline
from longhaul.papers.claims import FAILS, HOLDS, LARGER, NOT_JUDGED, PARTLY
from longhaul.running import tools

RESULTS = tools.ROOT / "results"
REFERENCE = RESULTS / "reference"
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in sorted(RESULTS.glob("*.md")))
FRONT = (tools.ROOT / "README.md").read_text(encoding="utf-8")


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
        for ours, verdict in ((300, LARGER), (126, LARGER), (125, HOLDS), (95, HOLDS),
                              (94, PARTLY), (50, PARTLY), (49, FAILS)):
            self.assertEqual(claims.at_least(ours, 100), verdict)


    def test_open_inputs(self):
        for found, verdict in (((120, 100), HOLDS), ((130, 200), LARGER), ((130, 100), PARTLY),
                               ((130, 10), PARTLY), ((10, 20), FAILS)):
            self.assertEqual(claims.over_inputs(found, lambda one: claims.at_least(one, 100)),
                             verdict, found)

    def test_a_word_that_is_no_verdict(self):
        with self.assertRaisesRegex(ValueError, "holds a bit"):
            claims.judge("crossings-fig6", "holds a bit", "8")


class AtTheirCells(unittest.TestCase):
    """A claim that names a cell is judged there, whatever the other cells say."""

    @staticmethod
    def table(at_named, elsewhere):
        """Static schedules take 100 s, CrossPipe's as much less as given, in percent."""
        rows = []
        for latency, transfer, gain in ((0, 2, at_named), (2, 0, elsewhere)):
            rows += [{"scenario": "m70-2dc", "latency_ratio": float(latency),
                      "transfer_ratio": float(transfer), "schedule": name, "comm": comm,
                      "predicted_s": seconds, "measured_min_s": float("nan"),
                      "difference_percent": float("nan")}
                     for name, comm, seconds in (("1f1b", "grouped", 100), ("zbv", "decoupled", 100),
                                                 ("1f1b", "decoupled", 100),
                                                 ("cross-ud", "decoupled", 100 - gain))]
        return pd.DataFrame(rows)

    def test_the_largest_of_all_cells_does_not_count(self):
        for named, elsewhere, verdict in ((33.6, 0, HOLDS), (20, 40, PARTLY), (5, 34, FAILS),
                                          (60, 0, LARGER)):
            found = {one.id: one for one in crosspipe_fig11.verdicts(self.table(named, elsewhere))}
            self.assertEqual(found["reduction-original"].verdict, verdict)
            self.assertTrue(found["reduction-original"].ours.startswith(f"{named:.1f}% (m70-2dc "
                                                                        "at (0, 2))"))

    def test_a_run_without_the_cell_judges_nothing(self):
        table = self.table(33.6, 33.6)
        self.assertEqual(crosspipe_fig11.verdicts(table[table["transfer_ratio"] == 0]), [])

    def test_cells_of_the_tables(self):
        for claim, delay in (("memory-and-batch", crosspipe_table5.BOTH),
                             ("four-dc-slowdown", crosspipe_table5.BOTH),
                             ("wave-hides-latency", crosspipe_table5.LATENCY)):
            cell = claims.cell(claim)
            self.assertEqual((float(cell["latency_ratio"]), float(cell["transfer_ratio"])), delay)

    def test_a_claim_whose_text_names_a_place_has_a_cell(self):
        for name, row in claims.published().items():
            if row["value"] and re.search(r"at \(\d|at \d+ (ms|GB/s)|T_bw = ", row["claim"]):
                with self.subTest(claim=name):
                    self.assertTrue(claims.cell(name) or name in self.ONE_PLACE)

    # Their figure has no other place.
    ONE_PLACE = ("atlas-activation-time",)


class Accuracy(unittest.TestCase):
    def judged(self, blocks, network, off=(1.0, 1.5, 9.0)):
        table = pd.DataFrame({"off": off, "blocks": blocks, "network": network})
        return crosspipe_accuracy.judge(table, "off")[0]

    def test_sleeping_blocks_over_emulated_links_judge_nothing(self):
        one = self.judged("timed", "emulated")
        self.assertEqual(one.verdict, NOT_JUDGED)
        self.assertIn("2 of 3 within 2%, largest +9.0%", one.ours)
        old = pd.DataFrame({"off": [1.0]})
        self.assertEqual(crosspipe_accuracy.judge(old, "off")[0].verdict, NOT_JUDGED)

    def test_real_blocks_or_a_network_as_it_is(self):
        self.assertEqual(self.judged("real", "emulated").verdict, HOLDS)
        self.assertEqual(self.judged("timed", "as it is").verdict, HOLDS)
        one = self.judged(["timed", "timed", "real"], "emulated")
        self.assertEqual((one.verdict, one.ours), (FAILS, "0 of 1 within 2%, largest +9.0%"))

    def test_nothing_measured(self):
        self.assertEqual(crosspipe_accuracy.judge(
            pd.DataFrame({"off": [float("nan")]}), "off"), [])


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

    def test_with_the_runs_that_were_measured(self):
        one = claims.judge("crossings-fig6", FAILS, "7", "")
        numbers = pd.DataFrame({
            "measured_s": [1.0, 2.0, 3.0, None], "commit": ["c0ffee1", "c0ffee1", "beef002", "0ld"],
            "command": ["bench a", "bench b", "bench a", "longhaul simulate"]})
        with tempfile.TemporaryDirectory() as directory:
            with contextlib.redirect_stdout(io.StringIO()):
                figure.save(Drawn("x-measured", plt.figure(), numbers, [one]), directory)
            row = pd.read_csv(Path(directory) / "x-measured-verdicts.csv").loc[0]
            self.assertIn("| 7 | does not hold |", claims.gathered(directory))
            kept = expected.judge_verdicts("x-measured", Path(directory), Path(directory))
        self.assertEqual(list(row.index), [*claims.FIELDS, "command", "commit"])
        self.assertEqual(row["command"], "bench a; bench b")
        self.assertEqual(row["commit"], "c0ffee1; beef002")
        self.assertEqual([one.outcome for one in kept], [expected.AS_KNOWN])

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
        self.assertEqual(lines[-1], "2 verdicts: 1 holds here, 0 larger here, 0 holds partly, 1 does not "
                         "hold, 0 not judged.")



class KeptVerdicts(unittest.TestCase):
    def test_the_page_has_the_kept_ones(self):
        lines = PAGE.splitlines()
        found = []
        for file in sorted(REFERENCE.glob("*-verdicts.csv")):
            if "-measured-" in file.name:
                continue
            for row in pd.read_csv(file, dtype=str, keep_default_na=False).itertuples():
                figure = file.name.removesuffix("-verdicts.csv")
                line = "| " + " | ".join((row.section, row.claim, row.theirs, row.ours, row.verdict,
                                          figure)) + " |"
                self.assertIn(line, lines)
                found.append((figure.split("-")[0], row.verdict))
        for paper in ("crosspipe", "atlas", "stella"):
            own = [verdict for name, verdict in found if name == paper]
            total = ", ".join(f"{own.count(name)} {name}" for name in claims.VERDICTS)
            self.assertIn(f"{len(own)} verdicts: {total}.", lines)


class Headline(unittest.TestCase):
    """The three kinds of evidence lead both pages, with the numbers of the kept files."""

    def test_pages_have_the_numbers_of_the_files(self):
        words = [("sleeping", "emulated"), ("real layers", "emulated"), ("sleeping", "real TCP")]
        for line, (blocks, links) in zip(headline.lines(), words, strict=True):
            median = f"{line.off.abs().median():.1f}%"
            self.assertIn(f"| {blocks} | {links} | {line.range} | {median} | {len(line.off)} | ",
                          PAGE)
            self.assertIn(f"- **{line.ran}: {line.range}** ({len(line.off)} ", FRONT)

    def test_they_come_first(self):
        self.assertLess(FRONT.index("## Is the number true?"), FRONT.index("## Two commands"))
        self.assertLess(PAGE.index("| sleeping | emulated |"), PAGE.index("Check column `ok`"))

    def test_second_runs_do_not_count(self):
        for table in (5, 6):
            name = f"crosspipe-table{table}-measured"
            self.assertEqual(len(headline.first_runs(name, headline.SLEEPING[name])), 40)


class Calibration(unittest.TestCase):
    def test_the_page_counts_only_cells_that_gave_no_time(self):
        table = pd.read_csv(REFERENCE / "crosspipe-static-simulated.csv")
        own = table[table["used_for"] == "reading"].groupby("comm")["deviation_percent"]
        off = own.apply(lambda column: column.abs().max())
        self.assertEqual(own.size()["grouped"], 58)
        said = " ".join(PAGE.split())
        self.assertIn("Of the 58 cells that no block time was solved from, receives that are posted "
                      f"late are within {off['grouped']:.1f}%, decoupled communication within "
                      f"{off['decoupled']:.1f}%.", said)

if __name__ == "__main__":
    unittest.main()
