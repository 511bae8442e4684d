"""Centauri figure 3: an iteration of FSDP and DP after each of its six steps."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import TRAFFICS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig3",
    summary="FSDP and DP after each of Centauri's steps 1 to 6 (Centauri figure 3)",
    shows="an iteration after each of steps 1 to 6",
    repeat=Repeat("centauri", seconds=30))
# Partitions of steps 1 to 3 are chosen by the tiers of steps 4 to 6.
STEPS = {"original": "operation", "1 primitive": "primitive,operation,model",
         "2 group": "primitive,group,operation,model",
         "3, 4 workload, operation": "primitive,group,workload,operation",
         "5 layer": "primitive,group,workload,operation,layer",
         "6 model": "primitive,group,workload,operation,layer,model"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    cell = Cell("centauri-fsdp-dp", ("parallel.replicas=32", "parallel.shard=16",
                                     "model.layers=2", "datacenter.a.gpus=32"))
    table = cells.by_option((cell,), {name: ("--allow", words) for name, words in STEPS.items()},
                            ("centauri",))
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    """Does each step bring something beyond the one before it?"""
    times = list(table["makespan_ms"])
    gains = [before / after for before, after in zip(times, times[1:])]
    agree = sum(gain > 1.001 for gain in gains)
    return [claims.judge(
        "centauri-steps", claims.by_count(agree, len(gains)),
        ", ".join(f"{gain:.3f}" for gain in gains) + f" times over the step before, "
        f"{times[0] / times[-1]:.3f} in all",
        "Steps: " + ", ".join(list(table["option"])[1:]) + "; a thousandth counts.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.2, 4.0))
    hidden = table["makespan_ms"]
    axes.barh(range(len(table)), hidden, 0.62, color="#e6e6e6", edgecolor="black", linewidth=0.4,
              label="iteration")
    left = [0.0] * len(table)
    for kind, colour in TRAFFICS.items():
        widths = list(table[f"{kind}_exposed_ms"])
        if not any(widths):
            continue
        axes.barh(range(len(table)), widths, 0.34, left=left, color=colour, edgecolor="black",
                  linewidth=0.4, label=f"exposed {kind}")
        left = [before + width for before, width in zip(left, widths)]
    for place, time in enumerate(hidden):
        axes.annotate(f"{time:.1f} ms", (time, place), xytext=(3, 0), va="center", fontsize=7.5,
                      textcoords="offset points")
    axes.set_yticks(range(len(table)), list(table["option"]))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("ms")
    axes.set_title("FSDP16+DP2 of two layers of LLaMA small, cluster A, simulated", loc="left",
                   fontweight="bold")
    figure.legend(loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.2, right=0.98, top=0.92, bottom=0.24)
    return figure
