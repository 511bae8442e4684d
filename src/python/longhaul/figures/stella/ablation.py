"""StellaTrain without its parts: priority, staleness, cheap host tasks (5.2, 5.3)."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.figures.stella.methods import Run
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "stella-ablation",
    summary="StellaTrain without priority, staleness, cheap compression and optimizer (5.2, 5.3)",
    shows="StellaTrain without priority, without staleness, with costlier tasks on the host (5.2, "
          "5.3)",
    options="[--kernels FILE]",
    repeat=Repeat("stella", seconds=50, simulate=("--simulate",)),
    expected=(
        Expected("11.3% and 17.3% alone make, by product (%)", "exact", low=26.6, high=26.7,
                 column="product_percent", where="without=both; host=1 thread, paper",
                 why="1 - (1 - 0.113) (1 - 0.173)."),))
RATES = (100, 500, 1000)
SYNC, FCFS = "train.staleness=0", "train.serve=arrival"
PARTS = {"staleness": (SYNC,), "priority": (FCFS,), "both of them": (SYNC, FCFS)}
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.75)  # of the largest rate whose exchange is hidden
FRESH_MODEL = "vit-b-16"
KEPT = tools.SCENARIOS / "stella-kernels.csv"
HOSTS = {"16 threads": ("train.host_threads=16",), "1 thread": ("train.host_threads=1",),
         "1 thread, no staleness": ("train.host_threads=1", SYNC)}  # 16 are the paper's


@dataclass(frozen=True)
class Costs:
    """Of ViT-B-16's 88 M numbers on its host, in ms. `single`: steps on single numbers."""

    block: float
    topk: float
    sparse: float
    single: float
    dense: float
    command: str = ""  # that measured them, and its program's commit
    commit: str = ""


# 5.3 and figure 13. Of top-k it gives nothing: threshold without blocks takes 3.35 times as long.
PAPER = Costs(block=33.5, topk=3.35 * 33.5, sparse=1.34, single=10.2, dense=172)
ON_GPU = {"compress": 1e3 * methods.GPU_COMPRESSION_S, "optimize": 172 / 17.2}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--kernels", metavar="FILE",
                        help="costs on a host: what bench_compress --out wrote (default: "
                             "benchmarks/scenarios/stella-kernels.csv)")


def draw(options):
    table = numbers(measured(options.kernels))
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def measured(path):
    """Costs of a record of bench_compress, or of the kept one."""
    if path:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        found = {one["name"]: 1e3 * one["median_s"] for one in record["kernels"]}
        command, commit = provenance.command_of(record), provenance.commit_of(record)
    else:
        kept = pd.read_csv(KEPT, comment="#")
        found = dict(zip(kept["kernel"], kept["median_ms"]))
        command, commit = str(kept["command"].iloc[0]), str(kept["commit"].iloc[0])
    return Costs(found["threshold of blocks of 16"], found["topk of single numbers"],
                 found["momentum skip"], found["momentum skip of single numbers"],
                 found["momentum dense"], command, commit)


def without_parts():
    """Each model whole, without staleness, without priority, and without both."""
    return [Run(method, model, mbps, more=more, at=(("without", name),))
            for model in cluster.MODELS for mbps in RATES for method in methods.STELLA
            for name, more in {"nothing": (), **PARTS}.items()]


def with_shares():
    """More and less than what is hidden."""
    seconds = cluster.slowest(FRESH_MODEL, cluster.EIGHT.gpus,
                              methods.batch_of(Run("stella", FRESH_MODEL, 100)))
    hidden = methods.kept(Run("stella", FRESH_MODEL, 100), seconds)
    return [Run("stella", FRESH_MODEL, 100, more=(f"train.compress.keep={share * hidden:.6g}",),
                at=(("without", "share"), ("share", share),
                    ("keep_percent", 100 * share * hidden))) for share in SHARES]


def with_costs(sets):
    """ViT-B-16 at 1 Gbps and 1%, at which costs were taken, with each host and choice of tasks."""
    found = []
    for name, costs in sets.items():
        choices = {"neither": (costs.block, costs.sparse), "top-k": (costs.topk, costs.single),
                   "dense SGD": (costs.block, costs.dense), "both": (costs.topk, costs.dense)}
        for host, words in HOSTS.items():
            for choice, (compress, optimize) in choices.items():
                more = ("train.compress.keep=1%", *words,
                        f"train.costs.compress={compress / 12:.4f}ms",
                        f"train.costs.optimize={optimize / 12:.4f}ms")
                found.append(Run("stella", FRESH_MODEL, 1000, more=more,
                                 at=(("without", choice), ("host", f"{host}, {name}"),
                                     ("keep_percent", 1.0))))
    return found


