"""Rows of `longhaul simulate --overlap`: one for each cell of a figure and each overlap."""

import contextlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pandas as pd

from longhaul import progress
from longhaul.running import tools

# Dark to light among the baselines; those that search stand out.
OVERLAPS = {"serial": "#1f1f1f", "ddp": "#5b5b5b", "ooo": "#8a8a8a", "zero1": "#0b5394",
            "zero2": "#3fa7d6", "zero3": "#0b5394", "fsdp2": "#3fa7d6", "zeropp": "#9fcf8f",
            "megatron": "#c9561a", "breadth-first": "#f0b060", "syndicate": "#8c6d5a",
            "coconet": "#8a8a2a", "dist-einsum": "#d8d060", "centauri-rules": "#a000c8",
            "centauri": "#c2185b", "best": "#4a148c"}
OURS = ("centauri-rules", "centauri", "best")
MODELS = ("small", "medium", "big", "large")
TRAFFICS = {"tp": "#9fc5e8", "fsdp": "#0b5394", "dp": "#c9561a", "pp": "#8a8a2a"}


@dataclass(frozen=True)
class Cell:
    """A point of a scenario. `at`: columns of its rows that say which."""

    scenario: str
    overrides: tuple = ()
    schedule: str = "gpipe"
    at: tuple = field(default=())  # of (column, value)
    options: tuple = ()  # of `simulate`, for those that search: --allow, --rules


def add_arguments(parser, overlaps):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--overlaps", metavar="LIST", default=",".join(overlaps),
                        help="rows; default: %(default)s")


def wanted(options):
    """The overlaps of --overlaps."""
    return tuple(options.overlaps.split(","))


_more = [lambda cell: ()]


@contextlib.contextmanager
def with_inputs(of):
    """Cells that are asked for meanwhile have the overrides `of(cell)` too."""
    _more.append(of)
    try:
        yield
    finally:
        _more.pop()


def ask(cell, overlaps):
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(cell.scenario),
               "--schedule", cell.schedule, "--overlap", ",".join(overlaps), "--json",
               "--time-limit", "24h",  # the same picture on any machine
               *cell.options]
    command += tools.set_words((*cell.overrides, *_more[-1](cell)))
    return json.loads(tools.run(command))["schedules"]


def numbers(cells, overlaps):
    """A row for each cell and overlap, times in ms, sizes in GB (10^9 bytes)."""
    rows = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        answers = pool.map(lambda cell: ask(cell, overlaps), cells)
        for count, (cell, entries) in enumerate(zip(cells, answers), 1):
            rows += [row_of(cell, entry) for entry in entries]
            progress.step(f"cell {count} of {len(cells)}")
    return pd.DataFrame(rows)


def row_of(cell, entry):
    ms = 1e-6
    row = dict(cell.at) | {
        "schedule": entry["schedule"], "overlap": entry["overlap"],
        "gradient_sync": entry["gradient_sync"], "makespan_ms": entry["makespan_ns"] * ms,
        "bound_ms": entry["lower_bound_ns"] * ms, "gap": entry["gap"], "alpha": entry["alpha"],
        "speedup_bound": entry["speedup_bound"], "peak_gb": entry["peak_bytes"] * 1e-9,
        "fits": entry["fits"], "grain": entry["grain"],
        "decided": entry.get("decided", "")}
    for kind in TRAFFICS:
        row[f"{kind}_ms"] = entry["communication_ns"][kind] * ms
        row[f"{kind}_exposed_ms"] = entry["exposed_ns"][kind] * ms
    return row


def by_option(cells, options_of, overlaps):
    """numbers() of each cell under each of `options_of`, {name: options}; a column `option`."""
    asked = [replace(cell, options=tuple(options), at=(*cell.at, ("option", name)))
             for cell in cells for name, options in options_of.items()]
    return numbers(asked, overlaps)


def ours(table):
    """The row that verdicts take for Centauri: by simulation, or where that was not asked for by
    the paper's rules; None: neither."""
    return next((one for one in ("centauri", "centauri-rules") if one in set(table["overlap"])),
                None)


def speedups(table, overlap, over, keys):
    """makespan of `over` over that of `overlap`, by cell; of rows that fit alone, where any do."""
    by = table[table["fits"] | ~table["fits"].any()].pivot_table(
        index=list(keys), columns="overlap", values="makespan_ms", sort=False)
    if overlap not in by or over not in by:
        return pd.Series(dtype=float)
    return (by[over] / by[overlap]).dropna()
