"""Iterations of StellaTrain and of the systems that it is compared with, by `longhaul simulate`.

Each is simulated by what the paper says of it; docs/figures.md lists what it leaves open."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pandas as pd

from longhaul import progress
from longhaul.figures.stella import cluster
from longhaul.papers import claims
from longhaul.running import tools

TRACE_S = 300               # benchmarks/scenarios/stella-wan.csv repeats
ON_TRACE = {"ddp": 30, "ddp-hetero": 30, "espresso": 90, "compress": 1000}  # iterations; or 1500
LABELS = {"ddp": "PyTorch DDP", "ddp-hetero": "DDP + Hetero", "espresso": "Espresso + Hetero",
          "compress": "BytePS-Compress + Hetero", "stella-eq6": "StellaTrain, rate of equation 6",
          "stella": "StellaTrain, exchange hidden"}
COLOURS = {"ddp": "#1f1f1f", "ddp-hetero": "#8a8a8a", "espresso": "#c9561a", "compress": "#3fa7d6",
           "stella-eq6": "#bf8fe0", "stella": "#c2185b"}
BASELINES = ("ddp", "ddp-hetero", "espresso", "compress")
HETERO = BASELINES[1:]      # by the scenario's train.hetero
STELLA = ("stella-eq6", "stella")
BATCHES = ("same", "full")  # of baselines: StellaTrain's, or FULL times as many samples
RATES = {100: 0.01, 500: 0.05, 1000: 0.10}  # of numbers, kept by systems that compress (section 5)
TENSORS = pd.read_csv(tools.ROOT / "results" / "papers" / "stella-tensors.csv", comment="#")
BYTES = {"none": 4, "fp16": 2}  # of a number, without those of sets: 8
PARTS = 12                      # of the scenarios
GPU_COMPRESSION_S = 33.5e-3 / 0.84  # of 88 M: 33.5 ms are 16% faster than on GPUs (5.3)
ON_HOST = {"copy_out": 2.44, "compress": 2.79, "merge": 0.11, "optimize": 0.11, "copy_in": 2.44}
ITERATIONS = 240            # of StellaTrain: faster replicas run ahead at first, by its staleness
FEW = 6                     # of methods without staleness


@dataclass(frozen=True)
class Run:
    """One method at one point. `more`: overrides; `at`: columns of its row."""

    method: str
    model: str
    mbps: float
    where: cluster.Cluster = cluster.EIGHT
    batches: str = "same"
    more: tuple = ()
    at: tuple = field(default=())


def ask(command):
    return json.loads(tools.run(command))


def ask_all(commands):
    """Answers in the order of the commands."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        answers = []
        for answer in pool.map(ask, commands):
            answers.append(answer)
            progress.step(f"prediction {len(answers)} of {len(commands)}")
        return answers


def suggested(run):
    """Numbers kept of what is compressed: the rate suggested for the nearest bandwidth."""
    return RATES[min(RATES, key=lambda one: abs(one - run.mbps))]


def espresso(run):
    """(bytes a number, share of the numbers in tensors that are compressed): the engine's choice
    for each tensor of the model."""
    own = TENSORS[TENSORS["model"] == run.model]
    numbers = own["numbers"] * own["tensors"]
    chosen = own[f"at_{100 * suggested(run):.0f}_percent"]
    share = {name: numbers[chosen == name].sum() / numbers.sum() for name in (*BYTES, "topk")}
    size = 8 * suggested(run) * share["topk"] + sum(BYTES[name] * share[name] for name in BYTES)
    return size, share["topk"]


def kept(run, seconds):
    """Numbers kept of all replicas' gradients, by the method."""
    if run.method == "compress":
        return suggested(run)
    if run.method == "espresso":
        compressed = espresso(run)[1]
        return 1 - compressed + compressed * suggested(run)
    share = 1 - cluster.least_rate(run.model, run.mbps * 1e6, seconds)
    if run.method == "stella":
        # A set of 8 bytes a number is handed on N - 1 times, each 1/N of what is kept.
        replicas = len(run.where.gpus)
        share = min(1.0, run.mbps * 1e6 * seconds /
                    (64 * cluster.parameters(run.model) * (replicas - 1) / replicas))
    return share


