"""The examples of README.md and docs/: their commands run as printed, one after the other, and those
of docs/guide.md (test_guide.py) print what the page shows. Skips where the programs are not built.

A block that begins with ```sh holds commands that can be run here, in the order of the page. A block that begins with `$ ` holds commands and their output. In an output `...` alone stands for
any lines, and at the end of a line for the rest of it. What was measured differs from run to run:
there every number may be another one, and lines may stand between those of the page."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HOME = "/home/me/longhaul"  # where the checkout lies in the pages
MEASURED = ("bench_pipeline", "runs/")
HELD_ELSEWHERE = ("scripts/quickstart",)  # test_quickstart


def programs():
    """The directory of the programs, or None where one of them is missing."""
    directory = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build/bin"))
    built = all((directory / name).is_file() for name in ("longhaul", "bench_pipeline"))
    return directory if built else None


def steps(text):
    """Of a page, in order: ("file", name, content), ("command", line, lines of output) and ("block",
    lines to run, None)."""
    found = []
    for match in re.finditer(r"`(\w+\.toml)`:\n\n```toml\n(.*?)```|^```\n(\$ .*?)^```"
                             r"|^```sh\n(.*?)^```", text, re.S | re.M):
        if match[4]:
            found.append(("block", match[4], None))
            continue
        if match[1]:
            found.append(("file", match[1], match[2]))
            continue
        for block in re.split(r"^\$ ", match[3], flags=re.M)[1:]:
            command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n(.*)", block, re.S).groups()
            found.append(("command", command, output.splitlines()))
    return found


def agrees(shown, printed, measured):
    """One line of the page and one of the program."""
    shown, printed = shown.rstrip(), printed.rstrip()
    if measured:
        shown, printed = (mask(line) for line in (shown, printed))
    if shown.endswith(" ..."):
        return printed.startswith(shown[:-4].rstrip())
    return shown == printed


def mask(line):
    """Numbers, the widths that follow from them, and whether they are doubtful, are those of one run
    on one machine."""
    line = line.replace("ok, doubtful", "ok")
    return " ".join(re.sub(r"[-+]?\d+(\.\d+)?|-{2,}", "#", line).split())


def first_missing(shown, printed, measured):
    """The first line of the page that is not where it should be; None: all are."""
    at, gap = 0, False
    for line in shown:
        if line == "...":
            gap = True
            continue
        reach = len(printed) if gap or measured else at + 1
        here = next((i for i in range(at, min(reach, len(printed)))
                     if agrees(line, printed[i], measured)), None)
        if here is None:
            return line
        at, gap = here + 1, False
    return None if gap or measured or not shown or at == len(printed) else "(the end)"


class Comparing(unittest.TestCase):
    def missing(self, shown, printed, measured=False):
        return first_missing(shown.splitlines(), printed.splitlines(), measured)

    def test_all_lines_in_order(self):
        self.assertIsNone(self.missing("a\n\nb", "a\n\nb"))
        self.assertEqual("b", self.missing("a\nb", "a\nc\nb"))
        self.assertEqual("a 1", self.missing("a 1", "a 2"))
        self.assertEqual("(the end)", self.missing("a", "a\nb"))
        self.assertIsNone(self.missing("", "a\nb"))  # a command without its output

    def test_cuts(self):
        self.assertIsNone(self.missing("a\n...\nd\n...", "a\nb\nc\nd\ne"))
        self.assertEqual("c", self.missing("...\nd\nc", "a\nb\nc\nd"))
        self.assertIsNone(self.missing("a b ...", "a b c"))
        self.assertEqual("a c ...", self.missing("a c ...", "a b c"))

    def test_measured_numbers(self):
        self.assertIsNone(self.missing("zbv  5.0  +1.2%", "note\nzbv  12.25  -0.3%\nmore", True))
        self.assertIsNone(self.missing("zbv  ok  5.0 ...", "zbv  ok, doubtful  6.5  7", True))
        self.assertEqual("zbv  ok", self.missing("zbv  ok", "zbv  wrong", True))
        self.assertIsNone(self.missing("name  ms\n----  --", "name  ms\n----  ----", True))

    def test_steps_of_a_page(self):
        page = ("Save this as `a.toml`:\n\n```toml\n[x]\n```\n\n```\nno command\n```\n\n"
                "```\n$ one \\\n    more\nout\n$ two\n```\n\n```sh\nthree # x\nfour\n```\n")
        self.assertEqual([("file", "a.toml", "[x]\n"), ("command", "one \\\n    more", ["out"]),
                          ("command", "two", []), ("block", "three # x\nfour\n", None)], steps(page))


@unittest.skipUnless(programs() and shutil.which("mpirun"), "programs or mpirun are missing")
class PageTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name).resolve()
        (self.directory / "build").mkdir()
        (self.directory / "build/bin").symlink_to(programs())
        for inputs in ("scenarios", "clusters", "layouts", "profiles", "requests", "rows"):
            shutil.copytree(ROOT / "benchmarks" / inputs, self.directory / "benchmarks" / inputs)
        for name in ("scripts", "slurm"):
            (self.directory / name).symlink_to(ROOT / name)

    def call(self, command):
        done = subprocess.run(
            ["bash", "-euc", command], cwd=self.directory, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{programs()}:{os.environ['PATH']}",
                 "LONGHAUL_BIN": str(programs())})
        self.assertEqual(0, done.returncode, f"{command}\n{done.stdout}")
        said = done.stdout
        for path, place in ((programs(), f"{HOME}/build/bin"), (self.directory, HOME),
                            (ROOT, HOME)):
            said = said.replace(str(path), place)
        return said.splitlines()

    def hold(self, page):
        """Runs all of it; returns how many commands there were."""
        commands = 0
        for kind, name, content in steps((ROOT / page).read_text(encoding="utf-8")):
            if kind == "file":
                (self.directory / name).write_text(content, encoding="utf-8")
                continue
            if name.startswith(HELD_ELSEWHERE):
                continue
            commands += 1
            if kind == "block":
                with self.subTest(page=page, block=name):
                    self.call(name)
                continue
            with self.subTest(page=page, command=name):
                printed = self.call(name)
                measured = any(word in name for word in MEASURED)
                self.assertIsNone(first_missing(content, printed, measured),
                                  "\n".join([name, *printed]))
        return commands


class Pages(PageTest):
    def test_readme(self):
        self.assertEqual(2, self.hold("README.md"))

    def test_collectives(self):
        self.assertEqual(5, self.hold("docs/collectives.md"))

    def test_presets(self):
        text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
        [shown] = [content for kind, name, content in steps(text)
                   if (kind, name) == ("command", "longhaul presets")]
        self.assertIsNone(first_missing(shown, self.call("longhaul presets"), False))

    def test_other_pages(self):
        """All of them in one directory."""
        held = 0
        for page in sorted((ROOT / "docs").glob("*.md")):
            if page.name != "guide.md" and "\n```sh\n" in page.read_text(encoding="utf-8"):
                held += self.hold_blocks(page)
        self.assertLess(3, held)

    def hold_blocks(self, page):
        blocks = [name for kind, name, _ in steps(page.read_text(encoding="utf-8"))
                  if kind == "block"]
        for block in blocks:
            with self.subTest(page=page.name, block=block):
                self.call(block)
        return len(blocks)

    def test_a_failing_command_is_seen(self):
        with self.assertRaises(AssertionError):
            self.call("longhaul simulate nowhere.toml\ntrue\n")


class Marked(unittest.TestCase):
    def test_every_block_of_the_readme_runs(self):
        """A command of README.md is in a block that runs, or among those that others run."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M):
            self.assertTrue(kind == "sh" or block.startswith(("$ ", *HELD_ELSEWHERE)), block)

    def test_examples_of_help(self):
        """slurm/submit --help: what it shows is what it takes."""
        text = (ROOT / "slurm/submit").read_text(encoding="utf-8")
        shown = re.findall(r"^#   (?:DRY_RUN=1 )?slurm/submit (.*pipeline .*)$", text, re.M)
        self.assertTrue(shown)
        for words in shown:
            done = subprocess.run(["bash", "-c", f"DRY_RUN=1 slurm/submit {words}"], cwd=ROOT,
                                  capture_output=True, text=True, check=False)
            if programs():
                self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
