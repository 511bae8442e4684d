"""What each idea adds over the offered load: utilisation, useful work, refusals, p99 TTFT."""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-frontier",
    summary="tokens/s, utilisation, useful and refused over p99 TTFT as the load grows, each idea "
            "alone and together",
    shows="tokens/s, utilisation, useful and refused over p99 TTFT as the load grows, each idea of "
          "ours alone and together ([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=90, simulate=("--simulate",)),
    expected=(
        Expected("best fit, a backlog: total at most the bound", "bound", high=0,
                 column="above_bound", reduce="max",
                 why="The bound is computed from bubbles and requests alone."),
        Expected("chunks and batches, a backlog: total (%)", "goal", low=97.5,
                 column="total", where="idea=chunks and batches; load=backlog",
                 why="Pieces of 512 tokens fit almost any bubble."),
        Expected("chunks and batches, a backlog: useful (%)", "goal", low=93,
                 column="useful", where="idea=chunks and batches; load=backlog",
                 why="Passes that prompts share leave few tokens below the highest rate."),
    ))
CHUNKS = ("--set", "prefill.chunk=512")
STAGES = ("--set", "parallel.replicas=6", "--set", "prefill.stages=2",
          "--set", "prefill.hop=2.3ms")  # two DP-cells; 16/7 ms of figure 14
SKEWED = (*STAGES, "--set", "prefill.skewed_for=2048")
IDEAS = {
    "earliest": ("#444444", ("--policy", "earliest")),
    "best fit": ("#2a7ab0", ()),
    "chunks": ("#2aa552", CHUNKS),
    "batches": ("#b58900", ("--set", "prefill.batch=8")),
    "chunks and batches": ("#c2185b", (*CHUNKS, "--set", "prefill.batch=8")),
    "two stages": ("#8d6e63", STAGES),
    "skewed": ("#e08a2e", SKEWED),
    "two stages and chunks": ("#9575cd", (*STAGES, *CHUNKS)),
    "skewed and chunks": ("#00838f", (*SKEWED, *CHUNKS)),
}
LOADS = (1, 4, 8, 16, 24, 32)  # times the trace
GPUS = (12, 24)  # without and with STAGES
SLO = "2s"
CLASSES = {"refused_short": (0, 1024), "refused_middle": (1024, 4096), "refused_long": (4096, 1e9)}
CLASSES_AT = 24
COPIES = 8  # of the shipped file, which is short: laid over each other at an eighth of the load


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def row_of(idea, load, words, found):
    share, requests = found["utilisation"], found["requests"]
    refused = sum(requests["refused"].values())
    iterations = found["iterations"] * found["period_ns"] * 1e-9
    return {"idea": idea, "load": load, "training": 100 * share["training"],
            "total": 100 * share["total"], "useful": 100 * share["useful"],
            "bound": 100 * share["upper_bound"], "bound_reason": share["bound_reason"],
            "above_bound": max(0.0, round(share["total"] - share["upper_bound"], 9)),
            "refused": refused / requests["offered"],
            **{column: refused_between(requests["by_length"], *between)
               for column, between in CLASSES.items()},
            "tokens_per_s": found["tokens_served"] / iterations,
            "tokens_per_s_gpu": found["tokens_served"] / iterations / GPUS[STAGES[1] in words],
            "ttft_p50_ms": found["ttft_ns"]["p50"] / 1e6,
            "ttft_p99_ms": found["ttft_ns"]["p99"] / 1e6}


def refused_between(by_length, above, most):
    """The share of the prompts of more than `above` and at most `most` tokens, about."""
    own = [one for one in by_length if above < (one["below_tokens"] or 1e9) <= most]
    offered = sum(one["offered"] for one in own)
    return sum(one["refused"] for one in own) / offered if offered else 0


def numbers(options):
    rows = []
    copies = COPIES if options.requests == str(asked.REQUESTS) else 1
    for idea, (_, words) in IDEAS.items():
        rows.append(row_of(idea, "backlog", words, asked.one(options, "--backlog", "512", *words)))
        if "batches" in idea:  # of a backlog alone
            continue
        for load in LOADS:
            rows.append(row_of(idea, f"{load:g}", words, asked.one(
                options, "--rate", f"{load / copies:g}", "--copies", str(copies),
                "--set", f"prefill.slo_ttft={SLO}", *words)))
    return pd.DataFrame(rows)


