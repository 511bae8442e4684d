"""The calls of docs/python.md: every command of the tool, from Python, answers as the tool does. Skips where the compiled
module is not built."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from longhaul.running import tools

NATIVE = tools.ROOT / "build" / "python"
sys.path.insert(0, os.environ.get("LONGHAUL_NATIVE", str(NATIVE)))
try:
    import longhaul_native
except ImportError:
    longhaul_native = None
PAGE = (tools.ROOT / "docs" / "python.md").read_text()


@unittest.skipUnless(longhaul_native, "the module longhaul_native is not built")
class Tool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="longhaul-tool-")
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = Path(temporary.name)
        (cls.directory / "benchmarks").symlink_to(tools.ROOT / "benchmarks")
        (cls.directory / "gradient.f32").write_bytes(b"\x3f" * 4096)
        (cls.directory / "probes.csv").write_text(
            "model,version,batch,compression_rate,g\nvit_b_16,v2,64,0,-0.03\nvit_b_16,v2,900,0.5,0.06\n"
            "vit_b_16,v2,2000,0.99,0.11\n")
        (cls.directory / "iperf3.json").write_text(json.dumps({
            "start": {"version": "iperf 3.12"},
            "end": {"streams": [{"sender": {"min_rtt": 40200, "mean_rtt": 41000, "bits_per_second": 6e8},
                                 "receiver": {"bits_per_second": 6e8}}],
                    "sum_sent": {"bits_per_second": 6e8}, "sum_received": {"bits_per_second": 6e8}}}))
        before = Path.cwd()
        os.chdir(cls.directory)
        cls.addClassCleanup(os.chdir, before)

    def test_every_call_of_the_page_works_and_every_command_is_called(self):
        from longhaul import tool
        block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
        called = set(re.findall(r"tool\.(\w+)\(", block))
        listens = {"send"}  # to a run that is going on
        self.assertEqual(called, set(tool.names()) - listens)
        run = block.split('tool.trace_merge("runs/first"')[0]  # that and `watch` need what ranks left
        exec(compile(run, "docs/python.md", "exec"), {})  # noqa: S102

    def test_answers_are_those_of_the_tool(self):
        from longhaul import tool
        words = ["simulate", "benchmarks/scenarios/m70-2dc.toml", "--schedule", "1f1b", "--set", "run.seed=3"]
        printed = json.loads(subprocess.run([tools.binary("longhaul"), *words, "--json"], check=True,
                                            capture_output=True).stdout)
        self.assertEqual(tool.simulate(words[1], schedule="1f1b", set={"run.seed": 3}), printed)

    def test_a_no_is_an_answer_and_a_refusal_an_error(self):
        import longhaul
        from longhaul import tool
        answer = tool.check("benchmarks/scenarios/m70-2dc.toml", set=["memory.capacity=1GiB"])
        self.assertFalse(answer.yes)
        with self.assertRaisesRegex(longhaul.Error, '^There is no schedule "1f1c". Did you mean "1f1b"'):
            tool.simulate("benchmarks/scenarios/m70-2dc.toml", schedule="1f1c")
        with self.assertRaises(AttributeError):
            tool.simulat("x")


class Words(unittest.TestCase):
    def test_options_are_those_of_the_command_line(self):
        from longhaul.tool import words_of
        self.assertEqual(words_of("search_moves", 200), ["--search-moves", "200"])
        self.assertEqual(words_of("from_", "west"), ["--from", "west"])
        self.assertEqual(words_of("extrapolate", True), ["--extrapolate"])
        self.assertEqual(words_of("extrapolate", False), [])
        self.assertEqual(words_of("set", {"run.seed": 3, "a": "b"}), ["--set", "run.seed=3", "--set", "a=b"])


if __name__ == "__main__":
    unittest.main()
