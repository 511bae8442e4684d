"""Centauri figure 12 and section 5.4: one layer of LLaMA big under FSDP, batches of 1, 4 and 8."""

from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import bars, cells
from longhaul.figures.centauri.cells import OURS, Cell
from longhaul.papers import claims

FIGURE = Figure(
    "centauri-fig12",
    summary="one layer of LLaMA big under FSDP against min(1/alpha, 1/(1-alpha)) (Centauri 5.4)",
    shows="one layer of LLaMA big under FSDP",
    options="[--overlaps LIST]", repeat=Repeat("centauri", seconds=40))
BATCHES = (1, 4, 8)


def add_arguments(parser):
    cells.add_arguments(parser, ("serial", "zero3", "fsdp2", "zeropp", "coconet", "dist-einsum",
                                 *OURS))


def draw(options):
    asked = [Cell("centauri-fsdp", ("model.preset=llama-big", "model.layers=1",
                                    f"model.microbatch_size={batch}"),
                  at=(("batch", f"batch {batch}"),)) for batch in BATCHES]
    table = cells.numbers(asked, cells.wanted(options))
    serial = table[table["overlap"] == "serial"].set_index("batch")["makespan_ms"]
    table["speedup"] = [serial[row.batch] / row.makespan_ms for row in table.itertuples()]
    bounds = table[table["overlap"] == "serial"].set_index("batch")["speedup_bound"]
    table["cell"] = [f"{batch}: at most {bounds[batch]:.2f}" for batch in table["batch"]]
    table["group"] = ""
    figure = bars.grid(table, "cell", "group", "speedup",
                       "One layer of LLaMA big, FSDP16 on 2 nodes of cluster A, simulated",
                       "speedup over serial",
                       "At most: min(1/alpha, 1/(1-alpha)) of the ring that serial takes.")
    return [Drawn(FIGURE.name, figure, table.drop(columns=["cell", "group"]), verdicts(table))]


def verdicts(table):
    own = table[table["overlap"] == "serial"].set_index("batch")
    over = table[table["speedup"] > table["speedup_bound"] * 1.0005]
    falling = list(own["alpha"]) == sorted(own["alpha"], reverse=True)
    reached = table.groupby("batch", sort=False)["speedup"].max()
    return [claims.judge(
        "centauri-alpha", claims.HOLDS if falling and over.empty else claims.PARTLY,
        "alpha " + ", ".join(f"{alpha:.2f}" for alpha in own["alpha"]) + ", at most "
        + ", ".join(f"{most:.2f}" for most in own["speedup_bound"]) + ", reached "
        + ", ".join(f"{most:.2f}" for most in reached) + " at batch 1, 4, 8",
        "alpha is of each row's own collectives: one that moves fewer bytes has another.")]
