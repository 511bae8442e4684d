"""The state that a sweep keeps beside its results, so that it can be finished later: its own
arguments, and for each point the full input that its result stands for."""

import argparse
import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
from pathlib import Path

from longhaul.errors import Failure
from longhaul.records import is_finished, read_record
from longhaul.running import tools
from longhaul.scenario_text import without_overrides

SWEEP_FILE = "sweep.json"
INPUT_SUFFIX = ".input.json"
# Runs that bench_pipeline does not go on with.
BEGUN_ANEW = ("--adaptive", "--change", "--trace")


def part_of(path):
    """Where a file is written before it gets its name: no other process writes there."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


def write_whole(path, content):
    """Under its name there is never half a file."""
    part = part_of(path)
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)


def commit_of(program):
    """The commit that a program was built from, as its --version says."""
    said = tools.run([program, "--version"])
    match = re.search(r"\(([^()]+)\)\s*$", said.strip())
    return match[1] if match else said.strip()


def input_of(command, scenario, commit):
    """All that the result of a point depends on. Where programs and results lie is left out."""
    words = list(command)
    if "--out" in words:
        at = words.index("--out")
        del words[at:at + 2]
    words = [Path(word).name if word.endswith("/bench_pipeline") else word for word in words]
    text = Path(scenario).read_text()
    wanted = {"command": words, "scenario": text, "commit": commit}
    if files := files_of(words, text, Path(scenario).parent):
        wanted["files"] = files
    return wanted


def files_of(words, text, beside):
    """Digests of the files that a scenario and a command name (weather of links, regions,
    schedules), which may change while their names stay."""
    names = {(beside, name) for name in re.findall(r"""["']([^"'\n]+\.csv)["']""", text)}
    for name in (part for word in words for part in re.split("[=,]", word)):
        if name.strip("\"'").endswith(".csv"):  # a scenario's lies beside it, schedules at the root
            names |= {(folder, name.strip("\"'")) for folder in (beside, tools.ROOT)}
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for folder, name in sorted(names) if (folder / name).is_file()}


def input_file(directory):
    return directory.with_name(directory.name + INPUT_SUFFIX)


def kept_input(directory):
    """None: a point of an earlier version, or none, or a damaged one, which is said."""
    return object_in(input_file(directory))


def object_in(file):
    """The JSON object of a file; None where there is no file. A damaged one is said, and None too."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        tools.say(f"  {file} is damaged (not a JSON object); its point is done anew")
        return None
    return content


def is_done(directory, wanted):
    """Is the result there, and that of this very input?"""
    if not is_finished(directory) or kept_input(directory) != wanted:
        return False
    return read_record(directory).get("git_commit", "") == wanted["commit"]


def can_go_on(directory, wanted):
    """Has a run of the same input begun that bench_pipeline can finish?"""
    return not is_finished(directory) and kept_input(directory) == wanted \
        and is_whole(directory / "input.json", wanted)


def is_whole(file, wanted):
    """Is the input that a run kept there, and that of this scenario? What bench_pipeline would find
    different must be damage, since the point's own input is the same."""
    kept = object_in(file)
    if kept is None:
        return False
    asked = kept.get("asked", {})
    text = asked.get("scenario", wanted["scenario"]) if isinstance(asked, dict) else None
    begins = without_overrides(wanted["scenario"])  # the run's own --set stands after it
    if not isinstance(text, str) or not text.startswith(begins):
        tools.say(f"  {file} is damaged (not the scenario that its point was begun with); the point is "
                  "done anew")
        return False
    return True


def is_running(directory):
    """Does bench_pipeline hold the lock on its journal there?"""
    try:
        with open(directory / "journal.jsonl", "r+b") as journal:
            fcntl.lockf(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EAGAIN)
    return False


def resumable(words):
    return not any(word.split("=")[0] in BEGUN_ANEW for word in words)


def set_aside(directory, word="unfinished"):
    """Earlier results stay for people who want to look at them."""
    if not directory.exists():
        return
    for number in range(1, 1000):
        target = directory.with_name(f"{directory.name}.{word}-{number}")
        if not target.exists():
            directory.rename(target)
            return
    raise Failure(f"{directory}: too many runs set aside beside it. Remove some.")


def remember(out, arguments):
    """Keeps the options of a sweep; several in one directory are all kept."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / SWEEP_FILE
    sweeps = json.loads(file.read_text())["sweeps"] if file.is_file() else []
    if arguments not in sweeps:
        write_whole(file, {"sweeps": [*sweeps, arguments]})


def checked(arguments):
    """The options of a sweep; a ValueError or KeyError where they are not what add_arguments makes."""
    texts = ("cells", "comm", "schedules", "extra")
    lists = [arguments[name] for name in ("scenario", "set")]
    if not all(isinstance(arguments[name], str) for name in texts) or not all(
            isinstance(words, list) and all(isinstance(word, str) and "\0" not in word
                                            for word in words) for words in lists):
        raise ValueError("not options of a sweep")
    for name, types in (("iterations", int), ("time_scale", (int, float))):
        if arguments[name] is not None and not isinstance(arguments[name], types):
            raise ValueError("not options of a sweep")
    if "\0" in "".join(arguments[name] for name in texts):
        raise ValueError("not options of a sweep")
    shlex.split(arguments["extra"])
    return argparse.Namespace(**arguments)


def remembered(out):
    """The arguments of each sweep in a directory."""
    file = Path(out) / SWEEP_FILE
    try:
        return [checked(arguments) for arguments in json.loads(file.read_text())["sweeps"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Failure(f"no sweep to resume in {out} ({file.name} is missing or damaged). Name the "
                      "--out of a sweep.") from error
