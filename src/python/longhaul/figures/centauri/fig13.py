"""Centauri figures 13 and 14: throughput of FSDP, and of FSDP16 with DP, over 8 to 256 GPUs of
clusters A and B."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import OURS, OVERLAPS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig13",
    summary="FSDP on 8 to 256 GPUs of clusters A and B (Centauri figure 13)",
    shows="FSDP on 8 to 256 GPUs of clusters A and B",
    options="[--overlaps LIST]",
    repeat=Repeat("centauri", seconds=60))
GPUS = (8, 16, 32, 64, 128, 256)
LINES = {"A": "-", "B": "--"}
ROWS = ("zero3", "fsdp2", *OURS)


def add_arguments(parser):
    cells.add_arguments(parser, ROWS)


def draw(options):
    table = numbers(GPUS, lambda gpus: gpus, options)
    figure = figure_of(table, "FSDP of LLaMA big, 30 layers, batch 2, over all GPUs, simulated")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def numbers(counts, shard_of, options):
    asked = [Cell("centauri-scale",
                  (f"parallel.replicas={gpus}", f"parallel.shard={shard_of(gpus)}",
                   f"node.preset=centauri-{cluster.lower()}"),
                  at=(("cluster", cluster), ("gpus", gpus)))
             for cluster in LINES for gpus in counts]
    table = cells.numbers(asked, cells.wanted(options))
    sequences = 2
    table["sequences_per_gpu_s"] = sequences / table["makespan_ms"] * 1000
    return table


def figure_of(table, title):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.2, 4.5))
    for (cluster, overlap), own in table.groupby(["cluster", "overlap"], sort=False):
        axes.plot(own["gpus"], own["sequences_per_gpu_s"], LINES[cluster], marker="o",
                  markersize=3.5, color=OVERLAPS.get(overlap, "#b08fc7"),
                  label=f"{overlap} on {cluster}")
    axes.set_xscale("log", base=2)
    ticks = sorted(set(table["gpus"]))
    axes.set_xticks(ticks, [str(one) for one in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("sequences a second and GPU")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontweight="bold")
    figure.legend(loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.09, right=0.98, top=0.92, bottom=0.24)
    return figure


def by_cluster(table, overlap):
    """Sequences a second and GPU: a row for each number of GPUs, a column for each cluster."""
    own = table[table["overlap"] == overlap]
    return own.pivot_table(index="gpus", columns="cluster", values="sequences_per_gpu_s")


def verdicts(table):
    ours = cells.ours(table) or "fsdp2"
    found = by_cluster(table, ours)
    share = 100 * found["A"] / found["B"]
    most = pd.Series(cells.speedups(table[table["cluster"] == "B"], ours, "zero3", ["gpus"]))
    said = f"{ours} on A reaches {claims.spread(share, '.0f', '%')} of B"
    gain = f"{ours} over zero3 on B: {100 * (most[256] - 1):.1f}% at 256 GPUs"
    if ours == "fsdp2":
        why = "This build has no row centauri."
        return [claims.judge("centauri-scale-clusters", claims.NOT_JUDGED, said, why),
                claims.judge("centauri-scale-b", claims.NOT_JUDGED, gain, why)]
    return [claims.judge("centauri-scale-clusters",
                         claims.by_count(int((share >= 90).sum()), len(share)), said,
                         "Comparable: nine tenths at least."),
            claims.judge("centauri-scale-b",
                         claims.at_least(100 * (most[256] - 1), claims.value("centauri-scale-b")),
                         gain)]
