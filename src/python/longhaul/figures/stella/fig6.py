"""StellaTrain figure 6: the space of batch and compression rate, by speed of iterations and by learning."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, fig3, fig14, methods
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig6",
    summary="iteration speed and learning over batch and compression rate (figure 6)",
    shows="iterations a second and g of measured probes over batch and compression rate",
    options="[--probes FILE]",
    repeat=Repeat("stella", seconds=9, simulate=("--simulate",)))
MODEL = fig14.MODEL
GPUS = cluster.FIG14.gpus
MBPS = 100
LINES = (50, 100, 300, 1000)  # Mbps, of equation 6
SAMPLES = (40, 80, 137, 240, 324, 450, 600, 800)
RATES = (90, 95, 97, 98, 98.5, 99, 99.25, 99.5, 99.75, 99.9)  # percent that is not sent
ITERATIONS = 16


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--probes", metavar="FILE",
                        help="measured convergence of ViT-B-16 (.csv, as bench_train writes it), for the right panel "
                             "and tune's choices; default: every batch and rate converges equally fast")


def draw(options):
    table = pd.concat([speeds(), choices(options.probes)], ignore_index=True)
    probes = fig3.numbers(options.probes) if options.probes else None
    return [Drawn(FIGURE.name, figure_of(table, probes), table.round(6))]


def command_of(samples, rate):
    batch = cluster.divided(MODEL, GPUS, samples)
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file("stella-fig14"), "--schedule", "stella",
               "--iterations", ITERATIONS, "--json"]
    overrides = (f"train.batch=[{','.join(map(str, batch))}]", f"train.compress.keep={1 - rate / 100:.6g}",
                 f"link.bandwidth={MBPS}Mbps")
    return command + tools.set_words(overrides)


def speeds():
    """A row for each batch and rate."""
    cells = [(samples, rate) for samples in SAMPLES for rate in RATES]
    rows = []
    for (samples, rate), answer in zip(cells, methods.ask_all([command_of(*cell) for cell in cells])):
        seconds = answer["stream"]["period_ns"] * 1e-9
        blocks = cluster.slowest(MODEL, GPUS, cluster.divided(MODEL, GPUS, samples))
        rows.append({"what": "simulated", "mbps": MBPS, "samples": samples, "rate_percent": rate,
                     "iterations_per_s": 1 / seconds, "samples_per_s": samples / seconds,
                     "blocks_share": blocks / seconds})
    return pd.DataFrame(rows)


def choices(probes):
    """What tune chooses at each bandwidth of fig14."""
    return pd.DataFrame([
        {"what": "tune", "mbps": mbps, "samples": sum(one["batch"]), "rate_percent": 100 * one["compression_rate"],
         "iterations_per_s": 1e9 / one["iteration_ns"], "samples_per_s": sum(one["batch"]) * 1e9 / one["iteration_ns"]}
        for mbps, one in zip(fig14.RATES, fig14.chosen(probes))])


def least_rates(mbps, samples):
    """Percent, by equation 6, at each number of samples."""
    return [100 * cluster.least_rate(MODEL, mbps * 1e6, cluster.seconds_of(MODEL, "rtx4090", fig14.by_speed(each)))
            for each in samples]


def figure_of(table, probes):
    plt = style.apply()
    figure, panels = plt.subplots(1, 1 if probes is None else 2, figsize=(6.4 if probes is None else 11.0, 4.6),
                                  squeeze=False)
    simulated = table[table["what"] == "simulated"]
    left = panels[0][0]
    grid = simulated.pivot(index="rate_percent", columns="samples", values="iterations_per_s")
    field = left.contourf(grid.columns, left_out(grid.index), grid.values, levels=14, cmap="viridis")
    figure.colorbar(field, ax=left, label=f"iterations a second over {MBPS} Mbps, simulated", pad=0.015)
    axes_of(left)
    bounds(left, "white")
    left.set_title("(a) speed", loc="left")
    if probes is not None:
        right = panels[0][1]
        shown = probes[left_out(probes["compression_rate"] * 100) <= 100]
        points = right.scatter(shown["batch"], left_out(100 * shown["compression_rate"]), c=shown["g"], cmap="plasma_r",
                               s=34, edgecolor="black", linewidth=0.4)
        figure.colorbar(points, ax=right, label="g: loss above that without compression", pad=0.015)
        axes_of(right, whole=True)
        bounds(right, "#8a8a8a")
        right.set_title("(b) learning, measured by the paper's authors", loc="left")
    tuned = table[table["what"] == "tune"]
    for axes in panels[0]:
        axes.plot(tuned["samples"], left_out(tuned["rate_percent"]), "*", color="#c4161c", markersize=9,
                  markeredgecolor="white", markeredgewidth=0.5, label="tune, 50 Mbps to 1 Gbps")
        axes.plot([batch for _, batch, _ in fig14.PAPER], [100 - rate for *_, rate in fig14.PAPER], "P",
                  color="#ffb000", markersize=8, markeredgecolor="black", markeredgewidth=0.5,
                  label="the paper, 100 Mbps and 1 Gbps")
    bars.finish(figure, left, "ViT-B-16 on two nodes of 2 RTX 4090 and 2 RTX 2080 Ti",
                "Lines: equation 6, the Mbps at which gradients pass within an iteration.", columns=2)
    figure.subplots_adjust(left=0.1 if probes is None else 0.06, wspace=0.2)
    return figure


def left_out(percent):
    """What is sent: the upper end of the rates would have no room otherwise."""
    return 100 - percent


def bounds(axes, colour):
    samples = list(range(SAMPLES[0], SAMPLES[-1] + 1, 10))
    for mbps in LINES:
        sent = [100 - rate for rate in least_rates(mbps, samples)]
        axes.plot(samples, sent, color=colour, linewidth=1.1)
        place = max(at for at, each in enumerate(sent) if each <= 6 or axes.get_xscale() == "log")
        axes.annotate(f"{mbps} Mbps", (samples[place], sent[place]), xytext=(-4, 3), textcoords="offset points",
                      ha="right", color=colour, fontsize=7.5)


def axes_of(axes, whole=False):
    axes.set_yscale("log")
    ticks = (0.1, 0.25, 0.5, 1, 2, 5, 10) + ((100,) if whole else ())
    axes.set_yticks(ticks, [f"{100 - tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0.09, 120 if whole else 10)
    if whole:
        axes.set_xscale("log")
        axes.set_xticks((50, 100, 200, 500, 1000, 2000), ("50", "100", "200", "500", "1000", "2000"))
        axes.minorticks_off()
    axes.set_xlabel("images of an iteration, all 8 GPUs")
    axes.set_ylabel("compression rate (%)")
