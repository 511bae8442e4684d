"""Shared by the figures of CrossPipe's tables 5 and 6: options, measuring and the picture."""

import math

from longhaul import provenance
from longhaul.drawing import textgrid
from longhaul.drawing.figure import Drawn
from longhaul.errors import Failure
from longhaul.figures.crosspipe import cells as crosspipe_cells, tables
from longhaul.running import measuring, tools
from longhaul.running.sweep_points import COMMS, Point

PLACES = {5: "2 datacenters", 6: "4 datacenters"}
MINUTES = 14
MEASURED_CASES = "1,3"
FASTER, SLOWER = (0.42, 0.65, 0.90), (0.93, 0.55, 0.45)
FULL_COLOUR_PERCENT = 30


def add_arguments(parser):
    measuring.add_arguments(parser, "runs/crosspipe-tables", MINUTES)
    parser.add_argument("--cases", metavar="C[,C]",
                        help=f"which cases (default: all; measured: {MEASURED_CASES})")
    parser.add_argument("--search-moves", type=int, default=int(crosspipe_cells.SEARCH[1]),
                        metavar="N", help="how long best looks (default: %(default)s moves)")


def draw(number, name, options, judge):
    """`judge`: verdicts from the table of crosspipe_cells.compare and a Lookup."""
    results = measuring.results_of(
        options, lambda: points_of(number, cases_of(options.cases or MEASURED_CASES),
                                   search_of(options)), name)
    if measuring.is_dry(options):
        return []
    cases = cases_of(options.cases) or tuple(crosspipe_cells.CASES)
    table = crosspipe_cells.compare(number, cases, results, search_of(options))
    if note := arrangement_note(table):
        print(note)
    return [Drawn(name, figure_of(number, table), table, judge(table, Lookup(table)))]


def search_of(options):
    return ("--search-moves", str(options.search_moves))


def cases_of(text):
    if not text:
        return None
    wanted = text.split(",")
    known = [str(case) for case in crosspipe_cells.CASES]
    if unknown := [case for case in wanted if case not in known]:
        raise Failure(f"no case {unknown[0]} (known: {', '.join(known)}). Write --cases 1,3.")
    return tuple(int(case) for case in wanted)


def points_of(number, cases, search):
    """One start of bench_pipeline for each cell, case and arrangement."""
    scenario = tools.scenario_file(tables.TABLES[number])
    expected = crosspipe_cells.predicted(number, cases, search)
    points = []
    for case in cases:
        overrides = crosspipe_cells.CASES[case]
        microbatches = int(overrides[0].split("=")[1])
        for latency, transfer in crosspipe_cells.CELLS:
            for comm in COMMS:
                names = crosspipe_cells.schedules_of(case, comm)
                if not names:
                    continue
                seconds = sum(expected[crosspipe_cells.Cell(number, case, latency, transfer, name,
                                                            comm)] for name in names)
                extra = search if crosspipe_cells.BEST in names else ()
                points.append(Point(scenario, comm, latency, transfer, f"case{case}",
                                    overrides, names, extra, seconds * microbatches))
    return points


class Lookup:
    """Seconds of a cell: measured (the least, as in the paper) where ranks ran it."""

    def __init__(self, table):
        self.rows = {(row.case, row.latency_ratio, row.transfer_ratio, row.schedule, row.comm): row
                     for row in table.itertuples()}

    def __call__(self, case, delay, schedule, comm="decoupled"):
        """NaN for a cell that this run leaves out."""
        row = self.rows.get((case, *delay, schedule, comm))
        if row is None:
            return math.nan
        return row.predicted_s if math.isnan(row.measured_min_s) else row.measured_min_s

    def least(self, case, delay, schedules, comm="decoupled"):
        return min(self(case, delay, name, comm) for name in schedules)

    def has(self, *cases):
        return set(cases) <= {key[0] for key in self.rows}


