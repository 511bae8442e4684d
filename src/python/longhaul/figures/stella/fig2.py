"""StellaTrain figure 2: bandwidth that models need, and utilisation of GPUs under PyTorch DDP."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.figures.stella.methods import Run
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "stella-fig2",
    summary="bandwidth that models need, and utilisation of DDP over the bandwidth (figure 2)",
    shows="bandwidth that models need, and utilisation of GPUs under PyTorch DDP over it",
    repeat=Repeat("stella", seconds=15, simulate=("--simulate",)),
    expected=(
        Expected("ViT-B-16 on an RTX 4090 at alpha needs (Mbps)", "exact", low=30171, high=30172,
                 column="needed_mbps", where="model=vit-b-16; gpu=rtx4090",
                 reduce="max", why="32 x 88e6 bits each 28/300 s."),))
RATES = (50, 100, 200, 500, 1000, 3000, 10000)
RESNET50 = "resnet50"
NAMES = cluster.NAMES | {RESNET50: "ResNet50 (assumed)"}
COLOURS = {RESNET50: "#8a8a8a", "resnet152": "#1f1f1f", "vit-b-16": "#0b5394", "swin-b": "#c2185b"}
# ResNet50 is ResNet152 with fewer FLOPs and parameters (He et al. 2016, table 1; the paper says
# neither its parameters nor its throughput): an image takes as much less time.
FLOPS = 3.8 / 11.3
WEIGHTS = 25.6e6 / 58e6
IMAGES = (64, 256)  # of an RTX 4090 with ResNet50: saturates it, fills it (section 4.2)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def resnet50_run(mbps, images):
    """DDP of ResNet50 as ResNet152 over as much more bandwidth, with images of as many more FLOPs:
    the same times but for latencies, which 14 turns of a ring do not show."""
    batch = [max(1, round(images * FLOPS))] * len(cluster.EIGHT.gpus)
    return Run("ddp", "resnet152", mbps / WEIGHTS,
               more=(f"train.batch={batch}", f"link.bandwidth={mbps / WEIGHTS:.6g}Mbps",
                     f"node.lab.internal={10 / WEIGHTS:.6g}Gbps"))


def numbers():
    points = [(model, mbps, images) for mbps in RATES for model in (RESNET50, *cluster.MODELS)
              for images in (IMAGES if model == RESNET50 else (0,))]
    runs = [resnet50_run(mbps, images) if images else Run("ddp", model, mbps)
            for model, mbps, images in points]
    rows = [{"part": "needed", "model": model, "gpu": gpu, "needed_mbps": needed(model, gpu)}
            for model in cluster.MODELS for gpu in dict.fromkeys(cluster.EIGHT.gpus)]
    for (model, mbps, images), answer in zip(points, methods.ask_all(commands(runs))):
        busy = [1 - one for one in answer["schedules"][0]["bubble_ratio"]]
        rows.append({"part": "utilisation", "model": model, "mbps": mbps, "images": images or "",
                     "used_percent": 100 * sum(busy) / len(busy),
                     "remote_percent": 100 * sum(busy[6:]) / 2})
    return pd.DataFrame(rows)


def commands(runs):
    """A later override of one path replaces an earlier one's."""
    found = []
    for run in runs:
        words = [tools.binary("longhaul"), "simulate", tools.scenario_file(run.where.scenario),
                 "--schedule", "1f1b", "--json"]
        chosen = {word.split("=", 1)[0]: word for word in methods.overrides(run)}
        found.append(words + tools.set_words(chosen.values()))
    return found


def needed(model, gpu):
    """Mbps that pass all gradients of a model within a batch of alpha (equation 6, rate 0)."""
    alpha, beta = cluster.throughput(model, gpu)
    return 32 * cluster.parameters(model) / (alpha / beta) / 1e6


def trace():
    path = tools.SCENARIOS / "stella-wan.csv"
    return pd.read_csv(path, comment="#")["bandwidth_mbps"]


def verdicts(table):
    own = table[(table["model"] == RESNET50) & (table["mbps"] == 1000)]
    remote, used = list(own["remote_percent"]), list(own["used_percent"])
    claim = "stella-utilisation"
    theirs, wan = claims.value(claim), trace()
    least = table[table["part"] == "needed"]["needed_mbps"].min()
    return [
        claims.judge(claim, claims.over_inputs(remote + used,
                                               lambda one: claims.within(one, theirs)),
                     f"remote node {claims.spread(remote, '.1f', '%')}, all GPUs "
                     f"{claims.spread(used, '.1f', '%')} (64 to 256 images a GPU)",
                     "ResNet50's parameters (25.6 M) and FLOPs over ResNet152's are not the "
                     "paper's; its batch is open."
                     + (" 17% lies between." if min(remote) < theirs < max(remote) else "")),
        claims.judge("stella-wan", claims.NOT_JUDGED,
                     f"the trace that is shipped: {wan.min():.0f} to {wan.max():.0f}, mean "
                     f"{wan.mean():.1f} Mbps",
                     "Synthetic, within the paper's range and of the mean of its section 5 (115.7, "
                     "where 2.1 has 193): CloudLab's is not published. All of ResNet152, ViT-B-16 "
                     f"and Swin-B need more, {least / 1000:.1f} Gbps at least.")]


def figure_of(table):
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.5))
    needs = table[table["part"] == "needed"]
    marks = {"rtx4090": "o", "rtx3090": "s", "rtx2080ti": "^"}
    for row in needs.itertuples():
        left.plot(row.needed_mbps, NAMES[row.model], marks[row.gpu], color=COLOURS[row.model],
                  label={"rtx4090": "RTX 4090", "rtx3090": "RTX 3090",
                         "rtx2080ti": "RTX 2080 Ti"}[row.gpu] if row.model == "swin-b" else None)
    left.axvspan(50, 600, color="#f6e3b4", label="WAN: 50 to 600 Mbps")
    left.set_xscale("log")
    left.set_xlim(30, 60000)
    left.set_xticks([100, 1000, 10000], ["100", "1G", "10G"])
    left.margins(y=0.3)
    left.set_xlabel("Mbps (G: Gbps) that pass all gradients within a batch of alpha")
    left.set_title("Needed bandwidth", loc="left")
    left.legend(frameon=False, loc="center left", bbox_to_anchor=(0.38, 0.72))
    _used(right, table[table["part"] == "utilisation"])
    bars.finish(figure, right, "Bandwidth that models need, and have",
                "PyTorch DDP on the 8 GPUs of stella-8gpu, a ring; the same batch on each GPU.",
                columns=5)
    figure.subplots_adjust(left=0.1, wspace=0.16)
    return figure


def _used(axes, table):
    for (model, images), own in table.groupby(["model", "images"], sort=False):
        label = NAMES[model] + (f", {images} images" if images else "")
        axes.plot(own["mbps"], own["used_percent"], "--" if images == 256 else "-", marker="o",
                  markersize=3.5, color=COLOURS[model], label=label)
    axes.plot(1000, claims.value("stella-utilisation"), "*", color="#c4161c", markersize=10,
              linestyle="none", label="the paper, ResNet50")
    axes.set_xscale("log")
    axes.set_xticks(RATES, ["50", "100", "200", "500", "1G", "3G", "10G"])
    axes.minorticks_off()
    axes.set_xlabel("bandwidth of the WAN (Mbps; G: Gbps)")
    axes.set_ylabel("GPUs busy (%)")
    axes.set_title("Utilisation under PyTorch DDP, simulated", loc="left")
    bars.ground(axes, both=True)
