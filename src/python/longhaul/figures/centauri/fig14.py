"""Centauri figure 14: FSDP16 with DP over 16 to 256 GPUs of clusters A and B."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells, fig13
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig14",
    summary="FSDP16+DP on 16 to 256 GPUs of clusters A and B (Centauri figure 14)",
    shows="FSDP16+DP on 16 to 256 GPUs of clusters A and B",
    options="[--overlaps LIST]",
    repeat=Repeat("centauri", seconds=130))


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", *fig13.ROWS))


def draw(options):
    table = fig13.numbers(fig13.GPUS[1:], lambda gpus: 16, options)
    figure = fig13.figure_of(table, "FSDP16+DP of LLaMA big, 30 layers, batch 2, simulated")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    ours = cells.ours(table) or "fsdp2"
    gains = {cluster: cells.speedups(table[table["cluster"] == cluster], ours, "serial", ["gpus"])
             for cluster in fig13.LINES}
    theirs = cells.speedups(table[table["cluster"] == "B"], "zero3", "serial", ["gpus"])
    said = (f"{ours} over serial on A {claims.spread(gains['A'])}, on B "
            f"{claims.spread(gains['B'])}; zero3 on B {claims.spread(theirs)}")
    if ours == "fsdp2":
        return [claims.judge("centauri-scale-hybrid", claims.NOT_JUDGED, said,
                             "This build has no row centauri.")]
    twice = (gains["B"] - 1) >= 2 * (theirs - 1)
    constant = gains["A"].max() / gains["A"].min() <= 1.1
    agree = int(twice.sum()) + int(constant)
    return [claims.judge("centauri-scale-hybrid", claims.by_count(agree, len(twice) + 1), said,
                         "Twice: of what is gained over serial. Constant: within 10%.")]
