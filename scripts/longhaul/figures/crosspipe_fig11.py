"""CrossPipe figure 11, its static schedules: iteration time at each delay, measured against the
model, in both communication arrangements."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from longhaul import style, sweep, tools
from longhaul.errors import RUN_FAILED, Failure
from longhaul.figures import Drawn
from longhaul.records import pipeline_table

NAME = "crosspipe-fig11"
SUMMARY = "static schedules at delay cells, grouped and decoupled, measured against predicted"
SCENARIOS = ("m8-2dc", "m70-2dc")
AS_GIVEN = -1.0
COMM_NAMES = {"grouped": "grouped", "decoupled": "decoupled (the paper's _O)"}


def add_arguments(parser):
    parser.add_argument("--results", "--trace", metavar="DIR",
                        help="records of bench_pipeline below DIR (scripts/sweep writes them); "
                             "with --run, where they go (default: runs/crosspipe-fig11)")
    parser.add_argument("--run", action="store_true",
                        help="run the sweep; points finished before are not run again")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE",
                        help=f"one panel each (default with --run: {', '.join(SCENARIOS)})")
    parser.add_argument("--cells", default="axes", metavar="CELLS",
                        help="table5, axes, grid, or LATENCY:TRANSFER pairs (default: axes)")
    sweep.add_run_arguments(parser)


def draw(options):
    if options.run:
        results = Path(options.results or "runs/crosspipe-fig11")
        scenarios = [tools.scenario_file(name) for name in options.scenario or SCENARIOS]
        failed = sweep.run_sweep(scenarios, sweep.parse_cells(options.cells), sweep.COMMS, results,
                                 options)
        if options.dry_run:
            return []
        if failed:
            raise Failure(f"{len(failed)} points failed: {', '.join(failed)}. "
                          "Run the same command again to repeat them alone.", RUN_FAILED)
    elif options.results:
        results = Path(options.results)
    else:
        raise Failure("nothing to draw (neither --results DIR nor --run). "
                      "Give the directory of a sweep, or --run.")
    return [draw_table(read_results(results))]


def read_results(results):
    table = pipeline_table(results)
    if table.empty:
        raise Failure(f"no records of bench_pipeline in {results}. Run scripts/sweep first.")
    # A run without ratios (its links are given in ms and Gbps) is a cell of its own.
    table = table.fillna({"latency_ratio": AS_GIVEN, "transfer_ratio": AS_GIVEN})
    for column in ("predicted", "measured_median", "measured_min", "measured_p95"):
        table[f"{column}_s"] = (pd.to_numeric(table[f"{column}_ns"]) / table["time_scale"] / 1e9)
    return table


def draw_table(table):
    """`table`: read_results'; times in seconds of the scenario, not as played."""
    plt = style.apply()
    scenarios = sorted(set(table["scenario"]), key=natural)
    cells = max(table[table["scenario"] == name].groupby(["latency_ratio",
                                                          "transfer_ratio"]).ngroups
                for name in scenarios)
    series = table.groupby(["schedule", "comm"]).ngroups
    width = float(np.clip(1.6 + cells * (0.35 + 0.17 * series), 8, 22))
    handles = _legend(table)
    columns, legend_rows = style.legend_grid(len(handles), width)
    bottom = 0.72 + 0.19 * legend_rows
    height = 0.62 + 2.6 * len(scenarios) + 0.62 * (len(scenarios) - 1) + bottom
    figure, axes = plt.subplots(len(scenarios), 1, figsize=(width, height), squeeze=False)
    for panel, name in zip(axes[:, 0], scenarios):
        _panel(panel, table[table["scenario"] == name], name)
    axes[-1, 0].set_xlabel("delay of a message between datacenters:  $T_{lat}/T_F$ (above),  "
                           "$T_{bw}/T_F$ (below)")
    figure.subplots_adjust(left=0.62 / width, right=1 - 0.1 / width, hspace=0.62 / 2.6,
                           top=1 - 0.62 / height, bottom=bottom / height)
    figure.suptitle("Iteration time of static schedules across datacenters", fontweight="bold",
                    x=0.62 / width, ha="left", y=1 - 0.08 / height, va="top", fontsize=11)
    figure.legend(handles=handles, loc="lower center", frameon=False, bbox_to_anchor=(0.5, 0),
                  ncols=columns)
    return Drawn(NAME, figure, table)


