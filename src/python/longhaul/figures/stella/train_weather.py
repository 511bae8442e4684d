"""What an outage of the WAN adds to training, by its length and the method (simulated).

train-2dc over 5 Mbps, 100 iterations, four outages: how much later the last iteration begins, an
outage."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, methods
from longhaul.running import tools

FIGURE = Figure(
    "train-weather",
    summary="what outages of the WAN add to training, by their length and the method (simulated)",
    shows="time that an outage of the WAN adds to training, over its length",
    repeat=Repeat("stella", seconds=30))
MBPS, ITERATIONS = 5, 100
STARTS_S = (3, 5.03, 7.06, 9.09)  # outages of one length, at other places in an iteration
LENGTHS_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1)
METHODS = {
    "none": ("all numbers", "#1f1f1f", ("train.compress.method=none", "train.compress.exchange=sites",
                                        "train.serve=arrival", "train.staleness=0")),
    "int8": ("all, as int8", "#8a8a8a", ("train.compress.method=int8", "train.compress.exchange=sites",
                                         "train.serve=arrival", "train.staleness=0")),
    "block": ("blocks of 16, 1%", "#2aa552", ("train.staleness=0",)),
    "stella": ("the same, one iteration stale", "#c4161c", ("train.staleness=1",)),
    "stella, two": ("two iterations stale", "#e8899a", ("train.staleness=2",))}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6))]


def command_of(method, length):
    """`length` 0: calm."""
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file("train-2dc"), "--schedule", "stella",
               "--iterations", ITERATIONS, "--json"]
    outages = ", ".join(f'["{start}s", "{length}s"]' for start in STARTS_S)
    command += tools.set_words((f"link.bandwidth={MBPS}Mbps", *METHODS[method][2],
                                *([f"link.outage=[{outages}]"] if length else [])))
    return command


def seconds_of(answer):
    """Until the last iteration begins."""
    starts = methods.starts_of(answer)
    return starts[-1] - starts[0]


def numbers():
    cells = [(method, length) for method in METHODS for length in (0, *LENGTHS_S)]
    took = {cell: seconds_of(answer)
            for cell, answer in zip(cells, methods.ask_all([command_of(*cell) for cell in cells]))}
    return pd.DataFrame([
        {"method": method, "outage_s": length, "iteration_ms": 1e3 * took[method, 0] / (ITERATIONS - 1),
         "added_s": (took[method, length] - took[method, 0]) / len(STARTS_S)}
        for method in METHODS for length in LENGTHS_S])


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    for method, (label, colour, _) in METHODS.items():
        own = table[table["method"] == method]
        axes.plot(own["outage_s"], own["added_s"], color=colour, marker="o", markersize=4,
                  label=f"{label} ({own['iteration_ms'].iloc[0]:.0f} ms)")
    ends = [0, max(LENGTHS_S)]
    axes.plot(ends, ends, color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.set_xlabel("length of an outage (s)")
    axes.set_ylabel("added to training (s)")
    bars.ground(axes, both=True)
    bars.finish(figure, axes, f"What an outage adds, train-2dc over {MBPS} Mbps",
                "Simulated, mean of four outages at other places in an iteration. In brackets: an iteration without "
                "one. Gray: all of it.")
    figure.subplots_adjust(left=0.1)
    return figure
