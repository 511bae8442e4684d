"""Files that are made anew each time."""

import tempfile
import unittest
from pathlib import Path

from longhaul.replacing import replacing


class Replacing(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.file = self.directory / "a.csv"

    def test_a_new_file_takes_the_place_of_the_old_one(self):
        for text in ("one\n", "two\r\n"):
            with replacing(self.file) as file:
                file.write(text)
            self.assertEqual(text.encode(), self.file.read_bytes())
        self.assertEqual([self.file], list(self.directory.iterdir()))

    def test_a_link_is_not_followed(self):
        other = self.directory / "precious"
        other.write_text("work of a night")
        self.file.symlink_to(other)
        with replacing(self.file, "xb") as file:
            file.write(b"new")
        self.assertEqual("work of a night", other.read_text())
        self.assertFalse(self.file.is_symlink())

    def test_what_fails_leaves_the_old_file(self):
        self.file.write_text("old")
        with self.assertRaises(ZeroDivisionError), replacing(self.file) as file:
            file.write("half")
            1 / 0
        self.assertEqual("old", self.file.read_text())
        self.assertEqual([self.file], list(self.directory.iterdir()))


if __name__ == "__main__":
    unittest.main()
