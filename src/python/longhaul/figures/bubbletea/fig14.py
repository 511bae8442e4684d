"""BubbleTea figure 14: time to first token over the degree of the pipeline, by each reading."""

import json
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib.lines import Line2D

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.bubbletea import asked
from longhaul.papers import claims
from longhaul.papers.expected import Expected, of_claim
from longhaul.running import tools

FIGURE = Figure(
    "bubbletea-fig14",
    summary="TTFT of Llama 3 8B on pipelines of 1 to 8 GPUs (BubbleTea figure 14)",
    shows="time to first token over the pipeline's degree, by each reading "
          "([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=2),
    expected=(
        of_claim("bubbletea-pp8-short-ms", "512 tokens: PP = 8 adds (ms)", "calibrated", low=15.9,
                 high=16.1, why="The hop is chosen so: 16 / 7 ms."),
        of_claim("bubbletea-weights", "weights of a GPU at PP = 8 (GB)", "exact", low=2.007,
                 high=2.008, why="16.06 GB in 8 parts."),
        Expected("8,192 tokens, one after the other: PP = 1 over PP = 8", "exact", high=1,
                 column="over_pp8", where="reading=whole; tokens=8192; stages=1",
                 why="Stages that follow each other and hops take longer than one GPU."),
    ))
