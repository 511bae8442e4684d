"""StellaTrain figure 14: batch and compression rate over the bandwidth, by `longhaul tune`."""

import json
import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, fig3
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig14",
    summary="batch and rate that tune chooses over the bandwidth, and equation 6 (figure 14)",
    shows="batch and compression rate that `tune` chooses over the bandwidth",
    options="[--probes FILE]",
    repeat=Repeat("stella", seconds=4, simulate=("--simulate",),
                  data=(("--probes", "stella_probes_vit_b_16.csv"),)),
    expected=(
        Expected("rate of equation 6 at 1 Gbps, an RTX 4090 at alpha (%)", "exact", low=96.68,
                 high=96.69, column="rate_percent", where="choice=batch 137; mbps=1000",
                 why="1 - 1e9 / (32 x 88e6) x 28 / 300."),
        Expected("rate of equation 6 at 100 Mbps, 45 images on an RTX 4090 (%)", "exact", low=99.46,
                 high=99.47, column="rate_percent", where="choice=batch 240; mbps=100",
                 why="1 - 1e8 / (32 x 88e6) x 45 / 300.")))
MODEL = "vit-b-16"
RATES = (50, 100, 200, 300, 500, 700, 1000)
PAPER = ((1000, 137, 97.0), (100, 240, 99.5))  # Mbps, batch, rate
HALF_DIGIT = (0.5, 0.05)  # of the rates as they are printed


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="predicted (always so)")
    parser.add_argument("--probes", metavar="FILE",
                        help="measured convergence of ViT-B-16 (.csv, as bench_train writes it); "
                             "default: none, every batch and rate converges equally fast")


def draw(options):
    table = numbers(options.probes)
    return [Drawn(FIGURE.name, figure_of(table, bool(options.probes)), table.round(6),
                  verdicts(table, fig3.numbers(options.probes) if options.probes else None))]


def equal_probes():
    """Probes by which all batches and rates converge equally fast: speed alone decides."""
    points = [(batch, rate) for batch in (8, 500, 1024) for rate in (0, 0.999)]
    return "model,version,batch,compression_rate,g\n" + "".join(
        f"{MODEL},1,{batch},{rate},0\n" for batch, rate in points)


def chosen(probes):
    """Settings of `longhaul tune`, one a bandwidth."""
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        if not probes:
            probes = Path(directory) / "equal.csv"
            probes.write_text(equal_probes(), encoding="utf-8")
        said = tools.run([tools.binary("longhaul"), "tune", tools.scenario_file("stella-fig14"),
                          "--probes", probes, "--bandwidth",
                          ",".join(f"{mbps}Mbps" for mbps in RATES), "--json"])
    return json.loads(said)["settings"]


def by_speed(batch):
    """Images of one RTX 4090 where the batch is divided by speed."""
    speeds = [cluster.throughput(MODEL, gpu)[1] for gpu in cluster.FIG14.gpus]
    return batch * cluster.throughput(MODEL, "rtx4090")[1] / sum(speeds)


def numbers(probes):
    rows = [{"choice": "tune", "mbps": mbps, "samples": sum(one["batch"]),
             "rate_percent": 100 * one["compression_rate"],
             "iteration_ms": one["iteration_ns"] * 1e-6}
            for mbps, one in zip(RATES, chosen(probes))]
    for _, batch, _ in PAPER:
        # The fastest GPU binds equation 6; below alpha it takes as long as at alpha.
        seconds = cluster.seconds_of(MODEL, "rtx4090", by_speed(batch))
        rows += [{"choice": f"batch {batch}", "mbps": mbps, "samples": batch,
                  "rate_percent": 100 * cluster.least_rate(MODEL, mbps * 1e6, seconds),
                  "iteration_ms": 1e3 * seconds} for mbps in RATES]
    return pd.DataFrame(rows)


def verdicts(table, probes=None):
    """`probes`: as fig3.numbers() has them; by what they say of learning the batch is judged, too."""
    measured = probes is not None

    def at(choice, mbps, column):
        return table[(table["choice"] == choice) & (table["mbps"] == mbps)][column].iloc[0]

    rates = [at(f"batch {batch}", mbps, "rate_percent") for mbps, batch, _ in PAPER]
    near = sum(abs(one - rate) <= half for one, (_, _, rate), half in zip(rates, PAPER, HALF_DIGIT))
    batches = [at("tune", mbps, "samples") for mbps, _, _ in PAPER]
    held = sum(claims.within(one, batch) == claims.HOLDS for one, (_, batch, _) in
               zip(batches, PAPER))
    why = ("" if measured else "The batch trades speed against convergence, of which no probes "
           "were given (--probes): where all batches converge equally fast one in which every "
           "GPU is saturated is fastest, at any bandwidth.")
    return [
        claims.judge("stella-batch",
                     claims.by_count(held, len(PAPER)) if measured else claims.NOT_JUDGED,
                     " and ".join(f"{one:g}" for one in batches) + " by tune", why),
        claims.judge("stella-rate", claims.by_count(near, len(PAPER)),
                     " and ".join(f"{one:.2f}%" for one in rates),
                     "Equation 6 at the paper's batches, divided by speed: an RTX 4090 has 25.8 "
                     "(less than its alpha of 28) and 45.1 images. To the digits printed: 97 and "
                     "99.5."),
        fig3.verdict(probes) if measured else
        claims.judge("stella-equal-bandwidth", claims.NOT_JUDGED, "nothing",
                     "It is of learning, of which no probes were given (--probes).")]


def figure_of(table, measured):
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    name = "tune, measured probes" if measured else "tune, equal convergence"
    for choice, colour in (("tune", "#0b5394"), ("batch 137", "#9fcf8f"), ("batch 240", "#2aa552")):
        own = table[table["choice"] == choice]
        label = name if choice == "tune" else f"equation 6, {choice} by speed"
        left.plot(own["mbps"], own["rate_percent"], "o-", color=colour, markersize=3.5, label=label)
    tuned = table[table["choice"] == "tune"]
    right.plot(tuned["mbps"], tuned["samples"], "o-", color="#0b5394", markersize=3.5)
    for axes, place in ((left, 2), (right, 1)):
        axes.plot([one[0] for one in PAPER], [one[place] for one in PAPER], "*", color="#c4161c",
                  markersize=10, label="the paper")
        axes.set_xscale("log")
        axes.set_xticks(RATES, [str(mbps) for mbps in RATES])
        axes.minorticks_off()
        axes.set_xlabel("bandwidth of the link (Mbps)")
        bars.ground(axes, both=True)
    left.set_ylabel("compression rate (%)")
    right.set_ylabel("images of all 8 GPUs")
    right.set_ylim(0, 1.15 * max(tuned["samples"].max(), 240))
    bars.finish(figure, left, "ViT-B-16 on two nodes of 2 RTX 4090 and 2 RTX 2080 Ti", columns=4)
    figure.subplots_adjust(wspace=0.16)
    return figure
