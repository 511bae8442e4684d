"""Predicted above measured, of one iteration of a run."""

import pandas as pd

from longhaul.drawing import memory, panels, style
from longhaul.drawing.figure import Drawn, Figure
from longhaul.errors import Failure
from longhaul.path import critical_path
from longhaul.running import tools
from longhaul.trace import require_schedule, select

FIGURE = Figure(
    "timeline",
    summary="predicted above measured, one row a device, from a trace",
    shows="prediction above measurement",
    needs="a trace, or the directory that a run wrote",
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
                        help="which measured iteration (default: the one of median makespan)")
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
    return [_draw_one(trace, name, options) for name in names]


def _draw_one(trace, schedule, options):
    shown, tables = [], []
    predicted = select(trace.predicted, schedule)
    if not predicted.empty:
        span = panels.makespan(predicted)
        shown.append(panels.Panel(predicted, f"predicted: {panels.milliseconds(span)}",
                                  options.path))
        tables.append(table_of(predicted, "predicted", options.memory))
    measured, note = measured_of(trace, schedule, options.iteration)
    if measured is not None:
        span = panels.makespan(measured)
        if shown:
            difference = 100 * (span / panels.makespan(predicted) - 1)
            note += f"; {difference:+.2f}% against predicted"
        shown.append(panels.Panel(measured, f"measured: {panels.milliseconds(span)} ({note})",
                                  options.path))
        tables.append(table_of(measured, "measured", options.memory))
    if options.memory:
        for panel in shown:
            panel.memory = memory.changes(panel.rows)
    title = f"{tools.scenario_name(trace.info)}: {style.schedule_name(schedule)}"
    figure = panels.draw_stack(shown, title, trace.time_scale,
                               budget_bytes=trace.activation_budget_bytes)
    return Drawn(f"timeline-{schedule}", figure, pd.concat(tables, ignore_index=True))


def measured_of(trace, schedule, iteration=None):
    """Rows of the wanted iteration, else of the median, and how it was chosen."""
    rows = select(trace.measured, schedule)
    iterations = sorted(rows["iteration"].unique())
    if iteration is not None:
        if iteration not in iterations:
            raise Failure(f"{trace.file}: no iteration {iteration} of {schedule} was measured "
                          f"(there are {', '.join(map(str, iterations)) or 'none'}).")
        return select(rows, schedule, iteration), f"iteration {iteration}"
    if not iterations:
        return None, ""
    spans = sorted((panels.makespan(select(rows, schedule, i)), i) for i in iterations)
    chosen = spans[(len(spans) - 1) // 2][1]
    return select(rows, schedule, chosen), (
        f"iteration {chosen}, the median of {len(iterations)}" if len(iterations) > 1
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
