"""Draws one timeline into one pair of axes: x in milliseconds, y as arranged by layout.py."""

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from longhaul.drawing import layout as rows_layout, style
from longhaul.drawing.time_scale import time_text
from longhaul.trace import BLOCK_KINDS, MESSAGE_KINDS, are_steps, collective_parts

NS_PER_MS = 1e6
SMALLEST_TEXT = 4.5  # points; smaller labels are left out
DIGIT_WIDTH = 0.64   # of the font size
WEIGHT_STRIPE = 0.26  # a full backward carries W's colour at its foot


def _boxes(starts, ends, top, bottom):
    top, bottom = (np.broadcast_to(edge, np.shape(starts)) for edge in (top, bottom))
    corners = [(starts, top), (ends, top), (ends, bottom), (starts, bottom)]
    return np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)


def _ms(rows):
    return rows["start_ns"].to_numpy() / NS_PER_MS, rows["end_ns"].to_numpy() / NS_PER_MS


def paint_bands(axes, layout):
    """Shades datacenters and labels the rows at the left."""
    names = list(dict.fromkeys(band.datacenter for band in layout.bands))
    for band in layout.bands:
        shade = style.BAND_COLOURS[names.index(band.datacenter) % 2]
        axes.axhspan(band.top, band.bottom, color=shade, lw=0, zorder=0)
        axes.annotate(style.plain(band.datacenter), (0, (band.top + band.bottom) / 2),
                      xycoords=("axes fraction", "data"), xytext=(-34, 0),
                      textcoords="offset points", rotation=90, ha="center", va="center",
                      fontweight="bold", fontsize=8)
    several = any("." in row.label for row in layout.rows.values())
    axes.annotate("replica.device" if several else "device", (0, 1), xycoords="axes fraction",
                  xytext=(-4, 3), textcoords="offset points", ha="right", va="bottom", fontsize=7)
    for row in layout.rows.values():
        axes.annotate(row.label, (0, row.top + rows_layout.ROW / 2),
                      xycoords=("axes fraction", "data"), xytext=(-4, 0),
                      textcoords="offset points", ha="right", va="center", fontsize=8)
        for (kind, peer), (top, height) in row.lanes.items():
            other = layout.rows[peer].label if peer in layout.rows else peer
            arrow = {"send": f"to {other}", "recv": f"from {other}"}.get(kind, "dp")
            axes.annotate(arrow, (0, top + height / 2),
                          xycoords=("axes fraction", "data"), xytext=(-4, 0),
                          textcoords="offset points", ha="right", va="center", fontsize=5.5,
                          color="#555555")


def paint_blocks(axes, rows, layout, points_per_ms, points_per_row):
    """`points_per_*`: the scale of the axes on paper; decides which labels fit."""
    rows = rows.assign(local=rows_layout.local_chunks(rows))
    blocks = rows[rows["kind"].isin(BLOCK_KINDS)]
    for (kind, local), group in blocks.groupby(["kind", "local"], observed=True):
        starts, ends = _ms(group)
        top = group["rank"].map({rank: row.top for rank, row in layout.rows.items()}).to_numpy()
        bottom = top + rows_layout.ROW
        colour = style.block_colour(kind, local)
        narrow = np.median(ends - starts) * points_per_ms < 3
        edge = {"edgecolors": style.EDGE_COLOUR, "linewidths": 0.2 if narrow else 0.5}
        axes.add_collection(PolyCollection(
            _boxes(starts, ends, top, bottom), facecolors=[colour], zorder=3,
            hatch="/////" if kind == "R" else None, **edge))
        if kind == "B":
            stripe = bottom - WEIGHT_STRIPE * rows_layout.ROW
            axes.add_collection(PolyCollection(
                _boxes(starts, ends, stripe, bottom), facecolors=[style.block_colour("W", local)],
                zorder=3.1, **{**edge, "linewidths": 0.2}))
        _label(axes, group, (starts, ends, top), kind, colour, (points_per_ms, points_per_row))


