"""Holds bench_train's dense methods against PyTorch's DistributedDataParallel over gloo: the same shapes,
batches and optimizer on the same sites, which are network namespaces with a real delay and a real
rate between them. Prints the time of an iteration of each, what crossed the WAN, and speed-ups
over the fastest dense one."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from longhaul import progress, provenance, records, scenario_text
from longhaul.errors import RUN_FAILED, Failure, guarded, result_name
from longhaul.running import children, tools

WORKER = Path(__file__).resolve().parents[1] / "running" / "ddp_worker.py"
WAN = tools.ROOT / "scripts" / "wan"
NAME = f"ddp{os.getpid()}"
# Hook, and whether gradients are in as many buckets as our parts, or in PyTorch's own.
DDP = {"ddp": ("none", False), "ddp+buckets": ("none", True), "ddp+fp16": ("fp16", False)}
DENSE = ("ddp", "ddp+buckets", "none")
NOT_POSSIBLE = 77
HEADERS = 20 + 32  # bytes of IPv4 and of TCP with time stamps
MOST_APART = 0.05  # what a record says it sent, of what the forwarder carried
PORT = 29400


class Job:
    """What both systems train: a scenario of replicas in sites, each with one stage."""

    def __init__(self, path):
        self.path = tools.scenario_file(path)
        tables = scenario_text.parsed(self.path.read_text())
        model, parallel, train = (tables.get(name, {}) for name in ("model", "parallel", "train"))
        self.sites = [each.get("name", "") for each in tables.get("datacenter", [])]
        self.ranks = parallel.get("replicas", 1)
        self.parts = train.get("parts", 1)
        if parallel.get("stages", 1) != 1 or parallel.get("microbatches", 1) != 1:
            raise Failure(f"{self.path.name} has several stages or microbatches (DistributedDataParallel "
                          "has one of each). Take train-2dc.")
        if len(self.sites) < 2 or self.ranks % len(self.sites):
            raise Failure(f"{self.path.name} has {self.ranks} replicas in {len(self.sites)} datacenters "
                          "(two or more are needed, with as many replicas each). Take train-2dc.")
        if not all(re.fullmatch("[a-z][a-z0-9]*", site) for site in self.sites):
            raise Failure(f"{self.path.name} has datacenters whose names are no host names. Use letters.")
        try:
            self.model = {"layers": model["layers"], "hidden": model["hidden"], "heads": model["heads"],
                          "kv_heads": model.get("kv_heads", model["heads"]),
                          "intermediate": model["intermediate"], "vocabulary": model["vocabulary"],
                          "sequence": model["sequence_length"]}
            batch = train.get("batch", model["microbatch_size"])
        except KeyError as missing:
            raise Failure(f"{self.path.name} does not give model.{missing.args[0]} (a preset does not "
                          "do here). Write it.") from missing
        batches = batch if isinstance(batch, list) else [batch]
        if len(set(batches)) > 1:
            raise Failure(f"{self.path.name} has batches of {', '.join(map(str, batches))} "
                          "(DistributedDataParallel weighs all replicas alike). Give train.batch one number.")
        self.batch = batches[0]

    def site_of(self, rank):
        return self.sites[rank * len(self.sites) // self.ranks]


def torch_python(named):
    """The first Python that has torch."""
    candidates = [named] if named else [os.environ.get("LONGHAUL_TORCH_PYTHON"), sys.executable,
                                        "/usr/bin/python3"]
    for each in filter(None, candidates):
        if Path(each).is_file() and not children.run(
                [each, "-c", "import torch.distributed as d; assert d.is_available()"],
                capture_output=True).returncode:
            return each
    raise Failure(f"no PyTorch in {' or '.join(filter(None, candidates))}. Install it (Debian: "
                  "python3-torch), or name its Python with --python.", NOT_POSSIBLE)


class Wan:
    """The sites while the body runs; afterwards `bytes_across`, what went from one to another, and
    `packets_across`."""

    def __init__(self, job, options, rate):
        self.job, self.options, self.rate = job, options, rate
        self.bytes_across = self.packets_across = 0

    def __enter__(self):
        done = children.run([WAN, "up", "--name", NAME, "--sites", ",".join(self.job.sites),
                             "--with", "tun", "--latency", self.options.latency,
                             "--node-rate", self.rate], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"the sites could not be made: {done.stderr.strip()}",
                          done.returncode if done.returncode == NOT_POSSIBLE else RUN_FAILED)
        return self

    def __exit__(self, *_):
        done = children.run([WAN, "down", "--name", NAME], capture_output=True, text=True)
        begin = done.stdout.find("{")
        if begin >= 0:
            record = json.loads(done.stdout[begin:])
            paths = record.get("paths", [])
            self.bytes_across = sum(path["bytes"] for path in paths)
            self.packets_across = sum(path["packets"] for path in paths)


def run_inside(command, timeout_s):
    try:
        done = children.run(command, capture_output=True, text=True, timeout_s=timeout_s,
                            env={**os.environ, "LONGHAUL_WAN_NAME": NAME})
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{command[0]} {command[1]} did not end within {timeout_s:g} s (a rank may have "
                      "ended without the others). Give it more --timeout.", RUN_FAILED) from error
    if done.returncode:
        raise Failure("\n".join([f"{command[0]} {command[1]} ended with {done.returncode}.",
                                 *done.stderr.strip().splitlines()[-12:]]), RUN_FAILED)
    return done.stdout


def period_s(ends):
    """Mean time of an iteration in the second half, as bench_train has it."""
    half = len(ends) // 2
    return (ends[-1] - ends[half - 1]) / (len(ends) - half)


def run_ddp(job, options, rate, name, iterations):
    """All ranks by one shell: rank 0's answer is what is printed."""
    hook, in_parts = DDP[name]
    task = {"ranks": job.ranks, "address": "10.83.0.1", "port": PORT, "interface": "wan0",
            "model": job.model, "batch": job.batch, "seed": 1, "hook": hook,
            "buckets": job.parts if in_parts else 0, "iterations": iterations, "optimizer": options.optimizer,
            "learning_rate": options.learning_rate, "text": str(options.text),
            "timeout_s": options.timeout}
    with tempfile.TemporaryDirectory() as directory:
        lines = []
        for rank in range(job.ranks):
            file = Path(directory) / f"{rank}.json"
            file.write_text(json.dumps({**task, "rank": rank}))
            lines.append(f'"{WAN}" exec {job.site_of(rank)} "{options.python}" "{WORKER}" '
                         f'"$(cat {file})" &')
        lines.append("failed=0; for job in $(jobs -p); do wait $job || failed=1; done; exit $failed")
        with Wan(job, options, rate) as wan:
            said = run_inside(["bash", "-c", "\n".join(lines)], options.timeout)
    answer = json.loads(said.strip().splitlines()[-1])
    return {"commit": None, "iteration_ns": round(1e9 * period_s(answer["ends_s"])), "loss": answer["losses"][-1],
            "first_loss": answer["losses"][0], "parameters": answer["parameters"],
            "torch": answer["torch"], "bytes_across": wan.bytes_across,
            "packets_across": wan.packets_across, "wan_payload_bytes": None}


