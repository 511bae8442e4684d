"""Is what `longhaul tune --family` foretells of another link true? Each method trains over it on ranks until the loss
is down, and the pick of the forecast is held against the best of them."""

import json
import math
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.runs import train_records
from longhaul.running import measuring, tools

FIGURE = Figure(
    "train-foretold",
    summary="time to a loss of each method, foretold from curves without links and measured over a link",
    shows="time to a validation loss, foretold by `longhaul tune --family` and measured "
          "([training.md](training.md#which-method))",
    options="[--measure] [--text FILE]",
    repeat=Repeat("stella", measure=("--measure",), minutes=5, data=(("--text", "shakespeare.txt"),)))
SCENARIO = "train-2dc"
CURVES = "train-2dc-curves.csv"
COLOUR = "#0b5394"


def add_arguments(parser):
    train_records.arguments(parser, FIGURE.name)
    parser.set_defaults(seeds="1", lr_grid="0.003", usual_results=f"runs/{FIGURE.name}")
    parser.add_argument("--methods", default="none,int8,diloco:20", metavar="M,M..",
                        help="with curves (default: %(default)s)")
    parser.add_argument("--rate", default="5Mbps", metavar="R", help="of the WAN (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=200, metavar="N",
                        help="at most, of a run (default: %(default)s)")


def draw(options):
    directory = measuring.directory_of(options)
    if options.measure:
        train_records.measure(directory / options.rate, directory, SCENARIO, [
            "--methods", options.methods, "--lr-grid", options.lr_grid, "--seeds", options.seeds,
            "--max-iterations", options.iterations, "--points", options.iterations // 10, "--pace",
            "--set", f"link.bandwidth={options.rate}", *train_records.data_of(options)])
    run = directory / options.rate
    table = train_records.curve_table(train_records.record_of(run), run)
    table = table.rename(columns={"seconds_to_target": "measured_s"})
    table = table.merge(pd.DataFrame(foretold(options)), on="method", how="left")
    tools.say(verdict(table))
    return [Drawn(FIGURE.name, figure_of(table, options), table)]


def foretold(options):
    """A row for each method of the curves that was measured too: seconds."""
    scenario = tools.scenario_file(SCENARIO)
    answer = json.loads(tools.run([
        tools.binary("longhaul"), "tune", scenario, "--family", options.methods, "--curves",
        Path(scenario).with_name(CURVES), "--bandwidth", options.rate, "--json"]))
    setting = answer["settings"][0]
    return [{"method": each["method"], "foretold_s": train_records.seconds(each["time_ns"]),
             "foretold_least_s": train_records.seconds(each["least_ns"]),
             "foretold_most_s": train_records.seconds(each["most_ns"]),
             "foretold_updates": each["updates"],
             "foretold_exchange_s": train_records.seconds(each["period_ns"]),
             "is_picked": each["method"] == setting["pick"]} for each in setting["methods"]]


def verdict(table):
    """In words: the pick, what it took, and how far it is from the best that was measured."""
    middle = table["measured_s"].fillna(math.inf).groupby(table["method"]).median()
    picked = table[table["is_picked"].eq(True)]["method"].iloc[0]
    best = middle.idxmin()
    regret = 100 * (middle[picked] / middle[best] - 1)
    within = sum(row.foretold_least_s <= row.measured_s <= row.foretold_most_s for row in table.itertuples())
    return (f"{FIGURE.name}: {picked} was picked and took {middle[picked]:.1f} s, {best} was best with "
            f"{middle[best]:.1f} s: a regret of {regret:.1f}%. {within} of {len(table)} times are within their "
            "intervals.")


def figure_of(table, options):
    plt = style.apply()
    methods = list(dict.fromkeys(table["method"]))
    figure, axes = plt.subplots(figsize=(8.6, 0.9 + 0.62 * len(methods)))
    for place, method in enumerate(methods):
        rows = table[table["method"] == method]
        first = rows.iloc[0]
        if pd.notna(first["foretold_most_s"]):
            axes.barh(place, first["foretold_most_s"] - first["foretold_least_s"], 0.5,
                      left=first["foretold_least_s"], color="#cfdcec",
                      label="foretold, over seeds" if place == 0 else None)
        axes.plot([first["foretold_s"]] * 2, [place - 0.25, place + 0.25], color=COLOUR, linewidth=2,
                  label="foretold, median" if place == 0 else None)
        axes.plot(rows["measured_s"], [place] * len(rows), "o", color="#c2185b", markersize=6,
                  label="measured, a seed each" if place == 0 else None)
    axes.set_yticks(range(len(methods)), [style.plain(method) for method in methods])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time to the target over {options.rate} (s)")
    axes.set_title("Time to a loss, foretold from curves without links and measured", loc="left", fontweight="bold")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.tight_layout()
    return figure

