"""StellaTrain 5.1: GPT-2 over 1 Gbps, by each reading of "iterations a second"."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, methods
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "stella-gpt2",
    summary="GPT-2 over 1 Gbps: iterations a second, by each reading of them (section 5.1)",
    shows="GPT-2 over 1 Gbps: iterations a second, by each reading of them (5.1)",
    repeat=Repeat("stella", seconds=8, simulate=("--simulate",)),
    expected=(
        Expected("GPT-2 on one node (iterations/s of both GPUs together)", "calibrated", low=17.79,
                 high=17.81, column="iterations_per_s", where="reading=together; method=node",
                 why="The preset's beta is 8 x 17.8 samples/s."),
        Expected("GPT-2 on one node (iterations/s, added up)", "calibrated", low=17.79, high=17.81,
                 column="iterations_per_s", where="reading=added up; method=node",
                 why="With that reading each of two GPUs does 8.9.")))
BATCH, RATE = 8, 17.8          # of a GPU (assumed), and of two RTX 4090
PARAMETERS, MBPS = 123_600_000, 1000
SLOWER = {"rtx4090": 1, "rtx3090": 300 / 148, "rtx2080ti": 300 / 99}  # ViT-B-16's: docs/scenario.md
GPUS = ("rtx4090",) * 4 + ("rtx3090",) * 2 + ("rtx2080ti",) * 2
READINGS = {"together": 1, "added up": 2, "batches of 8": 2}  # times of F and B, of the preset's
NAMES = {"node": "one node, 2 RTX 4090", "ddp": "PyTorch DDP", "ddp-hetero": "DDP + Hetero",
         "stella": "StellaTrain"}
PAPER = {"stella": 27.2, "node": 17.8, "ddp": 1.58}


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def seconds_of_batch(gpu, batch, reading):
    """F and B; below the alpha of 8 as long as at it."""
    return READINGS[reading] * max(batch, BATCH) / BATCH * SLOWER[gpu] / RATE


def batch_of(method, reading):
    """Samples of each GPU: 8, or as many as it has time for while the slowest does 8."""
    if method == "ddp" or reading == "added up":
        return [BATCH] * len(GPUS)
    return [int(BATCH * SLOWER["rtx2080ti"] / SLOWER[gpu] + 1e-9) for gpu in GPUS]


def command_of(method, reading):
    batch = batch_of(method, reading)
    seconds = max(seconds_of_batch(gpu, own, reading) for gpu, own in zip(GPUS, batch))
    words = [tools.binary("longhaul"), "simulate", tools.scenario_file("stella-gpt2"), "--json",
             "--schedule", "stella" if method == "stella" else "1f1b",
             "--iterations", methods.ITERATIONS if method == "stella" else methods.FEW,
             "--set", f"train.batch={[own * READINGS[reading] for own in batch]}"]
    if method == "stella":
        hidden = MBPS * 1e6 * seconds / (64 * PARAMETERS * 7 / 8)
        return [*words, "--set", f"train.compress.keep={hidden:.6g}"]
    return [*words, "--set", "parallel.gradient_sync=all-reduce"]


def rate_of(seconds, batch, reading):
    """Iterations a second: of all GPUs together, added up over them, or batches of 8 samples."""
    return {"together": 1, "added up": len(batch), "batches of 8": sum(batch) / BATCH}[reading] / \
        seconds


def numbers():
    cells = [(method, reading) for reading in READINGS
             for method in ("ddp", "ddp-hetero", "stella")]
    answers = methods.ask_all([command_of(*cell) for cell in cells])
    rows = [{"reading": reading, "method": "node", "samples": 2 * BATCH,
             "iteration_ms": 1e3 * seconds_of_batch("rtx4090", BATCH, reading),
             "iterations_per_s": rate_of(seconds_of_batch("rtx4090", BATCH, reading),
                                         [BATCH] * 2, reading)} for reading in READINGS]
    for (method, reading), answer in zip(cells, answers):
        batch, seconds = batch_of(method, reading), methods.seconds_of(answer)
        rows.append({"reading": reading, "method": method, "samples": sum(batch),
                     "iteration_ms": 1e3 * seconds,
                     "iterations_per_s": rate_of(seconds, batch, reading)})
    return pd.DataFrame(rows)


def verdicts(table):
    rate = table.set_index(["reading", "method"])["iterations_per_s"]

    def over(method):
        return {reading: rate[reading, "stella"] / rate[reading, method] for reading in READINGS}

    judged = []
    for claim, method in (("stella-gpt2-ddp", "ddp"), ("stella-gpt2-hetero", "ddp-hetero")):
        found = over(method)
        judged.append(claims.judge(
            claim, claims.over_inputs(
                found.values(),
                lambda one, claim=claim: claims.at_least(one, claims.value(claim))),
            "; ".join(f"{value:.1f} ({reading})" for reading, value in found.items()),
            "27.2 / 1.58 is 17.2: the paper's ratio is of iterations, without convergence."
            if method == "ddp" else "With 8 samples on each GPU both are one."))
    for claim, found in (
            ("stella-gpt2-gain", {
                reading: 100 * (rate[reading, "stella"] / rate[reading, "node"] - 1)
                for reading in READINGS}),
            ("stella-gpt2-slower", {reading: rate[reading, "node"] / rate[reading, "ddp"]
                                    for reading in READINGS})):
        judged.append(claims.judge(
            claim, claims.over_inputs(
                found.values(),
                lambda one, claim=claim: claims.at_least(one, claims.value(claim))),
            "; ".join(f"{value:.1f} ({reading})" for reading, value in found.items()),
            "27.2 / 17.8 is 1.53." if claim.endswith("gain") else "17.8 / 1.58 is 11.27."))
    claim, wanted = "stella-gpt2-rates", (PAPER["stella"], PAPER["ddp"])

    def near(reading):
        agree = [claims.within(rate[reading, method], theirs)
                 for method, theirs in zip(("stella", "ddp"), wanted)]
        return agree[0] if agree[0] == agree[1] else claims.PARTLY

    judged.append(claims.judge(
        claim, claims.over_inputs(READINGS, near),
        "; ".join(f"{rate[reading, 'stella']:.1f}, {rate[reading, 'node']:.1f}, "
                  f"{rate[reading, 'ddp']:.2f} ({reading})" for reading in READINGS),
        "One node's 17.8 is an input. Together: 27.2 iterations a second leave 37 ms, in which no "
        "GPU finishes what takes 56 on the fastest. Added up over GPUs ours has "
        f"{100 * (rate['added up', 'stella'] / wanted[0] - 1):+.0f} and "
        f"{100 * (rate['added up', 'ddp'] / wanted[1] - 1):+.0f}% of the paper's two."))
    return judged


def figure_of(table):
    plt = style.apply()
    figure, panels = plt.subplots(1, len(READINGS), figsize=(10.4, 4.2), sharey=True)
    colours = methods.COLOURS | {"node": "#0b5394"}
    for panel, reading in zip(panels, READINGS):
        own = table[table["reading"] == reading].set_index("method")["iterations_per_s"]
        for place, (method, name) in enumerate(NAMES.items()):
            panel.bar(place, own[method], 0.7, color=colours[method], edgecolor="black",
                      linewidth=0.4, label=name)
            panel.annotate(f"{own[method]:.3g}", (place, own[method]), xytext=(0, 2), ha="center",
                           textcoords="offset points", fontsize=8)
        places = [list(NAMES).index(method) + 0.43 for method in PAPER]
        panel.plot(places, list(PAPER.values()), "*", color="#c4161c", markersize=9,
                   label="the paper")
        panel.set_yscale("log")
        panel.set_xticks([])
        panel.set_title({"together": "Iterations of all GPUs together",
                         "added up": "Added up over GPUs, 8 samples each",
                         "batches of 8": "Batches of 8 samples"}[reading], loc="left")
        bars.ground(panel)
    bars.headroom(panels[0])
    panels[0].set_ylabel("iterations/s")
    bars.finish(figure, panels[0], "GPT-2 over 1 Gbps, simulated",
                "One node is the preset's: 17.8 a second of both GPUs, or 8.9 of each.", columns=5)
    return figure
