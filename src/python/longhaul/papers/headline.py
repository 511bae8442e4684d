"""How far measured iterations are from the prediction, a line for each kind of evidence.

python -m longhaul.papers.headline prints them from the files that results/reference keeps."""

from dataclasses import dataclass

import pandas as pd

from longhaul.running import tools

REFERENCE = tools.ROOT / "results" / "reference"
# Of sleeping blocks over emulated links, from trees without changes; figure 10 shares its runs with
# figure 9, whose tree had some. The column of the difference from the prediction in percent.
SLEEPING = {"table5-cells": "difference_percent", "fig11": "difference_percent",
            "stages16": "difference_percent", "atlas-measured": "difference_percent",
            "atlas-ideas-measured": "difference_percent",
            "crosspipe-table5-measured": "measured_vs_predicted_percent",
            "crosspipe-table6-measured": "measured_vs_predicted_percent"}
REAL = "profile-to-schedule"
TCP = "atlas-tcp"


@dataclass(frozen=True)
class Line:
    """A kind of evidence. `off`: differences of medians from the prediction in percent."""

    ran: str
    off: pd.Series

    @property
    def range(self):
        return f"{self.off.min():+.1f} to {self.off.max():+.1f}%"

    @property
    def text(self):
        return (f"{self.ran}: {self.range}, median {self.off.abs().median():.1f}% "
                f"({len(self.off)} schedules at their points)")


def first_runs(name, column):
    """Differences of a kept file, without rows that are not of the first run of their point."""
    table = pd.read_csv(REFERENCE / f"{name}.csv")
    if "measurement" in table.columns:
        table = table[table["measurement"].isna() | (table["measurement"] == 1)]
    return table[column].dropna()


def over(source):
    """Differences of atlas-tcp: "tcp" or "emulated"."""
    table = pd.read_csv(REFERENCE / f"{TCP}.csv").set_index(["latency_ms", "schedule"])
    predicted = table.loc[table["source"] == "predicted", "median_ns"]
    return 100 * (table.loc[table["source"] == source, "median_ns"] / predicted - 1)


def lines():
    sleeping = [first_runs(name, column) for name, column in SLEEPING.items()]
    return [
        Line("sleeping blocks over emulated links",
             pd.concat([*sleeping, over("emulated")], ignore_index=True)),
        Line("real layers over emulated links", first_runs(REAL, "difference_percent")),
        Line("sleeping blocks over real TCP", over("tcp")),
    ]


if __name__ == "__main__":
    for line in lines():
        print(line.text)
