"""What scripts/test says of tests that did not run, from the files of a run of ctest."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from longhaul.commands import skips
from longhaul.commands.skips import Skip
from longhaul.running import tools

ALLOWED = tools.ROOT / "tests" / "skips-allowed"
NO_GPU = "x_test.cpp:3: Skipped\nno driver: libcuda.so.1 cannot be loaded\n\n[  SKIPPED ] X.Y (0 ms)\n"
RAN, NOT = "run", "notrun"


class Skips(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def judged(self, *tests, allowed=None):
        """(exit code, what it said) of (name, labels, status or None: not asked for, output)."""
        cases = "".join(
            f'<testcase name={quoteattr(name)} status="{status}">'
            + ('<skipped message="SKIP"/>' if status == NOT else "")
            + f"<system-out>{escape(output)}</system-out></testcase>"
            for name, _, status, output in tests if status)
        junit, listing = self.directory / "ran.xml", self.directory / "all.json"
        junit.write_text(f'<?xml version="1.0"?><testsuite name="(empty)">{cases}</testsuite>')
        listing.write_text(json.dumps({"tests": [
            {"name": name, "properties": [{"name": "LABELS", "value": labels.split()}]}
            for name, labels, _, _ in tests]}))
        file = ALLOWED
        if allowed is not None:
            file = self.directory / "allowed"
            file.write_text(allowed)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = skips.main(junit, listing, file)
        return code, said.getvalue()

    def line(self, said, label):
        return next(line.split(maxsplit=4) for line in said.splitlines()
                    if line.split()[:1] == [label])

    def test_labels_that_did_not_run_and_why(self):
        code, said = self.judged(("base.A", "pure", RAN, ""), ("base.B", "pure", None, ""),
                                 ("gpu.X", "gpu", NOT, NO_GPU), ("gpu.Y", "gpu", NOT, NO_GPU),
                                 ("slurm.jobs", "slurm", NOT, "skipped: needs root: for x\n"))
        self.assertEqual(code, 0, said)
        self.assertEqual(self.line(said, "pure"), ["pure", "2", "1", "0", "1 not asked for"])
        self.assertEqual(self.line(said, "gpu"), [
            "gpu", "2", "0", "2", "2 x no driver: libcuda.so.1 cannot be loaded"])
        self.assertEqual(self.line(said, "slurm")[3:], ["1", "1 x skipped: needs root: for x"])
        self.assertIn("none in this build", " ".join(self.line(said, "tcp")))

    def test_a_skip_that_is_not_on_the_list_fails(self):
        for name, labels, output in (("base.A", "pure", NO_GPU),
                                     ("gpu.X", "gpu", "x.cpp:1: Skipped\nthe tests are slow\n"),
                                     ("slurm.jobs", "slurm", "skipped: today\n"),
                                     ("slurm.jobs", "slurm", "")):
            code, said = self.judged((name, labels, NOT, output))
            self.assertEqual(code, 1, (name, output))
            self.assertIn(f"  {name} skipped: ", said)

    def test_one_more_than_the_list_allows_fails(self):
        allowed = "# a list\nlabel:gpu | 2 | no driver | no GPU here\n"
        tests = [(f"gpu.{index}", "gpu", NOT, NO_GPU) for index in range(3)]
        self.assertEqual(self.judged(*tests[:2], allowed=allowed)[0], 0)
        code, said = self.judged(*tests, allowed=allowed)
        self.assertEqual(code, 1)
        self.assertIn("3 skips of label:gpu that say no driver, at most 2 are allowed", said)

    def test_parts_of_a_test_that_ran_count(self):
        output = ("test_x (m.C.test_x) ... skipped 'longhaul is not built'\n"
                  "test_y (m.C.test_y) ... ok\nOK (skipped=1)\n")
        code, said = self.judged(("scripts.test_x", "scripts", RAN, output))
        self.assertEqual(code, 1)
        self.assertIn("scripts.test_x skipped: longhaul is not built", said)
        self.assertEqual(skips.reasons_in("FAILED (failures=1, skipped=2)\n"),
                         [skips.NOT_SAID] * 2)

    def test_ranks_speak_once_and_a_hollow_test_did_not_run(self):
        output = NO_GPU * 4 + "[NON-XML-CHAR-0x1B][0;32m[  PASSED  ] [NON-XML-CHAR-0x1B][m0 tests.\n"
        code, said = self.judged(("gpu.ranks-4", "gpu mpi ranks-4", RAN, output))
        self.assertEqual(code, 0, said)
        self.assertEqual(self.line(said, "gpu")[1:4], ["1", "0", "1"])
        needs = "x.cpp:1: Skipped\nneeds 4 ranks, there are 2\n"
        labels = {"e.ranks-2": {"mpi", "ranks-2"}}
        (self.directory / "j.xml").write_text(
            f'<testsuite><testcase name="e.ranks-2" status="run"><system-out>{needs * 2}[  PASSED  '
            "] 3 tests.\n</system-out></testcase></testsuite>")
        ran, found = skips.read_junit(self.directory / "j.xml", labels)
        self.assertEqual((ran, found), ({"e.ranks-2": True},
                                        [Skip("e.ranks-2", "needs 4 ranks, there are 2")]))

    def test_the_list_is_whole(self):
        rules = skips.rules_of(ALLOWED.read_text(encoding="utf-8"))
        self.assertGreater(len(rules), 5)
        with self.assertRaises(ValueError):
            skips.rules_of("label:gpu | 3 | no driver\n")


if __name__ == "__main__":
    unittest.main()
