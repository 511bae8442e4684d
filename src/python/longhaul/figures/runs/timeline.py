"""Predicted above measured, of one iteration of a run."""

import re
from statistics import median

import pandas as pd

from longhaul.drawing import memory, panels, style
from longhaul.drawing.figure import Drawn, Figure
from longhaul.drawing.time_scale import TimeScale
from longhaul.errors import Failure
from longhaul.path import critical_path
from longhaul.running import tools
from longhaul.trace import require_schedule, select

FIGURE = Figure(
    "timeline",
    summary="predicted above measured, one row a device, from a trace",
    shows="prediction above measurement",
    needs="a trace, or the directory of a run",
    options="--trace RUN")
CSV_COLUMNS = ["source", "schedule", "iteration", "op", "rank", "replica", "device", "datacenter",
               "lane", "kind", "chunk", "microbatch", "part", "parts", "peer", "planned_ns",
               "ready_ns", "start_ns", "end_ns", "bound_by", "bound_kind", "on_critical_path"]


def add_arguments(parser):
    parser.add_argument("--trace", required=True, metavar="FILE|DIR",
                        help="a trace (.h5), or the directory of a run that holds one")
    parser.add_argument("--schedule", metavar="S[,S..]",
                        help="which schedules; one picture each (default: all)")
    parser.add_argument("--iteration", type=int, metavar="I",
                        help="which measured iteration (default: the one nearest the median makespan)")
    parser.add_argument("--path", action="store_true",
                        help="draw the critical path and number its WAN crossings")
    parser.add_argument("--memory", action="store_true",
                        help="draw the activation memory of each device below its timeline")


def draw(options):
    trace = tools.read_run(options.trace)
    names = options.schedule.split(",") if options.schedule else trace.schedules
    for name in names:
        require_schedule(trace, name)
    if not names:
        raise Failure(f"{trace.file} holds no rows (nothing finished). Draw another run.")
    return (_draw_one(trace, name, options) for name in names)  # each saved before the next


def _draw_one(trace, schedule, options):
    shown, tables, scale = [], [], scale_of(trace)
    predicted = select(trace.predicted, schedule)
    if not predicted.empty:
        span = panels.makespan(predicted)
        shown.append(panels.Panel(predicted, f"predicted: {scale.text(span)}",
                                  options.path))
        tables.append(table_of(predicted, "predicted", options.memory))
    measured, note = measured_of(trace, schedule, options.iteration)
    if measured is not None:
        span = panels.makespan(measured)
        if shown:
            difference = 100 * (span / panels.makespan(predicted) - 1)
            note += f"; {difference:+.2f}% against predicted"
        shown.append(panels.Panel(measured, f"measured: {scale.text(span)} ({note})",
                                  options.path))
        tables.append(table_of(measured, "measured", options.memory))
    if options.memory:
        for panel in shown:
            panel.memory = memory.changes(panel.rows)
    title = f"{tools.scenario_name(trace.info)}: {style.schedule_name(schedule)}"
    figure = panels.draw_stack(shown, title, trace.time_scale,
                               budget_bytes=trace.activation_budget_bytes, unit=scale)
    return Drawn(f"timeline-{file_part(schedule)}", figure, pd.concat(tables, ignore_index=True))


def file_part(schedule):
    """A schedule's name in a file's: a trace may hold any."""
    return re.sub(r"[^\w.+ -]", "_", schedule)[:100]


def scale_of(trace):
    """As `longhaul trace summary` has it: by the largest of all schedules."""
    spans = [panels.makespan(rows) for side in (trace.predicted, trace.measured) if not side.empty
             for _, rows in side.groupby(["schedule", "iteration"], observed=True)]
    return TimeScale(max(spans, default=0))


def measured_of(trace, schedule, iteration=None):
    """Rows of the wanted iteration, else of the one nearest the median (ties: the first), as
    `longhaul trace attribution` chooses it; and how it was chosen."""
    rows = select(trace.measured, schedule)
    iterations = sorted(rows["iteration"].unique())
    if iteration is not None:
        if iteration not in iterations:
            raise Failure(f"{trace.file}: no iteration {iteration} of {schedule} was measured "
                          f"(there are {', '.join(map(str, iterations)) or 'none'}).")
        return select(rows, schedule, iteration), f"iteration {iteration}"
    if not iterations:
        return None, ""
    spans = {i: panels.makespan(select(rows, schedule, i)) for i in iterations}
    middle = median(spans.values())
    chosen = min(iterations, key=lambda i: abs(spans[i] - middle))
    return select(rows, schedule, chosen), (
        f"iteration {chosen}, the median of {len(iterations)}" if len(iterations) % 2 and len(iterations) > 1
        else f"iteration {chosen}, nearest the median of {len(iterations)}" if len(iterations) > 1
        else f"iteration {chosen}")


def table_of(rows, source, with_memory=False):
    """`with_memory`: also the bytes that the rank holds after a block changed them."""
    on_path = {step.op for step in critical_path(rows)}
    table = rows.assign(source=source, on_critical_path=rows["op"].isin(on_path))
    if not with_memory:
        return table[CSV_COLUMNS]
    held = memory.changes(rows).set_index("op")["activation_bytes"]
    table["activation_bytes"] = table["op"].map(held).astype("Int64")
    return table[[*CSV_COLUMNS, "size_bytes", "activation_bytes"]]
