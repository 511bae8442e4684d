"""Atlas figure 10: Atlas against baselines that have as many TCP connections."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import testbed
from longhaul.figures.atlas.fig9 import up_to
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "atlas-fig10",
    summary="12 GPUs: Atlas against GPipe, Megatron, Varuna with equal TCP (Atlas figure 10)",
    shows="the same with equal TCP",
    options="[--measure]",
    repeat=Repeat("atlas", seconds=40, simulate=("--simulate",),
                  measure=("--measure", "--minutes", "4"), minutes=4),
    expected=(
        Expected("largest utilisation of a GPU, figure 10", "bound", low=0, high=1,
                 column="utilization", reduce="max", why="A GPU computes at most all the time."),
        Expected("measured against predicted, figure 10 (%, median of points)", "goal", low=-1,
                 high=2, column="difference_percent", reduce="median", kind="measured",
                 why="2% late at most, half of the points."),
        Expected("measured against predicted, figure 10 (%, farthest)", "goal", low=-1, high=5,
                 column="difference_percent", reduce="max_abs", kind="measured",
                 why="5% late at most."),
    ))
MINUTES = 6
CLAIMS = {"gpipe": "atlas-equal-gpipe", "1f1b": "atlas-equal-megatron",
          "varuna": "atlas-equal-varuna"}


def add_arguments(parser):
    testbed.add_arguments(parser, MINUTES)


def draw(options):
    table = testbed.numbers(options, FIGURE.name, "auto")
    if table is None:
        return []
    figure = testbed.figure_of(table, "All with as many TCP connections as reach 5 Gbps, 12 GPUs "
                                      "in 3 datacenters")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    found = []
    for name, claim in CLAIMS.items():
        gains = testbed.gains(table, name)
        even = testbed.gains(table, name, testbed.EVEN)
        found.append(up_to(claim, gains,
                           f"At worst {gains.min():.2f}. Turns to the pipeline furthest behind: "
                           f"{even.min():.2f} to {even.max():.2f}. " + testbed.source(table)))
    return found
