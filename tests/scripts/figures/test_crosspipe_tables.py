"""Published numbers against simulated ones; the simulator is a fake, see fakes.LONGHAUL."""

import collections
import contextlib
import csv
import io
import tempfile
import unittest
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import fakes
from longhaul.commands import compare_crosspipe
from longhaul.errors import Failure
from longhaul.errors import guarded
from longhaul.figures.crosspipe import fig14
from longhaul.figures.crosspipe import static as crosspipe_static, tables as crosspipe_tables
from longhaul.papers.claims import FAILS, HOLDS, PARTLY


class Tables(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.bin = fakes.install(self, self.directory)

    def test_published_rows_are_the_static_ones(self):
        for table in (5, 6):
            rows = crosspipe_tables.published(table)
            self.assertEqual(len(rows), 3 * 2 * 5)
            self.assertEqual({row["case"] for row in rows}, {"1", "2"})
            self.assertEqual({row["schedule"] for row in rows}, {"1F1B", "ZBH1", "ZBV"})
        first = crosspipe_tables.published(5)[0]
        self.assertEqual((first["schedule"], first["seconds_per_microbatch"]), ("1F1B", "0.151"))

    def test_every_cell_in_both_arrangements(self):
        cells = crosspipe_tables.compare()
        self.assertEqual(len(cells), 2 * 2 * 5 * 3 * 2)
        self.assertEqual(set(cells[0]), set(crosspipe_tables.FIELDS))
        found = {tuple(cell[name] for name in crosspipe_tables.FIELDS[:6]): cell for cell in cells}
        self.assertEqual(len(found), len(cells))
        for key, simulated in (
                ((5, "1", "0", "0", "1F1B", "decoupled"), 0.1000),
                ((5, "1", "0", "0", "ZBV", "grouped"), 0.1205),
                ((6, "1", "2", "0.25", "ZBH1", "decoupled"), 0.11225),
                ((6, "2", "2", "2", "1F1B", "grouped"), 0.1245)):
            cell = found[key]
            self.assertAlmostEqual(float(cell["simulated_s_per_microbatch"]), simulated, delta=6e-5)
            off = 100 * (simulated / cell["published_s_per_microbatch"] - 1)
            self.assertAlmostEqual(float(cell["deviation_percent"]), off, delta=0.06)

    def test_each_point_is_simulated_once_with_its_case(self):
        crosspipe_tables.compare()
        calls = fakes.calls(self.bin)
        self.assertEqual(len(calls), 2 * 2 * 5 * 2)
        self.assertEqual(len(set(calls)), len(calls))
        recomputed = [call for call in calls if "memory.recompute=true" in call]
        self.assertEqual(len(recomputed), len(calls) // 2)
        for call in recomputed:
            self.assertIn("parallel.microbatches=32", call)
        self.assertEqual(sum("m70-4dc.toml" in call for call in calls), len(calls) // 2)

    def test_summary_has_the_mean_and_the_largest(self):
        cells = [{"table": 5, "used_for": "reading", "comm": comm, "schedule": schedule,
                  "deviation_percent": off}
                 for comm in crosspipe_tables.ARRANGEMENTS
                 for schedule in crosspipe_tables.SCHEDULES for off in ("-6.0", "+2.0")]
        lines = crosspipe_tables.summary(cells).splitlines()
        self.assertEqual(len(lines), 1 + 2 * 3 + 3)
        self.assertEqual(lines[1].split(), ["decoupled", "1F1B", "2", "-2.0", "-6.0"])

    def test_cells_that_block_times_were_solved_from_do_not_count(self):
        def cell(table, comm, off, used="reading"):
            return {"table": table, "comm": comm, "schedule": "1F1B", "deviation_percent": off,
                    "used_for": used}
        cells = [cell(5, "grouped", "-90", "B"), cell(5, "grouped", "-5"), cell(6, "grouped", "+6"),
                 cell(5, "decoupled", "80", "R"), cell(5, "decoupled", "8"),
                 cell(6, "decoupled", "30")]
        said = " ".join(crosspipe_tables.calibration(cells))
        self.assertIn("Of the 2 cells that no block time was solved from, grouped is within 6.0%, "
                      "decoupled within 30.0%: a fit", said)
        self.assertIn("by table 5 alone it is grouped too, and then within 6.0% of table 6", said)
        self.assertIn("B from table 5, case 1, (0, 0), 1F1B; R from table 5, case 2, (0, 0)", said)

    def test_every_static_cell_was_used(self):
        counts = collections.Counter(cell["used_for"] for cell in crosspipe_tables.compare())
        self.assertEqual(counts, {"B": 2, "R": 2, "reading": 116})  # in both arrangements

    def test_the_command_writes_a_file_once(self):
        out = self.directory / "cells.csv"
        for expected in (0, 2):
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = guarded(lambda: compare_crosspipe.main(["--out", str(out)]), "compare")
            self.assertEqual(code, expected, said.getvalue())
        self.assertIn("never overwritten", said.getvalue())
        with out.open(newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 120)

    def test_a_simulator_that_fails(self):
        (self.bin / "longhaul").write_text("#!/bin/sh\necho boom >&2\nexit 3\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = guarded(lambda: compare_crosspipe.main([]), "compare")
        self.assertEqual(code, 3)
        self.assertIn("boom", said.getvalue())

    def test_the_figure_has_a_bar_a_cell(self):
        drawn = crosspipe_static.draw(None)[0]
        self.assertEqual(len(drawn.numbers), 120)
        self.assertEqual(len(drawn.figure.axes), 3)
        for axes, name in zip(drawn.figure.axes, crosspipe_tables.SCHEDULES):
            heights = sorted(bar.get_height() for bar in axes.patches)
            numbers = drawn.numbers[drawn.numbers["schedule"] == name]["deviation_percent"]
            self.assertEqual(heights, sorted(numbers))
            self.assertIn(name, axes.get_title(loc="left"))


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
