"""Atlas figure 6: sharing the WAN in time and when to recompute, in slots."""

import json

import numpy as np
import pandas as pd

from longhaul import provenance
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import inputs, slots as atlas_slots
from longhaul.figures.runs.timeline import measured_of
from longhaul.papers import claims
from longhaul.papers.expected import of_claim
from longhaul.records import facts_of
from longhaul.running import measuring, predict, tools
from longhaul.trace import BLOCK_KINDS, select

FIGURE = Figure(
    "atlas-fig6",
    summary="slots of Varuna and Atlas: sharing in time, when to recompute (Atlas figure 6)",
    shows="slots of Varuna and Atlas: sharing in time, and when to recompute",
    options="[--measure]",
    repeat=Repeat("atlas", seconds=5, simulate=("--simulate",), measure=("--measure",), minutes=2),
    expected=(
        of_claim("atlas-slots-varuna", "Varuna's last slot", "published", low=38, high=38,
                 why="Figure 6: a count."),
        of_claim("atlas-slots-atlas", "Atlas' last slot", "published", low=36, high=36,
                 why="Figure 6: a count."),
    ))
SCENARIO = "atlas-fig6"
SLOT_NS = 10_000_000
QUANTA = {"F": 1, "R": 1, "B": 2}
# The paper's (a) is the first, its (b) the last.
POLICIES = {
    "varuna": "own share of the WAN, R timed to its gradient",
    "varuna-fill": "own share of the WAN, R in idle slots",
    "atlas-timed": "shared in time, R timed to its gradient",
    "atlas": "shared in time, R in idle slots",
}
EXTRA = "atlas-even"  # not the paper's: turns to the pipeline that has advanced least
MINUTES = 1
FIELDS = ["source", "schedule", "replica", "device", "kind", "microbatch", "start_slot", "end_slot"]


def add_arguments(parser):
    measuring.add_arguments(parser, "runs/atlas-fig6", MINUTES)


def draw(options):
    scenario, names = tools.scenario_file(SCENARIO), (*POLICIES, EXTRA)

    def points():
        said = predict.ask(predict.Question(scenario, names, tuple(options.set)))
        return [inputs.point(scenario, "all", (), names, said)]
    results = measuring.results_of(options, points, FIGURE.name)
    if measuring.is_dry(options):
        return []
    made = pd.concat([timetable(scenario, name) for name in names], ignore_index=True)
    trace = tools.simulate(scenario, names, options.set)
    played = pd.concat([in_slots(select(trace.predicted, name), name, "simulated", 1.0)
                        for name in names], ignore_index=True)
    tables, drawn = [made, played], []
    if results:
        run = results / points()[0].name
        trace = tools.read_run(run)
        tables.append(pd.concat([
            provenance.stamp(in_slots(measured_of(trace, name)[0], name, "measured",
                                      trace.time_scale), facts_of(run, name))
            for name in names], ignore_index=True))
    found = verdicts(tables)
    for table in tables[1:]:
        source = table["source"].iloc[0]
        drawn.append(Drawn(f"{FIGURE.name}-{source}", picture(table, source), table))
    return [Drawn(FIGURE.name, picture(made, "the generators' timetable"), made, found), *drawn]


def timetable(scenario, name):
    """The times by which the generator decided."""
    record = json.loads(tools.run([tools.binary("longhaul"), "schedule", scenario, "--schedule",
                                   name, "--json"]))
    rows = record["schedules"][0]["timetable"]["rows"]
    replicas = record["replicas"] if len({row["replica"] for row in rows}) == 1 else 1
    return pd.DataFrame([{
        "source": "timetable", "schedule": name, "replica": row["replica"] + copy,
        "device": row["device"], "kind": block["kind"], "microbatch": block["microbatch"],
        "start_slot": block["start_ns"] / SLOT_NS,
        "end_slot": block["start_ns"] / SLOT_NS + QUANTA[block["kind"]]}
        for copy in range(replicas) for row in rows for block in row["blocks"]], columns=FIELDS)


def in_slots(rows, name, source, scale):
    blocks = rows[rows["kind"].isin(BLOCK_KINDS)]
    begin = rows["start_ns"].min()
    return pd.DataFrame({
        "source": source, "schedule": name, "replica": blocks["replica"],
        "device": blocks["device"], "kind": blocks["kind"].astype(str),
        "microbatch": blocks["microbatch"],
        "start_slot": (blocks["start_ns"] - begin) / scale / SLOT_NS,
        "end_slot": (blocks["end_ns"] - begin) / scale / SLOT_NS}, columns=FIELDS)


