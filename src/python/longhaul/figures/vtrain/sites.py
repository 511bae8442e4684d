"""MT-NLG in one, two and three datacenters over the latency: static plans of the search by stages or
by replicas, in any memory, and what fits 80 GB: the fastest plan of static orders, and of those that
know the delays (CrossPipe's and Atlas'), found by the same search."""

import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.vtrain import inputs
from longhaul.running import tools

FIGURE = Figure(
    "vtrain-sites",
    summary="MT-NLG in 1, 2 and 3 datacenters at 10 to 40 ms: static plans and delay-aware orders",
    shows="MT-NLG in 1 to 3 datacenters at 10 to 40 ms: fastest static plans, and orders that know "
          "the delays",
    repeat=Repeat("vtrain", seconds=60, simulate=("--simulate",)))
LATENCIES_MS = (10, 20, 30, 40)
GPUS = 2240
NAMES = ("a", "b", "c")
SPACE = ("--gpus", GPUS, "--tensor", 8, "--pipeline", 35, "--data", "8,16", "--micro-batch", "1,2",
         "--recompute", "full,selective", "--sharding", "zero1")
STATIC = "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-h2,zbv"
AWARE = "cross-ud,cross-wave,atlas"


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
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for sites in (1, 2, 3):
            for latency in LATENCIES_MS if sites > 1 else (0,):
                path = scenario(sites, latency, Path(directory))
                rows += static_rows(sites, latency, path)
                if sites > 1:
                    rows += fitting_rows(sites, latency, path)
    table = pd.DataFrame(rows)
    say(table)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def static_rows(sites, latency, path):
    """The fastest of the search by stages and by replicas; memory is not asked."""
    plans = inputs.plans("--keep", "all", "--exhaustive", "--memory", "any", *SPACE, scenario=path)
    rows = []
    for split in ("stages", "replicas"):
        own = plans[[place["split"] == split and len(place["datacenters"]) == sites
                     for place in plans["placement"]]]
        if own.empty:
            continue
        best = own.loc[own["iteration_ns"].idxmin()]
        rows.append({"datacenters": sites, "latency_ms": latency, "split": split,
                     "orders": "static, any memory", "schedule": best["schedule"],
                     "micro_batch": best["micro_batch"], "iteration_s": inputs.seconds(best)})
    return rows


def fitting_rows(sites, latency, path):
    """Of those that fit 80 GB: the fastest of static orders, and of orders that know the delays."""
    rows = []
    for orders, schedules in (("static", STATIC), ("delay-aware", AWARE)):
        best = inputs.plans("--memory", "80GB", "--schedule", schedules, *SPACE,
                            scenario=path).iloc[0]
        rows.append({"datacenters": sites, "latency_ms": latency,
                     "split": best["placement"]["split"], "orders": orders,
                     "schedule": best["schedule"], "micro_batch": best["micro_batch"],
                     "iteration_s": inputs.seconds(best)})
    return rows


def say(table):
    own = table[table["orders"].isin(("static", "delay-aware"))].pivot_table(
        index=["datacenters", "latency_ms"], columns="orders", values="iteration_s")
    gain = 100 * (1 - own["delay-aware"] / own["static"])
    tools.say(f"{FIGURE.name}: in 80 GB the best delay-aware order is {gain.min():.1f} to "
              f"{gain.max():.1f}% faster than the best static one.")


LINES = (("replicas", "static, any memory", "static by replicas, any memory", ":", "v", "#999999"),
         ("stages", "static, any memory", "static by stages, any memory", "--", "o", "#999999"),
         (None, "static", "the best static order in 80 GB", "-", "s", "#c9561a"),
         (None, "delay-aware", "the best delay-aware order in 80 GB", "-", "D", "#0b5394"))


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.2), sharey=True)
    one = table[table["datacenters"] == 1].iloc[0]
    for axis, sites in zip(axes, (2, 3)):
        axis.axhline(one["iteration_s"], color="black", linewidth=0.9,
                     label="one datacenter, any memory")
        for split, orders, label, dashes, marker, colour in LINES:
            own = table[(table["datacenters"] == sites) & (table["orders"] == orders)
                        & (table["split"] == split if split else True)]
            axis.plot(own["latency_ms"], own["iteration_s"], dashes, marker=marker, markersize=5,
                      color=colour, label=label)
        axis.set_title(f"{sites} datacenters", loc="left", fontweight="bold")
        axis.set_xlabel("latency, one way (ms)")
        axis.set_xticks(LATENCIES_MS)
        axis.grid(color="#dddddd", linewidth=0.6)
    axes[0].set_ylabel("MT-NLG on 2,240 A100, 5 Gbps a GPU\nbetween sites: iteration (s)")
    axes[0].set_ylim(0.95 * table["iteration_s"].min(), 1.05 * table["iteration_s"].max())
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncol=3, frameon=False)
    figure.subplots_adjust(left=0.09, right=0.98, top=0.92, bottom=0.26, wspace=0.06)
    return figure
