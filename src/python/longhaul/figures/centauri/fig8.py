"""Centauri figure 8: FSDP of four models on 2 nodes of cluster A, batches of 1 to 8."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import bars, cells
from longhaul.figures.centauri.cells import MODELS, OURS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig8",
    summary="FSDP over 16 GPUs, 4 models x 4 batches, against the bound (Centauri figure 8)",
    shows="FSDP over 16 GPUs, 4 models x 4 batches",
    options="[--overlaps LIST]",
    repeat=Repeat("centauri", seconds=100))
BATCHES = (1, 2, 4, 8)
KEYS = ("model", "batch")


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "zero3", "fsdp2", "zeropp", *OURS))


def grid_of(scenario, batches=BATCHES, more=()):
    """A cell for each model and batch."""
    return [Cell(scenario, (f"model.preset=llama-{model}", f"model.microbatch_size={batch}",
                            *more), at=(("model", model), ("batch", batch)))
            for model in MODELS for batch in batches]


def draw(options):
    table = cells.numbers(grid_of("centauri-fsdp"), cells.wanted(options))
    table["of_bound"] = table["bound_ms"] / table["makespan_ms"]
    figure = bars.grid(table, "model", "batch", "of_bound",
                       "FSDP16 of LLaMA on 2 nodes of cluster A, simulated",
                       "bound over iteration (1: nothing is faster)",
                       "Below: sequences a GPU. A gather or scatter is a ring over all 16 ranks "
                       "unless the overlap says otherwise.")
    return [Drawn(FIGURE.name, figure, table, verdicts(table))]


def verdicts(table):
    plain = cells.speedups(table, "fsdp2", "zero3", KEYS)
    said = (f"fsdp2 over zero3 {claims.spread(plain)}, over the bound still "
            f"{claims.spread(100 * table[table['overlap'] == 'fsdp2']['gap'], '.1f', '%')}")
    ours = cells.ours(table)
    gains = cells.speedups(table, ours, "zero3", KEYS)
    if gains.empty:
        return [claims.judge(claim, claims.NOT_JUDGED, said, "This build has no row centauri.")
                for claim in ("centauri-fsdp-gain", "centauri-small-batches")]
    fair = cells.speedups(table, ours, "fsdp2", KEYS)
    small, large = gains[:, 1], gains.drop(1, level="batch")
    most = gains.idxmax()
    return [
        claims.judge("centauri-largest-single",
                     claims.at_least(gains.max(), claims.value("centauri-largest-single")),
                     f"{gains.max():.2f} times over zero3 ({most[0]}, batch {most[1]}), "
                     f"{fair.max():.2f} over fsdp2 at most", f"By {ours}."),
        claims.judge("centauri-fsdp-gain", gain_of(gains),
                     f"{claims.spread(gains)} over zero3, {claims.spread(fair)} over fsdp2; "
                     + by_batch(gains),
                     f"zero3 gathers an operator ahead; a layer at a time takes most: {said}."),
        claims.judge("centauri-small-batches",
                     claims.by_count(int(sum(large[model].min() > small[model]
                                             for model in small.index)), len(small)),
                     f"at batch 1 {claims.spread(small)}, above {claims.spread(large)}",
                     "Over zero3; a model counts where each larger batch gains more.")]


def gain_of(gains):
    """As large as the paper's, and growing with the batch: only then does all of it hold."""
    found = claims.at_least(gains.max(), claims.value("centauri-fsdp-gain"))
    grows = all(gains[model].is_monotonic_increasing for model in gains.index.unique("model"))
    return found if grows or found == claims.FAILS else claims.PARTLY


def by_batch(gains):
    return ", ".join(f"{claims.spread(own)} at batch {batch}"
                     for batch, own in gains.groupby(level="batch"))
