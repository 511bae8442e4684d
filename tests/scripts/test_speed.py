"""scripts/speed reads what programs print, says what is not met and what became slower."""

import contextlib
import csv
import io
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.commands import speed
from longhaul.errors import Failure, guarded
from longhaul.running import tools

# Three repetitions and an aggregate, as Google Benchmark prints them; counts its starts.
BENCHMARK = """#!/bin/sh
echo "$*" >> "$CALLS"
cat <<'END'
{"benchmarks": [
 {"run_name": "fill", "run_type": "iteration", "cpu_time": 2.0, "time_unit": "us", "ops/s": 30e6},
 {"run_name": "fill", "run_type": "iteration", "cpu_time": 4.0, "time_unit": "us", "ops/s": 10e6},
 {"run_name": "fill", "run_type": "iteration", "cpu_time": 3.0, "time_unit": "us", "ops/s": 20e6},
 {"run_name": "fill", "run_type": "aggregate", "cpu_time": 9.0, "time_unit": "us", "ops/s": 90e6}]}
END
"""
LONGHAUL = """#!/bin/sh
if [ "$1" = --version ]; then echo 'longhaul 1.0.0 (0123456789ab)'; exit 0; fi
[ "$1" = plan ] || exit 2
i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
"""
LIST = """
[[number]]
name = "fill"
command = "bench_fill --benchmark_filter=fill"
counter = "ops/s"
at_least = 25e6

[[number]]
name = "fill, time"
command = "bench_fill --benchmark_filter=fill"
counter = "cpu"
at_most = 0.5

[[number]]
name = "plan"
command = "longhaul plan x.toml"
counter = "cpu"

[[number]]
name = "plan, memory"
command = "longhaul plan x.toml"
counter = "memory"
"""


