"""Sweeps as job arrays, figures, and what of them survives being sent back to the queue."""

import csv
import shutil

from cluster import ROOT
from jobs import JobTest

SHORT = "--iterations 2 --time-scale 0.02 --schedules 1f1b"


class Sweeps(JobTest):
    def sweep(self, *lines, options=("--nodes", 2), site=None):
        file = self.cluster.directory / f"{self.name}.txt"
        file.write_text("# tasks\n\n" + "\n".join(lines) + "\n")
        return self.cluster.submit(*options, "sweep", file, "--out", self.out,
                                   site=site or self.site())

    def rows(self, path):
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def test_a_task_for_each_line(self):
        """One that fails leaves the others alone. Names go through no shell."""
        odd = self.cluster.directory / "it's $(touch here); \"odd\".toml"
        shutil.copy(ROOT / "benchmarks" / "scenarios" / "m8-2dc.toml", odd)
        quoted = str(odd).replace('"', '\\"')
        number = self.sweep(f'--scenario "{quoted}" --cells 0:0,1:1 {SHORT}',
                            f"--scenario m8-2dc --cells 0:0 {SHORT} --extra '--fault kill@1:4'")
        self.assert_ended(f"{number}_1", "COMPLETED", "0:0", "sweep")
        self.assert_ended(f"{number}_2", "FAILED", "3:0", "sweep")
        rows = self.rows(self.out / "sweep.csv")
        self.assertEqual({(row["scenario"], row["transfer_ratio"], row["check"]) for row in rows},
                         {("m8-2dc", "0", "ok"), ("m8-2dc", "1", "ok")})
        self.assertTrue((self.out / "task-1" / odd.stem).is_dir())
        self.assertEqual(list(ROOT.glob("here")) + list(self.cluster.directory.glob("here")), [])

    def test_goes_on_after_the_last_finished_point(self):
        """A warning ahead of the time limit is a SIGTERM to the job's script, as here."""
        number = self.sweep("--scenario m8-2dc --cells 0:0,1:1,2:2 --schedules 1f1b "
                            "--iterations 20 --time-scale 0.1")
        points = self.out / "task-1" / "m8-2dc" / "decoupled"
        first = points / "latency0-transfer0" / "record.json"
        second = points / "latency1-transfer1"
        self.cluster.until((second / "run.h5").exists, "the second point to begin")
        before = first.read_bytes(), first.stat().st_mtime_ns
        self.cluster.call("scancel", "--signal=TERM", "--batch", f"{number}_1")
        job = self.assert_ended(f"{number}_1", "COMPLETED", "0:0", "sweep")
        self.assertEqual(job["Restarts"], "1")
        self.assertIn("back to the queue", self.cluster.log(f"{number}_1", "sweep"))
        self.assertEqual((first.read_bytes(), first.stat().st_mtime_ns), before)
        self.assertEqual([(row["latency_ratio"], row["n"]) for row in
                          self.rows(self.out / "sweep.csv")],
                         [("0", "20"), ("1", "20"), ("2", "20")])


class Figures(JobTest):
    def figures(self, *words):
        number = self.cluster.submit("--nodes", 2, "figures", *words, "--out", self.out,
                                     site=self.site())
        return number, self.cluster.ended(number)

    def test_drawn_once(self):
        number, job = self.figures("atlas", "--only", "atlas-table1")
        self.assertEqual(job["ExitCode"], "0:0", self.cluster.log(number, "figures"))
        picture = self.out / "figures" / "atlas-table1.png"
        drawn = picture.stat().st_mtime_ns
        number, job = self.figures("atlas", "--only", "atlas-table1")
        self.assertEqual(job["ExitCode"], "0:0")
        self.assertIn("drawn     atlas-table1", self.cluster.log(number, "figures"))
        self.assertEqual(picture.stat().st_mtime_ns, drawn)
