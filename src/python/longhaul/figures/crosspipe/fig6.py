"""CrossPipe figure 6: 1F1B under delay, why it is slow, and another order for the same delay."""

import pandas as pd

from longhaul.drawing import memory, panels, style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.drawing.time_scale import time_text
from longhaul.errors import Failure
from longhaul.figures.runs.timeline import table_of
from longhaul.papers import claims
from longhaul.papers.expected import of_claim
from longhaul.path import critical_path, wan_crossings
from longhaul.running import tools
from longhaul.trace import select

FIGURE = Figure(
    "crosspipe-fig6",
    summary="1F1B without and with latency, the critical path numbered, and reordered (simulated)",
    shows="effect of latency on 1F1B, the cause, and another order",
    repeat=Repeat("crosspipe", seconds=3, simulate=("--simulate",)),
    expected=(
        of_claim("crossings-fig6", "crossings on the critical path of 1F1B, M = 8", "published",
                 low=8, high=8, why="Figure 6: a count."),
    ))
WITHOUT_DELAY = ("link.latency_ratio=0", "link.transfer_ratio=0")
REORDERED = "cross-ud"
GROWTH = (8, 16, 32)  # microbatches


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--scenario", default="crosspipe-fig6", metavar="FILE",
                        help="default: benchmarks/scenarios/crosspipe-fig6.toml")
    parser.add_argument("--schedule", default="1f1b", metavar="S", help="default: 1f1b")
    parser.add_argument("--reordered", default=REORDERED, metavar="S",
                        help="schedule of the third panel (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario in the second and third panel")


def draw(options):
    scenario = tools.scenario_file(options.scenario)
    drawn = [_panel(scenario, "without delay", options.schedule, (*options.set, *WITHOUT_DELAY)),
             _panel(scenario, "with cross-datacenter latency", options.schedule, options.set,
                    path=True),
             _panel(scenario, "reordered", options.reordered, options.set, path=True)]
    title = (f"{style.schedule_name(options.schedule)} across datacenters, simulated "
             f"({scenario.stem})")
    table = pd.concat([table_of(panel.rows, "predicted").assign(panel=name)
                       for panel, name, _ in drawn], ignore_index=True)
    return [Drawn(FIGURE.name, panels.draw_stack([panel for panel, _, _ in drawn], title,
                                          shared_lanes=False), table,
                  verdicts(scenario, options, *drawn))]


def _panel(scenario, name, schedule, overrides, path=False):
    """The panel, its name and the peak of activations that a device holds, in bytes."""
    rows = rows_of(scenario, schedule, overrides)
    peak = peak_bytes(rows)
    title = f"{name}: {time_text(panels.makespan(rows))}"
    if path:
        title += f", {wan_crossings(critical_path(rows))} WAN crossings on the critical path"
    if name == "reordered":
        title = title.replace(name, f"{name} ({style.schedule_name(schedule)})")
    return panels.Panel(rows, title, path), name, peak


def rows_of(scenario, schedule, overrides):
    rows = select(tools.simulate(scenario, [schedule], overrides).predicted, schedule)
    if rows.empty:
        raise Failure(f"{schedule} gives no rows for {scenario.name}. "
                      "Choose one schedule that fits it.")
    return rows


def peak_bytes(rows):
    return int(memory.changes(rows)["activation_bytes"].max())


def verdicts(scenario, options, ideal, delayed, reordered):
    crossings = wan_crossings(critical_path(delayed[0].rows))
    theirs = claims.value("crossings-fig6")
    grown = [wan_crossings(critical_path(rows_of(
        scenario, options.schedule, (*options.set, f"parallel.microbatches={count}"))))
        for count in GROWTH]
    spans = [panels.makespan(panel.rows) / 1e6 for panel, _, _ in (ideal, delayed, reordered)]
    shorter = 100 * (1 - spans[2] / spans[1])
    fits = reordered[2] <= delayed[2]
    return [
        claims.judge("crossings-fig6", claims.HOLDS if crossings == theirs
                     else claims.within(crossings, theirs), f"{crossings}",
                     f"{spans[1]:g} ms against {spans[0]:g} without delay."),
        claims.judge("crossings-grow", claims.by_count(
            sum(abs(more / few - 2) <= 0.25 for few, more in zip(grown, grown[1:])),
            len(grown) - 1),
            ", ".join(map(str, grown)) + " crossings",
            "On the critical path with " + ", ".join(map(str, GROWTH)) + " microbatches."),
        claims.judge("reordering-same-memory", claims.HOLDS if shorter > 0 and fits else
                     claims.PARTLY if shorter > 0 else claims.FAILS,
                     f"{style.schedule_name(options.reordered)} is {shorter:.1f}% shorter "
                     f"({spans[2]:g} against {spans[1]:g} ms)",
                     f"Peak activations of a device: {reordered[2] / delayed[2]:.2f} of "
                     f"{style.schedule_name(options.schedule)}'s.")]