def numbers(costs):
    table = methods.numbers([*without_parts(), *with_shares(),
                             *with_costs({"paper": PAPER, "measured": costs})])
    keys = ["model", "mbps", "method", "host"]
    table["host"] = table["host"].fillna("")
    measured_costs = table["host"].str.endswith(", measured")
    for column in ("command", "commit"):  # of the run that measured the costs
        table[column] = [getattr(costs, column) if one else "" for one in measured_costs]
    whole = table[table["without"].isin(["nothing", "neither"])].set_index(keys)["iteration_ms"]
    table["slower_percent"] = [
        100 * (1 - whole.get(key, float("nan")) / own)
        for key, own in zip(table[keys].itertuples(index=False, name=None), table["iteration_ms"])]
    alone = 1 - claims.value("stella-topk") / 100, 1 - claims.value("stella-dense-sgd") / 100
    both = table["without"] == "both of them"  # against staleness alone left out
    sync = table[table["without"] == "staleness"].set_index(keys)["iteration_ms"]
    table.loc[both, "slower_percent"] = [
        100 * (1 - sync[key] / own) for key, own in
        zip(table.loc[both, keys].itertuples(index=False, name=None), table["iteration_ms"][both])]
    table["product_percent"] = 100 * (1 - alone[0] * alone[1])
    return table


def slower(table, without, **where):
    """{reading: percent} of runs without a part."""
    own = table[table["without"] == without]
    for column, value in where.items():
        own = own[own[column] == value]
    return {key: list(part["slower_percent"]) for key, part in own.groupby("method")}


def percent(found):
    """For people; no "-0.0"."""
    return claims.spread([round(one, 1) + 0.0 for one in found], ".1f", "%")


def by_gains(claim, found):
    return claims.over_inputs(found, lambda one: claims.at_least(one, claims.value(claim)))


def verdicts(table):
    return [fresh(table), priority(table), staleness(table), *of_costs(table), offloaded(table)]


def fresh(table):
    own = table[(table["without"] == "nothing") & (table["model"] == FRESH_MODEL)]
    found = own.groupby("method")["fresh_percent"].apply(list)
    claim = "stella-fresh"
    at = table[table["without"] == "share"].set_index("share")["fresh_percent"]
    return claims.judge(
        claim, claims.over_inputs([one for values in found for one in values],
                                  lambda one: claims.within(one, claims.value(claim))),
        f"{percent(found['stella'])} (hidden), "
        f"{percent(found['stella-eq6'])} (eq. 6)",
        f"By the share of numbers kept: {at[0.5]:.0f}% fresh at half of what is hidden, "
        f"{at[1.25]:.0f}% at 1.25 times as many.")


def priority(table):
    found = slower(table, "priority", model="resnet152")
    sync = slower(table, "both of them", model="resnet152")
    claim = "stella-priority"
    return claims.judge(
        claim, by_gains(claim, [max(values) for values in (*found.values(), *sync.values())]),
        f"{percent(found['stella'])} (hidden), {percent(found['stella-eq6'])} (eq. 6); without "
        f"staleness {percent(sync['stella'])} (hidden), {percent(sync['stella-eq6'])} (eq. 6)",
        "An exchange that has an iteration to spare has no order that matters: priority is for "
        "weights that are needed at once.")


def staleness(table):
    found = slower(table, "staleness")
    swin = slower(table, "staleness", model="swin-b")["stella"]
    readings = {(method, "same"): values for method, values in found.items()}
    return claims.judge("stella-staleness", methods.of_range("stella-staleness", readings),
                        f"{percent(found['stella'])} (hidden), "
                        f"{percent(found['stella-eq6'])} (eq. 6)",
                        f"Swin-B, which the paper says 22% of: {percent(swin)} "
                        "(hidden).")


def source(table):
    """Command and commit of the run that measured costs."""
    own = table[table["command"] != ""].iloc[0]
    return f"{own['command']}, commit {own['commit']}"


def of_costs(table):
    judged = []
    for claim, choice in (("stella-topk", "top-k"), ("stella-dense-sgd", "dense SGD"),
                          ("stella-both", "both")):
        own = table[table["without"] == choice].set_index("host")["slower_percent"]
        why = ("By costs of the paper (of top-k only threshold without blocks is known) and by "
               "those of one core here; 16 workers hide all of them beside the blocks. "
               f"Measured by {source(table)}.")
        if choice == "both":
            why += (f" The paper's two alone make {table['product_percent'].iloc[0]:.1f}%; tasks "
                    "that were hidden one by one may cost more together.")
        judged.append(claims.judge(claim, by_gains(claim, list(own)), "; ".join(
            f"{percent([value])} ({host})" for host, value in own.items()), why))
    return judged


