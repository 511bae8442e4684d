"""Pipelines over real TCP with real delay, beside the emulated link and the prediction."""

import os
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import RUN_FAILED, Failure
from longhaul.records import is_finished, pipeline_rows, read_record
from longhaul.running import children, runs, sweep_state, tools

FIGURE = Figure(
    "atlas-tcp",
    summary="schedules over real TCP (scripts/wan), over our emulation, and as predicted",
    shows="pipelines over real TCP, over the emulated link, and predicted ([tcp.md](tcp.md))",
    needs="root",
    options="[--measure]",
    repeat=Repeat("atlas", measure=("--measure",), minutes=4, needs="root"))
SCENARIO = tools.SCENARIOS / "tcp-2dc.toml"
RANKS = 4
LATENCIES_MS = (10, 40)
SCHEDULES = ("1f1b", "cross-ud")
RATE = "1Gbps"
MESSAGE = "2MB"
# MPI hands a message to the socket whole: a rest that it keeps waits until the rank looks again.
MPI_SETTINGS = {"OMPI_MCA_btl_tcp_eager_limit": "4000000",
                "OMPI_MCA_btl_tcp_max_send_size": "4194304",
                "OMPI_MCA_btl_tcp_sndbuf": "4000000", "OMPI_MCA_btl_tcp_rcvbuf": "4000000"}
MODES = (("tcp", "#c9561a", "real TCP, real delay"),
         ("emulated", "#3fa7d6", "our emulation of the link"))


def add_arguments(parser):
    parser.add_argument("--measure", action="store_true",
                        help="run what is missing first; needs root (default: predictions alone)")
    parser.add_argument("--results", metavar="DIR",
                        help="records to show; with --measure, where they go "
                             "(default there: results/local/atlas-tcp)")
    parser.add_argument("--schedules", default=",".join(SCHEDULES), metavar="S,S..")
    parser.add_argument("--iterations", type=int, default=8, metavar="N")


def draw(options):
    schedules = options.schedules.split(",")
    results = Path(options.results or "results/local/atlas-tcp")
    if options.measure:
        for latency in LATENCIES_MS:
            measure(results, latency, options)
    elif options.results and not results.is_dir():
        raise Failure(f"no directory {results}. Give what --measure wrote.")
    wanted = options.measure or options.results
    table = measurements(results, schedules) if wanted else predictions(schedules)
    return [draw_table(table, schedules)]


def measure(results, latency, options):
    common = [SCENARIO, "--schedule", options.schedules, "--set", f"link.latency={latency}ms",
              "--iterations", options.iterations, "--warmup", 2, "--payload", MESSAGE]
    pipeline = tools.from_root(tools.binary("bench_pipeline"))
    for mode, _, _ in MODES:
        out = results / f"{mode}-{latency}ms"
        if is_finished(out):
            continue
        tools.say(f"{FIGURE.name}: {mode}, {latency} ms")
        run = [pipeline, *common, "--out", out, "--emulate", "on" if mode == "emulated" else "off"]
        if mode == "emulated":
            command = [tools.ROOT / "scripts" / "mpi", "-n", RANKS, *run]
        else:
            wan = tools.ROOT / "scripts" / "wan"
            command = [wan, "run", "--latency", f"{latency}ms", "--node-rate", RATE, "--",
                       wan, "mpi", "-n", RANKS, *run]
        start([str(word) for word in command], out, results)


def start(command, out, results):
    sweep_state.set_aside(out)
    with runs.recorded(out, results):
        done = children.run(command, cwd=tools.ROOT, env={**os.environ, **MPI_SETTINGS},
                            capture_output=True, text=True)
    if done.returncode:
        raise Failure("\n".join([f"{' '.join(command)} ended with {done.returncode}.",
                                 *done.stderr.strip().splitlines()[-8:]]), RUN_FAILED)


