"""Dedicated GPUs that the bubbles of 12 GPUs replace, over the load."""

import heapq
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator, NullLocator

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-gpus",
    summary="dedicated GPUs that would answer the same prompts with the same p99 TTFT",
    shows="GPUs of a FIFO pool that the bubbles of 12 GPUs replace at equal p99 TTFT, over the "
          "load (section 1.2; [prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=20, simulate=("--simulate",)),
    expected=(
        Expected("dedicated GPUs at the least load", "bound", low=1, column="gpus",
                 reduce="min", why="Some GPU answers the prompts."),
    ))
LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # of the idle time
GPUS = 12
LONG = 2048  # tokens from which a prompt is long
SLIGHTLY = 1.29  # worse: what the paper's pipeline of 8 costs 512 tokens (6.6)


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers(options):
    first = placements(options, 1)
    seconds = np.ptp(first["arrival_ns"]) / 1e9
    busy = (first["end_ns"] - first["start_ns"]).sum() / 1e9 / seconds  # GPUs at the trace's rate
    idle = GPUS * (1 - asked.one(options)["utilisation"]["training"])
    return pd.DataFrame([row_of(load, placements(options, load * idle / busy)) for load in LOADS])


def placements(options, rate):
    """The prompts that are answered at so many times the trace's rate."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "placements.csv"
        asked.one(options, "--policy", "best-fit", "--rate", f"{rate:.6g}", "--placements-out",
                  path)
        placed = pd.read_csv(path)
    return placed[placed["answer"] == "placed"]


def pool_ttft(arrivals, times, gpus):
    """Of a pool whose GPUs are always free for prompts: in order of arrival, the next free GPU."""
    free = [0] * gpus
    ttft = np.empty(len(arrivals))
    for place, (arrival, time) in enumerate(zip(arrivals, times)):
        end = max(heapq.heappop(free), arrival) + time
        heapq.heappush(free, end)
        ttft[place] = end - arrival
    return ttft


def row_of(load, placed):
    arrivals = placed["arrival_ns"].to_numpy()
    times = (placed["end_ns"] - placed["start_ns"]).to_numpy()
    ttft = (placed["end_ns"] - placed["arrival_ns"]).to_numpy()
    gpus = 1
    pool = pool_ttft(arrivals, times, gpus)
    while np.percentile(pool, 99) > np.percentile(ttft, 99):
        gpus += 1
        pool = pool_ttft(arrivals, times, gpus)
    row = {"load": load, "requests": len(placed), "gpus": gpus,
           "ttft_p99_ms": np.percentile(ttft, 99) / 1e6,
           "pool_p99_ms": np.percentile(pool, 99) / 1e6}
    is_long = placed["tokens"].to_numpy() >= LONG
    for name, chosen in (("short", ~is_long), ("long", is_long)):
        row[f"{name}_p50_ms"] = np.percentile(ttft[chosen], 50) / 1e6
        row[f"{name}_pool_p50_ms"] = np.percentile(pool[chosen], 50) / 1e6
    return row


def verdicts(table):
    """At equal p99 TTFT the pool's GPUs are those that are not needed; the medians of both classes
    are held to that pool's. All three parts hold: holds; GPUs alone are fewer: partly."""
    long = table["long_p50_ms"] / table["long_pool_p50_ms"]
    short = table["short_p50_ms"] / table["short_pool_p50_ms"]
    parts = {"gpus": bool((table["gpus"] >= 1).all()), "long": bool((long < 1).all()),
             "short": bool(((short >= 1) & (short <= SLIGHTLY)).all())}
    verdict = (claims.HOLDS if all(parts.values()) else
               claims.PARTLY if parts["gpus"] else claims.FAILS)
    loads = f"{100 * table['load'].min():.0f} to {100 * table['load'].max():.0f}% of the idle time"
    return [claims.judge(
        "bubbletea-gpus", verdict,
        f"{claims.spread(table['gpus'], '.0f')} GPUs fewer; median TTFT x{claims.spread(long)} "
        f"from {LONG:,} tokens on, x{claims.spread(short)} below",
        f"PP = 1, best fit, {loads}; beside a FIFO pool of no larger p99. Large prompts are better "
        f"at {int((long < 1).sum())} of {len(table)} loads, small ones slightly worse at "
        f"{int(((short >= 1) & (short <= SLIGHTLY)).sum())}: they find a bubble at once, where the "
        "pool makes them wait for long ones.")]


def figure_of(table):
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    loads = 100 * table["load"]
    left.plot(loads, table["gpus"], marker="o", color="#c62828")
    left.set_ylim(0)
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    left.set_ylabel("dedicated GPUs of equal p99 TTFT")
    left.set_title(f"Replaced by the bubbles of {GPUS} GPUs", loc="left", fontweight="bold")
    for name, colour in (("short", "#2a7ab0"), ("long", "#2aa552")):
        words = f"below {LONG:,} tokens" if name == "short" else f"{LONG:,} and more"
        right.plot(loads, table[f"{name}_p50_ms"], marker="o", color=colour,
                   label=f"{words}, in bubbles")
        right.plot(loads, table[f"{name}_pool_p50_ms"], marker="o", color=colour, linestyle="--",
                   markerfacecolor="white", label=f"{words}, in that pool")
    right.set_yscale("log")
    ticks = [50, 100, 200, 500, 1000]
    right.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    right.yaxis.set_minor_locator(NullLocator())
    right.set_ylabel("median TTFT, ms")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xlabel("load, % of the idle time; simulated")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.91, bottom=0.13, wspace=0.2)
    return figure
