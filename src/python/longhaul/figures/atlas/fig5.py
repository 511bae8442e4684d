"""Atlas table 1 and figure 5: one TCP connection and several against latency."""

import tempfile
from pathlib import Path
from statistics import median

import pandas as pd

from longhaul import provenance
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.records import read_record
from longhaul.running import measuring, tools

FIGURE = Figure(
    "atlas-fig5",
    summary="bandwidth of one TCP connection and of several over latency (Atlas figure 5, table 1)",
    shows="one TCP connection and several, over real sockets ([tcp.md](tcp.md); and table 1)",
    options="[--measure]",
    repeat=Repeat("atlas", measure=("--measure",), minutes=7, needs="root"))
LATENCIES_MS = (10, 20, 30, 40)
TABLE1_MBPS = {10: 1220, 20: 600, 30: 396, 40: 293}
CAP_MBPS = 5000          # of a node, section 4.1
WINDOW_MBIT = 24         # on its way in a round trip: table 1 is about 12 Mbit a one-way latency
SEVERAL = "several"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="the link model alone (default without --measure and --results)")
    parser.add_argument("--measure", action="store_true",
                        help="run bench_tcp; needs root")
    parser.add_argument("--results", metavar="DIR",
                        help="what bench_tcp --out wrote; with --measure, where it goes")
    parser.add_argument("--extra", default="", metavar="'OPTIONS'",
                        help="options for bench_tcp, as one word, where it is run")


def draw(options):
    table = pd.DataFrame(modelled() + published())
    scale = 1.0
    if options.measure and options.results:
        run(Path(options.results), options)
    if options.measure and not options.results:
        with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
            run(Path(directory) / "tcp", options)
            rows, scale = measured(Path(directory) / "tcp")
    elif options.results and not options.simulate:
        rows, scale = measured(Path(options.results))
    else:
        rows = []
    return [draw_table(pd.concat([table, pd.DataFrame(rows)], ignore_index=True), scale)]


def run(results, options):
    measuring.run_once([tools.binary("bench_tcp"), "--repetitions", provenance.LEAST_N,
                        *options.extra.split()], results, results.parent)


def each_mbps(latency_ms):
    """Of one connection: its window in a round trip."""
    return WINDOW_MBIT / (2 * latency_ms) * 1000


def connections_for_cap(latency_ms):
    return -int(-CAP_MBPS // each_mbps(latency_ms))


def modelled():
    """The link's model: min(connections * each, cap)."""
    rows = []
    for latency in LATENCIES_MS:
        for series, count in (("one", 1), (SEVERAL, connections_for_cap(latency))):
            rows.append({"source": "model", "series": series, "latency_ms": latency,
                         "connections": count,
                         "mbps": min(count * each_mbps(latency), CAP_MBPS)})
    return rows


def published():
    rows = [{"source": "paper", "series": "one", "latency_ms": latency, "connections": 1,
             "mbps": mbps} for latency, mbps in TABLE1_MBPS.items()]
    return rows + [{"source": "paper", "series": SEVERAL, "latency_ms": latency, "mbps": CAP_MBPS}
                   for latency in LATENCIES_MS]


def measured(directory):
    """Rows over the scale at which they were measured, and the scale. A repetition's bytes count as
    its message: all of them travel, none is late by credit."""
    record = read_record(directory)
    if record.get("benchmark") != "bench_tcp" or not record.get("points"):
        raise Failure("no record of bench_tcp. Give what bench_tcp --out wrote.")
    scale = record["scale"]
    facts = provenance.of(record, directory) | {"lateness_credit_ns": 0, "time_scale": 1.0}
    rows = []
    for point in record["points"]:
        sent = int(median(sum(flow["bytes"] for flow in repetition["flows"])
                          for repetition in point["repetitions"]))
        facts |= {"n": len(point["repetitions"]), "payload_sent_bytes": sent,
                  "payload_nominal_bytes": sent}
        rates = [repetition["rate_bits_per_second"] for repetition in point["repetitions"]]
        rows.append(provenance.add(
            {"source": "measured", "latency_ms": point["latency_ns"] / 1e6,
             "series": "one" if point["connections"] == 1 else SEVERAL,
             "connections": point["connections"],
             "mbps": point["median_bits_per_second"] / scale / 1e6,
             "least_mbps": min(rates) / scale / 1e6, "most_mbps": max(rates) / scale / 1e6,
             "scale": scale}, facts))
    return rows, scale


def draw_table(table, scale):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.2))
    for series, colour, words in (("one", "#0b5394", "one connection"),
                                  (SEVERAL, "#c9561a", "as many as fill the cap")):
        lines(axes, table[table["series"] == series], colour, words)
    axes.set_yscale("log")
    axes.set_ylim(200, 8000)
    axes.set_yticks([300, 600, 1200, 2500, 5000], ["300", "600", "1200", "2500", "5000"])
    axes.minorticks_off()
    axes.set_xlabel("latency, one way (ms)")
    axes.set_xticks(sorted(table["latency_ms"].unique()))
    axes.set_ylabel("Mbit/s" + ("" if scale == 1 else f", measured at {scale:g} of it"))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="lower center", ncol=3, frameon=False)
    figure.subplots_adjust(left=0.1, right=0.97, top=0.9, bottom=0.27)
    axes.set_title("TCP over distance: one connection falls as 1 / latency, several reach the cap",
                   loc="left", fontweight="bold")
    return Drawn(FIGURE.name, figure, table)


def lines(axes, table, colour, words):
    for source, group in table.groupby("source"):
        group = group.sort_values("latency_ms")
        if source == "model":
            axes.plot(group["latency_ms"], group["mbps"], "-", color=colour, linewidth=1,
                      label=f"{words}, model")
            if words != "one connection":
                for row in group.itertuples():
                    axes.annotate(f"{row.connections:g} connections", (row.latency_ms, row.mbps),
                                  xytext=(0, 7), textcoords="offset points", ha="center",
                                  fontsize=7, color=colour)
        elif source == "paper":
            axes.plot(group["latency_ms"], group["mbps"], "x", color="black", markersize=7,
                      label="paper (table 1, section 4.1)" if words == "one connection" else None)
        else:
            axes.errorbar(group["latency_ms"], group["mbps"],
                          yerr=[group["mbps"] - group["least_mbps"],
                                group["most_mbps"] - group["mbps"]],
                          fmt="o", color=colour, markersize=5, capsize=3, markerfacecolor="white",
                          label=f"{words}, measured")
            below = words == "one connection"
            for row in group.itertuples():
                axes.annotate(f"{row.mbps:.0f}", (row.latency_ms, row.mbps),
                              xytext=(9 if below else 0, 2 if below else -14), fontsize=7,
                              textcoords="offset points", ha="left" if below else "center",
                              color=colour)
