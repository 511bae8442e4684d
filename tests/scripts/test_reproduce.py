"""Ranges: how a number is judged, and that the kept ones are where they are expected. Runs: a
finished part is not run again."""

import contextlib
import io
import json
import math
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.commands import figure, reproduce
from longhaul.figures import registry
from longhaul.figures.registry import FIGURES
from longhaul.errors import Failure
from longhaul.papers import claims, expected
from longhaul.reproducing import reproduction
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

    def test_every_part_is_a_command_that_its_figure_takes(self):
        for item in registry.FIGURES.values():
            run = reproduction.Reproduction("paper", [item.FIGURE], "results/x", "0123abcd")
            for kind, options in item.FIGURE.repeat.parts() if item.FIGURE.repeat else ():
                with self.subTest(item.FIGURE.name, kind=kind):
                    _, name, *words = run.command(item.FIGURE, kind, options)
                    figure.parser_of(name).parse_args(words)

    def test_measured_parts_keep_their_points_together(self):
        item = next(item for item in reproduce.PAPERS["crosspipe"]
                    if item.name == "crosspipe-table5")
        run = reproduction.Reproduction("crosspipe", [item], self.root / "out", "c")
        command = run.command(item, "measured", item.repeat.measure)
        self.assertEqual(command[-2:], ["--results", "out/crosspipe/runs/crosspipe-table5"])


if __name__ == "__main__":
    unittest.main()
