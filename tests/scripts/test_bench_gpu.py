"""scripts/bench-gpu without a GPU, and with programs that only look like ours."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

RECORDS = {
    "bench_link": {"measurements": [
        {"test": "latency", "target_ns": 500_000, "error_median_percent": 0.4},
        {"test": "bandwidth", "target_ns": 1_000_000, "error_median_percent": -1.2}]},
    "bench_layers": {"product_flops_per_second": 1e15, "copy_bytes_per_second": 4e12, "parts": [
        {"group": "block", "name": "F", "flops": 8e12, "bytes": 0, "median_s": 0.01,
         "samples_s": [0.01] * 150 + [0.02] * 2},
        {"group": "block", "name": "B", "flops": 12e12, "bytes": 0, "median_s": 0.02},
        {"group": "block", "name": "D", "flops": 6e12, "bytes": 0, "median_s": 0.01},
        {"group": "kernel", "name": "swiglu", "flops": 1e6, "bytes": 3.4e10, "median_s": 0.01}]},
    "bench_compress": {
        "blocks_faster_percent": {"in_gradient": 21.04, "apart": 3.0},
        "kernels": [
            {"name": "threshold of blocks of 16", "share_of_copy": 0.79, "bytes_per_second": 2e12},
            {"name": "threshold of blocks of 16, residual apart", "share_of_copy": 0.91,
             "bytes_per_second": 2.5e12}],
        "beside": [
            {"name": "alone", "n": 12, "median_s": 0.002, "added_percent": 0.0,
             "gradients_per_second": 0.0, "block_s_per_gradient": 0.0},
            {"name": "beside copies to and from pinned memory", "n": 12, "median_s": 0.00208,
             "added_percent": 4.0, "gradients_per_second": 70.0, "block_s_per_gradient": 0.0005}]},
    "bench_pipeline": {"schedules": [
        {"schedule": "1f1b", "difference_percent": 0.5, "check": "ok"},
        {"schedule": "zbv", "difference_percent": 3.5, "check": "ok"}]},
    "bench_profile": {"prefill": [
        {"tokens": 512, "context": 2048, "samples": 60, "p50_ns": 12345678, "p99_ns": 13000000,
         "p99_over_p50": 1.053}], "tasks": {
        "operators": 46, "host_ns": 8123, "dropped_records": 0,
        "alone": {"within_3_percent": 20, "farthest": "copy of layer, F", "farthest_percent": -25},
        "with_host": {"within_3_percent": 45, "farthest": "add of layer, D",
                      "farthest_percent": 3.46}}},
}
# Of bench_layers with other options.
BESIDE = {"overlap_toml": "[overlap]\nslowdown = {node = 1.250}\n", "beside": [
    {"name": name, "side": side and {"name": side, "slowdown": other},
     "parts": {part: {"slowdown": slower} for part in ("F", "B", "F+B")}}
    for name, side, other, slower in (
        ("alone", None, None, None), ("prefill in order, in the gaps", "prefill", 1.01, 1.002),
        ("prefill, lower priority", "prefill", None, 1.4), ("copy", "copy", 2.0, 1.25))]}
LOAD = {"parts": [
    {"group": "load", "name": name, "flops": 0, "bytes": 2e9, "median_s": seconds,
     "samples_s": [seconds] * 9 + [2 * seconds]}
    for name, seconds in (("weights from pinned memory", 0.04), ("from ordinary memory", 0.2))]}
PROGRAMS = [*RECORDS, "bench_collectives", "cuda_tensor_ops_test", "cuda_device_test",
            "cuda_device_error_test", "device_transport_test"]


def write_program(path, text):
    path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    path.chmod(0o755)


class BenchGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.bin = self.path / "bin"
        self.bin.mkdir()

    def run_script(self, *arguments, smi):
        tools = self.path / "tools"
        tools.mkdir(exist_ok=True)
        write_program(tools / "nvidia-smi", smi)
        write_program(tools / "python3", f"""
