"""From a profile to a schedule (CrossPipe 6.1, 6.2): costs are measured on this device, schedules
are made and predicted from them, and run with real layers: is the prediction true?

Schedules of one chunk a device (also with recomputation), wave and loop."""

import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import RUN_FAILED, Failure
from longhaul.running import runs, tools

FIGURE = Figure(
    "profile-to-schedule",
    summary="schedules made from measured costs, run with real layers: predicted against measured",
    shows="schedules made from measured costs, run with real layers: predicted and measured",
    options="[--measure]",
    repeat=Repeat("longhaul", measure=("--measure",), minutes=6))
# How a device's chunks lie decides which layers it holds: each placement has costs of its own.
# (name, schedule that stands for the placement, schedules to run, further options)
RUNS = (("ud", "1f1b", "1f1b,zb-h1,cross-ud,best", ("--placement", "ud")),
        ("wave", "zbv", "zbv,cross-wave,best", ("--placement", "wave")),
        ("loop", "interleaved-1f1b", "interleaved-1f1b,cross-loop", ()),
        ("recompute", "1f1b", "1f1b,cross-ud", ("--set", "memory.recompute=true")))
ATTEMPTS = 5
COLOURS = {"predicted": "#9fb8d0", "measured": "#0b5394"}


def add_arguments(parser):
    parser.add_argument("--measure", "--run", action="store_true",
                        help="profile, then run; what is finished is not run again")
    parser.add_argument("--results", metavar="DIR",
                        help="what --measure wrote; with --measure, where it goes "
                             f"(default: runs/{FIGURE.name})")
    parser.add_argument("--dry-run", action="store_true",
                        help="print what --measure would run, and run nothing")
    parser.add_argument("--scenario", default="cpu-2dc", metavar="FILE",
                        help="a model whose stages fit on this machine's cores "
                             "(default: benchmarks/scenarios/cpu-2dc.toml)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"),
                        help="what computes the layers (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=30, metavar="N",
                        help="rounds of a profile (default: %(default)s)")
    parser.add_argument("--widest", type=float, default=10, metavar="PERCENT",
                        help="measure a profile again, up to 5 times in all, whose medians have "
                             "95%% intervals wider than this (default: %(default)g)")
    parser.add_argument("--iterations", type=int, default=20, metavar="N",
                        help="measured iterations of each schedule (default: %(default)s)")
    parser.add_argument("--search-moves", type=int, default=200_000, metavar="N",
                        help="how long best looks (default: %(default)s moves)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario; may be given again")


def draw(options):
    directory = Path(options.results or f"runs/{FIGURE.name}")
    if options.dry_run:
        for _, command in commands(directory, options):
            tools.say(shlex.join(command))
        return []
    if options.measure:
        make(directory, options)
    elif not options.results:
        raise Failure("nothing to draw (neither --results DIR nor --measure). "
                      "Give the directory that --measure wrote, or --measure.")
    table = pd.concat([rows_of(directory, name) for name, *_ in RUNS], ignore_index=True)
    tools.say(verdict(table))
    return [Drawn(FIGURE.name, figure_of(table, directory), table)]


def make(directory, options):
    """Runs the parts that are not there yet, from the root of the checkout. A profile whose medians
    are known badly is set aside and measured again, whatever would be predicted from it."""
    os.makedirs(directory, exist_ok=True)
    for target, command in commands(directory, options):
        for attempt in range(ATTEMPTS):
            if records.is_finished(target):
                break
            tools.say(shlex.join(command))
            runs.run(["env", "-C", tools.ROOT, *command], target, directory)
            if not target.name.startswith("profile-"):
                break
            width = 100 * widest(records.read_record(target))
            if width <= options.widest or attempt + 1 == ATTEMPTS:
                break
            tools.say(f"  a median's interval is {width:.0f}% of it: something else runs; again")
            target.rename(target.with_name(f"{target.name}.noisy-{attempt}"))


def commands(directory, options):
    """(its directory, command) in order: each profile right before the runs that it predicts."""
    scenario = tools.scenario_file(options.scenario)
    ranks = scenario_text.ranks_of(scenario, options.set)
    for name, stands_for, schedules, extra in RUNS:
        profile = directory / f"profile-{name}"
        yield profile, words("scripts/mpi", "-n", ranks, program("bench_profile"),
                             tools.from_root(scenario), "--schedule", stands_for,
                             "--device", options.device, "--samples", options.samples,
                             *tools.set_words(options.set), "--out", tools.from_root(profile))
        costs = os.path.relpath(profile.resolve() / "costs.toml", scenario.parent)
        run = directory / f"run-{name}"
        yield run, words("scripts/mpi", "-n", ranks, program("bench_pipeline"),
                         tools.from_root(scenario), "--compute", "real", "--device",
                         options.device, "--check-gradients", "first", "--schedule", schedules,
                         *extra, "--search-moves", options.search_moves,
                         "--iterations", options.iterations,
                         *tools.set_words([*options.set, f"costs.file={costs}"]),
                         "--out", tools.from_root(run))


