"""Activation memory over time: the bytes that each rank holds, as thin strips below a timeline."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from longhaul.drawing import style
from longhaul.trace import BLOCK_KINDS

NS_PER_MS = 1e6
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))
STRIP = 1.0       # height of a strip; y grows downwards, as in a timeline
STRIP_GAP = 0.3
HEADROOM = 1.08   # of the largest value: a full strip does not touch the next


def changes(rows):
    """One line per block that changes its rank's memory, in order of time: rank, device, op,
    time_ns and the bytes that the rank holds from then on (docs/metrics.md). As `longhaul trace
    export --format memory` has it. `rows`: one schedule and iteration."""
    blocks = rows[rows["kind"].isin(BLOCK_KINDS) & (rows["size_bytes"] != 0)]
    blocks = blocks.sort_values(["rank", "start_ns", "op"], kind="stable")
    takes = blocks["size_bytes"] > 0
    table = pd.DataFrame({
        "rank": blocks["rank"], "device": blocks["device"], "op": blocks["op"],
        "time_ns": np.where(takes, blocks["start_ns"], blocks["end_ns"]),
        "size_bytes": blocks["size_bytes"]})
    table = table.sort_values(["rank", "time_ns"], kind="stable")
    table["activation_bytes"] = table.groupby("rank")["size_bytes"].cumsum()
    return table.drop(columns="size_bytes").reset_index(drop=True)


def peaks(table):
    """rank -> bytes."""
    return table.groupby("rank")["activation_bytes"].max().to_dict()


def unit_of(size_bytes):
    """Name and size of the unit in which `size_bytes` is a number above 1."""
    return next((unit for unit in UNITS if size_bytes >= unit[1]), UNITS[-1])


def height(ranks):
    """Of the strips, in units of a strip."""
    return ranks * (STRIP + STRIP_GAP) + STRIP_GAP


@dataclass(frozen=True)
class Scale:
    """The same for all panels of a figure, so that they compare by eye."""

    budget_bytes: int  # 0: none
    full_bytes: int    # the largest value that is shown


def scale_of(tables, budget_bytes):
    largest = max((table["activation_bytes"].max() for table in tables if len(table)), default=0)
    return Scale(int(budget_bytes), int(max(largest, budget_bytes, 1)))


def paint(axes, layout, table, scale):
    """A strip for each rank of `layout`, in its order, on the same shades. A dashed line is the
    budget; the peak stands at the right, red where it exceeds the budget."""
    order, budget_bytes = list(layout.rows), scale.budget_bytes
    unit, unit_bytes = unit_of(scale.full_bytes)
    axes.set_ylim(height(len(order)), 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    _bands(axes, layout, order)
    axes.annotate(f"peak {unit}", (1, 1), xycoords="axes fraction", xytext=(3, 3),
                  textcoords="offset points", ha="left", va="bottom", fontsize=6.5)
    per_byte = STRIP / (HEADROOM * scale.full_bytes)
    highest = peaks(table)
    end_ms = axes.get_xlim()[1]
    for place, rank in enumerate(order):
        foot = (place + 1) * (STRIP + STRIP_GAP)
        own = table[table["rank"] == rank]
        times = np.concatenate([[0], own["time_ns"].to_numpy() / NS_PER_MS, [end_ms]])
        held = np.concatenate([[0], own["activation_bytes"].to_numpy(float)])
        tops = foot - per_byte * np.append(held, held[-1])
        axes.fill_between(times, foot, tops, step="post", color=style.MEMORY_FILL, lw=0, zorder=2)
        axes.step(times, tops, where="post", color=style.MEMORY_LINE, linewidth=0.8, zorder=3)
        axes.plot([0, end_ms], [foot, foot], color="#999999", linewidth=0.4, zorder=1)
        if budget_bytes:
            axes.plot([0, end_ms], [foot - per_byte * budget_bytes] * 2, color=style.PATH_COLOUR,
                      linewidth=0.8, linestyle=(0, (5, 3)), zorder=4)
        peak = highest.get(rank, 0)
        over = 0 < budget_bytes < peak
        _beside(axes, 0, -4, foot - STRIP / 2, layout.rows[rank].label, "right", 8)
        _beside(axes, 1, 6, foot - STRIP / 2, f"{peak / unit_bytes:.3g}", "left", 7,
                style.PATH_COLOUR if over else "black")


def title(scale):
    unit, unit_bytes = unit_of(scale.full_bytes)
    text = f"activation memory, a row is {HEADROOM * scale.full_bytes / unit_bytes:.3g} {unit} high"
    if not scale.budget_bytes:
        return text
    return f"{text}; dashed: budget, {scale.budget_bytes / unit_bytes:.3g} {unit}"


def _bands(axes, layout, order):
    names = list(dict.fromkeys(band.datacenter for band in layout.bands))
    for band in layout.bands:
        inside = [place for place, rank in enumerate(order)
                  if band.top <= layout.rows[rank].top < band.bottom]
        shade = style.BAND_COLOURS[names.index(band.datacenter) % 2]
        axes.axhspan(inside[0] * (STRIP + STRIP_GAP) + STRIP_GAP / 2,
                     (inside[-1] + 1) * (STRIP + STRIP_GAP) + STRIP_GAP / 2, color=shade, lw=0,
                     zorder=0)


def _beside(axes, side, offset, y, text, align, size, color="black"):
    axes.annotate(text, (side, y), xycoords=("axes fraction", "data"), xytext=(offset, 0),
                  textcoords="offset points", ha=align, va="center", fontsize=size, color=color)
