"""The figure of a million GPUs, from answers of longhaul that are made up here."""

import contextlib
import io
import itertools
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pandas as pd

from longhaul.commands import figure
from longhaul.errors import guarded
from longhaul.figures.runs import internet_scale
from longhaul.running import tools

SECONDS = {"1f1b": 3.0, "zb-h1": 2.0, "zbv": 1.5}


def answer(command):
    """ZB-V is the fastest and needs 90 GB without recomputation; sums take longer on more sites, and
    where these come as they were drawn."""
    words = [str(word) for word in command]
    if words[1] == "scenario":
        asked = dict(zip(words[2::2], words[3::2]))
        Path(asked["--out"]).write_text(json.dumps(asked), encoding="utf-8")
        return ""
    asked = json.loads(Path(words[2]).read_text(encoding="utf-8"))
    sites, whole = int(asked["--sites"]), "memory.recompute=false" in words
    sums = sites / 100 * (2 if asked["--tour"] == "drawn" else 1)
    return json.dumps({
        "ranks": int(asked["--gpus"]), "load_seconds": sites / 1000, "peak_bytes": sites * 2**20,
        "schedules": [{"schedule": name, "iteration_ns": 1e9 * (seconds + sums + (not whole)),
                       "last_block_ns": 1e9 * (seconds + (not whole)), "busy": 0.5,
                       "tokens_per_second": 1e6 / (seconds + sums + (not whole)),
                       "memory_bytes": 9e10 if whole and name == "zbv" else 5e10, "ops": 1000,
                       "played": 10, "op_lists": 1, "seconds": 0.0}
                      for name, seconds in SECONDS.items()]})


def iter_seconds():
    """A second more at each call."""
    counted = itertools.count()
    return lambda: next(counted)


class InternetScale(unittest.TestCase):
    def test_takes_the_fastest_that_fits(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        said = io.StringIO()
        with mock.patch.object(tools, "run", answer), \
                mock.patch.object(tools, "binary", lambda name: name), \
                mock.patch.object(internet_scale, "processor_seconds", iter_seconds()), \
                contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([
                "internet-scale", "--sites", "10,1000", "--stages", "8", "--out", temporary.name]),
                "figure")
        self.assertEqual(code, 0, said.getvalue())
        self.assertTrue((Path(temporary.name) / "internet-scale.png").is_file())
        table = pd.read_csv(Path(temporary.name) / "internet-scale.csv")
        best = table[table["best"]]
        self.assertEqual(list(zip(best["sites"], best["gpus"])),
                         [(10, 1_024_000), (1000, 1_024_000), (1000, 102_400), (1000, 256_000)])
        self.assertEqual(set(best["schedule"]), {"zb-h1"})  # zbv does not fit
        self.assertEqual(set(best["tour"]), {"shortest"})
        self.assertIn("from 10 to 1,000 sites: 1.0 to 1.0 s (power 0.00), 10 to 1000 MiB (power 1.00)",
                      said.getvalue())


if __name__ == "__main__":
    unittest.main()
