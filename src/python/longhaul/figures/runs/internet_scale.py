"""A step of a million GPUs in 10, 100 and 1,000 sites, planned and simulated part by part."""

import json
import math
import resource
import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.running import tools

FIGURE = Figure(
    "internet-scale",
    summary="a step of a million GPUs in 10, 100 and 1,000 sites: planned, simulated, at what cost",
    shows="a step of a million GPUs in 10, 100 and 1,000 sites: the best plan, and what finding it "
          "took ([sites.md](sites.md))",
    options="[--regions FILE]",
    repeat=Repeat("longhaul", seconds=120, simulate=("--simulate",), deterministic=False))
BLOCKS, SUMS, COST, MEMORY = "#0b5394", "#e69f00", "#555555", "#c2185b"
SCHEDULES = "1f1b,zb-h1,zbv"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")
    parser.add_argument("--regions", metavar="FILE",
                        help="measured pairs of regions (CSV; default: the table of longhaul)")
    parser.add_argument("--gpus", type=int, default=1_024_000, metavar="N",
                        help="default: %(default)s")
    parser.add_argument("--sites", default="10,100,1000", metavar="LIST",
                        help="default: %(default)s")
    parser.add_argument("--stages", default="8,16,32", metavar="LIST",
                        help="of a replica, tried (default: %(default)s)")
    parser.add_argument("--model", default="llama3-405b", metavar="PRESET",
                        help="default: %(default)s")
    parser.add_argument("--memory", type=float, default=80, metavar="GB",
                        help="of a GPU (default: %(default)s)")
    parser.add_argument("--uplink", default="10Tbps", metavar="RATE",
                        help="of a site (default: %(default)s)")


