"""scripts/compare-ddp without PyTorch: what it refuses, which ranks stand where, its arithmetic. A whole
comparison takes root and PyTorch (scripts/nightly)."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from longhaul.commands import compare_ddp
from longhaul.errors import Failure
from longhaul.running import tools

COMMAND = (sys.executable, "-m", "longhaul.commands.compare_ddp")


def started(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


class CompareDdp(unittest.TestCase):
    def test_what_it_cannot_compare_is_refused(self):
        for arguments, code, says in (
                (("m8-2dc",), 2, "has several stages or microbatches"),
                (("nowhere.toml",), 2, "no scenario nowhere.toml"),
                (("--iterations", "3"), 2, "fewer than 4 iterations"),
                (("--text", "/nowhere"), 2, "no text /nowhere"),
                (("--python", "/nowhere/python"), 77, "python3-torch"),
                (("--out", ""), 2, "names no file")):
            with self.subTest(arguments=arguments):
                done = started(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)

    def test_ranks_are_placed_as_mpi_places_them(self):
        job = compare_ddp.Job("train-2dc")
        self.assertEqual([job.site_of(rank) for rank in range(job.ranks)],
                         ["west", "west", "east", "east"])
        self.assertEqual((job.model["kv_heads"], job.batch), (4, 8))

    def test_both_train_with_the_batch_of_the_scenario(self):
        text = tools.scenario_file("train-2dc").read_text()
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "mine.toml"
            for batch, says in (("6", 6), ("[5, 5, 5, 5]", 5), ("[5, 5, 6, 6]", "batches of 5, 5, 6, 6")):
                file.write_text(text.replace("parts = 4\n", f"parts = 4\nbatch = {batch}\n"))
                if isinstance(says, int):
                    self.assertEqual(compare_ddp.Job(file).batch, says)
                else:
                    self.assertRaisesRegex(Failure, says, compare_ddp.Job, file)

    def test_an_iteration_is_the_mean_of_the_second_half(self):
        self.assertEqual(compare_ddp.period_s([5, 6, 8, 10]), 2)
        self.assertEqual(compare_ddp.period_s([1, 2, 3, 5, 8]), 2)

    def test_an_iteration_of_local_steps_is_a_share_of_an_exchange(self):
        curve = {"method": "diloco:5", "rival": {"local_steps": 5}, "period_ns": 100, "losses": [2.0, 1.0],
                 "wan": {"payload_bytes": 4000}, "check": "ok"}
        record = {"git_commit": "0123456789ab", "train": {"curves": [curve]}}
        wan = SimpleNamespace(bytes_across=7, packets_across=1)
        row = compare_ddp.row_of(record, 40, 40, wan)
        self.assertEqual((row["iteration_ns"], row["wan_payload_bytes"], row["loss"]), (20, 100, 1.0))
        self.assertIsNone(compare_ddp.row_of({**record, "train": {"curves": [{**curve, "period_ns": None}]}},
                                             20, 40, wan)["iteration_ns"])
        curve["rival"] = None
        self.assertEqual(compare_ddp.row_of(record, 40, 40, wan)["iteration_ns"], 100)
        curve["rival"] = {"local_steps": 8}
        with self.assertRaisesRegex(Failure, "diloco:5 makes 8 updates .* Give --iterations 32."):
            compare_ddp.row_of(record, 40, 40, wan)
        curve["rival"] = {"local_steps": 50}
        with self.assertRaisesRegex(Failure, "Give --iterations 100."):
            compare_ddp.row_of(record, 40, 40, wan)

    def test_a_run_that_hangs_ends_with_one_line(self):
        with self.assertRaisesRegex(Failure, "did not end within 0.1 s") as caught:
            compare_ddp.run_inside(["sleep", "60"], 0.1)
        self.assertEqual(caught.exception.code, 3)

    def test_numbers_of_a_method_stay_with_it(self):
        self.assertEqual(compare_ddp.methods_of("none,streaming-diloco:20,4,2,fp16"),
                         ["none", "streaming-diloco:20,4,2", "fp16"])

    def test_speed_ups_are_over_the_fastest_dense_one(self):
        times = {"ddp": [30, 10, 20], "ddp+buckets": [15] * 3, "ddp+fp16": [6] * 3, "none": [25, 26, 24],
                 "stella": [5] * 3}

        def run(name, iterations):
            return {"iteration_ns": times[name].pop(0) if iterations == 40 else 0, "loss": 1.0,
                    "torch": "2", "bytes_across": 7000 + 1_000_000 * iterations,
                    "packets_across": 50 + 1000 * iterations,
                    "wan_payload_bytes": {"none": 948_000, "stella": 850_000}.get(name)}
        options = SimpleNamespace(repeat=3, methods=["none", "stella"], iterations=40)
        with mock.patch.object(compare_ddp, "run_ddp",
                               lambda job, options, rate, name, iterations: run(name, iterations)), \
                mock.patch.object(compare_ddp, "run_ours",
                                  lambda job, options, rate, name, iterations: run(name, iterations)):
            answer = compare_ddp.measured_at(None, options, "1Gbps")
        self.assertEqual(answer["fastest_dense"], "ddp+buckets")
        self.assertEqual(answer["none_over_ddp"], 1.667)  # over the faster of PyTorch's
        by_name = {row["system"]: row for row in answer["rows"]}
        self.assertEqual((by_name["ddp"]["iteration_ns"], by_name["ddp"]["least_ns"],
                          by_name["ddp"]["largest_ns"]), (20, 10, 30))
        self.assertEqual(by_name["stella"]["speed_up"], 3)
        self.assertEqual(by_name["ddp"]["wan_bytes"], 1_000_000)  # what a start and an end send left out
        # A packet has 52 bytes of headers; of stella more crossed than its record says.
        self.assertEqual([by_name[name]["carried_over_payload"] for name in ("ddp", "none", "stella")],
                         [None, 1, 1.1153])
        self.assertEqual([row["system"] for row in compare_ddp.apart(answer)], ["stella"])


if __name__ == "__main__":
    unittest.main()
