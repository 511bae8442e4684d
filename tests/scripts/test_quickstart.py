"""scripts/quickstart: its five lines, from records made here, and the script itself in a checkout
whose build, ranks and figures are fakes."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from longhaul.commands import first_screen

ROOT = Path(__file__).resolve().parents[2]
LABELS = ["winner", "by", "prediction", "pictures", "next"]


def entry(name, *samples_ms, predicted_ms=None, over=(), check="ok"):
    samples = [ms * 1_000_000 for ms in samples_ms]
    median = sorted(samples)[len(samples) // 2]
    predicted = median if predicted_ms is None else predicted_ms * 1_000_000
    return {"schedule": name, "samples_ns": samples, "measured_median_ns": median,
            "n": len(samples), "predicted_ns": predicted, "check": check,
            "difference_percent": 100 * (median / predicted - 1), "over_budget": list(over)}


def record(*entries, processor_s=0):
    return {"schedules": list(entries), "environment": {"processor_ns": processor_s * 10**9}}


def stat(busy_s, idle_s):
    """The first line of /proc/stat, of all processors together."""
    second = os.sysconf("SC_CLK_TCK")
    return f"cpu  {busy_s * second} 0 0 {idle_s * second} 0 0 0 0 0 0"


def lines(of, before="", after="", figures="nowhere"):
    text = first_screen.first_screen(of, argparse.Namespace(
        figures=figures, failed_log="", stat=(before, after), next="do this"))
    return dict(line.split(":", 1) for line in text.splitlines())


class FirstScreen(unittest.TestCase):
    def test_five_lines_in_this_order(self):
        shown = lines(record(entry("1f1b", 2000, 2010, 2020), entry("best", 1500, 1510, 1505)))
        self.assertEqual(LABELS, list(shown))
        self.assertTrue(shown["next"].endswith(" do this"))

    def test_the_winners_picture(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("crosspipe-fig11", "timeline-1f1b", "timeline-best"):
                (Path(directory) / f"{name}.png").touch()
            shown = lines(record(entry("1f1b", 2000), entry("best", 1500)), figures=directory)
        self.assertIn("timeline-best.png and 2 more beside it", shown["pictures"])
        self.assertIn("none", lines(record(entry("1f1b", 2000)))["pictures"])

    def test_the_fastest_median_wins(self):
        shown = lines(record(entry("1f1b", 2000, 2000, 2000), entry("zbv", 1600, 1500, 1590),
                             entry("best", 1400, 1440, 1420)))
        self.assertIn("best (found by search): 1.42 s an iteration, median of 3", shown["winner"])
        self.assertIn("10.7% less than zbv, the next; 29.0% less than 1f1b", shown["by"])

    def test_memory_and_correctness_come_first(self):
        shown = lines(record(entry("gpipe", 10, 10, 10, over=[0]), entry("zb-h2", 11, 11, 11),
                             entry("zbv", 9, 9, 9, check="wrong"), entry("1f1b", 22, 22, 22)))
        self.assertIn("zb-h2: 11.0 ms", shown["winner"])
        self.assertIn("50.0% less than 1f1b, the next", shown["by"])
        self.assertIn("none", lines(record(entry("gpipe", 10, over=[0])))["winner"])

    def test_samples_that_overlap_are_no_victory(self):
        shown = lines(record(entry("1f1b", 100, 101, 110), entry("best", 98, 99, 100)))
        self.assertIn("not clear: some iterations of 1f1b, the next, were as short", shown["by"])

    def test_one_schedule_alone(self):
        self.assertIn("no other schedule", lines(record(entry("1f1b", 100)))["by"])

    def test_the_prediction_is_as_true_as_its_worst(self):
        shown = lines(record(entry("best", 99, predicted_ms=100),
                             entry("1f1b", 104, predicted_ms=100)))
        self.assertIn("within 1.0% of the measured time (all 2 schedules: 4.0%)",
                      shown["prediction"])
        self.assertNotIn("busy", shown["prediction"])

    def test_a_busy_machine_is_named(self):
        run = record(entry("best", 100), processor_s=10)
        half = f"{0.5 * os.cpu_count():.1f} of {os.cpu_count()} processors"
        self.assertIn(f"busy: other programs took {half}",
                      lines(run, stat(100, 100), stat(160, 140))["prediction"])
        self.assertNotIn("busy", lines(run, stat(100, 100), stat(120, 180))["prediction"])


class ProcessorsTaken(unittest.TestCase):
    def taken(self, processor_s, before, after):
        return first_screen.processors_taken(record(processor_s=processor_s), before, after)

    def test_the_ranks_own_time_does_not_count(self):
        half = self.taken(10, stat(100, 100), stat(160, 140))  # 50 of 100 s are those of others
        self.assertAlmostEqual(0.5 * os.cpu_count(), half)
        self.assertEqual(0, self.taken(60, stat(100, 100), stat(160, 140)))

    def test_unknown_where_the_system_does_not_tell(self):
        self.assertIsNone(self.taken(1, "", ""))
        self.assertIsNone(self.taken(1, "cpu 1 2 3", "cpu 4 5 6"))
        self.assertIsNone(self.taken(1, stat(1, 1), stat(1, 1)))


SPEAKS = """#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
for i in {1..30}; do echo "$(basename "$0") says $i"; done
echo "$(basename "$0") complains" >&2
[[ $FAILS != "$(basename "$0")" ]] || exit 9
"""
# Writes the record where bench_pipeline would.
MPI = SPEAKS + """
while [[ $1 != --out ]]; do shift; done
mkdir "$2"
cp "$RECORD" "$2/record.json"
"""
REPORT = SPEAKS + """
while [[ $1 != --out ]]; do shift; done
touch "$2"
"""
FIGURE = SPEAKS + """
name=$1
while [[ $1 != --out ]]; do shift; done
[[ $FAILS != "$name" ]] || exit 3
mkdir -p "$2"
touch "$2/$name-best.png"
"""


class Quickstart(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name).resolve() / "with blanks"
        scripts = self.root / "scripts"
        scripts.mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "quickstart", scripts)
        shutil.copytree(ROOT / "scripts" / "lib", scripts / "lib")
        for name, text in (("build", SPEAKS), ("mpi", MPI), ("figure", FIGURE)):
            self.program(scripts / name, text)
        self.program(self.root / "build/bin/longhaul", REPORT)
        self.program(self.root / ".venv/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (self.root / "record").write_text(json.dumps(record(
            entry("1f1b", 2000, 2010, 2020), entry("best", 1500, 1510, 1520))))

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def call(self, *words, fails=""):
        done = subprocess.run(
            [self.root / "scripts" / "quickstart", *words], cwd=self.root, capture_output=True,
            text=True, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "FAILS": fails, "CALLS": str(self.root / "calls"),
                 "RECORD": str(self.root / "record")})
        return done.returncode, done.stdout, done.stderr

    def calls(self):
        return (self.root / "calls").read_text().splitlines()

    def test_five_lines_and_the_rest_in_files(self):
        code, said, progress = self.call("--out", "o", "--iterations", "2")
        self.assertEqual(0, code, progress)
        self.assertEqual(LABELS, [line.split(":")[0] for line in said.splitlines()])
        self.assertIn("best (found by search): 1.51 s", said)
        self.assertIn("o/figures/report.html and 2 more beside it", said)
        self.assertNotIn("says", said + progress)
        for log, text in (("build", "build says 30"), ("run", "mpi complains"),
                          ("figures", "figure says 30")):
            self.assertIn(text, (self.root / "o" / f"{log}.log").read_text())

    def test_progress_is_a_line_a_phase(self):
        _, _, progress = self.call("--out", "o")
        steps = progress.splitlines()
        self.assertEqual(3, len(steps), progress)
        for step in steps:
            self.assertRegex(step, r"^quickstart: .* \.\.\. \d+ s$")

    def test_builds_only_what_it_runs(self):
        self.call("--out", "o", "--iterations", "2")
        build, run = self.calls()[:2]
        self.assertEqual("build release --target longhaul --target bench_pipeline", build)
        self.assertIn("--iterations 2 ", run)

    def test_the_next_step_can_be_pasted(self):
        """With a blank in its way; runs the program itself where it is built."""
        program = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build/bin")) / "longhaul"
        self.program(self.root / "build/bin/longhaul", f"""#!/bin/bash
