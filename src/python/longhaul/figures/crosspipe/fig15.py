"""CrossPipe figure 15: bubble strides of static schedules."""

import pandas as pd

from longhaul.drawing import panels, style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.drawing.time_scale import time_text
from longhaul.errors import Failure
from longhaul.figures.crosspipe.fig6 import WITHOUT_DELAY
from longhaul.figures.runs.timeline import table_of
from longhaul.papers import claims
from longhaul.running import tools
from longhaul.trace import select

FIGURE = Figure(
    "crosspipe-fig15",
    summary="bubble strides: static schedules over 16 stages in 2 datacenters (simulated)",
    shows="bubble strides of static schedules",
    repeat=Repeat("crosspipe", seconds=4, simulate=("--simulate",)))
SCHEDULES = "1f1b,interleaved-1f1b,zb-h1,zbv"
# Four schedules of 16 devices, to be read at the width of a page.
PAPER = panels.Paper(widest=9.25, row_inches=0.12, dots_per_inch=240)


# Latencies that an iteration must pay: forth for the first microbatch, back for its gradient.
LEAST_PAID = 2


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--scenario", default="crosspipe-fig15", metavar="FILE",
                        help="default: benchmarks/scenarios/crosspipe-fig15.toml")
    parser.add_argument("--schedules", default=SCHEDULES, metavar="S,S..",
                        help=f"default: {SCHEDULES}")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario")


def draw(options):
    scenario = tools.scenario_file(options.scenario)
    names = options.schedules.split(",")
    delayed = tools.simulate(scenario, names, options.set)
    ideal = tools.simulate(scenario, names, (*options.set, *WITHOUT_DELAY))
    shown, tables, paid = [], [], {}
    for name in names:
        rows = select(delayed.predicted, name)
        if rows.empty:
            raise Failure(f"{name} gives no rows for {scenario.name} (it does not fit the "
                          "scenario). Leave it out of --schedules.")
        span = panels.makespan(rows)
        bound = panels.makespan(select(ideal.predicted, name))
        paid[style.schedule_name(name)] = (span - bound) / latency_of(rows)
        shown.append(panels.Panel(
            rows, f"{style.schedule_name(name)}: {time_text(span)}, "
                  f"{100 * (span / bound - 1):+.0f}% against no delay",
            mark_ns=bound, mark_text="ends here without delay"))
        tables.append(table_of(rows, "predicted"))
    title = f"Bubble strides, simulated ({tools.scenario_name(delayed.info)})"
    return [Drawn(FIGURE.name, panels.draw_stack(shown, title, shared_lanes=False, paper=PAPER),
                  pd.concat(tables, ignore_index=True), [verdict(paid)])]


def latency_of(rows):
    """The largest of a message, as planned."""
    return max(int(rows.loc[rows["kind"] == "recv", "planned_ns"].max()), 1)


def verdict(paid):
    """`paid`: {schedule: delay that it adds, in latencies}."""
    more = sum(times > 2 * LEAST_PAID for times in paid.values())
    return claims.judge("delay-accumulates", claims.by_count(more, len(paid)),
                        ", ".join(f"{name} pays {times:.1f} latencies"
                                  for name, times in paid.items()),
                        f"An iteration must pay {LEAST_PAID}, forth and back.")
