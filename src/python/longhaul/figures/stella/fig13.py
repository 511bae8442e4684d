"""StellaTrain figure 13: (a) what compression takes on the host; (b) how models learn from single
numbers, blocks and random blocks."""

import json
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import train_records
from longhaul.figures.stella import bars, kernels
from longhaul.papers import claims
from longhaul.records import is_finished
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig13",
    summary="compression by threshold on one core, and learning by it on three data sets (figure 13)",
    shows="compression of single numbers and of blocks on one core, and how models learn by them",
    options="[--measure] [--part PART] [--text FILE]",
    repeat=Repeat("stella", measure=("--measure",), minutes=25, deterministic=False,
                  data=(("--text", "shakespeare.txt"),)))
SCENARIO = "train-2dc"
TIMED = {"threshold of blocks of 16": ("blocks of 16", "#c2185b"),
         "threshold of single numbers": ("single numbers", "#0b5394"),
         "topk of single numbers": ("exact top-k", "#3fa7d6"),
         "block of blocks of 16": ("exact blocks", "#f0b400")}
DATA = ("text:python", "digits", "synthetic")
ON_GPU = tools.ROOT / "results" / "gpu" / "nvidia-h100-80gb-hbm3" / "compress.json"
APART = ", residual apart"
DENSE = "none"
LEARNED = {DENSE: ("all numbers", "#1f1f1f"),
           "threshold:keep=1%:block=1:share=each": ("threshold, single numbers", "#0b5394"),
           "threshold:keep=1%:block=16:share=each": ("threshold, blocks of 16", "#c2185b"),
           "randomk:keep=1%:block=16:share=each": ("random blocks", "#8a8a8a")}
SINGLE, BLOCKS, RANDOM = list(LEARNED)[1:]


