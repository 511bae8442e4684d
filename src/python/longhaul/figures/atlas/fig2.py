"""Atlas figure 2: data parallelism over one TCP connection, slowed down by latency."""

import pandas as pd

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import slowdown
from longhaul.figures.atlas.inputs import MODELS
from longhaul.figures.atlas.slowdown import Inputs
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "atlas-fig2",
    summary="slow-down of data parallelism over latency, 6 GPUs in 3 datacenters (Atlas figure 2)",
    shows="effect of latency on data parallelism over one TCP connection",
    repeat=Repeat("atlas", seconds=15, simulate=("--simulate",)),
    expected=(
        Expected("least slow-down of data parallelism", "bound", low=1, column="slowdown",
                 reduce="min", why="A WAN makes nothing faster."),
    ))
SCENARIO = "atlas-fig2"
MICROBATCHES = (8, 16, 32, 64)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    figure = slowdown.figure_of(
        table, "Data parallelism over one TCP connection, 6 GPUs in 3 datacenters, simulated",
        "Groups: sequences that each GPU trains in an iteration, which the paper leaves open. "
        "Percent: share of communication at 40 ms.\nBaseline: the same in one datacenter at 100 "
        "Gbps. All-reduce by the paper's footnote 1: 4 P (N - 1) / (N BW).", shares())
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def numbers():
    inputs = [Inputs(model, f"{count}", (f"model.preset={MODELS[model].preset}",
                                         f"parallel.microbatches={count}"))
              for model in MODELS for count in MICROBATCHES]
    return pd.DataFrame(slowdown.numbers(tools.scenario_file(SCENARIO), "1f1b", inputs))


def shares():
    return dict(zip(MODELS, claims.values("atlas-dp-communication")))


def verdicts(table):
    far = table[table["latency_ms"] == 40]
    slow = claims.value("atlas-dp-slowdown")
    reached = far[far["slowdown"] > slow]
    found = [claims.judge(
        "atlas-dp-slowdown", claims.by_count(len(reached), len(far)),
        f"{claims.spread(far['slowdown'], '.1f')} ({len(reached)} of {len(far)} inputs above)",
        "An iteration with share c of communication is at most 1 / (1 - c) times as long: 14.3 at "
        "the 93% of GPT-A, 20 at the 95% of GPT-B, so \"more than 15\" can be of GPT-B alone.")]
    texts, agree = [], []
    for model, share in shares().items():
        own = far[far["model"] == model]
        values = 100 * own["communication"]
        agree.append(values.min() <= share <= values.max())
        near = own.loc[(values - share).abs().idxmin()]
        texts.append(f"{MODELS[model].name} {claims.spread(values, '.1f', '%')} "
                     f"({100 * near['communication']:.1f}% with {near['inputs']} sequences, where "
                     f"it is {near['slowdown']:.1f} times slower)")
    found.append(claims.judge("atlas-dp-communication", claims.by_count(sum(agree), len(agree)),
                              "; ".join(texts), "By sequences a GPU and iteration, 8 to 64."))
    values = 100 * far.loc[far["model"] == "gpt-b", "communication"]
    wanted = claims.value("atlas-dp-all-reduce")
    found.append(claims.judge(
        "atlas-dp-all-reduce", claims.PARTLY if values.max() >= 0.99 * wanted else claims.FAILS,
        claims.spread(values, ".1f", "%"),
        "Reached with few sequences, but the same section says that communication takes 95% for "
        "the same model and latency: not both."))
    return found
