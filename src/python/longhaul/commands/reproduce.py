"""Runs everything of a paper into results/<date>-<commit>/ and prints which of its numbers lie in
the range in which they are expected. What is done there already is not run again."""

import argparse
import csv
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from longhaul import progress
from longhaul.errors import RUN_FAILED, Failure, guarded, result_name, suggestion
from longhaul.figures import registry
from longhaul.figures.registry import PAPERS
from longhaul.papers import expected
from longhaul.running import children, tools

ANSWER_IS_NO = 1
PATIENCE_S = 30  # longer than a figure waits for its own ranks


def is_root():
    return os.geteuid() == 0


def why_not(item, kind):
    """Why a part cannot run here; empty: it can."""
    if kind == "measured" and item.repeat.needs == "root" and not is_root():
        return "needs root (network namespaces)"
    if kind == "measured" and item.repeat.needs == "OR-tools" and not find_spec("ortools"):
        return "needs scripts/requirements-solver.txt"
    return ""


def program_commit():
    """Of the program that simulates: "0123456789ab", or with -dirty after it."""
    words = tools.run([tools.binary("longhaul"), "--version"])
    match = re.search(r"\(([^)\s]+)\)", words)
    return match[1] if match else "unknown"


def directory_for(options, commit):
    """--out; otherwise the newest of this commit, so that a run goes on, or a new one."""
    if options.out:
        return Path(options.out)
    results = tools.ROOT / "results"
    short = commit[:9] + ("-dirty" if commit.endswith("-dirty") else "")
    earlier = sorted(path for path in results.glob(f"20??-??-??-{short}") if path.is_dir())
    return earlier[-1] if earlier else results / f"{date.today().isoformat()}-{short}"


