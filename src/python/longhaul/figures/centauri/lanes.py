"""Timelines of one rank of an iteration under overlaps: what its device computes, and what its
collectives send and get inside the node and between nodes."""

import pandas as pd
from matplotlib.patches import Patch

from longhaul.drawing import style
from longhaul.running import tools

LANES = ("device", "in the node", "between nodes")
# By block of computation, and by what a message is for.
COLOURS = {"F": "#397af2", "D": "#44d3da", "W": "#e0f0e7", "gather": "#ffbc10",
           "scatter": "#ac4000", "sum": "#8a8a8a", "tp": "#8fc98f"}
LABELS = {"tp": "of tensor ranks"}
KINDS = {"all_gather": "gather", "reduce_scatter": "scatter"}


def simulated(cell, overlaps, rank=0, tensor=False):
    """Of each overlap a row for each operator of the rank, and for each of its collectives and
    each lane of its messages the time from the first to the last. `tensor`: the first queue is
    that of tensor ranks."""
    found = []
    for overlap in overlaps:
        read = tools.simulate(tools.scenario_file(cell.scenario), (cell.schedule,), cell.overrides,
                              extra=("--overlap", overlap, *cell.options))
        rows = read.predicted[read.predicted["rank"] == rank].sort_values("start_ns")
        makespan = read.predicted["end_ns"].max()
        own = rows_of(rows, tensor)
        own.insert(0, "overlap", overlap)
        own["makespan_ms"] = makespan * 1e-6
        found.append(own)
    return pd.concat(found, ignore_index=True)


def work_of(row):
    """F, D or W: a backward's operators say which in their names."""
    gradient = {"dgrad": "D", "wgrad": "W"}
    return gradient.get(str(row.operator).rpartition(".")[2], str(row.kind))


def rows_of(rows, tensor):
    """`rows`: of one rank, by their start."""
    ms = 1e-6
    found = [{"lane": LANES[0], "kind": work_of(row), "what": str(row.operator).split(".")[0],
              "piece": row.slice, "start_ms": row.start_ns * ms, "end_ms": row.end_ns * ms}
             for row in rows[rows["lane"] == "compute"].itertuples()]
    messages = rows[rows["kind"].isin(("send", "recv")) & (rows["step"] >= 0)]
    for lane, own in messages.groupby("lane", observed=True):
        # Steps of a collective ascend along a lane: where they do not, the next one begins.
        number = (own["step"].diff().fillna(-1) <= 0).cumsum()
        for each, of_one in own.groupby(number):
            first = of_one.iloc[0]
            kind = KINDS.get(str(first["collective"]).split(" ")[0], "sum")
            if tensor and ":" not in str(lane):
                kind = "tp"
            found.append({"lane": LANES[1 if first["level"] == "node" else 2], "kind": kind,
                          "what": str(lane), "piece": each, "start_ms": first["start_ns"] * ms,
                          "end_ms": of_one["end_ns"].max() * ms})
    return pd.DataFrame(found)


def figure_of(table, names, title, note, window=None):
    """A panel for each overlap, `names` its heading. `window`: (from, to) in ms, by overlap."""
    plt = style.apply()
    shown = list(dict.fromkeys(table["overlap"]))
    figure, panels = plt.subplots(len(shown), 1, figsize=(10.4, 1.15 + 1.45 * len(shown)),
                                  squeeze=False)
    longest = max(end - begin for begin, end in window.values()) if window else \
        table["end_ms"].max()
    for axes, overlap in zip(panels.flat, shown):
        own = table[table["overlap"] == overlap]
        begin = window[overlap][0] if window else 0
        for row in own.itertuples():
            place = LANES.index(row.lane)
            axes.barh(place, row.end_ms - row.start_ms, 0.72, left=row.start_ms - begin,
                      color=COLOURS[row.kind], edgecolor="#303030", linewidth=0.4)
            if row.lane == LANES[0] and row.end_ms - row.start_ms > 0.06 * longest:
                axes.annotate(row.what, (row.start_ms - begin + (row.end_ms - row.start_ms) / 2,
                                         place), ha="center", va="center", fontsize=6.5)
        axes.set_yticks(range(len(LANES)), LANES)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, longest)
        axes.set_title(names[overlap], loc="left", fontsize=9)
    panels[-1][0].set_xlabel("ms")
    height = figure.get_size_inches()[1]
    figure.suptitle(title, x=0.02, y=1 - 0.06 / height, ha="left", va="top", fontsize=11,
                    fontweight="bold")
    used = [kind for kind in COLOURS if kind in set(table["kind"])]
    labels = {kind: (style.BLOCK_NAMES | LABELS).get(kind, kind) for kind in used}
    figure.legend(handles=[Patch(facecolor=COLOURS[kind], edgecolor="#303030", linewidth=0.4,
                                 label=labels[kind]) for kind in used],
                  loc="lower center", ncols=len(used), frameon=False)
    figure.text(0.02, 0.3 / height, note, fontsize=7.5, va="bottom")
    figure.subplots_adjust(left=0.11, right=0.985, top=1 - 0.55 / height, bottom=0.85 / height,
                           hspace=0.75)
    return figure


def forwards(table):
    """Of each overlap (0, end of its last forward)."""
    ends = table[table["kind"] == "F"].groupby("overlap", sort=False)["end_ms"].max()
    return {overlap: (0, end) for overlap, end in ends.items()}


def within(table, window):
    """What lies in the window of its overlap, at least in part."""
    begin = table["overlap"].map(lambda one: window[one][0])
    end = table["overlap"].map(lambda one: window[one][1])
    return table[(table["end_ms"] > begin) & (table["start_ms"] < end)]
