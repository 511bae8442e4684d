"""`scripts/reproduce all`: every part, pages, and what of it results/reference keeps."""

import contextlib
import io
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.commands import reproduce
from longhaul.errors import Failure
from longhaul.figures import registry
from longhaul.papers import claims, expected
from longhaul.reproducing import parts, reproduction
from longhaul.running import tools
from test_reproduce import number

PICTURE = """#!/bin/sh
name=$1
case "$*" in *--measure*|*--extra*|*--run*|*"--scenario "*) kind=measured;; *) kind=simulated;; esac
while [ "$1" != --out ]; do shift; done
mkdir -p "$2" && : > "$2/$name.png" && cp $kind.csv "$2/$name.csv"
printf 'id,section,claim,verdict,theirs,ours,why\nc-%s,1,a claim of %s,holds here,2,3,because\n' $name $name > "$2/$name-verdicts.csv"
"""
FACTS = "command,commit,load_average,load_average_during,payload_sent_bytes,payload_nominal_bytes," \
        "lateness_credit_ns,time_scale,n,measurement,measurements"


class All(unittest.TestCase):
    """With a figure that writes an empty picture and one row."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for directory in ("scripts", "results/reference", "results/papers", "bin", "data/deep"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "results" / "reference" / "older.csv").write_text("v\n1\n")
        for paper in claims.PAPERS:
            (self.root / "results" / "papers" / f"{paper}-claims.csv").write_text("id\n")
        self.script("scripts/figure", PICTURE)
        self.script("bin/longhaul", "#!/bin/sh\necho 'longhaul 1.0 (0123456789ab)'\n")
        (self.root / "simulated.csv").write_text("v\n1\n")
        self.facts("0123456789ab")
        self.enterContext(mock.patch.object(registry, "expected", lambda _: []))
        self.enterContext(mock.patch.object(tools, "ROOT", self.root))
        self.enterContext(mock.patch.object(reproduction, "why_not", return_value=""))
        self.enterContext(mock.patch.dict(os.environ, LONGHAUL_BIN=str(self.root / "bin")))
        for name in ("shakespeare.txt", "itp_jobs.csv", "stella_probes_vit_b_16.csv"):
            (self.root / "data" / "deep" / name).touch()

    def script(self, name, text):
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def facts(self, commit):
        (self.root / "measured.csv").write_text(
            f"measured_ns,{FACTS}\n5,bench x,{commit},0.1,0.2,8,8,0,1,8,1,1\n")

    def run_it(self, *more):
        """(exit code, what went wrong)."""
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = reproduce.guarded(lambda: reproduce.main(
                ["all", "--out", str(self.root / "out"), *more]), "reproduce")
        return code, said.getvalue().strip().split("\n")[-1]

    def test_one_command_runs_all_and_keeps_it_whole(self):
        code, said = self.run_it("--data", str(self.root / "data"), "--keep")
        self.assertEqual(code, 0, said)
        reference = self.root / "results" / "reference"
        names = {file.name for file in reference.iterdir()}
        self.assertNotIn("older.csv", names)
        for name in ("crosspipe-table5.csv", "crosspipe-table5-measured.csv",
                     "crosspipe-table5-measured-verdicts.csv", "crosspipe-fig17.csv",
                     "vtrain-fig12.csv", "stella.md", "longhaul.md", "README.md"):
            self.assertIn(name, names)
        page = (reference / "crosspipe.md").read_text()
        section = page.split("## crosspipe-table5\n")[1].split("\n## ")[0]
        for text in ("a claim of crosspipe-table5 | 2 | 3 | holds here | measured | because",
                     "](crosspipe-table5-measured.png)", "--measure --minutes 14`",
                     "commit 0123456789ab"):
            self.assertIn(text, page if "commit" in text else section)
        self.assertEqual(section.count("crosspipe-table5.png"), 1)
        self.assertNotIn("not run", page)

    def test_numbers_are_judged_once(self):
        numbers = [number(number=kind, figure="crosspipe-table5", file="crosspipe-table5", low=0,
                          high=9, kind=kind, column=column)
                   for kind, column in (("simulated", "v"), ("measured", "measured_ns"))]
        of_paper = lambda paper: numbers if paper == "crosspipe" else []
        with mock.patch.object(registry, "expected", of_paper), \
                mock.patch.object(expected, "judge", wraps=expected.judge) as judge:
            self.assertEqual(self.run_it("--only", "crosspipe-table5")[0], 0)
            self.assertEqual(judge.call_count, 2)
            # A page has what was measured before, which a summary of simulated numbers leaves out.
            self.assertEqual(self.run_it("--only", "crosspipe-table5", "--simulated-only")[0], 0)
            self.assertEqual(judge.call_count, 4)
        page = (self.root / "out" / "kept" / "crosspipe.md").read_text()
        self.assertIn("| measured | 5 |", page)
        self.assertIn("| simulated | 1 |", page)
        summary = (self.root / "out" / "crosspipe" / "summary.csv").read_text()
        self.assertNotIn("measured", summary)

    def test_what_lacks_its_data_is_named_and_nothing_is_kept(self):
        code, said = self.run_it("--keep")
        self.assertEqual(code, 3)
        self.assertIn("4 parts are not done: vtrain-fig12 (simulated)", said)
        self.assertTrue((self.root / "results" / "reference" / "older.csv").is_file())
        summary = (self.root / "out" / "kept" / "README.md").read_text()
        self.assertIn("vtrain-fig12 (simulated: needs itp_jobs.csv (--data DIR))", summary)

    def test_rows_of_a_tree_with_changes_are_not_kept(self):
        self.facts("0123456789ab-dirty")
        code, said = self.run_it("--data", str(self.root / "data"), "--keep")
        self.assertEqual(code, 2)
        self.assertIn("a tree with changes", said)
        self.assertTrue((self.root / "results" / "reference" / "older.csv").is_file())

    def test_rows_of_another_commit_are_not_kept(self):
        self.facts("c0ffee12")
        code, said = self.run_it("--data", str(self.root / "data"), "--keep")
        self.assertEqual(code, 2)
        self.assertIn("rows of commit c0ffee12, not 0123456789ab", said)
        self.facts("0123456")  # a part of its hash
        for file in (self.root / "out").rglob("measured"):
            shutil.rmtree(file)
        for file in (self.root / "out").rglob("done"):
            shutil.rmtree(file)
        code, said = self.run_it("--data", str(self.root / "data"), "--keep")
        self.assertEqual(code, 0, said)

    def test_parts_go_on_on_another_machine(self):
        data = ("--data", str(self.root / "data"))
        code, said = self.run_it(*data, "--minutes", "3", "--keep-done")
        self.assertEqual(code, 3)
        self.assertIn("crosspipe-table5 (measured)", said)
        reference = self.root / "results" / "reference"
        self.assertTrue((reference / "older.csv").is_file())
        self.assertFalse((reference / "crosspipe-table5-measured.csv").exists())
        part = parts.ledger(reference)["crosspipe-table5", "simulated"]
        self.assertEqual((part["commit"], part["command"]),
                         ("0123456789ab", "scripts/figure crosspipe-table5 --simulate"))
        self.assertEqual(part["files"]["crosspipe-table5.csv"], "crosspipe-table5.csv")
        self.assertNotIn(str(self.root), (reference / "parts.json").read_text())
        # The directory is gone; what is kept is not run again.
        shutil.rmtree(self.root / "out")
        (reference / "crosspipe-table6.csv").unlink()  # not whole: it is
        self.script("scripts/figure", PICTURE + 'echo "$name $kind" >> again.txt\n')
        code, said = self.run_it(*data, "--keep-done")
        self.assertEqual(code, 0, said)
        again = (self.root / "again.txt").read_text()
        self.assertIn("crosspipe-table5 measured\n", again)
        self.assertNotIn("crosspipe-table5 simulated", again)
        self.assertIn("crosspipe-table6 simulated\n", again)
        self.assertNotIn("crosspipe-fig17 measured", again)
        self.assertEqual((reference / "crosspipe-table5-measured.csv").read_text(),
                         (self.root / "measured.csv").read_text())
        code, said = self.run_it(*data, "--keep")
        self.assertEqual(code, 0, said)
        self.assertFalse((reference / "older.csv").exists())
        self.assertEqual({part["commit"] for part in parts.ledger(reference).values()},
                         {"0123456789ab"})
        self.assertEqual({name for part in parts.ledger(reference).values() for name in part["files"]},
                         {file.name for file in reference.iterdir() if file.suffix in (".csv", ".png")})

    def test_parts_of_another_commit_are_run_again_and_replace_theirs(self):
        data = ("--data", str(self.root / "data"), "--only", "crosspipe-table5")
        self.assertEqual(self.run_it(*data, "--keep-done")[0], 0)
        shutil.rmtree(self.root / "out")
        self.script("bin/longhaul", "#!/bin/sh\necho 'longhaul 1.0 (ba9876543210)'\n")
        code, said = self.run_it(*data, "--keep-done")
        self.assertEqual(code, 3)
        self.assertIn("not kept: crosspipe-table5 measured (crosspipe-table5.csv: rows of commit "
                      "0123456789ab, not ba9876543210)", said)
        commit = lambda kind: parts.ledger(self.root / "results" / "reference")[
            "crosspipe-table5", kind]["commit"]
        self.assertEqual((commit("simulated"), commit("measured")), ("ba9876543210", "0123456789ab"))

    def test_another_program_needs_another_directory(self):
        self.run_it("--only", "crosspipe-table2")
        self.script("bin/longhaul", "#!/bin/sh\necho 'longhaul 1.0 (ba9876543210)'\n")
        code, said = self.run_it("--only", "crosspipe-table2")
        self.assertEqual(code, 2)
        self.assertIn("has figures of commit 0123456789ab, the program is of ba9876543210", said)

    def test_minutes_leave_parts_for_later(self):
        code, said = self.run_it("--data", str(self.root / "data"), "--minutes", "3")
        self.assertEqual(code, 3)
        self.assertIn("crosspipe-table5 (measured)", said)
        self.assertNotIn("crosspipe-fig17 (measured)", said)   # planned to take 0.6
        self.assertEqual(self.run_it("--data", str(self.root / "data"))[0], 0)

    def test_slips(self):
        for words, text in ((["crosspipe", "--keep"], "--keep replaces all"),
                            (["crosspipe", "--keep-done"], "--keep-done: it takes all"),
                            (["all", "--data", "nowhere"], "no directory nowhere"),
                            (["all", "--only", "table5"], 'no figure "table5"')):
            with self.assertRaisesRegex(Failure, text):
                reproduce.main(words)


if __name__ == "__main__":
    unittest.main()