DEGREES = (1, 2, 4, 8)
TOKENS = (128, 256, 512, 1024, 2048, 4096, 8192)
HOP_MS = 16 / 7  # the paper's 16 ms at PP = 8 are 7 hops
WEIGHTS_GB = 16.060522496  # of Llama 3 8B, fp16
PCIE_GB_PER_S = 64
COLOURS = {"whole": "#444444", "2 chunks": "#2a7ab0", "16 chunks": "#2aa552",
           "weights swapped at PP = 1": "#c2185b"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="simulated whole prompts and arithmetic of the rest (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def profile():
    path = tools.ROOT / "benchmarks" / "requests" / "llama3-8b-a100.csv"
    return pd.read_csv(path, comment="#")


def whole_ms(points, tokens):
    """Linear between the profile's points, constant below the first."""
    below = points[points["tokens"] <= tokens].iloc[-1]
    above = points[points["tokens"] >= tokens].iloc[0]
    if above["tokens"] == below["tokens"]:
        return below["time_ns"] / 1e6
    share = (tokens - below["tokens"]) / (above["tokens"] - below["tokens"])
    return (below["time_ns"] + share * (above["time_ns"] - below["time_ns"])) / 1e6


def ttft_ms(time, stages, chunks):
    """Chunks of equal time behind each other: the last one leaves stage 1 after `time` / stages."""
    stage = time / stages / chunks
    return (chunks + stages - 1) * stage + (stages - 1) * HOP_MS


def simulated_ms(stages):
    """From its start to its end, of each of TOKENS: prompts some iterations apart in GPipe's long
    bubbles, on pipelines of `stages` DP-cells."""
    with tempfile.TemporaryDirectory() as folder:
        requests, placed = Path(folder, "prompts.jsonl"), Path(folder, "placed.csv")
        requests.write_text("".join(json.dumps(
            {"timestamp": 10_000 * number, "input_length": tokens, "output_length": 1}) + "\n"
            for number, tokens in enumerate(TOKENS)), encoding="utf-8")
        tools.run([tools.binary("longhaul"), "prefill", asked.SCENARIO, "--schedule", "gpipe",
                   "--requests", requests, "--policy", "earliest", "--placements-out", placed,
                   "--set", f"parallel.replicas={3 * stages}", "--set", f"prefill.stages={stages}",
                   "--set", f"prefill.hop={round(1e6 * HOP_MS)}ns"])
        times = pd.read_csv(placed)
    if (times["answer"] != "placed").any():
        raise Failure(f"bubbletea-fig14: a prompt was refused on {stages} stages. Lengthen the bubbles.")
    return dict(zip(times["tokens"], (times["end_ns"] - times["start_ns"]) / 1e6))


def numbers():
    points = profile()
    whole = {stages: simulated_ms(stages) for stages in DEGREES}
    rows = []
    for tokens in TOKENS:
        time = whole_ms(points, tokens)
        for reading in COLOURS:
            chunks = {"2 chunks": 2, "16 chunks": 16}.get(reading)
            found = {stages: ttft_ms(time, stages, chunks) if chunks else whole[stages][tokens]
                     for stages in DEGREES}
            if reading.startswith("weights"):
                found[1] += 1e3 * WEIGHTS_GB / PCIE_GB_PER_S
            for stages, ms in found.items():
                rows.append({"reading": reading, "tokens": tokens, "stages": stages,
                             "ttft_ms": ms, "over_pp8": ms / found[8],
                             "ms_a_token": time / tokens})
    return pd.DataFrame(rows)


def _one(table, reading, tokens, stages):
    own = table[(table["reading"] == reading) & (table["tokens"] == tokens)
                & (table["stages"] == stages)]
    return own.iloc[0]


def verdicts(table):
    short = {k: _one(table, "whole", 512, k)["ttft_ms"] for k in (1, 8)}
    added = short[8] - short[1]
    ratio = 100 * (short[8] / short[1] - 1)
    long = {reading: 100 * (_one(table, reading, 8192, 1)["over_pp8"] - 1) for reading in COLOURS}
    wanted = claims.value("bubbletea-pp1-long")
    nearest = min(long, key=lambda reading: abs(long[reading] - wanted))
    said = ", ".join(f"{reading}: {value:+.0f}%" for reading, value in long.items())
    part = WEIGHTS_GB / 8
    swap = 60 / PCIE_GB_PER_S
    return [
        claims.judge("bubbletea-pp8-short",
                     claims.within(ratio, claims.value("bubbletea-pp8-short")),
                     f"{ratio:.1f}%", f"{short[1]:.1f} ms at PP = 1 by the published profile."),
        claims.judge("bubbletea-pp8-short-ms",
                     claims.within(added, claims.value("bubbletea-pp8-short-ms")),
                     f"{added:.1f} ms", "The hop is chosen so."),
        claims.judge("bubbletea-pp1-long", claims.within(long["whole"], wanted),
                     f"{long['whole']:+.1f}% without chunks",
                     f"Nearest reading: {nearest} ({said}). Stages that follow each other cannot "
                     "be faster than one GPU."),
        claims.judge("bubbletea-weights", claims.within(part, claims.value("bubbletea-weights")),
                     f"{part:.4f} GB"),
        claims.judge("bubbletea-swap", claims.within(swap, claims.value("bubbletea-swap")),
                     f"{swap:.4f} s")]


def figure_of(table):
    plt = style.apply()
    readings = list(COLOURS)
    figure, panels = plt.subplots(1, len(DEGREES), figsize=(10.4, 3.9), sharey=True)
    for axes, stages in zip(panels, DEGREES):
        for reading in reversed(readings):  # whole prompts on top: on one GPU chunks change nothing
            if reading.startswith("weights") and stages > 1:
                continue  # as whole prompts
            own = table[(table["reading"] == reading) & (table["stages"] == stages)]
            axes.plot(own["tokens"], own["ttft_ms"], color=COLOURS[reading], marker="o",
                      markersize=3, linewidth=1.2)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(f"PP = {stages}", loc="left")
        axes.set_xlabel("tokens")
        axes.grid(color="#dddddd", linewidth=0.6)
    panels[0].set_ylabel("time to first token, ms (without waiting)")
    handles = [Line2D([], [], color=COLOURS[reading], marker="o", markersize=3, label=reading)
               for reading in readings]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.suptitle("Llama 3 8B, A100 profile, hop 16/7 ms; whole prompts simulated, the rest composed",
                    x=0.06, ha="left", fontweight="bold")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.84, bottom=0.27, wspace=0.08)
    return figure
