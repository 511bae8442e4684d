"""StellaTrain figure 9: iteration speed over that of PyTorch DDP, by bandwidth of the WAN."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "stella-fig9",
    summary="iteration speed over PyTorch DDP's at 100 Mbps, 500 Mbps and 1 Gbps (figure 9)",
    shows="iteration speed of six systems over PyTorch DDP's, by bandwidth",
    repeat=Repeat("stella", seconds=25, simulate=("--simulate",)),
    expected=(
        Expected("ViT-B-16 by DDP over 100 Mbps (ms)", "exact", low=49752, high=49753,
                 column="iteration_ms", where="model=vit-b-16; mbps=100; method=ddp; batches=same",
                 why="14 messages of a ring, 44 MB each, over 100 Mbps, a latency of 18 ms, and 45 "
                     "images at 99 a second."),
        Expected("iterations over their slowest blocks, the least (%)", "bound", low=-0.1, high=1e9,
                 column="above_blocks_percent", reduce="min",
                 why="None is shorter than its F and B, but for the start of a stream."),))
RATES = (100, 500, 1000)
COMPRESSED = ("compress", "espresso")
DENSE = ("ddp", "ddp-hetero")


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    figure = bars.panels(
        table, "mbps", "times_ddp", "Iteration speed in samples/s, PyTorch DDP = 1, simulated",
        "times PyTorch DDP", lambda mbps: f"{mbps:g} Mbps",
        "All with the same batches, by speed but for PyTorch DDP. Convergence is left out; the "
        "paper's band has it, and is over systems that do not compress.",
        {mbps: claims.values(f"stella-{mbps}-dense") for mbps in RATES})
    return [Drawn(FIGURE.name, figure, table.round(6), verdicts(table))]


def numbers():
    table = methods.numbers(methods.grid(cluster.MODELS, RATES))
    base = table[(table["method"] == "ddp") & (table["batches"] == "same")].set_index(
        ["model", "mbps"])["samples_per_s"]
    keys = zip(table["model"], table["mbps"])
    table["times_ddp"] = [speed / base[key] for speed, key in zip(table["samples_per_s"], keys)]
    table["above_blocks_percent"] = 100 * (table["iteration_ms"] / table["blocks_ms"] - 1)
    return table


def verdicts(table):
    judged = []
    for mbps in RATES:
        own = table[table["mbps"] == mbps]
        for name, over in (("dense", DENSE), ("compression", COMPRESSED)):
            claim = f"stella-{mbps}-{name}"
            readings = methods.by_reading(methods.speedups(own, over))
            judged.append(claims.judge(claim, methods.of_range(claim, readings),
                                       methods.said(readings), methods.NOT_HERE))
    return judged
