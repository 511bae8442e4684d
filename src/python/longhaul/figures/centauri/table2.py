"""Centauri table 2: what a collective may be replaced by, and its cost over the number of ranks."""

import json
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "centauri-table2",
    summary="cost of each row of Centauri's table 2 over 8 to 256 ranks",
    shows="cost of each primitive substitution over the number of ranks",
    repeat=Repeat("centauri", seconds=40))
RANKS = (8, 16, 32, 64, 128, 256)
BYTES = 1 << 30
# Rows, whether the paper calls them scalable, and their collectives, one after the other.
ROWS = {"all-reduce": {"reduce + broadcast": (False, ("reduce", "broadcast")),
                       "reduce-scatter + all-gather": (True, ("reduce-scatter", "all-gather"))},
        "reduce-scatter": {"reduce + scatter": (False, ("reduce", "scatter")),
                           "reduces of distinct roots": (True, ("reduce-scatter",))},
        "all-gather": {"gather + broadcast": (False, ("gather", "broadcast")),
                       "broadcasts of distinct roots": (True, ("all-gather",))}}
COLOURS = ("#c8c8c8", "#c9561a", "#2a7ab0")
ROOTED = ("reduce", "broadcast", "gather", "scatter")


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers():
    """A row for each number of ranks and row of the table; ratios are over the kind itself."""
    kinds = (*ROWS, *ROOTED)
    asked = [(kind, ranks) for ranks in RANKS for kind in kinds]
    with ThreadPoolExecutor(max_workers=2) as pool:
        costs = dict(zip(asked, pool.map(lambda one: cost_of(*one), asked)))
    rows = []
    for ranks in RANKS:
        for kind, replaced in ROWS.items():
            rows.append(row_of(ranks, kind, "itself", True, costs[kind, ranks], costs))
            for name, (scales, parts) in replaced.items():
                cost = sum(costs[part, ranks] for part in parts)
                rows.append(row_of(ranks, kind, name, scales, cost, costs))
    return pd.DataFrame(rows)


def row_of(ranks, kind, name, scales, cost, costs):
    return {"ranks": ranks, "kind": kind, "row": name, "scales_in_paper": scales,
            "cost_ms": cost, "over_itself": cost / costs[kind, ranks]}


def cost_of(kind, ranks):
    """In ms: a ring; from or to one member the fastest of all algorithms, a chain in four times as
    many pieces as ranks (512 at most) among them."""
    command = [tools.binary("longhaul"), "collective", tools.scenario_file("centauri-scale"),
               "--kind", kind, "--bytes", BYTES, "--json", "--set", f"parallel.replicas={ranks}",
               "--set", f"parallel.shard={ranks}"]
    ways = [("--algorithm", "ring")]
    if kind in ROOTED:
        ways = [("--algorithm", "all"), ("--algorithm", "ring", "--pieces", str(min(4 * ranks, 512)))]
    return 1e-6 * min(one["duration_ns"] for way in ways
                      for one in json.loads(tools.run([*command, *way]))["collectives"])


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, len(ROWS), figsize=(10.4, 4.0), sharey=True)
    for axes, kind in zip(panels, ROWS):
        for (name, own), colour in zip(table[table["kind"] == kind].groupby("row", sort=False),
                                       COLOURS):
            scales = own["scales_in_paper"].iloc[0]
            axes.plot(own["ranks"], own["cost_ms"], "-" if scales else "--", marker="o",
                      markersize=4, color=colour, label=name,
                      linewidth=5 if name == "itself" else 1.5)
        axes.set_xscale("log", base=2)
        axes.set_xticks(RANKS, [str(one) for one in RANKS])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_title(kind, loc="left")
        axes.set_xlabel("ranks")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=7.5)
    panels[0].set_ylabel("1 GiB takes (ms)")
    figure.suptitle("Table 2 of Centauri on cluster A, simulated, each alone on the network",
                    x=0.06, y=0.98, ha="left", fontsize=11, fontweight="bold")
    figure.text(0.06, 0.02, "Dashed: not scalable, the paper says. Reduces and broadcasts of "
                "distinct roots are a chain for each, the messages of the ring itself.",
                fontsize=7.5)
    figure.subplots_adjust(left=0.06, right=0.985, top=0.87, bottom=0.18, wspace=0.06)
    return figure


def verdicts(table):
    rooted = table[~table["scales_in_paper"]]
    unrooted = table[table["scales_in_paper"] & (table["row"] != "itself")]
    scatter = table[table["row"] == "reduce + scatter"]["over_itself"]
    worse = int((rooted["over_itself"] > 1.05).sum()) + int((unrooted["over_itself"] < 1.05).sum())
    return [
        claims.judge("centauri-reduce-scatter-doubles",
                     claims.within(scatter.median(),
                                   claims.value("centauri-reduce-scatter-doubles")),
                     f"{claims.spread(scatter)} times, median {scatter.median():.2f}",
                     "The faster of all algorithms for what has a root, against a ring."),
        claims.judge("centauri-rooted", claims.by_count(worse, len(rooted) + len(unrooted)),
                     f"rooted rows {claims.spread(rooted['over_itself'])} times the collective "
                     f"itself, the others {claims.spread(unrooted['over_itself'])}",
                     "Not scalable: more than 5% above it.")]
