"""Do blocks of numbers learn as well as single ones? The validation loss after a number of updates, for
blocks of 1 to 16 numbers and models of several sizes."""

from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import train_records
from longhaul.records import is_finished

FIGURE = Figure(
    "train-blocks",
    summary="what blocks of numbers cost in learning, for several sizes of model",
    shows="validation loss after as many updates, dense and by blocks of 1 to 16 numbers, by size "
          "of model ([training.md](training.md#what-is-kept))",
    options="[--measure] [--text FILE]",
    repeat=Repeat("stella", measure=("--measure",), minutes=30, data=(("--text", "shakespeare.txt"),)))
SCENARIO = "train-2dc"
# Layers (embedding and head among them), hidden size, width of the feed-forward part, heads.
SIZES = {"0.05M": (3, 48, 128, 4), "0.13M": (4, 64, 172, 4), "0.4M": (5, 112, 300, 4),
         "1.3M": (6, 192, 512, 6)}
BLOCKS = (1, 4, 8, 16)
DENSE = "none"
COLOURS = ("#1f1f1f", "#0b5394", "#3fa7d6", "#2aa552", "#c2185b")


def add_arguments(parser):
    train_records.arguments(parser, FIGURE.name)
    parser.add_argument("--keep", default="1%", help="share of the numbers that is sent (default: 1%%)")
    parser.add_argument("--iterations", type=int, default=200, metavar="N", help="default: %(default)s")
    parser.add_argument("--sizes", default=",".join(SIZES), metavar="S,S..",
                        help=f"of {', '.join(SIZES)} (default: all)")


def draw(options):
    results = Path(options.results or f"runs/{FIGURE.name}")
    sizes = [size for size in options.sizes.split(",") if size]
    if unknown := [size for size in sizes if size not in SIZES]:
        raise Failure(f"no size {unknown[0]}. Known: {', '.join(SIZES)}.")
    if options.measure:
        for size in sizes:
            measure(results / size, results, size, options)
    sizes = [size for size in sizes if is_finished(results / size)]
    if not sizes:
        raise Failure(f"no results below {results}. Run scripts/figure {FIGURE.name} --measure.")
    table = numbers(results, sizes)
    return [Drawn(FIGURE.name, figure_of(table, sizes), table)]


def measure(out, results, size, options):
    layers, hidden, intermediate, heads = SIZES[size]
    sparse = [f"block:keep={options.keep}:block={block}:share=each" for block in BLOCKS]
    train_records.measure(out, results, SCENARIO, [
        "--methods", ",".join([DENSE, *sparse]), "--lr-grid", options.lr_grid, "--seeds", options.seeds,
        "--max-iterations", options.iterations, "--points", 10, "--emulate", "off",
        *(word for key, value in (("layers", layers), ("hidden", hidden), ("intermediate", intermediate),
                                  ("heads", heads)) for word in ("--set", f"model.{key}={value}")),
        *train_records.data_of(options)])


def block_of(method):
    """0: all numbers."""
    return next((int(word.split("=")[1]) for word in method.split(":") if word.startswith("block=")), 0)


def kept(methods):
    """The shares that are sent, as methods name them."""
    shares = {word.split("=")[1] for method in methods for word in method.split(":") if word.startswith("keep=")}
    return " or ".join(sorted(shares))


def numbers(results, sizes):
    tables = [train_records.curve_table(train_records.record_of(results / size), results / size).assign(size=size)
              for size in sizes]
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "block", [block_of(method) for method in table["method"]])
    return table


def figure_of(table, sizes):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.8, 4.0))
    blocks = (0, *BLOCKS)
    width = 0.8 / len(blocks)
    for place, block in enumerate(blocks):
        mine = table[table["block"] == block].groupby("size")["validation"]
        at = [index + (place - 2) * width for index in range(len(sizes))]
        label = "all numbers" if block == 0 else f"blocks of {block}" if block > 1 else "single numbers"
        middle = mine.median().reindex(sizes)
        axes.bar(at, middle, width * 0.92, color=COLOURS[place], label=label)
        axes.vlines(at, mine.min().reindex(sizes), mine.max().reindex(sizes), color="#777777",
                    linewidth=1.2)
        for x, value, most in zip(at, middle, mine.max().reindex(sizes)):
            axes.text(x, most + 0.03, f"{value:.2f}", ha="center", fontsize=7)
    axes.set_xticks(range(len(sizes)), [f"{size} parameters" for size in sizes])
    axes.set_ylabel("validation loss (nats a byte)")
    axes.set_ylim(0, 1.08 * table["validation"].max())
    updates = int(table["n"].max())
    axes.set_title(f"after {updates} updates, {kept(table['method'])} of the numbers sent: median of the "
                   "seeds, and their range", loc="left", fontsize=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="lower center", ncol=5, frameon=False,
                  fontsize=8)
    figure.subplots_adjust(left=0.09, right=0.98, top=0.91, bottom=0.17)
    return figure