class Speed(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in (("bench_fill", BENCHMARK), ("longhaul", LONGHAUL)):
            program = self.directory / name
            program.write_text(text)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.list = self.directory / "speed.toml"
        self.list.write_text(LIST)
        self.calls = self.directory / "calls"
        self.enterContext(mock.patch.dict(os.environ, {
            "LONGHAUL_BIN": str(self.directory), "CALLS": str(self.calls)}))
        self.enterContext(mock.patch.object(speed.listed, "__defaults__", (self.list,)))

    def speed(self, *arguments):
        """(exit code, what it printed, what it said)."""
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            code = guarded(lambda: speed.main([str(one) for one in arguments]), "speed")
        return code, out.getvalue(), said.getvalue()

    def rows(self, *arguments):
        out = self.directory / "out.csv"
        self.assertEqual(self.speed(*arguments, "--repetitions", 3, "--out", out)[0], 0)
        with out.open(newline="") as file:
            return {row["number"]: row for row in csv.DictReader(file)}

    def test_medians_of_repetitions_without_aggregates(self):
        rows = self.rows()
        self.assertEqual(list(rows), ["fill", "fill, time", "plan", "plan, memory"])
        row = rows["fill"]
        self.assertEqual([float(row[name]) for name in ("median", "least", "most", "n")],
                         [20e6, 10e6, 30e6, 3])
        self.assertEqual(float(rows["fill, time"]["median"]), 0.003)  # ms of us
        self.assertEqual({row["commit"] for row in rows.values()}, {"0123456789ab"})
        self.assertGreater(float(rows["plan"]["least"]), 0)
        self.assertGreater(float(rows["plan, memory"]["least"]), 0.1)

    def test_a_command_is_run_once_for_all_of_its_numbers(self):
        self.rows()
        self.assertEqual(self.calls.read_text().splitlines(), [
            "--benchmark_filter=fill --benchmark_format=json --benchmark_repetitions=3"])

    def test_the_first_answer_of_advice(self):
        """On a terminal, as a user sees it; before the end of the command."""
        (self.directory / "longhaul").write_text("""#!/bin/sh
if [ "$1" = --version ]; then echo 'longhaul 1.0.0 (0123456789ab)'; exit 0; fi
[ "$1" = advise ] && [ -t 2 ] || exit 2
printf '\\r 0%%' >&2; printf '\\r 3%% 9 s so' >&2; sleep 0.1; printf ' far' >&2; sleep 0.2
""")
        command = 'command = "longhaul advise x.toml"'
        self.list.write_text("".join(f'[[number]]\nname = "{each}"\n{command}\ncounter = "{each}"\n'
                                     for each in ("wall", "first_answer")))
        rows = self.rows()
        first = float(rows["first_answer"]["median"])
        self.assertGreaterEqual(first, 100)
        self.assertGreaterEqual(float(rows["wall"]["median"]), first + 190)
        self.list.write_text(self.list.read_text().replace("advise", "plan"))
        self.assertEqual(self.speed()[0], 2)

    def test_says_what_is_met(self):
        code, printed, _ = self.speed("fill", "--against", speed.KEPT)
        self.assertEqual(code, 0)
        self.assertRegex(printed, r"fill +20 M ops/s +at least 25 M +not met")
        self.assertRegex(printed, r"fill, time +0.003 cpu +at most 0.5 +met")
        self.assertIn("Not met: fill.", printed)

    def test_names_what_became_slower(self):
        """Of a rate the larger number is the faster one, of a time the smaller."""
        kept = self.directory / "kept.csv"
        rows = list(self.rows("fill").values())
        for row, factor in zip(rows, (1.3, 1.3)):
            row["median"] = float(row["median"]) * factor
        speed.write(kept, rows)
        _, printed, _ = self.speed("fill", "--against", kept)
        self.assertIn("Slower than kept: fill (1.30 times).", printed)
        rows[0]["median"], rows[1]["median"] = 20e6, 0.002
        speed.write(kept, rows)
        _, printed, _ = self.speed("fill", "--against", kept)
        self.assertIn("Slower than kept: fill, time (1.50 times).", printed)
        rows[1]["median"], rows[1]["processor"] = 0.003, "another one"
        speed.write(kept, rows)
        _, printed, _ = self.speed("fill", "--against", kept)
        self.assertIn("Slower than kept: nothing.", printed)
        self.assertIn("of another processor (another one)", printed)

    def test_markdown_times_nothing(self):
        kept = self.directory / "kept.csv"
        speed.write(kept, list(self.rows("fill").values()))
        self.calls.unlink()
        code, printed, _ = self.speed("--markdown", "--against", kept)
        self.assertEqual(code, 0)
        self.assertIn("| fill | 20 M ops/s | 10 M to 30 M | at least 25 M | **not met** |", printed)
        self.assertIn("| fill, time | 0.003 ms | 0.002 to 0.004 | at most 0.5 | met |", printed)
        self.assertFalse(self.calls.exists())

    def test_bad_input(self):
        for arguments, word in ((["nothing"], 'no number has "nothing"'),
                                (["--repetitions", 0], "--repetitions 0 is outside"),
                                (["--against", "missing.csv"], "no file missing.csv")):
            with self.subTest(arguments=arguments):
                code, _, said = self.speed(*arguments)
                self.assertEqual(code, 2)
                self.assertIn(word, said)
        for text, word in (('[[number]]\nname = "x"', "command, counter is missing"),
                           (LIST + "at_lest = 3\n", "at_lest is unknown"),
                           (LIST + LIST, "fill stands there twice"),
                           ("[[number", "lists [[number]]")):
            with self.subTest(text=text):
                self.list.write_text(text)
                code, _, said = self.speed()
                self.assertEqual(code, 2)
                self.assertIn(word, said)

    def test_a_program_that_fails_or_lacks_the_number(self):
        self.list.write_text(LIST.replace("longhaul plan", "longhaul paln"))
        self.assertEqual(self.speed("plan")[0], 2)
        self.list.write_text(LIST.replace('"ops/s"', '"blocks/s"'))
        code, _, said = self.speed("fill")
        self.assertEqual(code, 3)
        self.assertIn("has no blocks/s. It has cpu, cpu_time, ops/s", said)


class Listed(unittest.TestCase):
    """The list itself."""

    def test_programs_are_built_or_are_not_here(self):
        numbers = speed.listed(speed.LIST)
        self.assertGreater(len(numbers), 40)
        sources = {file.stem for file in (tools.ROOT / "benchmarks").glob("bench_*.cpp")}
        for number in numbers:
            program = number["command"].split()[0]
            self.assertIn(program, sources | {"longhaul"})

    def test_the_page_has_the_kept_numbers(self):
        kept = speed.kept_rows(speed.KEPT)
        self.assertEqual(list(kept), [one["name"] for one in speed.listed(speed.LIST) if one.get("kept", True)])
        page = (tools.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
        self.assertIn(speed.table(list(kept.values())), page)

    def test_each_filter_is_of_one_benchmark(self):
        """What a benchmark is called is known to its program alone."""
        for number in speed.listed(speed.LIST):
            words = number["command"].split()
            if words[0] == "longhaul":
                continue
            try:
                program = tools.binary(words[0])
            except Failure:
                self.skipTest(f"{words[0]} is not built")
            with self.subTest(number=number["name"]):
                named = tools.run([program, words[1], "--benchmark_list_tests=true"])
                self.assertEqual(len(named.splitlines()), 1, named)


if __name__ == "__main__":
    unittest.main()
