"""`longhaul watch` on real runs: the same numbers as the record at their end. Skips where a benchmark or
mpirun is missing."""

import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from longhaul.running import tools
from test_sweep_resume import SCENARIO, is_built, processes, wait_for


@unittest.skipUnless(is_built(), "bench_pipeline is not built, or there is no mpirun")
class Watch(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="longhaul-watch-")
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name).resolve()
        self.scenario = self.directory / "four.toml"
        self.scenario.write_text(SCENARIO)
        self.out = self.directory / "run"

    def start(self, *words, program="bench_pipeline"):
        run = subprocess.Popen([tools.ROOT / "scripts/mpi", "-n", "2", tools.binary(program), *map(str, words)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.kill)
        return run

    def pipeline(self, iterations, *words):
        return self.start(self.scenario, "--schedule", "gpipe,1f1b", "--iterations", iterations, "--deadline", "5s",
                          "--out", self.out, *words)

    def watch(self, *words):
        return subprocess.run([tools.binary("longhaul"), "watch", self.out, *words], capture_output=True, text=True)

    def seen(self):
        answer = self.watch("--json")
        return json.loads(answer.stdout) if answer.returncode in (0, 1) and answer.stdout else None

    def done(self):
        seen = self.seen()
        return sum(series["done"] for series in seen["series"]) if seen else 0

    def test_numbers_so_far_are_those_of_the_record(self):
        run = self.pipeline(40)
        wait_for(lambda: self.done() >= 10, "ten iterations")
        during = self.seen()
        self.assertEqual(during["state"], "running")
        self.assertEqual([series["total"] for series in during["series"]], [40, 40])
        self.assertGreater(during["left_ns"], 0)
        self.assertLess(during["since_last_ns"], 10e9)
        self.assertIn("of 80 iterations", self.watch("--once").stdout)
        self.assertEqual(run.wait(120), 0, run.stderr.read())
        record = json.loads((self.out / "record.json").read_text())
        self.assertIn("1f1b", (self.out / "report.html").read_text())
        samples = record["schedules"][0]["samples_ns"]
        first = during["series"][0]
        self.assertEqual(first["name"], "gpipe")
        self.assertEqual(first["measured_min_ns"], min(samples[:first["done"]]))
        self.assertEqual(first["predicted_ns"], record["schedules"][0]["predicted_ns"])
        after = self.seen()
        self.assertEqual(after["state"], "complete")
        for series, schedule in zip(after["series"], record["schedules"], strict=True):
            for key in ("measured_median_ns", "measured_median_low_ns", "measured_median_high_ns",
                        "measured_min_ns", "measured_p95_ns", "n"):
                self.assertEqual(series[key], schedule[key], key)
            self.assertAlmostEqual(series["difference_percent"], schedule["difference_percent"])

    def test_a_killed_run_is_stale_and_goes_on_where_it_was(self):
        run = self.pipeline(60, "--no-report")
        wait_for(lambda: self.done() >= 5, "five iterations")
        for process in processes(self.out):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.wait(30)
        answer = self.watch("--once")
        self.assertEqual(answer.returncode, 1, answer.stderr)
        self.assertIn("stale", answer.stdout)
        before = self.done()
        again = self.pipeline(60, "--no-report", "--resume")
        wait_for(lambda: self.done() > before, "another iteration")
        self.assertEqual(self.seen()["state"], "running")
        self.assertEqual(again.wait(120), 0, again.stderr.read())
        self.assertEqual(self.seen()["series"][0]["n"], 60)
        self.assertFalse((self.out / "report.html").exists())

    def test_a_terminal_is_kept_up_to_date_until_the_end(self):
        run = self.pipeline(20)
        wait_for(lambda: self.done() >= 1, "an iteration")
        near, far = pty.openpty()
        watch = subprocess.Popen([tools.binary("longhaul"), "watch", self.out, "--every", "100ms"], stdout=far)
        os.close(far)
        text = b""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if select.select([near], [], [], 0.1)[0]:
                try:
                    text += os.read(near, 65536)
                except OSError:  # the other end is closed
                    break
        os.close(near)
        self.assertEqual(watch.wait(10), 0)
        self.assertEqual(run.wait(60), 0)
        self.assertIn(b"running", text)
        self.assertGreater(text.count(b"\x1b[J"), 1, "each text replaces the one before")
        self.assertIn(b"complete", text.rsplit(b"\x1b[J", 1)[1])

    def test_training_and_prefill_say_how_far_they_are(self):
        for program, series in (("bench_train", "curve "), ("bench_prefill", "gpipe+prefill")):
            with self.subTest(program):
                self.out = self.directory / program
                ranks = {"bench_train": "2", "bench_prefill": "6"}[program]
                run = subprocess.Popen([tools.ROOT / "scripts/mpi", "-n", ranks, tools.binary(program), "--check",
                                        "--out", self.out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                states = set()
                while run.poll() is None:
                    seen = self.seen()
                    if seen and seen["series"]:
                        states.add(seen["state"])
                self.assertEqual(run.returncode, 0, run.stderr.read())
                run.stderr.close()
                self.assertIn("running", states)
                self.assertTrue(any(each["name"].startswith(series) for each in self.seen()["series"]), self.seen())
                self.assertEqual(self.seen()["state"], "complete")


if __name__ == "__main__":
    unittest.main()
