"""vTrain figure 14: makespan of jobs that are submitted together, baseline and best plans."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import workloads
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-fig14",
    summary="makespan of 16 to 72 jobs with baseline and best plans (figure 14)",
    shows="makespan of 16 to 72 jobs, likewise",
    options="--trace FILE",
    repeat=Repeat("vtrain", seconds=60,
                  data=(("--trace", "itp_jobs.csv"),), without_data=False))
COUNTS = (16, 30, 44, 58, 72)
add_arguments = workloads.add_arguments


def draw(options):
    rows, tables = workloads.played(options, COUNTS, (1,), "--no-deadlines", together=True)
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table, tables), table, verdicts(table, tables))]


def ratios(table):
    own = table.pivot(index="jobs", columns="plans", values="makespan_s")
    return own["best"] / own["baseline"]


def verdicts(table, tables):
    own = ratios(table)
    least = 100 * (1 - own.min())
    most = 100 * (1 - 1 / tables.largest_ratio())
    return [claims.judge("vtrain-makespan", claims.at_least(least, claims.value("vtrain-makespan")),
                         f"{claims.spread(100 * (1 - own), '.1f', '%')} less",
                         f"The tables' largest ratio explains {most:.1f}% at most; more would come "
                         "from packing.")]


def figure_of(table, tables):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(6.6, 3.8))
    own = ratios(table)
    axes.bar([str(count) for count in own.index], own, color="#0b5394")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(1 / tables.largest_ratio(), color="#cc0000", linewidth=0.8, linestyle="--",
                 label="one over the largest ratio of the throughput tables")
    axes.set_xlabel("jobs, submitted together")
    axes.set_ylabel("makespan, of the baseline's")
    axes.set_title("Best plans against the baseline, simulated", loc="left", fontweight="bold")
    axes.set_ylim(0, 1.25)
    axes.legend(frameon=False, loc="upper right")
    figure.tight_layout()
    return figure
