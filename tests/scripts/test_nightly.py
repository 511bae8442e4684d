"""What runs by night: every program of it can be started, and is a part of scripts/nightly."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from longhaul.running import tools

NIGHTLY = tools.ROOT / "scripts" / "nightly"
PROGRAMS = sorted(file for file in (tools.ROOT / "tests" / "nightly").iterdir()
                  if file.is_file() and os.access(file, os.X_OK))


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


class Nightly(unittest.TestCase):
    def test_every_program_says_what_it_does(self):
        self.assertGreater(len(PROGRAMS), 4)
        for file in PROGRAMS:
            with self.subTest(program=file.name):
                said = run(file, "--help")
                self.assertEqual(said.returncode, 0, said.stderr)
                self.assertIn("sage:", said.stdout)

    def test_every_program_is_a_part(self):
        parts = [line.split()[0] for line in run(NIGHTLY, "--list").stdout.splitlines()]
        self.assertEqual(len(set(parts)), len(parts))
        for file in PROGRAMS:
            self.assertTrue(any(part.split("-")[0] == file.name for part in parts), file.name)

    def test_slips(self):
        for words, text in ((["lunch"], "no part 'lunch'"), (["--minutes", "soon"], "'soon' is no number"),
                            (["--out"], "--out wants a value"), (["--parts"], "unknown option '--parts'")):
            said = run(NIGHTLY, *words)
            self.assertEqual(said.returncode, 2)
            self.assertIn(text, said.stderr)

    def test_results_of_another_commit_are_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "commit").write_text("0123456\n")
            said = run(NIGHTLY, "--out", directory, "relays")
            self.assertEqual(said.returncode, 2)
            self.assertIn("is of commit 0123456", said.stderr)


if __name__ == "__main__":
    unittest.main()
