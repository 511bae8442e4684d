"""Every figure: a picture that is not empty, and its numbers."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import matplotlib.image
import pandas as pd

import fakes
import synthetic
from longhaul.commands import figure
from longhaul.errors import guarded
from longhaul.replacing import replacing


UNIT = {"F": 1000, "B": 2000, "D": 1000, "W": 1000}


class Figures(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.out = self.directory / "pictures"
        (self.directory / "bin").mkdir()
        self.bin = fakes.install(self, self.directory / "bin")
        self.scenario = self.directory / "tiny.toml"
        self.scenario.write_text('[scenario]\nname = "tiny"\n[parallel]\nstages = 4\n')

    def figure(self, *words, out=True):
        said = io.StringIO()
        words = [str(word) for word in words] + (["--out", str(self.out)] if out else [])
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main(words), "figure")
        return code, said.getvalue()

    def drawn(self, stem):
        """Checks the picture and returns the CSV."""
        picture = matplotlib.image.imread(self.out / f"{stem}.png")
        self.assertGreater(min(picture.shape[:2]), 300)
        self.assertGreater(picture[..., :3].std(), 0.05)
        return pd.read_csv(self.out / f"{stem}.csv")

    def trace(self, iterations=3):
        predicted, measured = synthetic.Timeline(), synthetic.Timeline()
        for name, generate in (("1f1b", synthetic.one_f_one_b), ("zb-h1", synthetic.zb_h1),
                               ("interleaved-1f1b", synthetic.interleaved)):
            predicted.play(name, generate(4, 8), UNIT, 2000, 500)
            for iteration, factor in enumerate((1.03, 1.01, 1.02)[:iterations]):
                measured.play(name, generate(4, 8), UNIT, 2000, 500, iteration, factor)
        return synthetic.write(self.directory / "trace.h5", predicted, measured, 0.25, 3000)

    def test_timeline_of_every_schedule(self):
        code, said = self.figure("timeline", "--trace", self.trace())
        self.assertEqual(code, 0, said)
        for name in ("1f1b", "zb-h1", "interleaved-1f1b"):
            self.assertIn(f"timeline-{name}.png", said)
            table = self.drawn(f"timeline-{name}")
            counts = table.groupby("source").size()
            self.assertEqual(counts["predicted"], counts["measured"])
            self.assertEqual(set(table["schedule"]), {name})
            measured = table[table["source"] == "measured"]
            self.assertEqual(set(measured["iteration"]), {2})  # of median makespan

    def test_timeline_of_one_iteration_with_its_path(self):
        code, said = self.figure("timeline", "--trace", self.trace().parent, "--schedule", "1f1b",
                                 "--iteration", "0", "--path")
        self.assertEqual(code, 0, said)
        table = self.drawn("timeline-1f1b")
        self.assertEqual(set(table.loc[table["source"] == "measured", "iteration"]), {0})
        self.assertTrue(table["on_critical_path"].any())
        self.assertFalse((self.out / "timeline-zb-h1.png").exists())

    def test_timeline_with_memory(self):
        trace = self.trace()
        sizes = {}
        for option in ([], ["--memory"]):
            code, said = self.figure("timeline", "--trace", trace, "--schedule", "1f1b", *option)
            self.assertEqual(code, 0, said)
            table = self.drawn("timeline-1f1b")
            sizes[bool(option)] = matplotlib.image.imread(self.out / "timeline-1f1b.png").shape[:2]
            self.assertEqual("activation_bytes" in table, bool(option))
        self.assertEqual(sizes[True][1], sizes[False][1])
        self.assertGreater(sizes[True][0], sizes[False][0] + 100)
        peaks = table.groupby(["source", "rank"])["activation_bytes"].max()
        for source in ("predicted", "measured"):
            self.assertEqual([peaks[source, rank] for rank in range(4)], [4096, 3072, 2048, 1024])

    def test_crosspipe_static(self):
        code, said = self.figure("crosspipe-static")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.drawn("crosspipe-static")), 120)

    def test_fig6(self):
        code, said = self.figure("crosspipe-fig6", "--scenario", self.scenario)
        self.assertEqual(code, 0, said)
        table = self.drawn("crosspipe-fig6")
        self.assertEqual(list(table["panel"].unique()),
                         ["without delay", "with cross-datacenter latency", "reordered"])
        reordered = table[table["panel"] == "reordered"]
        self.assertEqual(set(reordered["schedule"]), {"cross-ud"})
        delayed = table[table["panel"] == "with cross-datacenter latency"]
        self.assertEqual(delayed["end_ns"].max(), 49000)
        crossings = delayed[delayed["on_critical_path"] & (delayed["kind"] == "recv")
                            & (delayed["rank"] + delayed["peer"] == 3)]
        self.assertEqual(len(crossings), 8)

    def test_fig15(self):
        code, said = self.figure("crosspipe-fig15", "--scenario", self.scenario, "--schedules",
                                 "1f1b,interleaved-1f1b,zb-h1")
        self.assertEqual(code, 0, said)
        table = self.drawn("crosspipe-fig15")
        self.assertEqual(list(table["schedule"].unique()), ["1f1b", "interleaved-1f1b", "zb-h1"])
        picture = self.out / "crosspipe-fig15.png"  # for the width of a page
        self.assertLessEqual(matplotlib.image.imread(picture).shape[1], 2400)
        self.assertLess(picture.stat().st_size, 600_000)

    def test_fig15_without_a_schedule(self):
        code, said = self.figure("crosspipe-fig15", "--scenario", self.scenario, "--schedules",
                                 "1f1b,zbv")
        self.assertEqual(code, 2)
        self.assertIn("zbv gives no rows", said)

    def test_fig17(self):
        code, said = self.figure("crosspipe-fig17")
        self.assertEqual(code, 0, said)
        table = self.drawn("crosspipe-fig17")
        self.assertEqual(len(table), 2 * 4 * 40)
        medians = table.groupby(["test", "target_ns"])["error_percent"].median()
        self.assertTrue(medians.between(0.2, 0.6).all(), medians)

    def test_fig11(self):
        code, said = self.figure("crosspipe-fig11", "--run", "--scenario", self.scenario,
                                 "--results", self.directory / "results", "--schedules",
                                 "1f1b,zb-h1", "--cells", "0:0,1:0,0:1", "--time-scale", "0.5")
        self.assertEqual(code, 0, said)
        table = self.drawn("crosspipe-fig11")
        self.assertEqual(len(table), 3 * 2 * 2)
        row = table[(table["schedule"] == "1f1b") & (table["comm"] == "decoupled")
                    & (table["latency_ratio"] == 1)].iloc[0]
        self.assertAlmostEqual(row["predicted_s"], 2.0)  # scaled back
        code, _ = self.figure("crosspipe-fig11", "--results", self.directory / "results")
        self.assertEqual(code, 0)
        ran = [call for call in fakes.calls(self.bin) if call.startswith("latency")]
        self.assertEqual(len(ran), 6)

    def test_refusals(self):
        trace = self.trace()
        for words, text in (
                (["timelin"], 'no figure "timelin". Did you mean "timeline"?'),
                (["crosspipe-fig16"], 'Did you mean "crosspipe-fig'),
                (["timeline"], "--trace"),
                (["timeline", "--trace", self.directory / "no.h5"], "no such file"),
                (["timeline", "--trace", trace, "--schedule", "zb-h2"], 'Did you mean "zb-h1"?'),
                (["timeline", "--trace", trace, "--iteration", "9"], "no iteration 9"),
                (["crosspipe-fig6", "--scenario", "none"], "no scenario none"),
                (["crosspipe-fig11", "--results", self.directory / "none"], "no directory"),
                (["crosspipe-table5", "--cases", "1,4"], "no case 4"),
                (["crosspipe-fig17", "--results", self.directory], "no record")):
            code, said = self.figure(*words)
            self.assertEqual(code, 2, (words, said))
            self.assertIn(text, said)
            self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(self.out.exists())

    def test_a_failed_run_is_3(self):
        (self.bin / "longhaul").write_text("#!/bin/sh\necho boom >&2\nexit 3\n")
        code, said = self.figure("crosspipe-fig6", "--scenario", self.scenario)
        self.assertEqual(code, 3)
        self.assertIn("boom", said)

    def test_help(self):
        code, said = self.figure("--help", out=False)
        self.assertEqual(code, 0)
        for name in figure.FIGURES:
            self.assertIn(name, said)

    def test_default_directory_is_the_current_one(self):
        trace = self.trace()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.directory)
        code, said = self.figure("timeline", "--trace", trace, "--schedule", "1f1b", out=False)
        self.assertEqual(code, 0, said)
        self.assertTrue((self.directory / "figures" / "timeline-1f1b.png").is_file())


class Replacing(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.file = self.directory / "a.csv"

    def test_a_new_file_takes_the_place_of_the_old_one(self):
        for text in ("one\n", "two\r\n"):
            with replacing(self.file) as file:
                file.write(text)
            self.assertEqual(text.encode(), self.file.read_bytes())
        self.assertEqual([self.file], list(self.directory.iterdir()))

    def test_a_link_is_not_followed(self):
        other = self.directory / "precious"
        other.write_text("work of a night")
        self.file.symlink_to(other)
        with replacing(self.file, "xb") as file:
            file.write(b"new")
        self.assertEqual("work of a night", other.read_text())
        self.assertFalse(self.file.is_symlink())

    def test_what_fails_leaves_the_old_file(self):
        self.file.write_text("old")
        with self.assertRaises(ZeroDivisionError), replacing(self.file) as file:
            file.write("half")
            1 / 0
        self.assertEqual("old", self.file.read_text())
        self.assertEqual([self.file], list(self.directory.iterdir()))


if __name__ == "__main__":
    unittest.main()
