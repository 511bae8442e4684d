"""StellaTrain figure 4: what a GPU, its host and its link do, iteration by iteration, under two pipelines."""

import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, methods
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig4",
    summary="a synchronous pipeline beside one with staleness and tasks on the host (figure 4)",
    shows="what the slowest GPU, its host and its link do, synchronous and under StellaTrain",
    repeat=Repeat("stella", seconds=2, simulate=("--simulate",)))
MODEL, MBPS = "vit-b-16", 100
RANK = 6        # the remote node's first RTX 2080 Ti, the last but one of all
ITERATIONS = 24
SHOWN = 3       # iterations, of the second half
RUNS = {"compress": "(a) compression on the GPU, updates awaited",
        "stella": "(b) StellaTrain: host tasks, staleness, priorities"}
ROWS = ("GPU", "host", "node sends", "node receives")
COLOURS = {"F": "#3fa7d6", "B": "#0b5394", "copy_out": "#f6e3b4", "compress": "#f0b400", "merge": "#c9561a",
           "optimize": "#c2185b", "copy_in": "#f6e3b4", "send": "#2aa552", "recv": "#8a5bc7"}
NAMES = {"F": "forward", "B": "backward", "compress": "compression", "optimize": "optimizer",
         "copy_out": "copies", "send": "sets sent", "recv": "sets received"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = pd.concat([rows_of(method) for method in RUNS], ignore_index=True)
    for method, own in table.groupby("method", sort=False):
        print(f"{RUNS[method]}: an iteration of {own['period_ms'].iloc[0]:.1f} ms, of which blocks are "
              f"{own['blocks_percent'].iloc[0]:.1f}% (rank {RANK})")
    return [Drawn(FIGURE.name, figure_of(table), table.round(6))]


def rows_of(method):
    """Ops of the rank in the middle of the stream, in ms from the first shown block on."""
    run = methods.Run(method, MODEL, MBPS)
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        file = Path(directory) / "rows.csv"
        command = [*methods.command_of(run), "--rows", file]
        command[command.index("--iterations") + 1] = ITERATIONS
        answer = methods.ask(command)
        rows = pd.read_csv(file)
    first = ITERATIONS // 2
    starts = [start * 1e-6 for start in answer["stream"]["iteration_start_ns"]]
    own = rows[(rows["rank"] >= RANK) & (rows["end_ns"] > rows["start_ns"])].copy()
    own = own[own["kind"].isin(("send", "recv")) | (own["rank"] == RANK)]
    own["row"] = [row_of(kind, peer) for kind, peer in zip(own["kind"], own["peer"])]
    own = own[own["row"] != ""]
    blocks = own[(own["row"] == "GPU")]
    begin = blocks[blocks["iteration"] == first]["start_ns"].min() * 1e-6
    period = (starts[-1] - starts[first]) / (len(starts) - 1 - first)
    busy = blocks.groupby("iteration").apply(lambda one: (one["end_ns"] - one["start_ns"]).sum() * 1e-6,
                                             include_groups=False).loc[first:].mean()
    table = pd.DataFrame({
        "method": method, "iteration": own["iteration"], "row": own["row"], "kind": own["kind"], "part": own["part"],
        "start_ms": own["start_ns"] * 1e-6 - begin, "end_ms": own["end_ns"] * 1e-6 - begin})
    table["period_ms"], table["blocks_percent"] = period, 100 * busy / period
    return table[(table["end_ms"] > 0) & (table["start_ms"] < SHOWN * period)]


def row_of(kind, peer):
    """Which line of the picture an op is on; messages inside the node are left out."""
    if kind in ("F", "B"):
        return ROWS[0]
    if kind in ("send", "recv"):
        return "" if peer >= RANK else ROWS[2] if kind == "send" else ROWS[3]
    return ROWS[1]


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(2, 1, figsize=(10.4, 5.4))
    for axes, (method, title) in zip(panels, RUNS.items()):
        own = table[table["method"] == method]
        period = own["period_ms"].iloc[0]
        for op in own.itertuples():
            axes.barh(ROWS.index(op.row), op.end_ms - op.start_ms, 0.74, left=op.start_ms,
                      color=COLOURS[op.kind], edgecolor="white", linewidth=0.2)
        for turn in range(SHOWN + 1):
            axes.axvline(turn * period, color="#8a8a8a", linewidth=0.8, linestyle=":")
        axes.set_xlim(0, SHOWN * period)
        axes.set_ylim(len(ROWS) - 0.5, -0.5)
        axes.set_yticks(range(len(ROWS)), ROWS)
        axes.tick_params(axis="y", length=0)
        axes.set_title(f"{title}: {period:.0f} ms an iteration, blocks {own['blocks_percent'].iloc[0]:.0f}% of it",
                       loc="left", fontsize=9)
        axes.set_xlabel("ms")
    for kind, label in NAMES.items():
        panels[0].barh(0, 0, color=COLOURS[kind], label=label)
    bars.finish(figure, panels[0], "ViT-B-16 over 100 Mbps: an RTX 2080 Ti of the remote node, and what the node exchanges",
                "Simulated; three iterations of the second half of a stream (dotted: their starts).", columns=7)
    figure.subplots_adjust(left=0.1, hspace=0.55)
    return figure
