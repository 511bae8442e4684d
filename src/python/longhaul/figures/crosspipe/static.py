"""CrossPipe tables 5 and 6, their static columns: how far the simulation of each cell is from the
published number, in both arrangements of communication."""

import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.crosspipe import tables

FIGURE = Figure(
    "crosspipe-static",
    summary="simulated against published times of CrossPipe's tables 5 and 6, static schedules",
    shows="is the model true: simulated against published (tables 5 and 6, [static columns]"
          "(architecture.md#3-grouped-means-receives-that-are-posted-late))",
    repeat=Repeat("crosspipe", seconds=10))
PLACES = {5: "2 datacenters", 6: "4 datacenters"}
BAR = 0.38
INCHES = {"width": 9.6, "panel": 1.45, "gap": 0.36, "left": 0.72, "right": 0.12, "top": 0.74,
          "bottom": 1.45}
COMM_NAMES = {"grouped": "grouped", "decoupled": "decoupled (the paper's _O)"}


def add_arguments(parser):
    parser.description += "; 40 simulations, a few seconds"


def draw(options):
    del options
    table = pd.DataFrame(tables.compare())
    for column in tables.FIELDS[-4:-1]:
        table[column] = pd.to_numeric(table[column])
    return [Drawn(FIGURE.name, figure_of(table), table)]


def figure_of(table):
    """`table`: tables.compare()'s cells, with numbers."""
    plt = style.apply()
    names = [name for name in tables.SCHEDULES if name in set(table["schedule"])]
    inches, count = INCHES, len(names)
    height = (inches["top"] + inches["panel"] * count + inches["gap"] * (count - 1)
              + inches["bottom"])
    figure, axes = plt.subplots(count, 1, figsize=(inches["width"], height), squeeze=False,
                                sharex=True, sharey=True)
    cells = sorted(dict.fromkeys(map(tuple, table[tables.FIELDS[:4]].to_numpy())),
                   key=lambda cell: cell[:2])  # delays as in the table
    room = 0.15 * max(np.ptp(table["deviation_percent"]), 10)  # for the numbers
    lowest, highest = table["deviation_percent"].min(), table["deviation_percent"].max()
    for panel, name in zip(axes[:, 0], names):
        _panel(panel, table[table["schedule"] == name], cells, name)
        panel.set_ylim(min(lowest, 0) - room, max(highest, 0) + room)
    _label_cells(axes[-1, 0], cells)
    figure.subplots_adjust(left=inches["left"] / inches["width"],
                           right=1 - inches["right"] / inches["width"],
                           hspace=inches["gap"] / inches["panel"], top=1 - inches["top"] / height,
                           bottom=inches["bottom"] / height)
    figure.suptitle("CrossPipe's static schedules: simulated against published seconds per "
                    "microbatch", fontweight="bold", x=inches["left"] / inches["width"],
                    ha="left", y=1 - 0.08 / height, va="top", fontsize=11)
    figure.legend(handles=[Patch(**_look(comm), label=COMM_NAMES[comm])
                           for comm in tables.ARRANGEMENTS],
                  loc="lower center", frameon=False, bbox_to_anchor=(0.5, 0), ncols=2)
    figure.text(inches["left"] / inches["width"], 1 - 0.29 / height,
                "A fit: B and R were solved from 1F1B without delay, cases 1 and 2 of table 5, the "
                "reading of grouped was chosen by all of these cells.", fontsize=8, va="top")
    return figure


def _look(comm):
    """Hatched bars are grouped, as in crosspipe-fig11."""
    return ({"facecolor": "#e3a57f", "edgecolor": "#303030", "hatch": "//////", "linewidth": 0.4}
            if comm == "grouped" else
            {"facecolor": "#0b5394", "edgecolor": "#303030", "linewidth": 0.4})


def _panel(axes, table, cells, name):
    for offset, comm in zip((-BAR / 2, BAR / 2), tables.ARRANGEMENTS):
        chosen = table[table["comm"] == comm]
        places = [cells.index(tuple(key)) + offset
                  for key in chosen[tables.FIELDS[:4]].to_numpy()]
        axes.bar(places, chosen["deviation_percent"], BAR, zorder=2, **_look(comm))
        for x, off in zip(places, chosen["deviation_percent"]):
            axes.annotate(f"{off:.0f}" if abs(off) >= 9.5 else f"{off + 0:.1f}", (x, off),
                          xytext=(0, 1.5 if off >= 0 else -1.5), textcoords="offset points",
                          ha="center", va="bottom" if off >= 0 else "top", fontsize=5.5)
    axes.axhline(0, color="black", linewidth=0.8, zorder=3)
    axes.set_title(f"{name}: {_spread(table)}", loc="left", pad=3)
    axes.set_ylabel("deviation (%)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(-0.5, len(cells) - 0.5)
    for place in range(1, len(cells)):
        if cells[place][:2] != cells[place - 1][:2]:
            axes.axvline(place - 0.5, color="#888888", linewidth=0.8)


def _spread(table):
    """The largest deviation of each arrangement, in words."""
    largest = table.groupby("comm")["deviation_percent"].apply(lambda off: off.abs().max())
    return ", ".join(f"{comm} within {largest[comm]:.0f}%"
                     for comm in tables.ARRANGEMENTS)


def _label_cells(axes, cells):
    """Below each cell its delays; below each group of cells their common words."""
    axes.set_xticks(range(len(cells)), [f"{cell[2]}\n{cell[3]}" for cell in cells])
    axes.tick_params(axis="x", length=0, labelsize=7)
    groups = {}
    for place, cell in enumerate(cells):
        groups.setdefault(cell[:2], []).append(place)
    for (table, case), places in groups.items():
        axes.annotate(f"{PLACES[table]} (table {table})\n{_case(case)}",
                      ((places[0] + places[-1]) / 2, 0), xycoords=("data", "axes fraction"),
                      xytext=(0, -30), textcoords="offset points", ha="center", va="top",
                      fontsize=7.5)
    axes.set_xlabel("delay of a message between datacenters:  $T_{lat}/T_F$ (above),  "
                    "$T_{bw}/T_F$ (below)", labelpad=34)


def _case(case):
    return {"1": "case 1: 16 microbatches", "2": "case 2: 32, recomputed"}[str(case)]
