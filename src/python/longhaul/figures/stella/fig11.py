"""StellaTrain figure 11: iteration speed of the systems over the bandwidth of the WAN."""

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.papers import claims
from longhaul.papers.expected import Expected

FIGURE = Figure(
    "stella-fig11",
    summary="iterations a second of six systems over the bandwidth, three models (figure 11)",
    shows="iterations a second of six systems over the bandwidth",
    repeat=Repeat("stella", seconds=45, simulate=("--simulate",)),
    expected=(
        Expected("iterations/s of Swin-B at 10 Gbps, exchange hidden", "bound", low=0, high=3.112,
                 column="iterations_per_s", where="model=swin-b; mbps=10000; method=stella",
                 why="36 images on an RTX 3090 take 36/112 s."),))
RATES = (50, 100, 200, 500, 1000, 3000, 10000)
CLAIMED = (100, 500, 1000)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    runs = [run for run in methods.grid(cluster.MODELS, RATES)
            if run.batches == "same" or (run.method == "compress" and run.mbps in CLAIMED)]
    table = methods.numbers(runs)
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def gains(table, mbps):
    """{(reading, batches): percent of each model} over BytePS-Compress, in iterations a second."""
    found = {}
    for model in cluster.MODELS:
        own = table[(table["model"] == model) & (table["mbps"] == mbps)]
        speed = own.set_index(["method", "batches"])["iterations_per_s"]
        for stella in methods.STELLA:
            for batches in methods.BATCHES:
                times = speed[stella, "same"] / speed["compress", batches]
                found.setdefault((stella, batches), []).append(100 * (times - 1))
    return found


def verdicts(table):
    judged = []
    for mbps in CLAIMED:
        claim, readings = f"stella-{mbps}-iterations", gains(table, mbps)
        judged.append(claims.judge(
            claim, methods.up_to(claim, readings), methods.said(readings, "+.0f") + " (%)",
            "Of iterations, over BytePS-Compress + Hetero. It keeps 1, 5 and 10% at these "
            "bandwidths, so that its exchange takes equally long at each."))
    return judged


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, len(cluster.MODELS), figsize=(10.4, 4.6), sharey=True)
    for panel, model in zip(panels, cluster.MODELS):
        for method, label in methods.LABELS.items():
            own = table[(table["model"] == model) & (table["method"] == method)
                        & (table["batches"] == "same")]
            panel.plot(own["mbps"], own["iterations_per_s"], marker="o", markersize=3.5,
                       color=methods.COLOURS[method], label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(RATES, ["50", "100", "200", "500", "1G", "3G", "10G"])
        panel.minorticks_off()
        panel.set_xlabel("bandwidth of the WAN (Mbps; G: Gbps)")
        panel.set_title(cluster.NAMES[model], loc="left")
        bars.ground(panel, both=True)
    bars.plain_ticks(panels[0])
    panels[0].set_ylabel("iterations/s")
    bars.finish(figure, panels[0], "Iterations a second, the same batches for all, simulated",
                "BytePS-Compress keeps 1% at 50 to 200 Mbps, 5% at 500, 10% from 1 Gbps on.")
    return figure
