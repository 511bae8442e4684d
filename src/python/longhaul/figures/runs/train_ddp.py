"""What an iteration takes beside PyTorch's DistributedDataParallel, over a real rate and delay."""

import json
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.running import tools

FIGURE = Figure(
    "train-ddp",
    summary="an iteration of bench_train beside PyTorch DDP over gloo, on the same sites",
    shows="an iteration of `bench_train` beside PyTorch's DDP, on sites with a real rate and delay "
          "([training.md](training.md#beside-pytorch))",
    needs="PyTorch, root, or a result of `scripts/compare-ddp`",
    options="[--measure]",
    repeat=Repeat("stella", measure=("--measure",), minutes=5, needs="root"))
COLOURS = {"ddp": "#1f1f1f", "ddp+buckets": "#555555", "ddp+fp16": "#8a8a8a", "none": "#0b5394", "fp16": "#3fa7d6"}
OTHERS = ("#c2185b", "#2aa552", "#f0b400", "#c9561a")
NAMES = {"ddp": "PyTorch DDP", "ddp+buckets": "PyTorch DDP, small buckets", "ddp+fp16": "PyTorch DDP, fp16 hook"}


def add_arguments(parser):
    parser.add_argument("--measure", action="store_true",
                        help="run scripts/compare-ddp first, unless its result is there")
    parser.add_argument("--results", metavar="FILE",
                        help="what scripts/compare-ddp --out wrote (default: runs/train-ddp.json)")
    parser.add_argument("--extra", metavar="'OPTIONS'", default="",
                        help="options for scripts/compare-ddp, as one word")


def draw(options):
    file = Path(options.results or f"runs/{FIGURE.name}.json")
    if options.measure and not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        tools.run([tools.ROOT / "scripts" / "compare-ddp", *options.extra.split(), "--out", file])
    try:
        answer = json.loads(file.read_text())
        table = table_of(answer)
    except OSError as error:
        raise Failure(f"no result {file} ({error.strerror}). Draw with --measure.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{file}: no result of scripts/compare-ddp ({error}). Give one.") from error
    return [Drawn(FIGURE.name, figure_of(table, answer), table)]


def table_of(answer):
    """A row for each system and rate: milliseconds."""
    return pd.DataFrame([{
        "rate": at["rate"], "system": row["system"], "measured_ms": row["iteration_ns"] / 1e6,
        "least_ms": row["least_ns"] / 1e6, "largest_ms": row["largest_ns"] / 1e6,
        "wan_kb": row["wan_bytes"] / 1e3, "speed_up": row["speed_up"], "loss": row["loss"],
        "n": answer["iterations"] // 2, "runs": row["runs"], "command": answer["command"],
        "commit": answer["commit"], "load_average": answer["load_average"],
        "load_average_during": answer["load_average_after"], "time_scale": 1, "measurement": 1,
        "measurements": 1, "lateness_credit_ns": 0, "payload_sent_bytes": row["wan_bytes"],
        "payload_nominal_bytes": row["wan_bytes"], "torch": answer["torch"]}
        for at in answer["rates"] for row in at["rows"]])


def figure_of(table, answer):
    plt = style.apply()
    rates = list(dict.fromkeys(table["rate"]))
    systems = list(dict.fromkeys(table["system"]))
    colours = COLOURS | dict(zip([each for each in systems if each not in COLOURS], OTHERS))
    figure, axes = plt.subplots(figsize=(7.6, 4.0))
    width = 0.84 / len(systems)
    for place, system in enumerate(systems):
        mine = table[table["system"] == system].set_index("rate").reindex(rates)
        at = [index - 0.42 + (place + 0.5) * width for index in range(len(rates))]
        axes.bar(at, mine["measured_ms"], 0.92 * width, color=colours.get(system, "#bf8fe0"),
                 label=style.plain(NAMES.get(system, f"bench_train, {system}")))
        axes.vlines(at, mine["least_ms"], mine["largest_ms"], color="#777777", linewidth=1.2)
        for x, (_, row) in zip(at, mine.iterrows()):
            axes.annotate(f"{row['measured_ms']:.3g}", (x, row["largest_ms"]), xytext=(0, 2),
                          textcoords="offset points", ha="center", fontsize=7)
    axes.set_ylim(0, 1.1 * table["largest_ms"].max())
    axes.set_xticks(range(len(rates)), [f"{rate} a site" for rate in rates])
    axes.set_ylabel("an iteration (ms), measured")
    axes.set_title(f"{answer['scenario']}: {answer['ranks']} ranks, {answer['latency']} one way, torch "
                   f"{answer['torch']}: median of {answer['repeat']} runs, and their range",
                   loc="left", fontsize=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="lower center", ncol=3, frameon=False,
                  fontsize=8)
    figure.subplots_adjust(left=0.1, right=0.98, top=0.91, bottom=0.2)
    return figure
