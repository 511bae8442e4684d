"""Compression inside pipelines: what smaller messages between stages bring (simulated)."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, methods
from longhaul.running import tools

FIGURE = Figure(
    "train-pipeline",
    summary="a pipeline over two sites whose messages between stages are compressed (simulated)",
    shows="a pipeline over two sites with compressed messages between stages, over the bandwidth",
    repeat=Repeat("stella", seconds=30))
RATES = (0.5, 1, 2, 5, 10, 20, 50, 100)  # Mbps
SCHEDULES = ("1f1b", "zb-h1", "cross-ud", "best")
ITERATIONS = 24
TICKS_MS = (100, 200, 500, 1000, 2000, 5000)
MESSAGES = {"bf16": "bf16", "int8": "int8", "top 10%": "topk"}  # train.activations
STALENESS = (0, 1)
RUNS = {"bf16": "#1f1f1f", "int8": "#c9561a", "top 10%": "#3fa7d6"}
LINES = {0: "-", 1: "--"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6))]


def command_of(mbps, message, staleness):
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file("train-pipeline"),
               "--schedule", ",".join(SCHEDULES), "--iterations", ITERATIONS, "--json"]
    overrides = (f"train.staleness={staleness}", f"link.bandwidth={mbps:g}Mbps",
                 f"train.activations={MESSAGES[message]}")
    return command + tools.set_words(overrides)


def numbers():
    cells = [(mbps, message, staleness) for message in MESSAGES for staleness in STALENESS
             for mbps in RATES]
    rows = []
    for (mbps, message, staleness), answer in zip(
            cells, methods.ask_all([command_of(*cell) for cell in cells])):
        for entry in answer["schedules"]:
            rows.append({"mbps": mbps, "message": message,
                         "staleness": staleness, "schedule": entry["schedule"],
                         "period_ms": entry["stream"]["period_ns"] * 1e-6,
                         "wan_bytes": entry["stream"]["wan_bytes"]})
    return pd.DataFrame(rows)


def figure_of(table):
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.6), sharey=True)
    best = table.groupby(["message", "staleness", "mbps"], sort=False)["period_ms"].min()
    plain = table[table["schedule"] == SCHEDULES[0]].set_index(["message", "staleness", "mbps"])
    for message, colour in RUNS.items():
        for staleness, line in LINES.items():
            label = f"{message}, s = {staleness}"
            for axes, found in ((left, plain["period_ms"]), (right, best)):
                own = found[message, staleness]
                axes.plot(own.index, own, line, color=colour, linewidth=1.3, label=label)
    left.set_title(SCHEDULES[0], loc="left")
    right.set_title("best of " + ", ".join(SCHEDULES), loc="left")
    left.set_ylabel("an iteration (ms)")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(RATES, [f"{mbps:g}" for mbps in RATES])
        axes.set_yticks(TICKS_MS, [str(one) for one in TICKS_MS])
        axes.minorticks_off()
        axes.set_xlabel("bandwidth between the sites (Mbps)")
        bars.ground(axes, both=True)
    bars.finish(figure, left, "Four stages over two sites, two replicas, simulated",
                "Lines: what a message between stages is sent as, and the staleness of weights. "
                "Gradients stay inside their site. Loss is left out.", columns=3)
    return figure
