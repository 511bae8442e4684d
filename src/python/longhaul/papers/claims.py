"""Verdicts on a paper's claims, from the numbers of a run.

python -m longhaul.papers.claims DIR [PAPER] gathers the *-verdicts.csv of DIR, or those of one
paper (atlas, crosspipe), into one table for a document."""

import csv
import sys
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from longhaul.errors import Failure
from longhaul.running import tools

HOLDS, LARGER, PARTLY, FAILS, NOT_JUDGED = VERDICTS = (
    "holds here", "larger here", "holds partly", "does not hold", "not judged")
FIELDS = ["id", "section", "claim", "verdict", "theirs", "ours", "why"]
WIDTH = 100


@dataclass(frozen=True)
class Verdict:
    """A figure's judgement of one claim. `ours` and `why` name the numbers it comes from."""

    id: str
    section: str
    claim: str
    verdict: str
    theirs: str
    ours: str
    why: str


def published():
    """{id: row} of results/papers/*-claims.csv."""
    found = {}
    for path in sorted((tools.ROOT / "results" / "papers").glob("*-claims.csv")):
        with path.open(encoding="utf-8") as file:
            found |= {row["id"]: row for row in csv.DictReader(file)}
    return found


def value(claim):
    """The number of a claim."""
    return float(published()[claim]["value"])


def values(claim):
    """The numbers of a claim that has several."""
    return [float(part) for part in published()[claim]["value"].split(";")]


def cell(claim):
    """{column: value} of the cell that a claim names, as text; empty where it names none."""
    pairs = filter(None, published()[claim]["cell"].split("; "))
    return dict(pair.split("=", 1) for pair in pairs)


def at_cell(claim, table):
    """The rows of a figure's table that lie in the claim's cell."""
    for column, value in cell(claim).items():
        kind = table[column].dtype.kind
        table = table[table[column] == (float(value) if kind in "if" else value)]
    return table


def judge(claim, verdict, ours, why=""):
    """`verdict`: one of VERDICTS, as the functions below compute it."""
    if verdict not in VERDICTS:
        raise ValueError(f"{claim}: no verdict {verdict!r}")
    row = published()[claim]
    theirs = row["value"].replace(";", ", ") or "as claimed"
    return Verdict(claim, row["section"], row["claim"], verdict, theirs, ours, why)


def by_count(agree, total):
    """All agree: holds; at least half: partly."""
    if agree == total and total:
        return HOLDS
    return PARTLY if total and 2 * agree >= total else FAILS


def mostly(agree, total):
    """For claims that something is so generally: two thirds hold, one third partly."""
    return HOLDS if 3 * agree >= 2 * total > 0 else PARTLY if 3 * agree >= total > 0 else FAILS


def within(ours, theirs, near=0.05, far=0.25):
    """By the relative difference: `near` holds, `far` holds partly."""
    off = abs(ours / theirs - 1)
    return HOLDS if off <= near else PARTLY if off <= far else FAILS


def at_least(ours, theirs, near=0.05, far=0.5, over=0.25):
    """A gain: as `within`, where somewhat more than the paper's holds too; one more than `over`
    above it is no agreement either."""
    if ours > theirs * (1 + over):
        return LARGER
    return HOLDS if ours >= theirs * (1 - near) else PARTLY if ours >= theirs * far else FAILS


def over_inputs(found, judge_one):
    """For inputs that the paper leaves open: `judge_one` of each value. All the same: that one;
    otherwise partly."""
    said = {judge_one(value) for value in found}
    return said.pop() if len(said) == 1 else PARTLY


def spread(found, form=".2f", unit=""):
    """"1.20 to 1.31", or one number where all print the same."""
    ends = [f"{end:{form}}" for end in (min(found), max(found))]
    return " to ".join(dict.fromkeys(ends)) + unit


def table(verdicts, origin=()):
    """`origin`: {column: text} of the runs that were judged, likewise for all (provenance.origin)."""
    rows = pd.DataFrame([asdict(verdict) for verdict in verdicts], columns=FIELDS)
    return rows.assign(**dict(origin))


