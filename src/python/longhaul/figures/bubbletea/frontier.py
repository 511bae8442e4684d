"""What each idea adds over the offered load: utilisation, useful work, refusals, p99 TTFT."""

import pandas as pd
from matplotlib.lines import Line2D

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-frontier",
    summary="utilisation and p99 TTFT over the offered load, each idea alone and together",
    shows="utilisation and p99 TTFT over the load, each idea of ours alone and together "
          "([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=60, simulate=("--simulate",)),
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
RATES = (0.5, 1, 2, 4)


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def row_of(idea, load, found):
    share, requests = found["utilisation"], found["requests"]
    refused = sum(requests["refused"].values())
    iterations = found["iterations"] * found["period_ns"] * 1e-9
    long = [one for one in requests["by_length"] if (one["below_tokens"] or 1e9) > 4096]
    offered = sum(one["offered"] for one in long)
    return {"idea": idea, "load": load, "training": 100 * share["training"],
            "total": 100 * share["total"], "useful": 100 * share["useful"],
            "bound": 100 * share["upper_bound"], "bound_reason": share["bound_reason"],
            "above_bound": max(0.0, share["total"] - share["upper_bound"]),
            "refused": refused / requests["offered"],
            "refused_long": sum(one["refused"] for one in long) / offered if offered else 0,
            "tokens_per_s": found["tokens_served"] / iterations,
            "ttft_p50_ms": found["ttft_ns"]["p50"] / 1e6,
            "ttft_p99_ms": found["ttft_ns"]["p99"] / 1e6}


def numbers(options):
    rows = []
    for idea, (_, words) in IDEAS.items():
        rows.append(row_of(idea, "backlog", asked.one(options, "--backlog", "512", *words)))
        if "batches" in idea:  # of a backlog alone
            continue
        for rate in RATES:
            rows.append(row_of(idea, f"{rate:g}", asked.one(options, "--rate", f"{rate:g}",
                                                           *words)))
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
    """What lies on another idea's line is dashed, in smaller marks."""
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    drawn = []
    for idea, (colour, _) in IDEAS.items():
        own = table[(table["idea"] == idea) & (table["load"] != "backlog")]
        points = list(zip(own["ttft_p99_ms"].round(1), own["total"].round(2)))
        below = points in drawn
        drawn.append(points)
        left.plot(own["ttft_p99_ms"], own["total"], color=colour, marker="o", markersize=3 if below else 6,
                  linestyle=(0, (3, 3)) if below else "-", linewidth=1.6)
    left.set_xlabel("p99 TTFT, ms")
    left.set_ylabel("utilisation, %")
    left.set_title("Open loop at " + ", ".join(f"{rate:g}" for rate in RATES) + " times the trace's rate (upwards)",
                   loc="left", fontsize=10)
    for place, (idea, (colour, _)) in enumerate(reversed(IDEAS.items())):
        backlog = table[(table["idea"] == idea) & (table["load"] == "backlog")].iloc[0]
        right.barh(place, backlog["total"], color=colour, height=0.62)
        right.plot([backlog["bound"]], [place], color="black", marker="|", markersize=16)
        right.text(51, place, f"{backlog['total']:.1f}", color="white", va="center", fontsize=9)
    right.set_yticks(range(len(IDEAS)), list(reversed(IDEAS)))
    right.set_xlim(50, 101)
    right.set_xlabel("utilisation, % (black: no placement exceeds it)")
    right.set_title("A backlog of 512", loc="left", fontsize=10)
    handles = [Line2D([], [], color=colour, marker="o", markersize=4, label=idea)
               for idea, (colour, _) in IDEAS.items() if "batches" not in idea]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.suptitle("Prefill in Atlas' bubbles, simulated; 12 GPUs, two stages on 24", x=0.06, ha="left",
                    fontweight="bold")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.84, bottom=0.24, wspace=0.36)
    return figure
