"""Centauri figure 11: tensor, pipeline and data parallelism together on 6 nodes of cluster A."""

import re

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import bars, cells
from longhaul.figures.centauri.cells import OURS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig11",
    summary="TP, PP and DP of 48 GPUs, batches of 1, 2, 4 (Centauri figure 11)",
    shows="TP, PP and DP on 48 GPUs",
    options="[--overlaps LIST]",
    repeat=Repeat("centauri", seconds=300))
DIVISIONS = {"TP4+PP3+DP4": (4, 3, 4, 30), "TP2+PP3+DP8": (2, 3, 8, 30),
             "TP4+PP2+DP6": (4, 2, 6, 32)}
BATCHES = (1, 2, 4)


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "megatron", "syndicate", *OURS))


def draw(options):
    asked = [Cell("centauri-tp-pp-dp",
                  (f"parallel.tensor={tensor}", f"parallel.stages={stages}",
                   f"parallel.replicas={replicas}", f"model.layers={layers}",
                   f"model.microbatch_size={batch}"), "interleaved-1f1b",
                  (("division", name), ("batch", batch)))
             for name, (tensor, stages, replicas, layers) in DIVISIONS.items()
             for batch in BATCHES]
    table = cells.numbers(asked, cells.wanted(options))
    serial = table[table["overlap"] == "serial"].set_index(["division", "batch"])["makespan_ms"]
    table["speedup"] = [serial[row.division, row.batch] / row.makespan_ms
                        for row in table.itertuples()]
    figure = bars.grid(table, "division", "batch", "speedup",
                       "LLaMA big on 6 nodes of cluster A, 6 microbatches, simulated",
                       "speedup over serial",
                       "Below: sequences a GPU and microbatch. Interleaved 1F1B with two chunks.")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    own = table[table["overlap"] == "serial"]
    tensor = 100 * own["tp_ms"] / own["makespan_ms"]
    stages = 100 * own["pp_ms"] / own["makespan_ms"]
    replicas = 100 * own["dp_ms"] / own["makespan_ms"]
    below = claims.value("centauri-tp-pp-small")
    agree = int(((tensor + stages) < below).sum())
    return [*together(table), claims.judge(
        "centauri-tp-pp-small", claims.by_count(agree, len(own)),
        f"TP {claims.spread(tensor, '.1f', '%')} of the iteration, PP "
        f"{claims.spread(stages, '.1f', '%')}, DP {claims.spread(replicas, '.1f', '%')}",
        "Under serial, of the rank with the most; sequence parallelism in ports of 230 GB/s.")]


def together(table):
    """How many microbatches pass together in TP4+PP3+DP4: few at BS 4, more at small batches."""
    ours = cells.ours(table)
    own = table[(table["overlap"] == ours) & (table["division"] == "TP4+PP3+DP4")]
    if own.empty:
        return []
    stages, wanted = DIVISIONS["TP4+PP3+DP4"][1], int(claims.value("centauri-together"))
    chosen = {row.batch: groups_of(row.decided, stages) for row in own.itertuples()}
    agree = sum(set(groups) == {stages if batch == max(BATCHES) else wanted}
                for batch, groups in chosen.items())
    gains = cells.speedups(table, ours, "megatron", ("division", "batch"))
    return [claims.judge(
        "centauri-together", claims.by_count(agree, len(chosen)),
        "forward and backward " + ", ".join(f"{forward} and {backward} at batch {batch}"
                                            for batch, (forward, backward) in chosen.items()),
        f"{ours} gains {claims.spread(gains, '.3f')} over megatron.")]


def groups_of(decided, stages):
    """(forward, backward) of the words of a row; those of 1F1B where they name none."""
    found = re.search(r"(\d+) forward and (\d+) backward microbatches together", decided)
    return (int(found[1]), int(found[2])) if found else (stages, stages)
