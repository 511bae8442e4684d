"""Completion offers what --help lists. Skips where the programs are not built."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from longhaul.commands import completion
from longhaul.errors import Failure
from longhaul.running import tools

ASK = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_longhaul_complete
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


def is_built():
    try:
        return tools.binary("longhaul")
    except Failure:
        return None


class Help(unittest.TestCase):
    TEXT = ("usage: x [-h] (--out DIR | --resume DIR)\n\n  -h,--help     Print\n  --set TEXT ... PATH=--no\n"
            "  -n, --ranks N\n  --host A,B, --map-by X, -x NAME\n                   and --not this\n"
            "\nSubcommands:\n  one   first\n  two   second\n\nExample: x --other\n")

    def test_options(self):
        self.assertEqual(["-h", "--help", "--set", "-n", "--ranks", "--host", "--map-by", "-x", "--out",
                          "--resume"], [word for word in completion.options_in(self.TEXT)
                                        if word not in ("--no", "--not")])

    def test_commands(self):
        self.assertEqual(["one", "two"], completion.commands_in(self.TEXT))
        self.assertEqual([], completion.commands_in("Options:\n  one\n"))


@unittest.skipUnless(is_built(), "longhaul is not built")
class Shells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = completion.lists()
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.files = {}
        for shell in completion.SHELLS:
            cls.files[shell] = Path(cls.temporary.name) / shell
            cls.files[shell].write_text(completion.script_for(shell, cls.found))

    def offered(self, *words):
        done = subprocess.run(["bash", "-euc", ASK, "-", self.files["bash"], *words], text=True,
                              capture_output=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout.split()

    def test_as_in_a_shell(self):
        self.assertEqual(["simulate"], self.offered("longhaul", "sim"))
        self.assertIn("--schedule", self.offered("build/bin/longhaul", "simulate", "x.toml", "--s"))
        self.assertEqual(["export"], self.offered("longhaul", "trace", "ex"))
        self.assertIn("--format", self.offered("longhaul", "trace", "export", "--json", "--"))
        self.assertNotIn("--format", self.offered("longhaul", "trace", "summary", "--"))
        self.assertEqual(["timeline"], self.offered("scripts/figure", "timel"))
        self.assertEqual(["--trace"], self.offered("scripts/figure", "timeline", "--tr"))
        self.assertEqual(["--scenario", "--schedules"],
                         self.offered("./scripts/sweep", "--out", "x", "--sc"))
        self.assertEqual(["--ranks-per-node"], self.offered("slurm/submit", "--ranks"))
        self.assertEqual([], self.offered("longhaul", "simulate", "m70"), "files, by the shell")

    def test_every_option_of_help(self):
        for key, command in (("longhaul simulate", [tools.binary("longhaul"), "simulate"]),
                             ("longhaul compare", [tools.binary("longhaul"), "compare"]),
                             ("bench_pipeline", [tools.binary("bench_pipeline")]),
                             ("sweep", [tools.ROOT / "scripts/sweep"]),
                             ("submit", [tools.ROOT / "slurm/submit"])):
            listed = re.findall(r"^ +(?:-\w, ?)?(--[a-z-]+)", completion.help_of(command), re.MULTILINE)
            self.assertGreater(len(listed), 2, key)
            self.assertEqual(set(), set(listed) - set(self.found[key]), key)

    def test_every_command(self):
        for name in completion.commands_in(completion.help_of([tools.binary("longhaul")])):
            self.assertIn(f"longhaul {name}", self.found)
        for script in completion.scripts():
            self.assertIn(str(script.relative_to(tools.ROOT)), self.files["bash"].read_text())

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_reads_its_own(self):
        subprocess.run(["zsh", "-n", self.files["zsh"]], check=True)


if __name__ == "__main__":
    unittest.main()
