"""MT-NLG in one, two and three datacenters over the latency: static plans of the search, by stages or
by replicas, and, for those by stages, orders that know the delays (CrossPipe's and Atlas') on the
best layout's links, in as much memory for activations as 1F1B takes."""

import json
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
    shows="MT-NLG in 1, 2 and 3 datacenters at 10 to 40 ms: the fastest static plan of each, and the "
          "best order that knows the delays",
    repeat=Repeat("vtrain", seconds=60, simulate=("--simulate",)))
LATENCIES_MS = (10, 20, 30, 40)
GPUS = 2240
NAMES = ("a", "b", "c")
SPACE = ("--gpus", GPUS, "--tensor", 8, "--pipeline", 35, "--sharding", "zero1", "--memory", "any")
# The schedule of an emitted plan: static and delay-aware orders with its placement of chunks. All
# are held to 1F1B's memory for activations.
ORDERS = {"1f1b": (("1f1b", "zb-h1"), ("cross-ud", "atlas")),
          "zbv": (("zbv",), ("cross-wave",))}
AWARE = ("cross-ud", "atlas", "cross-wave")


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
                    rows += ordered_rows(sites, latency, path, Path(directory))
    table = pd.DataFrame(rows)
    say(table)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def static_rows(sites, latency, path):
    """The fastest of the search by stages and by replicas; memory is not asked."""
    plans = inputs.plans("--keep", "all", "--exhaustive", "--data", "8,16", "--micro-batch", "1,2",
                         "--recompute", "full,selective", *SPACE, scenario=path)
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


def ordered_rows(sites, latency, path, directory):
    """By stages, micro-batch 1, in 1F1B's memory: the best static and the best delay-aware order."""
    found = []
    for schedule, (static, aware) in ORDERS.items():
        emitted = directory / f"plans-{sites}-{latency}-{schedule}"
        answer = inputs.searched("--keep", "all", "--exhaustive", "--data", 8, "--micro-batch", 1,
                                 "--recompute", "selective", "--schedule", schedule, *SPACE,
                                 "--emit", emitted, scenario=path)
        place = next(number for number, plan in enumerate(answer["plans"])
                     if plan["placement"]["split"] == "stages"
                     and len(plan["placement"]["datacenters"]) == sites)
        played = json.loads(tools.run([
            tools.binary("longhaul"), "simulate", emitted / f"plan-{place}.toml", "--schedule",
            ",".join((*static, *aware)), "--set", "memory.budget=1", "--json"]))
        found += [entry for entry in played["schedules"] if not entry["over_budget"]]
    rows = []
    for orders in ("static", "delay-aware"):
        own = [entry for entry in found if (entry["schedule"] in AWARE) == (orders != "static")]
        best = min(own, key=lambda entry: entry["iteration_ns"])
        rows.append({"datacenters": sites, "latency_ms": latency, "split": "stages",
                     "orders": orders, "schedule": best["schedule"], "micro_batch": 1,
                     "iteration_s": best["iteration_ns"] / 1e9})
    return rows


def say(table):
    own = table[table["orders"].isin(("static", "delay-aware"))].pivot_table(
        index=["datacenters", "latency_ms"], columns="orders", values="iteration_s")
    gain = 100 * (1 - own["delay-aware"] / own["static"])
    tools.say(f"{FIGURE.name}: in 1F1B's memory the best delay-aware order is {gain.min():.1f} to "
              f"{gain.max():.1f}% faster than the best static one, by stages.")


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.4, 4.6))
    one = table[table["datacenters"] == 1].iloc[0]
    axes.axhline(one["iteration_s"], color="black", linewidth=0.9, label="one datacenter, static")
    lines = {("replicas", "static, any memory"): ("by replicas", ":", "v"),
             ("stages", "static, any memory"): ("by stages, any memory", "--", "o"),
             ("stages", "static"): ("by stages, static in 1F1B's memory", "-", "s"),
             ("stages", "delay-aware"): ("by stages, delay-aware in 1F1B's memory", "-", "*")}
    for sites, colour in ((2, "#0b5394"), (3, "#c9561a")):
        for (split, orders), (label, dashes, marker) in lines.items():
            own = table[(table["datacenters"] == sites) & (table["split"] == split)
                        & (table["orders"] == orders)]
            axes.plot(own["latency_ms"], own["iteration_s"], dashes, marker=marker, markersize=5,
                      color=colour, label=f"{sites}, {label}")
    axes.set_xlabel("latency, one way (ms)")
    axes.set_ylabel("iteration (s)")
    axes.set_ylim(0, 1.75 * table["iteration_s"].max())
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_title("MT-NLG on 2,240 A100, 5 Gbps a GPU between sites", loc="left",
                   fontweight="bold")
    axes.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)
    figure.tight_layout()
    return figure
