"""StellaTrain figure 12: steps of a dense and of a sparse optimizer on the host."""

from pathlib import Path

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, kernels
from longhaul.papers import claims

FIGURE = Figure(
    "stella-fig12",
    summary="dense and sparse optimizer steps on one core over the share that is sent (figure 12)",
    shows="optimizer steps on one core, dense, sparse and by blocks, over the share that is sent",
    options="[--measure]",
    repeat=Repeat("stella", measure=("--measure",), minutes=8, deterministic=False))
LINE = 1.22  # of the figure's scale, a line of small letters
LINES = {"momentum dense": ("#1f1f1f", "dense SGD with momentum"),
         "momentum skip of single numbers": ("#0b5394", "sparse, single numbers"),
         "momentum skip": ("#c2185b", "sparse, blocks of 16"),
         "momentum exact": ("#f0b400", "sparse, blocks of 16, exact moments")}
DENSE, SINGLE, BLOCKS = list(LINES)[:3]


def add_arguments(parser):
    kernels.arguments(parser, FIGURE.name)


def draw(options):
    results = Path(options.results or f"runs/{FIGURE.name}")
    if options.measure:
        kernels.measure(results)
    table = kernels.table_of(results)
    table = table[table["kernel"].isin(LINES)].reset_index(drop=True)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def verdicts(table):
    dense, single, blocks = (kernels.at(table, name) for name in (DENSE, SINGLE, BLOCKS))
    claim = "stella-sparse-times"
    theirs = claims.values(claim)
    found = [claims.within(ours, paper) for ours, paper in zip((dense, single, blocks), theirs)]
    said = [claims.judge(claim, claims.by_count(found.count(claims.HOLDS), len(found)),
                         f"{dense:.1f}, {single:.1f}, {blocks:.2f} ms",
                         "One core here; the paper's host has 10 and more, and does not say how many work.")]
    ratios = (dense / single, single / blocks, dense / blocks)
    claim = "stella-sparse-gain"
    found = [claims.at_least(ours, paper) for ours, paper in zip(ratios, claims.values(claim))]
    said.append(claims.judge(claim, claims.by_count(
        sum(one in (claims.HOLDS, claims.LARGER) for one in found), len(found)),
        ", ".join(f"{ratio:.1f}" for ratio in ratios),
        "Over our dense step, which takes "
        f"{dense:.0f} ms of the memory that it moves; the paper's is PyTorch's, of 172 ms."))
    claim = "stella-dense-constant"
    times = table[table["kernel"] == DENSE]["measured_ms"]
    spread = 100 * (times.max() / times.min() - 1)
    said.append(claims.judge(claim, claims.HOLDS if spread <= 10 else claims.PARTLY,
                             f"{times.min():.0f} to {times.max():.0f} ms",
                             "At 90, 99 and 99.9%; it does not look at what was sent."))
    return said


def write_apart(axes, x, numbers, count):
    """Where lines leave room: before the first points, above others, after the last; each a line
    above the one below it at least. Ascending."""
    place = {"ha": "right", "va": "center", "xytext": (-7, 0)} if x == 0 else \
        {"ha": "left", "va": "center", "xytext": (7, 0)} if x == count - 1 else \
        {"ha": "center", "va": "bottom", "xytext": (0, 4)}
    at = 0.0
    for y, colour in numbers:
        at = max(y, at * LINE)
        axes.annotate(f"{y:.3g}", (x, at), textcoords="offset points", fontsize=7, color=colour,
                      **place)


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.2, 4.4))
    keeps = sorted(table["keep_percent"].unique(), reverse=True)
    numbers = [[] for _ in keeps]
    for name, (colour, label) in LINES.items():
        mine = table[table["kernel"] == name].set_index("keep_percent")["measured_ms"].reindex(keeps)
        axes.plot(range(len(keeps)), mine, "o-", color=colour, label=label, markersize=4.5)
        for x, y in enumerate(mine):
            numbers[x].append((y, colour))
    for x, here in enumerate(numbers):
        write_apart(axes, x, sorted(here), len(keeps))
    axes.set_yscale("log")
    axes.set_xticks(range(len(keeps)), [f"{100 - keep:g}%" for keep in keeps])
    axes.set_xlim(-0.3, len(keeps) - 0.7)
    axes.set_xlabel("compression rate (what is not sent)")
    axes.set_ylabel("a step (ms), measured")
    bars.headroom(axes)
    bars.ground(axes)
    bars.finish(figure, axes, "86.6 million numbers, one step on one core",
                "Caches cold, other numbers in every repetition. Published at 99%: dense 172, single "
                "numbers 10.2, blocks 1.34 ms.", columns=2)
    figure.subplots_adjust(left=0.09)
    return figure
