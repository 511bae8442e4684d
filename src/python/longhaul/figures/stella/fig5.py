"""StellaTrain figure 5: which parts of a model are fresh, by how much is sent, with and without priorities.

train-2dc over 100 Mbps and 1 ms; a part is fresh if it is in every iteration of the second half,
on all replicas."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, methods
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig5",
    summary="parts that use the update of the iteration before, by what is sent (figure 5)",
    shows="which of six parts are fresh, over how long their exchange takes, with and without "
          "priorities",
    repeat=Repeat("stella", seconds=3, simulate=("--simulate",)))
PARTS, MBPS, ITERATIONS = 6, 100, 60
BLOCKS_S = 0.1096  # of an iteration of train-2dc
HOPS = 3           # sets that a ring of four replicas sends over the WAN each way
SENT = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # over what takes an iteration to exchange
SERVE = {"deadline": "priorities", "arrival": "first come, first served"}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), [verdict(table)])]


def command_of(times, serve):
    """train-2dc, whose replicas are equal, with sets that hold the link so many times its blocks."""
    size = round(times * BLOCKS_S * MBPS * 1e6 / 8 / (HOPS * PARTS))
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file("train-2dc"), "--schedule", "stella",
               "--iterations", ITERATIONS, "--json"]
    command += tools.set_words((f"train.parts={PARTS}", f"train.serve={serve}", f"train.message={size}B",
                                f"link.bandwidth={MBPS}Mbps", "link.latency=1ms"))
    return command


def numbers():
    """A row for each part: was it fresh in all iterations of the second half?"""
    cells = [(times, serve) for serve in SERVE for times in SENT]
    rows = []
    for (times, serve), answer in zip(cells, methods.ask_all([command_of(*cell) for cell in cells])):
        stream = answer["stream"]
        rows += [{"serve": serve, "exchange": times, "part": part, "fresh": int(part in stream["fresh_parts"]),
                  "fresh_share": stream["fresh_share"], "period_ms": stream["period_ns"] * 1e-6}
                 for part in range(PARTS)]
    return pd.DataFrame(rows)


def verdict(table):
    """Are fresh parts those nearer to the output, wherever there are some?"""
    own = table[table["serve"] == "deadline"]
    some = [rows for _, rows in own.groupby("exchange") if 0 < rows["fresh"].sum() < len(rows)]
    later = [rows["fresh"].is_monotonic_increasing for rows in some]
    said = "; ".join(f"{times:g}: {int(rows['fresh'].sum())} of {len(rows)}" for times, rows in own.groupby("exchange"))
    return claims.judge(
        "stella-instant", claims.by_count(later.count(True), len(later)) if later else claims.NOT_JUDGED, said,
        "Fresh parts by how many times an iteration's blocks the exchange takes (train-2dc in six parts, simulated). "
        "It holds where some are fresh and these are the last ones.")


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, 2, figsize=(9.2, 4.2), sharey=True)
    for axes, (serve, title) in zip(panels, SERVE.items()):
        own = table[table["serve"] == serve]
        for place, (times, rows) in enumerate(own.groupby("exchange")):
            for row in rows.itertuples():
                axes.add_patch(plt.Rectangle((place, row.part), 0.9, 0.9,
                                             facecolor="#2aa552" if row.fresh else "#dddddd"))
            axes.text(place + 0.45, PARTS + 0.15, f"{row.period_ms:.0f} ms", ha="center", fontsize=7.5)
        axes.set_xlim(0, len(SENT))
        axes.set_ylim(0, PARTS + 0.9)
        axes.set_xticks([place + 0.45 for place in range(len(SENT))], [f"{times:g}" for times in SENT])
        axes.set_yticks([part + 0.45 for part in range(PARTS)], range(PARTS))
        axes.set_xlabel("exchange, over an iteration of blocks")
        axes.set_title(title, loc="left")
        axes.tick_params(length=0)
    panels[0].set_ylabel("part, from the input on")
    bars.finish(figure, panels[0], "Parts that use the update of the iteration before (green), four equal replicas",
                "Simulated; above: an iteration. Green: in every iteration of the second half, on all replicas.")
    return figure
