"""Commands that take more than 2 s show on a terminal what they are at, and nothing elsewhere. Names
of results that are none are refused by all with the same words."""

import os
import pty
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src/python")}
SLOW = """
import sys, time
from longhaul import progress
from longhaul.errors import guarded
def main():
    progress.step("prediction 3 of 40")
    time.sleep(float(sys.argv[1]))
    print("result", flush=True)
    return 0
sys.exit(guarded(main, "me"))
"""
SHELL = """
set -euo pipefail
me=me
. scripts/lib/progress.sh
with_progress 'one thing' sleep "$1"
echo result
with_progress 'another' false || echo "code $?"
"""


def on_a_terminal(*command):
    """All that a command says, on a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=ROOT,
                             env=ENVIRONMENT)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert child.wait() == 0, said
    return said.decode().replace("\r\n", "\n")


class Progress(unittest.TestCase):
    def elsewhere(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT,
                              check=True, stdin=subprocess.DEVNULL)
        self.assertEqual("", done.stderr)
        return done.stdout

    def test_of_python(self):
        said = on_a_terminal(sys.executable, "-c", SLOW, "2.9")
        self.assertRegex(said, "^\rme: prediction 3 of 40 ... 2 s\033\\[K")
        self.assertTrue(said.endswith("\r\033[Kresult\n"), repr(said))
        self.assertEqual("result\n", on_a_terminal(sys.executable, "-c", SLOW, "0"))
        self.assertEqual("result\n", self.elsewhere(sys.executable, "-c", SLOW, "2.9"))

    def test_of_shells(self):
        said = on_a_terminal("bash", "-c", SHELL, "-", "3.5")
        self.assertRegex(said, "^\rme: one thing ... [23] s \033\\[K")
        self.assertTrue(said.endswith("\r\033[Kresult\n\r\033[Kcode 1\n"), repr(said))
        self.assertEqual("result\ncode 1\n", self.elsewhere("bash", "-c", SHELL, "-", "0"))

    PROFILE = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build/bin")) / "bench_profile"

    @unittest.skipUnless(PROFILE.is_file(), "no mpirun: bench_profile is not built")
    def test_of_a_benchmark(self):
        """One line, rewritten in place, that goes when the measurement ends."""
        said = on_a_terminal(str(self.PROFILE), "--check")
        self.assertRegex(said, r"\r\033\[Kbench_profile \[#*\.*\] 0/\d+ .*, round 0")
        self.assertRegex(said, r"\r\033\[Kbench_profile \[#+\.*\] \d+/\d+ operators\r\033\[K")
        self.assertNotIn("bench_profile [", self.elsewhere(str(self.PROFILE), "--check"))

    def test_every_command_has_it(self):
        """A script calls a guarded command of Python, shows it itself, or shows what it starts as it
        comes."""
        streams = {"build", "mpi", "nightly", "test", "wan", "completion"}
        for script in (ROOT / "scripts").iterdir():
            if script.is_dir() or script.suffix == ".txt" or script.name in streams:
                continue
            text = script.read_text(encoding="utf-8")
            self.assertTrue("-m longhaul." in text or "show_progress" in text, script.name)


class Out(unittest.TestCase):
    COMMANDS = (("scripts/figure", "timeline", "--trace", "x"), ("scripts/sweep", "--scenario", "m8-2dc"),
                ("scripts/compare-crosspipe",), ("scripts/reproduce", "crosspipe"),
                ("scripts/quickstart",), ("scripts/bench-gpu",),
                ("slurm/submit", "--dry-run", "--nodes", "4", "pipeline", "m70-2dc"),
                ("slurm/pipeline.sbatch", "m70-2dc"), ("slurm/sweep.sbatch", "x"),
                ("slurm/figures.sbatch", "atlas"))

    def test_one_message(self):
        for command in self.COMMANDS:
            for name in ("", "-"):
                done = subprocess.run([ROOT / command[0], *command[1:], "--out", name], cwd="/",
                                      capture_output=True, text=True, check=False,
                                      stdin=subprocess.DEVNULL, env=ENVIRONMENT)
                self.assertEqual((2, ""), (done.returncode, done.stdout), command)
                self.assertEqual(
                    f'{command[0].split("/")[1]}: --out "{name}" names no file or directory (results '
                    "are not written to standard output). Name one.\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
