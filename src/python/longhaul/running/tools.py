"""Runs Longhaul's own programs for a figure or a sweep."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from longhaul import scenario_text
from longhaul.errors import BAD_INPUT, RUN_FAILED, Failure
from longhaul.running import children

ROOT = Path(__file__).resolve().parents[4]
SCENARIOS = ROOT / "benchmarks" / "scenarios"


def say(text):
    print(text, file=sys.stderr, flush=True)


def from_root(path):
    """As seen from the root of the checkout where it lies inside: records keep command lines, and
    a result should not name directories of one machine."""
    path = Path(path).resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def binary(name):
    """From build/bin, or from the directory that LONGHAUL_BIN names."""
    directory = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build" / "bin"))
    program = directory / name
    if not program.is_file():
        raise Failure(f"no program {program} (not built). Run scripts/build.")
    return program


def program_commit():
    """Of the program that simulates: "0123456789ab", or with -dirty after it."""
    match = re.search(r"\(([^)\s]+)\)", run([binary("longhaul"), "--version"]))
    return match[1] if match else "unknown"


def scenario_file(name_or_path):
    """A path, or the name of a file in benchmarks/scenarios."""
    path = Path(name_or_path)
    for candidate in (path, SCENARIOS / path.name, SCENARIOS / f"{path.name}.toml"):
        if candidate.is_file():
            return candidate.resolve()
    raise Failure(f"no scenario {name_or_path} (no such file, here or in benchmarks/scenarios). "
                  "Give a .toml file.")


def set_words(overrides):
    """The words of `--set` for each of them."""
    return [word for override in overrides for word in ("--set", override)]


def run(command, quiet=True, timeout_s=None):
    """Ends with the program's words where it fails; its exit code passes through if it is one
    of ours (2 bad input, 3 the run failed)."""
    command = [str(word) for word in command]
    try:
        done = start(command, capture_output=quiet, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{shlex.join(command)} did not end within {timeout_s:g} s. "
                      "Give it more time.", RUN_FAILED) from error
    if done.returncode:
        said = (done.stderr or "").strip().splitlines()[-12:] if quiet else []
        raise Failure("\n".join([f"{shlex.join(command)} ended with {done.returncode}.", *said]),
                      BAD_INPUT if done.returncode == BAD_INPUT else RUN_FAILED)
    return done.stdout


def start(command, timeout, **options):
    """Signals are the main thread's; a program that another thread runs ends with its terminal."""
    if threading.current_thread() is threading.main_thread():
        return children.run(command, timeout_s=timeout, **options)
    return subprocess.run(command, timeout=timeout, check=False, stdin=subprocess.DEVNULL, **options)


def read_trace(path):
    """That of longhaul.trace, whose libraries take half a second to load: only where one is read."""
    from longhaul import trace
    read = trace.read_trace(path)
    for note in read.left_out:
        print(f"{path}: {note}", file=sys.stderr)
    return read


def simulate(scenario, schedules, overrides=(), comm="decoupled", extra=()):
    """The predicted timelines of some schedules, as a Trace without a file. `extra`: more options
    of the command."""
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        trace = Path(directory) / "simulated.h5"
        command = [binary("longhaul"), "simulate", scenario, "--schedule", ",".join(schedules),
                   "--comm", comm, "--out", trace, *extra, *set_words(overrides)]
        run(command)
        return read_trace(trace)


def read_run(path):
    """A trace, that of a run's directory, or the finished part of a run that was cut short."""
    directory = Path(path)
    if not (directory / "run.h5").is_file() or (directory / "trace.h5").is_file():
        return read_trace(path)
    with tempfile.TemporaryDirectory(prefix="longhaul-") as temporary:
        merged = Path(temporary) / "trace.h5"
        run([binary("longhaul"), "trace", "merge", directory, "--out", merged])
        return read_trace(merged)


def scenario_name(info):
    """Of a trace's scenario text, or of the file that was given; its creator where there is none."""
    return (scenario_text.name_of(info.get("scenario", ""), str(info.get("command_line", "")))
            or str(info.get("creator", "trace")))
