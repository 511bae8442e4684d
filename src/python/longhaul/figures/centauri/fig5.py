"""Centauri figure 5: a gather and the operators that need it, partitioned five ways."""

import json

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "centauri-fig5",
    summary="a gather and its operators: coarse, fine, in two orders of groups, as chosen",
    shows="a gather and its operators, partitioned five ways",
    repeat=Repeat("centauri", seconds=10))
OVERHEAD_US = 50
OVERRIDES = ("model.microbatch_size=2", "overlap.max_chunks=16",
             f"overlap.split_overhead={OVERHEAD_US}us")
PARTS = {"beside_ms": ("independent computation", "#e6e6e6"),
         "chain_ms": ("the operator", "#397af2"),
         "overhead_ms": (f"launches of pieces ({OVERHEAD_US} us each)", "#c9561a"), "idle_ms": ("idle", "white")}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    command = [tools.binary("longhaul"), "partition", tools.scenario_file("centauri-fsdp"),
               "--schedule", "gpipe", "--json"]
    command += tools.set_words(OVERRIDES)
    found = json.loads(tools.run(command))["communications"]
    gathers = [one for one in found if one["kind"] == "all-gather" and one["block"] == "F"
               and one["independent_ns"] > 0]
    own = max(gathers, key=lambda one: one["leaves"][0]["exposed_ns"])
    table = ways(own)
    return [Drawn(FIGURE.name, figure_of(table, own), table, verdicts(table))]


def ways(own):
    """The leaves of figure 5 a to e; all times in ms."""
    def is_of(leaf, group, pieces):
        return leaf["group"] == group and len(leaf["granularity"]) == pieces
    leaves = own["leaves"]
    by = {"a: coarse": next(leaf for leaf in leaves if is_of(leaf, "flat", 1)),
          "b: 16 pieces": next(leaf for leaf in leaves if is_of(leaf, "flat", 16)),
          "c: far groups first, in 2": next(leaf for leaf in leaves if is_of(leaf, "far first", 2)
                                            and "by group" in leaf["partition"]),
          "d: near groups first, in 3": next(leaf for leaf in leaves
                                             if is_of(leaf, "near first", 3)
                                             and "by group" in leaf["partition"]),
          "e: by algorithm 1": leaves[own["choice"]],
          "least of all": min(leaves, key=lambda leaf: leaf["exposed_ns"])}
    return pd.DataFrame([row_of(name, own, leaf) for name, leaf in by.items()])


def row_of(name, own, leaf):
    """What is exposed is launches of pieces and, beyond these, an idle device."""
    ms, pieces = 1e-6, len(leaf["granularity"])
    overhead = (pieces - 1) * OVERHEAD_US * 1e-3
    return {"way": name, "partition": leaf["partition"],
            "granularity": " ".join(leaf["granularity"]),
            "gather_ms": leaf["cost_ns"] * ms, "beside_ms": own["independent_ns"] * ms,
            "chain_ms": own["computation_ns"] * ms, "overhead_ms": overhead,
            "idle_ms": max(0.0, leaf["exposed_ns"] * ms - overhead),
            "exposed_ms": leaf["exposed_ns"] * ms}


def figure_of(table, own):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(9.2, 4.2))
    left = [0.0] * len(table)
    for column, (label, colour) in PARTS.items():
        axes.barh(range(len(table)), table[column], 0.5, left=left, color=colour, label=label,
                  edgecolor="black", linewidth=0.5, hatch="////" if column == "idle_ms" else None)
        left = [before + width for before, width in zip(left, table[column])]
    for place, row in enumerate(table.itertuples()):
        axes.annotate(f"{row.exposed_ms:.2f} ms exposed; the gather takes {row.gather_ms:.2f}: "
                      f"{row.partition}", (0, place + 0.28), xytext=(2, -2), va="top",
                      fontsize=6.5, textcoords="offset points")
    axes.set_yticks(range(len(table)), list(table["way"]))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_ylim(len(table) - 0.35, -0.5)
    axes.set_xlabel("ms")
    figure.suptitle(f"Weights of {own['beside']} of LLaMA small, FSDP16, batch 2: gathers simulated, "
                    "exposure composed", x=0.02, y=0.98, ha="left", fontsize=10.5,
                    fontweight="bold")
    figure.legend(loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.2, right=0.98, top=0.92, bottom=0.21)
    return figure


def verdicts(table):
    by = table.set_index("way")
    chosen, least = by.loc["e: by algorithm 1"], by.loc["least of all"]
    most = by.loc["a: coarse", "exposed_ms"]
    verdict = claims.HOLDS if chosen["idle_ms"] <= 0.01 * chosen["chain_ms"] else \
        claims.PARTLY if chosen["exposed_ms"] < most else claims.FAILS
    return [claims.judge(
        "centauri-no-gaps", verdict,
        f"{chosen['idle_ms']:.2f} ms idle beside {chosen['chain_ms']:.2f} of computation "
        f"({chosen['partition']}); coarse {by.loc['a: coarse', 'idle_ms']:.2f}",
        f"The least of all partitions exposes {least['exposed_ms']:.2f} ms "
        f"({least['partition']}).")]
