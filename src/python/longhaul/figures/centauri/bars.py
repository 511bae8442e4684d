"""Groups of bars, one for each overlap."""

from matplotlib.patches import Patch

from longhaul.drawing import style
from longhaul.figures.centauri.cells import OVERLAPS, TRAFFICS


def grid(table, columns, group, value, title, label, note="", bars="overlap", rows=1):
    """A panel for each value of `columns`, in it a group of bars for each of `group`: `value` of
    each overlap. What does not fit into memory is hatched."""
    plt = style.apply()
    names = list(dict.fromkeys(table[columns]))
    across = -(-len(names) // rows)
    figure, panels = plt.subplots(rows, across, figsize=(10.4, 1.2 + 3.1 * rows), sharey=True,
                                  squeeze=False)
    for panel, name in zip(panels.flat, names):
        _panel(panel, table[table[columns] == name], group, value, bars)
        panel.set_title(str(name), loc="left")
    for panel in list(panels.flat)[len(names):]:
        panel.set_visible(False)
    for line in panels:
        line[0].set_ylabel(label)
    shown = list(dict.fromkeys(table[bars]))
    handles = [Patch(facecolor=OVERLAPS.get(each, "#b08fc7"), edgecolor="black", linewidth=0.4,
                     label=each) for each in shown]
    if not table["fits"].all():
        handles.append(Patch(facecolor="white", edgecolor="black", hatch="////",
                             label="beyond the memory"))
    _finish(figure, handles, title, note, rows)
    return figure


def _panel(axes, table, group, value, bars):
    groups = list(dict.fromkeys(table[group]))
    shown = list(dict.fromkeys(table[bars]))
    step = 0.84 / len(shown)
    size = 6 if len(shown) * len(groups) <= 24 else 4.6  # labels stand beside each other
    for place, own in enumerate(groups):
        for index, each in enumerate(shown):
            found = table[(table[group] == own) & (table[bars] == each)]
            if found.empty:
                continue
            x, height = place - 0.42 + (index + 0.5) * step, found[value].iloc[0]
            axes.bar(x, height, step * 0.94, color=OVERLAPS.get(each, "#b08fc7"),
                     edgecolor="black", linewidth=0.4,
                     hatch=None if found["fits"].iloc[0] else "////")
            axes.annotate(f"{height:.2f}", (x, height), xytext=(0, 2), fontsize=size, ha="center",
                          va="bottom", rotation=90, textcoords="offset points")
    axes.set_xticks(range(len(groups)), [str(own) for own in groups])
    axes.tick_params(axis="x", length=0)
    axes.margins(y=0.18)
    _ground(axes)


def stacked(table, columns, title, label, note=""):
    """A panel for each value of `columns`, a bar for each overlap: exposed time by kind."""
    plt = style.apply()
    names = list(dict.fromkeys(table[columns]))
    figure, panels = plt.subplots(1, len(names), figsize=(10.4, 4.3), sharey=True, squeeze=False)
    for panel, name in zip(panels.flat, names):
        own = table[table[columns] == name]
        bottom = [0.0] * len(own)
        for kind, colour in TRAFFICS.items():
            heights = list(own[f"{kind}_exposed_ms"])
            panel.bar(range(len(own)), heights, 0.7, bottom=bottom, color=colour,
                      edgecolor="black", linewidth=0.4)
            bottom = [below + height for below, height in zip(bottom, heights)]
        panel.set_xticks(range(len(own)), list(own["overlap"]), rotation=30, ha="right")
        panel.set_title(str(name), loc="left")
        _ground(panel)
    panels[0][0].set_ylabel(label)
    handles = [Patch(facecolor=colour, edgecolor="black", linewidth=0.4, label=kind)
               for kind, colour in TRAFFICS.items()]
    _finish(figure, handles, title, note, 1.25)
    return figure


def _ground(axes):
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _finish(figure, handles, title, note, rows):
    height = figure.get_size_inches()[1]
    figure.suptitle(title, x=0.06, y=1 - 0.08 / height, ha="left", fontsize=11,
                    fontweight="bold", va="top")
    figure.text(0.06, 0.42 / height, note, fontsize=7.5, va="bottom")
    figure.legend(handles=handles, loc="lower center", ncols=min(len(handles), 9), frameon=False)
    low = 0.95 if rows != 1.25 else 1.35
    figure.subplots_adjust(left=0.06, right=0.985, top=1 - 0.62 / height, bottom=low / height,
                           wspace=0.06, hspace=0.34)
