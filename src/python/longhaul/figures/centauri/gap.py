"""How far each overlap is above the bound, over all of Centauri's cells."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import OURS, OVERLAPS, Cell
from longhaul.figures.centauri.fig8 import grid_of

FIGURE = Figure(
    "overlap-gap",
    summary="each overlap over the bound, in all cells of Centauri's FSDP figures",
    shows="each overlap over the bound, in the cells of Centauri's FSDP figures",
    options="[--overlaps LIST]",
    repeat=Repeat("centauri", seconds=220))


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "zero3", "fsdp2", "zeropp", "coconet", *OURS))


def draw(options):
    asked = [*grid_of("centauri-fsdp")]
    asked += [Cell("centauri-fsdp-dp", (f"parallel.shard={shard}", f"model.preset=llama-{model}"),
                   at=(("model", model), ("batch", 4), ("shard", shard)))
              for shard in (16, 8, 4) for model in cells.MODELS]
    table = cells.numbers(asked, cells.wanted(options))
    return [Drawn(FIGURE.name, figure_of(table), table)]


def figure_of(table):
    """The share of cells that are within a gap."""
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.2, 4.4))
    for overlap, own in table.groupby("overlap", sort=False):
        gaps = sorted(100 * own["gap"])
        shares = [(place + 1) / len(gaps) for place in range(len(gaps))]
        axes.step([0, *gaps], [0, *shares], where="post", color=OVERLAPS.get(overlap, "#b08fc7"),
                  label=f"{overlap}, at most {gaps[-1]:.1f}%")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set_xticks((0, 1, 3, 10, 30, 100), ("0", "1", "3", "10", "30", "100"))
    axes.set_xlabel("iteration over the bound (%)")
    axes.set_ylabel("part of the cells")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(f"{len(table) // table['overlap'].nunique()} cells of FSDP and FSDP+DP on "
                   "cluster A, simulated", loc="left", fontweight="bold")
    figure.legend(loc="lower center", ncols=3, frameon=False)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.92, bottom=0.26)
    return figure