def natural(name):
    """m8 before m70."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def cell_order(table):
    """No delay first, then latency alone, bandwidth alone, both."""
    cells = set(zip(table["latency_ratio"], table["transfer_ratio"]))
    return sorted(cells, key=lambda cell: (cell[0] > 0 and cell[1] > 0, cell[1], cell[0]))


def schedule_order(table):
    known = list(style.SCHEDULE_NAMES)
    names = dict.fromkeys(table["schedule"])
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def comm_order(table):
    return [comm for comm in ("grouped", "decoupled") if comm in set(table["comm"])]


def _panel(axes, table, name):
    cells = cell_order(table)
    bars = [(schedule, comm) for schedule in schedule_order(table) for comm in comm_order(table)]
    step = 0.84 / len(bars)
    for index, (schedule, comm) in enumerate(bars):
        chosen = table[(table["schedule"] == schedule) & (table["comm"] == comm)]
        for row in chosen.itertuples():
            x = cells.index((row.latency_ratio, row.transfer_ratio)) - 0.42 + (index + 0.5) * step
            _bar(axes, x, step, row)
    axes.set_xticks(range(len(cells)), ["\n".join("as given" if ratio == AS_GIVEN else f"{ratio:g}"
                                                  for ratio in cell) for cell in cells])
    axes.tick_params(axis="x", length=0)
    for boundary in range(1, len(cells)):
        axes.axvline(boundary - 0.5, color="#bbbbbb", linewidth=0.6)
    axes.set_xlim(-0.5, len(cells) - 0.5)
    axes.set_ylabel("iteration time (s)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    scales = sorted(set(table["time_scale"]))
    played = "" if scales == [1.0] else (
        f" (played at time_scale {', '.join(f'{scale:g}' for scale in scales)}, scaled back)")
    axes.set_title(f"{name}{played}", loc="left")


def _bar(axes, x, width, row):
    colour = style.SCHEDULE_COLOURS.get(row.schedule, style.OTHER_COLOUR)
    grouped = row.comm == "grouped"
    axes.bar(x, row.measured_median_s, width * 0.94, color=colour, linewidth=0.4,
             edgecolor="white" if grouped else "black", hatch="//////" if grouped else None)
    axes.bar(x, row.measured_median_s, width * 0.94, fill=False, edgecolor="black", linewidth=0.4)
    axes.vlines(x, row.measured_min_s, row.measured_p95_s, color="black", linewidth=0.8)
    axes.plot(x, row.predicted_s, marker="D", markersize=3.8, markeredgewidth=0.7, linestyle="",
              markeredgecolor="black" if grouped else "white",
              color="white" if grouped else "black")


def _legend(table):
    handles = [Patch(facecolor=style.SCHEDULE_COLOURS.get(name, style.OTHER_COLOUR),
                     edgecolor="black", lw=0.4, label=style.schedule_name(name))
               for name in schedule_order(table)]
    for comm in comm_order(table):
        grouped = comm == "grouped"
        handles.append(Patch(facecolor="#777777", edgecolor="white" if grouped else "black", lw=0.4,
                             hatch="//////" if grouped else None, label=COMM_NAMES[comm]))
        handles.append(Line2D([], [], marker="D", markersize=4, linestyle="", color="black",
                              markerfacecolor="white" if grouped else "black",
                              label=f"predicted, {comm}"))
    handles.append(Line2D([], [], color="black", lw=0.8, marker="|", linestyle="",
                          label="min to p95 of the iterations"))
    return handles
