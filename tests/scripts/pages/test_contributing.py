"""Pages name what is there: every path and test of CONTRIBUTING.md, every source file of the others."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
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
                           for file in (ROOT / "tests" / "scripts").rglob("test_*.py"))
        for name in re.findall(r"`(test_\w+)`", self.text):
            module = any((ROOT / "tests" / "scripts").rglob(f"{name}.py"))
            self.assertTrue(module or f"def {name}(" in python, name)

    def test_there_are_six_recipes(self):
        headings = re.findall(r"^## (An? \w.*)$", self.text, re.M)
        self.assertEqual(["A generator", "A scenario key", "A figure", "A benchmark",
                          "A transport", "A collective"], headings)


class AllPages(unittest.TestCase):
    """Every page of the repository."""

    def test_files_in_backquotes_are_there(self):
        known = tracked_files()
        ends = {"/".join(file.split("/")[at:]) for file in known for at in range(file.count("/") + 1)}
        wrong = [f"{page}: {name}" for page in pages() for name in file_names(text_of(page))
                 if name.removeprefix("include/") not in ends]  # as installed
        self.assertEqual([], wrong)

    def test_names_of_files_are_found(self):
        self.assertEqual(["a/b.hpp", "a/b.cpp", "c.py"],
                         file_names("`a/b.{hpp,cpp}`, `c.py`, `record.json`, `bench_NAME.cpp`, `*.cu`"))

    def test_prose_keeps_to_120_columns(self):
        long = [f"{page}: {line}" for page in pages() for line in prose(text_of(page))
                if len(line) > 120]
        self.assertEqual([], long)


def tracked_files():
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files",
                             "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    return [file for file in listed.splitlines() if (ROOT / file).is_file()]


def pages():
    return [file for file in tracked_files() if file.endswith(".md")]


def text_of(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    # The glossary's table of old names has names that are no more.
    return text.split("## Names that changed")[0] if page.endswith("glossary.md") else text


def file_names(text):
    """Names of source files in backquotes, `a.{hpp,cpp}` as two; patterns and stand-ins left out."""
    found = []
    for word in re.findall(r"`([\w./{},-]+)`", text):
        braces = re.search(r"\{([\w,]+)\}", word)
        for each in braces[1].split(",") if braces else [""]:
            name = word.replace(braces[0], each) if braces else word
            if re.search(r"\w\.(hpp|cpp|cu|cuh|py|cmake)$", name) and "NAME" not in name:
                found.append(name)
    return found


def prose(text):
    """Lines outside of code blocks, tables, headings and pictures."""
    blocks = re.split(r"^ *```.*$", text, flags=re.M)
    return [line for block in blocks[::2] for line in block.splitlines()
            if not re.match(r" *[|#]|!\[", line)]


class Paths(unittest.TestCase):
    def test_are_found_in_text_and_commands(self):
        self.assertEqual(["src/a/b.cpp", "scripts/x", ".ci/run"],
                         paths("`src/a/b.cpp`: see scripts/x, or .ci/run. build/src/c.hpp, "
                               "`src/x/NAME.cpp`"))
        self.assertEqual(["docs/a.md"], links("[a](docs/a.md#b), [c](https://d.example/e)"))


if __name__ == "__main__":
    unittest.main()
