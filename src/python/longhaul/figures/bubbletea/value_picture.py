"""The picture of bubbletea-value."""

import string

import numpy as np

from longhaul.drawing import style

TITLES = {"backlog": "A queue of 256 that never empties",
          "open": "400 prompts, 4 times the trace's rate, SLO 500 ms"}
# Small marks lie on large ones where two prices find the same.
FOUND = {0.01: ("o", "#f6cddd", 230), 0.1: ("s", "#d81b60", 110), 1.0: ("^", "#9fd0ff", 75)}
MEASURES = (("tokens_per_s", "prompt tokens/s, thousands", 1e-3),
            ("ttft_p99_s", "p99 TTFT, s", 1))


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(2, 3, figsize=(12.4, 7.6), width_ratios=(1, 1, 0.7))
    for column, load in enumerate(TITLES):
        own = table[table["load"] == load]
        letters = letters_of(own)
        for row, (measure, words, scale) in enumerate(MEASURES):
            draw_points(axes[row][column], own, letters, measure, scale)
            axes[row][column].set_ylabel(words)
        axes[1][column].set_xlabel("training: s an iteration\n" + key_of(letters), fontsize=9)
        axes[0][column].set_title(TITLES[load], loc="left", fontsize=10)
    draw_gpus(axes[0][2], table)
    draw_dollars(axes[1][2], table)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.suptitle("Training and prompts in its bubbles: 12 GPUs, simulated", x=0.05, ha="left",
                    fontweight="bold")
    figure.subplots_adjust(left=0.055, right=0.99, top=0.9, bottom=0.19, wspace=0.22, hspace=0.27)
    return figure


def letters_of(own):
    """Of the candidates in the Pareto set, by training time."""
    best = own[(own["found"] == 0) & (own["pareto"] == 1)].drop_duplicates("schedule")
    return dict(zip(best.sort_values("period_s")["schedule"], string.ascii_lowercase))


def key_of(letters):
    words = [f"{letter} {style.schedule_name(name)}" for name, letter in letters.items()]
    middle = (len(words) + 1) // 2
    return ", ".join(words[:middle]) + ",\n" + ", ".join(words[middle:])


def draw_points(axes, own, letters, measure, scale):
    """Left is faster; the best lie towards the upper left, of TTFT towards the lower left."""
    candidates = own[own["found"] == 0].drop_duplicates("schedule")
    for price, (marker, colour, size) in FOUND.items():
        some = own[(own["found"] == 1) & (own["price"] == price)]
        axes.scatter(some["period_s"], scale * some[measure], s=size, marker=marker, zorder=4,
                     facecolor=colour, edgecolor="black", linewidth=0.8,
                     label=f"found at {price:g} \\$ for 10$^6$ tokens")
    for is_best, look in ((1, {"facecolor": "#303030", "edgecolor": "#303030"}),
                          (0, {"facecolor": "white", "edgecolor": "#8a8a8a"})):
        some = candidates[candidates["pareto"] == is_best]
        axes.scatter(some["period_s"], scale * some[measure], s=18, zorder=5,
                     label="candidate in the Pareto set" if is_best else "other candidate", **look)
    for place, (name, letter) in enumerate(letters.items()):
        one = candidates[candidates["schedule"] == name].iloc[0]
        axes.annotate(letter, (one["period_s"], scale * one[measure]), ha="center", va="center",
                      xytext=(0, 13 if place % 2 else -13), textcoords="offset points", fontsize=9)
    axes.set_ylim(0, 1.15 * scale * own[measure].max())
    axes.margins(x=0.12)


def found_of(table, load):
    return table[(table["found"] == 1) & (table["load"] == load)].sort_values("price")


def draw_gpus(axes, table):
    for place, (load, hatch) in enumerate((("backlog", ""), ("open", "///"))):
        own = found_of(table, load)
        at = np.arange(len(own)) + 0.38 * (place - 0.5)
        bars = axes.bar(at, own["gpus_saved"], 0.36, color="#b9cbe3", edgecolor="#303030",
                        hatch=hatch, label="queue" if load == "backlog" else "open loop")
        axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=2)
    label_prices(axes, table)
    axes.margins(y=0.15)
    axes.set_ylabel("dedicated GPUs, always busy")
    axes.set_title("GPUs saved by what is found", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def draw_dollars(axes, table):
    """Of the queue: GPUs of their own, and training's delay where times are 5% off."""
    own = found_of(table, "backlog")
    parts = (("dollars_dedicated", "dedicated, always busy", "#d8d8d8"),
             ("noisy_dollars_in_bubbles", "in bubbles, times 5% off", "#d81b60"))
    for place, (name, words, colour) in enumerate(parts):
        at = np.arange(len(own)) + 0.38 * (place - 0.5)
        bars = axes.bar(at, 100 * own[name], 0.36, color=colour, edgecolor="#303030", label=words)
        axes.bar_label(bars, labels=[cents_text(each) for each in own[name]], fontsize=8, padding=2)
    label_prices(axes, table)
    axes.set_ylim(0, 135 * own["dollars_dedicated"].max())
    axes.set_xlabel("price of 10$^6$ prompt tokens")
    axes.set_ylabel("cents for 10$^6$ prompt tokens")
    axes.set_title("Prompts of the queue; delay charged", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def cents_text(dollars):
    if dollars == 0:
        return "0"
    return f"{100 * dollars:.1f}" if dollars >= 1e-3 else "< 0.1"


def label_prices(axes, table):
    prices = sorted(table["price"].unique())
    axes.set_xticks(range(len(prices)), [f"{price:g} \\$" for price in prices])