def run_ours(job, options, rate, method, iterations):
    with tempfile.TemporaryDirectory() as directory:
        with Wan(job, options, rate) as wan:
            run_inside([WAN, "mpi", "-n", job.ranks, tools.binary("bench_train"), job.path,
                        "--emulate", "off", "--methods", method, "--data", f"text:{options.text}",
                        "--optimizer", options.optimizer, "--lr-grid", options.learning_rate,
                        "--max-iterations", iterations, "--points", 1, "--out", directory],
                       options.timeout)
        return row_of(records.read_record(directory), iterations, options.iterations, wan)


def row_of(record, iterations, asked, wan):
    """Of our side of a run: an update's share of an exchange, for methods that make several."""
    curve = record["train"]["curves"][0]
    steps = records.local_steps(curve)
    if (asked // 2) % steps or asked % steps:
        raise Failure(f"{curve['method']} makes {steps} updates an exchange, and is held over {asked} and "
                      f"{asked // 2} iterations (both are to be whole exchanges). Give --iterations "
                      f"{max(1, asked // (2 * steps)) * 2 * steps}.")
    period = curve["period_ns"]  # none of one exchange
    return {"commit": provenance.commit_of(record), "iteration_ns": period and round(period / steps),
            "loss": curve["losses"][-1],
            "first_loss": curve["losses"][0], "parameters": None, "torch": None,
            "bytes_across": wan.bytes_across, "packets_across": wan.packets_across,
            "wan_payload_bytes": curve["wan"]["payload_bytes"] // iterations, "check": curve["check"]}


def carried_over_payload(more_bytes, more_packets, iterations, payload):
    """What the forwarder carried of so many iterations, without headers, over what the record of
    bench_train says that each sent; None of PyTorch, which says nothing."""
    return payload and round((more_bytes - HEADERS * more_packets) / iterations / payload, 4)


def measured_at(job, options, rate):
    """Every system `--repeat` times, in turn, so that a change of the machine meets all of them. A run
    of half the iterations tells what an iteration sends from what a start and an end do."""
    def run(name, iterations):
        return (run_ddp(job, options, rate, name, iterations) if name in DDP
                else run_ours(job, options, rate, name, iterations))
    runs = {name: [] for name in (*DDP, *options.methods)}
    for repetition in range(options.repeat):
        for name, of_system in runs.items():
            progress.step(f"{rate}: {name}, {repetition + 1} of {options.repeat}")
            of_system.append(run(name, options.iterations))
    half = options.iterations // 2
    rows = []
    for name, of_system in runs.items():
        times = [run["iteration_ns"] for run in of_system]
        shorter, later = run(name, half), options.iterations - half
        more, packets = (of_system[0][key] - shorter[key] for key in ("bytes_across", "packets_across"))
        rows.append({"system": name, **of_system[0], "wan_bytes": more // later,
                     "carried_over_payload": carried_over_payload(more, packets, later,
                                                                  of_system[0]["wan_payload_bytes"]),
                     "iteration_ns": round(statistics.median(times)),
                     "least_ns": min(times), "largest_ns": max(times), "runs": len(times)})
    by_name = {row["system"]: row["iteration_ns"] for row in rows}
    fastest = min(DENSE, key=by_name.get)
    for row in rows:
        row["speed_up"] = round(by_name[fastest] / row["iteration_ns"], 3)
    theirs = min(by_name[name] for name in DENSE if name in DDP)
    return {"rate": rate, "fastest_dense": fastest, "none_over_ddp": round(by_name["none"] / theirs, 3),
            "rows": rows}


def text_of(answer):
    lines = [f"{answer['scenario']}: {answer['ranks']} ranks, {answer['latency']} one way, "
             f"{answer['iterations']} iterations, measured over network namespaces; median of "
             f"{answer['repeat']} runs (least, largest)"]
    for at in answer["rates"]:
        lines += ["", f"{at['rate']} a site; none takes {at['none_over_ddp']:g} of DDP's time",
                  f"{'system':<12}{'iteration':>12}{'range':>22}{'WAN an iteration':>18}"
                  f"{'speed-up':>10}{'loss':>8}"]
        for row in at["rows"]:
            span = f"{row['least_ns'] / 1e6:.2f} to {row['largest_ns'] / 1e6:.2f}"
            lines.append(f"{row['system']:<12}{row['iteration_ns'] / 1e6:>9.2f} ms{span:>22}"
                         f"{row['wan_bytes'] / 1e3:>15.1f} kB{row['speed_up']:>10.2f}{row['loss']:>8.3f}")
        for row in apart(at):
            lines.append(f"{row['system']}: the forwarder carried {row['carried_over_payload']:g} of what "
                         "its record says it sent")
    lines += ["", "Speed-up: over the fastest of ddp, ddp+buckets and none. ddp..: torch "
                  f"{answer['torch']}, gloo. WAN bytes are the forwarder's, with all headers."]
    return "\n".join(lines)


def apart(at):
    """Systems whose record does not say what crossed the WAN."""
    return [row for row in at["rows"] if row["carried_over_payload"] is not None
            and abs(row["carried_over_payload"] - 1) > MOST_APART]


def methods_of(text):
    """As bench_train reads them: what begins with a digit is of the method before."""
    return [each for each in re.split(",(?![0-9])", text) if each]


def read_options():
    parser = argparse.ArgumentParser(prog="compare-ddp", description=__doc__)
    parser.add_argument("scenario", nargs="?", default="train-2dc", metavar="SCENARIO",
                        help="replicas of one stage (default: train-2dc)")
    parser.add_argument("--rates", default="20Mbps,100Mbps", metavar="R,R..", help="of a site, each way")
    parser.add_argument("--latency", default="10ms", help="one way (default: 10ms)")
    parser.add_argument("--methods", default="none,fp16,stella", metavar="M,M..",
                        help="of bench_train; none is always among them")
    parser.add_argument("--iterations", type=int, default=40, metavar="N")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default: 3)")
    parser.add_argument("--optimizer", default="adamw", choices=("sgd", "momentum", "nesterov", "adamw"))
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--text", type=Path, metavar="FILE",
                        default=Path(sysconfig.get_path("stdlib")) / "pydoc_data" / "topics.py",
                        help="what to learn (default: a file of Python's own library)")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="of a run")
    parser.add_argument("--python", metavar="FILE", help="a Python that has torch")
    parser.add_argument("--out", type=result_name, metavar="FILE", help="the answer as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.iterations < 4 or options.repeat < 1:
        raise Failure("fewer than 4 iterations or 1 run have no time of an iteration. Give more.")
    if not options.text.is_file():
        raise Failure(f"no text {options.text}. Name a file with --text.")
    options.methods = methods_of(options.methods)
    if "none" not in options.methods:
        options.methods.insert(0, "none")
    options.text = options.text.resolve()
    return options


def main():
    options = read_options()
    job = Job(options.scenario)
    options.python = torch_python(options.python)
    answer = {"numbers": "measured", "command": " ".join(["scripts/compare-ddp", *sys.argv[1:]]),
              "scenario": job.path.stem, "ranks": job.ranks, "latency": options.latency,
              "iterations": options.iterations, "repeat": options.repeat,
              "optimizer": options.optimizer, "learning_rate": options.learning_rate,
              "text_bytes": options.text.stat().st_size, "load_average": os.getloadavg()[0],
              "rates": [measured_at(job, options, rate) for rate in options.rates.split(",")]}
    answer["torch"] = answer["rates"][0]["rows"][0]["torch"]
    answer["commit"] = next(row["commit"] for row in answer["rates"][0]["rows"] if row["commit"])
    answer["load_average_after"] = os.getloadavg()[0]
    if options.out:
        Path(options.out).write_text(json.dumps(answer, indent=2) + "\n")
    print(json.dumps(answer, indent=2) if options.json else text_of(answer))
    return 0 if all(at["none_over_ddp"] <= 1 and not apart(at) for at in answer["rates"]) else 1


if __name__ == "__main__":
    sys.exit(guarded(main, "compare-ddp"))
