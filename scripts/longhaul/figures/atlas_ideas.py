"""How much each idea brings: temporal sharing of the WAN, delay-aware orders, D and W apart."""

import json
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from longhaul import measuring, sweep, textgrid, tools
from longhaul.figures import Drawn
from longhaul.records import is_finished, overrides_of, pipeline_table

NAME = "atlas-ideas"
SUMMARY = "what sharing in time, delay-aware orders, D/W split bring alone and together (12 GPUs)"
SCENARIO = "atlas-measured"
MOVES = 200_000
TRANSFER_NS = 53_687_091  # 32 MiB at 5 Gbps
ROWS = ("1f1b", "varuna", "cross-ud", "best")
SHARES = "atlas+"
GROUP = ["ratio", "microbatches", "latency_ms", "kind"]
FASTER, SLOWER = (0.42, 0.65, 0.90), (0.93, 0.55, 0.45)
FULL_COLOUR = 0.4  # of the own share of 1F1B


@dataclass(frozen=True)
class Place:
    """A column of the table: the inputs of a comparison."""

    ratio: float      # transfer of an activation at one node's rate, in F
    microbatches: int
    latency_ms: int

    @property
    def text(self):
        return f"{self.ratio:g} F, M={self.microbatches}\n{self.latency_ms} ms"

    @property
    def overrides(self):
        return (f"parallel.microbatches={self.microbatches}", f"link.latency={self.latency_ms}ms")


@dataclass(frozen=True)
class Kind:
    """How a backward pass runs."""

    split: bool
    recompute: bool

    @property
    def text(self):
        return ("D/W" if self.split else "B") + (", R" if self.recompute else "")

    def overrides(self, ratio):
        """`whole`: D takes what B takes, W nothing, so that no schedule gains by W."""
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
    places = [Place(float(ratio), int(microbatches), int(latency))
              for ratio in options.ratios.split(",")
              for microbatches in options.microbatches.split(",")
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
    return [Drawn(NAME, figure_of(table, places), table)]


def names_of(kind):
    """(row of the table, name that the tool is asked for). 1F1B with D and W apart is ZB-H1."""
    return [(row, "zb-h1" if row == "1f1b" and kind.split else row) for row in ROWS
            if row != "varuna" or kind.recompute]


def compare(place, kind, options, files):
    """A row for each schedule, all written to files, so that ranks run the same ones."""
    overrides = (*place.overrides, *kind.overrides(place.ratio))
    directory = files / re.sub(r"[^0-9a-zA-Z.]+", "-", f"{place.text} {kind.text}")
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for row, name in names_of(kind):
        wanted[row, "own"] = made(name, directory, overrides, options)
        if row == "varuna" and kind.split:
            split_backward(wanted[row, "own"])
            name = wanted[row, "own"]
        wanted[row, "shared"] = made(f"{SHARES}{name}", directory, overrides, options)
    if kind.recompute and not kind.split:
        wanted["atlas", "shared"] = made("atlas", directory, overrides, options)
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(SCENARIO), "--schedule",
               ",".join(map(str, wanted.values())), "--json", *set_words(overrides)]
    entries = json.loads(tools.run(command))["schedules"]
    return [{"ratio": place.ratio, "microbatches": place.microbatches,
             "latency_ms": place.latency_ms, "kind": kind.text, "row": row, "share": share,
             "schedule": entry["schedule"], "makespan_ns": entry["makespan_ns"],
             "gap": entry["gap"], "over_budget": bool(entry["over_budget"]), "file": str(file),
             "overrides": " ".join(overrides)}
            for ((row, share), file), entry in zip(wanted.items(), entries)]


def set_words(overrides):
    return [word for override in overrides for word in ("--set", override)]


def made(name, directory, overrides, options):
    """The file of a schedule, which it is written to first."""
    stem = Path(str(name).removeprefix(SHARES)).stem
    file = directory / f"{'shared' if str(name).startswith(SHARES) else 'own'}-{stem}.csv"
    command = [tools.binary("longhaul"), "schedule", tools.scenario_file(SCENARIO), "--schedule",
               name, "--out", file, *set_words(overrides)]
    if "best" in str(name):
        command += ["--search-moves", options.search_moves]
    tools.run(command)
    return file