def words(*parts):
    return [str(part) for part in parts]


def program(name):
    return tools.from_root(tools.binary(name))


def rows_of(directory, name):
    profile = records.read_record(directory / f"profile-{name}")
    record = records.read_record(directory / f"run-{name}")
    facts = provenance.of(record, directory / f"run-{name}")
    facts["time_scale"] = record.get("time_scale")
    rows = []
    for entry in record["schedules"]:
        if entry.get("check") != "ok":
            raise Failure(f"{entry['schedule']} of run-{name} computed something wrong (its check "
                          f"says {entry.get('check')}). Its times mean nothing.", RUN_FAILED)
        predicted = entry["predicted_ns"]
        row = {"profile": name, "schedule": entry["schedule"], "n": entry["n"],
               "predicted_ms": predicted / 1e6}
        for key in ("median", "min", "p95", "median_low", "median_high"):
            value = entry.get(f"measured_{key}_ns")
            row[f"measured_{key}_ms"] = None if value is None else value / 1e6
        row["difference_percent"] = round(100 * (entry["measured_median_ns"] / predicted - 1), 2)
        row["profile_widest_interval_percent"] = round(100 * widest(profile), 2)
        rows.append(provenance.add(row, facts))
    return pd.DataFrame(rows)


def widest(profile):
    """The widest interval of a median that predictions are made of, over that median."""
    ratios = [0.0]
    for stage in profile["stages"]:
        for block in stage["blocks"].values():
            low, high = (block[f"measured_median_{end}_ns"] for end in ("low", "high"))
            if low is not None:
                ratios.append((high - low) / block["measured_median_ns"])
    return max(ratios)


def verdict(table):
    worst = table.loc[table["difference_percent"].abs().idxmax()]
    right, pairs = order(table)
    off = table["difference_percent"]
    return (f"{FIGURE.name}: measured against predicted from {off.min():+.1f}% "
            f"to {off.max():+.1f}%, median of sizes {off.abs().median():.1f}%; furthest "
            f"{worst['schedule']} "
            f"({worst['profile']}). {right} of {pairs} pairs of schedules are in the order that "
            "was predicted.")


def order(table):
    """How many pairs of schedules whose predictions differ are measured in the same order."""
    predicted = table["predicted_ms"].to_numpy()
    measured = table["measured_median_ms"].to_numpy()
    apart = [(i, j) for i in range(len(table)) for j in range(i)
             if abs(predicted[i] / predicted[j] - 1) > 0.005]
    right = sum((predicted[i] < predicted[j]) == (measured[i] < measured[j]) for i, j in apart)
    return right, len(apart)


def label(row):
    suffix = {"recompute": "\nrecompute", "wave": "\nwave", "ud": ""}.get(row.profile, "")
    suffix = "" if row.profile == "wave" and row.schedule != "best" else suffix
    return style.schedule_name(row.schedule).replace(" (search)", "").replace(" ", "\n") + suffix


def figure_of(table, directory):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.4, 3.9))
    places = np.arange(len(table))
    for shift, kind, column in ((-0.2, "predicted", "predicted_ms"),
                                (0.2, "measured", "measured_median_ms")):
        axes.bar(places + shift, table[column], 0.38, color=COLOURS[kind],
                 edgecolor=style.EDGE_COLOUR, linewidth=0.4,
                 label={"predicted": "predicted from the profile",
                        "measured": "measured, real layers (median, its 95% interval)"}[kind])
    known = table.dropna(subset=["measured_median_low_ms"])
    axes.errorbar(known.index + 0.2, known["measured_median_ms"],
                  yerr=(known["measured_median_ms"] - known["measured_median_low_ms"],
                        known["measured_median_high_ms"] - known["measured_median_ms"]),
                  fmt="none", ecolor="black", elinewidth=0.9, capsize=2.5)
    shown = ["predicted_ms", "measured_median_ms", "measured_median_high_ms"]
    highest = table[shown].astype(float).max(axis=1)
    for place, top, percent in zip(places, highest, table["difference_percent"]):
        axes.annotate(f"{percent:+.1f}%", (place, top), (0, 6), textcoords="offset points",
                      ha="center", fontsize=8)
    axes.set_xticks(places, [label(row) for row in table.itertuples()])
    axes.set_ylabel("iteration (ms)")
    axes.set_ylim(0, 1.28 * highest.max())
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper right", ncols=2)
    axes.set_title(title(directory), loc="left", fontweight="bold", fontsize=10)
    figure.tight_layout()
    return figure


def title(directory):
    record = records.read_record(directory / f"run-{RUNS[0][0]}")
    profile = records.read_record(directory / f"profile-{RUNS[0][0]}")
    return (f"Schedules made from measured costs ({records.scenario_of(record)}, "
            f"{profile.get('device', 'cpu')}, {profile.get('number_type', '')})")
