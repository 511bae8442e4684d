"""The parts of `scripts/reproduce all` that results/reference has, so that they go on on another
machine: `parts.json` names the commit, command, seconds, load and files of each."""

import json
import shutil

from longhaul.errors import RUN_FAILED, Failure
from longhaul.reproducing import evidence
from longhaul.running import tools

LEDGER = "parts.json"


def ledger(directory):
    """The parts of results/reference, or of a directory that will be: (figure, kind): part."""
    try:
        parts = json.loads((directory / LEDGER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {(part["figure"], part["kind"]): part for part in parts}


def write_ledger(directory, parts):
    rows = [json.dumps(parts[key]) for key in sorted(parts)]
    (directory / LEDGER).write_text("[" + ",\n ".join(rows) + "]\n", encoding="utf-8")


def done_parts(runs):
    """{(figure, kind): (part, {kept name: file})} of what is done."""
    found = {}
    for run in runs:
        for item, kind, options in run.parts(evidence.KINDS):
            mark = run.mark_of(item, kind, options)
            if not mark:
                continue
            files = evidence.files_of(run, item, kind)
            part = {"figure": item.name, "kind": kind, "commit": run.commit,
                    "command": evidence.plain_command(item, options),
                    "seconds": mark["seconds"], "load_average": mark["load_average"],
                    "files": {kept: file.name for kept, file in files.items()}}
            found[item.name, kind] = part, files
    return found


def of_done(runs):
    """The ledger of what is done."""
    return {key: part for key, (part, _) in done_parts(runs).items()}


def keep_done(runs, reference):
    """Parts that are done replace theirs. Those with a row that does not say where it comes from
    are left out and named."""
    parts, refused = ledger(reference), []
    reference.mkdir(parents=True, exist_ok=True)
    for key, (part, files) in done_parts(runs).items():
        problems = [f"{file.name}: {problem}" for file in files.values()
                    for problem in evidence.problems_of(file, part["commit"])]
        if problems:
            refused.append(f"{' '.join(key)} ({'; '.join(problems)})")
            continue
        for name in parts.get(key, {}).get("files", ()):
            (reference / name).unlink(missing_ok=True)
        for name, file in files.items():
            shutil.copyfile(file, reference / name)
        parts[key] = part
    write_ledger(reference, parts)
    tools.say(f"{reference}: {len(parts)} parts")
    if refused:
        raise Failure(f"--keep-done: not kept: {', '.join(refused)}.", RUN_FAILED)


def take_up(runs, reference):
    """What is kept of this program's commit by the same command counts as done."""
    parts, taken = ledger(reference), 0
    for run in runs:
        for item, kind, options in run.left(evidence.KINDS):
            part = parts.get((item.name, kind), {})
            wanted = (run.commit, evidence.plain_command(item, options))
            if (part.get("commit"), part.get("command")) != wanted or not all(
                    (reference / kept).is_file() for kept in part["files"]):
                continue
            run.figures(kind).mkdir(parents=True, exist_ok=True)
            for kept, name in part["files"].items():
                shutil.copyfile(reference / kept, run.figures(kind) / name)
            run.mark(item, kind, {"command": run.command(item, kind, options),
                                  "commit": run.commit, "kind": kind,
                                  "seconds": part["seconds"],
                                  "load_average": part["load_average"]})
            taken += 1
    if taken:
        tools.say(f"{taken} parts are kept of this commit")
