"""StellaTrain figure 14 b and c: batches and rate adapted to a trace of the WAN, or fixed.

Two RTX 4090 and two RTX 2080 Ti. All begin with batches by speed and the rate that hides the
exchange at the trace's mean; what adapts neither also with those for 50 and 193 Mbps. Memory
holds 4 times alpha of an RTX 4090. Time to a loss: a sample's times 1 + g."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.stella import bars, cluster, methods
from longhaul.papers import claims
from longhaul.running import tools

FIGURE = Figure(
    "stella-adaptation",
    summary="batches and rate adapted to a trace, the rate alone, and neither (figure 14 b, c)",
    shows="batches and rate adapted to a trace of 115.7 Mbps, the rate alone, and neither (figure "
          "14 b, c)",
    options="[--probes FILE] [--scale X]",
    repeat=Repeat("stella", seconds=15, simulate=("--simulate",),
                  data=(("--probes", "stella_probes_vit_b_16.csv"),)))
MODEL = "swin-b"          # of the paper's claim
GPU = "rtx4090"           # whose memory, in the paper's only pair, holds FULL times alpha
ITERATIONS = 3000         # two turns of the trace, or more
BOTH, RATE, NOTHING = "both", "rate", "nothing"
ESTIMATES = ("idle", "links")
FIXED = (50, 115.7, 193)  # Mbps: the trace's least and mean, and the mean of section 2.1
LABELS = {BOTH: "batches and rate adapted", RATE: "the rate alone", NOTHING: "neither"}
COLOURS = {"rtx4090": "#0b5394", "rtx2080ti": "#c9561a"}
NAMES = {"rtx4090": "RTX 4090", "rtx2080ti": "RTX 2080 Ti"}


@dataclass(frozen=True)
class Adapted:
    """A run: what is adapted, by which estimate; `mbps`: for which its first rate is chosen."""

    changes: str
    estimate: str
    mbps: float


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")
    parser.add_argument("--probes", metavar="FILE",
                        help="measured convergence of a model of table 2 (.csv, with the columns "
                             "model, version, batch, compression_rate, g); default: none, every "
                             "batch and rate of Swin-B converges equally fast")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X",
                        help="of g (default: 1; the paper's code has 50)")


def draw(options):
    model = model_of(options.probes)
    runs = all_runs()
    answers = methods.ask_all([command_of(run, model, options) for run in runs])
    table = pd.DataFrame([row_of(run, model, one) for run, one in zip(runs, answers)])
    shown = over_time(answers[runs.index(Adapted(BOTH, "idle", FIXED[1]))])
    figure = figure_of(table, shown, model, bool(options.probes))
    numbers = pd.concat([table, shown], ignore_index=True).round(6)
    return [Drawn(FIGURE.name, figure, numbers, verdicts(table, shown, bool(options.probes)))]


def model_of(probes):
    """The model that probes are of."""
    if not probes:
        return MODEL
    return pd.read_csv(probes, comment="#")["model"].iloc[0].lower().replace("_", "-")


def all_runs():
    """Those that adapt begin at the mean of the trace."""
    return [*(Adapted(changes, estimate, FIXED[1])
              for changes in (BOTH, RATE) for estimate in ESTIMATES),
            *(Adapted(NOTHING, "idle", mbps) for mbps in FIXED)]


def overrides(run, model, probes, scale=1.0):
    """Batches at first are divided by speed while the slowest GPU saturates."""
    as_stella = methods.Run("stella", model, run.mbps, cluster.ADAPTED)
    batch = methods.batch_of(as_stella)
    seconds = cluster.slowest(model, cluster.ADAPTED.gpus, batch)
    words = [f"train.preset={model}", f"train.batch=[{','.join(map(str, batch))}]",
             f"train.compress.keep={methods.kept(as_stella, seconds):.6g}",
             f"train.adapt.most_batch={cluster.FULL * cluster.throughput(model, GPU)[0]:g}",
             f"train.adapt.changes={run.changes}", f"train.adapt.estimate={run.estimate}"]
    if probes:
        words += [f"train.adapt.probes={Path(probes).resolve()}", f"train.adapt.scale={scale:g}"]
    return words


def command_of(run, model, options):
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(cluster.ADAPTED.scenario),
               "--schedule", "stella", "--iterations", ITERATIONS, "--json"]
    command += tools.set_words(overrides(run, model, options.probes, options.scale))
    return command


def row_of(run, model, answer):
    """Time to a loss: of a sample, over what it brings (equation 5)."""
    stream = answer["stream"]
    seconds = stream["iteration_start_ns"][-1] * 1e-9
    rates = [one["compression_rate"] for one in answer["adaptation"]]
    return {"panel": "b", "model": model, "changes": run.changes, "estimate": run.estimate,
            "first_mbps": run.mbps, "seconds": seconds, "decisions": len(rates),
            "samples_per_s": stream["samples"] / seconds,
            "tta_ms": 1e3 * seconds / stream["effective_samples"],
            "rate_percent": 100 * float(np.mean(rates)) if rates else float("nan")}


def bandwidth_at(seconds):
    """Of the trace, in Mbps."""
    trace = pd.read_csv(tools.SCENARIOS / "stella-wan.csv", comment="#")
    row = trace["time_s"].searchsorted(seconds % methods.TRACE_S, side="right") - 1
    return float(trace["bandwidth_mbps"].iloc[row])


def over_time(answer):
    """A row for each decision: when it applies, what it believes, and the batch of each GPU."""
    starts = methods.starts_of(answer)
    rows = []
    for one in answer["adaptation"]:
        at = starts[one["iteration"]]
        batch = dict(zip(cluster.ADAPTED.gpus, one["batch"]))
        rows.append({"panel": "c", "time_s": at, "mbps": bandwidth_at(at),
                     "believed_mbps": one["bandwidth_bits_per_second"] * 1e-6,
                     "samples": sum(one["batch"]), "reason": one["reason"],
                     "rate_percent": 100 * one["compression_rate"]}
                    | {f"batch_{gpu}": size for gpu, size in batch.items()})
    return pd.DataFrame(rows)


def sooner(table, changes):
    """Percent by which the loss is reached sooner with both adapted, one for each reading: by the
    estimate, over each run of `changes`."""
    found = []
    for estimate in ESTIMATES:
        own = table[table["estimate"] == estimate]
        both = own[own["changes"] == BOTH]["tta_ms"].iloc[0]
        others = table if changes == NOTHING else own
        found += [100 * (1 - both / one) for one in others[others["changes"] == changes]["tta_ms"]]
    return found


def follows(shown):
    """(do faster GPUs always have larger batches, mean samples in the slower half of the time over
    those in the faster half)."""
    more = bool((shown["batch_rtx4090"] > shown["batch_rtx2080ti"]).all())
    middle = shown["mbps"].median()
    slow, fast = (shown[own]["samples"].mean() for own in
                  (shown["mbps"] < middle, shown["mbps"] > middle))
    return more, float(slow / fast)


def verdicts(table, shown, measured):
    theirs = claims.values("stella-adaptation")
    found = [sooner(table, changes) for changes in (NOTHING, RATE)]
    said = " and ".join(claims.spread(one, ".1f", "%") for one in found)
    verdict = claims.over_inputs(
        [(gain, value) for gains, value in zip(found, theirs) for gain in gains],
        lambda one: claims.at_least(*one))
    why = (f"1 less the time to a loss over that of the others; neither at rates that hide the "
           f"exchange at {', '.join(f'{mbps:g}' for mbps in FIXED)} Mbps, by idle time and by "
           "links.")
    more, ratio = follows(shown)
    without = ("" if measured else " Of the time of a sample: no probes were given (--probes), and "
               "where all batches converge equally fast their choice follows no bandwidth.")
    return [
        claims.judge("stella-adaptation", verdict if measured else claims.NOT_JUDGED, said,
                     why + without),
        claims.judge("stella-adapted-batches",
                     claims.by_count(more + (ratio > 1), 2) if measured else claims.NOT_JUDGED,
                     f"larger for faster GPUs {'always' if more else 'not always'}; {ratio:.2f} "
                     "times as many samples in the slower half of the time",
                     "By decisions of the controller, by idle time." + without)]


def figure_of(table, shown, model, measured):
    plt = style.apply()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.6), width_ratios=(1, 1.7))
    best = table[table["changes"] == BOTH]["tta_ms"].iloc[0]
    labels = [f"{LABELS[row.changes]}\n" + (f"for {row.first_mbps:g} Mbps"
              if row.changes == NOTHING else f"by {row.estimate}") for row in table.itertuples()]
    left.barh(labels, table["tta_ms"] / best, color="#9fcf8f", edgecolor="black", linewidth=0.4)
    left.invert_yaxis()
    left.tick_params(axis="y", labelsize=7)
    left.set_xlabel("time to a loss, relative")
    own = shown[shown["time_s"] <= methods.TRACE_S]
    for gpu, colour in COLOURS.items():
        right.step(own["time_s"], own[f"batch_{gpu}"], where="post", color=colour,
                   label=f"batch of an {NAMES[gpu]}")
    right.set_xlabel("time (s)")
    right.set_ylabel("samples of a GPU")
    right.set_ylim(0, 1.35 * own["batch_rtx4090"].max())
    link = right.twinx()
    link.plot(own["time_s"], own["mbps"], "--", color="#8a8a8a", linewidth=0.9, label="the trace")
    link.plot(own["time_s"], own["believed_mbps"], color="#2aa552", linewidth=0.9,
              label="believed by idle time")
    link.set_ylabel("Mbps")
    link.set_ylim(0, 1.35 * own["mbps"].max())
    for axes in (left, right):
        bars.ground(axes, both=True)
    handles, names = right.get_legend_handles_labels()
    more = link.get_legend_handles_labels()
    right.legend(handles + more[0], names + more[1], loc="upper center", ncols=2, frameon=False,
                 fontsize=7.5)
    bars.finish(figure, left, f"{cluster.NAMES[model]} over the trace of 115.7 Mbps, simulated",
                "Convergence by measured probes." if measured else
                "All batches and rates converge equally fast: of the time of a sample alone.")
    figure.subplots_adjust(left=0.16, right=0.94, wspace=0.16)
    return figure
