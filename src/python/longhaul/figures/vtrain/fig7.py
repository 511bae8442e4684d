"""vTrain figure 7: GPipe and 1F1B on a pipeline of four devices with four microbatches."""

import pandas as pd

from longhaul.drawing import memory, panels, style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.drawing.time_scale import time_text
from longhaul.figures.runs.timeline import table_of
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import predict, tools
from longhaul.trace import select

SCHEDULES = ("gpipe", "1f1b")
FIGURE = Figure(
    "vtrain-fig7",
    summary="GPipe and 1F1B, four devices and microbatches, with the memory of each (figure 7)",
    shows="GPipe and 1F1B on four devices with four microbatches",
    repeat=Repeat("vtrain", seconds=5, simulate=("--simulate",)),
    expected=(
        *(Expected(f"makespan of {name} (us)", "exact", low=2100, high=2100, column="end_us",
                   where=f"schedule={name}", reduce="max",
                   why="(M + P - 1) (F + B) = 7 x 300 us.") for name in SCHEDULES),
        *(Expected(f"activations on the last device, {name} (GiB)", "exact", low=held, high=held,
                   column="held_gib", where=f"schedule={name}; device=3", reduce="max",
                   why="GPipe holds all four microbatches there, 1F1B one.")
          for name, held in zip(SCHEDULES, (4, 1)))))
SCENARIO = "vtrain-fig7"
GROWTH = (4, 8, 16)   # microbatches on four devices
PAPER = panels.Paper(widest=10.5)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    scenario = tools.scenario_file(SCENARIO)
    trace = tools.simulate(scenario, SCHEDULES)
    shown, tables = [], []
    for letter, name in zip("ab", SCHEDULES):
        rows = select(trace.predicted, name)
        held = memory.peaks(memory.changes(rows))
        words = ", ".join(f"{held[rank] / 2**30:g}" for rank in sorted(held))
        shown.append(panels.Panel(
            rows, f"({letter}) {style.schedule_name(name)}: {time_text(panels.makespan(rows))}; "
                  f"microbatches held at most: {words}", memory=memory.changes(rows)))
        tables.append(table_of(rows, "predicted", with_memory=True))
    table = pd.concat(tables, ignore_index=True)
    table["end_us"] = table["end_ns"] / 1e3
    table["held_gib"] = table["activation_bytes"] / 2**30
    figure = panels.draw_stack(shown, "Four devices, four microbatches, B = 2 F, simulated",
                               shared_lanes=False, paper=PAPER)
    return [Drawn(FIGURE.name, figure, table, verdicts(scenario))]


def verdicts(scenario):
    """Peaks of the first device, in activations of a microbatch."""
    peaks = {count: {name: entry["peak_activation"][0] for name, entry in predict.ask(
        predict.Question(scenario, SCHEDULES, (f"parallel.microbatches={count}",))).items()}
        for count in GROWTH}
    agree = sum(round(own["gpipe"], 6) == count and round(own["1f1b"], 6) == min(count, 4)
                for count, own in peaks.items())
    text = {name: ", ".join(f"{own[name]:g}" for own in peaks.values()) for name in SCHEDULES}
    return [claims.judge(
        "vtrain-in-flight", claims.by_count(agree, len(GROWTH)),
        f"1F1B {text['1f1b']}, GPipe {text['gpipe']} on the first device",
        f"Of {', '.join(map(str, GROWTH))} microbatches on four devices; both take as long.")]
