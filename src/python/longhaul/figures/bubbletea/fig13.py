"""BubbleTea figure 13: two GPUs of Atlas, without and with prefill in their bubbles."""

import csv
import json
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib.patches import Patch

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked, fig13_measured
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "bubbletea-fig13",
    summary="two GPUs before and after: F, B, R, prefill, what stays idle (BubbleTea figure 13)",
    shows="two GPUs of Atlas without and with prefill in their bubbles; `--measure`: on ranks, by a "
          "plan and by a live controller, in about 8 minutes ([prefill.md](prefill.md))",
    options="[--measure]",
    repeat=Repeat("bubbletea", seconds=5, simulate=("--simulate",), measure=("--measure",),
                  minutes=8),
    expected=fig13_measured.EXPECTED)
RANKS = (1, 2)  # stages 1 and 2 of the first pipeline
COLOURS = {"F": "#4c72b0", "B": "#e08a2e", "R": "#2aa552", "prefill": "#c62828"}


def add_arguments(parser):
    asked.add_arguments(parser)
    fig13_measured.add_arguments(parser)


def draw(options):
    if options.measure or options.results:
        table = fig13_measured.table_of(options, RANKS)
        figure = fig13_measured.figure_of(table, RANKS, COLOURS)
        explain(figure, bottom=0.17, top=0.85)
        return [Drawn(fig13_measured.NAME, figure, table)]
    table, found, bubbles = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table, found), table, verdicts(table, found, bubbles))]


def numbers(options):
    longhaul = tools.binary("longhaul")
    with tempfile.TemporaryDirectory() as directory:
        placements = Path(directory) / "placements.csv"
        found = asked.one(options, "--backlog", "512", "--set", "run.iterations=3",
                          "--placements-out", placements)
        with placements.open(encoding="utf-8") as file:
            placed = [row for row in csv.DictReader(file) if row["answer"] == "placed"]
    bubbles = json.loads(tools.run([longhaul, "bubbles", asked.SCENARIO, "--schedule", "atlas",
                                    "--json"]))["schedules"][0]
    rows = []
    for rank in RANKS:
        ops = json.loads(tools.run([longhaul, "ops", asked.SCENARIO, "--schedule", "atlas",
                                    "--rank", rank, "--json"]))["ranks"][0]["lanes"][0]["ops"]
        own = [one for one in bubbles["bubbles"] if one["rank"] == rank]
        rows += blocks(rank, ops, own, bubbles["period_ns"])
        rows += [{"rank": rank, "kind": "prefill", "start_ns": int(row["start_ns"]),
                  "end_ns": int(row["end_ns"]), "tokens": int(row["tokens"])}
                 for row in placed if int(row["pipeline"]) == rank]
    return pd.DataFrame(rows), found, bubbles["bubbles"]


def blocks(rank, ops, bubbles, period):
    """Between two bubbles a GPU computes its blocks back to back."""
    begins = {one["before_op"]: one["end_ns"] % period for one in bubbles}
    time, rows = 0, []
    for op in ops:
        time = begins.get(op["op"], time)
        rows.append({"rank": rank, "kind": op["kind"], "start_ns": time,
                     "end_ns": time + op["duration_ns"], "tokens": 0})
        time += op["duration_ns"]
    return rows


def is_in_a_bubble(prefill, bubbles, period):
    """Does a bubble of its GPU hold it whole, in whatever iteration?"""
    for one in bubbles:
        begin = prefill.start_ns - (prefill.start_ns - one["start_ns"]) % period
        if one["rank"] == prefill.rank and prefill.end_ns <= begin + one["end_ns"] - one["start_ns"]:
            return True
    return False


def verdicts(table, found, bubbles):
    prefills = table[table["kind"] == "prefill"]
    least = (prefills["end_ns"] - prefills["start_ns"]).min() / 1e6
    small = found["idle_ns"]["too_small"] / sum(found["idle_ns"].values())
    held = sum(is_in_a_bubble(one, bubbles, found["period_ns"]) for one in prefills.itertuples())
    return [claims.judge("bubbletea-small-bubbles", claims.by_count(held, len(prefills)),
                         f"{held} of {len(prefills)} prefills lie in a bubble that holds them "
                         f"whole, the shortest takes {least:.1f} ms; {100 * small:.0f}% of what "
                         "stays idle is too small for the prompts that wait")]


def figure_of(table, found):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(10.4, 3.8))
    period = found["period_ns"]
    labels = []
    for place, (rank, filled) in enumerate((rank, filled) for rank in RANKS
                                           for filled in (False, True)):
        own = table[table["rank"] == rank]
        for kind, colour in COLOURS.items():
            if kind == "prefill" and not filled:
                continue
            # Prompts of the second iteration: the first one's begin is filled by none before it.
            shift = period if kind == "prefill" else 0
            spans = own[(own["kind"] == kind) & (own["end_ns"] > shift)
                        & (own["start_ns"] < shift + period)]
            axes.broken_barh([((row.start_ns - shift) / 1e9, (row.end_ns - row.start_ns) / 1e9)
                              for row in spans.itertuples()], (-place - 0.4, 0.8),
                             facecolor=colour, edgecolor="white", linewidth=0.2)
        labels.append(f"GPU {rank}, " + ("with prefill" if filled else "alone"))
    axes.set_yticks([-place for place in range(len(labels))], labels)
    axes.set_xlim(0, period / 1e9)
    axes.set_xlabel("s")
    idle = {cause: time for cause, time in found["idle_ns"].items() if time}
    text = ", ".join(f"{cause.replace('_', ' ')} {100 * time / sum(idle.values()):.0f}%"
                     for cause, time in idle.items())
    axes.set_title("One iteration of Atlas and a backlog of prompts, simulated; what stays idle: "
                   + text, loc="left", fontsize=9)
    explain(figure, bottom=0.22)
    return figure


def explain(figure, bottom, top=0.92):
    figure.legend(handles=[Patch(facecolor=colour, label=kind)
                           for kind, colour in COLOURS.items()],
                  loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.14, right=0.985, top=top, bottom=bottom)
