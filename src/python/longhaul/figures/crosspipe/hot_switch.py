"""A run whose links change (CrossPipe 6.2 and 8.2): time of each iteration, with the order of
blocks kept and with a switch to one that was selected for the delays that ranks measured."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.running import runs, tools

FIGURE = Figure(
    "hot-switch",
    summary="links that change during a run: schedules that stay and one that is switched",
    shows="links that change during a run: orders that stay, and one that is switched",
    options="[--run]",
    repeat=Repeat("crosspipe", measure=("--run",), minutes=2))
CHANGES = ("link.latency_ratio=2", "link.transfer_ratio=2")
BEGIN = ("link.latency_ratio=0.25", "link.transfer_ratio=0.25")
FIXED, ADAPTIVE = "fixed", "adaptive"


def add_arguments(parser):
    parser.add_argument("--results", metavar="DIR",
                        help=f"records of the two runs in DIR/{FIXED} and DIR/{ADAPTIVE}; with "
                             "--run, where they go (default: runs/hot-switch)")
    parser.add_argument("--run", action="store_true",
                        help="run both; one that is finished is not run again")
    parser.add_argument("--scenario", default="m70-2dc", metavar="FILE",
                        help="default: benchmarks/scenarios/m70-2dc.toml")
    parser.add_argument("--schedule", default="best", metavar="S",
                        help="what the adaptive run selects from, first on the links of the "
                             "beginning (default: best)")
    parser.add_argument("--beside", default="1f1b,zbv", metavar="S[,S..]",
                        help="schedules that stay, for comparison (default: 1f1b,zbv)")
    parser.add_argument("--at", type=int, default=6, metavar="K",
                        help="the iteration at which the links change (default: 6)")
    parser.add_argument("--begin", action="append", default=[], metavar="PATH=VALUE",
                        help=f"links before (default: {', '.join(BEGIN)})")
    parser.add_argument("--change", action="append", default=[], metavar="PATH=VALUE",
                        help=f"and from then on (default: {', '.join(CHANGES)})")
    parser.add_argument("--iterations", type=int, default=18, metavar="N")
    parser.add_argument("--time-scale", type=float, default=0.25, metavar="X",
                        help="every duration is multiplied by X while it is played "
                             "(default: 0.25)")
    parser.add_argument("--extra", default="--search-moves 200000", metavar="'OPTIONS'",
                        help="further options for bench_pipeline, as one word (default: the same "
                             "search in both runs: %(default)s)")


def draw(options):
    directory = Path(options.results or "runs/hot-switch")
    if options.run:
        for name in (FIXED, ADAPTIVE):
            if not records.is_finished(directory / name):
                runs.run(command_for(name, directory / name, options), directory / name,
                         directory)
    elif not options.results:
        raise Failure("nothing to draw (neither --results DIR nor --run). "
                      "Give the directory of the two runs, or --run.")
    fixed, adaptive = (records.read_record(directory / name) for name in (FIXED, ADAPTIVE))
    table = pd.concat([iterations_of(fixed, FIXED, directory / FIXED),
                       iterations_of(adaptive, ADAPTIVE, directory / ADAPTIVE)],
                      ignore_index=True)
    return [Drawn(FIGURE.name, draw_iterations(table, adaptive), table)]


def command_for(name, directory, options):
    """As a person would type it in the root of the checkout."""
    scenario = tools.scenario_file(options.scenario)
    overrides = [*(options.begin or BEGIN), f"run.time_scale={options.time_scale:g}"]
    schedules = options.schedule
    if name == FIXED and options.beside:
        schedules += f",{options.beside}"
    command = ["scripts/mpi", "-n", scenario_text.ranks_of(scenario, overrides),
               tools.from_root(tools.binary("bench_pipeline")), tools.from_root(scenario),
               "--schedule", schedules, "--iterations", options.iterations]
    command += tools.set_words(overrides)
    for change in options.change or CHANGES:
        command += ["--change", f"{options.at}:{change}"]
    if name == ADAPTIVE:
        command.append("--adaptive")
    return [str(word) for word in (*command, *shlex.split(options.extra), "--out",
                                   tools.from_root(directory))]


def iterations_of(record, run, directory):
    """One row an iteration, n that the run has; times in seconds of the scenario, not as played.
    `directory`: the run's."""
    if not record.get("schedules") or "first_iteration" not in record["schedules"][0]:
        raise Failure("the record does not say when its schedules began (none of bench_pipeline, "
                      "or an older one). Run it again.")
    scale = record.get("time_scale", 1.0) * 1e9
    facts = provenance.of(record, directory) | {
        "time_scale": record.get("time_scale", 1.0),
        "n": sum(len(stretch["samples_ns"]) for stretch in record["schedules"])}
    rows, began = [], None
    for stretch in record["schedules"]:
        first = stretch["first_iteration"]
        began = stretch["schedule"] if first == 0 else began
        rows += [provenance.add(
            {"run": run, "began_as": began, "schedule": stretch["schedule"],
             "iteration": first + index, "predicted_s": stretch["predicted_ns"] / scale,
             "measured_s": sample / scale}, facts)
            for index, sample in enumerate(stretch["samples_ns"])]
    return pd.DataFrame(rows)


