"""The figures of collectives: one of a record, one of the programs' answers (synthetic here)."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import matplotlib.image
import pandas as pd

from longhaul.commands import figure
from longhaul.errors import guarded
from longhaul.figures.runs import wan_collectives
from longhaul.running import tools

ALGORITHMS = {"ring": 0.4, "halving": 0.3, "hierarchical": 0.2}


def measured(kind, algorithm, seconds, median, n=12):
    interval = [1e9 * median * 0.99, 1e9 * median * 1.01] if n >= 6 else None
    return {"kind": kind, "way": algorithm, "members": 8, "pieces": 1, "size_bytes": 8_000_000,
            "n": n, "predicted_ns": int(1e9 * seconds), "median_ns": 1e9 * median,
            "interval_ns": interval, "difference_percent": 100 * (median / seconds - 1),
            "own_out_of_place": {"median_ns": 4e6}}


def record(**changes):
    return {"benchmark": "bench_collectives", "scenario": "collectives-2dc", "check": "ok",
            "emulation": "on", "numbers": "measured", "command_line": "bench_collectives x",
            "created": "2026-01-01T00:00:00Z", "git_commit": "0123456789ab",
            "collectives": [measured(kind, name, seconds, 1.02 * seconds, n)
                            for kind, n in (("all-reduce", 12), ("all-gather", 3))
                            for name, seconds in ALGORITHMS.items()]} | changes


def answer(command):
    """Algorithms take longer with the latency of the link in the file."""
    text = Path(command[2]).read_text(encoding="utf-8")
    latency = float(text.split('latency = "')[1].split("ms")[0])
    return json.dumps({"collectives": [
        {"algorithm": name, "lower_bound_ns": 1e8, "duration_ns": 1e9 * seconds + 1e6 * latency}
        for name, seconds in ALGORITHMS.items()]})


class Drawing(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.out = Path(temporary.name)

    def called(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([*words, "--out", str(self.out)]), "figure")
        return code, said.getvalue()

    def drawn(self, name, *words):
        code, said = self.called(name, *words)
        self.assertEqual(code, 0, said)
        picture = matplotlib.image.imread(self.out / f"{name}.png")
        self.assertGreater(min(picture.shape[:2]), 300)
        self.assertGreater(picture[..., :3].std(), 0.02)
        return pd.read_csv(self.out / f"{name}.csv")

    def kept(self, content):
        directory = self.out / "results"
        directory.mkdir()
        (directory / "record.json").write_text(json.dumps(content), encoding="utf-8")
        return str(directory)

    def test_collectives_of_a_record(self):
        table = self.drawn("collectives", "--results", self.kept(record()))
        self.assertEqual(len(table), 2 * len(ALGORITHMS))
        ring = table[(table["kind"] == "all-reduce") & (table["algorithm"] == "ring")].iloc[0]
        self.assertAlmostEqual(ring["predicted_s"], 0.4)
        self.assertAlmostEqual(ring["difference_percent"], 2)
        self.assertEqual(ring["commit"], "0123456789ab")
        self.assertTrue(table.loc[table["kind"] == "all-gather", "low_s"].isna().all())

    def test_a_record_with_wrong_numbers_is_not_drawn(self):
        code, said = self.called("collectives", "--results", self.kept(record(check="wrong")))
        self.assertEqual(code, 3)
        self.assertIn("its check says wrong", said)

    def test_a_record_of_another_program(self):
        code, said = self.called("collectives", "--results",
                                 self.kept(record(benchmark="bench_link")))
        self.assertEqual(code, 2)
        self.assertIn("a record of bench_link", said)

    def test_between_datacenters(self):
        with mock.patch.object(tools, "run", answer):
            table = self.drawn("wan-collectives")
        points = len(wan_collectives.LATENCIES_MS) + len(wan_collectives.NODES)
        self.assertEqual(len(table), points * (len(ALGORITHMS) + 1))
        ring = table[(table["panel"] == "latency") & (table["algorithm"] == "ring")]
        self.assertTrue(ring.sort_values("latency_ms")["seconds"].is_monotonic_increasing)

    def test_a_site_without_nodes(self):
        code, said = self.called("wan-collectives", "--nodes", "0")
        self.assertEqual(code, 2)
        self.assertIn("a datacenter has a node", said)


if __name__ == "__main__":
    unittest.main()