def predictions(schedules):
    rows = []
    for latency in LATENCIES_MS:
        trace = tools.simulate(SCENARIO, schedules, [f"link.latency={latency}ms"])
        for schedule in schedules:
            rows.append({"latency_ms": latency, "schedule": schedule, "source": "predicted",
                         "median_ns": makespan_of(trace, schedule)})
    return pd.DataFrame(rows)


def makespan_of(trace, schedule):
    rows = trace.predicted[trace.predicted["schedule"] == schedule]
    return int(rows["end_ns"].max())


def measurements(results, schedules):
    rows = []
    for latency in LATENCIES_MS:
        for mode, _, _ in MODES:
            directory = results / f"{mode}-{latency}ms"
            if not is_finished(directory):
                continue
            for row in pipeline_rows(read_record(directory), directory):
                if row["schedule"] in schedules:
                    predicted = {"latency_ms": latency, "schedule": row["schedule"],
                                 "source": "predicted", "median_ns": row["predicted_ns"]}
                    rows += [] if predicted in rows else [predicted]
                    numbers = {"latency_ms": latency, "schedule": row["schedule"],
                               "source": mode, "median_ns": row["measured_median_ns"],
                               "min_ns": row["measured_min_ns"],
                               "p95_ns": row["measured_p95_ns"], "check": row["check"]}
                    rows.append(provenance.add(numbers, row))
    if not rows:
        raise Failure(f"no records below {results}. Run scripts/figure {FIGURE.name} --measure.")
    return pd.DataFrame(rows)


def draw_table(table, schedules):
    plt = style.apply()
    figure, axes = plt.subplots(1, len(LATENCIES_MS), figsize=(8.6, 3.9), sharey=True)
    for panel, latency in zip(axes, LATENCIES_MS):
        bars(panel, table[table["latency_ms"] == latency], schedules)
        panel.set_title(f"{latency} ms one way", loc="left")
    axes[0].set_ylim(0, 1.08e-9 * table[["median_ns", *{"p95_ns"} & set(table)]].max().max())
    axes[0].set_ylabel("iteration (s)")
    handles, labels = axes[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    figure.legend(unique.values(), unique.keys(), loc="lower center", ncol=3, frameon=False)
    figure.subplots_adjust(left=0.08, right=0.985, top=0.80, bottom=0.2, wspace=0.06)
    figure.suptitle("4 ranks in 2 datacenters, 1 Gbps: real TCP beside the emulated link\n",
                    x=0.08, ha="left", y=0.97, fontsize=11, fontweight="bold")
    figure.text(0.08, 0.885, "bar: median of the iterations; line: least to 95th percentile",
                fontsize=8, ha="left")
    return Drawn(FIGURE.name, figure, table)


def bars(axes, table, schedules):
    for index, schedule in enumerate(schedules):
        here = table[table["schedule"] == schedule].set_index("source")
        predicted = here.loc["predicted", "median_ns"] / 1e9
        for offset, (mode, colour, label) in zip((-0.19, 0.19), MODES):
            if mode not in here.index:
                continue
            row = here.loc[mode]
            seconds = row["median_ns"] / 1e9
            axes.bar(index + offset, seconds, 0.36, color=colour, edgecolor="black",
                     linewidth=0.5, label=label)
            axes.vlines(index + offset, row["min_ns"] / 1e9, row["p95_ns"] / 1e9, color="black",
                        linewidth=1)
            axes.annotate(f"{100 * (seconds / predicted - 1):+.1f}%", (index + offset, 0),
                          xytext=(0, 4), textcoords="offset points", ha="center", fontsize=8,
                          color=style.text_colour(plain(colour)))
        axes.hlines(predicted, index - 0.42, index + 0.42, color="#c2185b", linewidth=2,
                    label="predicted (percentages are against it)")
    axes.set_xticks(range(len(schedules)), [style.schedule_name(name) for name in schedules])
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def plain(colour):
    return tuple(int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
