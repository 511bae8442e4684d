"""Atlas figure 4: the timeline of Varuna's pipeline over one TCP connection."""

import pandas as pd

from longhaul import provenance
from longhaul.drawing import panels
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.atlas import inputs
from longhaul.figures.runs.timeline import measured_of, table_of
from longhaul.papers import claims
from longhaul.papers.expected import of_claim
from longhaul.records import facts_of
from longhaul.running import measuring, predict, tools
from longhaul.trace import BLOCK_KINDS, crosses, select

FIGURE = Figure(
    "atlas-fig4",
    summary="Varuna's timeline over one TCP connection at 40 ms, 6 GPUs, GPT-B (Atlas figure 4)",
    shows="Varuna's timeline at 40 ms",
    options="[--measure]",
    repeat=Repeat("atlas", seconds=4, simulate=("--simulate",), measure=("--measure",), minutes=2),
    expected=(
        of_claim("atlas-activation-time", "an activation of GPT-B over the WAN at 40 ms (s)",
                 "published", low=2.375, high=2.625, why="About 2.5 s, within 5%.",
                 known="2.75 s: 100.7 MB at the 293 Mbps of the paper's own table 1."),
    ))
SCENARIO = "atlas-fig3"
SCHEDULE = "varuna"
MINUTES = 2
PAPER = panels.Paper(widest=12, row_inches=0.26, dots_per_inch=150)


def add_arguments(parser):
    measuring.add_arguments(parser, "runs/atlas-fig4", MINUTES)


def draw(options):
    scenario = tools.scenario_file(SCENARIO)

    def points():
        said = predict.ask(predict.Question(scenario, (SCHEDULE,), tuple(options.set)))
        return [inputs.point(scenario, "gpt-b-40ms", (), (SCHEDULE,), said)]
    results = measuring.results_of(options, points, FIGURE.name)
    if measuring.is_dry(options):
        return []
    trace = tools.simulate(scenario, [SCHEDULE], options.set)
    scale = 1.0
    if results:
        run = results / points()[0].name
        trace = tools.read_run(run)
        scale = trace.time_scale
    rows = select(trace.predicted, SCHEDULE)
    if rows.empty:
        raise Failure(f"{trace.file} holds no rows of {SCHEDULE}. Measure again.")
    seconds = transfer_s(rows, scale)
    span = panels.makespan(rows) / scale * 1e-9
    shown = [panels.Panel(rows, f"simulated: {span:.1f} s an iteration, {seconds:.2f} s a transfer "
                                "over the WAN (the paper: around 2.5 s)")]
    tables = [table_of(rows, "predicted")]
    if results:
        rows, note = measured_of(trace, SCHEDULE)
        found = panels.makespan(rows) / scale * 1e-9
        seconds = transfer_s(rows, scale)
        shown.append(panels.Panel(rows, f"measured: {found:.1f} s ({note}; "
                                        f"{100 * (found / span - 1):+.2f}%), {seconds:.2f} s a "
                                        "transfer"))
        tables.append(provenance.stamp(table_of(rows, "measured"), facts_of(run, SCHEDULE)))
    figure = panels.draw_stack(shown, "Varuna over one TCP connection, GPT-B, 40 ms, 6 GPUs in 3 "
                                      "datacenters", scale, paper=PAPER)
    return [Drawn(FIGURE.name, figure, pd.concat(tables, ignore_index=True),
                  verdicts(rows, seconds, bool(results)))]


def wan_sends(rows):
    sends = rows[(rows["kind"] == "send") & crosses(rows)]
    return sends[sends["end_ns"] > sends["start_ns"]]


def transfer_s(rows, scale):
    """Of a message between datacenters, the median."""
    sends = wan_sends(rows)
    return float((sends["end_ns"] - sends["start_ns"]).median()) / scale * 1e-9


def verdicts(rows, seconds, ran):
    word = "measured" if ran else "simulated"
    gaps = gaps_of(rows)
    return [
        claims.judge("atlas-activation-time",
                     claims.within(seconds, claims.value("atlas-activation-time")),
                     f"{seconds:.2f} s, {word}",
                     "B L H of 2 bytes with B = 1, L = 6144, H = 8192 over 293 Mbps; L, H = 6000, "
                     "8000 give 2.62 s."),
        claims.judge("atlas-bubbles", claims.HOLDS if min(gaps) > 0 else claims.FAILS,
                     f"GPUs 3 to 6 idle before each later forward for {min(gaps):.2f} to "
                     f"{max(gaps):.2f} of a transfer, {word}")]


def gaps_of(rows):
    """How long each device after the first crossing idles before the forwards of the second and
    later microbatches, over the time of a transfer."""
    sends = wan_sends(rows)
    transfer = (sends["end_ns"] - sends["start_ns"]).median()
    blocks = rows[rows["kind"].isin(BLOCK_KINDS)]
    found = []
    for _, own in blocks[blocks["device"] >= 2].sort_values("start_ns").groupby("device"):
        idle = own["start_ns"].to_numpy()[1:] - own["end_ns"].to_numpy()[:-1]
        found += list(idle[(own["kind"] == "F").to_numpy()[1:]] / transfer)
    return found
