"""The testbed of Atlas' figures 9 and 10: 12 GPUs, iteration times of the baselines and of Atlas,
over models, microbatches, latencies and the inputs that the paper leaves open."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from longhaul import provenance
from longhaul.drawing import style
from longhaul.errors import Failure, suggestion
from longhaul.figures.atlas import inputs
from longhaul.figures.atlas.inputs import LATENCIES_MS, MIDDLE, MODELS, RATIOS
from longhaul.running import measuring, predict, tools

SCENARIO = "atlas-fig9"
BASELINES = ("gpipe", "1f1b", "varuna")
ATLAS, EVEN = "atlas", "atlas-even"
NAMES = {"gpipe": "GPipe", "1f1b": "Megatron (1F1B)", "varuna": "Varuna",
         "varuna-fill": "Varuna, R in idle time", ATLAS: "Atlas",
         EVEN: "Atlas, turns to the pipeline furthest behind (ours)"}
COLOURS = {"gpipe": "#1f1f1f", "1f1b": "#0b5394", "varuna": "#9fcf8f", "varuna-fill": "#d9ead3",
           ATLAS: "#c2185b", EVEN: "#f0b6cc"}
SHOWN = (*BASELINES, ATLAS, EVEN)
SYNC = {"ring-rate": "with all-reduce", "none": "without all-reduce"}
# The points that ranks run unless told otherwise: a subset that takes some minutes.
MEASURED = {"models": "gpt-a", "latencies": "10,40", "ratios": "3.5", "syncs": "ring-rate",
            "microbatches": "4,16"}
DEFAULTS = {"models": ",".join(MODELS), "latencies": ",".join(map(str, LATENCIES_MS)),
            "ratios": ",".join(f"{ratio:g}" for ratio in RATIOS), "syncs": ",".join(SYNC),
            "microbatches": "4,16"}
PLACE = ["model", "microbatches", "latency_ms", "ratio", "sync"]


@dataclass(frozen=True)
class Place:
    model: str
    microbatches: int
    latency_ms: int
    ratio: float
    sync: str

    def overrides(self, connections):
        return (*MODELS[self.model].overrides(self.ratio),
                f"parallel.microbatches={self.microbatches}",
                f"parallel.gradient_sync={self.sync}", f"link.latency={self.latency_ms}ms",
                f"link.connections={connections}")

    def label(self, connections):
        return (f"{self.model}/m{self.microbatches}-{self.latency_ms}ms-{self.ratio:g}f-{self.sync}"
                f"-tcp-{connections}")


def add_arguments(parser, minutes):
    measuring.add_arguments(parser, "runs/atlas-fig9", minutes)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", metavar="X[,X]",
                            help=f"(default: {default}; with --measure: {MEASURED[name]})")


def places(options, measured=False):
    def chosen(name, kind, known=None):
        text = getattr(options, name) or (MEASURED if measured else DEFAULTS)[name]
        return [value_of(name, word, kind, known) for word in text.split(",")]
    return [Place(model, count, ms, ratio, sync) for model in chosen("models", str, MODELS)
            for count in chosen("microbatches", int) for ms in chosen("latencies", int)
            for ratio in chosen("ratios", float) for sync in chosen("syncs", str, SYNC)]


def value_of(name, word, kind, known=None):
    """One word of an option's list."""
    if known is not None and word not in known:
        raise Failure(f'--{name}: there is no "{word}". {suggestion(word, list(known))}')
    try:
        value = kind(word)
        if known is None and not value > 0:
            raise ValueError
    except ValueError:
        raise Failure(f'--{name}: "{word}" is no number above 0 (a list has commas between '
                      "numbers). Correct it.") from None
    return value


def numbers(options, name, baseline_connections):
    """A row for each schedule at each place; None where --dry-run prints the commands."""
    scenario = tools.scenario_file(SCENARIO)
    wanted = {"auto": (ATLAS, EVEN)}
    wanted[baseline_connections] = (*BASELINES, "varuna-fill",
                                    *wanted.get(baseline_connections, ()))

    # A run with many connections serves both figures.
    runs = {n: BASELINES if n == "1" else SHOWN for n in wanted}

    def ask(chosen, schedules):
        asked = {(place, n): predict.Question(scenario, names, (*place.overrides(n), *options.set))
                 for place in chosen for n, names in schedules.items()}
        said = predict.ask_all(asked.values())
        return {key: said[question] for key, question in asked.items()}

    def points():
        chosen = places(options, measured=True)
        return [inputs.point(scenario, place.label(n), place.overrides(n), runs[n], entries)
                for (place, n), entries in ask(chosen, runs).items()]
    results = measuring.results_of(options, points, name)
    if measuring.is_dry(options):
        return None
    played = inputs.measured(results) if results else {}
    chosen = places(options, measured=results is not None)
    return pd.DataFrame([row_of(place, n, schedule, entry, played, options)
                         for (place, n), entries in ask(chosen, wanted).items()
                         for schedule, entry in entries.items()])


