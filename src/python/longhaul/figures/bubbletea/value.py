"""Training time, prompt tokens and p99 TTFT of all schedules, and what the search by worth finds.

Candidates are what the search chooses from; in the Pareto set are those that nothing else, what is
found included, is as good as in all three and better in one. At each price of prompts the search finds one schedule, which is also played where
blocks and prompts take other times than planned, so that training's delay is charged."""

import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked, value_picture
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-value",
    summary="training time, prompt tokens and TTFT: the Pareto set, and what is worth most",
    shows="training time, prompt tokens/s and p99 TTFT of all schedules, their Pareto set, and what "
          "the search by worth finds at three prices ([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=45, simulate=("--simulate",)),
    expected=(
        *(Expected(f"worth of what is found over the best candidate, {load}, at least", "bound",
                   low=1, column="worth_over_candidates", where=f"found=1; load={load}",
                   reduce="min",
                   why="It is never worth less than any that it could choose, by the formula of "
                       "prefill.md on what the answer says of each.")
          for load in ("backlog", "open")),
    ))
COMMON = ("--objective", "value", "--set", "parallel.gradient_sync=none", "--set",
          "datacenter.price=2")
LOADS = {
    "backlog": ("--backlog", "256", "--set", "run.iterations=10"),
    "open": ("--rate", "4", "--set", "prefill.slo_ttft=500ms"),
}
MOVES = {"backlog": "10000", "open": "40000"}  # so that all ends within a minute
PRICES = (0.01, 0.1, 1.0)  # $ of 10^6 tokens
NOISE = ("--set", "run.noise=0.05", "--set", "prefill.noise=0.05")


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, value_picture.figure_of(table), table)]


def numbers(options):
    rows = []
    for load, words in LOADS.items():
        own = []
        for price in PRICES:
            own += rows_at(options, load, (*COMMON, *words, "--prefill-price", f"{price:g}"), price)
        rows += with_pareto(own)
    return pd.DataFrame(rows)


def rows_at(options, load, words, price):
    """Of each candidate, and of what the search finds, the last one."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "best.csv"
        answer = asked.prefill(options, *words, "--search-moves", MOVES[load], "--schedule-out",
                               path, schedule="best")
        noisy = asked.prefill(options, *words, *NOISE, schedule=str(path))["schedules"][0]
    found, *candidates = answer["value"]["candidates"]
    rows = [row_of(one) for one in (*candidates, found)]
    worths = values(answer)
    for row, worth in zip(rows, (*worths[1:], worths[0])):
        row.update(load=load, price=price, found=0, worth_per_s=worth,
                   worth_over_candidates=worth / max(worths[1:]))
    rows[-1].update(found=1, **of_search(answer), **of_noise(noisy))
    return rows


def row_of(one):
    seconds = one["period_ns"] * 1e-9
    return {"schedule": one["schedule"], "period_s": seconds,
            "tokens_per_s": one["tokens_served"] / (one["iterations"] * seconds),
            "ttft_p99_s": one["ttft_p99_ns"] * 1e-9 if one["ttft_p99_ns"] is not None else None,
            "wait_mean_s": one["wait_mean_ns"] * 1e-9}


def values(answer):
    """$ a second of each that the answer names: all GPUs for the period of the fastest candidate,
    an iteration, and its prompt tokens. The first is what was found."""
    value = answer["value"]
    gpu_second = value["gpu_hour"] / 3600
    gpus = answer["stages"] * answer["replicas"]
    fastest = min(one["period_ns"] for one in value["candidates"][1:]) * 1e-9
    return [(one["iterations"] * gpus * fastest * gpu_second
             + one["tokens_served"] / 1e6 * value["prefill_price"])
            / (one["iterations"] * one["period_ns"] * 1e-9) for one in value["candidates"]]


def of_search(answer):
    search, cost = answer["value"]["search"], answer["schedules"][0]["cost"]
    return {"started_from": search["started_from"],
            "replicas_differ": int(search["replicas_differ"]),
            "gpus_saved": cost["gpus_saved"],
            "dollars_dedicated": cost["per_million_tokens_dedicated"],
            "dollars_in_bubbles": cost["per_million_tokens_bubbles"],
            "break_even_price": cost["break_even_price"]}


def of_noise(noisy):
    """Where blocks and prompts take other times: what training loses, and who pays for it."""
    return {"noisy_delay_ms": noisy["training_delay"]["total_ns"] * 1e-6,
            "noisy_blocks_delayed": noisy["training_delay"]["blocks_bound_by_prefill"],
            "noisy_gpus_saved": noisy["cost"]["gpus_saved"],
            "noisy_dollars_in_bubbles": noisy["cost"]["per_million_tokens_bubbles"],
            "noisy_break_even_price": noisy["cost"]["break_even_price"]}


def with_pareto(rows):
    """Of the rows of a load: is none as good in all three and better in one?"""
    def good(row):
        ttft = row["ttft_p99_s"]
        return (-row["period_s"], row["tokens_per_s"], -ttft if ttft is not None else -1e9)

    points = {good(row) for row in rows}
    for row in rows:
        own = good(row)
        row["pareto"] = int(not any(other != own and all(a >= b for a, b in zip(other, own))
                                    for other in points))
    return rows
