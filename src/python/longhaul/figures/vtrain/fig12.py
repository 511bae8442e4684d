"""vTrain figure 12: deadlines met by ElasticFlow with baseline and with best plans."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import workloads
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-fig12",
    summary="deadlines met with baseline and best plans, 64 and 128 jobs (figure 12)",
    shows="deadlines met with baseline and best plans, 64 and 128 jobs",
    options="--trace FILE",
    repeat=Repeat("vtrain", seconds=76,
                  data=(("--trace", "itp_jobs.csv"),), without_data=False))
SEEDS = range(1, 11)
COUNTS = (64, 128)
add_arguments = workloads.add_arguments


def draw(options):
    rows, tables = workloads.played(options, COUNTS, SEEDS)
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table, tables))]


def gains(table, count):
    own = table[table["jobs"] == count].pivot(index="seed", columns="plans",
                                              values="deadline_ratio")
    return own["best"] / own["baseline"]


def verdicts(table, tables):
    why = (f"Throughput of the best plans is {tables.mean_ratio():.2f} times the baseline's in the "
           f"mean, {tables.largest_ratio():.2f} at most.")
    said = []
    for count in COUNTS:
        own = gains(table, count)
        name = f"vtrain-deadlines-{count}"
        said.append(claims.judge(name, claims.at_least(own.mean(), claims.value(name)),
                                 f"{own.mean():.2f} in the mean, {claims.spread(own)}", why))
    every = pd.concat([gains(table, count) for count in COUNTS])
    said.append(claims.judge("vtrain-deadlines-always",
                             claims.by_count(int((every > 1).sum()), len(every)),
                             f"{int((every > 1).sum())} of {len(every)} traces"))
    return said


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True)
    for axis, (count, own) in zip(axes, table.groupby("jobs")):
        for shift, (how, colour) in zip((-0.2, 0.2), (("baseline", "#999999"),
                                                      ("best", "#0b5394"))):
            rows = own[own["plans"] == how]
            axis.bar(rows["seed"] + shift, rows["deadline_ratio"], 0.38, color=colour, label=how)
        bound = own[own["plans"] == "best"]
        axis.plot(bound["seed"], bound["bound_deadlines"] / count, linestyle="", marker="_",
                  color="black", markersize=12, label="no scheduler meets more (best plans)")
        axis.set_title(f"{count} jobs", loc="left", fontweight="bold")
        axis.set_xlabel("trace")
    axes[0].set_ylabel("deadlines met")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncol=3, frameon=False)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.9, bottom=0.24)
    return figure
