"""Atlas figure 12: a second datacenter of 0 to 100% of the first one's GPUs."""

import math

import pandas as pd
from matplotlib.lines import Line2D

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import sites
from longhaul.figures.atlas.sites import PINNED, SPREAD, Ask
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "atlas-fig12",
    summary="throughput with a second datacenter of 0 to 100% of 600 GPUs (Atlas figure 12)",
    shows="a second datacenter of 0 to 100%",
    repeat=Repeat("atlas", seconds=15, simulate=("--simulate",)),
    expected=(
        Expected("a second datacenter of 10%: gain in throughput", "exact", low=1, high=1,
                 column="gain", where="fraction=0.1", reduce="max",
                 why="10% of 600 GPUs hold no further cell of 2 x 60."),
    ))
SCHEDULES = {"atlas": ("Atlas", "#c2185b"), "atlas-even": ("turns to the furthest behind (ours)",
                                                           "#8a8a2a"),
             "varuna": ("Varuna", "#2aa552")}
FIRST, STEP, C = 600, 60, 2
SWEEP = f"datacenter.dc2.gpus=0:{FIRST}:{STEP}"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers():
    asked = {(schedule, inputs): Ask(schedule, C, (FIRST, 0), inputs, SWEEP)
             for schedule in SCHEDULES for inputs in SPREAD}
    said = sites.answers(asked.values())
    rows = []
    for (schedule, inputs), ask in asked.items():
        points = said[ask]["sweep"]
        alone = points[0]["best"]["iterations_per_second"]
        for point in points:
            plan, gpus = point["best"], int(point["values"]["datacenter.dc2.gpus"])
            rows.append({"schedule": schedule, "inputs": inputs.text, "second_gpus": gpus,
                         "fraction": gpus / FIRST, "throughput": plan["iterations_per_second"],
                         "gain": plan["iterations_per_second"] / alone, "cells": plan["cells"],
                         "iteration_s": plan["iteration_ns"] * 1e-9,
                         "pipeline_s": plan["pipeline_ns"] * 1e-9, "way": sites.way(plan)})
    return pd.DataFrame(rows)


def verdicts(table):
    own = table[table["schedule"] == "atlas"]
    gain = own.pivot_table(index="inputs", columns="second_gpus", values="gain")
    tenth, step = gain[60], gain[180] / gain[120]
    uses = own[(own["second_gpus"] == 60)]["way"].str.contains("dc2").sum()
    alone = own[own["second_gpus"] == 0].set_index("inputs")["iteration_s"]
    crossing = own[own["way"].str.contains("dc2")]
    first = crossing.sort_values("second_gpus").groupby("inputs").first()
    inflation = 100 * (first["iteration_s"] / alone[first.index] - 1)
    wanted = claims.value("atlas-inflation")
    return [
        claims.judge("atlas-tenth", claims.by_count(int(((tenth <= 1.005)).sum()), len(tenth)),
                     f"{claims.spread(tenth)} times one datacenter; the second one is used for "
                     f"{uses} of {len(tenth)} choices of the open inputs",
                     "660 GPUs hold no sixth cell of 2 x 60, whatever an iteration takes."),
        claims.judge("atlas-20-to-30", claims.by_count(int((step <= 1.005).sum()), len(step)),
                     f"{claims.spread(step)} times", "780 GPUs hold as many cells of 120 as 720."),
        claims.judge("atlas-inflation",
                     claims.over_inputs(inflation, lambda ours: claims.within(ours, wanted)),
                     f"{claims.spread(inflation, '+.0f', '%')}",
                     "The first plan that goes through both ("
                     + ", ".join(f"{row.second_gpus} GPUs: {row.way}" for row in
                                 first.drop_duplicates(["second_gpus", "way"]).itertuples())
                     + ") against one datacenter. At 10% nothing is gained even without it.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.2, 4.5))
    for name, (_, colour) in SCHEDULES.items():
        own = table[table["schedule"] == name]
        for inputs in SPREAD:
            line = own[own["inputs"] == inputs.text]
            pinned = inputs == PINNED
            axes.plot(100 * line["fraction"], line["gain"], color=colour, marker="o",
                      markersize=4 if pinned else 2, linewidth=1.6 if pinned else 0.7,
                      linestyle="-" if pinned else ":", zorder=4 if pinned else 3)
    own = table[(table["schedule"] == "atlas") & (table["inputs"] == PINNED.text)]
    for row in own.itertuples():
        axes.annotate(f"{row.cells}", (100 * row.fraction, row.gain), xytext=(0, -11),
                      textcoords="offset points", ha="center", fontsize=7.5,
                      color=SCHEDULES["atlas"][1])
    axes.plot([0, 100], [1, 2], color="#999999", linewidth=0.8, linestyle="--", zorder=1)
    axes.text(50, 1.515, "as many GPUs in one datacenter", fontsize=7.5, color="#666666",
              rotation=math.degrees(math.atan(0.01)), transform_rotates_text=True, ha="center",
              va="bottom", rotation_mode="anchor")
    axes.set_ylim(0.94, 2.05)
    axes.set_xticks(range(0, 101, 10))
    axes.set_xlabel("GPUs of the second datacenter, % of the first one's 600")
    axes.set_ylabel("throughput over one datacenter")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("A second datacenter, C = 2, simulated; numbers: cells of the best plan",
                   loc="left", fontweight="bold")
    handles = [Line2D([], [], color=colour, marker="o", markersize=4, lw=1.6, label=words)
               for words, colour in SCHEDULES.values()]
    handles.append(Line2D([], [], color="#555555", lw=0.7, linestyle=":",
                          label="1 and 40 ms instead of 10; no all-reduce"))
    figure.legend(handles=handles, loc="lower center", ncols=2, frameon=False)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.92, bottom=0.25)
    return figure
