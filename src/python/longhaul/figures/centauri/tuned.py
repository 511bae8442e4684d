"""What users of a framework can tune: prefetch, unit and bucket, at their defaults and at best."""

from dataclasses import replace

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.fig8 import KEYS, grid_of

FIGURE = Figure(
    "overlap-tuned",
    summary="baselines at their defaults and at the best prefetch, unit and bucket",
    shows="baselines at their defaults and at their best settings, 16 cells each",
    repeat=Repeat("centauri", seconds=60))
DEFAULT = "default"
PREFETCHES = ("1", "2", "4", "8", "memory")
BUCKETS = ("10MB", "25MB", "50MB", "100MB", "400MB", "100GB")
#: By scenario: overlaps, and the keys with the values that their users may give.
TUNED = {
    "centauri-fsdp": {"zero3": {"parallel.unit": ("operator", "layer"),
                                "parallel.prefetch": PREFETCHES},
                      "fsdp2": {"parallel.prefetch": PREFETCHES}},
    "centauri-dp": {"ddp": {"parallel.bucket": BUCKETS}, "zero1": {"parallel.bucket": BUCKETS},
                    "zero2": {"parallel.bucket": BUCKETS},
                    "megatron": {"parallel.bucket": BUCKETS}}}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def settings(keys):
    """Each combination of values, as overrides; the defaults first, as none."""
    found = [()]
    for key, values in keys.items():
        found = [(*before, f"{key}={value}") for before in found for value in values]
    return [(), *found]


def draw(_options):
    tables = []
    for scenario, overlaps in TUNED.items():
        for overlap, keys in overlaps.items():
            asked = [replace(cell, overrides=(*cell.overrides, *own),
                             at=(*cell.at, ("setting", " ".join(own) or DEFAULT)))
                     for cell in grid_of(scenario) for own in settings(keys)]
            tables.append(best_of(cells.numbers(asked, (overlap,))).assign(scenario=scenario))
    table = pd.concat(tables, ignore_index=True)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def best_of(table):
    """A row for each cell: the default, and the fastest setting that fits where any does."""
    rows = []
    for at, own in table.groupby(list(KEYS), sort=False):
        first = own[own["setting"] == DEFAULT].iloc[0]
        fits = own[own["fits"]] if own["fits"].any() else own
        best = fits.loc[fits["makespan_ms"].idxmin()]
        rows.append(dict(zip(KEYS, at)) | {
            "overlap": first["overlap"], "default_ms": first["makespan_ms"],
            "default_gap": first["gap"], "default_fits": first["fits"],
            "best_ms": best["makespan_ms"], "best_gap": best["gap"], "best_fits": best["fits"],
            "best_peak_gb": best["peak_gb"], "setting": best["setting"]})
    return pd.DataFrame(rows)


def figure_of(table):
    plt = style.apply()
    names = list(dict.fromkeys(table["overlap"]))
    figure, axes = plt.subplots(figsize=(8.8, 4.4))
    for place, name in enumerate(names):
        own = table[table["overlap"] == name].reset_index()
        for spot, row in own.iterrows():
            x = place + 0.8 * (spot / (len(own) - 1) - 0.5)
            gaps = (100 * row["default_gap"], 100 * row["best_gap"])
            axes.plot((x, x), gaps, color="#b0b0b0", linewidth=0.8, zorder=1)
            axes.plot(x, gaps[0], "o", markersize=4, color="#8a8a8a", zorder=2)
            axes.plot(x, gaps[1], "o", markersize=4, color="#4a148c", zorder=3,
                      fillstyle="full" if row["best_fits"] else "none")
    axes.set_xticks(range(len(names)), names)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, 200)
    axes.set_yticks((0, 1, 3, 10, 30, 100), ("0", "1", "3", "10", "30", "100"))
    axes.set_ylabel("iteration over its bound (%)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("Default (grey) and best setting (purple; open: beyond the memory), cluster A, "
                   "simulated", loc="left", fontweight="bold", fontsize=10)
    figure.text(0.08, 0.02, "In each column 4 models, of each batches of 1, 2, 4 and 8 a GPU; "
                "zero3 and fsdp2: FSDP16, the others: DP16.", fontsize=7.5)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.92, bottom=0.14)
    return figure