def _free_height(kind):
    """Of a box, for its number."""
    return rows_layout.ROW * (1 - WEIGHT_STRIPE if kind == "B" else 1)


def _label_size(group, kind, scale):
    """Points of the numbers in boxes of one kind; 0 where they would not be legible."""
    starts, ends = _ms(group)
    longest = group["microbatch"].astype(str).str.len().max()
    width = np.percentile(ends - starts, 5) * scale[0]
    size = min(8.0, 0.8 * _free_height(kind) * scale[1], (width - 1.0) / (longest * DIGIT_WIDTH))
    return size if size >= SMALLEST_TEXT else 0


def label_sizes(rows, scale):
    """kind -> points of its numbers, of the kinds that have room for them."""
    sizes = {kind: _label_size(rows[rows["kind"] == kind], kind, scale)
             for kind in rows["kind"].unique() if kind in BLOCK_KINDS}
    return {kind: size for kind, size in sizes.items() if size}


def _label(axes, group, places, kind, colour, scale):
    starts, ends, top = places
    size = _label_size(group, kind, scale)
    if not size:
        return
    free = _free_height(kind)
    for start, end, y, text in zip(starts, ends, top, group["microbatch"].astype(str)):
        axes.text((start + end) / 2, y + free / 2, text, ha="center", va="center_baseline",
                  fontsize=size, color=style.text_colour(colour), zorder=4, clip_on=True)


def paint_lanes(axes, rows, layout):
    """Thin bars: a send holds its link for the transfer; a receive is the transfer, then (paler)
    the way of the message. Messages under way at once lie side by side. A collective is a pale bar
    while it lasts, dark while the rank sends."""
    messages = rows_layout.wide_area(rows)
    for (rank, kind, peer), group in messages.groupby(["rank", "kind", "peer"], observed=True):
        if (kind, peer) in layout.rows[rank].lanes:
            _lane(axes, group.sort_values("start_ns"), kind, layout.rows[rank].lanes[kind, peer])
    for (rank, kind, peer), longest in rows_layout.thin_lanes(rows).items():
        top, height = layout.rows[rank].lanes[kind, peer]
        axes.annotate(f"too thin to see: {time_text(longest)} at most",
                      (0, top + height / 2), xycoords=("axes fraction", "data"), xytext=(3, 0),
                      textcoords="offset points", ha="left", va="center", fontsize=5.5,
                      color="#555555", zorder=2.5,
                      bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0})
    _collectives(axes, rows, layout)


def _collectives(axes, rows, layout):
    sent = rows[are_steps(rows) & (rows["kind"] == "send").to_numpy(bool)]
    sending = set(sent["rank"])
    for parts, alpha in ((collective_parts(rows), 0.4), (sent, 1)):
        for rank, group in parts.groupby("rank"):
            top, height = layout.rows[rank].lanes["collective", -1]
            starts, ends = _ms(group)
            axes.add_collection(PolyCollection(
                _boxes(starts, ends, top, top + height),
                facecolors=[style.rgb(style.COLLECTIVE)], edgecolors="black", linewidths=0.3,
                alpha=alpha if rank in sending else 1, zorder=2))


def _lane(axes, group, kind, lane):
    starts, ends = _ms(group)
    places, count = rows_layout.sublanes(starts, ends)
    top, height = lane[0], lane[1] / count
    upper = top + places * height
    lower = upper + height * (0.9 if count > 1 else 1)
    edge = {"edgecolors": "#6b5500", "linewidths": 0.3, "zorder": 2}
    if kind == "send":
        axes.add_collection(PolyCollection(_boxes(starts, ends, upper, lower),
                                           facecolors=[style.wire_colour(0.6)], **edge))
        return
    latency = latency_part(group).to_numpy() / NS_PER_MS
    axes.add_collection(PolyCollection(_boxes(starts, ends - latency, upper, lower),
                                       facecolors=[style.wire_colour(0.6)], **edge))
    axes.add_collection(PolyCollection(_boxes(ends - latency, ends, upper, lower),
                                       facecolors=[style.wire_colour(0.2)], **edge))


