"""vTrain figure 9 on this machine: one profile of operators, then configurations of real layers that
it has not seen, each run on ranks and predicted from the profile alone.

The profile is what bench_profile measured of a few base models, with the collectives over two ranks;
a configuration's operators follow from it by the laws of `longhaul profile needed`, and its time by
`simulate`. Ranks run the same scenario without a profile: what they compute takes what it takes. The
optimizer steps between iterations of real layers, so that it is left out of both."""

import csv
import json
import math
import os
import random
import shlex
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from longhaul import provenance, records
from longhaul.errors import RUN_FAILED, Failure
from longhaul.running import runs, tools

# hidden, intermediate, heads, kv_heads, sequence, micro-batch: their corners hold what is drawn.
BASES = ((96, 256, 4, 2, 64, 1), (160, 448, 4, 4, 128, 1), (256, 704, 8, 2, 64, 2),
         (320, 896, 8, 8, 192, 1), (224, 608, 4, 4, 192, 2))
RANKS = ((1, 1, 1), (1, 2, 1), (1, 1, 2), (2, 1, 1))  # (t, d, p)
SCHEDULES = ("1f1b", "gpipe", "zb-h1")
VOCABULARY = 512
MOST_FLOPS = 1.2e10    # of an iteration on one rank: some 0.3 s on one core
SEED, COUNT = 9, 64
FIELDS = ("part", "block", "operator", "shape", "type", "calls", "median_ns")
ADD_OF_COPY = 1.5      # an addition moves three values where a copy moves two
NINETY = 1.645         # of a normal distribution, on each side
SIGMA_OF_MEAN = 1.2533  # a normal distribution's standard deviation over its mean absolute error


@dataclass(frozen=True)
class Configuration:
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    sequence: int
    micro_batch: int
    microbatches: int
    recompute: bool
    schedule: str
    tensor: int
    data: int
    pipeline: int

    @property
    def name(self):
        ranks = f"{self.tensor}-{self.data}-{self.pipeline}"
        again = "r" if self.recompute else ""
        return (f"l{self.layers}-h{self.hidden}-s{self.sequence}-b{self.micro_batch}"
                f"-m{self.microbatches}{again}-{self.schedule}-{ranks}")

    @property
    def ranks(self):
        return self.tensor * self.data * self.pipeline

    def flops(self):
        """Of an iteration on one rank, recomputation included."""
        weights = (self.layers - 2) * (2 * self.hidden ** 2 * (1 + self.kv_heads / self.heads)
                                       + 3 * self.hidden * self.intermediate)
        weights += VOCABULARY * self.hidden
        tokens = self.sequence * self.micro_batch * self.microbatches
        return (8 if self.recompute else 6) * weights * tokens / (self.tensor * self.pipeline)

    def scenario(self, profile):
        """TOML; `profile` is a file's name beside it, or empty."""
        text = scenario_text(self.name, self, self.layers)
        text += (f"[parallel]\nstages = {self.pipeline}\nreplicas = {self.data}\n"
                 f"tensor = {self.tensor}\nmicrobatches = {self.microbatches}\n"
                 f"[memory]\nrecompute = {str(self.recompute).lower()}\n"
                 f'[[datacenter]]\nname = "local"\ngpus = {self.ranks}\n'
                 f'[[node]]\ndatacenter = "local"\ngpus = {self.ranks}\ndevice = "1GB/s"\n'
                 'internal = "8Gbps"\n')
        return text + (f'[costs]\nprofile = "{profile}"\noptimizer = "0ns"\n' if profile else "")


def scenario_text(name, model, layers):
    return (f'[scenario]\nname = "{name}"\n[model]\nname = "{name}"\nlayers = {layers}\n'
            f"hidden = {model.hidden}\nintermediate = {model.intermediate}\n"
            f"heads = {model.heads}\nkv_heads = {model.kv_heads}\nvocabulary = {VOCABULARY}\n"
            f"sequence_length = {model.sequence}\nmicrobatch_size = {model.micro_batch}\n"
            'precision = "fp32"\n')


