"""CrossPipe figure 17: how far injected latency and bandwidth are from their target."""

import tempfile
from pathlib import Path

import numpy as np

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.papers.expected import Expected
from longhaul.records import link_table
from longhaul.running import runs, tools

FIGURE = Figure(
    "crosspipe-fig17",
    summary="error of injected latency and bandwidth against target, as violins (bench_link)",
    shows="is the emulated link true",
    needs="`bench_link`, or results of it",
    repeat=Repeat("crosspipe", measure=("--extra", "--samples 50"), minutes=0.6),
    expected=(
        Expected("emulated latency against its target, 1 to 100 ms (%, worst median)", "goal",
                 low=-1, high=1, column="error_percent", where="test=latency; target_ns>=1000000",
                 reduce="worst_median:target_ns", kind="measured",
                 why="1% from 1 to 100 ms, nothing subtracted."),
        Expected("emulated bandwidth against its target, 1 to 100 ms (%, worst median)", "goal",
                 low=-1, high=1, column="error_percent", where="test=bandwidth; target_ns>=1000000",
                 reduce="worst_median:target_ns", kind="measured",
                 why="1% from 1 to 100 ms, nothing subtracted."),
    ))
TESTS = (("latency", "#3fa7d6", "injected latency (ping-pong, half a round trip)"),
         ("bandwidth", "#c9561a", "injected transfer time (messages back to back)"))


def add_arguments(parser):
    parser.add_argument("--results", metavar="DIR",
                        help="what bench_link wrote; default: run it now, on two ranks")
    parser.add_argument("--extra", default="", metavar="'OPTIONS'",
                        help="options for bench_link, as one word, where it is run")


def draw(options):
    if options.results:
        return [draw_table(link_table(options.results))]
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        results = Path(directory) / "bench_link"
        runs.run([tools.ROOT / "scripts" / "mpi", "-n", 2, tools.binary("bench_link"), "--out",
                  results, *options.extra.split()], results, directory, timeout_s=1800)
        return [draw_table(link_table(results))]


def draw_table(table):
    """`table`: one row a sample, as link_table gives it."""
    plt = style.apply()
    tests = [test for test in TESTS if (table["test"] == test[0]).any()]
    if not tests:
        raise Failure("no samples (neither latency nor bandwidth). Run bench_link again.")
    figure, axes = plt.subplots(1, len(tests), figsize=(5.4 * len(tests), 3.7),
                                squeeze=False)
    for panel, (test, colour, title) in zip(axes[0], tests):
        _violins(panel, table[table["test"] == test], colour, title)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.80, bottom=0.15, wspace=0.2)
    figure.suptitle("Emulated link against its target: relative error (dot and number: median)",
                    x=0.075, ha="left", y=0.965, fontsize=11, fontweight="bold")
    return Drawn(FIGURE.name, figure, table)


def _violins(axes, table, colour, title):
    targets = sorted(table["target_ns"].unique())
    samples = [without_outliers(table.loc[table["target_ns"] == target, "error_percent"])
               for target in targets]
    axes.axhline(0, color="#555555", linewidth=0.8)
    bodies = axes.violinplot(samples, showextrema=False, widths=0.8)["bodies"]
    for body in bodies:
        body.set(facecolor=colour, edgecolor="black", alpha=0.9, linewidth=0.5)
    axes.plot(range(1, len(targets) + 1), [np.median(sample) for sample in samples], "o",
              markersize=4, markerfacecolor="white", markeredgecolor="black", markeredgewidth=0.7)
    top = max(np.abs(np.concatenate(samples)).max() * 1.25, 0.1)
    axes.set_ylim(min(0, min(map(np.min, samples))) - 0.2 * top, top)
    for index, sample in enumerate(samples, 1):
        axes.annotate(f"{np.median(sample):+.2f}", (index, 1), xytext=(0, -2), fontsize=7,
                      xycoords=("data", "axes fraction"), textcoords="offset points",
                      ha="center", va="top")
    axes.set_xticks(range(1, len(targets) + 1), [f"{target / 1e6:g}" for target in targets])
    axes.set_xlabel("target (ms)")
    axes.set_ylabel("error against target (%)")
    axes.set_title(title, loc="left", fontsize=9)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def without_outliers(sample):
    """As the paper does (appendix F.2): without samples beyond 3 interquartile ranges."""
    sample = np.asarray(sample, float)
    low, high = np.percentile(sample, [25, 75])
    reach = 3 * max(high - low, 1e-9)
    return sample[(sample >= low - reach) & (sample <= high + reach)]
