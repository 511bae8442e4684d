"""What `scripts/reproduce all` made, as results/reference keeps it: each figure's files under the
names that are kept, a page for each paper, and a summary over all."""

import csv
import os
import platform
import re
import shlex
import shutil
from datetime import date
from itertools import chain
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.errors import RUN_FAILED, Failure
from longhaul.figures import registry
from longhaul.papers import claims, expected
from longhaul.running import tools

TITLES = {**claims.PAPERS, registry.OWN: "Figures of no paper"}
KINDS = ("simulated", "measured")


def kept_name(item, kind, name):
    """Of a file of a figure. Measured ones say so where the figure has both kinds."""
    if kind == "simulated" or len(item.repeat.kinds) == 1 or "-measured" in name:
        return name
    return f"{item.name}-measured{name.removeprefix(item.name)}"


def files_of(run, item, kind):
    """{kept name: file} of a figure's part: its stem, or one that goes on after it."""
    found = {}
    for file in sorted(run.figures(kind).glob(f"{item.name}*")):
        if file.suffix in (".png", ".csv") and not another_begins(run, item, file):
            found[kept_name(item, kind, file.name)] = file
    return found


def another_begins(run, item, file):
    """Whether the file is of a figure whose name goes on after this one's: fig1 and fig10."""
    longer = [other.name for other in run.items
              if len(other.name) > len(item.name) and file.name.startswith(other.name)]
    rest = file.name.removeprefix(item.name)
    return bool(longer) or not re.match(r"[-.]", rest)


def plain_command(item, options):
    """That of a part, without directories of one machine."""
    data = (word for option, name in item.repeat.data for word in (option, name))
    return shlex.join(["scripts/figure", item.name, *options, *data])


def write(runs, judged, directory):
    """Fills directory/kept: files and pages of the parts that are done. `judged`: {paper: {kind:
    outcomes}}."""
    kept = Path(directory) / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for run in runs:
        for item, kind, options in run.parts(KINDS):
            if run.is_done(item, kind, options):
                for name, file in files_of(run, item, kind).items():
                    shutil.copyfile(file, kept / name)
    for run in runs:
        (kept / f"{run.paper}.md").write_text(
            page(run, chain(*judged[run.paper].values()), kept), encoding="utf-8")
    (kept / "README.md").write_text(summary(runs, kept), encoding="utf-8")


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line)
            + " |" for line in lines]


def page(run, judged, kept):
    """Each figure of a paper: its picture, theirs beside ours, verdicts with reasons, commands."""
    lines = [f"# {TITLES[run.paper]}: every figure", "",
             f"Written by `scripts/reproduce all`, program of commit {run.commit}. Each measured "
             "row has its own command, commit and load in the CSV.", ""]
    outcomes = {}
    for one in judged:
        outcomes.setdefault(one.figure, []).append(one)
    for item in run.items:
        lines += section(run, item, kept, outcomes.get(item.name, []))
    return "\n".join(lines).rstrip() + "\n"


def section(run, item, kept, outcomes):
    lines = [f"## {item.name}", f"{item.summary[0].upper()}{item.summary[1:]}.", ""]
    for kind, options in item.repeat.parts():
        mark = run.mark_of(item, kind, options)
        if not mark:
            reason = run.why_not(item, kind)
            lines.append(f"- {kind}: not run" + (f", {reason}" if reason else ""))
            continue
        lines.append(f"- {kind}: `{plain_command(item, options)}`, {mark['seconds']:.0f} s"
                     + (f", load {mark['load_average']:.1f} before" if kind == "measured" else ""))
    names = [name for kind in item.repeat.kinds for name in files_of(run, item, kind)
             if (kept / name).is_file()]
    lines += ["", *(f"![{name.removesuffix('.png')}]({name})" for name in names if name.endswith(".png"))]
    verdicts = [(row["section"], row["claim"], row["theirs"], row["ours"], row["verdict"], kind,
                 row["why"]) for kind in item.repeat.kinds for name in files_of(run, item, kind)
                if name.endswith("-verdicts.csv") for row in rows_of(kept / name)]
    if verdicts:
        lines += ["", *table(("section", "claim", "theirs", "ours", "verdict", "kind", "why"),
                             verdicts)]
    numbers = [one for one in outcomes if one.basis in expected.BASES]
    if numbers:
        lines += ["", *table(("number", "ours", "expected", "basis", "outcome", "why"),
                             [(one.number, one.value, f"{one.low or '...'} to {one.high or '...'}",
                               one.basis, one.outcome, one.why) for one in numbers])]
    return [*lines, ""]


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def summary(runs, kept):
    commits = sorted({run.commit for run in runs})
    lines = ["# Evidence made at one commit", "",
             f"`scripts/reproduce all`, program of commit {', '.join(commits)}, "
             f"{date.today().isoformat()}; {os.cpu_count()} processors, {platform.platform()}.", "",
             "## How many claims hold", claims.summary(kept), "", "## Papers",
             *table(("page", "parts", "done", "not run"),
                    [summary_row(run) for run in runs])]
    return "\n".join(lines) + "\n"


def summary_row(run):
    parts = list(run.parts(KINDS))
    left = [f"{item.name} ({kind}{reason_of(run, item, kind)})"
            for item, kind, options in run.left(KINDS)]
    return (f"[{TITLES[run.paper]}]({run.paper}.md)", len(parts), len(parts) - len(left),
            "; ".join(left) or "none")


def reason_of(run, item, kind):
    reason = run.why_not(item, kind)
    return f": {reason}" if reason else ""


def problems_of(file, commit):
    """Why a figure's file is not kept: measured rows that do not say where they come from, or come
    from another commit."""
    if file.suffix != ".csv" or file.name.endswith("-verdicts.csv"):
        return []
    rows = pd.read_csv(file, dtype={"commit": str})  # one may be digits alone
    measured = provenance.is_measured(rows)
    if not measured.any():
        return []
    others = [other for other in rows.loc[measured, "commit"].astype(str).unique()
              if not commit.startswith(other) and not other.startswith(commit)] \
        if "commit" in rows else []
    return provenance.problems(rows) or [f"rows of commit {other}, not {commit}" for other in others[:1]]


def keep(runs, directory):
    """results/reference becomes directory/kept, whole. Refused while a part is missing, or where a
    row does not say where it comes from."""
    left = [f"{item.name} ({kind})" for run in runs for item, kind, _ in run.left(KINDS)]
    if left:
        raise Failure(f"--keep: {len(left)} parts are not done: {', '.join(left)}. What is kept "
                      "is of one commit, whole.", RUN_FAILED)
    if commits := [run.commit for run in runs if not provenance.COMMIT.fullmatch(run.commit)]:
        raise Failure(f"--keep: the program is of commit {commits[0]}. Commit, build, run again.")
    kept = Path(directory) / "kept"
    for file in sorted(kept.glob("*.csv")):
        if problems := problems_of(file, runs[0].commit):
            raise Failure(f"--keep: {file}: {'; '.join(problems)}.")
    reference = tools.ROOT / "results" / "reference"
    newer, older = reference.with_name("reference.new"), reference.with_name("reference.old")
    for left_over in (newer, older):
        shutil.rmtree(left_over, ignore_errors=True)
    shutil.copytree(kept, newer)
    if reference.exists():
        reference.rename(older)
    newer.rename(reference)
    shutil.rmtree(older, ignore_errors=True)
    tools.say(f"{reference}: {len(list(kept.iterdir()))} files of commit {runs[0].commit}")
