"""What overlap gains where computation slows beside communication."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import OVERLAPS, Cell

FIGURE = Figure(
    "overlap-price",
    summary="overlaps where kernels slow beside collectives by 1 to 2 ([overlap] slowdown)",
    shows="overlaps where computation slows beside communication ([overlap.md](overlap.md))",
    options="[--overlaps LIST]", repeat=Repeat("centauri", seconds=50))
SLOWDOWNS = (1, 1.2, 1.4, 1.6, 1.8, 2)


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "zero3", "fsdp2", "centauri"))


def draw(options):
    asked = [Cell("centauri-fsdp", ("model.layers=4", f"overlap.slowdown={slowdown}"),
                  at=(("slowdown", slowdown),)) for slowdown in SLOWDOWNS]
    table = cells.numbers(asked, cells.wanted(options))
    return [Drawn(FIGURE.name, figure_of(table), table)]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.4, 4.2))
    for overlap, own in table.groupby("overlap", sort=False):
        axes.plot(own["slowdown"], own["makespan_ms"], marker="o", markersize=4, label=overlap,
                  color=OVERLAPS.get(overlap, "#b08fc7"))
    axes.set_xlabel("computation beside a message takes so many times as long")
    axes.set_ylabel("iteration (ms)")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("FSDP16 of 4 layers of LLaMA small, batch 4, cluster A, simulated", loc="left",
                   fontweight="bold")
    axes.legend(frameon=False)
    figure.subplots_adjust(left=0.1, right=0.98, top=0.92, bottom=0.13)
    return figure
