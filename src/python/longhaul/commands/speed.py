"""Times what benchmarks/speed.toml lists, and prints each number beside what is wanted and what is
kept. What is slower than the kept number by more than a quarter is named; it is no test."""

import argparse
import csv
import json
import os
import platform
import pty
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from statistics import median

from longhaul.errors import BAD_INPUT, RUN_FAILED, Failure, guarded, result_name
from longhaul.running import tools

LIST = tools.ROOT / "benchmarks" / "speed.toml"
KEPT = tools.ROOT / "results" / "speed.csv"
SO_FAR = b" so far"  # of the line that a search shows its best in
SLOWER = 1.25  # by which a median is named: those of two quiet runs are nearer
KEYS = {"name", "command", "counter", "at_least", "at_most", "kept"}
MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
UNITS = {"cpu": "ms", "wall": "ms", "first_answer": "ms", "memory": "MiB", "bytes/op": "bytes", "bytes/operator": "bytes",
         "mean_ns": "ns", "p99_ns": "ns", "ns_a_bubble": "ns"}
COLUMNS = ("number", "counter", "median", "least", "most", "n", "at_least", "at_most", "command",
           "commit", "load_average", "load_average_during", "processor")


def listed(path=LIST):
    """The numbers of a list, checked."""
    try:
        numbers = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("number", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Failure(f"{path}: {error}. It lists [[number]] tables.") from error
    for number in numbers:
        missing = {"name", "command", "counter"} - set(number)
        if missing or set(number) - KEYS:
            raise Failure(f"{path}: {number.get('name', 'a number')}: "
                          f"{', '.join(sorted(missing or set(number) - KEYS))} is "
                          f"{'missing' if missing else 'unknown'}. Known: {', '.join(sorted(KEYS))}.")
    twice = [name for name, count in Counter(each["name"] for each in numbers).items() if count > 1]
    if twice:
        raise Failure(f"{path}: {twice[0]} stands there twice. Names are of one number.")
    return numbers


def is_benchmark(command):
    return command.startswith("bench_")


def of_benchmark(text, command):
    """One dict of counters for each repetition; `cpu` in ms."""
    samples, found = [], json.loads(text)["benchmarks"]
    names = {one["run_name"] for one in found}
    if len(names) != 1:
        raise Failure(f"{command}: it runs {len(names)} benchmarks, not one.", RUN_FAILED)
    for one in found:
        if one.get("error_occurred"):
            raise Failure(f"{command}: {one.get('error_message', 'it failed')}.", RUN_FAILED)
        if one.get("run_type") == "aggregate":
            continue
        counters = {name: value for name, value in one.items() if isinstance(value, (int, float))}
        samples.append({**counters, "cpu": one["cpu_time"] * MS[one["time_unit"]]})
    return samples


def first_answer(terminal, begin):
    """ms until a search shows its best so far on a terminal; read to its end. None: it never does."""
    shown, first = b"", None
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # no one writes to it any longer
            return first
        if not piece:
            return first
        shown = shown[-len(SO_FAR):] + piece
        if first is None and SO_FAR in shown:
            first = 1e3 * (time.monotonic() - begin)


def whole_command(words):
    """cpu (user and system, ms), memory (MiB) and wall (ms) of a program that is run once; of advice
    also first_answer (ms)."""
    searches, begin = words[1:2] == ["advise"], time.monotonic()
    ours, theirs = pty.openpty() if searches else (None, None)
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=theirs)
    first = None
    if searches:
        os.close(theirs)
        first = first_answer(ours, begin)
        os.close(ours)
    _, status, used = os.wait4(process.pid, 0)
    wall = 1e3 * (time.monotonic() - begin)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failure(f"{shlex.join(words)} ended with {process.returncode}.",
                      BAD_INPUT if process.returncode == BAD_INPUT else RUN_FAILED)
    counters = {"cpu": 1e3 * (used.ru_utime + used.ru_stime), "memory": used.ru_maxrss / 1024,
                "wall": wall}
    return counters if first is None else {**counters, "first_answer": first}


def time_command(command, repetitions):
    """(counters of each repetition, load before, largest load after one)."""
    words = shlex.split(command)
    words[0] = str(tools.binary(words[0]))
    load, during = os.getloadavg()[0], 0.0
    samples = []
    if is_benchmark(command):
        samples = of_benchmark(tools.run([*words, "--benchmark_format=json",
                                          f"--benchmark_repetitions={repetitions}"]), command)
        during = os.getloadavg()[0]
    else:
        for _ in range(repetitions):
            samples.append(whole_command(words))
            during = max(during, os.getloadavg()[0])
    return samples, load, during


def processor():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return found[1].strip() if found else platform.machine()


