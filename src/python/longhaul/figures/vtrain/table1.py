"""vTrain table I: MT-NLG's baseline layouts and the paper's findings, beside its measured times."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import inputs
from longhaul.papers import claims

FIGURE = Figure(
    "vtrain-table1",
    summary="MT-NLG: baseline and found layouts, paper, measured and simulated (table I)",
    shows="MT-NLG: baseline and found layouts, paper, measured and simulated",
    repeat=Repeat("vtrain", seconds=10, simulate=("--simulate",)))
PAPER_S = {(8, 8, 35): 45.40, (8, 10, 35): 37.23, (8, 12, 35): 31.78,
           (8, 12, 21): 48.37, (8, 15, 21): 39.55, (8, 24, 15): 34.61}
PAPER_PERCENT = {(8, 8, 35): 40.03, (8, 10, 35): 39.05, (8, 12, 35): 38.13,
                 (8, 12, 21): 41.75, (8, 15, 21): 40.84, (8, 24, 15): 40.84}
MEASURED_S = {(8, 8, 35): 60.1, (8, 10, 35): 50.2, (8, 12, 35): 44.4}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def draw(options):
    del options
    table = pd.DataFrame([row_of(layout) for layout in PAPER_S])
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def row_of(layout):
    plan = inputs.layout(*layout)
    return {"layout": str(layout), "gpus": plan["gpus_used"], "paper_s": PAPER_S[layout],
            "published_s": MEASURED_S.get(layout), "simulated_s": inputs.seconds(plan),
            "low_s": inputs.seconds(plan, "low_ns"), "high_s": inputs.seconds(plan, "high_ns"),
            "paper_percent": PAPER_PERCENT[layout],
            "simulated_percent": 100 * plan["utilisation"], "days": plan["days"],
            "dollars": plan["dollars"], "memory_gib": plan["memory_bytes"] / 2**30,
            "fits_40gb": bool(plan["memory_bytes"] <= 40e9),
            "fits_80gb": bool(plan["memory_bytes"] <= 80e9)}


def verdicts(table):
    at = table.set_index("layout")
    pairs = list(zip(map(str, inputs.BASELINE), map(str, inputs.FOUND)))
    cheaper = [1 - at.loc[found, "dollars"] / at.loc[base, "dollars"] for base, found in pairs]
    apart = sum(at.loc[base, "low_s"] > at.loc[found, "high_s"] or
                at.loc[found, "low_s"] > at.loc[base, "high_s"] for base, found in pairs)
    longer = at.loc[pairs[2][1], "simulated_s"] / at.loc[pairs[2][0], "simulated_s"] - 1
    off = (table["simulated_s"] / table["paper_s"] - 1).abs()
    why = (f"{apart} of 3 pairs have intervals that do not overlap; memory without ZeRO: "
           f"{claims.spread(table['memory_gib'], '.0f', ' GiB')}, none fits 40 GB.")
    return [
        claims.judge("vtrain-table1-times", claims.by_count(int((off < 0.15).sum()), len(off)),
                     claims.spread(table["simulated_s"], ".2f", " s"),
                     "Of the 60.1, 50.2, 44.4 s that were published of MT-NLG ours are "
                     + claims.spread(at.loc[[b for b, _ in pairs], "simulated_s"]
                                     / pd.Series(MEASURED_S.values(),
                                                 index=[b for b, _ in pairs]), ".2f") + "."),
        claims.judge("vtrain-cheaper-plans",
                     claims.by_count(sum(one > 0 for one in cheaper), len(cheaper)),
                     f"cheaper by {claims.spread([100 * one for one in cheaper], '.1f', '%')}",
                     why),
        claims.judge("vtrain-cheaper-longer",
                     claims.within(100 * longer, claims.value("vtrain-cheaper-longer"), 0.3, 1.0),
                     f"{100 * longer:.1f}% longer on 14% fewer GPUs")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.4, 4.2))
    places = range(len(table))
    axes.bar([x - 0.2 for x in places], table["paper_s"], 0.38, color="#999999",
             label="the paper's prediction")
    errors = [table["simulated_s"] - table["low_s"], table["high_s"] - table["simulated_s"]]
    axes.bar([x + 0.2 for x in places], table["simulated_s"], 0.38, color="#0b5394",
             label="simulated here, 90%", yerr=errors, capsize=3)
    axes.plot(places, table["published_s"], linestyle="", marker="_", markersize=26, color="black",
              label="measured (arXiv 2201.11990)")
    axes.set_xticks(list(places), table["layout"])
    axes.set_ylabel("iteration (s)")
    axes.set_title("MT-NLG, table I", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
