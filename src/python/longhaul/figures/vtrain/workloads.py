"""Jobs of vTrain's section V-B from a trace of arrivals that the reader names (--trace FILE: the
columns `cluster` and `submit_s` of microsoft/elasticflow-traces), and who gets GPUs when.

What the paper leaves open is set here: N consecutive arrivals of one cluster, rescaled to a window
of 400 hours (its "400 hours of wall clock training time"; --window); models of table II with equal
chances; iterations so that a job takes 4 to 40 hours (--hours) on 128 GPUs by the baseline, evenly
in the logarithm; that time is the `duration` of a deadline, arrival + lambda x duration, lambda even in 0.5 to 1.5."""

import csv
import json
import math
import random
import tempfile
from collections import defaultdict
from pathlib import Path

from longhaul.errors import Failure
from longhaul.running import tools

MODELS = (("18.4b", 1024), ("39.1b", 1536), ("81.2b", 1792))
GPUS, UNIT = 1024, 128
WINDOW_HOURS = 400
HOURS = (4, 40)
TABLES = ("baseline", "best")


def add_arguments(parser):
    parser.add_argument("--trace", help="arrivals (.csv): columns cluster and submit_s")
    parser.add_argument("--window", type=positive, default=WINDOW_HOURS,
                        help=f"hours that the arrivals span (default: {WINDOW_HOURS})")
    parser.add_argument("--hours", type=positive, nargs=2, default=HOURS, metavar=("LOW", "HIGH"),
                        help="of a job on 128 GPUs by the baseline (default: 4 40)")
    parser.add_argument("--simulate", action="store_true", help="always so")


def positive(text):
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(text)
    return value


def submission(path, number, text):
    """Seconds, of a line of the table."""
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise Failure(f'{path}:{number}: submit_s is "{text}" (seconds are a number). Correct it.')
    return seconds


def arrivals(path):
    """{cluster: its submissions, ascending}."""
    if not path:
        raise Failure("vtrain: no arrivals (they are not part of the project). Name them: "
                      "--trace itp_jobs.csv, from microsoft/elasticflow-traces.")
    found = defaultdict(list)
    try:
        with open(path, encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                found[row["cluster"]].append(submission(path, number, row["submit_s"]))
    except KeyError as error:
        raise Failure(f"{path}: there is no column {error} (arrivals have cluster and submit_s). "
                      "Name such a table.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Failure(f"{path}: it cannot be read ({error}). Name a table of arrivals.") from error
    if not found:
        raise Failure(f"{path}: there are no arrivals in it. Name another table.")
    return {name: sorted(times) for name, times in sorted(found.items())}


class Tables:
    """The rates of both kinds of plans, made once."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.files = {how: self.directory / f"{how}.csv" for how in TABLES}
        jobs = self.directory / "models.csv"
        write(jobs, [(str(i), 0, model, batch, 1, "") for i, (model, batch) in enumerate(MODELS)])
        for how, file in self.files.items():
            tools.run([tools.binary("longhaul"), "cluster", jobs, "--gpus", GPUS, "--plans", how,
                       "--no-deadlines", "--rates-out", file, "--json"])
        self.rates = {how: self.read(file) for how, file in self.files.items()}

    @staticmethod
    def read(path):
        found = defaultdict(dict)
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                found[row["model"]][int(row["gpus"])] = float(row["iterations_per_second"])
        return found

    def largest_ratio(self):
        """Of best over baseline, on any number of GPUs that both have."""
        return max(self.rates["best"][model][gpus] / rate
                   for model, rates in self.rates["baseline"].items()
                   for gpus, rate in rates.items())

    def mean_ratio(self):
        ratios = [self.rates["best"][model][gpus] / rate
                  for model, rates in self.rates["baseline"].items()
                  for gpus, rate in rates.items()]
        return math.exp(sum(map(math.log, ratios)) / len(ratios))

    def play(self, jobs, how, *options):
        words = [tools.binary("longhaul"), "cluster", jobs, "--gpus", GPUS, "--throughput",
                 self.files[how], "--json", *options]
        return json.loads(tools.run(words))


def write(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "submit_s", "model", "global_batch", "iterations", "deadline_s"])
        writer.writerows(rows)


def draw_jobs(trace, tables, count, seed, together=False, window=WINDOW_HOURS, hours=HOURS):
    """Rows of a list of jobs; `window` in hours."""
    chance = random.Random(seed)
    clusters = [name for name, times in trace.items() if len(times) >= count]
    if not clusters:
        raise Failure(f"vtrain: no cluster of the trace has {count} arrivals. Name a longer one.")
    times = trace[chance.choice(clusters)]
    first = chance.randrange(len(times) - count + 1)
    taken = times[first:first + count]
    span = max(taken[-1] - taken[0], 1)
    low, high = map(math.log, sorted(hours))
    rows = []
    for number, time in enumerate(taken):
        submit = 0 if together else (time - taken[0]) / span * window * 3600
        model, batch = chance.choice(MODELS)
        length = math.exp(chance.uniform(low, high))
        rate = tables.rates["baseline"][model][UNIT]
        iterations = max(1, round(length * 3600 * rate))
        deadline = submit + chance.uniform(0.5, 1.5) * iterations / rate
        rows.append((f"job-{number}", f"{submit:.3f}", model, batch, iterations,
                     f"{deadline:.3f}"))
    return rows


def played(options, counts, seeds, *settings, together=False):
    """A row for each trace and kind of plans, and the tables."""
    trace = arrivals(options.trace)
    rows, seconds = [], 0.0
    with tempfile.TemporaryDirectory() as directory:
        tables = Tables(directory)
        for count in counts:
            for seed in seeds:
                jobs = Path(directory) / f"{count}-{seed}.csv"
                write(jobs, draw_jobs(trace, tables, count, seed, together, options.window,
                                      options.hours))
                for how in TABLES:
                    answer = tables.play(jobs, how, *settings)
                    seconds += answer["seconds"]
                    rows.append({"jobs": count, "seed": seed, "plans": how,
                                 "deadline_ratio": answer["deadline_ratio"],
                                 "mean_jct_s": answer["mean_jct_s"],
                                 "makespan_s": answer["makespan_s"],
                                 "bound_deadlines": answer["bound"]["deadlines"],
                                 "bound_makespan_s": answer["bound"]["makespan_s"]})
        tools.say(f"{len(rows)} traces and tables played in {seconds:.2f} s")
        return rows, tables