def slots(table, name):
    """{replica: (first slot, last slot)}, counted from 1. A measured block that ends within a tenth
    of a slot ends in it."""
    own = table[table["schedule"] == name].groupby("replica")
    near = 0.1 if (table["source"] == "measured").any() else 1e-6
    return {replica: (int(np.floor(rows["start_slot"].min() + near)) + 1,
                      int(np.ceil(rows["end_slot"].max() - near))) for replica, rows in own}


def last_slot(table, name):
    return max(end for _, end in slots(table, name).values())


def picture(table, source):
    shown = []
    for name, words in POLICIES.items():
        ends = slots(table, name)
        each = "; ".join(f"{atlas_slots.pipeline(replica, len(ends))} slots {first} to {last}"
                         for replica, (first, last) in ends.items())
        mark = {"varuna": ", the paper's (a)", "atlas": ", the paper's (b)"}.get(name, "")
        shown.append((f"{name}{mark}: {words}\n{each}", table[table["schedule"] == name]))
    note = ("F = R = 1 slot, B = 2, a message takes 2 slots on one node and 1 on both. Numbers are "
            "microbatches. Stages 1 and 2, 3 and 4, 5 and 6 share a datacenter.\nRed: the end."
            f" {EXTRA} (turns to the pipeline furthest behind, not the paper's) ends in slot "
            f"{last_slot(table, EXTRA)}.")
    return atlas_slots.draw(shown, f"Sharing the WAN in time and recomputation: {source}", note)


def verdicts(tables):
    """Of the timetables; simulated and measured ends beside them."""
    made = tables[0]
    others = {table["source"].iloc[0]: table for table in tables[1:]}

    def beside(name):
        ends = {source: table.loc[table["schedule"] == name, "end_slot"].max()
                for source, table in others.items()}
        return ", ".join(f"{source} after {end:.4g}" for source, end in ends.items())
    ends = {name: last_slot(made, name) for name in (*POLICIES, EXTRA)}
    starts = slots(made, "atlas")
    wanted = [int(slot) for slot in claims.values("atlas-slots-starts")]
    firsts = [starts[replica][0] for replica in sorted(starts)]
    shared = ends["varuna"] - ends["atlas-timed"], ends["varuna-fill"] - ends["atlas"]
    filled = ends["varuna"] - ends["varuna-fill"], ends["atlas-timed"] - ends["atlas"]
    idle = between_microbatches(made)
    return [
        claims.judge("atlas-slots-varuna", exactly(ends["varuna"], "atlas-slots-varuna"),
                     f"{ends['varuna']} ({beside('varuna')})",
                     "With R timed to end when its gradient arrives."),
        claims.judge("atlas-slots-atlas", exactly(ends["atlas"], "atlas-slots-atlas"),
                     f"{ends['atlas']} ({beside('atlas')})",
                     f"With R in idle slots; timed, it is {ends['atlas-timed']}."),
        claims.judge("atlas-slots-starts", claims.HOLDS if firsts == wanted else claims.FAILS,
                     ", ".join(map(str, firsts)),
                     "Of the timetable, LocalDPRank 0 being the paper's DP-2. Simulated, DP-1 may begin "
                     "earlier: its messages wait, not its computation."),
        claims.judge("atlas-slots-cause", claims.HOLDS if min(shared) > 0 else
                     claims.PARTLY if max(shared) > 0 else claims.FAILS,
                     f"sharing alone brings {shared[0]} and {shared[1]} slots, recomputation in "
                     f"idle slots {filled[0]} and {filled[1]}",
                     f"Varuna that recomputes in idle slots ends in slot {ends['varuna-fill']}. "
                     f"Sharing with turns to the pipeline furthest behind: {ends[EXTRA]}."),
        claims.judge("atlas-no-bubbles", claims.HOLDS if idle["atlas"] == 0 else claims.FAILS,
                     f"idle slots between the forwards of a pipeline behind its first crossing: "
                     f"{idle['atlas']:g} with atlas, {idle['varuna']:g} with varuna",
                     "Stage 3, over both pipelines.")]


def exactly(ours, claim):
    return claims.HOLDS if ours == claims.value(claim) else claims.FAILS


def between_microbatches(table):
    """{schedule: idle slots between successive forwards on stage 3, all pipelines}."""
    found = {}
    for name in ("varuna", "atlas"):
        own = table[(table["schedule"] == name) & (table["device"] == 2)].sort_values("start_slot")
        total = 0.0
        for _, rows in own.groupby("replica"):
            starts, ends = rows["start_slot"].to_numpy(), rows["end_slot"].to_numpy()
            forwards = (rows["kind"] == "F").to_numpy()
            last = np.flatnonzero(forwards).max()
            total += sum(starts[i] - ends[i - 1] for i in range(1, last + 1))
        found[name] = total
    return found
