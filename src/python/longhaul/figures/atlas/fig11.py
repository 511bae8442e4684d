"""Atlas figure 11: throughput over the number of datacenters, Atlas against Varuna."""

import pandas as pd
from matplotlib.patches import Patch

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import sites
from longhaul.figures.atlas.sites import PINNED, SPREAD, Ask
from longhaul.papers import claims
from longhaul.papers.expected import of_claim

FIGURE = Figure(
    "atlas-fig11",
    summary="throughput of 1 to 5 datacenters, Atlas against Varuna (Atlas figure 11)",
    shows="throughput of 1 to 5 datacenters",
    repeat=Repeat("atlas", seconds=40, simulate=("--simulate",)),
    expected=(
        of_claim("atlas-5dc-c4", "5 datacenters over one, C = 4", "published", low=4.465,
                 high=4.935, why="4.7, within 5%.",
                 known="4.02 at least: cells of 4 x 60 GPUs do not divide 600 "
                       "(results/README.md)."),
        of_claim("atlas-5dc-c2", "5 datacenters over one, C = 2", "published", low=4.085,
                 high=4.515, why="4.3, within 5%.",
                 known="4.06 to 4.31, over inputs that the paper leaves open; judged is the "
                       "least."),
        of_claim("atlas-plan-time", "algorithm 1 for 5 datacenters of 600 GPUs (s)", "published",
                 low=0, high=55, why="55 s on one processor; less is better."),
    ))
SETS = {"DC-set 1": (600, 600, 600, 600, 600), "DC-set 2": (600, 500, 400, 300, 200)}
RATIOS = (4, 2)  # C: a transfer in F, and pipelines of a cell
VARUNA, ATLAS = "varuna", "atlas"
OURS = ("varuna-fill", "atlas-even")  # not the paper's
NAMES = {VARUNA: "Varuna", "varuna-fill": "Varuna, R in idle time (ours)", ATLAS: "Atlas",
         "atlas-even": "Atlas, turns to the pipeline furthest behind (ours)"}
COLOURS = {VARUNA: "#9fcf8f", "varuna-fill": "#d9ead3", ATLAS: "#c2185b", "atlas-even": "#f0b6cc"}
PLACE = ["set", "pipelines", "datacenters", "inputs"]


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers():
    """A row for each set, C, number of datacenters, schedule and choice of open inputs."""
    asked = {(name, ratio, count, schedule, inputs): Ask(schedule, ratio, gpus[:count], inputs)
             for name, gpus in SETS.items() for ratio in RATIOS for count in range(1, 6)
             for inputs in SPREAD for schedule in NAMES}
    said = sites.answers(asked.values())
    rows = []
    for (name, ratio, count, schedule, inputs), ask in asked.items():
        plan = sites.best(said[ask])
        rows.append({"set": name, "pipelines": ratio, "datacenters": count, "schedule": schedule,
                     "inputs": inputs.text, "iterations_per_second": plan["iterations_per_second"],
                     "cells": plan["cells"], "replicas": plan["replicas"],
                     "gpus": sum(SETS[name][:count]), "gpus_used": plan["gpus_used"],
                     "iteration_s": plan["iteration_ns"] * 1e-9,
                     "all_reduce_s": plan["all_reduce_ns"] * 1e-9, "way": sites.way(plan)})
    return pd.DataFrame(rows)


def wide(table):
    return table.pivot_table(index=PLACE, columns="schedule", values="iterations_per_second")


def gains(table, ratio, schedule=ATLAS, inputs=None):
    """Throughput over Varuna's in percent, of more than one datacenter."""
    rows = table[(table["pipelines"] == ratio) & (table["datacenters"] > 1)]
    if inputs:
        rows = rows[rows["inputs"] == inputs.text]
    rates = wide(rows)
    return 100 * (rates[schedule] / rates[VARUNA] - 1)


