"""Centauri figure 1: the forward of one layer under FSDP, gathered ahead, fused, and partitioned."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import lanes
from longhaul.figures.centauri.cells import Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig1",
    summary="a layer's forward under FSDP: gathered ahead, fused, partitioned (Centauri figure 1)",
    shows="the forward of one layer under FSDP, three ways",
    repeat=Repeat("centauri", seconds=15))
NAMES = {"zero3": "a: weights are gathered before their product, one operator ahead (zero3)",
         "dist-einsum": "b: product and gather in pieces, one a step of the ring (dist-einsum)",
         "centauri": "c: partitioned by group and workload (centauri)"}
CELL = Cell("centauri-fsdp", ("model.layers=1", "model.microbatch_size=2"))


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    table = lanes.simulated(CELL, NAMES)
    window = lanes.forwards(table)
    table = lanes.within(table, window)
    figure = lanes.figure_of(
        table, NAMES, "The forward of a layer of LLaMA small, FSDP16 on cluster A, batch 2, "
        "simulated", "Rank 0: what its device computes, and its messages, a bar from a "
        "collective's first to its last.", window)
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    """Section 1 says of the figure that a product ends earlier in a than fused in b."""
    products = table[table["kind"] == "F"].groupby(["overlap", "what"], sort=False)["end_ms"].max()
    ahead, fused = products["zero3"], products["dist-einsum"]
    earlier = [name for name in ahead.index if ahead[name] < fused[name]]
    ends = {overlap: products[overlap].max() for overlap in NAMES}
    return [claims.judge(
        "centauri-fused", claims.HOLDS if earlier else claims.FAILS,
        f"{len(earlier)} of {len(ahead)} operators end earlier in a than in b",
        "Forward: " + ", ".join(f"{overlap} {end:.2f} ms" for overlap, end in ends.items()) + ".")]