if [[ $2 == *torch_layer ]]; then echo 'torch_layer: no PyTorch here' >&2; exit 77; fi
exec {sys.executable} "$@"
""")
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}",
                           LONGHAUL_BIN=str(self.bin))
        environment.pop("LONGHAUL_PACKED", None)
        if "--out" not in arguments:  # nothing of a card that is none into results/
            arguments = (*arguments, "--out", str(self.path / "out"))
        return subprocess.run([ROOT / "scripts/bench-gpu", *arguments], env=environment,
                              capture_output=True, text=True, timeout=120, check=False)

    def make_programs(self):
        for name in PROGRAMS:
            record = json.dumps(RECORDS.get(name, {}))
            write_program(self.bin / name, f"""
record='{record}'
while (($#)); do
  case $1 in
    --out) out=$2 ;;
    --beside) record='{json.dumps(BESIDE)}' ;;
    --load-parameters) record='{json.dumps(LOAD)}' ;;
  esac
  shift
done
if [[ ${{out:-}} == *.json ]]; then printf '%s' "$record" >"$out"
elif [[ -n ${{out:-}} ]]; then mkdir -p "$out"; printf '%s' "$record" >"$out/record.json"; fi
""")

    def test_without_a_gpu_all_is_listed_and_nothing_fails(self):
        done = self.run_script("--out", str(self.path / "out"),
                               smi="echo 'No devices were found'; exit 6")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nvidia-smi shows no GPU (No devices were found)", done.stderr)
        for step in ("test-math", "layers-m70", "link", "timed-8-2-2", "real-zbv"):
            self.assertIn(f"{step}\tnot run: nvidia-smi shows no GPU", done.stdout)
        self.assertFalse((self.path / "out").exists())

    def test_goals_are_held_against_records(self):
        self.make_programs()
        write_program(self.bin / "cuda_device_test", "echo a test has failed; exit 3")
        (self.bin / "bench_profile").unlink()
        out = self.path / "out"
        for model, seconds in (("m8", 0.021), ("m70", 0.019)):
            folder = out / f"torch-{model}"
            folder.mkdir(parents=True)
            ways = {"eager": {"F_s": 0.02, "B_s": 0.03}, "compiled": {"F_s": 0.01, "B_s": seconds}}
            (folder / "record.json").write_text(json.dumps({"torch": "2.11", "ways": ways}))
        done = self.run_script("--out", str(out), smi="echo 'GPU 0: Fake'")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        report = (out / "report.md").read_text(encoding="utf-8")
        for line in ("farthest: -1.20% (bandwidth of 1 ms) | MISSED",
                     "800 TFLOP/s, 80% | holds",
                     "m8, D of a layer: 70% of the rate of a large product | "
                     "600 TFLOP/s, 60% | MISSED",
                     "m8, W of a layer: 70% of the rate of a large product | - | not verified",
                     "2 of 2; least: swiglu of m8, 85% | holds",
                     "threshold of blocks of 16: 80% of the copy bandwidth | 2000 GB/s, 79% | MISSED",
                     "residual apart: 80% of the copy bandwidth | 2500 GB/s, 91% | holds",
                     "of blocks: 16% faster than of single numbers (StellaTrain 5.3) | +21.0% | holds",
                     "apart: 16% faster than of single numbers (StellaTrain 5.3) | +3.0% | MISSED",
                     "at most 3% more for F of a layer | +4.00% | MISSED",
                     "| beside copies to and from pinned memory | 12 | 2.080 | +4.00 | 70.0 | 0.500 |",
                     "timed-8-2-0.25, zbv: within 3% of the model | +3.50%, check ok | MISSED",
                     "timed-4, 1f1b: within 3% of the model | +0.50%, check ok | holds",
                     "real-1f1b, 1f1b: loss and gradients are those of one rank | check ok | holds",
                     "| 2048 | 10000.0 | 800.0 | 2.000 |",
                     "real-replicas, zbv: loss and gradients are those of one rank | check ok | holds",
                     "real-operators, zbv: within 8% of the profile's time | +3.50% | holds",
                     "m8, F and B of a layer: no longer than PyTorch's | F 10.00 ms against 10.00, "
                     "B 20.00 against 21.00 (compiled, 2.11) | holds",
                     "B 20.00 against 19.00 (compiled, 2.11) | MISSED",
                     "| torch-m8 | not run: torch_layer: no PyTorch here |",
                     "prefill in stages and passes equals the reference on the CPU | ok | holds",
                     "| prefill in order, in the gaps | 1.002 | 1.002 | 1.002 | 1.010 | "
                     "no contention (Atlas 5.1) |",
                     "| prefill, lower priority | 1.400 | 1.400 | 1.400 | - | contention",
                     "| copy | 1.250 | 1.250 | 1.250 | 2.000 | - |",
                     "```toml\n[overlap]\nslowdown = {node = 1.250}\n```",
                     "| weights from pinned memory | 2 | 40.0 | 50.0 | 2.000 | at least 100 ms",
                     "| from ordinary memory | 2 | 200.0 | 10.0 | 2.000 | - |",
                     "- test-device: FAILED: exit code 3\n- torch-m8: not run",
                     "- profile: not run",
                     "| tasks add up to their operators within 3% | - | not verified |",
                     "| test-device | FAILED: exit code 3 |",
                     "| profile | not run: no bench_profile here |"):
            self.assertIn(line, report)
        self.assertNotIn("real-blocks, zbv: loss", report)  # run without holding gradients
        self.assertIn("   | a test has failed", done.stdout)

    def test_only_some_steps_are_run_and_the_others_keep_their_results(self):
        self.make_programs()
        out = self.path / "out"
        write_program(self.bin / "cuda_device_test", "echo a test has failed; exit 3")
        done = self.run_script("--out", str(out), smi="echo 'GPU 0: Fake'")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        before = (out / "steps.tsv").read_text(encoding="utf-8").splitlines()
        write_program(self.bin / "cuda_device_test", "exit 0")
        done = self.run_script("--out", str(out), "--only", "test-device,sanitizer-*",
                               smi="echo 'GPU 0: Fake'")
        self.assertIn("== test-device\n", done.stdout)
        self.assertNotIn("== test-math", done.stdout)
        after = (out / "steps.tsv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sorted(line.split("\t")[0] for line in after),
                         sorted(line.split("\t")[0] for line in before))
        self.assertIn("test-device\tok", "\n".join(after))
        self.assertIn("test-device: FAILED", "\n".join(before).replace("\tFAILED", ": FAILED"))
        report = (out / "report.md").read_text(encoding="utf-8")
        self.assertIn("800 TFLOP/s, 80% | holds", report)

    def test_a_step_that_is_not_there_is_refused(self):
        done = self.run_script("--only", "reel-*", smi="echo 'GPU 0: Fake'")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only reel-*: no step has that name", done.stderr)

    def test_tasks_are_held_against_operators(self):
        self.make_programs()
        out = self.path / "out"
        done = self.run_script("--out", str(out), smi="echo 'GPU 0: Fake'")
        report = (out / "report.md").read_text(encoding="utf-8")
        goal = "tasks add up to their operators within 3%"
        self.assertIn(f"| {goal} | 45 of 46 with 8.1 us of the host's launch and wait, 20 without; "
                      "farthest: add of layer, D, +3.5% | MISSED |", report, done.stderr)
        self.assertIn("| 512 | 2048 | 60 | 12.35 | 1.053 |", report)
        record = out / "tasks/record.json"
        record.write_text(record.read_text(encoding="utf-8").replace("45", "46").replace(
            '"dropped_records": 0', '"dropped_records": 3'), encoding="utf-8")
        again = subprocess.run(["python3", "-m", "longhaul.commands.gpu_report", out],
                               env=dict(os.environ, PYTHONPATH=str(ROOT / "src/python")),
                               capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("| 46 of 46 with", again.stdout)
        self.assertIn("+3.5%; 3 records dropped | holds |", again.stdout)
        record.unlink()
        again = subprocess.run(["python3", "-m", "longhaul.commands.gpu_report", out],
                               env=dict(os.environ, PYTHONPATH=str(ROOT / "src/python")),
                               capture_output=True, text=True, timeout=60, check=True)
        self.assertIn(f"| {goal} | - | not verified |", again.stdout)

    def test_minutes_are_a_number(self):
        done = self.run_script("--minutes", "0", smi="echo 'GPU 0: Fake'")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not a number of minutes", done.stderr)


if __name__ == "__main__":
    unittest.main()
