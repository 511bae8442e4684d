"""StellaTrain figure 15: speed of iterations against learning of an update, method by method."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig15",
    summary="methods that were trained: speed of updates against what one teaches (figure 15)",
    shows="speed of updates (simulated) against what one teaches (measured on `train-2dc`)",
    repeat=Repeat("stella", seconds=3, simulate=("--simulate",)))
CURVES = ("train-2dc-curves.csv", "train-2dc-staleness.csv")  # of benchmarks/scenarios
RATES = (0.576, 5, 100)  # Mbps; at the first dense gradients take 100 times the blocks
BASE, FRESH, STALE = "none", "block", "stella"
POINTS = {"none": ("none", "#1f1f1f", "o"), "int8": ("int8", "#8a8a8a", "s"),
          "powersgd:4": ("powersgd:4", "#3fa7d6", "D"), "topk": ("top 1%, sites", "#9fcf8f", "^"),
          "diloco:20": ("diloco:20", "#c9561a", "P"), "block": ("blocks of 16, 1%", "#2aa552", "v"),
          "stella": ("blocks, one iteration stale", "#c4161c", "*")}
READ = ["method", "seed", "updates", "validation", "local_steps"]


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    curves = kept_curves()
    table = numbers(curves)
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), [verdict(curves)])]


def kept_curves():
    """All rows of the kept curves; `stella` is that of the file that has `block` beside it."""
    tables = [pd.read_csv(tools.SCENARIOS / name, comment="#") for name in CURVES]
    return pd.concat([tables[0][tables[0]["method"] != STALE], tables[1]], ignore_index=True)


def updates_to(curve, loss):
    """Updates after which a falling curve [(updates, loss)] is at `loss`, between its points."""
    before = None
    for updates, validation in curve:
        if validation <= loss:
            if before is None:
                return updates
            share = (before[1] - loss) / (before[1] - validation)
            return before[0] + share * (updates - before[0])
        before = updates, validation
    return float("nan")


def learning(curves, method, base):
    """Updates of `base` over those of `method` to the last loss that both reach, of each seed of
    both: 1 where an update teaches as much."""
    found = []
    own, others = (curves[curves["method"] == name] for name in (method, base))
    for seed in sorted(set(own["seed"]) & set(others["seed"])):
        pair = [list(one[one["seed"] == seed].sort_values("updates")[["updates", "validation"]]
                     .itertuples(index=False, name=None)) for one in (own, others)]
        loss = max(min(validation for _, validation in curve) for curve in pair)
        found.append(updates_to(pair[1], loss) / updates_to(pair[0], loss))
    return found


def periods(curves):
    """{(Mbps, method): seconds of an update} as `longhaul tune` simulates exchanges."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "curves.csv"
        curves.to_csv(file, index=False)
        said = json.loads(tools.run([
            tools.binary("longhaul"), "tune", tools.scenario_file("train-2dc"), "--family", "all",
            "--curves", file, "--bandwidth", ",".join(f"{mbps}Mbps" for mbps in RATES), "--json"]))
    steps = curves.groupby("method")["local_steps"].first()
    return {(mbps, one["method"]): one["period_ns"] * 1e-9 / steps[one["method"]]
            for mbps, setting in zip(RATES, said["settings"]) for one in setting["methods"]}


def source_of(curves, method):
    """Command and commit of the runs that the learning of a method is measured by."""
    return curves[curves["method"] == method][["command", "commit"]].iloc[0].to_dict()


def numbers(curves):
    taken = periods(curves)
    rows = []
    for method in dict.fromkeys(curves["method"]):
        teaches = learning(curves, method, BASE)
        rows += [{"method": method, "mbps": mbps, "update_s": taken[mbps, method],
                  "speed": taken[mbps, BASE] / taken[mbps, method],
                  "learning": float(np.median(teaches)), "least": min(teaches),
                  "most": max(teaches), "seeds": len(teaches), **source_of(curves, method)}
                 for mbps in RATES]
    return pd.DataFrame(rows)


def verdict(curves):
    """Of staleness alone: the same blocks, with weights exactly one iteration old or none."""
    claim = "stella-convergence"
    slower = [100 * (1 - one) for one in learning(curves, STALE, FRESH)]
    held = sum(one <= claims.value(claim) for one in slower)
    return claims.judge(
        claim, claims.by_count(held, len(slower)),
        f"{claims.spread(slower, '.1f', '%')} of {len(slower)} seeds",
        "Measured: updates to the last loss that blocks of 16, 1% of the numbers, reach with and "
        "without staleness; with it every part's weights are one iteration old, where the paper's "
        "are so in part. A model of 131,584 parameters on bytes of text, 200 updates. By {command} "
        "(its blanks within lists are commas), commit {commit}.".format(**source_of(curves, STALE)))


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, len(RATES), figsize=(10.8, 4.7), sharex=True, sharey=True)
    low, high = 0.5, 1.6 * table["speed"].max()
    for axes, mbps in zip(panels, RATES):
        own = table[table["mbps"] == mbps]
        for row in own.itertuples():
            name, colour, marker = POINTS[row.method.split(":share", 1)[0]]
            axes.errorbar(row.speed, row.learning, yerr=[[row.learning - row.least],
                          [row.most - row.learning]], fmt=marker, color=colour, label=name,
                          markersize=10 if marker == "*" else 6.5, elinewidth=1,
                          markeredgecolor="black", markeredgewidth=0.4)
        for gain in (0.1, 1, 10, 100):  # an update's speed times what it teaches
            ends = np.array([low, high])
            axes.plot(ends, gain / ends, color="#bbbbbb", linewidth=0.8, zorder=0,
                      linestyle="-" if gain == 1 else ":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(0.4 * table["least"].min(), 2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_title(f"{mbps:g} Mbps", loc="left")
        axes.set_xlabel("updates a second, over those of none")
        bars.ground(axes, both=True)
    panels[0].set_ylabel("what an update teaches, over one of none")
    bars.finish(figure, panels[0], "Speed of updates against what one teaches, on train-2dc",
                "Learning measured (updates to the last loss that both reach; bars: least and most "
                "of the seeds), exchanges simulated.\nGray: as soon at a loss as none (whole line); "
                "10 and 100 times as soon, 10 times as late (dotted).", columns=4)
    return figure
