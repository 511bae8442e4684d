"""What each of Centauri's dimensions and tiers brings: alone, together, left out."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri import cells
from longhaul.figures.centauri.cells import Cell

FIGURE = Figure(
    "centauri-ideas",
    summary="each dimension and tier of Centauri alone, together and left out",
    shows="each dimension and tier alone, together, left out ([overlap.md](overlap.md))",
    repeat=Repeat("centauri", seconds=40))
DIMENSIONS = ("primitive", "group", "workload")
TIERS = ("operation", "layer", "model")
CELLS = (Cell("centauri-fsdp", at=(("cell", "FSDP16, batch 4"),)),
         Cell("centauri-fsdp", ("model.microbatch_size=1",), at=(("cell", "FSDP16, batch 1"),)),
         Cell("centauri-dp", ("parallel.gradient_sync=zero1",), at=(("cell", "DP16, batch 4"),)))


def allowed():
    """{name: options}. No idea at all: the scenario's units, one ahead, on lanes of their own. With
    tiers, but no dimension, only orders are decided: what a dimension alone has to be held against.
    """
    ideas = (*DIMENSIONS, *TIERS)
    some = {"none": ("operation",), "no dimension": TIERS}
    some |= {f"{one} alone": (one, *TIERS) for one in DIMENSIONS}
    some |= {f"{one} tier alone": (*DIMENSIONS, one) for one in TIERS}
    some["all"] = ideas
    some |= {f"without {one}": tuple(other for other in ideas if other != one) for one in ideas}
    return {name: ("--allow", ",".join(words)) for name, words in some.items()}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(_options):
    table = cells.by_option(CELLS, allowed(), ("centauri",))
    first = table[table["option"] == "none"].set_index("cell")["makespan_ms"]
    table["gain"] = [first[row.cell] / row.makespan_ms for row in table.itertuples()]
    return [Drawn(FIGURE.name, figure_of(table), table)]


def figure_of(table):
    plt = style.apply()
    names = list(dict.fromkeys(table["cell"]))
    figure, panels = plt.subplots(1, len(names), figsize=(10.4, 4.6), sharey=True, squeeze=False)
    for axes, name in zip(panels[0], names):
        own = table[table["cell"] == name]
        colours = ["#4a148c" if one == "all" else "#8a8a8a" if one.startswith("no") else
                   "#c9561a" if one.startswith("without") else "#3fa7d6" for one in own["option"]]
        axes.barh(range(len(own)), own["gain"], 0.7, color=colours, edgecolor="black",
                  linewidth=0.4)
        for place, gain in enumerate(own["gain"]):
            axes.annotate(f"{gain:.3f}", (gain, place), xytext=(2, 0), fontsize=6.5, va="center",
                          textcoords="offset points")
        axes.set_yticks(range(len(own)), list(own["option"]))
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.2)
        axes.set_title(name, loc="left")
        axes.set_xlabel("gain over no idea")
    panels[0][0].invert_yaxis()
    figure.suptitle("Centauri's ideas on cluster A, LLaMA small, simulated", x=0.02, y=0.98,
                    ha="left", fontsize=11, fontweight="bold")
    figure.subplots_adjust(left=0.15, right=0.99, top=0.87, bottom=0.12, wspace=0.06)
    return figure
