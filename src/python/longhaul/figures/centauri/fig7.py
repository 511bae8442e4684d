"""Centauri figure 7: how many microbatches pass a chunk together, from depth first to breadth
first: time and memory."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import OVERLAPS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig7",
    summary="microbatches together, depth first to breadth first: time, memory (Centauri figure 7)",
    shows="microbatches together: time and memory",
    options="[--overlaps LIST]", repeat=Repeat("centauri", seconds=75))
MICROBATCHES = 12
GROUPS = (3, 4, 6, 12)
BATCHES = (1, 4)


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "megatron", "centauri"))


def draw(options):
    asked = [Cell("centauri-tp-pp-dp",
                  (f"parallel.microbatches={MICROBATCHES}", f"model.microbatch_size={batch}",
                   f"parallel.microbatch_group={group}"), "interleaved-1f1b",
                  (("batch", batch), ("group", group)))
             for batch in BATCHES for group in GROUPS]
    table = cells.numbers(asked, cells.wanted(options))
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    """A medium group hides as much as all together: within a hundredth, and in what memory."""
    own = table[table["overlap"] == "megatron"]
    said, agree = [], 0
    for batch, rows in own.groupby("batch"):
        by = rows.set_index("group")
        enough = [group for group in GROUPS[:-1]
                  if by.loc[group, "makespan_ms"] <= 1.01 * by.loc[GROUPS[-1], "makespan_ms"]]
        least = min(enough, default=GROUPS[-1])
        agree += GROUPS[0] < least < GROUPS[-1]
        said.append(f"batch {batch}: {least} of {GROUPS[-1]}, peak {by.loc[least, 'peak_gb']:.1f} GB "
                    f"of {by.loc[GROUPS[-1], 'peak_gb']:.1f}")
    return [claims.judge("centauri-memory-steps", claims.by_count(agree, len(said)),
                         "; ".join(said), "Under megatron, the fewest within 1% of all together; "
                         "the peak has weights and optimizer in it.")]


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.0))
    for axes, column, label in zip(panels, ("makespan_ms", "peak_gb"),
                                   ("iteration (ms)", "peak of a rank (GB)")):
        for (batch, overlap), own in table.groupby(["batch", "overlap"], sort=False):
            axes.plot(own["group"], own[column], "-" if batch == BATCHES[-1] else ":", marker="o",
                      markersize=4, color=OVERLAPS.get(overlap, "#b08fc7"),
                      label=f"{overlap}, batch {batch}")
        axes.set_xticks(GROUPS, [str(one) for one in GROUPS])
        axes.set_xlabel("microbatches together")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    figure.suptitle(f"TP4+PP3+DP4 of LLaMA big, {MICROBATCHES} microbatches, simulated", x=0.07,
                    y=0.97, ha="left", fontsize=11, fontweight="bold")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.07, right=0.98, top=0.88, bottom=0.23, wspace=0.2)
    return figure