def verdicts(table):
    backlog = table[table["load"] == "backlog"].set_index("idea")
    idle = backlog.loc["earliest", "training"]
    filled = backlog.loc["earliest", "total"]
    rest = ", ".join(f"{idea} {backlog.loc[idea, 'total']:.1f}%" for idea in backlog.index)
    return [
        claims.judge("bubbletea-idle", claims.within(idle, claims.value("bubbletea-idle"), 0.05),
                     f"{idle:.1f}%", "M = 16 at 40 ms, which the paper leaves open."),
        claims.judge("bubbletea-filled", claims.within(filled, claims.value("bubbletea-filled")),
                     f"{filled:.1f}%", f"A queue of 512 that never empties ({rest}); the open "
                     f"loop reaches {table[table['load'] != 'backlog']['total'].max():.1f}%.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(2, 3, figsize=(12.4, 7.2))
    tokens, total, useful, refused, classes, backlog = axes.flat
    table = table.assign(ttft_p99_s=table["ttft_p99_ms"] / 1000, refused=100 * table["refused"])
    for axis, column, label in ((tokens, "tokens_per_s_gpu", "tokens/s a GPU"), (total, "total", "utilisation, %"),
                                (useful, "useful", "useful, %"), (refused, "refused", "refused, % of prompts")):
        draw_loads(axis, table, column)
        axis.set_ylabel(label)
        axis.set_xlabel("p99 TTFT, s")
    draw_bounds(total, table)
    tokens.set_title(f"Load: {', '.join(f'{load:g}' for load in LOADS)} times the trace", loc="left", fontsize=10)
    total.set_title("black: no placement of whole prompts exceeds it", loc="left", fontsize=10)
    useful.set_title("at the highest rate of the profile", loc="left", fontsize=10)
    refused.set_title("for the SLO", loc="left", fontsize=10)
    draw_classes(classes, table)
    draw_backlog(backlog, table)
    handles = [Line2D([], [], color=colour, marker="o", markersize=4, label=idea)
               for idea, (colour, _) in IDEAS.items() if "batches" not in idea]
    figure.legend(handles=handles, loc="lower center", ncols=7, frameon=False, fontsize=9)
    figure.suptitle(f"Prefill in Atlas' bubbles, TTFT of at most {SLO}, simulated; 12 GPUs, two stages on 24",
                    x=0.055, ha="left", fontweight="bold")
    figure.subplots_adjust(left=0.055, right=0.985, top=0.89, bottom=0.12, wspace=0.42, hspace=0.38)
    return figure


def loads_of(table, idea):
    return table[(table["idea"] == idea) & (table["load"] != "backlog")]


def draw_loads(axis, table, column):
    """What lies on another idea's line is dashed, in smaller marks."""
    drawn = []
    for idea, (colour, _) in IDEAS.items():
        own = loads_of(table, idea)
        if own.empty:
            continue
        points = own[["ttft_p99_s", column]].to_numpy()
        below = any(np.allclose(points, other, rtol=0.01) for other in drawn)
        drawn.append(points)
        axis.plot(own["ttft_p99_s"], own[column], color=colour, marker="o", markersize=3 if below else 5,
                  linestyle=(0, (3, 3)) if below else "-", linewidth=1.4)


def draw_bounds(axis, table):
    for idea in IDEAS:
        own = loads_of(table, idea)
        own = own[own["bound_reason"] == "flow"]
        axis.plot(own["ttft_p99_s"], own["bound"], color="black", linestyle="", marker="_", markersize=9)


def draw_classes(axis, table):
    """Shares refused by length at one load, a group of bars for each class."""
    own = table[table["load"] == f"{CLASSES_AT:g}"].set_index("idea")
    width = 0.8 / len(own)
    for place, (idea, row) in enumerate(own.iterrows()):
        at = [group + (place - (len(own) - 1) / 2) * width for group in range(len(CLASSES))]
        axis.bar(at, [100 * row[column] for column in CLASSES], width=0.9 * width, color=IDEAS[idea][0])
    axis.set_xticks(range(len(CLASSES)), ["to 1,024", "to 4,096", "longer"])
    axis.set_xlabel("prompt's length, tokens")
    axis.set_ylabel("refused, % of the class")
    axis.set_title(f"at {CLASSES_AT:g} times the trace", loc="left", fontsize=10)


def draw_backlog(axis, table):
    for place, (idea, (colour, _)) in enumerate(reversed(IDEAS.items())):
        backlog = table[(table["idea"] == idea) & (table["load"] == "backlog")].iloc[0]
        axis.barh(place, backlog["total"], color=colour, height=0.62)
        axis.plot([backlog["bound"]], [place], color="black", marker="|", markersize=12)
        axis.text(51, place, f"{backlog['total']:.1f}", color="white", va="center", fontsize=8)
    axis.set_yticks(range(len(IDEAS)), list(reversed(IDEAS)), fontsize=8)
    axis.set_xlim(50, 101)
    axis.set_xlabel("utilisation, %")
    axis.set_title("A backlog of 512, no SLO", loc="left", fontsize=10)
