"""vTrain figures 10 and 11: MT-NLG's iteration time and utilisation over (t, d, p)."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import inputs
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "vtrain-fig10",
    summary="MT-NLG: iteration time and utilisation of every (t, d, p) (figure 10)",
    shows="MT-NLG: iteration time and utilisation of every (t, d, p)",
    repeat=Repeat("vtrain", seconds=40, simulate=("--simulate",)),
    expected=(
        Expected("utilisation of (16, 16, 105) (%)", "published", low=14, high=20,
                 column="utilisation_percent", where="tensor=16; data=16; pipeline=105",
                 why="Section V-A: 17% on the fastest layout."),))


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers():
    table = inputs.all_layouts()
    keys = ["tensor", "data", "pipeline", "gpus_used", "iteration_ns", "low_ns", "high_ns",
            "utilisation", "memory_bytes"]
    table = table[keys].copy()
    table["iteration_s"] = table["iteration_ns"] / 1e9
    table["utilisation_percent"] = 100 * table["utilisation"]
    return table


def verdicts(table):
    fastest = table.loc[table["iteration_ns"].idxmin()]
    named = table[(table["tensor"] == 16) & (table["data"] == 16) & (table["pipeline"] == 105)]
    named = named.iloc[0]
    rank = int((table["iteration_ns"] < named["iteration_ns"]).sum()) + 1
    more = fastest["gpus_used"] / 2800
    return [
        claims.judge("vtrain-fastest-layout",
                     claims.HOLDS if rank <= 3 else
                     claims.PARTLY if rank <= len(table) / 20 else claims.FAILS,
                     f"({fastest['tensor']:.0f}, {fastest['data']:.0f}, {fastest['pipeline']:.0f}) "
                     f"is; (16, 16, 105) is {rank} of {len(table)}",
                     f"{fastest['iteration_s']:.2f} s against {named['iteration_s']:.2f} s."),
        claims.judge("vtrain-fastest-gpus",
                     claims.within(more, claims.value("vtrain-fastest-gpus"), 0.2, 0.6),
                     f"{more:.1f} times the 2,800 GPUs of the middle baseline",
                     "The most GPUs of the space are the fastest."),
        claims.judge("vtrain-fastest-utilisation",
                     claims.within(named["utilisation_percent"],
                                   claims.value("vtrain-fastest-utilisation"), 0.15, 0.5),
                     f"{named['utilisation_percent']:.1f}% of (16, 16, 105)")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2))
    for tensor, own in table.groupby("tensor"):
        for place, column in enumerate(("iteration_s", "utilisation_percent")):
            axes[place].scatter(own["gpus_used"], own[column], s=9, alpha=0.7, label=f"t = {tensor}")
    for axis, label in zip(axes, ("iteration (s)", "utilisation (%)")):
        axis.set_xscale("log")
        axis.set_xlabel("GPUs")
        axis.set_ylabel(label)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yscale("log")
    axes[0].set_title("MT-NLG, every (t, d, p), simulated", loc="left", fontweight="bold")
    axes[1].legend(frameon=False)
    figure.tight_layout()
    return figure
