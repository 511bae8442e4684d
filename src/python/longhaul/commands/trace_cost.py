"""What tracing costs a run: runs bench_pipeline with --trace on and off in turn, and compares what
an iteration took, traced or not, with everything between iterations (wall) and alone (makespan)."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from longhaul.errors import Failure, guarded
from longhaul.running import tools


def of_record(record: dict) -> tuple[float, float]:
    """ns of an iteration: (wall, makespan), the latter as the mean over schedules of medians."""
    schedules = record["schedules"]
    count = sum(len(schedule["samples_ns"]) for schedule in schedules)
    makespans = [schedule["measured_median_ns"] for schedule in schedules]
    return (record["environment"]["iterations_ns"] / count, sum(makespans) / len(makespans))


def run_once(arguments, trace, out):
    tools.run([tools.ROOT / "scripts" / "mpi", "-n", arguments.ranks,
               tools.binary("bench_pipeline"), tools.scenario_file(arguments.scenario),
               "--warmup", "0", "--trace", trace, "--out", out, *arguments.options])
    return of_record(json.loads((out / "record.json").read_text()))


def measure(arguments):
    """Samples by "on" and "off"; each round begins with the other one."""
    samples = {"on": [], "off": []}
    with tempfile.TemporaryDirectory(prefix="longhaul-") as scratch:
        for number in range(arguments.rounds):
            for trace in ("on", "off") if number % 2 == 0 else ("off", "on"):
                samples[trace].append(
                    run_once(arguments, trace, Path(scratch) / f"{number}-{trace}"))
                tools.say(f"trace-cost: round {number + 1} of {arguments.rounds}, {trace}: "
                          f"{samples[trace][-1][0] / 1e6:.3f} ms an iteration")
    return samples


def cost_percent(samples, which):
    """(median of the rounds' costs, least, largest), each of a pair of neighbouring runs."""
    costs = sorted(100 * (on[which] / off[which] - 1)
                   for on, off in zip(samples["on"], samples["off"]))
    return median(costs), costs[0], costs[-1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/trace-cost", description=__doc__,
                                     epilog="Behind -- stand options of bench_pipeline.")
    parser.add_argument("scenario")
    parser.add_argument("-n", "--ranks", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    given = sys.argv[1:] if arguments is None else arguments
    at = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:at])
    options.options = given[at + 1:]
    if options.rounds < 1:
        raise Failure(f"--rounds {options.rounds} is none (a cost needs a pair). Give 7.")
    samples = measure(options)
    for which, name in enumerate(("wall", "makespan")):
        on, off = (median(sample[which] for sample in samples[trace]) for trace in ("on", "off"))
        middle, least, largest = cost_percent(samples, which)
        print(f"{name:9} on {on / 1e6:.3f} ms, off {off / 1e6:.3f} ms an iteration (medians of "
              f"{options.rounds} runs); cost of tracing {middle:+.2f} % "
              f"({least:+.2f} to {largest:+.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "trace-cost"))
