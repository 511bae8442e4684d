"""CrossPipe figure 5: how a microbatch travels over the devices."""

import pandas as pd

from longhaul.drawing import panels
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs.timeline import table_of
from longhaul.running import tools
from longhaul.trace import crosses, select

FIGURE = Figure(
    "crosspipe-fig5",
    summary="traversal patterns: unidirectional, bidirectional, loop and wave (simulated)",
    shows="how a microbatch travels: UD, BD, loop, wave",
    repeat=Repeat("crosspipe", seconds=3, simulate=("--simulate",)))
# The bidirectional one has one microbatch for each direction.
PATTERNS = (("cross-ud", "unidirectional (UD)", 1), ("cross-bd", "bidirectional (BD)", 2),
            ("cross-loop", "loop", 1), ("cross-wave", "wave", 1))
MEMORY = ("memory.budget=2",)  # loop and wave hold two chunks a device
PAPER = panels.Paper(widest=9.25, row_inches=0.24, dots_per_inch=180)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--scenario", default="crosspipe-fig6", metavar="FILE",
                        help="default: benchmarks/scenarios/crosspipe-fig6.toml")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario")


def draw(options):
    scenario = tools.scenario_file(options.scenario)
    shown, tables = [], []
    for schedule, name, microbatches in PATTERNS:
        trace = tools.simulate(scenario, [schedule], (
            f"parallel.microbatches={microbatches}", *MEMORY, "link.latency_ratio=0.25",
            *options.set))
        rows = select(trace.predicted, schedule)
        if rows.empty:
            raise Failure(f"{schedule} gives no rows for {scenario.name} (it does not fit the "
                          "scenario). Choose another one.")
        sends = int(((rows["kind"] == "send") & crosses(rows)).sum())
        each = "a microbatch" if microbatches == 1 else "of two microbatches, one each way"
        shown.append(panels.Panel(rows, f"{name}: {sends} crossings between datacenters {each}"))
        tables.append(table_of(rows, "predicted").assign(pattern=name))
    title = f"Traversal patterns, simulated ({tools.scenario_name(trace.info)})"
    return [Drawn(FIGURE.name, panels.draw_stack(shown, title, shared_lanes=False, paper=PAPER),
                  pd.concat(tables, ignore_index=True))]
