"""How long prompts wait for a bubble on 1,000 GPUs, and how many would be refused at 8 ms."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "bubbletea-wait",
    summary="wait for a bubble on 1,000 GPUs in 50 DP-cells, and the share refused at 8 ms",
    shows="how long prompts wait on 1,000 GPUs, with cells in lockstep and with phases spread, "
          "which data parallelism forbids (section 6.5; [prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=40, simulate=("--simulate",),
                  data=(("--requests", "AzureLLMInferenceTrace_code.csv"),)),
    expected=(
        Expected("1,000 GPUs in lockstep: p99 of the wait (ms)", "published", high=8,
                 column="wait_p99_ms", where="phases=lockstep",
                 why="The paper's wait is within 8 ms.",
                 known="At times no stage of any cell has a bubble open that holds the prompt."),
        Expected("1,000 GPUs with phases spread evenly: p99 of the wait (ms)", "published", high=8,
                 column="wait_p99_ms", where="phases=spread",
                 why="Some cell is always in a bubble."),
    ))
SCENARIO = tools.SCENARIOS / "bubbletea-cells.toml"
LIMIT_NS = 8_000_000
GUARD_NS = 1_000_000


def add_arguments(parser):
    asked.add_arguments(parser)
    parser.add_argument("--cells", type=int, default=50, metavar="N",
                        help="DP-cells of 20 GPUs (default: 50)")


def draw(options):
    table, waits = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table, waits, options), table, verdicts(table))]


def numbers(options):
    cells = ["--set", f"parallel.replicas={2 * options.cells}"]
    with tempfile.TemporaryDirectory() as directory:
        placements = Path(directory) / "placements.csv"
        found = json.loads(tools.run([
            tools.binary("longhaul"), "prefill", SCENARIO, "--schedule", "atlas", "--policy",
            "earliest", "--requests", options.requests, "--placements-out", placements, "--json",
            *cells]))["schedules"][0]
        placed = pd.read_csv(placements)
    one_cell = json.loads(tools.run([tools.binary("longhaul"), "bubbles", SCENARIO, "--schedule",
                                     "atlas", "--json"]))["schedules"][0]
    own = placed[placed["answer"] == "placed"]
    waits = {"lockstep": (own["start_ns"] - own["arrival_ns"]).to_numpy(),
             "spread": spread_waits(own, one_cell["bubbles"], one_cell["period_ns"],
                                    options.cells)}
    refused = len(placed) - len(own)
    return pd.DataFrame([row_of(phases, one, refused, found) for phases, one in waits.items()]), waits


def row_of(phases, waits, refused, found):
    """Of all requests: those that no bubble takes are refused at any limit."""
    beyond = int((waits > LIMIT_NS).sum())
    return {"phases": phases, "requests": len(waits) + refused, "too_long": refused,
            "wait_p50_ms": np.percentile(waits, 50) / 1e6,
            "wait_p99_ms": np.percentile(waits, 99) / 1e6, "wait_max_ms": waits.max() / 1e6,
            "refused_at_8_ms": (beyond + refused) / (len(waits) + refused),
            "training": found["utilisation"]["training"]}


def spread_waits(placed, bubbles, period, cells):
    """Each prompt alone, where cell c's iteration begins c / cells of a period later: at the load
    of the trace, a thousandth of the idle time, prompts hardly meet."""
    opens = np.array([one["start_ns"] for one in bubbles])
    length = np.array([one["end_ns"] - one["start_ns"] for one in bubbles]) - GUARD_NS
    phases = np.arange(cells) * period // cells
    waits = np.empty(len(placed), dtype=np.int64)
    takes = (placed["end_ns"] - placed["start_ns"]).to_numpy()
    for place, (arrival, time) in enumerate(zip(placed["arrival_ns"].to_numpy(), takes)):
        fits = length >= time
        since = (arrival - opens[fits, None] - phases[None, :]) % period
        late = since > (length[fits] - time)[:, None]
        waits[place] = np.where(late, period - since, 0).min()
    return waits


def verdicts(table):
    found = table.set_index("phases")
    lockstep, spread = found.loc["lockstep"], found.loc["spread"]
    verdict = claims.HOLDS if lockstep["wait_max_ms"] <= 8 else claims.FAILS
    return [claims.judge("bubbletea-wait", verdict,
                         f"p50 {lockstep['wait_p50_ms']:.0f} ms, p99 "
                         f"{lockstep['wait_p99_ms']:.0f} ms in lockstep",
                         f"Refused where only 8 ms are accepted: "
                         f"{100 * lockstep['refused_at_8_ms']:.0f}%. With phases spread over the "
                         f"period, which data parallelism forbids: p99 "
                         f"{spread['wait_p99_ms']:.1f} ms.")]


def figure_of(table, waits, options):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.2))
    labels = {"lockstep": "cells in lockstep", "spread": "phases spread evenly (an upper bound)"}
    for (phases, one), colour in zip(waits.items(), ("#c62828", "#2a7ab0")):
        own = np.sort(one) / 1e6
        axes.step(np.maximum(own, 0.1), np.arange(1, len(own) + 1) / len(own), color=colour,
                  where="post", label=labels[phases])
        share = table.set_index("phases").loc[phases, "refused_at_8_ms"]
        axes.annotate(f"{100 * share:.0f}% refused at 8 ms", (8, 1 - share), xytext=(8, -4),
                      textcoords="offset points", color=colour, fontsize=9, va="top")
    axes.axvline(8, color="#888888", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("wait from arrival to start, ms (0.1: none)")
    axes.set_ylabel("share of the prompts that are placed")
    axes.set_title(f"{20 * options.cells:,} GPUs in {options.cells} DP-cells, strict order, "
                   "simulated", loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="lower right")
    figure.subplots_adjust(left=0.11, right=0.97, top=0.91, bottom=0.13)
    return figure
