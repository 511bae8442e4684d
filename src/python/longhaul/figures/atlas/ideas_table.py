"""The pictures of atlas-ideas: seconds of every schedule, and the gain of ideas over 1F1B."""

import textwrap

import pandas as pd

from longhaul.drawing import textgrid

PLACE = ["ratio", "microbatches", "latency_ms", "budget"]
FASTER, SLOWER = (0.42, 0.65, 0.90), (0.93, 0.55, 0.45)
FULL_COLOUR = 0.4  # of the own share of 1F1B
COLUMN_INCHES = 0.56     # at least,
COLUMNS_INCHES = 4.6     # and this for all of them, where the title and the note have to fit
LETTERS_PER_INCH = 15    # of a note
COLUMNS = ("Columns: time of a transfer at one node's rate, in F; microbatches; latency one way; "
           "memory for activations over that of 4 microbatches.")

# Ideas combined -> (D and W apart, row, share).
IDEAS = {
    "sharing": (False, "1f1b", "shared"),
    "D/W": (True, "1f1b", "own"),
    "order (Varuna's)": (False, "varuna", "own"),
    "order (delay-aware)": (False, "cross-ud", "own"),
    "order (searched)": (False, "best", "own"),
    "sharing, D/W": (True, "1f1b", "shared"),
    "sharing, order of Varuna": (False, "varuna", "shared"),
    "sharing, order of Atlas": (False, "atlas", "shared"),
    "sharing, order of atlas-even": (False, "atlas-even", "shared"),
    "sharing, delay-aware": (False, "cross-ud", "shared"),
    "sharing, searched": (False, "best", "shared"),
    "D/W, delay-aware": (True, "cross-ud", "own"),
    "D/W, searched": (True, "best", "own"),
    "all three, delay-aware": (True, "cross-ud", "shared"),
    "all three, searched": (True, "best", "shared"),
}


def text_of(split, recompute):
    return ("D/W" if split else "B") + (", R" if recompute else "")


def gains_of(table):
    """The gain of each combination of ideas over 1F1B with its own share and whole B, in
    percent."""
    found = table.set_index([*PLACE, "kind", "row", "share"])
    lines = []
    for recompute in (True, False):
        for idea, (split, row, share) in IDEAS.items():
            for place in dict.fromkeys(table[PLACE].itertuples(index=False, name=None)):
                entry = found.loc[(*place, text_of(split, recompute), row, share)]
                reference = found.loc[(*place, text_of(False, recompute), "1f1b", "own")]
                line = {"ideas": idea, "recompute": recompute, **dict(zip(PLACE, place)),
                        "gain_percent": gain(entry, reference, "makespan_ns"),
                        "over_budget": entry["over_budget"]}
                if "measured_ns" in table:
                    line["measured_gain_percent"] = gain(entry, reference, "measured_ns")
                lines.append(line)
    return pd.DataFrame(lines).round({"gain_percent": 2, "measured_gain_percent": 2})


def gain(entry, reference, column):
    return 100 * (1 - entry[column] / reference[column])


def times(table, places, headings):
    """Rows: schedules; columns: the inputs. A cell: seconds, over the own share of 1F1B with B."""
    found = table.set_index([*PLACE, "kind", "row", "share"])
    least = table[~table["over_budget"]].groupby(PLACE)["makespan_ns"].min()
    cells, colours, bold = [], [], set()
    for index, (_, kind, row, share) in enumerate(headings):
        entries = [found.loc[(*place.key, kind, row, share)] for place in places]
        whole = text_of(False, kind.endswith("R"))
        references = [found.loc[(*place.key, whole, "1f1b", "own")] for place in places]
        cells.append([seconds(entry) for entry in entries])
        colours.append([colour_of(gain(entry, reference, "makespan_ns"))
                        for entry, reference in zip(entries, references)])
        bold |= {(index, column) for column, (entry, place) in enumerate(zip(entries, places))
                 if not entry["over_budget"] and entry["makespan_ns"] == least[place.key]}
    return textgrid.draw(textgrid.Grid(
        "Seconds of an iteration, 12 GPUs in 3 datacenters",
        [place.text for place in places], [heading[0] for heading in headings], cells, colours,
        bold, groups_of(places), "schedule, backward",
        **layout(places, 1.6, times_note(table))))


def times_note(table):
    lines = [COLUMNS, "atlas+: the pipelines take turns on the WAN; without: each has its own "
             "share. B: backward whole; D/W: in two. R: blocks are recomputed.",
             "Blue: less than 1f1b of the same memory policy (R or not) with its own share and "
             "whole B; red: more. Bold: the least of a column. *: over the memory budget."]
    if "measured_ns" in table:
        lines.append("Above: simulated; below, where it is there: the median on ranks.")
    return lines


def layout(places, row_heading_inches, lines):
    """Few columns are wider, many leave room for longer lines of the note."""
    column_inches = max(COLUMN_INCHES, COLUMNS_INCHES / len(places))
    letters = int(LETTERS_PER_INCH * (row_heading_inches + column_inches * len(places)))
    note = "\n".join(textwrap.fill(line, letters) for line in lines)
    return {"note": note, "column_inches": column_inches,
            "row_heading_inches": row_heading_inches}


def seconds(entry):
    text = f"{entry['makespan_ns'] * 1e-9:.3f}" + ("*" if entry["over_budget"] else "")
    if "measured_ns" in entry and pd.notna(entry["measured_ns"]):
        text += f"\n{entry['measured_ns'] * 1e-9:.3f}"
    return text


def gains(table, places):
    """Rows: ideas; columns: the inputs. A cell: percent less than 1F1B without any of them."""
    found = table.set_index(["recompute", "ideas", *PLACE])
    rows, cells, colours = [], [], []
    for recompute in (True, False):
        for idea in IDEAS:
            entries = [found.loc[(recompute, idea, *place.key)] for place in places]
            rows.append(idea + (", R" if recompute else ""))
            cells.append([percent(entry) for entry in entries])
            colours.append([colour_of(entry["gain_percent"]) for entry in entries])
    lines = [COLUMNS, "Percent less than 1f1b with its own share of the WAN and whole backward "
             "passes. R: blocks are recomputed, there too. *: over the memory budget."]
    if "measured_gain_percent" in table:
        lines.append("Above: simulated; below, where it is there: of the medians on ranks.")
    return textgrid.draw(textgrid.Grid(
        "What ideas take off 1f1b, in percent, 12 GPUs in 3 datacenters",
        [place.text for place in places], rows, cells, colours, set(), groups_of(places),
        "ideas", **layout(places, 2.0, lines)))


def percent(entry):
    text = f"{entry['gain_percent']:.1f}" + ("*" if entry["over_budget"] else "")
    measured = entry.get("measured_gain_percent")
    return text if measured is None or pd.isna(measured) else f"{text}\n{measured:.1f}"


def groups_of(places):
    """Headings over the columns of one ratio."""
    ratios = [place.ratio for place in places]
    return [(f"transfer {ratio:g} F", ratios.count(ratio)) for ratio in dict.fromkeys(ratios)]


def colour_of(gain_percent):
    full = FASTER if gain_percent > 0 else SLOWER
    part = min(1.0, abs(gain_percent) / 100 / FULL_COLOUR)
    return tuple(1 - part * (1 - channel) for channel in full)
