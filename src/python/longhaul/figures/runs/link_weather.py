"""Links with weather over time, as a record of bench_pipeline has them, drawn."""

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

LINE_COLOURS = ("#3f7f5f", "#9a6a1f", "#5b5b9a", "#8a3f6a")
OUTAGE_COLOUR = "#d9d9d9"


def distinct(links):
    """Directions with the same weather are one line: (names, link)."""
    seen = []
    for link in links:
        back = f"{link['to']} to {link['from']}"
        like = {key: value for key, value in link.items() if key not in ("from", "to", "seed")}
        name = f"{link['from']} to {link['to']}"
        for other in seen:
            if other["like"] == like:
                if back in other["names"]:
                    other["names"][other["names"].index(back)] = f"{back} and back"
                else:
                    other["names"].append(name)
                break
        else:
            seen.append({"like": like, "names": [name], **like})
    return seen


def steps(link, key, scale, end):
    """Times and values until `end`, in seconds of the scenario and as played."""
    states = [(state["at_ns"] / scale, state[key]) for state in link.get("states", [])]
    if not states:
        states = [(0.0, link[key])]
    if link.get("repeat_ns"):
        period, once = link["repeat_ns"] / scale, states
        for turn in range(1, int(end / period) + 1):
            states = states + [(turn * period + at, value) for at, value in once]
    states = [state for state in states if state[0] < end] or states[:1]
    times_s = [at for at, _ in states] + [end]
    values = [value for _, value in states]
    return times_s, values


def draw_steps(axes, edges, values, unit, colour):
    if any(value is None for value in values):
        return
    axes.stairs([value / unit for value in values], edges, baseline=None, color=colour,
                linewidth=1.4)


def draw_outages(axes, links, scale, end):
    for link in links:
        for begin, length in link["outages_ns"]:
            if begin / scale < end:
                axes.axvspan(begin / scale, min(end, (begin + length) / scale),
                             color=OUTAGE_COLOUR, linewidth=0, zorder=0)


def draw(latency, rate, links, record_scale, end):
    """On axes in ms and Gbps, over seconds; `record_scale`: ns as played in a second."""
    for link, colour in coloured(links):
        draw_steps(latency, *steps(link, "latency_ns", record_scale, end), record_scale / 1e3,
                   colour)
        draw_steps(rate, *steps(link, "bits_per_second", record_scale, end),
                   1e18 / record_scale, colour)


def coloured(links):
    return [(link, LINE_COLOURS[i % len(LINE_COLOURS)]) for i, link in enumerate(links)]


def handles(links):
    """For a legend; one line needs no name."""
    found = []
    if len(links) > 1:
        found = [Line2D([], [], color=colour, lw=1.4, label=", ".join(link["names"]))
                 for link, colour in coloured(links)]
    if any(link["outages_ns"] for link in links):
        found.append(Patch(color=OUTAGE_COLOUR, label="outage: nothing moves"))
    return found
