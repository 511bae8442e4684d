"""Atlas figure 3: Varuna's pipeline over one TCP connection, slowed down by latency."""

import pandas as pd

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import fig2, slowdown
from longhaul.figures.atlas.inputs import LATENCIES_MS, MODELS, RATIOS
from longhaul.figures.atlas.slowdown import Inputs
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "atlas-fig3",
    summary="slow-down of Varuna's pipeline over latency, 6 GPUs in 3 datacenters (Atlas figure 3)",
    shows="the same for Varuna's pipeline",
    repeat=Repeat("atlas", seconds=20, simulate=("--simulate",)),
    expected=(
        Expected("least slow-down of Varuna's pipeline", "bound", low=1, column="slowdown",
                 reduce="min", why="A WAN makes nothing faster."),
    ))
SCENARIO = "atlas-fig3"
MICROBATCHES = (4, 16)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    figure = slowdown.figure_of(
        table, "Varuna's pipeline over one TCP connection, 6 GPUs in 3 datacenters, simulated",
        "Groups: microbatches, and how many F a transfer takes at 5 Gbps; the paper leaves both "
        "open. Percent: of the iteration at 40 ms, what communication adds.\nBaseline: the same in "
        "one datacenter at 100 Gbps.", shares())
    return [Drawn(FIGURE.name, figure, table, verdicts(table, fig2.numbers()))]


def numbers():
    inputs = [Inputs(name, f"M = {count}\n{ratio:g} F",
                     (*model.overrides(ratio), f"parallel.microbatches={count}"))
              for name, model in MODELS.items() for count in MICROBATCHES for ratio in RATIOS]
    return pd.DataFrame(slowdown.numbers(tools.scenario_file(SCENARIO), "varuna", inputs))


def shares():
    return dict(zip(MODELS, claims.values("atlas-pp-communication")))


def verdicts(table, replicas):
    """`replicas`: fig2.numbers(), data parallelism."""
    far = table[table["latency_ms"] == 40]
    less, ranges = 0, []
    for ms in LATENCIES_MS:
        pipeline = table.loc[table["latency_ms"] == ms, "slowdown"]
        other = replicas.loc[replicas["latency_ms"] == ms, "slowdown"]
        less += pipeline.median() < other.median()
        ranges.append(f"{ms} ms {claims.spread(pipeline, '.1f')} against "
                      f"{claims.spread(other, '.1f')}")
    found = [claims.judge("atlas-pp-slowdown", claims.by_count(int(less), len(LATENCIES_MS)),
                          "; ".join(ranges),
                          "By the median over open inputs; the ranges overlap.")]
    texts, said = [], []
    for model, share in shares().items():
        own = far[far["model"] == model]
        values = 100 * own["communication"]
        said.append(claims.HOLDS if values.min() <= share <= values.max()
                    else claims.within((values - share).abs().min() / share + 1, 1))
        texts.append(f"{MODELS[model].name} {claims.spread(values, '.1f', '%')}")
    found.append(claims.judge(
        "atlas-pp-communication", claims.over_inputs(said, lambda one: one), "; ".join(texts),
        "What communication adds; devices are idle for "
        f"{claims.spread(100 * far['idle'], '.1f', '%')} of the time."))
    used = 100 * (1 - far["idle"])
    wanted = claims.value("atlas-varuna-utilization")
    found.append(claims.judge(
        "atlas-varuna-utilization", claims.by_count(int((used < wanted).sum()), len(used)),
        claims.spread(used, ".1f", "% at 40 ms"),
        "6 GPUs, recomputation counted as work. Few microbatches and short F make it small."))
    return found
