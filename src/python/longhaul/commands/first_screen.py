"""The five lines that scripts/quickstart ends with: which schedule won, by how much, how true the
prediction was, where the pictures are, and what to do next."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from longhaul.errors import Failure
from longhaul.records import read_record

USUAL = "1f1b"  # what most frameworks run
BUSY_SHARE = 0.2  # of all processors, taken by other programs: measured times are longer for it


def shown(path):
    """As the shell takes it from the current directory."""
    path = Path(path).absolute()
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def seconds(ns):
    return f"{ns / 1e9:.2f} s" if ns >= 1e9 else f"{ns / 1e6:.1f} ms"


def less(winner, other):
    """'5.9% less than zbv', of medians."""
    ratio = winner["measured_median_ns"] / other["measured_median_ns"]
    return f"{100 * (1 - ratio):.1f}% less than {other['schedule']}"


def ranking(record):
    """Schedules that fit their memory budget and computed the right thing, the fastest first."""
    return sorted((entry for entry in record["schedules"]
                   if not entry["over_budget"] and entry["check"] == "ok"),
                  key=lambda entry: entry["measured_median_ns"])


def winner_text(first):
    found = " (found by search)" if first["schedule"] == "best" else ""
    return (f"{first['schedule']}{found}: {seconds(first['measured_median_ns'])} an iteration, "
            f"median of {first['n']}")


def margin_text(ranked):
    first, others = ranked[0], ranked[1:]
    if not others:
        return "no other schedule fits the memory budget"
    following = others[0]
    if max(first["samples_ns"]) < min(following["samples_ns"]):
        parts = [f"{less(first, following)}, the next"]
    else:
        parts = [f"not clear: some iterations of {following['schedule']}, the next, were as short"]
    parts += [less(first, other) for other in others[1:] if other["schedule"] == USUAL]
    return "; ".join(parts)


def prediction_text(record, first, taken):
    """`taken`: see processors_taken."""
    error = abs(first["difference_percent"])
    largest = max(abs(entry["difference_percent"]) for entry in record["schedules"])
    text = (f"within {error:.1f}% of the measured time "
            f"(all {len(record['schedules'])} schedules: {largest:.1f}%)")
    if taken is None or taken < BUSY_SHARE * os.cpu_count():
        return text
    return (f"{text}; the machine was busy: other programs took {taken:.1f} of "
            f"{os.cpu_count()} processors")


def ticks(stat):
    """(busy, all) of the first line of /proc/stat: user nice system idle iowait irq softirq steal.
    None where it is no such line."""
    words = stat.split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    values = [int(word) for word in words[1:9]]
    return sum(values) - values[3] - values[4], sum(values)


def processors_taken(record, before, after):
    """Processors that other programs, and other guests of the same host, took on average between
    two lines of /proc/stat; None where the system has none. The ranks' own time is in the record."""
    begin, end = ticks(before), ticks(after)
    if begin is None or end is None or end[1] <= begin[1]:
        return None
    own = record["environment"]["processor_ns"] * os.sysconf("SC_CLK_TCK") / 1e9
    share = (end[0] - begin[0] - own) / (end[1] - begin[1])
    return max(0.0, share * os.cpu_count())


def pictures_text(directory, winner, log):
    """The page of the run, where there is one. `winner`: the schedule whose picture is named; `log`: where it says
    why one is missing."""
    pictures = sorted(Path(directory).glob("*.png"))
    page = Path(directory) / "report.html"
    if page.is_file():
        text = f"{shown(page)} and {len(pictures)} more beside it"
    elif pictures:
        named = next((path for path in pictures if path.stem == f"timeline-{winner}"), pictures[0])
        text = shown(named)
        if len(pictures) > 1:
            text += f" and {len(pictures) - 1} more beside it"
    else:
        text = "none"
    return f"{text}; not all could be drawn, see {shown(log)}" if log else text


def first_screen(record, options):
    """Five lines; `options` as main parses them."""
    ranked = ranking(record)
    taken = processors_taken(record, *options.stat)
    first = ranked[0] if ranked else None
    lines = {
        "winner": winner_text(first) if first else "none: no schedule fits the memory budget",
        "by": margin_text(ranked) if first else "-",
        "prediction": prediction_text(record, first, taken) if first else "-",
        "pictures": pictures_text(options.figures, first["schedule"] if first else "",
                                  options.failed_log),
        "next": options.next}
    return "\n".join(f"{name + ':':<12}{text}" for name, text in lines.items())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="directory that bench_pipeline wrote")
    parser.add_argument("--figures", required=True, help="directory of the pictures")
    parser.add_argument("--failed-log", default="", help="log of the pictures, where one failed")
    parser.add_argument("--stat", nargs=2, default=("", ""), metavar=("BEFORE", "AFTER"),
                        help="first line of /proc/stat at both ends of the run")
    parser.add_argument("--next", required=True, help="what to do next")
    options = parser.parse_args(arguments)
    try:
        print(first_screen(read_record(options.run), options))
    except Failure as failure:
        print(f"quickstart: {failure}", file=sys.stderr)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
