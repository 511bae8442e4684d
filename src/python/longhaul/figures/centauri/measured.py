"""Iterations under overlaps on ranks: measured beside predicted, and in which order."""

import shlex

import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.centauri.cells import OVERLAPS
from longhaul.running import measuring, tools

FIGURE = Figure(
    "overlap-measured",
    summary="iterations under overlaps on ranks: measured beside predicted, and in which order",
    shows="iterations under overlaps on 16 ranks, measured beside predicted",
    options="[--measure]",
    repeat=Repeat("centauri", measure=("--measure",), minutes=5))
GOAL_PERCENT = 3.0


def add_arguments(parser):
    measuring.add_once(parser, f"runs/{FIGURE.name}")
    parser.add_argument("--dry-run", action="store_true",
                        help="print what --measure would run, and run nothing")
    parser.add_argument("--scenario", default="centauri-fsdp", metavar="FILE",
                        help="default: benchmarks/scenarios/centauri-fsdp.toml")
    parser.add_argument("--overlaps", default="serial,zero3,fsdp2,centauri", metavar="LIST",
                        help="default: %(default)s")
    parser.add_argument("--schedule", default="gpipe", metavar="S", help="default: %(default)s")
    parser.add_argument("--iterations", type=int, default=8, metavar="N",
                        help="of each overlap (default: %(default)s)")
    parser.add_argument("--time-scale", type=float, default=10, metavar="X",
                        help="how many times as long as predicted they take, for a machine with "
                             "fewer cores than ranks (default: %(default)g)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario; may be given again")


def draw(options):
    if options.dry_run:
        tools.say(shlex.join(str(word) for word in command_of(options)))
        return []
    directory = measuring.directory_of(options)
    if options.measure:
        measuring.run_once(command_of(options), directory / "overlaps", directory)
    table = rows_of(directory / "overlaps")
    tools.say(verdict(table))
    return [Drawn(FIGURE.name, figure_of(table), table)]


def command_of(options):
    scenario = tools.scenario_file(options.scenario)
    overrides = [*options.set, f"run.time_scale={options.time_scale:g}"]
    command = [tools.from_root(tools.binary("bench_pipeline")), tools.from_root(scenario),
               "--ranks-per-process", scenario_text.ranks_of(scenario, overrides),
               "--schedule", options.schedule, "--overlap", options.overlaps,
               "--iterations", options.iterations, "--warmup", 1, "--trace", "off"]
    return command + tools.set_words(overrides)


def rows_of(run):
    """One row an overlap, in milliseconds as played."""
    record = records.read_record(run)
    facts = provenance.of(record, run)
    rows = []
    for entry in record["schedules"]:
        if "overlap" not in entry:
            raise Failure("the record has no overlaps (it is none of bench_pipeline --overlap). "
                          "Give what --measure wrote.")
        rows.append(provenance.add(
            {"schedule": entry["schedule"], "overlap": entry["overlap"],
             "predicted_ms": entry["predicted_ns"] / 1e6,
             "measured_ms": entry["measured_median_ns"] / 1e6,
             "difference_percent": entry["difference_percent"], "check": entry["check"],
             "n": entry["n"], "time_scale": record["time_scale"]}, facts))
    return pd.DataFrame(rows)


def order_of(table, column):
    return list(table.sort_values(column, kind="stable")["overlap"])


def verdict(table):
    worst = table.loc[table["difference_percent"].abs().idxmax()]
    predicted, measured = order_of(table, "predicted_ms"), order_of(table, "measured_ms")
    close = "within" if abs(worst["difference_percent"]) <= GOAL_PERCENT else "not within"
    order = ("in the predicted order" if predicted == measured else
             f"in another order than predicted ({', '.join(predicted)})")
    return (f"{FIGURE.name}: {close} {GOAL_PERCENT:g}% of the prediction (the farthest is "
            f"{worst['overlap']}, {worst['difference_percent']:+.2f}%), {order}: "
            f"{', '.join(measured)}. Checks: {', '.join(sorted(set(table['check'])))}.")


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.2))
    for place, row in enumerate(table.itertuples()):
        colour = OVERLAPS.get(row.overlap, "#b08fc7")
        axes.bar(place - 0.2, row.predicted_ms, 0.38, color="white", edgecolor=colour,
                 linewidth=1.4, hatch="////")
        axes.bar(place + 0.2, row.measured_ms, 0.38, color=colour)
        axes.annotate(f"{row.difference_percent:+.2f}%", (place + 0.2, row.measured_ms),
                      xytext=(0, 2), textcoords="offset points", ha="center", fontsize=8)
    axes.set_xticks(range(len(table)), table["overlap"])
    axes.set_ylabel("iteration, as played (ms)")
    axes.margins(y=0.15)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(f"Iterations {table['time_scale'].iloc[0]:g} times as long, predicted (hatched) and measured",
                   loc="left", fontweight="bold")
    figure.tight_layout()
    return figure
