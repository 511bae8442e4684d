"""Verdicts on what a paper claims, from the numbers of a run."""

import csv
import textwrap
from dataclasses import asdict, dataclass

import pandas as pd

from longhaul import tools

HOLDS, PARTLY, FAILS = "holds here", "holds partly", "does not hold"
FIELDS = ["id", "section", "claim", "verdict", "theirs", "ours", "why"]
WIDTH = 100


@dataclass(frozen=True)
class Verdict:
    """What a figure can say about one claim. `ours` and `why` name the numbers it comes from."""

    id: str
    section: str
    claim: str
    verdict: str
    theirs: str
    ours: str
    why: str


def published():
    """{id: row} of results/papers/crosspipe-claims.csv."""
    path = tools.ROOT / "results" / "papers" / "crosspipe-claims.csv"
    with path.open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def value(claim):
    """The number of a claim."""
    return float(published()[claim]["value"])


def judge(claim, verdict, ours, why=""):
    """`verdict`: HOLDS, PARTLY or FAILS, as the functions below compute it."""
    row = published()[claim]
    theirs = row["value"].replace(";", ", ") or "as claimed"
    return Verdict(claim, row["section"], row["claim"], verdict, theirs, ours, why)


def by_count(agree, total):
    """All agree: holds; at least half: partly."""
    if agree == total and total:
        return HOLDS
    return PARTLY if total and 2 * agree >= total else FAILS


def mostly(agree, total):
    """For what is claimed to be so generally: two thirds hold, one third partly."""
    return HOLDS if 3 * agree >= 2 * total > 0 else PARTLY if 3 * agree >= total > 0 else FAILS


def within(ours, theirs, near=0.05, far=0.25):
    """By the relative difference: `near` holds, `far` holds partly."""
    off = abs(ours / theirs - 1)
    return HOLDS if off <= near else PARTLY if off <= far else FAILS


def at_least(ours, theirs, near=0.05, far=0.5):
    """As `within`, where more than the paper's gain holds too."""
    return HOLDS if ours >= theirs * (1 - near) else PARTLY if ours >= theirs * far else FAILS


def table(verdicts):
    return pd.DataFrame([asdict(verdict) for verdict in verdicts], columns=FIELDS)


def text(verdicts):
    """A paragraph a verdict, for people."""
    lines = []
    for one in verdicts:
        place = f"section {one.section}" if one.section[0].isdigit() else one.section
        lines.append(f"{one.verdict}: {one.claim} ({place})")
        detail = f"ours {one.ours}; theirs {one.theirs}" + (f". {one.why}" if one.why else "")
        lines += textwrap.wrap(detail, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
