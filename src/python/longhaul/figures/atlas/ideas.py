"""How much each idea brings: temporal sharing of the WAN, delay-aware orders, D and W apart."""

import json
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import ideas_table
from longhaul.records import is_finished, overrides_of, pipeline_table
from longhaul.running import measuring, runs, tools

FIGURE = Figure(
    "atlas-ideas",
    summary=("what sharing in time, delay-aware orders, D/W split bring alone and together (12 "
             "GPUs)"),
    shows=("gain of temporal sharing, delay-aware orders and the D/W split, alone and together "
           "([planner.md](planner.md))"),
    options="[--measure]",
    repeat=Repeat("atlas", seconds=270, simulate=("--simulate",), measure=("--measure",), minutes=10))
SCENARIO = "atlas-measured"
MOVES = 200_000
STAGES = 4
TRANSFER_NS = 53_687_091  # 32 MiB at 5 Gbps
ROWS = ("1f1b", "varuna", "cross-ud", "best")
SHARES = "atlas+"
CELLS = ("atlas", "atlas-even")  # share by themselves, and know whole backward passes alone
GROUP = ["ratio", "microbatches", "latency_ms", "budget", "kind"]


@dataclass(frozen=True)
class Place:
    """A column of the table: the inputs of a comparison."""

    ratio: float      # transfer of an activation at one node's rate, in F
    microbatches: int
    latency_ms: int
    budget: float     # activations of a device, in min(P, M)

    @property
    def text(self):
        return f"M={self.microbatches}\n{self.latency_ms} ms\n{self.budget:g}x"

    @property
    def overrides(self):
        return (f"parallel.microbatches={self.microbatches}", f"link.latency={self.latency_ms}ms",
                f"memory.budget={self.budget:g}")

    @property
    def key(self):
        return self.ratio, self.microbatches, self.latency_ms, self.budget


@dataclass(frozen=True)
class Kind:
    """How a backward pass runs."""

    split: bool
    recompute: bool

    @property
    def text(self):
        return ("D/W" if self.split else "B") + (", R" if self.recompute else "")

    def overrides(self, ratio):
        """`whole`: D takes as long as B, W no time, so that no schedule gains by W."""
        forward = round(TRANSFER_NS / ratio)
        gradient, weight = (forward, forward) if self.split else (2 * forward, 0)
        return (f"costs.forward={forward}ns", f"costs.recompute={forward}ns",
                f"costs.backward={2 * forward}ns", f"costs.dgrad={gradient}ns",
                f"costs.wgrad={weight}ns", f"memory.recompute={str(self.recompute).lower()}")


KINDS = (Kind(False, True), Kind(True, True), Kind(False, False), Kind(True, False))


def add_arguments(parser):
    measuring.add_arguments(parser, "runs/atlas-ideas", 10)
    parser.add_argument("--ratios", default="3,3.5,4", metavar="X[,X]",
                        help="transfer of an activation in F (default: %(default)s)")
    parser.add_argument("--microbatches", default="4,16", metavar="M[,M]",
                        help="(default: %(default)s)")
    parser.add_argument("--latencies", default="10,40", metavar="MS[,MS]",
                        help="one way (default: %(default)s)")
    parser.add_argument("--search-moves", type=int, default=MOVES, metavar="N",
                        help="how long best and atlas+best look (default: %(default)s moves)")


def draw(options):
    places = [Place(float(ratio), int(microbatches), int(latency), budget)
              for ratio in options.ratios.split(",")
              for microbatches in options.microbatches.split(",")
              for budget in budgets(int(microbatches))
              for latency in options.latencies.split(",")]
    files = Path(tempfile.gettempdir()) / "longhaul-atlas-ideas"
    if options.measure or options.results or measuring.is_dry(options):
        files = Path(options.results or options.default_results).resolve() / "schedules"
    table = pd.DataFrame([row for place in places for kind in KINDS
                          for row in compare(place, kind, options, files)])
    results = None
    if options.measure or options.results or measuring.is_dry(options):
        results = Path(options.results or options.default_results)
    if options.measure or measuring.is_dry(options):
        measure(table, results, options)
    if measuring.is_dry(options):
        return []
    table = with_measured(table, results)
    gains = ideas_table.gains_of(table)
    return [Drawn(FIGURE.name, ideas_table.times(table, places, headings()), table),
            Drawn(f"{FIGURE.name}-gains", ideas_table.gains(gains, places), gains)]


def budgets(microbatches):
    """That of the others, and one at which Varuna fits, which runs every F as early as it can."""
    return sorted({1.0, max(1.0, microbatches / STAGES)})


def names_of(kind):
    """(row of the table, name that the tool is asked for). 1F1B with D and W apart is ZB-H1."""
    return [(row, "zb-h1" if row == "1f1b" and kind.split else row) for row in ROWS]