def split_backward(file):
    """Every B becomes a D with its W behind it, so that the gradient leaves after the D."""
    lines = [line if line.startswith("#") else re.sub(r"(\d+)B(\d+)", r"\1I\2,\1W\2", line)
             for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")


def measure(table, results, options):
    """One start of bench_pipeline for each place and kind that is not finished yet."""
    groups = [rows for _, rows in table.groupby(GROUP, sort=False)]
    left = [rows for rows in groups if not is_finished(results / label_of(rows))]
    played = sum(rows["makespan_ns"].sum() for rows in left) * 1e-9 * (options.iterations + 1)
    scale = options.time_scale or min(1.0, max(0.01, 60 * options.minutes / max(played, 1e-9)))
    tools.say(f"{NAME}: {len(left)} of {len(groups)} points left, time_scale {scale:.2g}: about "
              f"{(played * scale + sweep.START_S * len(left)) / 60:.1f} minutes")
    for rows in left:
        overrides = (*rows["overrides"].iloc[0].split(), *options.set, f"run.time_scale={scale:.2g}")
        command = ["scripts/mpi", "-n", 12, tools.from_root(tools.binary("bench_pipeline")),
                   tools.from_root(tools.scenario_file(SCENARIO)), "--schedule",
                   ",".join(str(tools.from_root(file)) for file in rows["file"]), "--iterations",
                   options.iterations, *set_words(overrides), "--out",
                   tools.from_root(results / label_of(rows)), *shlex.split(options.extra)]
        if options.dry_run:
            print(shlex.join(map(str, command)))
            continue
        tools.say(f"  {label_of(rows)} (load {os.getloadavg()[0]:.2f})")
        command[0] = tools.ROOT / "scripts" / "mpi"
        tools.run(command, timeout_s=3600)


def label_of(rows):
    return Path(rows["file"].iloc[0]).parent.name


def with_measured(table, results):
    """Beside each prediction the median on ranks, at the speed of the scenario."""
    table = table.drop(columns=["file"])
    if results is None:
        return table
    measured = pipeline_table(results)
    measured["overrides"] = [" ".join(f"{path}={value}" for path, value
                                      in overrides_of(command).items()
                                      if path != "run.time_scale")
                             for command in measured["command"]]
    measured["measured_ns"] = measured["measured_median_ns"] / measured["time_scale"]
    columns = ["overrides", "schedule", "measured_ns", "difference_percent", "check"]
    return table.merge(measured[columns], on=["overrides", "schedule"], how="left")


def figure_of(table, places):
    """Rows: what runs; columns: the inputs. A cell: seconds, over the own share of 1F1B with B."""
    key = ["ratio", "microbatches", "latency_ms"]
    base = table[(table["row"] == "1f1b") & (table["share"] == "own")].set_index([*key, "kind"])
    rows, cells, colours, bold = [], [], [], set()
    found = table.set_index([*key, "kind", "row", "share"])
    least = table.groupby(key)["makespan_ns"].min()
    for kind in KINDS:
        for row, share in headings(kind):
            rows.append(f"{SHARES if share == 'shared' and row != 'atlas' else ''}{row}, "
                        f"{kind.text}")
            cells.append([])
            colours.append([])
            for column, place in enumerate(places):
                at = (place.ratio, place.microbatches, place.latency_ms)
                entry = found.loc[(*at, kind.text, row, share)]
                reference = base.loc[(*at, Kind(False, kind.recompute).text), "makespan_ns"]
                gain = 1 - entry["makespan_ns"] / reference
                text = f"{entry['makespan_ns'] * 1e-9:.3f}"
                if "measured_ns" in entry and pd.notna(entry["measured_ns"]):
                    text += f"\n{entry['measured_ns'] * 1e-9:.3f}"
                cells[-1].append(text + ("*" if entry["over_budget"] else ""))
                colours[-1].append(colour_of(gain))
                if entry["makespan_ns"] == least[at]:
                    bold.add((len(rows) - 1, column))
    return textgrid.draw(textgrid.Grid(
        "What each idea brings: seconds of an iteration, 12 GPUs in 3 datacenters",
        [place.text for place in places], rows, cells, colours, bold, corner="schedule, backward",
        row_heading_inches=1.9, column_inches=0.82,
        note="Blue: less than 1F1B with its own share and whole B. atlas+: pipelines take turns on "
             "the WAN. R: blocks are recomputed. *: over the memory budget.\n"
             "Above: simulated; below, where it is there: the median on ranks."))


def headings(kind):
    names = [(row, share) for row, _ in names_of(kind) for share in ("own", "shared")]
    return names + ([("atlas", "shared")] if kind.recompute and not kind.split else [])


def colour_of(gain):
    full = FASTER if gain > 0 else SLOWER
    part = min(1.0, abs(gain) / FULL_COLOUR)
    return tuple(1 - part * (1 - channel) for channel in full)