class Reproduction:
    """One paper in one directory: PAPER/KIND/ has figures, logs and marks of finished parts."""

    def __init__(self, paper, items, directory, commit):
        self.paper, self.items, self.commit = paper, items, commit
        self.directory = Path(directory) / paper

    def figures(self, kind):
        return self.directory / kind

    def done_file(self, item, kind):
        return self.directory / "done" / f"{item.name}-{kind}.json"

    def command(self, item, kind, options):
        words = ["scripts/figure", item.name, *options, "--out",
                 tools.from_root(self.figures(kind))]
        if {"--measure", "--run"} & set(options) and item.repeat.needs != "root":
            words += ["--results", tools.from_root(self.directory / "runs" / item.name)]
        return [str(word) for word in words]

    def is_done(self, item, kind, options):
        """By its whole input: the same command, the same program."""
        try:
            done = json.loads(self.done_file(item, kind).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return (isinstance(done, dict) and done.get("commit") == self.commit
                and done.get("command") == self.command(item, kind, options))

    def run(self, item, kind, options):
        """True where it ended well. Its mark is written last and whole."""
        log = self.directory / "log" / f"{item.name}-{kind}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = self.command(item, kind, options)
        began = time.monotonic()
        with log.open("w", encoding="utf-8") as output:
            output.write(shlex.join(command) + "\n")
            output.flush()
            code = children.run(command, PATIENCE_S, cwd=tools.ROOT, stdout=output,
                                stderr=subprocess.STDOUT).returncode
        seconds = time.monotonic() - began
        tools.say(f"  {seconds:.0f} s" if code == 0 else
                  f"  failed with {code}; what it said is in {log}")
        if code == 0:
            self.mark(item, kind, {"command": command, "commit": self.commit,
                                   "seconds": round(seconds, 1), "kind": kind})
        return code == 0

    def mark(self, item, kind, done):
        target = self.done_file(item, kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        part.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        part.replace(target)

    def parts(self, simulated_only):
        for item in self.items:
            for kind, options in item.repeat.parts():
                if kind == "simulated" or not simulated_only:
                    yield item, kind, options

    def run_all(self, simulated_only):
        """Names of parts that failed."""
        parts = list(self.parts(simulated_only))
        failed = []
        for number, (item, kind, options) in enumerate(parts, 1):
            if self.is_done(item, kind, options):
                continue
            reason = why_not(item, kind)
            tools.say(f"[{number}/{len(parts)}] {item.name}, {kind}"
                      + (f": left out, {reason}" if reason else ""))
            progress.step(f"part {number} of {len(parts)}, {item.name}, {kind}")
            if not reason and not self.run(item, kind, options):
                failed.append(f"{item.name} ({kind})")
        return failed

    def done(self, simulated_only):
        """{(figure, kind): item} of the parts that are done."""
        return {(item.name, kind): item for item, kind, options in self.parts(simulated_only)
                if self.is_done(item, kind, options)}

    def outcomes(self, simulated_only):
        """Of every number and claim of the parts that are done."""
        done = self.done(simulated_only)
        found = [expected.judge(number, self.figures(number.kind))
                 for number in registry.expected(self.paper)
                 if (number.figure, number.kind) in done]
        kept = tools.ROOT / "results" / "reference"
        for (figure, kind), item in done.items():
            if kind != "simulated":
                continue
            found += expected.judge_verdicts(figure, self.figures(kind), kept)
            if item.repeat.deterministic:
                found += expected.judge_repeat(figure, self.figures(kind), kept)
        return found


def write_summary(reproduction, outcomes, text):
    directory = reproduction.directory
    (directory / "summary.txt").write_text(text + "\n", encoding="utf-8")
    with (directory / "summary.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, expected.COLUMNS)
        writer.writeheader()
        writer.writerows(asdict(one) for one in outcomes)
    about = {"paper": reproduction.paper, "commit": reproduction.commit,
             "python": platform.python_version(), "system": platform.platform(),
             "processors": os.cpu_count()}
    (directory / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def listing(paper, items):
    """The parts, how long each takes, and how many numbers are expected of it."""
    numbers = registry.expected(paper)
    lines = [f"{'part':<34}{'takes':>8}  numbers  needs"]
    for item in items:
        for kind, _ in item.repeat.parts():
            takes = (f"{item.repeat.seconds} s" if kind == "simulated"
                     else f"{item.repeat.minutes:g} min")
            count = sum((one.figure, one.kind) == (item.name, kind) for one in numbers)
            needs = item.repeat.needs if kind == "measured" else ""
            lines.append(f"{item.name + ', ' + kind:<34}{takes:>8}{count:>9}  {needs}".rstrip())
    lines += ["", "Ranges rest on:"]
    lines += [f"  {name:<10} {meaning}" for name, meaning in expected.BASES.items()]
    lines += ["  verdict    the verdict that results/reference keeps, by docs/figures.md",
              "  repeat     the number that results/reference keeps: simulation is deterministic"]
    return "\n".join(lines)


def chosen(paper, only):
    items = PAPERS[paper]
    if not only:
        return items
    names = {item.name: item for item in items}
    short = {name.split("-", 1)[-1]: name for name in names}
    picked = []
    for word in only.split(","):
        name = word if word in names else short.get(word)
        if name is None:
            raise Failure(f'--only: no figure "{word}". {suggestion(word, list(names))}')
        picked.append(names[name])
    return tuple(picked)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce", description=__doc__,
        epilog="Exit codes: 0 all as expected, 1 some number or claim is not, 2 bad input, 3 a "
               "part could not be run. docs/artifact.md walks through it.")
    parser.add_argument("paper", choices=sorted(PAPERS), metavar="PAPER",
                        help=" or ".join(sorted(PAPERS)))
    parser.add_argument("--simulated-only", action="store_true",
                        help="no ranks: a few minutes")
    parser.add_argument("--only", metavar="FIGURE[,FIGURE]", help="table5,fig6: these alone")
    parser.add_argument("--out", metavar="DIR", type=result_name,
                        help="default: results/<date>-<commit>, the newest of this commit")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    items = chosen(options.paper, options.only)
    if options.list:
        print(listing(options.paper, items))
        return 0
    commit = program_commit()
    directory = directory_for(options, commit)
    reproduction = Reproduction(options.paper, items, directory, commit)
    tools.say(f"into {reproduction.directory}")
    failed = reproduction.run_all(options.simulated_only)
    if not failed and not reproduction.done(options.simulated_only):
        raise Failure("nothing could be run here. Name other figures, or leave out "
                      "--simulated-only.", RUN_FAILED)
    outcomes = reproduction.outcomes(options.simulated_only)
    text = expected.text(outcomes)
    reproduction.directory.mkdir(parents=True, exist_ok=True)
    write_summary(reproduction, outcomes, text)
    print(text)
    if failed:
        raise Failure(f"{len(failed)} parts failed: {', '.join(failed)}. Run the same command "
                      "again to repeat them alone.", RUN_FAILED)
    return 0 if all(one.outcome in expected.GOOD for one in outcomes) else ANSWER_IS_NO


if __name__ == "__main__":
    sys.exit(guarded(main, "reproduce"))
