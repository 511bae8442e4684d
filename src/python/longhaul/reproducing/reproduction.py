"""One paper's figures in one directory: what was run, what is left, how its numbers came out."""

import csv
import json
import os
import platform
import shlex
import subprocess
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from longhaul import progress
from longhaul.figures import registry
from longhaul.papers import expected
from longhaul.running import children, tools

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


class Data:
    """Public files that are no part of the project, found by their names below a directory."""

    def __init__(self, directory=None):
        self.directory = Path(directory) if directory else None

    def options_of(self, item):
        """(options for the files that are there, name of the first that is missing or "")."""
        options, missing = [], ""
        for option, name in item.repeat.data:
            found = sorted(self.directory.rglob(name)) if self.directory else []
            if found:
                options += [option, str(found[0].resolve())]
            else:
                missing = missing or name
        return options, missing


class Reproduction:
    """One paper in one directory: PAPER/KIND/ has figures, logs and marks of finished parts."""

    def __init__(self, paper, items, directory, commit, data=None):
        self.paper, self.items, self.commit = paper, items, commit
        self.directory = Path(directory) / paper
        self.data = data or Data()

    def figures(self, kind):
        return self.directory / kind

    def done_file(self, item, kind):
        return self.directory / "done" / f"{item.name}-{kind}.json"

    def command(self, item, kind, options):
        words = ["scripts/figure", item.name, *options, *self.data.options_of(item)[0], "--out",
                 tools.from_root(self.figures(kind))]
        if {"--measure", "--run"} & set(options) and item.repeat.needs != "root":
            words += ["--results", tools.from_root(self.directory / "runs" / item.name)]
        return [str(word) for word in words]

    def why_not(self, item, kind):
        missing = self.data.options_of(item)[1]
        if missing and not item.repeat.without_data:
            return f"needs {missing} (--data DIR)"
        return why_not(item, kind)

    def mark_of(self, item, kind, options):
        """What a finished part left, {}: it is not done. By its whole input: the same command, the
        same program."""
        try:
            done = json.loads(self.done_file(item, kind).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        same = (isinstance(done, dict) and done.get("commit") == self.commit
                and done.get("command") == self.command(item, kind, options))
        return done if same else {}

    def is_done(self, item, kind, options):
        return bool(self.mark_of(item, kind, options))

    def run(self, item, kind, options):
        """True where it ended well. Its mark is written last and whole."""
        log = self.directory / "log" / f"{item.name}-{kind}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        command, load = self.command(item, kind, options), os.getloadavg()[0]
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
            self.mark(item, kind, {"command": command, "commit": self.commit, "kind": kind,
                                   "seconds": round(seconds, 1), "load_average": load})
        return code == 0

    def mark(self, item, kind, done):
        target = self.done_file(item, kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        part.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        part.replace(target)

    def parts(self, kinds):
        """(figure, kind, options) of these kinds, in order."""
        for item in self.items:
            for kind, options in item.repeat.parts():
                if kind in kinds:
                    yield item, kind, options

    def left(self, kinds):
        return [part for part in self.parts(kinds) if not self.is_done(*part)]

    def run_all(self, kinds, room):
        """Names of parts that failed, and of those that there was no room for (see Room)."""
        parts = list(self.parts(kinds))
        failed, later = [], []
        for number, (item, kind, options) in enumerate(parts, 1):
            if self.is_done(item, kind, options):
                continue
            reason = self.why_not(item, kind)
            if not reason and not room.has(item, kind):
                later.append(f"{item.name} ({kind})")
                continue
            tools.say(f"[{self.paper} {number}/{len(parts)}] {item.name}, {kind}"
                      + (f": left out, {reason}" if reason else ""))
            progress.step(f"part {number} of {len(parts)}, {item.name}, {kind}")
            if not reason and not self.run(item, kind, options):
                failed.append(f"{item.name} ({kind})")
        return failed, later

    def done(self, kinds):
        """{(figure, kind): item} of the parts that are done."""
        return {(item.name, kind): item for item, kind, options in self.parts(kinds)
                if self.is_done(item, kind, options)}

    def outcomes(self, kinds):
        """{kind: outcomes} of every number and claim of the parts that are done."""
        done = self.done(kinds)
        found = {kind: [] for kind in kinds}
        for number in registry.expected(self.paper):
            if (number.figure, number.kind) in done:
                found[number.kind].append(expected.judge(number, self.figures(number.kind)))
        kept = tools.ROOT / "results" / "reference"
        for (figure, kind), item in done.items():
            if kind != "simulated":
                continue
            found[kind] += expected.judge_verdicts(figure, self.figures(kind), kept)
            if item.repeat.deterministic:
                found[kind] += expected.judge_repeat(figure, self.figures(kind), kept)
        return found

    def write_summary(self, outcomes, text):
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "summary.txt").write_text(text + "\n", encoding="utf-8")
        with (self.directory / "summary.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, expected.COLUMNS)
            writer.writeheader()
            writer.writerows(asdict(one) for one in outcomes)
        about = {"paper": self.paper, "commit": self.commit, "python": platform.python_version(),
                 "system": platform.platform(), "processors": os.cpu_count()}
        (self.directory / "about.json").write_text(json.dumps(about, indent=1) + "\n",
                                                   encoding="utf-8")


class Room:
    """How long it may still take: a measured part that is planned to end later is not begun."""

    def __init__(self, minutes=None):
        self.end = time.monotonic() + 60 * minutes if minutes else None

    def has(self, item, kind):
        if self.end is None:
            return True
        planned = item.repeat.seconds if kind == "simulated" else 60 * item.repeat.minutes
        return time.monotonic() + planned <= self.end