def row_of(place, connections, schedule, entry, played, options):
    key = frozenset((*place.overrides(connections), *options.set))
    run = played.get((SCENARIO, key, schedule), {})
    row = {"model": place.model, "microbatches": place.microbatches,
            "latency_ms": place.latency_ms, "ratio": place.ratio, "sync": place.sync,
            "connections": connections, "schedule": schedule,
            "predicted_s": predict.seconds(entry), "utilization": inputs.utilization(entry),
            "over_budget": bool(entry["over_budget"]),
            "measured_min_s": run.get("measured_min_s"),
            "measured_median_s": run.get("measured_median_s"),
            "difference_percent": run.get("difference_percent"), "check": run.get("check"),
            "time_scale": run.get("time_scale"), "n": run.get("n"), "commit": run.get("commit")}
    return provenance.add(row, run) if played else row


def gains(table, baseline, over=ATLAS):
    """Time of the baseline over that of Atlas, by place; measured medians where there are some."""
    seconds = table["measured_median_s"].astype(float).fillna(table["predicted_s"])
    wide = table.assign(seconds=seconds).pivot_table(index=PLACE, columns="schedule",
                                                     values="seconds")
    return wide[baseline] / wide[over]


def source(table):
    """For verdicts: are these numbers measured, and of which part of the paper's inputs?"""
    rows = table[table["measured_median_s"].notna()]
    if rows.empty:
        return "Simulated."
    return (f"Medians measured on ranks, at {rows[PLACE].drop_duplicates().shape[0]} of the "
            "figure's inputs.")


def most(found):
    """{(ratio, sync): the largest gain over the other inputs}: "up to", for each choice of the
    inputs that the paper leaves open."""
    found = found.reset_index(name="gain")
    return found.groupby(["ratio", "sync"])["gain"].max()


def where(found):
    """The place of the largest gain, for people."""
    place = Place(*found.idxmax())
    return (f"{MODELS[place.model].name}, M = {place.microbatches}, {place.latency_ms} ms, a "
            f"transfer of {place.ratio:g} F, {SYNC[place.sync]}")


def figure_of(table, title):
    """A panel for each model and M, bars grouped by latency; lines span the open inputs."""
    plt = style.apply()
    models = list(dict.fromkeys(table["model"]))
    counts = sorted(table["microbatches"].unique())
    figure, axes = plt.subplots(len(models), len(counts), squeeze=False,
                                figsize=(10.8, 1.35 + 2.75 * len(models)))
    for line, model in zip(axes, models):
        for panel, count in zip(line, counts):
            _panel(panel, table[(table["model"] == model) & (table["microbatches"] == count)])
            panel.set_title(f"{MODELS[model].name}, M = {count}", loc="left")
        line[0].set_ylabel("iteration time (s)")
    for panel in axes[-1]:
        panel.set_xlabel("latency between datacenters, one way (ms)")
    ran = table["measured_median_s"].notna().any()
    handles = [Patch(facecolor=COLOURS[name], edgecolor="black", lw=0.4, label=NAMES[name])
               for name in SHOWN]
    handles.append(Line2D([], [], marker="D", markersize=4, linestyle="", color="black",
                          label="predicted (bars: median on ranks)") if ran else
                   Line2D([], [], color="black", lw=0.8, label="span of the open inputs"))
    height = figure.get_size_inches()[1]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.suptitle(f"{title}, " + ("measured" if ran else "simulated"), x=0.065,
                    y=1 - 0.08 / height, ha="left", va="top", fontsize=11, fontweight="bold")
    figure.text(0.065, 1 - 0.33 / height, "Above the bars of the baselines: how many times as long "
                "as Atlas.", fontsize=8, va="top")
    figure.subplots_adjust(left=0.065, right=0.99, top=1 - 0.78 / height, bottom=0.98 / height,
                           hspace=0.42, wspace=0.12)
    return figure


def _panel(axes, rows):
    latencies = sorted(rows["latency_ms"].unique())
    step = 0.86 / len(SHOWN)
    ratio = MIDDLE if MIDDLE in set(rows["ratio"]) else rows["ratio"].iloc[0]
    sync = "ring-rate" if "ring-rate" in set(rows["sync"]) else rows["sync"].iloc[0]
    for group, ms in enumerate(latencies):
        here = rows[rows["latency_ms"] == ms]
        base = here[(here["ratio"] == ratio) & (here["sync"] == sync)].set_index("schedule")
        heights = base["measured_median_s"].astype(float).fillna(base["predicted_s"])
        for index, name in enumerate(SHOWN):
            x = group - 0.43 + (index + 0.5) * step
            axes.bar(x, heights[name], step * 0.94, color=COLOURS[name], edgecolor="black",
                     linewidth=0.4)
            own = here[here["schedule"] == name]["predicted_s"]
            top = max(heights[name], own.max())
            ran = not np.isnan(float(base.loc[name, "measured_median_s"] or "nan"))
            if not ran:
                axes.vlines(x, own.min(), own.max(), color="black", linewidth=0.8)
            else:
                axes.plot(x, base.loc[name, "predicted_s"], marker="D", markersize=3,
                          color="black", markeredgecolor="white", markeredgewidth=0.5)
            text = (f"{heights[name] / heights[ATLAS]:.3g}x" if name in BASELINES
                    else f"{heights[name]:.2f} s")
            axes.annotate(text, (x, top), xytext=(0, 2 + 3 * ran), textcoords="offset points", ha="center",
                          va="bottom", fontsize=6, rotation=90)
    axes.set_xticks(range(len(latencies)), [f"{ms:g}" for ms in latencies])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(y=0.18)
