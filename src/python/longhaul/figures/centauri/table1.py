"""Centauri table 1: what frameworks may partition and order, and what that is worth."""

import pandas as pd

from longhaul.drawing import textgrid
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-table1",
    summary="what frameworks may partition and order, and their iterations (Centauri table 1)",
    shows="what frameworks may partition and order, and their iterations",
    repeat=Repeat("centauri", seconds=60))
DIMENSIONS = ("primitive", "group", "workload", "scheduling")
# The table's rows: ours that play them, and the dimensions that they have.
WORKS = {"Better together": (("syndicate",), "primitive scheduling"),
         "Breadth-first": (("breadth-first",), "scheduling"),
         "CoCoNet": (("coconet",), "primitive workload"),
         "dist-einsum": (("dist-einsum",), "workload"),
         "DeepSpeed ZeROs": (("zero1", "zero2", "zero3"), "primitive workload"),
         "Megatron-LM": (("megatron",), "scheduling"),
         "OOO-Backprop": (("ooo",), "scheduling"),
         "Torch DDP, FSDP": (("ddp", "fsdp2"), "workload scheduling"),
         "Centauri": (("centauri",), " ".join(DIMENSIONS))}
CELLS = (Cell("centauri-fsdp", ("model.layers=4",), at=(("cell", "FSDP16"),)),
         Cell("centauri-dp", ("model.layers=4", "parallel.gradient_sync=zero1"),
              at=(("cell", "DP16"),)),
         Cell("centauri-tp-pp-dp", ("model.layers=6",), "interleaved-1f1b",
              (("cell", "TP4+PP3+DP4"),)))
# Each cell's rows keep its sharding.
SHARDED = ("zero3", "fsdp2")
WHOLE = ("ddp", "ooo", "zero1", "zero2")
ANY = ("megatron", "breadth-first", "syndicate", "coconet", "dist-einsum", "centauri")


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    rows = [cells.numbers([cell], ("serial", *(SHARDED if cell.scenario == "centauri-fsdp"
                                               else WHOLE), *ANY)) for cell in CELLS]
    table = pd.concat(rows, ignore_index=True)
    serial = table[table["overlap"] == "serial"].set_index("cell")["makespan_ms"]
    table["speedup"] = [serial[row.cell] / row.makespan_ms for row in table.itertuples()]
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def best_of(table, overlaps, cell):
    """The fastest of a work's rows that fits; None where the cell has none."""
    own = table[(table["cell"] == cell) & table["overlap"].isin(overlaps) & table["fits"]]
    return None if own.empty else own.loc[own["makespan_ms"].idxmin()]


def figure_of(table):
    names = list(dict.fromkeys(table["cell"]))
    marks, colours, bold = [], [], set()
    for place, (overlaps, has) in enumerate(WORKS.values()):
        found = [best_of(table, overlaps, cell) for cell in names]
        marks.append(["yes" if one in has.split() else "-" for one in DIMENSIONS]
                     + ["-" if one is None else f"{one['speedup']:.3f}\n{one['overlap']}"
                        for one in found])
        colours.append(["#d9ead3" if one in has.split() else None for one in DIMENSIONS]
                       + [None] * len(names))
        if overlaps == ("centauri",):
            bold |= {(place, len(DIMENSIONS) + column) for column in range(len(names))}
    return textgrid.draw(textgrid.Grid(
        "Table 1 of Centauri, and what each row gains over no overlap", [*DIMENSIONS, *names],
        list(WORKS), marks, colours, bold,
        [("may decide (the paper)", len(DIMENSIONS)), ("speedup, simulated", len(names))],
        note="LLaMA small (FSDP16, DP16: 4 layers, batch 4), big (TP4+PP3+DP4, 6 layers) on cluster "
             "A.\nOf several rows of a work the fastest that fits into the memory; -: it shards "
             "otherwise.", row_heading_inches=1.35))


def verdicts(table):
    """Subsets: none of the table's rows is faster than ours anywhere."""
    ours = table[table["overlap"] == "centauri"].set_index("cell")["makespan_ms"]
    theirs = table[table["fits"] & ~table["overlap"].isin(("centauri", "serial"))]
    faster = [row for row in theirs.itertuples() if row.makespan_ms < ours[row.cell]]
    least = theirs.groupby("cell", sort=False)["makespan_ms"].min() / ours
    return [claims.judge(
        "centauri-subsets", claims.by_count(len(theirs) - len(faster), len(theirs)),
        f"{len(faster)} of {len(theirs)} rows are faster than centauri, whose gain over the "
        f"fastest of a cell is {claims.spread(least, '.3f')}",
        "centauri also tries the rows themselves, so that it is never slower.")]
