"""StellaTrain table 2: throughput of GPUs over the batch, by `longhaul simulate`."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "stella-table2",
    summary="throughput of four GPUs over the batch, three models: alpha and beta (table 2)",
    shows="throughput of GPUs over the batch, three models: alpha and beta",
    repeat=Repeat("stella", seconds=5, simulate=("--simulate",)),
    expected=(
        Expected("farthest of a simulated throughput from equation 2 (%)", "exact", low=-0.01,
                 high=0.01, column="off_percent", reduce="max_abs",
                 why="The program's presets are table 2."),))
BATCHES = (4, 8, 16, 24, 32, 48, 64, 96)  # one a replica
COLOURS = {"rtx4090": "#c2185b", "rtx3090": "#0b5394", "rtx2080ti": "#2aa552", "v100": "#8a8a8a"}
LABELS = {"rtx4090": "RTX 4090", "rtx3090": "RTX 3090", "rtx2080ti": "RTX 2080 Ti",
          "v100": "V100 (assumed)"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def command_of(model, gpu):
    """Eight replicas of one GPU, a batch each, without an exchange."""
    return [tools.binary("longhaul"), "simulate", tools.scenario_file("stella-8gpu"),
            "--schedule", "1f1b", "--json", "--set", "parallel.gradient_sync=none",
            "--set", f"train.preset={model}", "--set", f"train.batch={list(BATCHES)}",
            "--set", f"datacenter.lab.gpu={gpu}", "--set", f"datacenter.remote.gpu={gpu}"]


def numbers():
    cells = [(model, gpu) for model in cluster.MODELS for gpu in COLOURS]
    rows = []
    for (model, gpu), answer in zip(cells, methods.ask_all([command_of(*cell) for cell in cells])):
        entry = answer["schedules"][0]
        for batch, bubble in zip(BATCHES, entry["bubble_ratio"]):
            seconds = (1 - bubble) * entry["makespan_ns"] * 1e-9
            expected = batch / cluster.seconds_of(model, gpu, batch)
            rows.append({"model": model, "gpu": gpu, "batch": batch,
                         "samples_per_s": batch / seconds,
                         "off_percent": 100 * (batch / seconds / expected - 1)})
    return pd.DataFrame(rows)


def verdicts(table):
    most = table.groupby(["model", "gpu"])["samples_per_s"].max()
    slower = {model: most[model, "rtx4090"] / most[model, "rtx3090"] for model in cluster.MODELS}
    claim = "stella-hetero-gpus"
    return [claims.judge(claim, claims.within(max(slower.values()), claims.value(claim)),
                         f"{max(slower.values()):.2f} (ViT-B-16: 300 over 148 images/s)",
                         f"{claims.spread(slower.values(), '.2f')} of the three models.")]


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, len(cluster.MODELS), figsize=(10.4, 4.2), sharey=True)
    for panel, model in zip(panels, cluster.MODELS):
        for gpu, colour in COLOURS.items():
            alpha, beta = cluster.throughput(model, gpu)
            own = table[(table["model"] == model) & (table["gpu"] == gpu)]
            panel.plot([0, alpha, max(BATCHES)], [0, beta, beta], color=colour, linewidth=1.2,
                       label=LABELS[gpu])
            panel.plot(own["batch"], own["samples_per_s"], "o", color=colour, markersize=4)
            panel.annotate(f"({alpha:g}, {beta:g})", (max(BATCHES), beta),
                           xytext=(0, -10 if gpu == "v100" else 4), textcoords="offset points",
                           ha="right", fontsize=7, color=colour)
        panel.set_xlabel("images of a batch")
        panel.set_title(cluster.NAMES[model], loc="left")
        bars.ground(panel)
    panels[0].set_ylabel("images/s")
    bars.finish(figure, panels[0], "Throughput of a GPU over its batch: (alpha, beta)",
                "Lines: equation 2 with table 2. Dots: simulated.", columns=4)
    return figure
