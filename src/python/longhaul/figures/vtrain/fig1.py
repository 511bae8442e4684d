"""vTrain figure 1: GPT-3's training time and cost over the utilisation of 1,024 A100."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "vtrain-fig1",
    summary="GPT-3 on 1,024 A100: days and dollars over utilisation (figure 1), arithmetic",
    shows="GPT-3 on 1,024 A100: days and dollars over utilisation",
    repeat=Repeat("vtrain", seconds=2, simulate=("--simulate",)),
    expected=(
        Expected("days at 50%, 6 FLOPs a weight", "exact", low=22.8, high=22.9, column="days_6nt",
                 where="utilisation=0.5", why="6 N T / (1,024 x 0.5 x 312e12 x 86,400)."),))
GPUS, PEAK, WEIGHTS, TOKENS, PRICE = 1024, 312e12, 175e9, 300e9, 5.0


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="arithmetic alone (always so)")


def draw(options):
    del options
    rows = []
    for percent in range(20, 71, 5):
        share = percent / 100
        row = {"utilisation": share}
        for factor in (6, 8):
            days = factor * WEIGHTS * TOKENS / (GPUS * share * PEAK) / 86400
            row |= {f"days_{factor}nt": days,
                    f"dollars_{factor}nt": days * 24 * GPUS * PRICE}
        rows.append(row)
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    at = table.set_index("utilisation")
    more = {factor: at.loc[0.4] - at.loc[0.5] for factor in (6, 8)}
    days = {factor: more[factor][f"days_{factor}nt"] for factor in more}
    dollars = {factor: more[factor][f"dollars_{factor}nt"] for factor in more}
    return [
        claims.judge("vtrain-utilisation-days",
                     claims.within(days[8], claims.value("vtrain-utilisation-days")),
                     f"{days[6]:.1f} (6 N T), {days[8]:.1f} (8 N T: forward computed again)",
                     "300e9 tokens, 312 TFLOP/s: the paper says neither; 8 N T is nearer."),
        claims.judge("vtrain-utilisation-dollars",
                     claims.by_count(sum(value > 0.9e6 for value in dollars.values()), 2),
                     f"${dollars[6] / 1e6:.2f} M and ${dollars[8] / 1e6:.2f} M",
                     "At $5 for a GPU and hour it is below a million.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.0, 4.0))
    for factor, colour in ((6, "#0b5394"), (8, "#c9561a")):
        axes.plot(100 * table["utilisation"], table[f"days_{factor}nt"], color=colour, marker="o",
                  markersize=4, label=f"{factor} N T FLOPs")
    right = axes.twinx()
    low, high = 0, table["days_8nt"].max() * 1.05
    axes.set_ylim(low, high)
    right.set_ylim(low, high * 24 * GPUS * PRICE / 1e6)
    axes.set_xlabel("utilisation of 1,024 A100 (%)")
    axes.set_ylabel("days of training")
    right.set_ylabel("millions of dollars at $5 a GPU-hour")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_title("GPT-3, 175e9 weights, 300e9 tokens", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
