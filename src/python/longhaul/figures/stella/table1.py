"""StellaTrain table 1: what each strategy does to the speed of iterations, to learning and to both together.

Learning is updates to the last loss that both reach, of measured curves; speed is iterations at
5 and 100 Mbps, or of the sparse optimizer and of blocks their tasks on one core
(stella-kernels.csv)."""

import re
from dataclasses import dataclass
from statistics import median

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import fig15, methods
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "stella-table1",
    summary="signs of six strategies: speed of iterations, learning, both (table 1)",
    shows="effect of each strategy on the speed of iterations (simulated), on learning (measured) "
          "and on both",
    repeat=Repeat("stella", seconds=3, simulate=("--simulate",)))
CURVES = (*fig15.CURVES, "train-2dc-table1.csv")  # of benchmarks/scenarios
KERNELS = "stella-kernels.csv"
RATES = (5, 100)      # Mbps: an exchange of dense gradients takes 8 times the blocks, or 0.4 times
NEAR = 0.02           # closer to 1 is no effect
BETTER, WORSE, NOTHING, OPEN = "+", "-", "0", "?"
METRICS = ("iterations", "learning", "time")
SHOWN = {"iterations": "iterations a second", "learning": "learning of an update", "time": "time to a loss"}
DENSE = ("train.compress.method=none", "train.compress.exchange=sites", "train.staleness=0", "train.serve=arrival")
FRESH, STALE = ("train.staleness=0",), ("train.staleness=1",)
TWICE = "model.microbatch_size=16"
# Of single numbers and of all: what `bench_compress` took for ViT-B-16 on one core.
TASKS = {"optimizer": ("momentum dense", "momentum skip"),
         "cache": ("topk of single numbers", "threshold of blocks of 16")}


@dataclass(frozen=True)
class Strategy:
    """`paper`: signs by METRICS. `learns`: methods of curves without and with it; `plays`: overrides of
    iterations without and with it, or the name of its task in TASKS."""

    claim: str
    name: str
    paper: tuple
    learns: tuple
    plays: object


STRATEGIES = (
    Strategy("stella-sign-compression", "gradient compression", (BETTER, WORSE, OPEN), ("none", "block"),
             (DENSE, FRESH)),
    Strategy("stella-sign-batch", "larger batch", (WORSE, OPEN, OPEN), ("block", "block, batch 16"),
             (FRESH, (*FRESH, TWICE))),
    Strategy("stella-sign-staleness", "staleness", (BETTER, WORSE, OPEN), ("block", "stella"), (FRESH, STALE)),
    Strategy("stella-sign-pipelining", "pipelining", (BETTER, NOTHING, BETTER), ("none, 1 part", "none"),
             ((*DENSE, "train.parts=1"), DENSE)),
    Strategy("stella-sign-optimizer", "sparse optimizer", (BETTER, NOTHING, BETTER), ("block:lazy=exact", "block"),
             "optimizer"),
    Strategy("stella-sign-cache", "cache-aware compression", (BETTER, NOTHING, BETTER), ("topk", "block"), "cache"))


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated, learning measured before (always so)")


def draw(options):
    del options
    curves = kept_curves()
    table = numbers(curves)
    judged = [verdict(one, table, sources(curves, one, "time")) for one in STRATEGIES]
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), judged)]


def kept_curves():
    """All rows of the kept curves, methods named with what their command changes."""
    curves = pd.concat([fig15.kept_curves(), pd.read_csv(tools.SCENARIOS / CURVES[-1], comment="#")],
                       ignore_index=True)
    curves["method"] = [name_of(row.method, row.command) for row in curves.itertuples()]
    return curves


def name_of(method, command):
    """"block, batch 16" of a run with twice the samples, "none, 1 part" of one with a single part."""
    batch = re.search(r"microbatch_size=(\d+)", command)
    parts = re.search(r"train\.parts=(\d+)", command)
    return (method + (f", batch {batch[1]}" if batch else "") + (f", {parts[1]} part" if parts else ""))


def sign(ratios):
    """Of what grows by these factors; `?` where they point both ways."""
    signs = {BETTER if one > 1 + NEAR else WORSE if one < 1 - NEAR else NOTHING for one in ratios}
    return signs.pop() if len(signs) == 1 else OPEN


def command_of(mbps, overrides):
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file("train-2dc"), "--schedule", "stella",
               "--iterations", 24, "--json"]
    command += tools.set_words((f"link.bandwidth={mbps}Mbps", *overrides))
    return command


def gains(strategy, answers):
    """How many times as fast with it: an iteration at each of RATES, or its task."""
    if strategy.plays in TASKS:
        took = pd.read_csv(tools.SCENARIOS / KERNELS, comment="#").set_index("kernel")["median_ms"]
        without, having = TASKS[strategy.plays]
        return [took[without] / took[having]]
    return [methods.seconds_of(answers[mbps, strategy.plays[0]]) / methods.seconds_of(answers[mbps, strategy.plays[1]])
            for mbps in RATES]


