"""vTrain figure 11: MT-NLG's layouts of 8 tensor ranks, time against utilisation."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import fig10, inputs
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-fig11",
    summary="MT-NLG with t = 8: iteration time against utilisation (figure 11)",
    shows="MT-NLG with t = 8: iteration time against utilisation",
    repeat=Repeat("vtrain", seconds=40, simulate=("--simulate",)))
NEAR = (1900, 3500)     # GPUs: "similar amount of GPU compute budget"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def draw(options):
    del options
    table = fig10.numbers()
    table = table[table["tensor"] == 8].reset_index(drop=True)
    table["layout"] = [f"({t}, {d}, {p})" for t, d, p in
                       zip(table["tensor"], table["data"], table["pipeline"])]
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def marked(table, layouts):
    return table[table["layout"].isin([str(each) for each in layouts])]


def verdicts(table):
    baseline, found = marked(table, inputs.BASELINE), marked(table, inputs.FOUND)
    better = sum((found["utilisation"] > own).sum() == len(found)
                 for own in baseline["utilisation"])
    return [claims.judge("vtrain-better-points", claims.by_count(better, len(baseline)),
                         f"found {claims.spread(100 * found['utilisation'])}%, baseline "
                         f"{claims.spread(100 * baseline['utilisation'])}%")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.0, 4.4))
    near = table[table["gpus_used"].between(*NEAR)]
    axes.scatter(100 * near["utilisation"], near["iteration_s"], s=12, color="#999999",
                 label=f"{NEAR[0]} to {NEAR[1]} GPUs")
    for layouts, colour, label in ((inputs.BASELINE, "black", "baseline"),
                                   (inputs.FOUND, "#cc0000", "the paper's findings")):
        own = marked(table, layouts)
        axes.scatter(100 * own["utilisation"], own["iteration_s"], s=36, color=colour, label=label)
        for row in own.itertuples():
            axes.annotate(row.layout, (100 * row.utilisation, row.iteration_s), xytext=(5, 4),
                          textcoords="offset points", fontsize=7.5, color=colour)
    axes.set_xlabel("utilisation (%)")
    axes.set_ylabel("iteration (s)")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("MT-NLG, t = 8, simulated", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
