"""The verdicts on Centauri's claims over the inputs that the paper leaves open, one at a time."""

import argparse
import re
from dataclasses import dataclass

import matplotlib.pyplot as plt
import pandas as pd

from longhaul import progress
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import (cells, fig3, fig7, fig8, fig9, fig10, fig11, fig12, fig13,
                                       fig14)
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-inputs",
    summary="verdicts on Centauri's claims over widths, rates, ports, gradient bytes and chunks",
    shows="verdicts over the inputs that the paper leaves open",
    options="[--figures LIST]",
    repeat=Repeat("centauri", seconds=75))
#: What each figure is judged by: the paper's rules, or the search where it is small.
RULES = "centauri-rules"
JUDGED = {"fig3": (fig3, ""),
          "fig8": (fig8, f"serial,zero3,fsdp2,{RULES}"),
          "fig9": (fig9, f"serial,ddp,ooo,zero1,zero2,megatron,{RULES}"),
          "fig10": (fig10, f"serial,zero3,fsdp2,{RULES}"),
          "fig11": (fig11, f"serial,megatron,{RULES}"),
          "fig12": (fig12, f"serial,zero3,fsdp2,zeropp,{RULES}"),
          "fig7": (fig7, f"serial,megatron,{RULES}"),
          "fig13": (fig13, f"zero3,fsdp2,{RULES}"),
          "fig14": (fig14, f"serial,zero3,fsdp2,{RULES}")}
WIDTHS = {"small": 4096, "medium": 5120, "big": 6656, "large": 8192}  # hidden
#: The number of a verdict's words that its claim is about.
NUMBERS = {"centauri-largest-single": r"([\d.]+) times over zero3",
           "centauri-largest-hybrid": r"([\d.]+) times over zero3",
           "centauri-fsdp-gain": r"([\d.]+) over zero3",
           "centauri-memory-steps": r"batch 4: (\d+) of",
           "centauri-small-batches": r"at batch 1 ([\d.]+)",
           "centauri-tp-pp-small": r"([\d.]+)% of the iteration",
           "centauri-steps": r"([\d.]+) in all", "centauri-scale-b": r": (-?[\d.]+)%"}
MEANINGS = {"steps": "3: gain of all steps", "largest-single": "8: largest gain, FSDP",
            "fsdp-gain": "8: largest gain over zero3", "small-batches": "8: gain at batch 1, most",
            "dp-memory": "9: cells beyond memory, of 32",
            "largest-hybrid": "10: largest gain, hybrid", "fsdp-volume": "10: FSDP over DP, bytes",
            "fsdp-dominates": "10: divisions as said, of 12", "together": "11: passing together",
            "tp-pp-small": "11: TP of an iteration, most, %", "alpha": "12: alpha at batch 1",
            "memory-steps": "7: together at batch 4",
            "scale-clusters": "13: A reaches of B, least, %", "scale-b": "13: gain on B, 256 GPUs, %", "scale-hybrid": "14: gain on A, least"}
COLOURS = {claims.HOLDS: "#3f8f5f", claims.LARGER: "#3fa7d6", claims.PARTLY: "#e8c060",
           claims.FAILS: "#c2485b", claims.NOT_JUDGED: "#dddddd"}


@dataclass(frozen=True)
class Input:
    """A value of one of the open inputs. `of`: the overrides of a cell."""

    name: str
    of: object


def keys(*overrides):
    return lambda cell: overrides


def wide(cell):
    """MLPs of 4 times the hidden size for 8/3."""
    named = [part.rsplit("llama-", 1)[1] for part in cell.overrides if "model.preset=" in part]
    model = named[-1] if named else "small" if cell.scenario == "centauri-fsdp" else "big"
    return (f"model.intermediate={4 * WIDTHS[model]}",)


def over_pcie(cell):
    """A node of cluster A sends 16 GB/s; cluster B stays as it is."""
    is_b = any("centauri-b" in part for part in cell.overrides)
    return () if is_b else ("node.internal=128Gbps",)


INPUTS = (Input("as kept", keys()), Input("MLP 4 h", wide),
          Input("140 TFLOP/s", keys("model.achieved_flops=140e12")),
          Input("250 TFLOP/s", keys("model.achieved_flops=250e12")),
          Input("node at 128 Gbps", over_pcie),
          Input("ports 115 GB/s", keys("node.device=115GB/s")),
          Input("gradients of 4 bytes", keys("parallel.gradient_bytes=4")),
          Input("2 chunks", keys("overlap.max_chunks=2")),
          Input("8 chunks", keys("overlap.max_chunks=8")))


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--figures", metavar="LIST", default=",".join(JUDGED),
                        help="figures whose claims are judged; default: %(default)s")


def draw(options):
    rows = []
    for name in options.figures.split(","):
        module, overlaps = JUDGED[name]
        for each in INPUTS:
            progress.step(f"{name}, {each.name}")
            rows += judged(module, overlaps, each)
    table = pd.DataFrame(rows)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def judged(module, overlaps, each):
    """A row for each claim of a figure under one input."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    given = parser.parse_args([f"--overlaps={overlaps}"] if overlaps else [])
    with cells.with_inputs(each.of):
        drawn = module.draw(given)
    for one in drawn:
        plt.close(one.figure)
    return [{"claim": verdict.id, "input": each.name, "verdict": verdict.verdict,
             "number": number_of(verdict), "paper": verdict.theirs, "ours": verdict.ours}
            for one in drawn for verdict in one.verdicts]


def number_of(verdict):
    found = re.search(NUMBERS.get(verdict.id, r"(-?[\d.]+)"), verdict.ours)
    return float(found[1].rstrip(".")) if found else float("nan")


def figure_of(table):
    style.apply()
    names = list(dict.fromkeys(table["claim"]))
    inputs = list(dict.fromkeys(table["input"]))
    figure, axes = plt.subplots(figsize=(10.5, 0.42 * len(names) + 1.7))
    for row in table.itertuples():
        x, y = inputs.index(row.input), names.index(row.claim)
        axes.add_patch(plt.Rectangle((x, y), 0.96, 0.92, color=COLOURS[row.verdict]))
        axes.text(x + 0.48, y + 0.46, f"{row.number:g}", ha="center", va="center", fontsize=8)
    axes.set_xlim(0, len(inputs))
    axes.set_ylim(len(names), 0)
    axes.set_xticks([place + 0.48 for place in range(len(inputs))], inputs, rotation=20, ha="right")
    axes.set_yticks([place + 0.46 for place in range(len(names))],
                    [MEANINGS[name.removeprefix("centauri-")] for name in names])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for place, verdict in enumerate(each for each in COLOURS if each in set(table["verdict"])):
        figure.text(0.28 + 0.14 * place, 0.02, verdict, fontsize=8,
                    backgroundcolor=COLOURS[verdict])
    axes.set_title("Verdicts on the claims of Centauri's figures, one open input changed at "
                   "a time, simulated", loc="left", fontweight="bold", fontsize=10)
    figure.subplots_adjust(left=0.23, right=0.99, top=1 - 0.5 / figure.get_figheight(),
                           bottom=1.2 / figure.get_figheight())
    return figure
