"""Atlas figure 10: Atlas against baselines that have as many TCP connections."""

from longhaul.drawing.figure import Drawn
from longhaul.figures.atlas import testbed
from longhaul.figures.atlas.fig9 import up_to

NAME = "atlas-fig10"
SUMMARY = "12 GPUs: Atlas against GPipe, Megatron, Varuna with equal TCP (Atlas figure 10)"
MINUTES = 6
CLAIMS = {"gpipe": "atlas-equal-gpipe", "1f1b": "atlas-equal-megatron",
          "varuna": "atlas-equal-varuna"}


def add_arguments(parser):
    testbed.add_arguments(parser, MINUTES)


def draw(options):
    table = testbed.numbers(options, NAME, "auto")
    if table is None:
        return []
    figure = testbed.figure_of(table, "All with as many TCP connections as reach 5 Gbps, 12 GPUs "
                                      "in 3 datacenters")
    return [Drawn(NAME, figure, table, verdicts(table))]


def verdicts(table):
    found = []
    for name, claim in CLAIMS.items():
        gains = testbed.gains(table, name)
        even = testbed.gains(table, name, testbed.EVEN)
        found.append(up_to(claim, gains,
                           f"At worst {gains.min():.2f}. Turns to the pipeline furthest behind: "
                           f"{even.min():.2f} to {even.max():.2f}. " + testbed.source(table)))
    return found
