"""vTrain figure 13: mean completion of 32 jobs without deadlines, baseline and best plans."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import workloads
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-fig13",
    summary="mean completion of 32 jobs with baseline and best plans (figure 13)",
    shows="mean completion of 32 jobs, likewise",
    options="--trace FILE",
    repeat=Repeat("vtrain", seconds=60,
                  data=(("--trace", "itp_jobs.csv"),), without_data=False))
SEEDS = range(1, 10)
add_arguments = workloads.add_arguments


def draw(options):
    rows, tables = workloads.played(options, (32,), SEEDS, "--no-deadlines")
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table, tables))]


def ratios(table, column):
    own = table.pivot(index="seed", columns="plans", values=column)
    return own["best"] / own["baseline"]


def verdicts(table, tables):
    own = ratios(table, "mean_jct_s")
    less = 100 * (1 - own.mean())
    alone = 100 * (1 - 1 / tables.mean_ratio())
    return [
        claims.judge("vtrain-completion", claims.at_least(less, claims.value("vtrain-completion")),
                     f"{less:.1f}% less in the mean, "
                     f"{claims.spread(100 * (1 - own), '.1f', '%')}",
                     f"Throughput alone would explain {alone:.1f}% (mean of the tables' ratios); "
                     f"at most {100 * (1 - 1 / tables.largest_ratio()):.1f}%."),
        claims.judge("vtrain-completion-always", claims.by_count(int((own < 1).sum()), len(own)),
                     f"{int((own < 1).sum())} of {len(own)} traces")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(6.6, 3.8))
    own = ratios(table, "mean_jct_s")
    axes.bar(own.index, own, color="#0b5394")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(1 - claims.value("vtrain-completion") / 100, color="#cc0000", linewidth=0.8,
                 linestyle="--", label="the paper's, in the mean")
    axes.set_ylim(0, 1.2)
    axes.legend(frameon=False, loc="upper right")
    axes.set_xlabel("trace of 32 jobs")
    axes.set_ylabel("mean completion, of the baseline's")
    axes.set_title("Best plans against the baseline, simulated", loc="left", fontweight="bold")
    figure.tight_layout()
    return figure
