"""Which arrangement explains CrossPipe's static schedules? Simulates the static columns of tables 5
and 6 (cases 1 and 2) under both arrangements and compares each cell with the published number."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from longhaul.errors import Failure, guarded, result_name
from longhaul.figures.crosspipe.tables import FIELDS, compare, summary


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare-crosspipe", description=__doc__)
    parser.add_argument("--out", type=lambda text: Path(result_name(text)), help="CSV to write (never overwritten)")
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
