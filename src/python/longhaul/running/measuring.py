"""How a figure has its points run on ranks: options, the time they may take, and the sweep."""

import shlex
from pathlib import Path

from longhaul.errors import RUN_FAILED, Failure
from longhaul.records import command_of, is_finished, overrides_of, read_record, time_scale_of
from longhaul.running import runs, sweep, tools

ITERATIONS = 8
START_S = 3.0  # of one start of bench_pipeline: launching, searching for best, writing


def add_arguments(parser, directory, minutes):
    """`directory`: where results go unless the user says. `minutes`: of wall time, likewise."""
    parser.add_argument("--simulate", action="store_true",
                        help="predictions alone (default without --measure and --results)")
    parser.add_argument("--measure", "--run", action="store_true",
                        help="run bench_pipeline first; points finished before are not run again")
    parser.add_argument("--results", "--trace", metavar="DIR",
                        help="measurements to show: records of bench_pipeline below DIR; with "
                             f"--measure, where they go (default there: {directory})")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, metavar="N",
                        help="measured iterations of each schedule (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=minutes, metavar="X",
                        help="choose time_scale so that what is left to measure ends in about "
                             "this time (default: %(default)g)")
    parser.add_argument("--time-scale", type=float, metavar="X",
                        help="every duration is multiplied by X while it is played, instead")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario when ranks run it; may be given again")
    parser.add_argument("--extra", default="", metavar="'OPTIONS'",
                        help="further options for bench_pipeline, as one word")
    parser.add_argument("--again", action="store_true",
                        help="with --measure: run every point once more; earlier runs stay, and "
                             "the first of each is shown")
    parser.add_argument("--dry-run", action="store_true",
                        help="print what would be run and how long it takes, and run nothing")
    parser.set_defaults(default_results=directory)


def add_once(parser, directory):
    """The options of a figure whose few runs are each measured once."""
    parser.add_argument("--measure", "--run", action="store_true",
                        help="run it; what is finished is not run again")
    parser.add_argument("--results", metavar="DIR",
                        help=f"what --measure wrote, or where it goes (default: {directory})")
    parser.set_defaults(usual_results=directory)


def directory_of(options):
    """Of such a figure: where its results are, or go."""
    if not options.measure and not options.results:
        raise Failure("nothing to draw (neither --results DIR nor --measure). "
                      "Give the directory that --measure wrote, or --measure.")
    return Path(options.results or options.usual_results)


def run_once(command, target, directory):
    """From the root, unless `target` holds a finished run. Said before; half a run that is there
    is kept beside it."""
    if is_finished(target):
        return
    words = [str(tools.from_root(word) if isinstance(word, Path) else word) for word in command]
    tools.say(shlex.join(words))
    runs.run(["env", "-C", tools.ROOT, *words, "--out", tools.from_root(target)], target, directory)


def results_of(options, points, name):
    """The directory with measurements, after --measure ran `points()`; None where predictions are
    wanted alone. With --dry-run, nothing is there to draw: see `is_dry`."""
    if options.measure or is_dry(options):
        results = Path(options.results or options.default_results)
        run(points(), results, options, name)
        return results
    if options.simulate or not options.results:
        return None
    if not Path(options.results).is_dir():
        raise Failure(f"no directory {options.results}. Give what --measure wrote.")
    return Path(options.results)


def is_dry(options):
    return options.dry_run


def run(points, results, options, name):
    """Prints the estimate first. The points carry their own schedules. A sweep that was
    interrupted and goes on keeps its time_scale: a table has one."""
    earlier = earlier_time_scale(points, results)
    if options.time_scale is None:
        options.time_scale = earlier or time_scale_within(
            points, results, options.iterations, 60 * options.minutes)
    if earlier not in (None, options.time_scale):
        raise Failure(f"{results}: its points were played at time_scale {earlier:g}, not "
                      f"{options.time_scale:g} (a table has one scale). Measure all of them into "
                      "another --results DIR.")
    tools.say(f"{name}: "
              + estimate(points, results, options.iterations, options.time_scale, options.again))
    if failed := sweep.run_points(points, results, options):
        raise Failure(f"{len(failed)} points failed: {', '.join(failed)}. "
                      "Run the same command again to repeat them alone.", RUN_FAILED)


def earlier_time_scale(points, results):
    """Of a finished point; None where there is none."""
    for point in points:
        if is_finished(results / point.name):
            record = read_record(results / point.name)
            return time_scale_of(record, overrides_of(command_of(record)))
    return None


def played_s(points, out, iterations, warmup=1, again=False):
    """(seconds that the points not yet finished play at time_scale 1, how many they are);
    `again`: all points."""
    left = [point for point in points if again or not is_finished(Path(out) / point.name)]
    return sum(point.expected_s for point in left) * (iterations + warmup), len(left)


def time_scale_within(points, out, iterations, seconds):
    """The largest of two digits that should end within `seconds`; at most 1, at least 0.01."""
    played, left = played_s(points, out, iterations)
    room = seconds - START_S * left
    if played <= 0:
        return 1.0
    return min(1.0, max(0.01, int(100 * room / played) / 100))


def estimate(points, out, iterations, time_scale, again=False):
    """For people: the points left to run, and how long they take."""
    played, left = played_s(points, out, iterations, again=again)
    minutes = (played * time_scale + START_S * left) / 60
    return (f"{left} of {len(points)} points left, {iterations} iterations and a warm-up each, "
            f"time_scale {time_scale:g}: about {minutes:.1f} minutes")
