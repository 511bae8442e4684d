"""Numbers of a paper's figures against the ranges in which they are expected.

A figure states its ranges (Figure.expected): in which of its files the number is (`where` selects
rows, `column` and `reduce` make a number of them), the range, its basis, and, where
our model is known to miss it, why (`known`)."""

import csv
import math
import re
from dataclasses import dataclass

import pandas as pd

from longhaul.errors import Failure
from longhaul.papers import claims

# Bases of a range; never the run that is judged.
BASES = {
    "exact": "follows from the model by hand: a count, or a closed form",
    "published": "the paper's number, as it is printed or as near as docs/figures.md wants",
    "calibrated": "the paper's number, near which an input was chosen: a repeat, no validation",
    "bound": "what the model guarantees, whatever the numbers are",
    "goal": "how accurate the emulation is meant to be; stated before it was measured",
}
MATCHED, MISSED, AS_KNOWN, SURPRISE = ("matched", "MISSED", "missed, as documented",
                                       "MATCHED, though documented as missed")
GOOD = (MATCHED, AS_KNOWN)
COLUMNS = ["number", "figure", "value", "low", "high", "basis", "outcome", "why"]


@dataclass(frozen=True)
class Expected:
    """A range for one number."""

    number: str            # for people, unique within a paper
    basis: str             # see BASES
    low: float = -math.inf
    high: float = math.inf
    column: str = ""
    where: str = ""        # "column=value; column>=number"; empty: all rows
    reduce: str = "only"   # see REDUCTIONS
    why: str = ""
    known: str = ""        # why our number is known to lie outside; empty: it lies inside
    kind: str = "simulated"   # or measured
    figure: str = ""       # its name, which the registry fills in
    file: str = ""         # of the figure's directory, without .csv; in a figure's module: the
                           # end that follows the figure's name in it


def of_claim(claim, number, basis, **more):
    """The number that the figure's verdict on a claim leads with."""
    return Expected(number, basis, column="ours", where=f"id={claim}", file="-verdicts", **more)


@dataclass(frozen=True)
class Outcome:
    """One number against its range."""

    number: str
    figure: str
    value: str
    low: str
    high: str
    basis: str
    outcome: str
    why: str


def worst_median(values, groups):
    """The median farthest from 0 among the groups of rows."""
    medians = values.groupby([groups[name] for name in groups.columns]).median()
    return medians.loc[medians.abs().idxmax()]


REDUCTIONS = {"only": None, "min": min, "max": max, "median": lambda v: v.median(),
              "max_abs": lambda v: v.loc[v.abs().idxmax()], "count": len}


def leading_number(cell):
    """"38 (simulated after 38)" is 38; NaN where none leads."""
    match = re.match(r"\s*[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", str(cell))
    return float(match[0]) if match else math.nan


def selected(table, where):
    """Rows that have all of "column=value; column>=number"; numbers compare as such."""
    for pair in filter(None, (part.strip() for part in where.split(";"))):
        column, value = (side.strip() for side in pair.split("=", 1))
        if column.endswith(">"):
            table = table[pd.to_numeric(table[column[:-1]], errors="coerce") >= float(value)]
            continue
        wanted = pd.to_numeric(value, errors="coerce")
        same = table[column].astype(str) == value
        if not math.isnan(wanted):
            same |= pd.to_numeric(table[column], errors="coerce") == wanted
        table = table[same]
    return table


def number_of(expected, directory):
    """The number, out of the figure's CSV; Failure where it is not there."""
    path = directory / f"{expected.file}.csv"
    if not path.is_file():
        raise Failure(f"{expected.number}: no {path}. Draw {expected.figure} again.")
    table = selected(pd.read_csv(path, keep_default_na=False), expected.where)
    values = table[expected.column].map(leading_number).dropna()
    if values.empty:
        raise Failure(f"{expected.number}: {path.name} has no number {expected.column} where "
                      f"{expected.where or 'there are rows'}. Correct the range in "
                      f"{expected.figure}'s module.")
    if expected.reduce.startswith("worst_median:"):
        groups = expected.reduce.split(":", 1)[1].split("+")
        return float(worst_median(values, table.loc[values.index, groups]))
    if expected.reduce == "only":
        if values.nunique() != 1:
            raise Failure(f"{expected.number}: {len(values)} rows of {path.name} where one was "
                          f"meant ({expected.where}). Name more columns.")
        return float(values.iloc[0])
    return float(REDUCTIONS[expected.reduce](values))


