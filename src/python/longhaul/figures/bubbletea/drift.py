"""Plan, signals and both, where times differ from the plan."""

import pandas as pd

from longhaul import provenance, records
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.bubbletea import asked
from longhaul.papers.expected import Expected
from longhaul.running import measuring, tools

FIGURE = Figure(
    "bubbletea-drift",
    summary="training's delay with plan, signals and both, under noise and a straggler",
    shows="training's delay by kind of signals, where times differ; `--measure`: on ranks, in "
          "about 24 minutes ([prefill.md](prefill.md))",
    options="[--measure]",
    repeat=Repeat("bubbletea", seconds=60, simulate=("--simulate",), measure=("--measure",),
                  minutes=24),
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
# On ranks its outage comes in the second pair of stretches.
OUTAGE_ON_RANKS = ("--set", 'link.outage=["5s", "500ms"]')
STRETCH = 2  # iterations: signals alone know nothing of the first


def add_arguments(parser):
    asked.add_arguments(parser)
    measuring.add_once(parser, f"runs/{FIGURE.name}")
    parser.add_argument("--pairs", type=int, default=8, metavar="N",
                        help="measured: of stretches with prefill and without, of each run "
                             "(default: %(default)s)")
    parser.add_argument("--stretch", type=int, default=STRETCH, metavar="N",
                        help="measured: iterations of a stretch (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=16, metavar="N",
                        help="measured: that train and serve (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="measured: override of the scenario; may be given again")


def draw(options):
    if options.measure or options.results:
        table = measured(options)
        stretches = f"{table['pairs'][0]} pairs of stretches of {table['stretch'][0]} iterations"
        return [Drawn(f"{FIGURE.name}-measured",
                      figure_of(table, f"A backlog of 512, {stretches} on ranks, measured"), table)]
    table = numbers(options)
    return [Drawn(FIGURE.name, figure_of(
        table, f"A backlog of 512 over {ITERATIONS} iterations, simulated"), table)]


def measured(options):
    """A row for each run of a live controller: what it goes by, and what it met."""
    directory = measuring.directory_of(options)
    rows = []
    for conditions, words in CONDITIONS.items():
        if conditions == "outage":
            words = OUTAGE_ON_RANKS
        for signals in SIGNALS:
            run = directory / name_of(conditions) / signals
            if options.measure:
                measuring.run_once(command(options, signals, words), run, directory)
            rows.append(row_of(run, conditions, signals))
    return pd.DataFrame(rows)


def name_of(conditions):
    return conditions.replace(" ", "-").replace("%", "")


def command(options, signals, words):
    overrides = tools.set_words(options.set)
    return [tools.binary("bench_prefill"), asked.SCENARIO, "--ranks-per-process", options.ranks,
            "--schedule", "gpipe", "--controller", "live", "--signals", signals, "--requests",
            options.requests, "--backlog", 512, "--pairs", options.pairs, "--stretch",
            options.stretch, "--set", "parallel.gradient_sync=none", "--deadline", "60s",
            "--no-report", *words, *overrides]


def row_of(run, conditions, signals):
    """Training's delay is the time of all stretches with prefill beyond that of those without,
    which meet the same links and blocks."""
    record = records.read_finished(run)
    entry, pairs = record["schedules"][0], record["pairs"]
    ttft = entry["ttft_ns"] or {"p99": float("nan")}
    return provenance.add({
        "conditions": conditions, "signals": signals, "source": "measured",
        "delay": 100 * (sum(pairs["on_ns"]) / sum(pairs["off_ns"]) - 1),
        "delay_of_medians": 100 * (pairs["ratio_of_medians"] - 1),
        "blocks_bound": entry["training_delay"]["blocks_bound_by_prefill"],
        "waited_ms": entry["training_delay"]["total_ns"] / 1e6,
        "declined": entry["requests"]["declined"],
        "total": 100 * entry["utilisation"]["total"],
        "ttft_p99_ms": ttft["p99"] / 1e6, "check": record["check"],
        "pairs": len(pairs["on_ns"]), "stretch": record["stretch_iterations"],
        "n": len(pairs["on_ns"]), "time_scale": record["time_scale"],
    }, provenance.of(record, run))


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


def figure_of(table, title):
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
    figure.suptitle(title, x=0.06, ha="left", fontweight="bold")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.88, bottom=0.12, wspace=0.15)
    return figure
