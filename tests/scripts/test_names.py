"""Names that a shell would act on pass through every script and program as they are."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import fakes
from longhaul.errors import Failure
from longhaul.running import tools

SCRIPTS = tools.ROOT / "scripts"
SCENARIO = """[scenario]
name = "tiny"
[parallel]
stages = 4
microbatches = 8
[costs]
forward = "1ms"
message = "1MiB"
[[datacenter]]
name = "west"
stages = "0-1"
[[datacenter]]
name = "east"
stages = "2-3"
[[link]]
between = ["west", "east"]
latency = "1ms"
"""
# Each would make the file `pwned` if any shell read it, or be taken for an option.
NAMES = ["with  blanks & more;touch pwned", "$(touch pwned)`touch pwned`", "it's \"x\" back\\slash",
         "two\nlines", "-rf", "--help", "$HOME ~ * ? #x {a} %s%n !x", "a|touch pwned>pwned<x"]


class Names(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def tearDown(self):
        self.assertEqual([], list(self.directory.rglob("pwned")))

    def places(self):
        """For each name a directory of that name, with a scenario of that name inside."""
        for number, name in enumerate(NAMES):
            place = self.directory / str(number) / name
            place.mkdir(parents=True)
            (place / f"{name}.toml").write_text(SCENARIO)
            yield name, place

    def run_in(self, place, *command, code=0):
        done = subprocess.run([str(word) for word in command], cwd=place, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(code, done.returncode, (command, done.stderr))
        return done.stdout

    def test_ranks_get_their_words_as_they_were_typed(self):
        for name, place in self.places():
            shown = self.run_in(place, SCRIPTS / "mpi", "-n", 1, "--dry-run", "printf", "%s", name)
            self.assertEqual(["printf", "%s", name], self.words(place, shown)[-3:])
            shown = self.run_in(place, SCRIPTS / "mpi", "-n", 1, "--host", name, "--wdir", name,
                                "--dry-run", "true")
            words = self.words(place, shown)
            self.assertEqual(name, words[words.index("--host") + 1])
            self.assertEqual(name, words[words.index("--wdir") + 1])

    def words(self, place, line):
        """The words that a shell makes of a command line that a script printed."""
        said = self.run_in(place, "bash", "-c", f"printf '%s\\0' {line}")
        return said.split("\0")[:-1]

    def test_a_sweep_runs_and_is_gathered(self):
        (self.directory / "bin").mkdir()
        fakes.install(self, self.directory / "bin")
        for name, place in self.places():
            self.run_in(place, SCRIPTS / "sweep", f"--scenario={place / name}.toml",
                        f"--out={place / 'results'}", "--cells", "0:0", "--schedules", "1f1b")
            record = next((place / "results").rglob("record.json"))
            self.assertIn(f"{name}.toml", json.loads(record.read_text())["command_line"])
            self.assertTrue((place / "results/sweep.csv").is_file())

    def test_names_of_an_emulated_wan_are_refused(self):
        for name, place in self.places():
            if name.startswith("-"):
                continue
            self.run_in(place, SCRIPTS / "wan", "up", "--name", name, code=2)
            self.run_in(place, SCRIPTS / "wan", "up", "--sites", f"a,{name}", code=2)

    def test_unknown_words_are_bad_input(self):
        for name, place in self.places():
            for script in ("build", "mpi", "test", "figure"):
                if name == "--help":
                    continue
                self.run_in(place, SCRIPTS / script, f"--{name}", code=2)

    @unittest.skipUnless((Path(os.environ.get("LONGHAUL_BIN", "/nowhere")) / "longhaul").is_file(),
                         "longhaul is not built")
    def test_the_tool_reads_and_writes(self):
        try:
            longhaul = tools.binary("longhaul")
        except Failure as failure:
            self.skipTest(str(failure))
        for name, place in self.places():
            scenario = f"./{name}.toml"
            self.run_in(place, longhaul, "check", scenario)
            self.run_in(place, longhaul, "schedule", scenario, "--schedule", "1f1b",
                        f"--out={name}.csv")
            self.run_in(place, longhaul, "check", f"./{name}.csv")
            self.run_in(place, longhaul, "simulate", scenario, f"--schedule=./{name}.csv",
                        f"--out={name}.h5")
            shown = json.loads(self.run_in(place, longhaul, "trace", "summary", "--json",
                                           f"./{name}.h5"))
            self.assertEqual(f"./{name}.h5", shown["trace"])
            again = self.words(place, shown["command_line"])
            self.assertIn(f"--out={name}.h5", again)
            self.run_in(place, longhaul, "trace", "export", f"./{name}.h5", f"--out={name}.json")
            self.run_in(place, SCRIPTS / "figure", "timeline", "--trace", f"./{name}.h5",
                        f"--out={place / 'figures'}")
            self.assertEqual(1, len(list((place / "figures").glob("*.png"))))


if __name__ == "__main__":
    unittest.main()