def configurations(count=COUNT):
    """The same on every machine: drawn, none of a base model's (hidden, sequence, micro-batch)."""
    draw = random.Random(SEED)
    seen = {(hidden, sequence, batch) for hidden, _, _, _, sequence, batch in BASES}
    found = {}
    while len(found) < count:
        tensor, data, pipeline = RANKS[len(found) % len(RANKS)]
        hidden = draw.choice((96, 128, 160, 192, 224, 256, 288, 320))
        heads = draw.choice((4, 8))
        recompute = draw.random() < 0.3 and tensor == 1
        schedule = draw.choice(SCHEDULES) if pipeline > 1 else draw.choice(SCHEDULES[:2])
        one = Configuration(
            layers=draw.choice((4, 6, 8)), hidden=hidden,
            intermediate=32 * round(hidden * 2.75 / 32), heads=heads,
            kv_heads=draw.choice((heads, heads // 2)), sequence=draw.choice((64, 96, 128, 160)),
            micro_batch=draw.choice((1, 2)), microbatches=draw.choice((2, 4, 6, 8)),
            recompute=recompute, schedule=schedule, tensor=tensor, data=data, pipeline=pipeline)
        if (hidden, one.sequence, one.micro_batch) not in seen and one.flops() <= MOST_FLOPS:
            found.setdefault(one.name, one)
    return list(found.values())


def measure(directory, options):
    """Runs what is not there yet: base profiles, then each configuration."""
    directory = Path(directory)
    os.makedirs(directory, exist_ok=True)
    for place, base in enumerate(BASES):
        play(directory / f"profile-{place}", directory, profile_command(directory, place, base,
                                                                         options.samples))
    profile = merged_profile(directory)
    for one in configurations(options.limit):
        target = directory / one.name
        if not records.is_finished(target):
            write_scenario(directory, one, profile)
            play(target, directory, run_command(directory, one, options.iterations))


def play(target, directory, command):
    if records.is_finished(target):
        return
    tools.say(shlex.join(command))
    runs.run(["env", "-C", tools.ROOT, *command], target, directory)


def words(*parts):
    return [str(part) for part in parts]


def profile_command(directory, place, base, samples):
    """Two ranks measure at once, as two run."""
    model = Configuration(6, *base, 4, False, "1f1b", 1, 1, 2)
    path = directory / f"base-{place}.toml"
    path.write_text(scenario_text(f"base-{place}", model, 6)
                    + "[parallel]\nstages = 2\nmicrobatches = 4\n", encoding="utf-8")
    return words("scripts/mpi", "-n", 2, tools.from_root(tools.binary("bench_profile")),
                 tools.from_root(path), "--samples", samples, "--out",
                 tools.from_root(directory / f"profile-{place}"))


def overlap_of(one):
    """Tensor ranks need operators and their collectives below blocks."""
    return ("--overlap", "serial") if one.tensor > 1 else ()


def run_command(directory, one, iterations):
    return words("scripts/mpi", "-n", one.ranks, tools.from_root(tools.binary("bench_pipeline")),
                 tools.from_root(directory / f"{one.name}.bare.toml"), "--compute", "real",
                 "--schedule", one.schedule, *overlap_of(one), "--iterations", iterations,
                 "--warmup", 2,
                 "--check-gradients", "first", "--trace", "off", "--out",
                 tools.from_root(directory / one.name))


def merged_profile(directory):
    """operators.csv of all base models, each shape once, with additions and collectives."""
    rows = {}
    for place in range(len(BASES)):
        for row in read_csv(directory / f"profile-{place}" / "operators.csv"):
            keep(rows, row)
            if row["operator"] == "copy":
                median = round(ADD_OF_COPY * float(row["median_ns"]))
                keep(rows, {**row, "operator": "add", "median_ns": median})
        for row in read_csv(directory / f"profile-{place}" / "collectives.csv"):
            shape = f"bytes={row['size_bytes']} ranks={row['ranks']} nodes={row['nodes']}"
            keep(rows, {"part": "layer", "block": "F", "operator": row["operation"],
                        "shape": shape, "type": "f32", "calls": 1,
                        "median_ns": row["median_ns"]})
    path = directory / "profile.csv"
    write_operators(path, rows.values())
    return path


def keep(rows, row):
    key = tuple(row[name] for name in ("part", "block", "operator", "shape", "type"))
    rows.setdefault(key, {name: row[name] for name in FIELDS})


def read_csv(path):
    try:
        with open(path, encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise Failure(f"{path}: it cannot be read ({error}). Measure it again: remove its "
                      "directory.") from error


def write_scenario(directory, one, profile):
    """The scenario alone and with the profile that follows for it; beside it that profile's
    operators and what the scenario is predicted to take."""
    bare = directory / f"{one.name}.bare.toml"
    bare.write_text(one.scenario(""), encoding="utf-8")
    answer = needed_of(bare, profile)
    own = directory / f"{one.name}.csv"
    if one.tensor > 1:
        alone = directory / f"{one.name}.one.toml"
        alone.write_text(replace(one, tensor=1).scenario(""), encoding="utf-8")
        answer["operators"] = with_whole_ends(answer["operators"],
                                              needed_of(alone, profile)["operators"])
    write_operators(own, answer["operators"])
    whole = directory / f"{one.name}.toml"
    whole.write_text(one.scenario(own.name), encoding="utf-8")
    simulated = json.loads(tools.run([tools.binary("longhaul"), "simulate", whole, "--schedule",
                                      one.schedule, *overlap_of(one), "--json"]))
    answer["predicted_ns"] = simulated["schedules"][0]["makespan_ns"]
    (directory / f"{one.name}.json").write_text(json.dumps(answer), encoding="utf-8")


def needed_of(scenario, profile):
    """What `longhaul profile needed` says of it, with the times of the profile's laws."""
    return json.loads(tools.run([tools.binary("longhaul"), "profile", "needed", scenario, "--profile",
                                 profile, "--json"]))


def with_whole_ends(operators, alone):
    """Of tensor ranks with real layers, which hold embedding and head whole: these take what one
    rank's do (`alone`), without collectives."""
    times = {(row["part"], row["block"], row["operator"]): row["median_ns"] for row in alone}
    return [row if row["part"] == "layer" else
            {**row, "median_ns": times.get((row["part"], row["block"], row["operator"]), 0)}
            for row in operators]


def write_operators(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def left_out_errors(profile):
    """{operator: mean error of its law, each shape from the others}."""
    answer = json.loads(tools.run([tools.binary("longhaul"), "profile", "show", profile, "--json"]))
    return {row["operator"]: row["left_out"] or 0 for row in answer["laws"]}


def beside_each_other(directory):
    """The standard deviation, of the logarithm, of measured blocks over the sums of their operators:
    what calls do to each other, by the profile alone."""
    ratios = []
    for place in range(len(BASES)):
        record = records.read_record(directory / f"profile-{place}")
        sums = {}
        for row in read_csv(directory / f"profile-{place}" / "operators.csv"):
            if row["part"] == "layer":
                sums[row["block"]] = (sums.get(row["block"], 0)
                                      + float(row["median_ns"]) * float(row["calls"]))
        layer = next(part for part in record["parts"] if part["name"] == "layer")
        ratios += [math.log(layer["blocks"][block]["measured_median_ns"] / sums[block])
                   for block in "FDW" if sums.get(block)]
    return math.sqrt(statistics.fmean(ratio ** 2 for ratio in ratios))


def spread(answer, errors, between_calls):
    """Of the logarithm of a configuration's time: the laws' errors by their share of it, and that
    of calls beside each other."""
    shares = {}
    for row in answer["operators"]:
        if row["block"] != "update" and row["operator"] not in ("all_reduce", "all_gather"):
            shares[row["operator"]] = (shares.get(row["operator"], 0)
                                       + row["calls"] * row["median_ns"])
    whole = sum(shares.values())
    variance = between_calls ** 2
    for operator, time in shares.items():
        variance += (SIGMA_OF_MEAN * errors.get(operator, 0) * time / whole) ** 2
    return math.sqrt(variance)


def table_of(directory, count=COUNT):
    """A row for each configuration that was run."""
    directory = Path(directory)
    errors = left_out_errors(directory / "profile.csv")
    between_calls = beside_each_other(directory)
    rows = []
    for one in configurations(count):
        target = directory / one.name
        if records.is_finished(target):
            answer = json.loads((directory / f"{one.name}.json").read_text(encoding="utf-8"))
            rows.append(row_of(one, target, answer["predicted_ns"] / 1e6,
                               spread(answer, errors, between_calls)))
    if not rows:
        raise Failure(f"{directory}: no configuration was run (nothing to draw). Give --measure.")
    return pd.DataFrame(rows)


def row_of(one, target, predicted, sigma):
    """`predicted`: ms; `sigma`: of its logarithm."""
    record = records.read_record(target)
    entry = record["schedules"][0]
    if entry.get("check") != "ok":
        raise Failure(f"{target.name} computed something wrong (its check says "
                      f"{entry.get('check')}). Its times mean nothing.", RUN_FAILED)
    median = entry["measured_median_ns"] / 1e6
    row = {"row": one.name, "layers": one.layers, "hidden": one.hidden, "sequence": one.sequence,
           "micro_batch": one.micro_batch, "microbatches": one.microbatches,
           "recompute": one.recompute, "schedule": one.schedule, "tensor": one.tensor,
           "data": one.data, "pipeline": one.pipeline, "n": entry["n"],
           "measured_ms": median, "predicted_ms": predicted,
           "low_ms": predicted * math.exp(-NINETY * sigma),
           "high_ms": predicted * math.exp(NINETY * sigma),
           "off_percent": round(100 * (predicted / median - 1), 3)}
    facts = provenance.of(record, target)
    facts["time_scale"] = record.get("time_scale")
    return provenance.add(row, facts)