def verdicts(table):
    found = []
    for ratio, claim in ((4, "atlas-scale-c4"), (2, "atlas-scale-c2")):
        own = gains(table, ratio)
        most = own.groupby("inputs").max()
        even = gains(table, ratio, "atlas-even")
        fill = gains(table, ratio, "varuna-fill")
        found.append(claims.judge(
            claim, claims.over_inputs(most, lambda ours: claims.at_least(
                ours, claims.value(claim)) if ours > 0 else claims.FAILS),
            f"{claims.spread(most, '+.0f', '%')} at best, {own.min():+.0f}% at worst",
            "By latency and all-reduce. Turns to the pipeline furthest behind: "
            f"{even.min():+.0f} to {even.max():+.0f}%; Varuna that recomputes in idle time: "
            f"{fill.min():+.0f} to {fill.max():+.0f}%."))
    most = {ratio: gains(table, ratio).groupby("inputs").max() for ratio in RATIOS}
    agree = int((most[4] > most[2]).sum())
    found.append(claims.judge("atlas-scale-order", claims.by_count(agree, len(most[4])),
                              f"for {agree} of {len(most[4])} choices of the open inputs"))
    for ratio, claim in ((4, "atlas-5dc-c4"), (2, "atlas-5dc-c2")):
        rates = wide(table[(table["set"] == "DC-set 1") & (table["pipelines"] == ratio)])
        scaling = {name: rates[name].xs(5, level="datacenters")
                   / rates[name].xs(1, level="datacenters")
                   for name in (ATLAS, "atlas-even", VARUNA)}
        found.append(claims.judge(
            claim, claims.over_inputs(scaling[ATLAS], lambda ours: claims.within(
                ours, claims.value(claim))), claims.spread(scaling[ATLAS]),
            f"Turns to the pipeline furthest behind: {claims.spread(scaling['atlas-even'])}; "
            f"Varuna: {claims.spread(scaling[VARUNA])}."))
    own = table[(table["schedule"] == ATLAS)]
    used = int((own["gpus_used"] == own["gpus"]).sum())
    short = own[own["gpus_used"] < own["gpus"]].drop_duplicates(["set", "pipelines", "datacenters"])
    found.append(claims.judge(
        "atlas-all-gpus", claims.by_count(used, len(own)),
        f"in {used} of {len(own)}",
        "Not: " + "; ".join(f"{row.set}, C = {row.pipelines}, {row.datacenters} DC: "
                            f"{row.gpus_used} of {row.gpus}" for row in short.itertuples())
        + ". A cell needs C x 60 GPUs, and a stage all its replicas in one datacenter."
        if len(short) else ""))
    seconds = sites.timed(Ask(ATLAS, 2, SETS["DC-set 1"]))
    found.append(claims.judge(
        "atlas-plan-time", claims.HOLDS if seconds <= claims.value("atlas-plan-time")
        else claims.FAILS, f"{seconds:.1f} s", "longhaul plan, C = 2, each candidate simulated, on "
        "this machine as busy as it was; benchmarks/bench_plan measures it."))
    return found


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(2, 2, figsize=(10.4, 6.6), sharex=True)
    for line, name in zip(axes, SETS):
        for panel, ratio in zip(line, RATIOS):
            _panel(panel, table[(table["set"] == name) & (table["pipelines"] == ratio)])
            panel.set_title(f"{name}, C = {ratio}", loc="left")
        line[0].set_ylabel("iterations of pipelines per second")
    for panel in axes[-1]:
        panel.set_xlabel("datacenters")
    handles = [Patch(facecolor=COLOURS[name], edgecolor="black", lw=0.4, label=NAMES[name])
               for name in NAMES]
    figure.legend(handles=handles, loc="lower center", ncols=2, frameon=False)
    figure.suptitle("Throughput over the number of datacenters, simulated", x=0.06, y=0.985,
                    ha="left", fontsize=11, fontweight="bold")
    figure.text(0.06, 0.945, "60 stages, 60 microbatches, algorithm 1. Above the bars: gain over "
                f"Varuna. Bars: {PINNED.text}; lines: 1 and 40 ms, and no all-reduce.",
                fontsize=7.5, va="top")
    figure.subplots_adjust(left=0.06, right=0.99, top=0.87, bottom=0.14, hspace=0.25, wspace=0.1)
    return figure


def _panel(axes, rows):
    step = 0.86 / len(NAMES)
    for group in range(1, 6):
        here = rows[rows["datacenters"] == group]
        base = here[here["inputs"] == PINNED.text].set_index("schedule")["iterations_per_second"]
        for index, name in enumerate(NAMES):
            x = group - 0.43 + (index + 0.5) * step
            axes.bar(x, base[name], step * 0.94, color=COLOURS[name], edgecolor="black",
                     linewidth=0.4)
            own = here.loc[here["schedule"] == name, "iterations_per_second"]
            axes.vlines(x, own.min(), own.max(), color="black", linewidth=0.8)
            if name != VARUNA and group > 1:
                axes.annotate(f"{100 * (base[name] / base[VARUNA] - 1):+.0f}%", (x, own.max()),
                              xytext=(0, 2), textcoords="offset points", ha="center", va="bottom",
                              fontsize=6, rotation=90)
    axes.set_xticks(range(1, 6))
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(y=0.14)
