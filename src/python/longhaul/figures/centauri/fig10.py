"""Centauri figure 10: FSDP and DP together on 6 nodes of cluster A, exposed time by kind."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import bars, cells
from longhaul.figures.centauri.cells import MODELS, OURS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig10",
    summary="FSDP16+DP3, 8+6, 4+12 on 48 GPUs: exposed time by kind (Centauri figure 10)",
    shows="FSDP and DP on 48 GPUs, exposed time by kind",
    options="[--overlaps LIST]", repeat=Repeat("centauri", seconds=130))
DIVISIONS = {16: "FSDP16+DP3", 8: "FSDP8+DP6", 4: "FSDP4+DP12"}


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "zero3", "fsdp2", *OURS))


def draw(options):
    asked = [Cell("centauri-fsdp-dp", (f"model.preset=llama-{model}", f"parallel.shard={shard}"),
                  at=(("model", model), ("division", name), ("shard", shard)))
             for shard, name in DIVISIONS.items() for model in MODELS]
    table = cells.numbers(asked, cells.wanted(options))
    figure = bars.stacked(table[table["model"] == "big"], "division",
                          "LLaMA big on 6 nodes of cluster A, batch 4, simulated",
                          "exposed communication (ms)",
                          "Of the rank with the most. All four models are in the table.")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    own = table[table["overlap"] == "zero3"]
    wide, narrow = own[own["shard"] == 16], own[own["shard"] < 16]
    agree = (int((wide["fsdp_exposed_ms"] > wide["dp_exposed_ms"]).sum())
             + int((narrow["dp_exposed_ms"] > narrow["fsdp_exposed_ms"]).sum()))
    shard, copies = 16, 3
    found = [claims.judge("centauri-largest-hybrid", claims.NOT_JUDGED, "", "No row centauri.")]
    ours = cells.ours(table)
    gains = cells.speedups(table, ours, "zero3", ("model", "shard"))
    if len(gains):
        fair = cells.speedups(table, ours, "fsdp2", ("model", "shard"))
        found = [claims.judge(
            "centauri-largest-hybrid",
            claims.at_least(gains.max(), claims.value("centauri-largest-hybrid")),
            f"{claims.spread(gains)} times over zero3, {claims.spread(fair)} over fsdp2",
            f"By {ours}. FSDP and DP, batch 4; figure 11 has tensor and pipeline parallelism.")]
    ratio = 3 * (shard - 1) / shard / (2 / shard * (copies - 1) / copies)
    return [
        *found,
        claims.judge("centauri-fsdp-volume",
                     claims.within(ratio, claims.value("centauri-fsdp-volume")), f"{ratio:.2f}",
                     "Bytes that a rank sends: two gathers and a scatter of all weights by rings "
                     "of 16, over an all-reduce of a shard by rings of 3."),
        claims.judge("centauri-fsdp-dominates", claims.by_count(agree, len(own)),
                     f"{agree} of {len(own)} divisions and models as said; at 16+3 FSDP exposes "
                     f"{claims.spread(wide['fsdp_exposed_ms'], '.0f')} ms and DP "
                     f"{claims.spread(wide['dp_exposed_ms'], '.0f')}, at 8+6 and 4+12 FSDP "
                     f"{claims.spread(narrow['fsdp_exposed_ms'], '.0f')} and DP "
                     f"{claims.spread(narrow['dp_exposed_ms'], '.0f')}",
                     "Under zero3, which is the paper's Zero1+2+3.")]
