"""Centauri figure 9: data parallelism of four models on 2 nodes of cluster A."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import bars, cells
from longhaul.figures.centauri.cells import OURS
from longhaul.figures.centauri.fig8 import KEYS, grid_of
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig9",
    summary="DP over 16 GPUs, 4 models x 4 batches, and what fits (Centauri figure 9)",
    shows="DP over 16 GPUs, 4 models x 4 batches",
    options="[--overlaps LIST]", repeat=Repeat("centauri", seconds=30))


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "ddp", "ooo", "zero1", "zero2", "megatron", *OURS))


def draw(options):
    table = cells.numbers(grid_of("centauri-dp"), cells.wanted(options))
    table["of_bound"] = table["bound_ms"] / table["makespan_ms"]
    figure = bars.grid(table, "model", "batch", "of_bound",
                       "DP16 of LLaMA on 2 nodes of cluster A, simulated",
                       "bound over iteration (1: nothing is faster)",
                       "Below: sequences a GPU. Each row against the bound of its own sharding.")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    own = table[table["overlap"].isin(("ddp", "ooo"))]
    others = table[~table["overlap"].isin(("ddp", "ooo", "serial"))]
    beyond, total = int((~own["fits"]).sum()), len(own)
    gains = cells.speedups(table, "zero1", "serial", KEYS)
    return [claims.judge(
        "centauri-dp-memory", claims.mostly(beyond, total),
        f"{beyond} of {total} cells of ddp and ooo do not fit, peaks {_peaks(own)}; of the others "
        f"{int((~others['fits']).sum())} of {len(others)}",
        f"zero1 gains {claims.spread(gains)} over serial where both fit." if len(gains) else "")]


def _peaks(rows):
    return claims.spread(rows["peak_gb"], ".0f", " GB of 80")