def headings():
    """(text of a row, kind, row, share)"""
    found = []
    for kind in KINDS:
        found += [(f"{SHARES if share == 'shared' else ''}{name}, {kind.text}", kind.text, row,
                   share)
                  for row, name in names_of(kind) for share in ("own", "shared")]
        if not kind.split:
            found += [(f"{name}, {kind.text}", kind.text, name, "shared") for name in CELLS]
    return found


def compare(place, kind, options, files):
    """A row for each schedule, all written to files, so that ranks run the same ones."""
    overrides = (*place.overrides, *kind.overrides(place.ratio))
    directory = files / re.sub(r"[^0-9a-zA-Z.]+", "-",
                               f"{place.ratio:g} F {place.text} {kind.text}")
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for row, name in names_of(kind):
        wanted[row, "own"] = made(name, directory, overrides, options)
        if row == "varuna" and kind.split:
            split_backward(wanted[row, "own"])
            name = wanted[row, "own"]
        wanted[row, "shared"] = made(f"{SHARES}{name}", directory, overrides, options)
    if not kind.split:
        for name in CELLS:
            wanted[name, "shared"] = made(name, directory, overrides, options)
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(SCENARIO), "--schedule",
               ",".join(map(str, wanted.values())), "--bounds", "--json",
               *tools.set_words(overrides)]
    entries = json.loads(tools.run(command))["schedules"]
    return [{"ratio": place.ratio, "microbatches": place.microbatches,
             "latency_ms": place.latency_ms, "budget": place.budget, "kind": kind.text,
             "row": row, "share": share,
             "schedule": entry["schedule"], "makespan_ns": entry["makespan_ns"],
             "gap": round(entry["gap"], 4), "over_budget": bool(entry["over_budget"]),
             "file": str(file),
             "overrides": " ".join(overrides)}
            for ((row, share), file), entry in zip(wanted.items(), entries)]


def made(name, directory, overrides, options):
    """The file of a schedule, which it is written to first, over an earlier one."""
    stem = Path(str(name).removeprefix(SHARES)).stem
    file = directory / f"{'shared' if str(name).startswith(SHARES) else 'own'}-{stem}.csv"
    file.unlink(missing_ok=True)
    command = [tools.binary("longhaul"), "schedule", tools.scenario_file(SCENARIO), "--schedule",
               name, "--out", file, *tools.set_words(overrides)]
    if "best" in str(name):
        command += ["--search-moves", options.search_moves]
    tools.run(command)
    return file


def split_backward(file):
    """Every B becomes a D with its W after it, so that the gradient leaves after the D."""
    lines = [line if line.startswith("#") else re.sub(r"(\d+)B(\d+)", r"\1I\2,\1W\2", line)
             for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")


def measure(table, results, options):
    """One start of bench_pipeline for each place and kind that is not finished yet."""
    groups = [rows for _, rows in table.groupby(GROUP, sort=False)]
    left = [rows for rows in groups if not is_finished(results / label_of(rows))]
    played = sum(rows["makespan_ns"].sum() for rows in left) * 1e-9 * (options.iterations + 1)
    scale = options.time_scale or min(1.0, max(0.01, 60 * options.minutes / max(played, 1e-9)))
    tools.say(f"{FIGURE.name}: {len(left)} of {len(groups)} points left, time_scale {scale:.2g}: "
              f"about {(played * scale + measuring.START_S * len(left)) / 60:.1f} minutes")
    for rows in left:
        overrides = (*rows["overrides"].iloc[0].split(), *options.set,
                     f"run.time_scale={scale:.2g}")
        command = ["scripts/mpi", "-n", 12, tools.from_root(tools.binary("bench_pipeline")),
                   tools.from_root(tools.scenario_file(SCENARIO)), "--schedule",
                   ",".join(str(tools.from_root(file)) for file in rows["file"]), "--iterations",
                   options.iterations, *tools.set_words(overrides), "--out",
                   tools.from_root(results / label_of(rows)), *shlex.split(options.extra)]
        if options.dry_run:
            print(shlex.join(map(str, command)))
            continue
        tools.say(f"  {label_of(rows)} (load {os.getloadavg()[0]:.2f})")
        command[0] = tools.ROOT / "scripts" / "mpi"
        runs.run(command, results / label_of(rows), results, timeout_s=3600)


def label_of(rows):
    return Path(rows["file"].iloc[0]).parent.name


def with_measured(table, results):
    """Beside each prediction the median on ranks, at the speed of the scenario."""
    shown = table.columns.drop(["file", "schedule", "overrides"])
    if results is None:
        return table[shown]
    measured = pipeline_table(results)
    measured["overrides"] = [" ".join(f"{path}={value}" for path, value
                                      in overrides_of(command).items()
                                      if path != "run.time_scale")
                             for command in measured["command"]]
    measured["measured_ns"] = measured["measured_median_ns"] / measured["time_scale"]
    facts = [*provenance.COLUMNS, *provenance.KINDS]
    numbers = ["measured_ns", "difference_percent", "check", *facts]
    return table.merge(measured[["overrides", "schedule", *numbers]], how="left",
                       on=["overrides", "schedule"])[[*shown, *numbers]]