def shares():
    """{reading: percent of the time that compression and optimization take in line with F and B},
    of ViT-B-16 on GPUs at alpha."""
    found = {}
    for gpu in ("rtx4090", "rtx2080ti"):
        alpha, beta = cluster.throughput(FRESH_MODEL, gpu)
        for name, cost in (("on the GPU", sum(ON_GPU.values())),
                           ("on the host", PAPER.topk + PAPER.dense)):
            found[f"{gpu}, {name}"] = 100 * cost / (cost + 1e3 * alpha / beta)
    return found


def offloaded(table):
    del table
    claim, found = "stella-offloaded", shares()
    return claims.judge(
        claim, claims.over_inputs(found.values(), lambda one: claims.HOLDS
                                  if one > claims.value(claim) else claims.FAILS),
        "; ".join(f"{value:.0f}% ({name})" for name, value in found.items()),
        "Arithmetic on 5.3 and table 2: 39.9 and 10 ms on GPUs, 112 and 172 ms on hosts, with the "
        "paper's plain methods, beside a batch of alpha.")


def figure_of(table):
    plt = style.apply()
    figure, grid = plt.subplots(2, 2, figsize=(10.4, 7.4))
    _shares(grid[0][0], table[table["without"] == "share"])
    _parts(grid[0][1], table, "staleness", ("staleness",))
    _parts(grid[1][0], table, "priority", ("priority", "both of them"))
    _costs(grid[1][1], table[table["host"] != ""])
    bars.finish(figure, grid[1][0], "StellaTrain without its parts, simulated",
                "Stars and lines in red: the paper. Costs: ViT-B-16, 1 Gbps, 1% kept.", columns=2)
    figure.subplots_adjust(wspace=0.16, hspace=0.42)
    return figure


def _shares(axes, table):
    axes.plot(table["share"], table["fresh_percent"], "o-", color="#c2185b", markersize=3.5)
    axes.axhline(claims.value("stella-fresh"), color="#c4161c", linewidth=0.8, linestyle="--")
    axes.set_xlabel("numbers kept, over those that are just hidden")
    axes.set_ylabel("parts without staleness (%)")
    axes.set_title("Fresh parts of ViT-B-16, 100 Mbps", loc="left")
    bars.ground(axes)


def _parts(axes, table, part, left_out):
    groups = [(model, mbps) for model in cluster.MODELS for mbps in RATES]
    shown = [(method, without) for without in left_out for method in methods.STELLA]
    step = 0.84 / len(shown)
    for index, (method, without) in enumerate(shown):
        own = table[(table["without"] == without) & (table["method"] == method)]
        own = own.set_index(["model", "mbps"])["slower_percent"]
        sync = without == "both of them"
        axes.bar([place - 0.42 + (index + 0.5) * step for place in range(len(groups))],
                 [own[group] for group in groups], step * 0.94, color=methods.COLOURS[method],
                 edgecolor="black", linewidth=0.4, hatch="////" if sync else None,
                 label=methods.LABELS[method] + (", nothing stale" if sync else ""))
    for value in claims.values(f"stella-{part}"):
        axes.axhline(value, color="#c4161c", linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(groups)), [f"{'1G' if mbps == 1000 else mbps}\n"
                                         f"{cluster.NAMES[model] if mbps == 500 else ''}"
                                         for model, mbps in groups])
    axes.set_ylabel("slower (%)")
    axes.set_title(f"Without {part}, by bandwidth (Mbps)", loc="left")
    bars.ground(axes)


def _costs(axes, table):
    choices = ("top-k", "dense SGD", "both")
    hosts = list(dict.fromkeys(table["host"]))
    colours = ("#9fc5e8", "#3f7fbf", "#0b3a6b", "#f8dcc0", "#e09a50", "#8a4010")
    for index, (host, colour) in enumerate(zip(hosts, colours)):
        own = table[table["host"] == host].set_index("without")["slower_percent"]
        heights = [round(own[choice], 1) + 0.0 for choice in choices]
        bar = axes.bar([place - 0.35 + 0.14 * index for place in range(len(choices))], heights,
                       0.13, color=colour, edgecolor="black", linewidth=0.4, label=host)
        axes.bar_label(bar, fmt="%.3g", fontsize=6.5, padding=1)
    axes.plot(range(len(choices)), [claims.value(name) for name in
                                    ("stella-topk", "stella-dense-sgd", "stella-both")], "*",
              color="#c4161c", markersize=10)
    axes.set_xticks(range(len(choices)), choices)
    axes.set_ylabel("slower (%)")
    axes.set_title("Costlier tasks on the host", loc="left")
    axes.set_ylim(-1, 62)
    axes.legend(frameon=False, loc="upper left", ncols=2)
    bars.ground(axes)
