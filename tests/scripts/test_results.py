"""Of the files that results/ keeps: what its pages say of them."""

import unittest

import pandas as pd

from longhaul.papers import claims, headline
from longhaul.running import tools

RESULTS = tools.ROOT / "results"
REFERENCE = RESULTS / "reference"
PAGE = (RESULTS / "README.md").read_text(encoding="utf-8")
FRONT = (tools.ROOT / "README.md").read_text(encoding="utf-8")


class Verdicts(unittest.TestCase):
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
        for paper in ("crosspipe", "atlas"):
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
