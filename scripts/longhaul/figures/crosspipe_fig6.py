"""CrossPipe figure 6, its first two schedules: what delay does to 1F1B, and why."""

import pandas as pd

from longhaul import panels, style, tools
from longhaul.errors import Failure
from longhaul.figures import Drawn
from longhaul.figures.timeline import table_of
from longhaul.path import critical_path, wan_crossings
from longhaul.trace import select

NAME = "crosspipe-fig6"
SUMMARY = "1F1B without and with cross-datacenter latency, the critical path numbered (simulated)"
WITHOUT_DELAY = ("link.latency_ratio=0", "link.transfer_ratio=0")


def add_arguments(parser):
    parser.add_argument("--scenario", default="crosspipe-fig6", metavar="FILE",
                        help="default: benchmarks/scenarios/crosspipe-fig6.toml")
    parser.add_argument("--schedule", default="1f1b", metavar="S", help="default: 1f1b")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario in the second panel")


def draw(options):
    scenario = tools.scenario_file(options.scenario)
    shown, tables = [], []
    for name, overrides, path in (("without delay", (*options.set, *WITHOUT_DELAY), False),
                                  ("with cross-datacenter latency", options.set, True)):
        trace = tools.simulate(scenario, [options.schedule], overrides)
        rows = select(trace.predicted, options.schedule)
        if rows.empty:
            raise Failure(f'{options.schedule} gives no rows for {scenario.name}. '
                          "Choose one schedule that fits it.")
        title = f"{name}: {panels.milliseconds(panels.makespan(rows))}"
        if path:
            title += f", {wan_crossings(critical_path(rows))} WAN crossings on the critical path"
        shown.append(panels.Panel(rows, title, path))
        tables.append(table_of(rows, "predicted").assign(panel=name))
    title = (f"{style.schedule_name(options.schedule)} across datacenters, simulated "
             f"({tools.scenario_name(trace.info)})")
    return [Drawn(NAME, panels.draw_stack(shown, title, shared_lanes=False),
                  pd.concat(tables, ignore_index=True))]
