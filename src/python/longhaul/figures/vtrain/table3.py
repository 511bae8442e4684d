"""vTrain table III: the compute-optimal model of 3,360 A100 and 30 days."""

import json
import math

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "vtrain-table3",
    summary="compute-optimal models of 3,360 A100 for 30 days, with the spread of the batch "
            "(table III)",
    shows="compute-optimal models of 3,360 A100 for 30 days",
    repeat=Repeat("vtrain", seconds=30, simulate=("--simulate",)),
    expected=(
        Expected("weights of the first model (10^9)", "published", low=145.605, high=145.615,
                 column="parameters", where="hidden=12288; layers=80; global_batch=1680",
                 why="Table III; 12 L h^2 + 13 L h + (V + s) h."),
        Expected("tokens of the first model (10^9)", "published", low=2911.5, high=2912.5,
                 column="tokens", where="hidden=12288; layers=80; global_batch=1680",
                 why="Table III; 20 a weight."),
        Expected("weights of the sixth model (10^9)", "published", low=76.035, high=76.045,
                 column="parameters", where="hidden=10240; layers=60; global_batch=1680",
                 why="Table III.")))
BATCHES = (840, 1680, 3360)
PAPER_DAYS = {(12288, 80): 95, (12288, 70): 72, (12288, 60): 53, (10240, 80): 50, (10240, 70): 37,
              (10240, 60): 27, (9216, 80): 34, (9216, 70): 26, (9216, 60): 19, (8192, 70): 18,
              (8192, 60): 13}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def sized(batch):
    words = [tools.binary("longhaul"), "size", "--gpus", 3360, "--days", 30, "--global-batch",
             batch, "--schedule", "1f1b", "--recompute", "full", "--sharding", "none", "--memory",
             "any", "--json"]
    return json.loads(tools.run(words))


def draw(options):
    del options
    rows = []
    for batch in BATCHES:
        answer = sized(batch)
        for place, model in enumerate(answer["models"]):
            plan = model["plan"] or {}
            memory = plan.get("memory_bytes", math.nan)
            rows.append({
                "global_batch": batch, "hidden": model["hidden"], "layers": model["layers"],
                "parameters": model["parameters"] / 1e9, "tokens": model["tokens"] / 1e9,
                "layout": f"({plan.get('tensor')}, {plan.get('data')}, {plan.get('pipeline')})",
                "micro_batch": plan.get("micro_batch"), "utilisation": model["utilisation"],
                "days": model["days"], "memory_gib": memory / 2**30, "fits_40gb": memory <= 40e9,
                "fits_80gb": memory <= 80e9, "best": place == answer["best"],
                "paper_days": PAPER_DAYS[model["hidden"], model["layers"]]})
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    first = table[(table["hidden"] == 12288) & (table["layers"] == 80)]
    best = table[table["best"]]
    smaller = 1 - best["parameters"] / 145.61
    within = lambda value: claims.within(value, 48, 0.1, 0.4)  # noqa: E731
    return [
        claims.judge("vtrain-naive-days",
                     claims.over_inputs(first["days"], lambda days: claims.within(
                         days, claims.value("vtrain-naive-days"))),
                     f"{claims.spread(first['days'], '.0f')} days at "
                     f"{claims.spread(100 * first['utilisation'], '.1f', '%')}",
                     "Over global batches of 840, 1,680 and 3,360; the paper prints none."),
        claims.judge("vtrain-realistic-size",
                     claims.over_inputs(100 * smaller, within),
                     f"{claims.spread(best['parameters'])} 10^9 weights, "
                     f"{claims.spread(100 * smaller, '.0f', '%')} smaller",
                     "The paper's last row, (70, 6, 1), is 420 GPUs: impossible as printed.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.0, 4.2))
    paper = table[table["global_batch"] == BATCHES[1]]
    axes.plot(paper["parameters"], paper["paper_days"], linestyle="", marker="x", color="black",
              markersize=8, label="the paper")
    for batch, own in table.groupby("global_batch"):
        axes.plot(own["parameters"], own["days"], linestyle="", marker="o", markersize=4,
                  label=f"simulated, global batch {batch}")
    axes.axhline(30, color="#cc0000", linewidth=0.8)
    axes.set_xlabel("weights (10^9)")
    axes.set_ylabel("days for 20 tokens a weight")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_title("3,360 A100", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