def batch_of(run):
    gpus = run.where.gpus
    seconds = cluster.saturated_seconds(run.model, gpus)
    if run.batches == "full" and run.method in BASELINES:
        seconds *= cluster.FULL
    batch = cluster.by_speed(run.model, gpus, seconds)
    if run.method == "ddp":
        return cluster.equal(batch)
    return cluster.divided(run.model, gpus, sum(batch)) if run.method in HETERO else batch


def host_costs(model, names=tuple(ON_HOST)):
    """Overrides with the scenarios' costs, by parameters."""
    scale = cluster.parameters(model) / cluster.parameters("vit-b-16")
    return tuple(f"train.costs.{name}={ON_HOST[name] * scale if name in names else 0:.4f}ms"
                 for name in ON_HOST)


def overrides(run):
    """What `--set` says of a run."""
    batch = batch_of(run)
    seconds = cluster.slowest(run.model, run.where.gpus, batch)
    asked = cluster.spread(sum(batch), len(batch)) if run.method in HETERO else batch
    words = [f"train.preset={run.model}", f"train.batch=[{','.join(map(str, asked))}]"]
    if run.method in HETERO:
        words.append("train.hetero=true")
    if run.where is not cluster.MULTICLOUD:
        words.append(f"link.bandwidth={run.mbps:g}Mbps")
    if run.method in ("ddp", "ddp-hetero"):
        words.append("parallel.gradient_sync=all-reduce")
    elif run.method in STELLA:
        words += [f"train.compress.keep={kept(run, seconds):.6g}", *host_costs(run.model)]
    else:
        words += ["train.staleness=0", "train.compress.exchange=sites",
                  "train.compress.share=each", *host_costs(run.model, ())]
        added = GPU_COMPRESSION_S * cluster.parameters(run.model) / 88e6
        if run.method == "espresso":
            size, compressed = espresso(run)
            added *= compressed
            message = round(size * cluster.parameters(run.model) / PARTS)
            words += ["train.compress.method=fp16", f"train.message={message}B"]
        else:
            words += ["train.compress.method=topk", f"train.compress.keep={kept(run, seconds):g}"]
        # Compression holds the GPU: its blocks take as much longer.
        words += [f"datacenter.{name}.speed={seconds / (seconds + added):.6g}"
                  for name in sites(run.where)]
    return [*words, *run.more]


def sites(chosen):
    return ("lab", "cloud" if chosen is cluster.MULTICLOUD else "remote")


def iterations_of(run):
    if run.where is cluster.MULTICLOUD:
        return ON_TRACE.get(run.method, 1500)
    if "train.staleness=0" in run.more:
        return 4 * FEW
    return ITERATIONS if run.method in STELLA else FEW


def command_of(run):
    schedule = "1f1b" if run.method in ("ddp", "ddp-hetero") else "stella"
    iterations = iterations_of(run)
    words = [tools.binary("longhaul"), "simulate", tools.scenario_file(run.where.scenario),
             "--schedule", schedule, "--iterations", iterations, "--json"]
    words += tools.set_words(overrides(run))
    return words


def seconds_of(answer):
    """Of an iteration: of a stream's second half, or the mean under the links' weather."""
    if answer.get("stream"):
        return answer["stream"]["period_ns"] * 1e-9
    weather = answer["under_weather"][0]
    return weather["all_ns"] / len(weather["iterations"]) * 1e-9


def starts_of(answer):
    """Of iterations, in seconds."""
    if answer.get("stream"):
        return [start * 1e-9 for start in answer["stream"]["iteration_start_ns"]]
    return [one["begin_ns"] * 1e-9 for one in answer["under_weather"][0]["iterations"]]


