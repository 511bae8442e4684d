"""How long a decision takes, from 12 to 100,000 GPUs."""

import json
import os
import shlex
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.replacing import replacing
from longhaul.running import awake, measuring, tools

FIGURE = Figure(
    "bubbletea-placement",
    summary="time of a decision on 12 to 100,000 GPUs, each with bubbles of its own; by a look at "
            "all of them on up to 1,000",
    shows="time of a decision on 12 to 100,000 GPUs, and by a look at all pipelines on 12 to 1,000 "
          "(section 6.5; [prefill.md](prefill.md))",
    needs="`bench_placement`",
    repeat=Repeat("bubbletea", measure=("--measure",), minutes=1),
    expected=(
        Expected("12 GPUs: p99 of a decision (us)", "published", high=100,
                 column="controller_p99_us", where="gpus=12", kind="measured",
                 why="The paper finds a bubble within this time."),
        Expected("1,000 GPUs: p99 of a decision (us)", "published", high=200,
                 column="controller_p99_us", where="gpus=1000", kind="measured",
                 why="The paper finds one of 1,000 GPUs within this time."),
    ))

SAID = "decisions.json"


def add_arguments(parser):
    measuring.add_once(parser, f"runs/{FIGURE.name}")


def draw(options):
    directory = measuring.directory_of(options)
    if options.measure and not (directory / SAID).is_file():
        measure(directory)
    table = read(directory)
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def measure(directory):
    """Keeps what bench_placement says, with what ran, of which commit, and the 1-minute load before
    it."""
    command = [tools.binary("bench_placement"), "--benchmark_format=json",
               "--benchmark_filter=^decide/earliest"]
    facts = {"command": shlex.join(str(tools.from_root(word)) if isinstance(word, Path) else word
                                   for word in command),
             "commit": tools.program_commit(), "load_average": os.getloadavg()[0]}
    with awake.held(awake.is_virtual()):
        facts["awake_processors"] = awake.count()
        said = {"facts": facts, "benchmarks": json.loads(tools.run(command))["benchmarks"]}
    directory.mkdir(parents=True, exist_ok=True)
    with replacing(directory / SAID) as file:
        json.dump(said, file, indent=1)


def read(directory):
    try:
        said = json.loads((directory / SAID).read_text(encoding="utf-8"))
        return table_of(said["benchmarks"]).assign(**said["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"{directory / SAID}: no result of bench_placement ({error}). Draw with "
                      "--measure.") from error


def table_of(benchmarks):
    """A row for each number of GPUs, at half of the idle time; none of a look at all pipelines above
    1,000."""
    rows = {}
    for one in benchmarks:
        name, gpus, load = one["name"].split("/")[1:4]
        if load != "50":
            continue
        by = {"earliest": "controller", "earliest_of_all": "of_all"}[name]
        rows.setdefault(int(gpus), {"gpus": int(gpus)}).update(
            {f"{by}_{part}_us": one[f"{part}_ns"] / 1e3 for part in ("mean", "median", "p99")})
    return pd.DataFrame(rows.values())


def verdicts(table):
    found = table.set_index("gpus")
    said = []
    for gpus in (12, 1000):
        name = f"bubbletea-placement-{gpus}"
        p99, limit = found.loc[gpus, "controller_p99_us"], claims.value(name)
        said.append(claims.judge(name, claims.HOLDS if p99 < limit else claims.FAILS,
                                 f"p99 {p99:.2f} us, mean "
                                 f"{found.loc[gpus, 'controller_mean_us']:.2f} us"))
    return said


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    for by, name, line in (("controller", "by the index", "-"),
                           ("of_all", "by a look at all pipelines", ":")):
        for part, colour in (("median", "#2a7ab0"), ("p99", "#c2185b")):
            axes.plot(table["gpus"], table[f"{by}_{part}_us"], line, marker="o", color=colour,
                      label=f"{name}: {part}")
    for gpus, limit in ((12, 100), (1000, 200)):
        axes.plot([gpus], [limit], marker="v", color="#444444")
        axes.annotate("paper: below", (gpus, limit), xytext=(6, -3), textcoords="offset points",
                      fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("GPUs")
    axes.set_ylabel("us a decision")
    axes.legend(frameon=False)
    axes.set_title("Decisions on 10^6 prompts, measured on one core", loc="left",
                   fontweight="bold")
    figure.subplots_adjust(left=0.11, right=0.97, top=0.92, bottom=0.13)
    return figure
