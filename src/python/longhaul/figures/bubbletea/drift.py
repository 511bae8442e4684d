"""Plan, signals and both, where times differ from the plan."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "bubbletea-drift",
    summary="training's delay with plan, signals and both, under noise and a straggler",
    shows="training's delay and utilisation with plan, signals and both, where times differ "
          "([prefill.md](prefill.md))",
    repeat=Repeat("bubbletea", seconds=60, simulate=("--simulate",)),
    expected=(
        Expected("calm, both: delay of training (%)", "exact", low=0, high=0, column="delay",
                 where="conditions=calm; signals=both", why="Estimates hold."),
    ))
CONDITIONS = {
    "calm": (),
    "noise 5%": ("--set", "run.noise=0.05"),
    "jitter 2.3%": ("--set", "link.jitter.latency=0.023"),
    "straggler 1.2": ("--set", "run.stragglers=[1, 1.2, 1, 1]"),
    "outage": ("--set", 'link.outage=["30s", "500ms"]'),
}
SIGNALS = {"plan": "#2a7ab0", "signals": "#e08a2e", "both": "#c2185b"}
ITERATIONS = "20"


def add_arguments(parser):
    asked.add_arguments(parser)


def draw(options):
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(table), table)]


def numbers(options):
    rows = []
    for conditions, words in CONDITIONS.items():
        for signals in SIGNALS:
            found = asked.one(options, "--backlog", "512", "--signals", signals, "--set",
                              f"run.iterations={ITERATIONS}", *words)
            wall = found["period_ns"] * found["iterations"]
            delay = found["training_delay"]
            rows.append({"conditions": conditions, "signals": signals,
                         "delay": 100 * delay["total_ns"] / wall,
                         "blocks_bound": delay["blocks_bound_by_prefill"],
                         "declined": found["declined"],
                         "total": 100 * found["utilisation"]["total"],
                         "ttft_p99_ms": found["ttft_ns"]["p99"] / 1e6})
    return pd.DataFrame(rows)


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, 2, figsize=(10.4, 3.9))
    names = list(CONDITIONS)
    for axes, column, label in zip(panels, ("delay", "total"),
                                   ("delay of training, %", "utilisation, %")):
        for place, (signals, colour) in enumerate(SIGNALS.items()):
            own = table[table["signals"] == signals]
            axes.bar([i + 0.27 * (place - 1) for i in range(len(own))], own[column], 0.25,
                     color=colour, label=signals)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(label)
    panels[0].legend(frameon=False)
    figure.suptitle(f"A backlog of 512 over {ITERATIONS} iterations, simulated", x=0.06, ha="left",
                    fontweight="bold")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.88, bottom=0.12, wspace=0.15)
    return figure