def latency_part(receives):
    """Of receives the time on the way, ns; before it lies the transfer."""
    return np.minimum(receives["planned_ns"], receives["end_ns"] - receives["start_ns"])


def paint_path(axes, steps, layout, scale):
    """Outlines the blocks of the critical path and numbers the arrivals that cross datacenters.
    `scale`: points of paper per millisecond and per row."""
    crossing, before, labels = 0, None, []
    for step in steps:
        start, end = step.start_ns / NS_PER_MS, step.end_ns / NS_PER_MS
        row = layout.rows[step.rank]
        if step.kind not in MESSAGE_KINDS:
            top, height = ((row.top, rows_layout.ROW) if step.kind in BLOCK_KINDS
                           else row.lanes["collective", -1])
            outline = min(1.6, 0.3 + (end - start) * scale[0] / 10)
            axes.add_patch(Rectangle((start, top), end - start, height, fill=False,
                                     edgecolor=style.PATH_COLOUR, linewidth=outline, zorder=6))
        elif step.kind == "recv":
            crossing += step.crosses
            sender = layout.rows[step.peer]
            if before is not None and before.rank != step.peer:  # it waited for the receiver
                _meeting(axes, start, layout.rows[before.rank], sender)
            _hop(axes, (start, end), (sender, row), step.crosses)
            if step.crosses:
                labels.append(_number(axes, crossing, (start, end), (sender, row), labels, scale))
        before = step


def _facing(one, other):
    """The edges with which two rows look at each other."""
    return (one.bottom, other.top) if other.top > one.top else (one.top, other.bottom)


def _meeting(axes, time, one, other):
    axes.plot([time, time], _facing(one, other), color=style.PATH_COLOUR, linewidth=0.8,
              linestyle=":", zorder=6)


def _hop(axes, times, rows, crosses):
    ys = _facing(*rows)
    axes.annotate("", (times[1], ys[1]), xytext=(times[0], ys[0]), zorder=7,
                  arrowprops={"arrowstyle": "-|>,head_width=0.12,head_length=0.25",
                              "color": style.PATH_COLOUR, "shrinkA": 0, "shrinkB": 0,
                              "linewidth": 1.6 if crosses else 0.9})


def _number(axes, number, times, rows, labels, scale):
    """Halfway along the arrow, or to one side where another number is; returns its place."""
    ys = _facing(*rows)
    for along in (0.5, 0.25, 0.75, 0.5):
        x, y = (ends[0] + along * (ends[1] - ends[0]) for ends in (times, ys))
        if all(np.hypot((x - other[0]) * scale[0], (y - other[1]) * scale[1]) > 11
               for other in labels[-6:]):
            break
    axes.text(x, y, str(number), ha="center", va="center", fontsize=6.5, fontweight="bold",
              color=style.PATH_COLOUR, zorder=8,
              bbox={"boxstyle": "circle,pad=0.18", "facecolor": "white",
                    "edgecolor": style.PATH_COLOUR, "linewidth": 0.9})
    return x, y


def paint_bubbles(axes, rows, layout, makespan_ns):
    """Bubble ratio of each rank at the right: 1 - busy / makespan."""
    for rank, ratio in bubble_ratios(rows, makespan_ns).items():
        axes.annotate(f"{100 * ratio:.0f}%", (1, layout.rows[rank].top + rows_layout.ROW / 2),
                      xycoords=("axes fraction", "data"), xytext=(6, 0),
                      textcoords="offset points", ha="left", va="center", fontsize=7)
    axes.annotate("bubble", (1, 1), xycoords="axes fraction", xytext=(3, 3),
                  textcoords="offset points", ha="left", va="bottom", fontsize=7)


def bubble_ratios(rows, makespan_ns):
    blocks = rows[rows["kind"].isin(BLOCK_KINDS)]
    busy = (blocks["end_ns"] - blocks["start_ns"]).groupby(blocks["rank"]).sum()
    return (1 - busy / makespan_ns).to_dict()
