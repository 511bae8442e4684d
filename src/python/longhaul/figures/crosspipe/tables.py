"""Which arrangement explains CrossPipe's static schedules? Simulates the static columns of tables 5
and 6 (cases 1 and 2) under both arrangements and compares each cell with the published number."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from longhaul.errors import Failure, guarded
from longhaul.running import tools

SCHEDULES = {"1F1B": "1f1b", "ZBH1": "zb-h1", "ZBV": "zbv"}
TABLES = {5: "m70-2dc", 6: "m70-4dc"}
ARRANGEMENTS = ("decoupled", "grouped")
CASE_2 = ["--set", "memory.recompute=true", "--set", "parallel.microbatches=32"]
FIELDS = ["table", "case", "latency_ratio", "transfer_ratio", "schedule", "comm",
          "published_s_per_microbatch", "simulated_s_per_microbatch", "deviation_percent"]


def rows_of(table: int) -> list[dict[str, str]]:
    """Every published row of a table."""
    path = tools.ROOT / "results" / "papers" / f"crosspipe-table{table}.csv"
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def published(table: int) -> list[dict[str, str]]:
    """Rows of the static schedules, cases 1 and 2."""
    return [row for row in rows_of(table)
            if row["schedule"] in SCHEDULES and row["case"] in ("1", "2")
            and row["seconds_per_microbatch"] not in ("", "-")]


def simulate(table: int, row: dict[str, str], comm: str) -> dict[str, float]:
    """Seconds per microbatch of each schedule at the delays and in the case of `row`."""
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(TABLES[table]),
               "--schedule", ",".join(SCHEDULES.values()), "--comm", comm, "--json",
               "--set", f"link.latency_ratio={row['latency_ratio']}",
               "--set", f"link.transfer_ratio={row['transfer_ratio']}"]
    if row["case"] == "2":
        command += CASE_2
    record = json.loads(tools.run(command))
    return {entry["schedule"]: entry["per_microbatch_ns"] * 1e-9 for entry in record["schedules"]}


def compare() -> list[dict[str, object]]:
    """One line per published cell and arrangement, with FIELDS."""
    cells, simulated = [], {}
    for table in TABLES:
        for row in published(table):
            for comm in ARRANGEMENTS:
                point = (table, row["case"], row["latency_ratio"], row["transfer_ratio"], comm)
                if point not in simulated:
                    simulated[point] = simulate(table, row, comm)
                said = float(row["seconds_per_microbatch"])
                ours = simulated[point][SCHEDULES[row["schedule"]]]
                values = [*point[:4], row["schedule"], comm, said, f"{ours:.4f}",
                          f"{100 * (ours / said - 1):+.1f}"]
                cells.append(dict(zip(FIELDS, values)))
    return cells


def summary(cells: list[dict[str, object]]) -> str:
    lines = [f"{'arrangement':<12}{'schedule':<10}{'cells':>6}{'mean %':>9}{'largest %':>11}"]
    for comm in ARRANGEMENTS:
        for schedule in SCHEDULES:
            off = [float(str(c["deviation_percent"])) for c in cells
                   if c["comm"] == comm and c["schedule"] == schedule]
            lines.append(f"{comm:<12}{schedule:<10}{len(off):>6}{sum(off) / len(off):>+9.1f}"
                         f"{max(off, key=abs):>+11.1f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare-crosspipe", description=__doc__)
    parser.add_argument("--out", type=Path, help="CSV to write (never overwritten)")
    options = parser.parse_args(arguments)
    if options.out and options.out.exists():
        raise Failure(f"{options.out} exists (a result is never overwritten). "
                      "Choose another --out.")
    cells = compare()
    print("simulated against published seconds per microbatch (CrossPipe tables 5 and 6)")
    print(summary(cells))
    if options.out:
        with options.out.open("x", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(cells)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "compare-crosspipe"))