def draw(options):
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        asked = [(sites, options.gpus) for sites in numbers(options.sites)]
        asked += [(asked[-1][0], options.gpus // part) for part in (10, 4)]
        for sites, gpus in asked:
            for stages in numbers(options.stages):
                if gpus // sites >= 8 * stages:
                    rows += played(options, Path(directory), sites, gpus, stages)
    table = chosen(pd.DataFrame(rows), options)
    tools.say(growth(table, options.gpus))
    return [Drawn(FIGURE.name, figure_of(table, options), table)]


def numbers(text):
    return [int(word) for word in text.split(",")]


def played(options, directory, sites, gpus, stages):
    """Rows of one layout on so many sites: both tours, with recomputation and without."""
    rows = []
    for tour in ("shortest", "drawn"):
        scenario = directory / f"{sites}-{gpus}-{stages}-{tour}.toml"
        tools.run([tools.binary("longhaul"), "scenario", "--sites", sites, "--gpus", gpus,
                   "--stages", stages, "--microbatches", stages, "--model", options.model,
                   "--uplink", options.uplink, "--tour", tour, "--out", scenario,
                   *(["--regions", options.regions] if options.regions else [])])
        for recompute in ("true", "false"):
            before = processor_seconds()
            answer = json.loads(tools.run([
                tools.binary("longhaul"), "simulate", scenario, "--hierarchical", "--schedule",
                SCHEDULES, "--set", f"memory.recompute={recompute}", "--json"]))
            spent = processor_seconds() - before
            rows += [{"sites": sites, "gpus": answer["ranks"], "tour": tour, "stages": stages,
                      "recompute": recompute, "schedule": one["schedule"],
                      "iteration_s": one["iteration_ns"] / 1e9,
                      "last_block_s": one["last_block_ns"] / 1e9,
                      "tokens_per_s": one["tokens_per_second"], "busy": one["busy"],
                      "memory_gb": one["memory_bytes"] / 1e9, "ops": one["ops"],
                      "played": one["played"], "op_lists": one["op_lists"],
                      "answer_cpu_s": spent, "answer_mib": answer["peak_bytes"] / 2**20}
                     for one in answer["schedules"]]
        scenario.unlink()
    return rows


def processor_seconds():
    """Of the programs that have ended: load of the machine is not in it."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def chosen(table, options):
    """Marks the plan of each number of sites and GPUs: most tokens a second of those that fit."""
    table["fits"] = table["memory_gb"] <= options.memory
    table["best"] = False
    fitting = table[table["fits"] & (table["tour"] == "shortest")]
    table.loc[fitting.groupby(["sites", "gpus"])["tokens_per_s"].idxmax(), "best"] = True
    return table


def growth(table, gpus):
    """Powers with which time and memory of the answers grow."""
    of_calls = table.groupby(["sites", "gpus"]).agg(
        {"answer_cpu_s": "max", "answer_mib": "max"}).reset_index()
    whole = of_calls[of_calls["gpus"] > 0.9 * gpus].sort_values("sites")
    most = of_calls[of_calls["sites"] == of_calls["sites"].max()].sort_values("gpus")
    return "\n".join(
        f"from {first[by]:,.0f} to {last[by]:,.0f} {by}: {first['answer_cpu_s']:.1f} to "
        f"{last['answer_cpu_s']:.1f} s (power {power(first, last, by, 'answer_cpu_s'):.2f}), "
        f"{first['answer_mib']:.0f} to {last['answer_mib']:.0f} MiB "
        f"(power {power(first, last, by, 'answer_mib'):.2f})"
        for by, rows in (("sites", whole), ("gpus", most)) if len(rows) > 1
        for first, last in [(rows.iloc[0], rows.iloc[-1])])


def power(first, last, by, what):
    return math.log(last[what] / first[what]) / math.log(last[by] / first[by])


def figure_of(table, options):
    plt = style.apply()
    figure, (times, costs) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(1.5, 1))
    best = table[table["best"] & (table["gpus"] > 0.9 * options.gpus)].sort_values("sites")
    for place, row in enumerate(best.itertuples()):
        same = table[(table["sites"] == row.sites) & (table["stages"] == row.stages)
                     & (table["gpus"] == row.gpus) & (table["schedule"] == row.schedule)
                     & (table["tour"] == "drawn") & (table["recompute"] == row.recompute)]
        bars = [(place, row), *((place + 0.38, one) for one in same.itertuples())]
        for where, one in bars:
            times.barh(where, one.last_block_s, 0.34, color=BLOCKS)
            times.barh(where, one.iteration_s - one.last_block_s, 0.34, left=one.last_block_s,
                       color=SUMS)
            times.text(one.iteration_s, where, f"  {one.iteration_s:.1f} s"
                       + ("" if one is row else ", sites as drawn"), va="center", fontsize=8)
    times.set_yticks(range(len(best)), [
        f"{row.sites:,} sites\n{row.schedule}, {row.stages} stages" for row in best.itertuples()])
    times.set_xlim(0, 1.95 * table.loc[best.index, "iteration_s"].max())
    times.invert_yaxis()
    times.set_xlabel("seconds of a step")
    times.bar(0, 0, color=BLOCKS, label="to the last block")
    times.bar(0, 0, color=SUMS, label="sums of gradients")
    times.legend(fontsize=8, loc="upper right")
    times.set_title(f"{options.gpus:,} GPUs, {options.model}, simulated", loc="left",
                    fontweight="bold")
    calls = table[table["gpus"] > 0.9 * options.gpus].groupby("sites").agg(
        {"answer_cpu_s": "max", "answer_mib": "max"})
    costs.loglog(calls.index, calls["answer_cpu_s"], "o-", color=COST,
                 label="processor seconds of an answer")
    costs.loglog(calls.index, calls["answer_mib"], "s--", color=MEMORY, label="MiB of memory")
    costs.set_xlabel("sites")
    costs.legend(fontsize=8)
    costs.set_title("What an answer costs", loc="left", fontweight="bold")
    figure.tight_layout()
    return figure
