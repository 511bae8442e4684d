"""One place for each fact of a figure: its module. The list knows every module, and the page of
figures agrees with them."""

import unittest

from longhaul.commands import figures_page
from longhaul.figures import registry
from longhaul.papers import claims
from longhaul.running import tools

FOLDER = tools.ROOT / "src" / "python" / "longhaul" / "figures"


def modules_with_figures():
    return {f"{file.parent.name}.{file.stem}" for file in FOLDER.glob("*/*.py")
            if "\nFIGURE = Figure(" in file.read_text(encoding="utf-8")}


class Registry(unittest.TestCase):
    def test_every_figure_is_listed_once(self):
        self.assertEqual(sorted(registry.LISTED), sorted(modules_with_figures()))
        self.assertEqual(len(registry.FIGURES), len(registry.LISTED))  # no name twice

    def test_each_says_what_it_is(self):
        for module in registry.MODULES:
            figure = module.FIGURE
            with self.subTest(figure=figure.name):
                self.assertTrue(figure.summary and figure.shows and figure.needs)
                self.assertTrue(callable(module.add_arguments) and callable(module.draw))
                self.assertTrue(figure.repeat or not figure.expected)
                if figure.repeat:
                    self.assertTrue(list(figure.repeat.parts()))

    def test_papers_have_their_claims(self):
        self.assertEqual(set(registry.PAPERS), {*claims.PAPERS, registry.OWN})
        for paper in claims.PAPERS:
            self.assertTrue((tools.ROOT / "results/papers" / f"{paper}-claims.csv").is_file())
        known = claims.published()
        for module in registry.MODULES:
            for one in module.FIGURE.expected:
                if one.file == "-verdicts":
                    self.assertIn(one.where.removeprefix("id="), known)

    def test_the_pages_that_are_written_are_of_today(self):
        for place in figures_page.PAGES:
            page = (tools.ROOT / place).read_text(encoding="utf-8")
            self.assertEqual(page, figures_page.with_parts(page, place),
                             "run: PYTHONPATH=src/python .venv/bin/python -m "
                             "longhaul.commands.figures_page")

    def test_a_claim_counts_by_what_speaks_most_against_it(self):
        self.assertIsNone(claims.verdict_of([]))
        for expected, verdicts in (
                ((False, claims.PARTLY), [(False, claims.HOLDS), (False, claims.PARTLY)]),
                ((True, claims.HOLDS), [(False, claims.FAILS), (True, claims.HOLDS)]),
                ((False, claims.FAILS), [(False, claims.FAILS), (True, claims.NOT_JUDGED)]),
                ((False, claims.NOT_JUDGED), [(False, claims.NOT_JUDGED)])):
            self.assertEqual(claims.verdict_of(verdicts), expected)

    def test_every_figure_is_explained(self):
        """By a section of docs/figures.md, or by the page that its line names."""
        page = (tools.ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
        headings = {name.strip() for line in page.split("\n") if line.startswith("## ")
                    for name in line[3:].split(",")}
        for name, module in registry.FIGURES.items():
            self.assertTrue(name in headings or ".md" in module.FIGURE.shows, name)


if __name__ == "__main__":
    unittest.main()