def arrangement_note(table):
    """Which arrangement explains the published static columns, in words."""
    static = table[table["schedule"].isin(crosspipe_cells.STATIC.values())]
    largest = static.groupby("comm")["predicted_vs_published_percent"].apply(
        lambda off: off.abs().max())
    if largest.isna().all() or len(largest) < 2:
        return ""
    nearest = "grouped" if largest["grouped"] < largest["decoupled"] else "decoupled"
    return (f"Static columns: grouped (receives posted late) within {largest['grouped']:.1f}% of "
            f"the paper, decoupled (its _O) within {largest['decoupled']:.0f}%: {nearest} was "
            "chosen for that, a fit.")


def figure_of(number, table):
    columns = []
    for name in crosspipe_cells.STATIC.values():
        columns += [(name, "grouped"), (name, "decoupled")]
    columns += [(name, "decoupled") for name in (*crosspipe_cells.DYNAMIC.values(),
                                                 crosspipe_cells.BEST)]
    groups = [(crosspipe_cells.paper_name(name), 2) for name in crosspipe_cells.STATIC.values()]
    groups += [("delay-aware, decoupled", len(crosspipe_cells.DYNAMIC) + 1)]
    headings = [comm if index < 6 else crosspipe_cells.paper_name(name)
                for index, (name, comm) in enumerate(columns)]
    at = {(row.case, row.latency_ratio, row.transfer_ratio, row.schedule, row.comm): row
          for row in table.itertuples()}
    places = list(dict.fromkeys((row.case, row.latency_ratio, row.transfer_ratio)
                                for row in table.itertuples()))
    cells, colours, bold = [], [], set()
    for index, place in enumerate(places):
        rows = [at.get((*place, *column)) for column in columns]
        cells.append([_text(row) for row in rows])
        colours.append([_colour(row) for row in rows])
        ours = [math.inf if row is None else row.predicted_s for row in rows]
        bold |= {(index, column) for column, value in enumerate(ours) if value == min(ours)}
    measured = table["measured_min_s"].notna().any()
    note = ("Above: the paper's seconds per microbatch (best: its least of the row). Below: ours, "
            "predicted, and its difference from the paper's."
            + (" Last: measured, the least, and\nthe median's difference from the prediction."
               if measured else "")
            + "\nBlue: ours is faster, red: slower. Bold: our fastest of the row. "
            + "Case 1: 16 microbatches, budget 1; case 2: 32, recomputed; case 3: 32, budget 2.\n"
            + "\n".join(filter(None, (arrangement_note(table), provenance.later_note(table)
                                      or provenance.again_note(table)))))
    return textgrid.draw(textgrid.Grid(
        f"CrossPipe table {number}: M70 in {PLACES[number]}, seconds per microbatch",
        headings, [f"case {case}  ({latency:g}, {transfer:g})" for case, latency, transfer in
                   places],
        cells, colours, bold, groups, "(T_lat, T_bw) / T_F", note, column_inches=1.02,
        row_heading_inches=1.25))


def _text(row):
    if row is None:
        return "-"
    lines = ["-" if math.isnan(row.published_s) else f"{row.published_s:.3f}",
             f"{row.predicted_s:.4f}"]
    if not math.isnan(row.predicted_vs_published_percent):
        lines[1] += f" ({signed(row.predicted_vs_published_percent)}%)"
    if not math.isnan(row.measured_min_s):
        lines.append(f"{row.measured_min_s:.4f} ({signed(row.measured_vs_predicted_percent)}%)")
    return "\n".join(lines)


def signed(percent):
    """+1.2; 0.0 has no sign."""
    text = f"{percent:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _colour(row):
    if row is None or math.isnan(row.predicted_vs_published_percent):
        return None
    share = max(-1, min(1, row.predicted_vs_published_percent / FULL_COLOUR_PERCENT))
    end = FASTER if share < 0 else SLOWER
    return tuple(1 - abs(share) * (1 - part) for part in end)
