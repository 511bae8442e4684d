"""Stacks timelines above each other on one time axis, with a legend; sizes on paper are fixed
here, so that nothing overlaps."""

from dataclasses import dataclass

from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from longhaul.drawing import layout as rows_layout, memory, paint, style
from longhaul.drawing.time_scale import TimeScale
from longhaul.errors import Failure
from longhaul.path import critical_path, wan_crossings
from longhaul.trace import BLOCK_KINDS, MESSAGE_KINDS, are_steps

LEFT, RIGHT, TITLE, GAP = 0.75, 0.5, 0.26, 0.36  # inches
TIME_AXIS, LEGEND_ROW = 0.55, 0.20
NARROWEST = 9.5
STRIP_INCHES = 0.20
POINTS = 72


@dataclass
class Panel:
    rows: object  # one schedule and iteration of a trace
    title: str
    path: bool = False       # draw the critical path
    mark_ns: int = 0         # a dashed line here
    mark_text: str = ""
    memory: object = None    # memory.changes(rows): drawn below the timeline


@dataclass(frozen=True)
class Paper:
    """The size of a figure. A figure for the width of a page is drawn small, with many
    dots an inch."""

    widest: float = 24.0      # inches
    row_inches: float = 0.0   # 0: by the number of rows
    dots_per_inch: int = 150


def makespan(rows):
    """From the first op on any rank to the last block or collective on any rank."""
    done = rows[~rows["kind"].isin(MESSAGE_KINDS) | are_steps(rows)]
    if done.empty:
        raise Failure("the rows hold messages alone (no block). Draw another schedule or iteration.")
    return int(done["end_ns"].max() - rows["start_ns"].min())


def draw_stack(panels, title, time_scale=1.0, shared_lanes=True, paper=Paper(), budget_bytes=0,
               unit=None):
    """A figure. `shared_lanes`: panels leave room for each other's message lanes, so that rows of
    predicted and measured compare by eye. `budget_bytes`: of activation memory, where panels show
    it. `unit`: the TimeScale of the axis, by default that of the longest panel."""
    plt = style.apply()
    unit = unit or TimeScale(max(makespan(panel.rows) for panel in panels))
    layouts = _layouts(panels, shared_lanes)
    span = 1.003 * max(panel.rows["end_ns"].max() for panel in panels) / paint.NS_PER_MS
    width = _paper_width(panels, span, paper)
    strips = _strips(panels, budget_bytes)
    heights = _heights(layouts, strips, paper)
    scales = [(width * POINTS / span, high * POINTS / layout.height)
              for layout, (high, _) in zip(layouts, heights)]
    handles = legend_handles(panels, scales)
    columns, legend_rows = style.legend_grid(len(handles), LEFT + width + RIGHT)
    bottom = TIME_AXIS + LEGEND_ROW * legend_rows
    all_width = LEFT + width + RIGHT
    total = TITLE + sum(GAP + part for pair in heights for part in pair if part) + bottom
    figure = plt.figure(figsize=(all_width, total), dpi=paper.dots_per_inch)
    y = total - TITLE

    def next_axes(height):
        nonlocal y
        y -= GAP + height
        axes = figure.add_axes([LEFT / all_width, y / total, width / all_width, height / total])
        axes.set_xlim(0, span)
        axes.tick_params(labelbottom=False)
        return axes

    for panel, layout, pair, scale, strip in zip(panels, layouts, heights, scales, strips):
        axes = next_axes(pair[0])
        _draw_panel(axes, panel, layout, scale)
        if strip:
            axes = next_axes(pair[1])
            axes.set_title(memory.title(strip), loc="left", pad=3, fontsize=8)
            memory.paint(axes, layout, panel.memory, strip)
    axes.tick_params(labelbottom=True)
    axes.set_xlabel(time_label(time_scale, unit.unit))
    axes.xaxis.set_major_formatter(lambda ms, _: f"{ms * paint.NS_PER_MS / unit.factor:g}")
    figure.suptitle(style.plain(title), x=LEFT / all_width, y=1 - 0.09 / total, ha="left", va="top",
                    fontsize=11, fontweight="bold")
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False,
                  bbox_to_anchor=(0.5, 0), handlelength=1.6, columnspacing=1.4,
                  handler_map={BackwardHandle: _BackwardHandler()})
    return figure


def time_label(time_scale, unit):
    if abs(time_scale - 1) < 1e-12:
        return f"time ({unit})"
    return (f"time as played ({unit}); time_scale {time_scale:g}: "
            f"the scenario's times are {1 / time_scale:.3g} times as long")


def _layouts(panels, shared):
    heights = [rows_layout.lane_heights(panel.rows) for panel in panels]
    if shared:
        heights = [rows_layout.joined(heights)] * len(panels)
    return [rows_layout.arrange(panel.rows, own) for panel, own in zip(panels, heights)]


def _strips(panels, budget_bytes):
    """The scale of each panel's memory; None where it shows none."""
    tables = [panel.memory for panel in panels if panel.memory is not None]
    scale = memory.scale_of(tables, budget_bytes)
    return [None if panel.memory is None else scale for panel in panels]


