"""StellaTrain figure 3: settings that need one bandwidth learn at unequal speeds, by measured probes."""

from itertools import combinations

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.stella import bars, cluster
from longhaul.papers import claims

FIGURE = Figure(
    "stella-fig3",
    summary="how batches and rates learn over the bandwidth that they need (figure 3)",
    shows="g of measured probes over the bandwidth that they need",
    options="--probes FILE",
    repeat=Repeat("stella", seconds=3,
                  data=(("--probes", "stella_probes_vit_b_16.csv"),), without_data=False))
MODEL = "vit-b-16"
EQUAL = 1.1       # two settings need one bandwidth: so many times as much at most
PROBES_RMS = 0.0085  # what the surrogate of all probes but one misses that one by (longhaul tune)
UNEQUAL = 3 * PROBES_RMS


def add_arguments(parser):
    parser.add_argument("--probes", metavar="FILE",
                        help="measured convergence of ViT-B-16 (.csv, as bench_train writes it)")


def draw(options):
    if not options.probes:
        raise Failure("stella-fig3 needs measured convergence. Name a table with --probes.")
    table = numbers(options.probes)
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), [verdict(table)])]


def numbers(file):
    """A row for each probe: the Mbps at which its gradients pass within its iteration."""
    probes = pd.read_csv(file, comment="#")
    speeds = [cluster.throughput(MODEL, gpu)[1] for gpu in cluster.FIG14.gpus]
    share = cluster.throughput(MODEL, "rtx4090")[1] / sum(speeds)
    seconds = [cluster.seconds_of(MODEL, "rtx4090", batch * share) for batch in probes["batch"]]
    table = probes[["batch", "compression_rate", "g"]].copy()
    table["mbps"] = (32e-6 * cluster.parameters(MODEL) * (1 - table["compression_rate"]) / seconds)
    return table.sort_values("mbps", ignore_index=True)


def verdict(table):
    """Of pairs that need one bandwidth: how many learn at speeds that probes tell apart."""
    rows = list(table.itertuples())
    pairs = [(one, other) for one, other in combinations(rows, 2) if other.mbps <= EQUAL * one.mbps]
    apart = [pair for pair in pairs if abs(pair[0].g - pair[1].g) > UNEQUAL]
    widest = max(pairs, key=lambda pair: abs(pair[0].g - pair[1].g))
    said = " and ".join(f"{one.g:.3f} at {one.batch:.0f} samples and {100 * one.compression_rate:.0f}%"
                        for one in widest)
    found = claims.FAILS if not apart else claims.HOLDS if 2 * len(apart) >= len(pairs) else claims.PARTLY
    return claims.judge(
        "stella-equal-bandwidth", found,
        f"{len(apart)} of {len(pairs)} pairs of probes apart; farthest g {said} ({widest[0].mbps:.0f} Mbps)",
        f"Public probes of ViT-B-16 (g: a loss, less that without compression and staleness). One "
        f"bandwidth: within 10%; apart: by more than {UNEQUAL:.3f}, three times what a surrogate of the "
        "other probes misses one by.")


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.4, 4.4))
    points = axes.scatter(table["mbps"], table["g"], c=table["batch"], cmap="viridis", s=28,
                          edgecolor="black", linewidth=0.4)
    figure.colorbar(points, ax=axes, label="samples of an iteration", pad=0.015)
    axes.axhline(0, color="#8a8a8a", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("Mbps that pass the gradients within an iteration (equation 6)")
    axes.set_ylabel("g: loss above that without\ncompression and staleness")
    bars.ground(axes, both=True)
    bars.finish(figure, axes, f"{len(table)} probes of ViT-B-16: learning over the bandwidth that they need",
                "Measured by the paper's authors (their public profile); 8 GPUs of stella-fig14.")
    figure.subplots_adjust(left=0.13)
    return figure
