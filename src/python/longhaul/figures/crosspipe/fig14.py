"""CrossPipe figure 14: time to solution of the constraint solver, the integer program of prior
work, and our search, over the number of stages.

Time until a schedule is proven within 1% of the optimum (appendix D.1), UD, F = D = W: CP-SAT on
section 4.1's model alone, and with our start and bounds (`cross-ud-opt`); HiGHS on prior work's
integer program; `best` against our bound."""

import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.papers.claims import FAILS, HOLDS, PARTLY, judge
from longhaul.running import tools
from longhaul.solver.cp_sat import load_cp_model
from longhaul.solver.milp import load_highspy
from longhaul.solver.pipeline_problem import UNIT_NS, pipeline

FIGURE = Figure(
    "crosspipe-fig14",
    summary="time to solution of CP-SAT, the integer program of prior work, and search",
    shows="time to solution of solvers and search",
    needs="`scripts/requirements-solver.txt`",
    # Times to solution, hence measured.
    repeat=Repeat("crosspipe", measure=("--simulate",), minutes=5, needs="OR-tools"))
SIZES = "2,3,4,8,16"
TIME_LIMIT_S = 4
GAP = 0.01           # appendix D.1: a solver ends where it has proven this
GOOD = 0.05          # a schedule this far above the best that is known is a good one
WORKERS = 8          # CP-SAT's strategies need several workers, on few cores too
SEARCH_MOVES = 20000
CONSTRAINTS, PROGRAM = "CP-SAT, section 4.1 alone", "MILP of prior work (HiGHS)"
STARTED, SEARCH = "CP-SAT, our start and bounds", "search (best) against our bound"
LOOKS = {CONSTRAINTS: ("#a000c8", "o"), PROGRAM: ("#c9561a", "s"), STARTED: ("#4a148c", "^"),
         SEARCH: ("#c2185b", "D")}
SCENARIO = """
[costs]
forward = "100ms"
dgrad = "100ms"
wgrad = "100ms"
[parallel]
stages = {stages}
microbatches = {microbatches}
[[datacenter]]
name = "west"
stages = {west}
[[datacenter]]
name = "east"
stages = {east}
[[link]]
between = ["west", "east"]
latency_ratio = {latency:g}
transfer_ratio = 0
"""


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="nothing runs on ranks here (always so)")
    parser.add_argument("--stages", default=SIZES, metavar="N,N..",
                        help="at twice as many microbatches (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=1, metavar="RATIO",
                        help="between the 2 datacenters, in T_F (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_S, metavar="SECONDS",
                        help="of each solver at each size (default: %(default)s; the paper's 7200)")


def draw(options):
    require_packages()
    sizes = parse_sizes(options.stages)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for stages in sizes:
            tools.say(f"{stages} stages, {2 * stages} microbatches")
            for method, answer in answers(stages, options, Path(directory)).items():
                rows += rows_of(method, stages, answer)
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table, sizes, options), table, verdicts(table))]


def require_packages():
    """Before anything takes time. The one that is there is not loaded: see milp."""
    for package, load in (("ortools", load_cp_model), ("highspy", load_highspy)):
        if importlib.util.find_spec(package) is None:
            load()


def parse_sizes(text):
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 2:
        raise Failure(f'no sizes "{text}" (two datacenters need 2 stages). Write 2,4,8.')
    return sizes


