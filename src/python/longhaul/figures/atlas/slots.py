"""Timelines in slots, as Atlas draws figure 6: a row for each stage of each pipeline, slots counted
from 1."""

import numpy as np
from matplotlib.patches import Patch, Rectangle

from longhaul.drawing import style

ROW_INCHES, SLOT_INCHES = 0.19, 0.152
LEFT, RIGHT, TOP, BOTTOM, GAP_X, GAP_Y = 0.95, 0.15, 0.55, 0.62, 0.75, 0.62
KINDS = ("F", "R", "B")


def draw(panels, title, note, columns=2):
    """`panels`: [(title, table)] with replica, device, kind, microbatch, start_slot and end_slot;
    a block from the beginning of slot 1 to its end has start_slot 0 and end_slot 1."""
    plt = style.apply()
    slots = int(np.ceil(max(table["end_slot"].max() for _, table in panels) - 1e-6)) + 1
    rows = 1 + max(len(table[["replica", "device"]].drop_duplicates()) for _, table in panels)
    lines = -(-len(panels) // columns)
    inner = (slots * SLOT_INCHES, rows * ROW_INCHES)
    width = LEFT + RIGHT + columns * inner[0] + (columns - 1) * GAP_X
    height = TOP + BOTTOM + lines * inner[1] + lines * GAP_Y
    figure = plt.figure(figsize=(width, height))
    for index, (text, table) in enumerate(panels):
        x = LEFT + (index % columns) * (inner[0] + GAP_X)
        y = height - TOP - (index // columns + 1) * (inner[1] + GAP_Y) + GAP_Y * 0.55
        axes = figure.add_axes([x / width, y / height, inner[0] / width, inner[1] / height])
        _panel(axes, table, slots)
        axes.set_title(text, loc="left", pad=4, fontsize=9, fontweight="bold")
    handles = [Patch(facecolor=style.block_colour(kind), edgecolor="black", lw=0.5,
                     hatch="/////" if kind == "R" else None,
                     label=style.BLOCK_NAMES[kind].replace(" = D + W", "")) for kind in KINDS]
    figure.legend(handles=handles, loc="lower right", ncols=3, frameon=False,
                  bbox_to_anchor=(1 - RIGHT / width, 0))
    figure.suptitle(title, x=LEFT / width, y=1 - 0.1 / height, ha="left", va="top", fontsize=11,
                    fontweight="bold")
    figure.text(LEFT / width, 0.1 / height, note, fontsize=7.5, va="bottom")
    return figure


def pipeline(replica, replicas):
    """Its name in the figure: the one that goes first, LocalDPRank 0, is the paper's last."""
    return f"DP-{replicas - replica}"


def _panel(axes, table, slots):
    replicas = sorted(table["replica"].unique())
    devices = sorted(table["device"].unique())
    labels, places = [], {}
    for replica in replicas:
        for device in devices:
            places[replica, device] = len(places) + (1 if replica != replicas[0] else 0)
            labels.append((places[replica, device] + 0.5,
                           f"{pipeline(replica, len(replicas))}, stage {device + 1}"))
    for line in range(0, slots + 1):
        axes.axvline(line, color="#e4e4e4", linewidth=0.5, zorder=0)
    for block in table.itertuples():
        colour = style.block_colour(block.kind)
        y, length = places[block.replica, block.device], block.end_slot - block.start_slot
        axes.add_patch(Rectangle((block.start_slot, y + 0.06), length, 0.88, facecolor=colour,
                                 edgecolor=style.EDGE_COLOUR, linewidth=0.5, zorder=3,
                                 hatch="/////" if block.kind == "R" else None))
        axes.text(block.start_slot + length / 2, y + 0.52, block.microbatch + 1, ha="center",
                  va="center", fontsize=6, color=style.text_colour(colour), zorder=4)
    end = table["end_slot"].max()
    axes.axvline(end, color=style.PATH_COLOUR, linewidth=1.2, zorder=5)
    axes.set_xlim(0, slots)
    axes.set_ylim(len(places) + len(replicas) - 1, 0)
    shown = [1, *range(5, slots + 1, 5)]
    axes.set_xticks([slot - 0.5 for slot in shown], shown, fontsize=7)
    axes.set_yticks([y for y, _ in labels], [text for _, text in labels], fontsize=6.5)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
