"""What an all-reduce between two datacenters takes by each algorithm, over latency and nodes.

Nodes of four ranks at the rates of levels-2dc, each with 5 Gbps to the WAN."""

import json
import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.running import tools

FIGURE = Figure(
    "wan-collectives",
    summary="an all-reduce between datacenters by each algorithm, over latency and nodes",
    shows="an all-reduce between two datacenters by each algorithm, over latency and nodes",
    repeat=Repeat("longhaul", seconds=10))
LATENCIES_MS = (0.1, 0.3, 1, 3, 10, 30, 100)
NODES = (1, 2, 4, 8)
GPUS = 4
BOUND = "lower bound"
# Trees are green and dashed.
STYLES = {"ring": ("#0b5394", "o", "-"), "halving": ("#3fa7d6", "s", "-"),
          "exchange": ("#c9561a", "^", "-"), "direct": ("#f0b400", "D", "-"),
          "tree": ("#00601f", "v", "--"), "double-tree": ("#2aa552", "P", "--"),
          "hierarchical": ("#c2185b", "X", "-"), BOUND: ("#555555", "", ":")}


def add_arguments(parser):
    parser.add_argument("--kind", default="all-reduce",
                        help="all-reduce, all-gather, ... (default: %(default)s)")
    parser.add_argument("--bytes", default="256MiB", metavar="SIZE",
                        help="of the whole vector (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=30, metavar="MS",
                        help="of the panel over nodes (default: %(default)g)")
    parser.add_argument("--nodes", type=int, default=4, metavar="N",
                        help="of a datacenter, in the panel over latencies (default: %(default)s)")


def draw(options):
    if options.nodes < 1 or options.latency < 0:
        raise Failure("--nodes and --latency: a datacenter has a node, and time goes on. "
                      "Give --nodes 4 --latency 30.")
    rows = []
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        for panel, nodes, latency in points(options):
            file = Path(directory) / "sites.toml"
            file.write_text(scenario_of(nodes, latency))
            rows += [{"panel": panel, "nodes": nodes, "latency_ms": latency, **row}
                     for row in times_of(file, options)]
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table, options), table)]


def points(options):
    """(panel, nodes of a datacenter, latency in ms)."""
    for latency in LATENCIES_MS:
        yield "latency", options.nodes, latency
    for nodes in NODES:
        yield "nodes", nodes, options.latency


def scenario_of(nodes, latency_ms):
    """Two datacenters of nodes with 4 GPUs: 300 GB/s inside a node, 25 GB/s between nodes, 5 Gbps a
    node between the datacenters (the rates of levels-2dc)."""
    text = (f'[parallel]\nstages = {2 * nodes * GPUS}\nmicrobatches = 1\n'
            '[costs]\nforward = "1ms"\nmessage = "1MB"\n'
            f'[[link]]\nbetween = ["west", "east"]\nlatency = "{latency_ms:g}ms"\n')
    for number, name in enumerate(("west", "east")):
        first = number * nodes * GPUS
        text += (f'[[datacenter]]\nname = "{name}"\nstages = "{first}-{first + nodes * GPUS - 1}"\n'
                 f'[[node]]\ndatacenter = "{name}"\ngpus = {GPUS}\ndevice = "300GB/s"\n'
                 'internal = "25GB/s"\ninternal_latency = "5us"\n'
                 'egress = "5Gbps"\ningress = "5Gbps"\n')
    return text


def times_of(file, options):
    """A row for each algorithm in one piece, and for the bound."""
    said = json.loads(tools.run([tools.binary("longhaul"), "collective", file, "--kind", options.kind,
                                 "--bytes", options.bytes, "--algorithm", "all", "--json"]))
    found = said["collectives"]
    yield {"algorithm": BOUND, "seconds": found[0]["lower_bound_ns"] / 1e9}
    for each in found:
        yield {"algorithm": each["algorithm"], "seconds": each["duration_ns"] / 1e9}


def figure_of(table, options):
    plt = style.apply()
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True)
    ranks = 2 * options.nodes * GPUS
    for axes, panel, column, label, title in (
            (panels[0], "latency", "latency_ms", "latency between the datacenters (ms)",
             f"{options.nodes} nodes a datacenter ({ranks} ranks)"),
            (panels[1], "nodes", "nodes", f"nodes of a datacenter ({GPUS} ranks each)",
             f"{options.latency:g} ms between the datacenters")):
        part = table[table["panel"] == panel]
        for name, (colour, marker, dashes) in STYLES.items():
            rows = part[part["algorithm"] == name]
            if not rows.empty:
                axes.plot(rows[column], rows["seconds"], dashes, marker=marker or None,
                          markersize=4.5, color=colour, linewidth=1.3, label=name)
        axes.set_xscale("log", base=10 if panel == "latency" else 2)
        axes.set_yscale("log")
        axes.set_yticks(*ticks(table["seconds"]))
        values = sorted(part[column].unique())
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_xlabel(label)
        axes.set_title(title, loc="left", fontsize=9)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].set_ylabel("time (s), simulated")
    figure.suptitle(f"{options.kind} of {options.bytes} between two datacenters, in one piece",
                    x=0.07, ha="left", fontsize=11, fontweight="bold")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="center right", frameon=False,
                  fontsize=8.5)
    figure.subplots_adjust(left=0.07, right=0.79, top=0.84, bottom=0.14, wspace=0.07)
    return figure


def ticks(seconds):
    """1, 3, 10, ... times a power of ten, about what is drawn; and their texts."""
    values = [step * 10.0 ** power for power in range(-7, 5) for step in (1, 3)]
    kept = [value for value in values if seconds.min() / 3 < value < 3 * seconds.max()]
    return kept, [f"{value:g}" for value in kept]