def judge(expected, directory):
    value = number_of(expected, directory)
    inside = expected.low <= value <= expected.high
    if inside:
        outcome = SURPRISE if expected.known else MATCHED
    else:
        outcome = AS_KNOWN if expected.known else MISSED
    return Outcome(expected.number, expected.figure, f"{value:.6g}", shown(expected.low),
                   shown(expected.high), expected.basis, outcome, expected.known or expected.why)


def shown(end):
    return "" if math.isinf(end) else f"{end:.6g}"


# Kept verdicts of data that is not part of the project: without it claims are not judged.
JUDGED_WITH_DATA = {"vtrain-fig9", "stella-adaptation"}


def judge_verdicts(figure, directory, reference):
    """Each verdict of a figure against the one that results/ keeps: claims are judged by the rules
    of docs/figures.md, and simulated numbers are the same on every machine."""
    ours = {row["id"]: row for row in rows_of(directory / f"{figure}-verdicts.csv")}
    kept = {row["id"]: row for row in rows_of(reference / f"{figure}-verdicts.csv")}
    outcomes = []
    for claim, row in kept.items():
        now = ours.get(claim, {}).get("verdict", "no verdict")
        same = now == row["verdict"]
        if now == claims.NOT_JUDGED and (row["verdict"] == now or figure in JUDGED_WITH_DATA):
            continue  # no number
        good = MATCHED if row["verdict"] == claims.HOLDS else AS_KNOWN
        outcomes.append(Outcome(f"claim {claim}", figure, now, row["verdict"], row["verdict"],
                                "verdict", good if same else MISSED, row["why"]))
    return outcomes


def rows_of(path):
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def judge_repeat(figure, directory, reference):
    """Every simulated number of a figure against the one that results/ keeps: simulation is
    deterministic, so the range of each is that number."""
    path, kept = directory / f"{figure}.csv", reference / f"{figure}.csv"
    if not kept.is_file():
        return []
    ours, theirs = (pd.read_csv(file, dtype=str, keep_default_na=False) for file in (path, kept))
    columns = [name for name in theirs.columns
               if name in ours.columns and name not in ("command", "commit")]
    if len(ours) != len(theirs):
        return [Outcome("all rows again", figure, str(len(ours)), str(len(theirs)),
                        str(len(theirs)), "repeat", MISSED, "Another number of rows.")]
    pairs = zip(ours[columns].to_numpy().ravel(), theirs[columns].to_numpy().ravel())
    differ = sum(not same_cell(a, b) for a, b in pairs)
    why = f"{len(theirs)} rows of results/reference/{kept.name}: simulation is deterministic."
    return [Outcome("cells that differ", figure, str(differ), "0", "0", "repeat",
                    MISSED if differ else MATCHED, why)]


def same_cell(ours, kept):
    """As text, or as a number to the last decimal that the kept file has."""
    if ours == kept:
        return True
    try:
        off = abs(float(ours) - float(kept))
    except ValueError:
        return False
    decimals = re.fullmatch(r"-?\d+\.(\d+)", kept)
    half_of_last = 0.5 * 10.0 ** -len(decimals[1]) if decimals else 0.0
    return off <= half_of_last * (1 + 1e-6) + 1e-12 * abs(float(kept))


def text(outcomes):
    """For people: a line a number."""
    table = [(one.number, one.figure, one.value,
              one.low if one.low == one.high else f"{one.low or '...'} to {one.high or '...'}",
              one.basis, one.outcome) for one in outcomes]
    heads = ("number", "figure", "ours", "expected", "basis", "outcome")
    widths = [max(len(row[i]) for row in (heads, *table)) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in (heads, ["-" * width for width in widths], *table)]
    counts = "; ".join(f"{sum(one.outcome == name for one in outcomes)} {name}"
                       for name in (MATCHED, AS_KNOWN, MISSED, SURPRISE))
    return "\n".join([*lines, "", f"{len(outcomes)} numbers and claims: {counts}."])
