"""Prompts of Llama 3 8B on a GPU: how long, how predictable, and what loading weights costs."""

import json
from pathlib import Path

import pandas as pd
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.bubbletea import fig14
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

GPU = tools.ROOT / "results" / "gpu" / "nvidia-h100-80gb-hbm3"
FIGURE = Figure(
    "bubbletea-on-gpu",
    summary="prefill of Llama 3 8B measured on a GPU, and its TTFT over the pipeline's degree",
    shows="time of a prompt on a GPU by its length, p50 and p99, and TTFT composed of it over the "
          "degree (sections 1.2, 5, 6.6; [prefill.md](prefill.md))",
    options="[--gpu DIR]", needs="records of `scripts/bench-gpu` (those kept are the default)",
    repeat=Repeat("bubbletea", seconds=2),
    expected=(
        Expected("p99 over p50, 8,192 tokens alone", "bound", high=1.1, column="p99_over_p50",
                 where="context=0; tokens=8192",
                 why="A long prompt is one kernel after the other, without a host's wait between."),
    ))
NEAR = 1.1  # p99 over p50 of a prompt that is called predictable
SHOWN = (512, 2048, 8192)
COLOURS = {0: "#444444", 2048: "#2a7ab0"}
CARDS = {"H100": "#2aa552", "A100": "#c2185b"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="from records (always so)")
    parser.add_argument("--gpu", type=Path, default=GPU, metavar="DIR",
                        help="results of scripts/bench-gpu")


def draw(options):
    prompts, load = records(options.gpu)
    table = numbers(prompts)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table, load))]


def records(gpu):
    found = []
    for step in ("served-prompts", "load"):
        path = gpu / step / "record.json"
        if not path.is_file():
            raise Failure(f"{path} is not there (scripts/bench-gpu takes it: --only {step}).")
        found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def numbers(record):
    return pd.DataFrame([
        {"device": record["device"], "tokens": point["tokens"], "context": point["context"],
         "n": point["samples"], "p50_ms": point["p50_ns"] / 1e6, "p99_ms": point["p99_ns"] / 1e6,
         "p99_over_p50": point["p99_over_p50"], "command": record["command_line"],
         "commit": record["git_commit"]} for point in record["prefill"]])


def load_ms(record):
    """Of 10^9 weights of 2 bytes from pinned memory."""
    part = next(part for part in record["parts"] if part["name"] == "weights from pinned memory")
    return 1e3 * part["median_s"] * 2e9 / part["bytes"]


def verdicts(table, load):
    alone = table[table["context"] == 0]
    near = int((alone["p99_over_p50"] <= NEAR).sum())
    worst = alone.loc[alone["p99_over_p50"].idxmax()]
    said = claims.spread(alone["p99_over_p50"], ".3f")
    where = f"measured on {worst['device']}, commit {worst['commit'][:8]}"
    ms = load_ms(load)
    least = claims.value("bubbletea-layer-load")
    return [
        claims.judge("bubbletea-predictable", claims.by_count(near, len(alone)),
                     f"p99 over p50 {said}",
                     f"{near} of {len(alone)} lengths within {NEAR:g}, the farthest of "
                     f"{worst['tokens']} tokens; n = {worst['n']} each, one prompt alone; {where}."),
        claims.judge("bubbletea-layer-load", claims.HOLDS if ms >= least else claims.FAILS,
                     f"{ms:.1f} ms",
                     f"2 bytes a weight over PCIe 5; measured on {worst['device']}, commit "
                     f"{load['git_commit'][:8]}.")]


def figure_of(table):
    plt = style.apply()
    figure, (times, degrees) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    for context, own in table.groupby("context"):
        after = f"after {context:,} other tokens" if context else "alone"
        times.plot(own["tokens"], own["p50_ms"], color=COLOURS.get(context, "#888888"), marker="o",
                   markersize=4, linewidth=1.2, label=f"p50, {after}")
        times.plot(own["tokens"], own["p99_ms"], color=COLOURS.get(context, "#888888"), marker="_",
                   linestyle=":", linewidth=1, label=f"p99, {after}")
    times.set_yscale("log")
    times.set_ylabel("a prompt, ms")
    profiles = {"H100": table[table["context"] == 0].assign(time_ns=lambda own: 1e6 * own["p50_ms"]),
                "A100": fig14.profile()}
    lines = {512: ":", 2048: "--", 8192: "-"}
    for card, points in profiles.items():
        for tokens in SHOWN:
            whole = fig14.whole_ms(points, tokens)
            degrees.plot(fig14.DEGREES, [fig14.ttft_ms(whole, k, 1) for k in fig14.DEGREES],
                         color=CARDS[card], linestyle=lines[tokens], marker="o", markersize=3,
                         linewidth=1.2, label=f"{card}, {tokens:,} tokens")
    degrees.set_yscale("log")
    degrees.set_ylabel("TTFT without waiting, ms")
    for axes, ticks, words in ((times, sorted(set(table["tokens"])), "tokens of the prompt"),
                               (degrees, fig14.DEGREES, "stages of the pipeline")):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(words)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(frameon=False, fontsize=8, ncols=1 if axes is times else 2)
    times.set_title(f"Measured on {table['device'].iloc[0]}", loc="left")
    degrees.set_title("Composed: whole prompts, hop 16/7 ms", loc="left")
    figure.tight_layout()
    return figure