def rows_of(numbers, repetitions):
    """A row for each number; a command is run once for all of its numbers."""
    measured, commit, on = {}, tools.program_commit(), processor()
    for number in numbers:
        command = number["command"]
        if command not in measured:
            tools.say(command)
            measured[command] = time_command(command, repetitions)
        samples, load, during = measured[command]
        if number["counter"] not in samples[0]:
            raise Failure(f"{LIST.name}: {number['name']}: {command} has no {number['counter']}. "
                          f"It has {', '.join(sorted(samples[0]))}.", RUN_FAILED)
        values = sorted(one[number["counter"]] for one in samples)
        yield {"number": number["name"], "counter": number["counter"], "median": median(values),
               "least": values[0], "most": values[-1], "n": len(values),
               "at_least": number.get("at_least", ""), "at_most": number.get("at_most", ""),
               "command": command, "commit": commit, "load_average": round(load, 2),
               "load_average_during": round(during, 2), "processor": on}


def is_rate(row):
    """Whether more is better."""
    return row["counter"].endswith("/s")


def slower(row, kept):
    """How many times as slow as the kept one; above 1: slower."""
    now, then = float(row["median"]), float(kept["median"])
    return then / now if is_rate(row) else now / then


def is_met(row):
    """True or False, None: nothing is wanted."""
    if row["at_least"] != "":
        return float(row["median"]) >= float(row["at_least"])
    return float(row["median"]) <= float(row["at_most"]) if row["at_most"] != "" else None


def shown(value):
    """Four digits at most."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"


def kept_rows(path):
    if not Path(path).is_file():
        return {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        return {row["number"]: row for row in csv.DictReader(file)}


def line_of(row, kept):
    wanted = next((f"{words} {shown(float(row[key]))}"
                   for key, words in (("at_least", "at least"), ("at_most", "at most"))
                   if row[key] != ""), "")
    then = kept.get(row["number"])
    return (f"{row['number']:<42}{shown(float(row['median'])):>9} {row['counter']:<21}"
            f"{wanted:<17}{ {True: 'met', False: 'not met', None: ''}[is_met(row)]:<9}"
            f"{f'{slower(row, then):.2f} of the kept time' if then else ''}").rstrip()


def report(rows, kept):
    """Lines: every number, what is not met, what became slower."""
    lines = [line_of(row, kept) for row in rows]
    missed = [row["number"] for row in rows if is_met(row) is False]
    if missed:
        lines += ["", f"Not met: {'; '.join(missed)}."]
    others = {kept[row["number"]]["processor"] for row in rows if row["number"] in kept}
    if others := others - {rows[0]["processor"]}:
        lines += ["", f"The kept numbers are of another processor ({', '.join(sorted(others))})."]
    became = [f"{row['number']} ({slower(row, kept[row['number']]):.2f} times)"
              for row in rows if row["number"] in kept and slower(row, kept[row["number"]]) > SLOWER]
    if kept:
        lines += ["", f"Slower than kept: {'; '.join(became) or 'nothing'}."]
    return lines


def table(rows):
    """Markdown, as docs/performance.md has it of the kept numbers."""
    lines = ["| what | median | least to most | wanted | |", "|---|---|---|---|---|"]
    for row in rows:
        unit = row["counter"].removeprefix("earliest_")
        wanted = next((f"{words} {shown(float(row[key]))}"
                       for key, words in (("at_least", "at least"), ("at_most", "at most"))
                       if row[key] != ""), "")
        met = {True: "met", False: "**not met**", None: ""}[is_met(row)]
        lines.append(f"| {row['number']} | {shown(float(row['median']))} {UNITS.get(unit, unit)} | "
                     f"{shown(float(row['least']))} to {shown(float(row['most']))} | {wanted} | {met} |")
    return "\n".join(lines)


def write(path, rows):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/speed", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="numbers whose name has it")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N",
                        help="of each number (default: %(default)s)")
    parser.add_argument("--against", type=Path, default=KEPT, metavar="FILE",
                        help="the kept numbers (default: results/speed.csv)")
    parser.add_argument("--out", type=result_name, metavar="FILE", help="write a table (.csv)")
    parser.add_argument("--markdown", action="store_true",
                        help="time nothing: print the kept numbers as docs/performance.md has them")
    options = parser.parse_args(arguments)
    if not 1 <= options.repetitions <= 1000:
        raise Failure(f"--repetitions {options.repetitions} is outside of 1 to 1000. Give 5.")
    numbers = [one for one in listed() if options.pattern in one["name"]]
    if not numbers:
        raise Failure(f'no number has "{options.pattern}" in its name. Known: '
                      f"{'; '.join(one['name'] for one in listed())}.")
    if options.against != KEPT and not options.against.is_file():
        raise Failure(f"--against: no file {options.against}.")
    kept = kept_rows(options.against)
    if options.markdown:
        print(table(list(kept.values())))
        return 0
    rows = list(rows_of(numbers, options.repetitions))
    print("\n".join(report(rows, kept)))
    if options.out:
        write(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "speed"))
