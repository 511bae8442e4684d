"""Training time, tokens and p99 TTFT of every schedule, and which is worth most."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-value",
    summary="schedules by training time, prompt tokens and TTFT, and which is worth most",
    shows="schedules by iterations and prompt tokens a second, and which is worth most "
          "([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=30, simulate=("--simulate",)),
    expected=(
        Expected("worth of the chosen schedule over the best", "bound", low=1, high=1,
                 column="worth", where="chosen=1", reduce="min",
                 why="It is never worse than any that it could choose, by the formula of "
                     "prefill.md on what the answer says of each."),
    ))
SCHEDULES = "gpipe,1f1b,varuna,atlas"
PRICES = ("0.01", "0.1", "1")  # $ of 10^6 tokens


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def numbers(options):
    rows = []
    for price in PRICES:
        answer = asked.prefill(options, "--backlog", "512", "--objective", "value",
                               "--prefill-price", price, "--set", "run.iterations=20",
                               schedule=SCHEDULES)
        value = answer["value"]
        worths = values(answer)
        for one, found, worth in zip(value["candidates"], answer["schedules"], worths):
            seconds = found["period_ns"] * found["iterations"] * 1e-9
            rows.append({"price": float(price), "schedule": one["schedule"],
                         "iterations_per_s": 1e9 / one["period_ns"],
                         "tokens_per_s": one["tokens_served"] / seconds,
                         "ttft_p99_ms": one["ttft_p99_ns"] / 1e6,
                         "worth": worth / max(worths),
                         "chosen": int(one["schedule"] == value["chosen"])})
    return pd.DataFrame(rows)


def values(answer):
    """$ a second of each schedule: all GPUs for the period of the fastest, an iteration, and its
    prompt tokens."""
    value, schedules = answer["value"], answer["schedules"]
    gpu_second = value["gpu_hour"] / 3600
    gpus = answer["stages"] * answer["replicas"]
    fastest = min(one["period_ns"] for one in schedules) * 1e-9
    return [(one["iterations"] * gpus * fastest * gpu_second
             + one["tokens_served"] / 1e6 * value["prefill_price"])
            / (one["iterations"] * one["period_ns"] * 1e-9) for one in schedules]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.4))
    for name, own in table.groupby("schedule"):
        axes.scatter(own["iterations_per_s"], own["tokens_per_s"], s=40)
        chosen = own[own["chosen"] == 1]["price"]
        note = f" (at {', '.join(f'{price:g} $' for price in chosen)})" if len(chosen) else ""
        axes.annotate(name + note, (own["iterations_per_s"].iloc[0], own["tokens_per_s"].iloc[0]),
                      xytext=(5, 5), textcoords="offset points", fontsize=8)
    axes.set_xlabel("iterations/s")
    axes.set_ylabel("prompt tokens/s")
    axes.margins(0.2)
    axes.set_title("Chosen at a price of 10^6 tokens, simulated", loc="left", fontweight="bold")
    figure.subplots_adjust(left=0.12, right=0.97, top=0.92, bottom=0.13)
    return figure
