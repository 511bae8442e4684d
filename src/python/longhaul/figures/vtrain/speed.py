"""vTrain section III-F: how long a point and a whole search take."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import inputs
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-speed",
    summary="seconds of MT-NLG's searches, exhaustive and by bounds (section III-F)",
    shows="seconds of MT-NLG's searches, exhaustive and by bounds (III-F)",
    repeat=Repeat("vtrain", seconds=60, simulate=("--simulate",), deterministic=False))
SPACES = {
    "294 points": ("--tensor", "4,8,16", "--data", "1,2,3,4,5,6,8,10,12,15,16,20,24,30",
                   "--pipeline", "3,5,7,15,21,35,105", "--micro-batch", "1", "--schedule", "1f1b",
                   "--recompute", "full", "--sharding", "none", "--memory", "any"),
    "6 orders x 3 recomputations": ("--tensor", "1,2,4,8,16", "--data", "1:32", "--pipeline",
                                    "1,3,5,7,15,21,35,105", "--micro-batch", "1:16", "--sharding",
                                    "none", "--memory", "any")}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def draw(options):
    del options
    rows = []
    for name, space in SPACES.items():
        for how in ((), ("--exhaustive",)):
            if how and len(rows) > 2:
                continue  # the larger space by bounds alone: minutes otherwise
            answer = inputs.searched(*space, *how)
            rows.append({"space": name, "search": "exhaustive" if how else "bounds",
                         "points": answer["space"]["points"],
                         "feasible": answer["space"]["feasible"],
                         "evaluated": answer["evaluated"], "blocks": answer["blocks"],
                         "seconds": answer["seconds"]})
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    every = table[table["search"] == "exhaustive"].iloc[0]
    point = every["seconds"] / every["evaluated"]
    return [claims.judge("vtrain-speed-point",
                         claims.HOLDS if point <= claims.value("vtrain-speed-point") else
                         claims.FAILS, f"{1e3 * point:.2f} ms",
                         f"{every['blocks'] / every['seconds'] / 1e6:.1f} M blocks a second, all "
                         "of them played, on this machine under whatever load it had.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    names = [f"{row.space},\n{row.search}" for row in table.itertuples()]
    bars = axes.barh(names, table["seconds"], color="#0b5394")
    axes.bar_label(bars, [f"{row.seconds:.2f} s: {row.evaluated:,} of {row.points:,} points played"
                          for row in table.itertuples()], padding=4, fontsize=8)
    axes.set_xlim(0, 1.75 * table["seconds"].max())
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_title("Searches of MT-NLG's layouts", loc="left", fontweight="bold")
    figure.tight_layout()
    return figure