def seconds_over_trace(answer):
    """Of an iteration, in the mean of whole turns of the trace."""
    starts = starts_of(answer)
    turns = max(1, int(starts[-1] / TRACE_S)) * TRACE_S
    return turns / sum(start < turns for start in starts)


def row_of(run, answer):
    batch = batch_of(run)
    traced = run.where is cluster.MULTICLOUD
    seconds = seconds_over_trace(answer) if traced else seconds_of(answer)
    compute = cluster.slowest(run.model, run.where.gpus, batch)
    stream = answer.get("stream") or {}
    keep = kept(run, compute) if run.method in (*STELLA, "compress", "espresso") else 1.0
    return {"model": run.model, "mbps": run.mbps, "method": run.method, "batches": run.batches,
            "samples": sum(batch), "keep_percent": 100 * keep, "iteration_ms": 1e3 * seconds,
            "blocks_ms": 1e3 * compute, "iterations_per_s": 1 / seconds,
            "samples_per_s": sum(batch) / seconds,
            "fresh_percent": 100 * stream["fresh_share"] if stream.get("fresh_share") is not None
            else float("nan")} | dict(run.at)


def numbers(runs):
    """A row for each run."""
    answers = ask_all([command_of(run) for run in runs])
    return pd.DataFrame([row_of(run, answer) for run, answer in zip(runs, answers)])


def grid(models, rates, chosen=cluster.EIGHT, methods=tuple(LABELS)):
    """Runs of all methods: baselines with either batch, StellaTrain with its own."""
    return [Run(method, model, mbps, chosen, batches)
            for model in models for mbps in rates for method in methods
            for batches in (BATCHES if method in BASELINES else BATCHES[:1])]


def speedups(table, over, readings=STELLA):
    """A row for each model, rate, baseline of `over`, reading of StellaTrain's compression and of
    the batches: iteration speed of StellaTrain over that of the baseline, in samples a second (the
    paper's equation 4)."""
    rows = []
    for (model, mbps), own in table.groupby(["model", "mbps"], sort=False):
        speed = own.set_index(["method", "batches"])["samples_per_s"]
        rows += [{"model": model, "mbps": mbps, "stella": stella, "over": baseline,
                  "batches": batches, "times": speed[stella, "same"] / speed[baseline, batches]}
                 for stella in readings for baseline in over for batches in BATCHES]
    return pd.DataFrame(rows)


def by_reading(found):
    """{reading: speedups} of speedups(): hidden or equation 6, equal batches or full memories."""
    return {key: list(own["times"]) for key, own in found.groupby(["stella", "batches"])}


def said(readings, form=".1f"):
    """"120.1 to 240.2 (hidden, same batches); ..." for people."""
    def first(item):
        return (item[0][1] != "same", item[0][0])

    names = {"stella": "hidden", "stella-eq6": "eq. 6", "stella-least": "hidden at 50 Mbps"}
    return "; ".join(f"{claims.spread(values, form)} ({names[stella]}, {batches} batches)"
                     for (stella, batches), values in sorted(readings.items(), key=first))


def up_to(claim, readings):
    """Verdict on "up to X": the largest gain under each reading."""
    return claims.over_inputs([max(values) for values in readings.values()],
                              lambda one: claims.at_least(one, claims.value(claim)))


def of_range(claim, readings):
    """Verdict on "X to Y": both ends under each reading; one of them holds: partly."""
    low, high = claims.values(claim)

    def both(values):
        ends = {claims.at_least(min(values), low), claims.at_least(max(values), high)}
        return ends.pop() if len(ends) == 1 else claims.PARTLY

    return claims.over_inputs(readings.values(), both)


NOT_HERE = ("Simulated iteration speed alone: convergence, at most 18% slower by the paper, is not in it.")
