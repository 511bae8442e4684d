"""StellaTrain figure 10: cost and time of co-training against 8 V100 of a cloud."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "stella-fig10",
    summary="cost and time of 6 RTX and 4 V100 against 8 V100, arithmetic (figure 10)",
    shows="cost and time of co-training against 8 V100, arithmetic",
    repeat=Repeat("stella", seconds=2, simulate=("--simulate",)),
    expected=(
        Expected("cost saved at +40.7% (%)", "exact", low=64.4, high=64.5, column="saved_percent",
                 where="case=FP32 as printed", why="1 - 4/8 / 1.407."),
        Expected("time of FP16 for -45.1% (%)", "exact", low=9.79, high=9.81,
                 column="longer_percent", where="case=FP16 as printed",
                 why="4/8 of the GPUs for (1 - 0.451) / (4/8) of the time.")))
CLOUD, TOGETHER = 8, 4  # V100


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="arithmetic alone (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def case(name, throughput):
    """Co-training with `throughput` times that of 8 V100: the cloud is paid by GPU and time."""
    return {"case": name, "throughput": throughput, "longer_percent": 100 * (1 / throughput - 1),
            "saved_percent": 100 * (1 - TOGETHER / CLOUD / throughput)}


def compute_bound(model, v100=None):
    """Throughput of 6 RTX and 4 V100 over that of 8 V100, no GPU waiting."""
    lab = sum(cluster.throughput(model, gpu)[1] for gpu in cluster.LAB)
    each = v100 or cluster.throughput(model, "v100")[1]
    return (lab + TOGETHER * each) / (CLOUD * each)


def numbers():
    gain = claims.value("stella-cost-throughput")
    saved = claims.value("stella-cost-fp16")
    rows = [case("FP32 as printed", 1 + gain / 100),
            case("FP16 as printed", TOGETHER / CLOUD / (1 - saved / 100))]
    rows += [case(f"{cluster.NAMES[model]} FP32, no GPU waits", compute_bound(model))
             for model in cluster.MODELS]
    return pd.DataFrame(rows)


def needed_v100(model):
    """The images/s of a V100, over those of an RTX 2080 Ti, at which co-training without waiting
    has the throughput that the paper prints."""
    times = 1 + claims.value("stella-cost-throughput") / 100
    lab = sum(cluster.throughput(model, gpu)[1] for gpu in cluster.LAB)
    return lab / (CLOUD * times - TOGETHER) / cluster.throughput(model, "rtx2080ti")[1]


def verdicts(table):
    at = table.set_index("case")
    fp32, fp16 = at.loc["FP32 as printed"], at.loc["FP16 as printed"]
    bound = at[at.index.str.contains("no GPU waits")]
    gains = [100 * (one - 1) for one in bound["throughput"]]
    needed = [needed_v100(model) for model in cluster.MODELS]

    def exact(claim, ours, text, why):
        return claims.judge(claim, claims.within(ours, claims.value(claim), 0.002), text, why)

    return [
        exact("stella-cost-fp32", fp32["saved_percent"], f"{fp32['saved_percent']:.1f}% by 40.7%",
              "1 - 4/8 / 1.407, where the cloud is paid by V100 and hour and the lab is free."),
        claims.judge("stella-cost-fp16", claims.NOT_JUDGED,
                     f"{fp16['longer_percent']:.1f}% longer than 8 V100, by -45.1%",
                     "The paper gives no time of FP16: half the GPUs at -45.1% take 9.8% longer, "
                     "which it does not say, and no throughput of a V100 in FP16."),
        exact("stella-cost-time", -fp32["longer_percent"],
              f"{-fp32['longer_percent']:.1f}% by 40.7%", "1 - 1 / 1.407."),
        claims.judge("stella-cost-throughput",
                     claims.over_inputs(gains, lambda one: claims.at_least(
                         one, claims.value("stella-cost-throughput"))),
                     f"{claims.spread(gains, '.0f')}%, if no GPU waits",
                     "With table 2 and a V100 of 0.9 RTX 2080 Ti (footnote 1: slower than it). "
                     f"40.7% wants a V100 of {claims.spread(needed, '.1f')} RTX 2080 Ti, or GPUs "
                     "that wait.")]


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, 2, figsize=(10.4, 3.8), sharey=True)
    for panel, value, label in zip(panels, ("longer_percent", "saved_percent"),
                                   ("time against 8 V100 (%)", "cost saved against 8 V100 (%)")):
        colours = ["#c2185b" if "printed" in name else "#8a8a8a" for name in table["case"]]
        panel.barh(table["case"], table[value], color=colours, edgecolor="black", linewidth=0.4)
        for place, number in enumerate(table[value]):
            panel.annotate(f"{number:+.1f}" if value == "longer_percent" else f"{number:.1f}",
                           (number, place), xytext=(3 if number >= 0 else -3, 0), va="center",
                           textcoords="offset points", ha="left" if number >= 0 else "right")
        panel.axvline(0, color="black", linewidth=0.6)
        panel.margins(x=0.18)
        panel.set_xlabel(label)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    panels[0].invert_yaxis()
    bars.finish(figure, panels[0], "6 RTX and 4 V100 against 8 V100: arithmetic",
                "Red: from the paper's +40.7% (FP32) and -45.1% of cost (FP16). Grey: table 2, a "
                "V100 of 0.9 RTX 2080 Ti.")
    figure.subplots_adjust(left=0.2, wspace=0.05, bottom=0.24)
    return figure
