"""Folders of the package use each other in one direction only, and hold at most 30 files."""

import ast
import unittest
from pathlib import Path

import longhaul

PACKAGE = Path(longhaul.__file__).parent
# Each may use those before it.
ORDER = ("", "solver", "running", "drawing", "papers", "figures/runs", "figures/crosspipe",
         "figures/atlas", "figures/bubbletea", "figures/centauri", "figures/vtrain", "figures/stella",
         "figures/advice", "figures", "reproducing", "commands")
MOST_FILES = 30


def folder_of(path):
    folder = path.parent.relative_to(PACKAGE).as_posix()
    return "" if folder == "." else folder


def used_by(path):
    """Folders of the package whose modules a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "longhaul":
            continue
        names = node.module.split(".")[1:]
        for alias in node.names:
            last = PACKAGE.joinpath(*names, f"{alias.name}.py")
            module = last if last.is_file() else PACKAGE.joinpath(*names).with_suffix(".py")
            yield folder_of(module)


class Folders(unittest.TestCase):
    def test_arrows_point_down(self):
        for path in PACKAGE.rglob("*.py"):
            mine = folder_of(path)
            for other in used_by(path):
                with self.subTest(file=str(path.relative_to(PACKAGE)), uses=other):
                    self.assertLessEqual(ORDER.index(other), ORDER.index(mine))

    def test_folders_can_be_read(self):
        for folder in ORDER:
            self.assertLessEqual(len(list((PACKAGE / folder).glob("*.py"))), MOST_FILES, folder)


if __name__ == "__main__":
    unittest.main()
