"""Groups of bars, one for each method, over models."""

from matplotlib.ticker import FuncFormatter

from longhaul.drawing import style
from longhaul.figures.stella import cluster, methods


def panels(table, column, value, title, label, unit, note="", bands=None):
    """A panel for each value of `column`; in it a group for each model; a bar for each method, of
    `value`, on a logarithmic axis. Baselines have StellaTrain's batches. `bands`: {value of
    `column`: (low, high) of the paper}."""
    plt = style.apply()
    names = list(dict.fromkeys(table[column]))
    figure, grid = plt.subplots(1, len(names), figsize=(10.4, 4.6), sharey=True, squeeze=False)
    for panel, name in zip(grid[0], names):
        own = table[(table[column] == name) & (table["batches"] == "same")]
        groups(panel, own, value)
        panel.set_title(unit(name), loc="left")
        if bands:
            panel.axhspan(*bands[name], color="#f6e3b4", zorder=0, label="the paper: StellaTrain")
    headroom(grid[0][0])
    grid[0][0].set_ylabel(label)
    finish(figure, grid[0][0], title, note, columns=4)
    return figure


def groups(panel, table, value):
    models = list(dict.fromkeys(table["model"]))
    order = list(dict.fromkeys(table["method"]))
    step = 0.84 / len(order)
    for index, method in enumerate(order):
        found = table[table["method"] == method].set_index("model")[value]
        places = [models.index(model) - 0.42 + (index + 0.5) * step for model in found.index]
        panel.bar(places, found, step * 0.94, color=methods.COLOURS[method], edgecolor="black",
                  linewidth=0.4, label=methods.LABELS[method])
        for place, height in zip(places, found):
            panel.annotate(f"{height:.3g}", (place, height), xytext=(0, 2), ha="center",
                           va="bottom", textcoords="offset points", fontsize=6.5, rotation=90)
    panel.set_yscale("log")
    panel.set_xticks(range(len(models)), [cluster.NAMES[model] for model in models])
    panel.tick_params(axis="x", length=0)
    ground(panel)


def headroom(axes):
    """For the numbers above bars of a logarithmic axis, whose ticks are plain numbers."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 2)
    plain_ticks(axes)


def plain_ticks(axes):
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def ground(axes, both=False):
    axes.grid(axis="both" if both else "y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def finish(figure, first, title, note="", columns=3):
    """Title, legend of the first panel's labels and a note, below the panels."""
    height = figure.get_size_inches()[1]
    handles, labels = first.get_legend_handles_labels()
    rows = -(-len(labels) // columns)
    figure.suptitle(title, x=0.065, y=1 - 0.08 / height, ha="left", va="top", fontsize=11,
                    fontweight="bold")
    if labels:
        figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False)
    figure.text(0.065, (0.22 * rows + 0.12) / height, note, fontsize=7.5, va="bottom")
    lines = note.count("\n") + 1 if note else 0
    figure.subplots_adjust(left=0.065, right=0.985, top=1 - 0.62 / height, wspace=0.09,
                           bottom=(0.22 * rows + 0.16 * lines + 0.66) / height)
