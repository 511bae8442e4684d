"""MT-NLG in one, two and three datacenters, by stages or by replicas, over the latency."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import inputs

FIGURE = Figure(
    "vtrain-sites",
    summary="MT-NLG in 1, 2 and 3 datacenters at 10 to 40 ms: the fastest plan of each",
    shows="MT-NLG in 1, 2 and 3 datacenters at 10 to 40 ms: the fastest static plan of each",
    repeat=Repeat("vtrain", seconds=30, simulate=("--simulate",)))
LATENCIES_MS = (10, 20, 30, 40)
GPUS = 2240
NAMES = ("a", "b", "c")


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def scenario(sites, latency, directory):
    """Datacenters that hold the GPUs together alone."""
    share = -(-GPUS // sites) + (0 if sites == 1 else 280)
    text = ("[model]\npreset = \"mt-nlg-530b\"\n[parallel]\nglobal_batch = 1920\n"
            "[search]\nmachine = \"selene\"\n")
    for name in NAMES[:sites]:
        text += f"[[datacenter]]\nname = \"{name}\"\ngpus = {share}\nprice = 5\n"
    if sites > 1:
        text += (f"[[link]]\nbetween = \"all\"\nlatency = \"{latency}ms\"\n"
                 "bandwidth = \"5Gbps\"\n")
    path = directory / f"sites-{sites}-{latency}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def draw(options):
    del options
    import tempfile
    from pathlib import Path
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for sites in (1, 2, 3):
            for latency in LATENCIES_MS if sites > 1 else (0,):
                plans = inputs.plans("--gpus", GPUS, "--tensor", "8", "--keep", "all",
                                     "--exhaustive", "--data", "8,16", "--pipeline", "35",
                                     "--micro-batch", "1,2", "--sharding", "zero1", "--recompute",
                                     "full,selective", "--memory", "any",
                                     scenario=scenario(sites, latency, Path(directory)))
                for split in ("stages", "replicas"):
                    own = plans[[place["split"] == split and len(place["datacenters"]) == sites
                                 for place in plans["placement"]]]
                    if own.empty:
                        continue
                    best = own.loc[own["iteration_ns"].idxmin()]
                    rows.append({"datacenters": sites, "latency_ms": latency, "split": split,
                                 "layout": f"({best['tensor']}, {best['data']}, "
                                           f"{best['pipeline']})",
                                 "schedule": best["schedule"],
                                 "iteration_s": inputs.seconds(best),
                                 "utilisation": best["utilisation"]})
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.2, 4.0))
    one = table[table["datacenters"] == 1].iloc[0]
    axes.axhline(one["iteration_s"], color="black", linewidth=0.9, label="one datacenter")
    for (sites, split), own in table[table["datacenters"] > 1].groupby(["datacenters", "split"]):
        axes.plot(own["latency_ms"], own["iteration_s"], marker="o", markersize=4,
                  label=f"{sites} datacenters, by {split}")
    axes.set_xlabel("latency, one way (ms)")
    axes.set_ylabel("iteration (s)")
    axes.set_ylim(bottom=0)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_title("MT-NLG on 2,240 A100, 5 Gbps a GPU between sites", loc="left",
                   fontweight="bold")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
