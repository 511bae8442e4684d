"""The recipes of CONTRIBUTING.md name what is there: every path and every test on the page exists in
the checkout."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
PLACES = r"(?:src|tests|docs|benchmarks|scripts|cmake|results|\.ci)/[\w.\-/]*[\w/]"
TO_MAKE = re.compile(r"NAME|FOLDER")  # what the reader is about to add


def paths(text):
    """Of the checkout, in the order of the text; of a build's output none."""
    return [path for path in re.findall(rf"(?<![\w./-]){PLACES}", text)
            if not TO_MAKE.search(path)]


def links(text):
    return [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in link]


class Contributing(unittest.TestCase):
    def setUp(self):
        self.text = PAGE.read_text(encoding="utf-8")

    def test_every_path_is_there(self):
        found = paths(self.text) + links(self.text)
        self.assertGreater(len(found), 40)
        self.assertEqual([], sorted({path for path in found if not (ROOT / path).exists()}))

    def test_every_named_test_is_there(self):
        """`Suite.Name` of a GoogleTest and `test_name` of Python's."""
        cpp = "\n".join(file.read_text(encoding="utf-8") for suffix in ("cpp", "inc")
                        for file in (ROOT / "tests").rglob(f"*.{suffix}"))
        for suite, name in re.findall(r"`([A-Z]\w+)\.([A-Z]\w+)`", self.text):
            self.assertRegex(cpp, rf"\({suite}, {name}\)")
        python = "\n".join(file.read_text(encoding="utf-8")
                           for file in (ROOT / "tests" / "scripts").glob("test_*.py"))
        for name in re.findall(r"`(test_\w+)`", self.text):
            module = (ROOT / "tests" / "scripts" / f"{name}.py").is_file()
            self.assertTrue(module or f"def {name}(" in python, name)

    def test_there_are_six_recipes(self):
        headings = re.findall(r"^## (An? \w.*)$", self.text, re.M)
        self.assertEqual(["A generator", "A scenario key", "A figure", "A benchmark",
                          "A transport", "A collective"], headings)

    def test_prose_keeps_to_120_columns(self):
        self.assertEqual([], [line for line in self.text.splitlines()
                              if len(line) > 120 and not line.startswith("|")])


class Paths(unittest.TestCase):
    def test_are_found_in_text_and_commands(self):
        self.assertEqual(["src/a/b.cpp", "scripts/x", ".ci/run"],
                         paths("`src/a/b.cpp`: see scripts/x, or .ci/run. build/src/c.hpp, "
                               "`src/x/NAME.cpp`"))
        self.assertEqual(["docs/a.md"], links("[a](docs/a.md#b), [c](https://d.example/e)"))


if __name__ == "__main__":
    unittest.main()