def add_arguments(parser):
    kernels.arguments(parser, FIGURE.name)
    parser.add_argument("--part", choices=("a", "b"),
                        help="a: times of kernels alone, which need a quiet machine; b: learning alone")
    parser.add_argument("--text", metavar="FILE", help="instead of Python's library")
    parser.add_argument("--seeds", default="1,2,3", metavar="N,N..", help="default: %(default)s")
    parser.add_argument("--lr-grid", default="0.003,0.01", metavar="X,X..",
                        help="learning rates that each method tries (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=200, metavar="N", help="default: %(default)s")


def draw(options):
    results = Path(options.results or f"runs/{FIGURE.name}")
    sources = [f"text:{options.text}" if options.text and data.startswith("text") else data
               for data in DATA]
    if options.measure and options.part != "b":
        kernels.measure(results, ("1%",))
    if options.measure and options.part != "a":
        for data, source in zip(DATA, sources):
            measure(results / folder(data), results, source, options)
    parts, said = {}, []
    if options.part != "b":
        times = kernels.table_of(results)
        parts["a"] = times[times["kernel"].isin(TIMED) & (times["keep_percent"] == 1)]
        said += verdicts_of_times(parts["a"])
    if options.part != "a":
        parts["b"] = curves(results)
        said += verdicts_of_learning(parts["b"])
    table = pd.concat([own.assign(part=part) for part, own in parts.items()], ignore_index=True)
    return [Drawn(FIGURE.name, figure_of(**parts), table, [*said, verdict_of_gpu()])]


def folder(data):
    return data.split(":")[0]


def measure(out, results, data, options):
    train_records.measure(out, results, SCENARIO, [
        "--methods", ",".join(LEARNED), "--lr-grid", options.lr_grid, "--seeds", options.seeds,
        "--data", data, "--max-iterations", options.iterations, "--points", 10, "--emulate", "off"])


def curves(results):
    """A row for each method, seed and validation of a data set."""
    rows = []
    for data in DATA:
        directory = results / folder(data)
        if not is_finished(directory):
            continue
        record = train_records.record_of(directory)
        for curve in record["train"]["curves"]:
            facts = train_records.facts_of(record, directory, curve)
            rows += [train_records.provenance.add(
                {"data": folder(data), "method": curve["method"], "seed": curve["seed"],
                 "learning_rate": curve["learning_rate"], "updates": point[0], "validation": point[3],
                 "n": curve["points"][-1][0]}, facts) for point in curve["points"]]
    if not rows:
        raise Failure(f"no records of bench_train below {results}. Draw with --measure.")
    return pd.DataFrame(rows)


def last(learned, data, method):
    """Median over seeds of the validation after the last update."""
    mine = learned[(learned["data"] == data) & (learned["method"] == method)]
    return float(mine[mine["updates"] == mine["updates"].max()]["validation"].median())


def verdicts_of_times(times):
    claim = "stella-threshold-time"
    theirs = claims.value(claim)
    blocks = kernels.at(times, "threshold of blocks of 16")
    single = kernels.at(times, "threshold of single numbers")
    said = [claims.judge(claim, claims.at_least(theirs / blocks, 1), f"{blocks:.1f} ms",
                         "86.6 million numbers, one core, caches cold.")]
    claim = "stella-threshold-gain"
    said.append(claims.judge(claim, claims.at_least(single / blocks, claims.value(claim)),
                             f"{single / blocks:.2f} ({single:.1f} over {blocks:.1f} ms)",
                             "Both read the gradient once; single numbers write more places."))
    return said


def verdict_of_gpu():
    """By the kept record of bench_compress on a card: percent that blocks are faster."""
    claim = "stella-threshold-gpu"
    if not ON_GPU.is_file():
        return claims.judge(claim, claims.NOT_JUDGED, "no kernel of a GPU", "")
    record = json.loads(ON_GPU.read_text(encoding="utf-8"))
    times = {kernel["name"]: kernel["median_s"] for kernel in record["kernels"]}
    gains = [100 * (times[f"threshold of single numbers{where}"] / times[f"threshold of blocks of 16{where}"] - 1)
             for where in ("", APART)]
    return claims.judge(
        claim, claims.over_inputs(gains, lambda gain: claims.at_least(gain, claims.value(claim))),
        f"+{gains[0]:.1f}% (residual in the gradient), +{gains[1]:.1f}% (residual of its own)",
        f"Measured on one {record['device']['name']} (commit {record['git_commit'][:8]}), where both read and write as "
        "much where the residual is apart. The paper does not say which of them it has.")


def verdicts_of_learning(learned):
    names = [data for data in (folder(each) for each in DATA) if data in set(learned["data"])]
    like, above = [], []
    for data in names:
        one, block, random = (last(learned, data, method) for method in (SINGLE, BLOCKS, RANDOM))
        start = learned[learned["data"] == data].groupby("updates")["validation"].median().iloc[0]
        like.append(abs(block - one) <= 0.05 * abs(start - one) + 1e-9)
        above.append(block < random)
    texts = [f"{data}: {last(learned, data, SINGLE):.2f}, {last(learned, data, BLOCKS):.2f}, "
             f"{last(learned, data, RANDOM):.2f}" for data in names]
    return [claims.judge("stella-blocks-learn", claims.by_count(like.count(True), len(like)),
                         "; ".join(texts), "Validation loss by single numbers, blocks, random "
                         "blocks; alike is within 5% of what single numbers have learned since the "
                         "first validation."),
            claims.judge("stella-random-learns", claims.by_count(above.count(True), len(above)),
                         "; ".join(texts), "The same losses.")]


def figure_of(a=None, b=None):
    plt = style.apply()
    names = [] if b is None else list(dict.fromkeys(b["data"]))
    count = len(names) + (a is not None)
    figure, grid = plt.subplots(1, count, squeeze=False, figsize=(3.0 * count + 0.3, 4.2))
    panels = list(grid[0])
    if a is not None:
        draw_times(panels.pop(0), a)
    for panel, data in zip(panels, names):
        draw_learning(panel, b[b["data"] == data])
        panel.set_title(f"(b) {data}", loc="left", fontsize=9)
    for panel in grid[0]:
        bars.ground(panel)
    if panels:
        panels[0].set_ylabel("validation loss, measured")
    titles = ["Compression on one core"] * (a is not None) + ["learning by it"] * bool(panels)
    title = ", and ".join(titles) if a is not None else "Learning by numbers above a threshold"
    bars.finish(figure, (panels or grid[0])[0], title, "Median of the seeds and their range." if panels else "",
                columns=4 if count > 2 else 2)
    figure.subplots_adjust(wspace=0.28, left=0.075 if count > 2 else 0.1)
    return figure


def draw_times(panel, times):
    for place, (kernel, (label, colour)) in enumerate(TIMED.items()):
        height = kernels.at(times, kernel)
        panel.bar(place, height, 0.7, color=colour, edgecolor="black", linewidth=0.4)
        panel.annotate(f"{height:.1f}", (place, height), xytext=(0, 2), ha="center",
                       textcoords="offset points", fontsize=7.5)
    panel.set_xticks(range(len(TIMED)), [label.replace(" ", "\n") for label, _ in TIMED.values()],
                     fontsize=7.5)
    panel.set_ylabel("ms, measured")
    panel.set_title("(a) 1% of 86.6 M numbers", loc="left", fontsize=9)


def draw_learning(panel, learned):
    for method, (label, colour) in LEARNED.items():
        over = learned[learned["method"] == method].groupby("updates")["validation"]
        panel.plot(over.median().index, over.median(), color=colour, label=label, linewidth=1.4)
        panel.fill_between(over.min().index, over.min(), over.max(), color=colour, alpha=0.15, linewidth=0)
    panel.set_xlabel("updates")
