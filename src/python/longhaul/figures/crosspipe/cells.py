"""The cells of CrossPipe's tables 5 and 6: published, predicted and, where ranks have run them,
measured seconds per microbatch."""

from dataclasses import dataclass

import pandas as pd

from longhaul import provenance
from longhaul.drawing import style
from longhaul.figures.crosspipe import tables
from longhaul.records import overrides_of, pipeline_table
from longhaul.running import predict, sweep_points, tools

STATIC = {"1F1B": "1f1b", "ZBH1": "zb-h1", "ZBV": "zbv"}
DYNAMIC = {"CrossUDSub": "cross-ud-sub", "CrossUD": "cross-ud", "CrossWave": "cross-wave"}
BEST = "best"
CASES = {
    1: ("parallel.microbatches=16",),
    2: ("parallel.microbatches=32", "memory.recompute=true"),
    3: ("parallel.microbatches=32", "memory.budget=2"),
}
CELLS = sweep_points.CELL_SETS["table5"]
# Repeatable on any machine. About a second on one core.
SEARCH = ("--search-moves", "1000000")
FIELDS = ["table", "case", "latency_ratio", "transfer_ratio", "schedule", "comm", "published_s",
          "predicted_s", "predicted_vs_published_percent", "measured_min_s", "measured_median_s",
          "measured_vs_predicted_percent", "measured_vs_published_percent", "time_scale", "n"]


@dataclass(frozen=True)
class Cell:
    """One schedule at one place of a table. `schedule`: our name."""

    table: int
    case: int
    latency: float
    transfer: float
    schedule: str
    comm: str = "decoupled"

    @property
    def place(self):
        return (self.table, self.case, self.latency, self.transfer)


def schedules_of(case, comm):
    """Ours, as the paper runs them: static ones cannot use case 3's memory, and the paper's grouped
    arrangement is theirs alone."""
    static = () if case == 3 else tuple(STATIC.values())
    return static if comm == "grouped" else (*static, *DYNAMIC.values(), BEST)


def published(table):
    """{(table, case, latency, transfer, our schedule): seconds}; `best` is the least of a place."""
    found = {}
    names = {**STATIC, **DYNAMIC}
    for row in tables.rows_of(table):
        if row["seconds_per_microbatch"] in ("", "-"):
            continue
        place = (table, int(row["case"]), float(row["latency_ratio"]),
                 float(row["transfer_ratio"]))
        seconds = float(row["seconds_per_microbatch"])
        found[(*place, names[row["schedule"]])] = seconds
        found[(*place, BEST)] = min(seconds, found.get((*place, BEST), seconds))
    return found


def predicted(table, cases=tuple(CASES), search=SEARCH):
    """{Cell: seconds per microbatch}."""
    scenario = tools.scenario_file(tables.TABLES[table])
    places = {}
    for case in cases:
        for latency, transfer in CELLS:
            for comm in sweep_points.COMMS:
                if names := schedules_of(case, comm):
                    overrides = (*CASES[case], *predict.ratios(latency, transfer))
                    extra = tuple(search) if BEST in names else ()
                    places[predict.Question(scenario, names, overrides, comm, extra)] = (
                        table, case, latency, transfer)
    found = {}
    for question, entries in predict.ask_all(places).items():
        for name, entry in entries.items():
            found[Cell(*places[question], name, question.comm)] = (
                entry["per_microbatch_ns"] * 1e-9)
    return found


def case_of(overrides):
    """Of a run's --set; None where it is none of the paper's."""
    for case, wanted in CASES.items():
        pairs = dict(word.split("=") for word in wanted)
        own = {key: overrides[key] for key in overrides
               if key in ("parallel.microbatches", "memory.recompute", "memory.budget")}
        if own == pairs:
            return case
    return None


def measured(table, results):
    """{Cell: row of pipeline_table}, with seconds per microbatch of the scenario."""
    records = pipeline_table(results)
    found = {}
    for row in records.to_dict("records"):
        overrides = overrides_of(row["command"])
        case = case_of(overrides)
        if row["scenario"] != tables.TABLES[table] or case is None:
            continue
        per = float(overrides["parallel.microbatches"]) * row["time_scale"] * 1e9
        for column in ("measured_min", "measured_median", "predicted"):
            row[f"{column}_s"] = row[f"{column}_ns"] / per
        cell = Cell(table, case, row["latency_ratio"], row["transfer_ratio"], row["schedule"],
                    row["comm"])
        found[cell] = row
    return found


def compare(table, cases=tuple(CASES), results=None, search=SEARCH):
    """One row a cell, FIELDS; NaN where the paper or the run has no number."""
    said, ours = published(table), predicted(table, cases, search)
    played = measured(table, results) if results else {}
    rows = []
    for cell, seconds in ours.items():
        theirs = said.get((*cell.place, cell.schedule), float("nan"))
        run = played.get(cell, {})
        least, median = run.get("measured_min_s"), run.get("measured_median_s")
        rows.append(dict(zip(FIELDS, [
            *cell.place, cell.schedule, cell.comm, theirs, round(seconds, 6),
            percent(seconds, theirs), rounded(least), rounded(median),
            percent(median, run.get("predicted_s")), percent(least, theirs),
            run.get("time_scale"), run.get("n")])))
        if results:
            rows[-1] = provenance.add(rows[-1], run)
    return pd.DataFrame(rows)


def percent(ours, theirs):
    if ours is None or theirs is None or theirs != theirs:
        return float("nan")
    return round(100 * (ours / theirs - 1), 2)


def rounded(seconds):
    return float("nan") if seconds is None else round(seconds, 6)


def paper_name(schedule):
    """As the tables spell it."""
    names = {ours: theirs for theirs, ours in {**STATIC, **DYNAMIC}.items()}
    return names.get(schedule, style.schedule_name(schedule))