printf '%s\\n' "$@" >words
[[ ! -x {shlex.quote(str(program))} ]] || exec {shlex.quote(str(program))} "$@"
""")
        (self.root / "benchmarks").symlink_to(ROOT / "benchmarks")
        command = self.call("--out", "o")[1].splitlines()[-1].split(": ", 2)[-1]
        self.assertEqual("build/bin/longhaul", shlex.split(command)[0])
        subprocess.run(["bash", "-c", command], cwd=self.root, capture_output=True, check=True)
        words = (self.root / "words").read_text().splitlines()
        self.assertEqual(["simulate", "benchmarks/scenarios/m70-2dc.toml"], words[:2])
        self.assertTrue((ROOT / words[1]).is_file())

    def test_the_guide_shows_these_lines(self):
        guide = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
        block = re.search(r"```\n\$ scripts/quickstart[^\n]*\n(.*?)```", guide, re.S)[1]
        said = self.call("--out", "runs/quickstart")[1]
        self.assertEqual(LABELS, [line.split(":")[0] for line in block.splitlines()])
        for shown, printed in zip(block.splitlines(), said.splitlines()):
            words = [re.split(r"[\d.]+", line)[0] for line in (shown, printed)]
            self.assertEqual(*words)

    def test_a_failure_shows_the_end_of_its_log(self):
        for name, code, log in (("build", 1, "build.log"), ("mpi", 3, "run.log")):
            with self.subTest(name):
                ended, said, progress = self.call("--out", f"o-{name}", fails=name)
                self.assertEqual((code, ""), (ended, said))
                self.assertIn(f"o-{name}/{log}", progress)
                self.assertIn(f"{name} complains", progress)
                self.assertNotIn(f"{name} says 2\n", progress)

    def test_a_figure_that_fails_takes_nothing_else_along(self):
        code, said, progress = self.call("--out", "o", fails="timeline")
        self.assertEqual(3, code)
        self.assertEqual(5, len(said.splitlines()))
        self.assertIn("o/figures/report.html and 1 more beside it; not all could be drawn, "
                      "see o/figures.log", said)
        self.assertIn("figure complains", progress)

    def test_a_record_that_cannot_be_read(self):
        (self.root / "record").write_text("{")
        code, said, progress = self.call("--out", "o")
        self.assertEqual((3, ""), (code, said))
        self.assertIn("not JSON", progress)

    def test_nothing_is_overwritten_but_the_log_of_a_failed_build(self):
        self.assertEqual(1, self.call("--out", "o", fails="build")[0])
        self.assertEqual(0, self.call("--out", "o")[0])
        code, said, progress = self.call("--out", "o")
        self.assertEqual((2, ""), (code, said))
        self.assertIn("nothing is overwritten", progress)

    def test_bad_input(self):
        for words in (["--iterations", "0"], ["--iterations"], ["--nonsense"],
                      ["--out", "/proc/x/y"]):
            self.assertEqual(2, self.call(*words)[0], words)
        self.assertFalse((self.root / "calls").exists())


if __name__ == "__main__":
    unittest.main()
