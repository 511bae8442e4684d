"""Atlas table 1: the bandwidth of one TCP connection against latency, and of as many as reach the
cap; our link model beside the paper."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.atlas import inputs
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "atlas-table1",
    summary=("one TCP connection, and as many as reach 5 Gbps, over latency: model and paper "
             "(table 1)"),
    shows="one TCP connection over latency, and as many as reach the cap",
    repeat=Repeat("atlas", seconds=3, simulate=("--simulate",)),
    expected=(
        Expected("one TCP connection at 10 ms (Mbps)", "published", low=1220, high=1220,
                 column="model_mbps", where="latency_ms=10",
                 why="Table 1; the model takes its window from it."),
        Expected("one TCP connection at 20 ms (Mbps)", "published", low=600, high=600,
                 column="model_mbps", where="latency_ms=20",
                 why="Table 1; the model takes its window from it."),
        Expected("one TCP connection at 30 ms (Mbps)", "published", low=396, high=396,
                 column="model_mbps", where="latency_ms=30",
                 why="Table 1; the model takes its window from it."),
        Expected("one TCP connection at 40 ms (Mbps)", "published", low=293, high=293,
                 column="model_mbps", where="latency_ms=40",
                 why="Table 1; the model takes its window from it."),
        Expected("many connections reach the cap (Mbps)", "exact", low=5000, high=5000,
                 column="model_several_mbps", reduce="min",
                 why="As many as the cap takes: 5 Gbps."),
    ))
SCENARIO = "atlas-fig9"
LATENCIES_MS = (5, 10, 15, 20, 25, 30, 35, 40, 60, 80)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="the link model alone (always so; real TCP: atlas-fig5)")


def draw(options):
    del options
    table = pd.DataFrame([row_of(latency) for latency in LATENCIES_MS])
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def row_of(latency):
    scenario = tools.scenario_file(SCENARIO)
    links = [inputs.checked(scenario, (f"link.latency={latency}ms", f"link.connections={n}"))
             ["links"][0] for n in ("1", "auto")]
    one, several = (link["rate_bits_per_second"] / 1e6 for link in links)
    return {"latency_ms": latency, "published_mbps": inputs.table1().get(latency),
            "model_mbps": one, "in_flight_mbit": round(one * latency / 1000, 3),
            "connections_for_cap": links[1]["connections"]["count"],
            "model_several_mbps": several}


def verdicts(table):
    at = table.set_index("latency_ms")
    shown = {latency: at.loc[latency, "model_mbps"] for latency in inputs.LATENCIES_MS}
    theirs = claims.values("atlas-one-connection")
    agree = sum(claims.within(ours, said) == claims.HOLDS
                for ours, said in zip(shown.values(), theirs))
    falling = table["model_mbps"].diff().dropna()
    flight = table.loc[table["published_mbps"].notna(), "in_flight_mbit"]
    gains = at["model_several_mbps"] / at["model_mbps"]
    most = gains[list(inputs.LATENCIES_MS)].max()
    return [
        claims.judge("atlas-one-connection", claims.by_count(agree, len(theirs)),
                     ", ".join(f"{value:.0f}" for value in shown.values()),
                     "The model takes its window from this table: a check, no prediction."),
        claims.judge("atlas-inverse-latency",
                     claims.by_count(int((falling < 0).sum()), len(falling)),
                     f"{claims.spread(flight)} Mbit in flight at the paper's latencies",
                     "Published rate times latency is nearly the same, as 1/latency has it."),
        claims.judge("atlas-many-connections",
                     claims.at_least(most, claims.value("atlas-many-connections")),
                     f"{most:.1f} at 40 ms, {gains[80]:.1f} at 80 ms",
                     "250 Mbps is what one connection reaches at 47 ms by the same window.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(7.6, 4.3))
    axes.plot(table["latency_ms"], table["model_mbps"], color="#0b5394", marker="o", markersize=4,
              label="one connection, our link model")
    axes.plot(table["latency_ms"], table["model_several_mbps"], color="#c9561a", marker="o",
              markersize=4, label="as many as reach 5 Gbps, our link model")
    known = table.dropna(subset=["published_mbps"])
    axes.plot(known["latency_ms"], known["published_mbps"], color="black", marker="x", markersize=9,
              linestyle="", label="one connection, the paper's table 1")
    for row in known.itertuples():
        axes.annotate(f"{row.published_mbps:g} / {row.model_mbps:g}",
                      (row.latency_ms, row.model_mbps), xytext=(6, 6),
                      textcoords="offset points", fontsize=7.5)
    for row in table.itertuples():
        axes.annotate(f"{row.connections_for_cap}", (row.latency_ms, row.model_several_mbps),
                      xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7.5,
                      color="#8a3a0f")
    axes.set_yscale("log")
    axes.set_ylim(120, 9000)
    axes.set_yticks([150, 300, 600, 1200, 2500, 5000], "150 300 600 1200 2500 5000".split())
    axes.minorticks_off()
    axes.set_xlabel("latency, one way (ms); above 5 Gbps: how many connections that takes")
    axes.set_ylabel("bandwidth between two nodes (Mbit/s)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("TCP over distance, paper / model", loc="left", fontweight="bold")
    figure.legend(loc="lower center", ncol=2, frameon=False)
    figure.subplots_adjust(left=0.1, right=0.97, top=0.92, bottom=0.24)
    return figure
