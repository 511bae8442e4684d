"""Centauri figure 6: the backward of a layer under tensor parallelism and FSDP, three orders."""

import pandas as pd

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells, lanes
from longhaul.figures.centauri.cells import Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig6",
    summary="a layer's backward under TP and FSDP: dgrads first, Megatron, ours (Centauri fig. 6)",
    shows="the backward of one layer under TP and FSDP, three ways",
    repeat=Repeat("centauri", seconds=25))
NAMES = {"zero3": "a: gradients of activations first, everything on one lane (zero3)",
         "megatron": "b: tensor ranks' collectives beside gradients of weights (megatron)",
         "centauri": "c: by the critical path (centauri)"}
LAYERS = 2
CELL = Cell("centauri-fsdp", (f"model.layers={LAYERS}", "model.preset=llama-big",
                              "parallel.tensor=2", "parallel.replicas=8", "parallel.shard=8",
                              "parallel.sequence_parallel=true"))
BATCHES = (1, 2, 4, 8)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    table = lanes.simulated(CELL, NAMES, tensor=True)
    window = windows(table)
    table = lanes.within(table, window)
    figure = lanes.figure_of(
        table, NAMES, "Backward and sums of two layers of LLaMA big, TP2 and FSDP8 on 2 nodes of "
        "cluster A, batch 4, simulated", "Rank 0, from the end of its forward on; messages that are "
        "under way at once lie on each other.", window)
    return [Drawn(FIGURE.name, figure, table, verdicts(orders()))]


def windows(table):
    """From the end of the last forward to the end of the iteration."""
    begin = table[table["kind"] == "F"].groupby("overlap", sort=False)["end_ms"].max()
    return {overlap: (begin[overlap], own["makespan_ms"].iloc[0])
            for overlap, own in table.groupby("overlap", sort=False)}


def orders():
    """Iterations by batch: the three, and ours without its layer tier (orders and partitions of
    the backward)."""
    asked = [Cell(CELL.scenario, (*CELL.overrides, f"model.microbatch_size={batch}"),
                  at=(("batch", batch),)) for batch in BATCHES]
    without = {"without": ("--allow", "primitive,group,workload,operation,model")}
    return pd.concat([cells.numbers(asked, tuple(NAMES)),
                      cells.by_option(asked, without, ("centauri",)).assign(overlap="without")])


def verdicts(table):
    by = table.pivot_table(index="batch", columns="overlap", values="makespan_ms")
    gain = by[["zero3", "megatron"]].min(axis=1) / by["centauri"]
    tier = by["without"] / by["centauri"]
    return [claims.judge(
        "centauri-layer-order", claims.by_count(int((gain > 1.001).sum()), len(gain)),
        f"{claims.spread(gain)} times over the faster of a and b, batches {BATCHES[0]} to "
        f"{BATCHES[-1]}",
        f"Over c without its layer tier, partitions of the backward included, {claims.spread(tier)}; "
        "more than a thousandth counts.")]