def _heights(layouts, strips, paper):
    """Inches of each panel's timeline and of its memory (0: none)."""
    by_rows = 0.27 if max(len(layout.rows) for layout in layouts) <= 8 else 0.21
    return [(layout.height * (paper.row_inches or by_rows),
             memory.height(len(layout.rows)) * STRIP_INCHES if strip else 0)
            for layout, strip in zip(layouts, strips)]


def _paper_width(panels, span, paper):
    """Wide enough for two digits in the narrowest forward."""
    most = paper.widest - LEFT - RIGHT
    wanted = min(NARROWEST, most)
    for panel in panels:
        forward = panel.rows[panel.rows["kind"] == "F"]
        length = (forward["end_ns"] - forward["start_ns"]).quantile(.05) / paint.NS_PER_MS
        if length > 0:
            wanted = max(wanted, span / length * 8.5 / POINTS)
    return min(wanted, most)


def _draw_panel(axes, panel, layout, scale):
    axes.set_ylim(layout.height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(style.plain(panel.title), loc="left", pad=3)
    paint.paint_bands(axes, layout)
    paint.paint_blocks(axes, panel.rows, layout, *scale)
    paint.paint_lanes(axes, panel.rows, layout)
    paint.paint_bubbles(axes, panel.rows, layout, makespan(panel.rows))
    if panel.path:
        paint.paint_path(axes, critical_path(panel.rows), layout, scale)
    if panel.mark_ns:
        at = panel.mark_ns / paint.NS_PER_MS
        axes.axvline(at, color="black", linestyle=(0, (4, 2)), linewidth=1, zorder=5)
        axes.annotate(panel.mark_text, (at, 1), xycoords=("data", "axes fraction"),
                      xytext=(-3, 3), textcoords="offset points", ha="right", va="bottom",
                      fontsize=7)


def legend_handles(panels, scales):
    """`scales`: of each panel, points of paper per millisecond and per row."""
    kinds, later, messages, latency, path, crossings = set(), False, False, False, False, 0
    for panel in panels:
        lasting = panel.rows[panel.rows["end_ns"] > panel.rows["start_ns"]]
        kinds |= set(lasting["kind"].unique())
        later |= bool((rows_layout.local_chunks(lasting) > 0).any())
        transfer_ns, latency_ns = _longest_of_messages(panel.rows)
        visible = rows_layout.visible_ns(panel.rows)
        messages |= transfer_ns >= visible
        latency |= latency_ns >= visible
        steps = critical_path(panel.rows) if panel.path else []
        path |= bool(steps)
        crossings += wan_crossings(steps)
    handles = [_block_handle(kind) for kind in BLOCK_KINDS if kind in kinds]
    if later:
        handles.append(Patch(facecolor=style.block_colour("F", 1), edgecolor="black", lw=0.5,
                             label="darker: later chunk of the device"))
    if messages:
        handles.append(Patch(facecolor=style.wire_colour(0.6), edgecolor="#6b5500", lw=0.5,
                             label="transfer (WAN link held)"))
    if latency:
        handles.append(Patch(facecolor=style.wire_colour(0.2), edgecolor="#6b5500", lw=0.5,
                             label="latency (on its way)"))
    in_steps = any(are_steps(panel.rows).any() for panel in panels)
    if in_steps or kinds - set(BLOCK_KINDS + MESSAGE_KINDS):
        pale = " (pale: nothing to send)" if in_steps else ""
        handles.append(Patch(facecolor=style.rgb(style.COLLECTIVE), edgecolor="black", lw=0.5,
                             label=f"data-parallel communication (dp){pale}"))
    if any(paint.label_sizes(panel.rows, scale) for panel, scale in zip(panels, scales)):
        handles.append(Line2D([], [], color="black", linestyle="", marker="$7$", markersize=5,
                              label="microbatch"))
    if path:
        handles.append(Line2D([], [], color=style.PATH_COLOUR, lw=1.6, marker="o",
                              markerfacecolor="white", markersize=7,
                              label="critical path (WAN crossings numbered)" if crossings
                              else "critical path"))
    return handles


def _longest_of_messages(rows):
    """ns of the longest bars of messages to other datacenters: (transfer, latency); 0: none."""
    wide = rows_layout.wide_area(rows)
    receives = wide[wide["kind"] == "recv"]
    latencies = paint.latency_part(receives)
    held = (wide["end_ns"] - wide["start_ns"]).sub(latencies, fill_value=0)
    return tuple(values.max() if len(values) else -1 for values in (held, latencies))


def _block_handle(kind):
    if kind == "B":
        return BackwardHandle()
    return Patch(facecolor=style.block_colour(kind), edgecolor="black", lw=0.5,
                 hatch="/////" if kind == "R" else None, label=style.BLOCK_NAMES[kind])


class BackwardHandle(Patch):
    """A full backward in the legend looks as it does in the picture: W's colour at its foot."""

    def __init__(self):
        super().__init__(label=style.BLOCK_NAMES["B"])


class _BackwardHandler(HandlerBase):
    def create_artists(self, legend, handle, x, y, width, height, size, transform):
        foot = height * paint.WEIGHT_STRIPE
        edge = {"edgecolor": "black", "lw": 0.5, "transform": transform}
        return [Rectangle((x, y), width, height, facecolor=style.block_colour("B"), **edge),
                Rectangle((x, y), width, foot, facecolor=style.block_colour("W"), **edge)]