def draw_iterations(table, adaptive):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8, 4))
    series = list(table[["run", "began_as"]].drop_duplicates().itertuples(index=False, name=None))
    for run, began in series:
        _series(axes, table[(table["run"] == run) & (table["began_as"] == began)], run, began)
    axes.set_xlim(-0.5, table["iteration"].max() + 0.5)
    axes.set_ylim(0, 1.22 * table[["measured_s", "predicted_s"]].max().max())
    _events(axes, adaptive)
    axes.set_xlabel("iteration")
    axes.set_ylabel("iteration time (s)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    scale = adaptive.get("time_scale", 1.0)
    played = "" if scale == 1 else f", played at time_scale {scale:g}, scaled back"
    axes.set_title(f"Links that change during a run ({records.scenario_of(adaptive)}{played})",
                   loc="left", fontweight="bold")
    handles = [Line2D([], [], color=_colour(run, began), marker=_marker(run), markersize=4, lw=0,
                      label=_label(run, began)) for run, began in series]
    handles.append(Line2D([], [], color="black", lw=1.1, label="predicted"))
    figure.legend(handles=handles, loc="lower center", frameon=False, ncols=len(handles))
    figure.subplots_adjust(left=0.08, right=0.985, top=0.92, bottom=0.2)
    return figure


def _series(axes, rows, run, began):
    rows = rows.sort_values("iteration")
    edges = np.append(rows["iteration"] - 0.5, rows["iteration"].iloc[-1] + 0.5)
    axes.stairs(rows["predicted_s"], edges, baseline=None, color=_colour(run, began), linewidth=1.1)
    axes.plot(rows["iteration"], rows["measured_s"], linestyle="", marker=_marker(run),
              markersize=4.5, color=_colour(run, began), markeredgecolor="white",
              markeredgewidth=0.4)


def _events(axes, record):
    """Links change and orders switch between iterations; a deviation is seen after one."""
    words = {"change": ("links change", -0.5, "#555555"),
             "deviation": ("noticed", 0.5, "#555555"),
             "switch": ("switch", -0.5, style.PATH_COLOUR)}
    last = int(record.get("iterations", 0)) - 1
    # Labels of neighbours stand on lines of their own.
    for row, event in enumerate(events_shown(record, words, last)):
        text, offset, colour = words[event["event"]]
        at = event["iteration"] + offset
        axes.axvline(at, color=colour, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(text, (at, 1), (3, -3 - 11 * (row % 3)), va="top", fontsize=8, color=colour,
                      xycoords=("data", "axes fraction"), textcoords="offset points")


def events_shown(record, words, last):
    """In order: those that have a word, up to the last iteration."""
    return [event for event in record.get("switches", [])
            if event["event"] in words and event["iteration"] <= last]


def _colour(run, began):
    if run == ADAPTIVE:
        return "black"
    return style.SCHEDULE_COLOURS.get(began, style.OTHER_COLOUR)


def _marker(run):
    return "D" if run == ADAPTIVE else "o"


def _label(run, began):
    name = style.schedule_name(began)
    return f"{name}, switched" if run == ADAPTIVE else f"{name}, order kept"
