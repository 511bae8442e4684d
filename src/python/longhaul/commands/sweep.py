"""Runs bench_pipeline over delay cells, communication arrangements and scenarios, each point in a
directory of its own; points that are finished are not run again, and those that were cut short go
on. Gathers DIR/sweep.csv."""

import argparse
import sys
from pathlib import Path

from longhaul.errors import RUN_FAILED, Failure, guarded, result_name
from longhaul.running import sweep_state, tools
from longhaul.running.sweep import gather, run_points
from longhaul.running.sweep_points import COMMS, parse_cells, points_of


def add_run_arguments(parser):
    """Options of a sweep, and of a figure that runs one."""
    parser.add_argument("--schedules", default="static", metavar="S[,S..]",
                        help="for bench_pipeline (default: static)")
    parser.add_argument("--iterations", type=int, metavar="N",
                        help="measured iterations of each schedule (default: the scenario's)")
    parser.add_argument("--time-scale", type=float, metavar="X",
                        help="every duration is multiplied by X while it is played")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario; may be given again")
    parser.add_argument("--extra", default="", metavar="'OPTIONS'",
                        help="further options for bench_pipeline, as one word")
    parser.add_argument("--dry-run", action="store_true",
                        help="print the commands that would run, and run none")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/sweep", description=__doc__,
        epilog="Points lie in DIR/SCENARIO/COMM/latencyA-transferB; what is set aside there is "
               "kept as *.unfinished-N (half a run that cannot go on) and *.outdated-N (a result of "
               "another input). Exit codes: 0 all finished, 2 bad input, 3 some failed.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", metavar="DIR", type=result_name, help="results, and sweep.csv")
    where.add_argument("--resume", metavar="DIR",
                       help="finish the sweeps that were begun in DIR as they were asked for; a "
                            "point is done if its command, the scenario's content and the "
                            "program's commit are the same")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE",
                        help="a .toml file, or a name in benchmarks/scenarios; may be given again")
    parser.add_argument("--cells", default="table5", metavar="CELLS",
                        help="table5, axes, grid, or LATENCY:TRANSFER pairs (of the largest T_F): "
                             "0:0,0.25:2 (default: table5)")
    parser.add_argument("--comm", default="decoupled", metavar="C[,C]",
                        help="decoupled, grouped, or both (default: decoupled)")
    parser.add_argument("--again", action="store_true",
                        help="measure every point once more; earlier runs stay, and count first")
    parser.add_argument("--gather", action="store_true", help="run nothing, only write sweep.csv")
    add_run_arguments(parser)
    return parser.parse_args(arguments)


def begin(options):
    """Keeps the options, for --resume; returns the names of points that failed."""
    scenarios = [tools.scenario_file(name) for name in options.scenario]
    cells = parse_cells(options.cells)
    if not options.dry_run:
        kept = {**vars(options), "scenario": [str(tools.from_root(file)) for file in scenarios]}
        for name in ("out", "resume", "gather", "dry_run", "again"):
            del kept[name]
        sweep_state.remember(Path(options.out), kept)
    return run_points(points_of(scenarios, cells, options.comm.split(",")), options.out, options)


def finish(options):
    """Finishes the sweeps that were begun in a directory. Of several that name a point, the last
    one decides its input: none sets aside what another has just done."""
    work, owner = [], {}
    for number, sweep in enumerate(sweep_state.remembered(options.resume)):
        sweep.resume, sweep.out, sweep.dry_run = True, options.out, options.dry_run
        sweep.again = False
        scenarios = [tools.scenario_file(tools.ROOT / name) for name in sweep.scenario]
        points = points_of(scenarios, parse_cells(sweep.cells), sweep.comm.split(","))
        work.append((points, sweep))
        owner.update((point.name, number) for point in points)
    failed = []
    for number, (points, sweep) in enumerate(work):
        own = [point for point in points if owner[point.name] == number]
        failed += run_points(own, sweep.out, sweep)
    return failed


def main(arguments=None):
    options = parse(arguments)
    if options.resume:
        options.out = options.resume
    comms = options.comm.split(",")
    if unknown := [comm for comm in comms if comm not in COMMS]:
        raise Failure(f'no arrangement "{unknown[0]}" (known: {", ".join(COMMS)}). '
                      "Choose among them.")
    if not (options.resume or options.gather or options.scenario):
        raise Failure("no scenario given (nothing to run). Give --scenario FILE, or --gather.")
    failed = []
    if options.resume:
        failed = finish(options)
    elif not options.gather:
        failed = begin(options)
    if options.dry_run:
        return 0
    if gather(options.out).empty:
        raise Failure(f"no finished record in {options.out}. Run the sweep first.",
                      RUN_FAILED if failed else 2)
    print(Path(options.out) / "sweep.csv")
    if failed:
        raise Failure(f"{len(failed)} points failed: {', '.join(failed)}. Run the same command "
                      "again to repeat them alone.", RUN_FAILED)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "sweep"))
