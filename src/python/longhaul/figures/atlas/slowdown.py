"""Slow-down over latency with one TCP connection, against one datacenter: shared by figures 2 and 3
of Atlas have in common."""

from dataclasses import dataclass

from longhaul.drawing import style
from longhaul.figures.atlas import inputs as atlas_inputs
from longhaul.running import predict

# Neither latency nor WAN rate: the nodes of one datacenter.
ONE_DATACENTER = ("link.latency=0ms", "link.bandwidth=100Gbps")
UNLIMITED = ("link.latency=0ms", "link.bandwidth=unlimited")
COLOURS = {10: "#9fc5e8", 20: "#3fa7d6", 30: "#0b5394", 40: "#4a148c"}


@dataclass(frozen=True)
class Inputs:
    """One choice of the inputs that the paper leaves open. `text`: on the axis below a group of
    bars."""

    model: str       # key of atlas_inputs.MODELS
    text: str
    overrides: tuple


def numbers(scenario, schedule, inputs):
    """A row for each choice and latency; 0: one datacenter at 100 Gbps."""
    places = {0: ONE_DATACENTER, -1: UNLIMITED}
    places |= {ms: (f"link.latency={ms}ms", "link.connections=1")
               for ms in atlas_inputs.LATENCIES_MS}
    asked = {(one, ms): predict.Question(scenario, (schedule,), (*one.overrides, *place))
             for one in inputs for ms, place in places.items()}
    said = predict.ask_all(asked.values())

    def entry(one, ms):
        return said[asked[one, ms]][schedule]
    return [{"model": one.model, "inputs": one.text, "latency_ms": ms, "schedule": schedule,
             "iteration_s": predict.seconds(entry(one, ms)),
             "slowdown": predict.seconds(entry(one, ms)) / predict.seconds(entry(one, 0)),
             "communication": 1 - predict.seconds(entry(one, -1)) / predict.seconds(entry(one, ms)),
             "idle": 1 - atlas_inputs.utilization(entry(one, ms)),
             "overrides": " ".join(one.overrides)}
            for one in inputs for ms in (0, *atlas_inputs.LATENCIES_MS)]


def figure_of(table, title, note, published):
    """`published`: {model: the paper's share of communication at 40 ms}."""
    plt = style.apply()
    names = list(dict.fromkeys(table["model"]))
    figure, axes = plt.subplots(1, len(names), figsize=(10.4, 4.2), sharey=True)
    top = table["slowdown"].max()
    for panel, name in zip(axes, names):
        own = table[table["model"] == name]
        _panel(panel, own, top)
        panel.set_title(f"{atlas_inputs.MODELS[name].name}; the paper: {published[name]:g}% "
                        "communication at 40 ms", loc="left")
    axes[0].set_ylabel("iteration over that in one datacenter")
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=colour, edgecolor="black", lw=0.4,
                             label=f"{ms} ms") for ms, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.suptitle(title, x=0.06, y=0.985, ha="left", fontsize=11, fontweight="bold")
    figure.text(0.06, 0.08, note, fontsize=7.5, va="bottom")
    figure.subplots_adjust(left=0.06, right=0.985, top=0.86, bottom=0.27, wspace=0.05)
    return figure


def _panel(axes, rows, top):
    labels = list(dict.fromkeys(rows["inputs"]))
    step = 0.84 / len(COLOURS)
    for place, label in enumerate(labels):
        own = rows[rows["inputs"] == label].set_index("latency_ms")
        for index, (ms, colour) in enumerate(COLOURS.items()):
            x, height = place - 0.42 + (index + 0.5) * step, own.loc[ms, "slowdown"]
            axes.bar(x, height, step * 0.94, color=colour, edgecolor="black", linewidth=0.4)
            axes.annotate(f"{height:.1f}", (x, height), xytext=(0, 2), fontsize=6,
                          textcoords="offset points", ha="center", va="bottom", rotation=90)
        share = 100 * own.loc[40, "communication"]
        axes.annotate(f"{share:.1f}%", (place, top * 1.16), ha="center", fontsize=7.5)
    axes.set_ylim(0, top * 1.24)
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
