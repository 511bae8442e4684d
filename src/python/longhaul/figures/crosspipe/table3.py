"""CrossPipe table 3: its words for static schedules, as numbers."""

import pandas as pd

from longhaul.drawing import style, textgrid
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import predict, tools

FIGURE = Figure(
    "crosspipe-table3",
    summary="bubble ratio, memory and overlap of data parallelism of static schedules (simulated)",
    shows="bubble, memory and overlap of static schedules as numbers",
    repeat=Repeat("crosspipe", seconds=3, simulate=("--simulate",)),
    expected=(
        Expected("bubble of 1f1b, P = 4, M = 8, F = D = W", "exact", low=0.2727, high=0.2728,
                 column="bubble_ratio", where="schedule=1f1b",
                 why="(P - 1) / (M + P - 1) = 3 / 11."),
        Expected("bubble of interleaved-1f1b, P = 4, M = 8, F = D = W", "exact", low=0.1578,
                 high=0.1579, column="bubble_ratio", where="schedule=interleaved-1f1b",
                 why="(P - 1) (F + B) / v of 24 + 4.5: 3 / 19."),
        Expected("bubble of zb-h1, P = 4, M = 8, F = D = W", "exact", low=0.1111, high=0.1112,
                 column="bubble_ratio", where="schedule=zb-h1",
                 why="(P - 1) (F + D - W) = 3 of 27."),
        Expected("bubble of zbv, P = 4, M = 8, F = D = W", "exact", low=0.0588, high=0.0589,
                 column="bubble_ratio", where="schedule=zbv", why="(P - 1) F / 2 = 1.5 of 25.5."),
        Expected("peak of activations of 1f1b", "exact", low=4, high=4, column="peak_activations",
                 where="schedule=1f1b", why="P activations."),
        Expected("peak of activations of zb-h1", "exact", low=4, high=4, column="peak_activations",
                 where="schedule=zb-h1", why="As 1F1B: its W are not put off."),
        Expected("peak of activations of zbv", "exact", low=4, high=4, column="peak_activations",
                 where="schedule=zbv", why="As 1F1B, by design."),
        Expected("peak of activations of interleaved-1f1b", "exact", low=5.5, high=5.5,
                 column="peak_activations", where="schedule=interleaved-1f1b",
                 why="2 (P - 1) + (v - 1) P + 1 = 11 chunks of 1 / v."),
    ))
# The paper's rows: type, weight gradient, bubble ratio, memory, DP overlap.
PUBLISHED = {"1f1b": ("UD", "combined", "high", "medium", "medium"),
             "interleaved-1f1b": ("loop", "combined", "medium", "medium+", "medium+"),
             "zb-h1": ("UD", "split", "medium", "medium", "low"),
             "zbv": ("wave", "split", "low", "medium", "low")}
ORDER = {"low": 0, "medium": 1, "medium+": 1.5, "high": 2}
BLOCKS = "crosspipe-fig6"   # 4 stages, 8 microbatches, F = D = W
REPLICAS = "dp-2dc"         # the same with M8 in 2 replicas, one in each datacenter
COLUMNS = {"bubble_ratio": "published_bubble", "peak_activations": "published_memory",
           "dp_overlap": "published_dp_overlap"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    names = tuple(PUBLISHED)
    blocks = predict.ask(predict.Question(tools.scenario_file(BLOCKS), names,
                                          predict.ratios(0, 0)))
    replicas = predict.ask(predict.Question(tools.scenario_file(REPLICAS), names))
    table = pd.DataFrame([numbers(name, blocks[name], replicas[name]) for name in names])
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers(name, entry, replicas):
    kind, gradient, *words = PUBLISHED[name]
    bubbles = entry["bubble_ratio"]
    return {"schedule": name, "type": kind, "weight_gradient": gradient,
            **dict(zip(COLUMNS.values(), words)),
            "bubble_ratio": round(sum(bubbles) / len(bubbles), 4),
            "peak_activations": max(entry["peak_activation"]),
            "dp_overlap": round(replicas.get("dp_overlap") or 0.0, 4)}


def verdicts(table):
    return [_order(table, "table3-bubble", "bubble_ratio", "{:.1%}",
                   "4 stages, 8 microbatches, F = D = W, no delay."),
            _order(table, "table3-memory", "peak_activations", "{:g}",
                   "Activations of a stage, the largest over devices; 1F1B holds 4."),
            _order(table, "table3-dp-overlap", "dp_overlap", "{:.0%}",
                   "Share of gathers and scatters during which their device computes (M8, 2 "
                   "replicas, ZeRO-1). A chunk's gradient is sent when the whole chunk is done, "
                   "so that one chunk a device hides nothing.")]


def _order(table, claim, column, form, why):
    """Do the numbers of each pair of schedules lie as the paper's words do?"""
    words, numbers = table[COLUMNS[column]].map(ORDER), table[column]
    pairs = [(i, j) for i in table.index for j in table.index if i < j]
    agree = sum(_sign(words[i] - words[j]) * _sign(numbers[i] - numbers[j]) > 0
                or (words[i] == words[j] and _equal(column, numbers[i], numbers[j]))
                for i, j in pairs)
    ours = ", ".join(f"{style.schedule_name(name)} {form.format(value)}"
                     for name, value in zip(table["schedule"], numbers))
    return claims.judge(claim, claims.by_count(agree, len(pairs)), ours,
                        f"{agree} of {len(pairs)} pairs are ordered so. {why}")


def _sign(number):
    return int(number > 1e-9) - int(number < -1e-9)


def _equal(column, one, other):
    """One word stands for a range of bubbles and overlaps, but for a single peak."""
    return one == other if column == "peak_activations" else abs(one - other) <= 0.06


def figure_of(table):
    cells = [[row.type, row.weight_gradient, f"{row.published_bubble}\n{row.bubble_ratio:.1%}",
              f"{row.published_memory}\n{row.peak_activations:g} activations",
              f"{row.published_dp_overlap}\n{row.dp_overlap:.0%}"] for row in table.itertuples()]
    return textgrid.draw(textgrid.Grid(
        "CrossPipe table 3: static schedules in words and in numbers",
        ["type", "weight gradient", "bubble ratio", "memory", "DP overlap"],
        [style.schedule_name(name) for name in table["schedule"]], cells, corner="schedule",
        column_inches=1.3, row_heading_inches=1.3,
        note="Above: the paper's word. Below: ours, simulated. Bubble ratio and memory: 4 stages, "
             "8 microbatches, F = D = W, no delay.\nMemory: the largest over devices. DP overlap: "
             "share of data-parallel communication during which its device computes\n(M8 on 4 "
             "stages, 2 replicas in 2 datacenters, ZeRO-1)."))