def text(verdicts):
    """A paragraph a verdict, for people."""
    lines = []
    for one in verdicts:
        place = f"section {one.section}" if one.section[0].isdigit() else one.section
        lines.append(f"{one.verdict}: {one.claim} ({place})")
        detail = f"ours {one.ours}; theirs {one.theirs}" + (f". {one.why}" if one.why else "")
        lines += textwrap.wrap(detail, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


PAPERS = {"crosspipe": "CrossPipe", "atlas": "Atlas", "centauri": "Centauri", "vtrain": "vTrain",
          "bubbletea": "BubbleTea", "stella": "StellaTrain"}
LEAST_FAVOURABLE = (FAILS, PARTLY, LARGER, HOLDS, NOT_JUDGED)


def summary(directory):
    """Markdown: how many claims of each paper hold, by the least favourable of the verdicts that a
    claim has in *-verdicts.csv; those of ranks come before simulated ones."""
    kept = {}  # {claim: [(is of ranks, verdict)]}
    for file in sorted(Path(directory).glob("*-verdicts.csv")):
        of_ranks = file.name.endswith("-measured-verdicts.csv")
        for row in pd.read_csv(file, dtype=str, keep_default_na=False).itertuples():
            kept.setdefault(row.id, []).append((of_ranks, row.verdict))
    heads = ["paper", "claims", *VERDICTS, "without a kept verdict", "judged on ranks"]
    rows = [[name, *counts_of(paper, kept)] for paper, name in PAPERS.items()]
    rows.append(["all", *(sum(column) for column in zip(*(row[1:] for row in rows)))])
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines)


def counts_of(paper, kept):
    """Claims, those of each verdict, without one, and judged on ranks."""
    path = tools.ROOT / "results" / "papers" / f"{paper}-claims.csv"
    with path.open(encoding="utf-8") as file:
        claims = [row["id"] for row in csv.DictReader(file)]
    found = [judged for claim in claims if (judged := verdict_of(kept.get(claim, [])))]
    counts = [sum(verdict == name for _, verdict in found) for name in VERDICTS]
    return [len(claims), *counts, len(claims) - len(found), sum(of_ranks for of_ranks, _ in found)]


def verdict_of(verdicts):
    """(is of ranks, verdict) of the least favourable; None where there is none."""
    judged = [one for one in verdicts if one[1] != NOT_JUDGED]
    on_ranks = [one for one in judged if one[0]]
    return min(on_ranks or judged or verdicts, key=lambda one: LEAST_FAVOURABLE.index(one[1]),
               default=None)


def gathered(directory, paper=""):
    """Markdown: one line a verdict, in the order of the paper."""
    files = sorted(Path(directory).glob(f"{paper}*-verdicts.csv"))
    if not files:
        raise Failure(f"no {paper}*-verdicts.csv in {directory}. Draw figures with --out "
                      f"{directory}.")
    rows = pd.concat([pd.read_csv(file, dtype=str, keep_default_na=False).assign(
        figure=file.name.removesuffix("-verdicts.csv")) for file in files])
    order = {claim: place for place, claim in enumerate(published())}
    rows = rows.sort_values("id", key=lambda ids: ids.map(order), kind="stable")
    lines = ["| section | claim | theirs | ours | verdict | figure |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join((row.section, row.claim, row.theirs, row.ours, row.verdict,
                                 row.figure)) + " |" for row in rows.itertuples()]
    counts = rows["verdict"].value_counts()
    total = ", ".join(f"{counts.get(name, 0)} {name}" for name in VERDICTS)
    return "\n".join([*lines, "", f"{len(rows)} verdicts: {total}."])


if __name__ == "__main__":
    try:
        print(gathered(*sys.argv[1:3] or ["figures"]))
    except Failure as failure:
        tools.say(f"claims: {failure}")
        sys.exit(failure.code)
