"""Ranges: how a number is judged, and that the kept ones are where they are expected. Runs: a
finished part is not run again."""

import contextlib
import io
import json
import math
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.commands import reproduce
from longhaul.figures import registry
from longhaul.figures.registry import FIGURES
from longhaul.errors import Failure
from longhaul.papers import claims, expected
from longhaul.reproducing import evidence, reproduction
from longhaul.papers.expected import AS_KNOWN, MATCHED, MISSED, SURPRISE, Expected
from longhaul.running import tools

REFERENCE = tools.ROOT / "results" / "reference"


def number(**changes):
    row = {"number": "x", "kind": "simulated", "figure": "f", "file": "f", "where": "",
           "column": "v", "reduce": "only", "low": 1.0, "high": 2.0, "basis": "exact", "why": "w",
           "known": ""}
    return Expected(**(row | changes))


class Numbers(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        (self.directory / name).write_text(text)

    def test_inside_outside_and_known(self):
        self.write("f.csv", "v\n1.5\n")
        for low, known, outcome in ((1, "", MATCHED), (1.6, "", MISSED), (1.6, "why", AS_KNOWN),
                                    (1, "why", SURPRISE)):
            judged = expected.judge(number(low=low, known=known), self.directory)
            self.assertEqual(judged.outcome, outcome)
        self.assertEqual(expected.judge(number(low=1.5, high=1.5), self.directory).outcome, MATCHED)

    def test_rows_and_reductions(self):
        self.write("f.csv", "a,t,v\nx,1,-4\nx,2,1\ny,2,3 (about)\ny,10,\n")
        value = lambda **changes: expected.number_of(number(**changes), self.directory)
        self.assertEqual(value(where="a=y"), 3)
        self.assertEqual(value(where="a=x; t=2.0"), 1)
        self.assertEqual(value(where="t>=2", reduce="min"), 1)
        self.assertEqual(value(reduce="max_abs"), -4)
        self.assertEqual(value(reduce="max"), 3)
        self.assertEqual(value(reduce="median"), 1)
        self.assertEqual(value(reduce="count"), 3)
        self.assertEqual(value(reduce="worst_median:t"), -4)
        for wrong in ({"where": "a=z"}, {"where": "a=x"}, {"file": "g"}):
            with self.assertRaises(Failure):
                value(**wrong)

    def test_leading_numbers(self):
        self.assertEqual(expected.leading_number("38 (simulated after 38)"), 38)
        self.assertEqual(expected.leading_number("+12 to +16%"), 12)
        self.assertTrue(math.isnan(expected.leading_number("GPT-A 89.3%")))

    def test_repeated_numbers(self):
        kept = self.directory / "kept"
        kept.mkdir()
        (kept / "f.csv").write_text("a,v,commit\nx,1.0,old\ny,2,old\n")
        repeat = lambda: expected.judge_repeat("f", self.directory, kept)
        self.write("f.csv", "a,v,commit\nx,1,new\ny,2.0,new\n")
        self.assertEqual([one.outcome for one in repeat()], [MATCHED])
        self.write("f.csv", "a,v,commit\nx,1,new\ny,2.1,new\n")
        self.assertEqual([(one.outcome, one.value) for one in repeat()], [(MISSED, "1")])
        for ours, theirs, same in (("0.12349", "0.123", True), ("0.1236", "0.123", False),
                                 ("2.0", "2", True), ("2.4", "2", False), ("x", "y", False)):
            self.assertEqual(expected.same_cell(ours, theirs), same)
        self.write("f.csv", "a,v,commit\nx,1,new\n")
        self.assertEqual([one.outcome for one in repeat()], [MISSED])
        self.assertEqual(expected.judge_repeat("g", self.directory, kept), [])

    def test_verdicts(self):
        kept = self.directory / "kept"
        kept.mkdir()
        heads = "id,verdict,why\n"
        (kept / "f-verdicts.csv").write_text(
            heads + "".join(f"{name},{verdict},w\n" for name, verdict in
                            (("a", claims.HOLDS), ("b", claims.FAILS), ("c", claims.HOLDS))))
        self.write("f-verdicts.csv", heads + f"a,{claims.HOLDS},w\nb,{claims.FAILS},w\n")
        judged = expected.judge_verdicts("f", self.directory, kept)
        self.assertEqual([one.outcome for one in judged], [MATCHED, AS_KNOWN, MISSED])

    def test_a_claim_that_needs_data_may_be_left_unjudged_without_it(self):
        kept = self.directory / "kept"
        kept.mkdir()
        for figure, left_out in (("f", [MISSED]), ("vtrain-fig9", [])):
            (kept / f"{figure}-verdicts.csv").write_text(f"id,verdict,why\na,{claims.HOLDS},w\n")
            self.write(f"{figure}-verdicts.csv", f"id,verdict,why\na,{claims.NOT_JUDGED},w\n")
            judged = expected.judge_verdicts(figure, self.directory, kept)
            self.assertEqual([one.outcome for one in judged], left_out)


class Kept(unittest.TestCase):
    """Of the files in results/."""

    def test_lines_are_whole(self):
        for paper, items in reproduce.PAPERS.items():
            kinds = {(item.name, kind) for item in items for kind, _ in item.repeat.parts()}
            for item in items:
                self.assertIn(item.name, FIGURES)
            found = registry.expected(paper)
            self.assertEqual(len({one.number for one in found}), len(found))
            for one in found:
                with self.subTest(number=one.number):
                    self.assertIn((one.figure, one.kind), kinds)
                    self.assertIn(one.basis, expected.BASES)
                    self.assertLessEqual(one.low, one.high)
                    self.assertTrue(one.why)

    def test_kept_numbers_lie_where_they_are_expected(self):
        judged = 0
        for paper in reproduce.PAPERS:
            for one in registry.expected(paper):
                if one.kind == "simulated" and (REFERENCE / f"{one.file}.csv").is_file():
                    judged += 1
                    outcome = expected.judge(one, REFERENCE)
                    self.assertIn(outcome.outcome, expected.GOOD, outcome)
        self.assertGreater(judged, 40)


FIGURE = """#!/bin/sh
echo "$@" >> calls
while [ "$1" != --out ]; do name=${name:-$1}; shift; done
[ ! -e broken ] || exit 3
mkdir -p "$2" && cp answer.csv "$2/$name.csv"
"""


class Runs(unittest.TestCase):
    """With a figure that only copies answer.csv."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for directory in ("scripts", "results/reference", "bin"):
            (self.root / directory).mkdir(parents=True)
        self.script("scripts/figure", FIGURE)
        self.script("bin/longhaul", "#!/bin/sh\necho 'longhaul 1.0 (0123456789ab)'\n")
        self.enterContext(mock.patch.object(registry, "expected", lambda _: [
            number(figure="crosspipe-table2", file="crosspipe-table2")]))
        self.answer(1.5)
        self.enterContext(mock.patch.object(tools, "ROOT", self.root))
        self.enterContext(mock.patch.dict(os.environ, LONGHAUL_BIN=str(self.root / "bin")))

    def script(self, name, text):
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def answer(self, value):
        (self.root / "answer.csv").write_text(f"v\n{value}\n")

    def run_it(self, *more):
        """(exit code, printed, starts of figures so far)."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            code = reproduce.guarded(lambda: reproduce.main(
                ["crosspipe", "--simulated-only", "--only", "table2,table3", *more]), "reproduce")
        calls = self.root / "calls"
        started = len(calls.read_text().split("\n")) - 1 if calls.exists() else 0
        return code, printed.getvalue(), started

    def directory(self):
        return next((self.root / "results").glob("20??-??-??-012345678")) / "crosspipe"

    def test_prints_what_matched_and_runs_nothing_twice(self):
        code, printed, calls = self.run_it()
        self.assertEqual((code, calls), (0, 2))
        self.assertIn("1 numbers and claims: 1 matched", printed)
        self.assertEqual(self.run_it()[::2], (0, 2))
        summary = (self.directory() / "summary.txt").read_text()
        self.assertEqual(summary, printed)

    def test_a_miss_is_exit_1(self):
        self.answer(7)
        code, printed, _ = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("1 MISSED", printed)

    def test_what_was_not_finished_is_done_again(self):
        self.run_it()
        done = self.directory() / "done" / "crosspipe-table2-simulated.json"
        done.write_text(done.read_text()[:20])
        self.assertEqual(self.run_it()[::2], (0, 3))
        other = json.loads(done.read_text()) | {"commit": "another"}
        done.write_text(json.dumps(other))
        self.assertEqual(self.run_it()[::2], (0, 4))

    def test_what_fails_is_exit_3_and_done_later(self):
        (self.root / "broken").touch()
        self.assertEqual(self.run_it()[::2], (3, 2))
        (self.root / "broken").unlink()
        self.assertEqual(self.run_it()[::2], (0, 4))

    def test_what_cannot_be_run_here_is_exit_3(self):
        self.assertEqual(self.run_it("--only", "fig17")[0], 3)  # measured alone
        with mock.patch.object(reproduction, "why_not", return_value="needs root"):
            self.assertEqual(self.run_it()[0], 3)

    def test_slips(self):
        with self.assertRaisesRegex(Failure, 'no figure "table9"'):
            reproduce.main(["crosspipe", "--only", "table9"])

    def test_measured_parts_keep_their_points_together(self):
        item = next(item for item in reproduce.PAPERS["crosspipe"]
                    if item.name == "crosspipe-table5")
        run = reproduction.Reproduction("crosspipe", [item], self.root / "out", "c")
        command = run.command(item, "measured", item.repeat.measure)
        self.assertEqual(command[-2:], ["--results", "out/crosspipe/runs/crosspipe-table5"])


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
                            (["all", "--data", "nowhere"], "no directory nowhere"),
                            (["all", "--only", "table5"], 'no figure "table5"')):
            with self.assertRaisesRegex(Failure, text):
                reproduce.main(words)


if __name__ == "__main__":
    unittest.main()