def answers(stages, options, directory):
    """{method: {seconds, solved, objective, bound, improvements}}, times in units of T_F."""
    problem = {**pipeline(stages, 2 * stages, latency=round(options.latency * UNIT_NS),
                          crossings=(stages // 2 - 1,)),
               "time_limit_s": options.time_limit, "relative_gap": GAP, "threads": WORKERS}
    scenario = directory / f"stages{stages}.toml"
    scenario.write_text(SCENARIO.format(
        stages=stages, microbatches=2 * stages, latency=options.latency,
        west=list(range(stages // 2)), east=list(range(stages // 2, stages))))
    limit = max(1, options.time_limit)
    return {CONSTRAINTS: solver(problem, "longhaul.solver", directory),
            PROGRAM: solver(problem, "longhaul.solver.milp", directory),
            STARTED: tool(scenario, "cross-ud-opt", "--time-limit", f"{limit:g}s",
                          "--search-moves", SEARCH_MOVES),
            SEARCH: tool(scenario, "best", "--placement", "ud", "--search-moves", SEARCH_MOVES)}


def solver(problem, module, directory):
    path, written = directory / "problem.json", directory / "answer.json"
    path.write_text(json.dumps(problem))
    tools.run([sys.executable, "-m", module, path, written])
    answer = json.loads(written.read_text())
    written.unlink()
    return {"seconds": answer["seconds"], "solved": answer["status"] == "optimal",
            "objective": answer.get("objective_ns", float("nan")) / UNIT_NS,
            "bound": answer["bound_ns"] / UNIT_NS,
            "improvements": [(step["seconds"], step["objective_ns"] / UNIT_NS)
                             for step in answer["improvements"]]}


def tool(scenario, schedule, *extra):
    """A call of the tool, its start included. It does not say when it found a solution."""
    begin = time.monotonic()
    record = json.loads(tools.run([tools.binary("longhaul"), "simulate", scenario, "--schedule",
                                   schedule, "--json", *extra]))
    seconds = time.monotonic() - begin
    entry = record["schedules"][0]
    objective, bound = entry["makespan_ns"] / 1e8, entry["lower_bound_ns"] / 1e8
    return {"seconds": seconds, "solved": objective <= bound * (1 + GAP), "objective": objective,
            "bound": bound, "improvements": [(seconds, objective)]}


def rows_of(method, stages, answer):
    common = {"method": method, "stages": stages, "microbatches": 2 * stages}
    steps = [{**common, "event": "improved", "seconds": round(seconds, 3), "makespan_tf": objective}
             for seconds, objective in answer["improvements"]]
    return [*steps, {**common, "event": "solved" if answer["solved"] else "out of time",
                     "seconds": round(answer["seconds"], 3), "makespan_tf": answer["objective"],
                     "bound_tf": answer["bound"]}]


def verdicts(table):
    ends = table[table["event"] != "improved"].set_index(["method", "stages"])
    largest = {method: max([stages for (name, stages), row in ends.iterrows()
                            if name == method and row["event"] == "solved"], default=0)
               for method in LOOKS}
    both = [stages for stages in sorted(table["stages"].unique())
            if all(ends.loc[method, stages]["event"] == "solved"
                   for method in (CONSTRAINTS, PROGRAM))]
    faster = sum(ends.loc[CONSTRAINTS, n]["seconds"] < ends.loc[PROGRAM, n]["seconds"]
                 for n in both)
    further = largest[CONSTRAINTS] > largest[PROGRAM]
    scales = HOLDS if further else PARTLY if 2 * faster > len(both) else FAILS
    ours = "; ".join(f"{method}: solved up to {n} stages" for method, n in largest.items())
    good = [share_before_good(table, ends, stages) for stages in table["stages"].unique()]
    found = [share for share in good if share is not None]
    early = sum(share <= 0.5 for share in found)
    verdict = (HOLDS if len(found) == len(good) and early == len(good)
               else PARTLY if 2 * early >= len(good) else FAILS)
    return [judge("solver-scales", scales, ours,
                  f"both solved {len(both)} sizes, CP-SAT sooner at {faster}"),
            judge("solver-good-early", verdict,
                  f"within {GOOD:.0%} of the best known in the first half of its time at {early} "
                  f"of {len(good)} sizes, at {len(good) - len(found)} never",
                  "for section 4.1 alone, in the time given here")]


def share_before_good(table, ends, stages):
    """The part of CP-SAT's time that passed until it had a good schedule; None: it found none."""
    best = ends.xs(stages, level="stages")["makespan_tf"].min()
    mine = table[(table["method"] == CONSTRAINTS) & (table["stages"] == stages)]
    good = mine[(mine["event"] == "improved") & (mine["makespan_tf"] <= best * (1 + GOOD))]
    return None if good.empty else good["seconds"].min() / ends.loc[CONSTRAINTS, stages]["seconds"]


def figure_of(table, sizes, options):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.6))
    for place, (method, (colour, marker)) in enumerate(LOOKS.items()):
        mine = table[table["method"] == method]
        shift = 1 + 0.02 * (place - 1.5)  # or points of one size hide each other
        ends = mine[mine["event"] != "improved"].sort_values("stages")
        axes.plot(ends["stages"] * shift, ends["seconds"], color=colour, linewidth=1.3)
        axes.plot([], [], marker, linestyle="-", color=colour, linewidth=1.3, label=method)
        for event, fill in (("solved", colour), ("out of time", "white")):
            some = ends[ends["event"] == event]
            axes.plot(some["stages"] * shift, some["seconds"], marker, color=colour,
                      markerfacecolor=fill, markersize=7, linestyle="none")
        steps = mine[mine["event"] == "improved"]
        if method in (CONSTRAINTS, PROGRAM):
            axes.plot(steps["stages"] * shift, steps["seconds"], "_", color=colour, markersize=8)
    axes.axhline(options.time_limit, color="#808080", linewidth=0.8, linestyle="--", zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{n}\n{2 * n}" for n in sizes])
    axes.minorticks_off()
    axes.set_xlabel("stages; microbatches below")
    axes.set_ylabel("seconds")
    axes.grid(color="#dddddd", linewidth=0.6, axis="y")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2)
    figure.suptitle("Time to a schedule within 1% of a proven bound", x=0.09, y=0.985, ha="left",
                    fontsize=11, fontweight="bold")
    figure.text(0.09, 0.015, "Hollow: out of time (dashed: the limit; building the model comes on "
                "top). Bars: a solver found a better schedule.\nTwo datacenters, latency "
                f"{options.latency:g} $T_F$, F = D = W, activations of as many microbatches as "
                "stages.", fontsize=7.5)
    figure.subplots_adjust(left=0.09, right=0.98, top=0.84, bottom=0.2)
    return figure
