"""How often each of Centauri's three rules chooses worse than simulation, and by how much."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import Cell

FIGURE = Figure(
    "centauri-rules",
    summary="how often each of Centauri's rules chooses worse than simulation, and by how much",
    shows="each of the three rules against simulation ([overlap.md](overlap.md))",
    repeat=Repeat("centauri", seconds=60))
TIERS = ("operation", "layer", "model")
BATCHES = (1, 2, 4, 8)
WORSE = 0.001  # of the iteration: less is no difference


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def asked():
    small = ("model.layers=4",)
    found = [Cell("centauri-fsdp", (f"model.preset=llama-{model}", *small,
                                    f"model.microbatch_size={batch}"),
                  at=(("cell", f"FSDP16 {model}, batch {batch}"),))
             for model in ("small", "large") for batch in BATCHES]
    found += [Cell("centauri-dp", ("parallel.gradient_sync=zero1", *small,
                                   f"model.microbatch_size={batch}"),
                   at=(("cell", f"DP16 small, batch {batch}"),)) for batch in BATCHES]
    # Equation 2 decides how many microbatches are launched together where there are stages.
    found += [Cell("centauri-tp-pp-dp", ("model.layers=6", f"model.microbatch_size={batch}"),
                   "interleaved-1f1b", at=(("cell", f"TP4+PP3+DP4 big, batch {batch}"),))
              for batch in (1, 4)]
    return found


def draw(_options):
    ideas = ",".join(("primitive", "group", "workload", *TIERS))
    options = {"simulation": ("--allow", ideas)}
    options |= {tier: ("--rules", tier) for tier in TIERS}
    table = cells.by_option(asked(), options, ("centauri",))
    best = table[table["option"] == "simulation"].set_index("cell")["makespan_ms"]
    table["over"] = [row.makespan_ms / best[row.cell] - 1 for row in table.itertuples()]
    return [Drawn(FIGURE.name, figure_of(table), table)]


def summary(table):
    """A line for each rule: cells, those that are worse, median and most of these (%)."""
    lines = []
    for tier in TIERS:
        over = table[table["option"] == tier]["over"]
        worse = 100 * over[over > WORSE]
        lines.append({"rule": tier, "cells": len(over), "worse": len(worse),
                      "median": worse.median() if len(worse) else 0.0,
                      "most": worse.max() if len(worse) else 0.0})
    return pd.DataFrame(lines)


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.2, 4.2))
    for place, line in summary(table).iterrows():
        over = sorted(100 * table[table["option"] == line["rule"]]["over"])
        spots = [place + 0.5 * (index / max(1, len(over) - 1) - 0.5) for index in range(len(over))]
        axes.plot(spots, over, "o", markersize=4, color="#4a148c")
        note = f"worse in {line['worse']} of {line['cells']}"
        if line["worse"]:
            note += f",\nmedian {line['median']:.1f}%, most {line['most']:.1f}%"
        axes.annotate(note, (place, max(over)), xytext=(0, 8), ha="center", fontsize=7.5,
                      textcoords="offset points")
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(TIERS)), [f"{tier} rule" for tier in TIERS])
    axes.set_ylabel("iteration over that of simulation (%), by cell")
    axes.margins(x=0.1, y=0.25)
    axes.set_ylim(bottom=-0.4)
    axes.set_title("One tier by its rule, the others by simulation; cluster A, simulated",
                   loc="left", fontweight="bold")
    figure.subplots_adjust(left=0.09, right=0.98, top=0.92, bottom=0.09)
    return figure