def kind_of(metric, is_task):
    if metric == "time":
        return "composed"
    return "measured" if metric == "learning" or is_task else "simulated"


def sources(curves, strategy, metric):
    """[{command, commit}] of the runs by which a cell is measured, of the strategy and of what it is held
    against; none of what is simulated alone."""
    task = []
    if strategy.plays in TASKS and metric != "learning":
        kernels = pd.read_csv(tools.SCENARIOS / KERNELS, comment="#").set_index("kernel")
        task = [kernels.loc[name, ["command", "commit"]].to_dict() for name in TASKS[strategy.plays]]
    learning = [] if metric == "iterations" else [fig15.source_of(curves, name) for name in strategy.learns]
    found = []
    for one in (*learning, *task):
        if one not in found:
            found.append(one)
    return found


def numbers(curves):
    """A row for each strategy and metric: the factor by which it grows, least and most."""
    cells = [(mbps, words) for one in STRATEGIES if one.plays not in TASKS for mbps in RATES for words in one.plays]
    answers = dict(zip(cells, methods.ask_all([command_of(*cell) for cell in cells])))
    rows = []
    for one in STRATEGIES:
        faster = gains(one, answers)
        teaches = fig15.learning(curves, one.learns[1], one.learns[0])
        both = [gain * median(teaches) for gain in faster]
        if one.plays in TASKS:
            both.append(median(teaches))  # a task that is hidden makes no iteration faster
        for metric, theirs, found in zip(METRICS, one.paper, (faster, teaches, both)):
            rows.append({"strategy": one.name, "metric": metric, "paper": theirs,
                         "here": sign([median(found)] if metric == "learning" else found),
                         "least": min(found), "most": max(found), "n": len(found),
                         "numbers": kind_of(metric, one.plays in TASKS),
                         **joined(sources(curves, one, metric))})
    return pd.DataFrame(rows)


def joined(found):
    """Of several runs all commands, and their commits without repeats."""
    return {"command": " and ".join(one["command"] for one in found),
            "commit": " and ".join(dict.fromkeys(one["commit"] for one in found))}


def verdict(strategy, table, found):
    """By the cells whose sign the paper states. `found`: sources of its measured numbers."""
    own = table[table["strategy"] == strategy.name].set_index("metric")
    stated = own[own["paper"] != OPEN]
    said = "; ".join(f"{SHOWN[metric]} {row['here']} ({claims.spread([row['least'], row['most']], '.2f')})"
                     for metric, row in own.iterrows())
    paced = ("Times of its task on one core, measured; the time to a loss also where the task is hidden."
             if strategy.plays in TASKS else
             f"Iterations simulated at {' and '.join(map(str, RATES))} Mbps (train-2dc).")
    return claims.judge(
        strategy.claim, claims.by_count(int((stated["paper"] == stated["here"]).sum()), len(stated)), said,
        f"{paced} Learning measured: updates to the last loss that both reach, {strategy.learns[0]} over "
        f"{strategy.learns[1]}, sign of the median of {int(own.loc['learning', 'n'])} seeds; within {NEAR:.0%} is 0. By "
        + " and ".join(f"{one['command']}, commit {one['commit']}" for one in found)
        + " (blanks within lists are commas).")


def figure_of(table):
    plt = style.apply()
    names = [one.name for one in STRATEGIES]
    figure, axes = plt.subplots(figsize=(8.6, 3.9))
    cells = table.set_index(["strategy", "metric"])
    for row, name in enumerate(names):
        for column, metric in enumerate(METRICS):
            cell = cells.loc[name, metric]
            colour = "#eeeeee" if cell["paper"] == OPEN else "#cfe8cf" if cell["paper"] == cell["here"] else "#f3cccc"
            axes.add_patch(plt.Rectangle((column, -row - 1), 1, 1, facecolor=colour, edgecolor="white", linewidth=2))
            axes.text(column + 0.5, -row - 0.5,
                      f"{cell['paper']} | {cell['here']}   {claims.spread([cell['least'], cell['most']], '.2f')}",
                      ha="center", va="center", fontsize=9)
    axes.set_xlim(0, len(METRICS))
    axes.set_ylim(-len(names), 0)
    axes.set_xticks([column + 0.5 for column in range(len(METRICS))], [SHOWN[metric] for metric in METRICS])
    axes.xaxis.tick_top()
    axes.set_yticks([-row - 0.5 for row in range(len(names))], names)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.suptitle("Signs of the paper | here, and by how many times", x=0.02, ha="left", fontsize=10)
    figure.text(0.02, 0.02, "train-2dc, 131,584 parameters. Learning measured (AdamW); iterations simulated at 5 and "
                "100 Mbps, of the last two\ntheir tasks, measured on one core. Gray: the paper leaves the sign open.",
                fontsize=7.5)
    figure.subplots_adjust(left=0.21, right=0.98, top=0.84, bottom=0.13)
    return figure
