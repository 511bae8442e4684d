"""CrossPipe figure 8: static, greedy and solver-made schedules over latency and transfer time.

All are over ZBV without delay and have the memory of 1F1B, loops that of interleaved 1F1B. Where
OR-tools are not installed, for loops, and with --time-limit 0 `best --placement` takes the
solver's place."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.crosspipe import fig8_verdicts, series
from longhaul.papers.expected import Expected
from longhaul.running import predict, tools

FIGURE = Figure(
    "crosspipe-fig8",
    summary="slowdown over latency and over transfer time: static, greedy, solver-made (simulated)",
    shows="slowdown over latency and transfer time",
    # Of the solver a second is wanted for each point: its result depends on the machine.
    repeat=Repeat("crosspipe", seconds=30, simulate=("--simulate", "--time-limit", "0"),
                  deterministic=False),
    expected=(
        Expected("crossings of a microbatch, loop, 2 datacenters", "published", low=6, high=6,
                 column="crossings_per_microbatch", where="placement=loop",
                 why="Section 5.1: a count."),
        Expected("crossings of a microbatch, wave, 2 datacenters", "published", low=4, high=4,
                 column="crossings_per_microbatch", where="placement=wave",
                 why="Section 5.1: a count."),
        Expected("crossings of a microbatch, ud, 2 datacenters", "published", low=2, high=2,
                 column="crossings_per_microbatch", where="placement=ud",
                 why="Section 5.1: a count."),
        Expected("least gap to a lower bound, figure 8", "bound", low=0, column="gap", reduce="min",
                 why="A lower bound is a certificate: no schedule of its class ends before it."),
        Expected("1F1B over ZBV without delay", "exact", low=1.2941, high=1.2942, column="slowdown",
                 where="series=1F1B; axis=latency; delay_ratio=0",
                 why="Makespans 33 and 25.5: (M + P - 1) (F + B) over M (F + B) + (P - 1) F / 2."),
    ))
DELAYS = (0, .125, .25, .5, .75, 1, 1.5, 2, 3, 4)
MOVES = 50000
TIME_LIMIT_S = 1
COINCIDE = 0.005  # relative difference of lines that look like one
LOOP_MEMORY = ("memory.budget=1.375",)  # as much as interleaved 1F1B: 5.5 activations of 4
AXES = (("latency", "latency  $T_{lat}/T_F$  (no transfer time)"),
        ("transfer", "transfer time  $T_{bw}/T_F$  (no latency)"))
ROWS = (("static", ("static",)), ("delay-aware", ("greedy", "solver")))


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--scenario", default="crosspipe-fig6", metavar="FILE",
                        help="4 stages, 8 microbatches, 2 datacenters (default: "
                             "benchmarks/scenarios/crosspipe-fig6.toml)")
    parser.add_argument("--search-moves", type=int, default=MOVES, metavar="N",
                        help="how long best looks at each point (default: %(default)s moves)")
    parser.add_argument("--time-limit", type=int, default=TIME_LIMIT_S, metavar="SECONDS",
                        help="of the solver at each point, at least 1; 0: search instead, which "
                             "gives the same picture on any machine (default: %(default)s)")


def draw(options):
    scenario = tools.scenario_file(options.scenario)
    shown = all_series(options)
    points = {("latency", delay): predict.ratios(delay, 0) for delay in DELAYS}
    points |= {("transfer", delay): predict.ratios(0, delay) for delay in DELAYS}
    said = series.answers(shown, scenario, points, bounds=True)
    zbv = next(one for one in shown if one.schedule == "zbv")
    ideal = said[zbv, ("latency", 0)]["makespan_ns"]
    table = pd.DataFrame([
        {"series": one.label, "schedule": one.schedule, "kind": one.kind,
         "placement": one.placement, "axis": axis, "delay_ratio": delay,
         "makespan_ns": entry["makespan_ns"],
         "slowdown": round(entry["makespan_ns"] / ideal, 5), "gap": entry.get("gap"),
         "crossings_per_microbatch": crossings(entry)}
        for (one, (axis, delay)), entry in said.items()])
    return [Drawn(FIGURE.name, figure_of(table, shown), table, fig8_verdicts.judge(table))]


def all_series(options):
    limit = options.time_limit or None
    return [
        series.of("1f1b"), series.of("interleaved-1f1b", placement="loop"), series.of("zb-h1"),
        series.of("zbv", placement="wave"),
        series.of("cross-ud", "greedy"), series.of("cross-ud-sub", "greedy"),
        series.of("cross-wave", "greedy", "wave"),
        series.of("cross-loop", "greedy", "loop", overrides=LOOP_MEMORY),
        series.solved("ud", options.search_moves, limit),
        series.solved("wave", options.search_moves, limit),
        series.solved("loop", options.search_moves, limit, LOOP_MEMORY)]


def crossings(entry, middle=2, microbatches=8):
    """Messages between the two datacenters, whose first stages are those below `middle`."""
    total = 0
    for resource in entry["resources"]:
        ends = resource["resource"].removeprefix("link ").split(">")
        if len(ends) == 2 and all(end.isdigit() for end in ends):
            total += resource["holds"] * ((int(ends[0]) < middle) != (int(ends[1]) < middle))
    return total / microbatches


def figure_of(table, shown):
    plt = style.apply()
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.4), sharex=True, sharey=True)
    for row, (name, kinds) in zip(axes, ROWS):
        for panel, (axis, label) in zip(row, AXES):
            for one in shown:
                if one.kind in kinds:
                    _line(panel, table[(table["series"] == one.label) & (table["axis"] == axis)],
                          one)
            panel.set_title(f"{name}, over {label.split('  ')[0]}", loc="left")
            panel.grid(color="#dddddd", linewidth=0.6)
            panel.set_axisbelow(True)
        row[0].set_ylabel("slowdown against ZBV without delay")
        row[1].legend(*row[1].get_legend_handles_labels(), frameon=False, loc="upper left",
                      ncols=2, columnspacing=1.2)
    for panel, (_, label) in zip(axes[1], AXES):
        panel.set_xlabel(label)
        panel.set_xlim(0, DELAYS[-1])
    axes[0, 0].set_ylim(0.95, None)
    figure.suptitle("Slowdown across 2 datacenters, simulated (4 stages, 8 microbatches, "
                    "F = D = W)", x=0.065, y=0.985, ha="left",
                    fontsize=11, fontweight="bold")
    figure.text(0.065, 0.012, caption(shown, table), fontsize=7.5, linespacing=1.4)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.915, bottom=0.115, hspace=0.14,
                           wspace=0.08)
    return figure


def caption(shown, table):
    solver = [one for one in shown if one.kind == "solver"]
    cp_sat = [one.label.split(",")[0] for one in solver if one.schedule != "best"]
    searched = [one.label.split(",")[0] for one in solver if one.schedule == "best"]
    words = [f"CP-SAT made {', '.join(cp_sat)} ({_gaps(solver, table)})"] if cp_sat else []
    words += [f"local search (best --placement) made {', '.join(searched)}"] if searched else []
    return ("Solver-made: " + "; ".join(words)
            + ".\nAll hold at most what 1F1B holds, loop schedules what interleaved 1F1B holds "
            "(1.375 times as much)." + _hidden(shown, table))


def _gaps(solver, table):
    """How far CP-SAT's schedules are at most from a bound that no schedule can beat."""
    words = []
    for one in solver:
        gaps = table.loc[table["series"] == one.label, "gap"].astype(float)
        if one.schedule != "best" and gaps.notna().any():
            words.append(f"{one.label.split(',')[0]} {100 * gaps.max():.0f}%")
    return "at most above a lower bound: " + ", ".join(words) if words else "no bounds"


def _hidden(shown, table):
    """Names the lines below that cannot be seen, since others lie on them."""
    lines = table.pivot(index=["axis", "delay_ratio"], columns="series", values="slowdown")
    names = [one.label for one in shown if one.kind != "static"]
    for top in reversed(names):  # drawn last
        below = [name for name in names if name != top
                 and (lines[name] / lines[top] - 1).abs().max() < COINCIDE]
        if below:
            return f" Below {top} lie {', '.join(below)}."
    return ""


def _line(axes, rows, one):
    look = {"static": {"linestyle": "--", "marker": "s"},
            "greedy": {"linestyle": ":", "marker": "o"},
            "solver": {"linestyle": "-", "marker": "^"}}[one.kind]
    rows = rows.sort_values("delay_ratio")
    axes.plot(rows["delay_ratio"], rows["slowdown"], color=one.colour, linewidth=1.3, markersize=4,
              markeredgecolor="black", markeredgewidth=0.3, label=one.label, **look)
