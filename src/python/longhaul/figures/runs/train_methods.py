"""How long until a model is trained over a thin link, by each method, over the link's rate.

Trained once over the scenario's own link; for other rates 12 iterations of each method are
measured (--compute timed) and composed with the same updates; with stale weights there is one
point."""

from itertools import cycle
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import train_records
from longhaul.records import is_finished

FIGURE = Figure(
    "train-methods",
    summary="time to a validation loss of each method of training, over the rate of the WAN",
    shows="time to a validation loss of each method, over the rate of the WAN "
          "([training.md](training.md#training-on-ranks))",
    options="[--measure] [--text FILE]",
    repeat=Repeat("stella", measure=("--measure",), minutes=95, data=(("--text", "shakespeare.txt"),)))
SCENARIO = "train-2dc"
RATES = ("0.1Mbps", "0.576Mbps", "5Mbps", "50Mbps")
OWN = "0.576Mbps"  # of the scenario: there the numbers are made
# As their authors have them where they say so; powersgd's rank and the steps between exchanges are
# those of the results that are kept.
METHODS = ("none", "byteps", "fp16", "int8", "onebit", "powersgd:4", "dgc:ramp=10", "randomk",
           "bytepscompress", "espresso", "demo", "localsgd:10", "diloco:20",
           "streaming-diloco:20,4,2", "sparseloco:20:keep=5%", "stella")
GRID = (0.003, 0.01)  # of methods that step by AdamW; those of the others are as long
GRIDS = {"dgc": (0.1, 0.3),          # plain SGD
         "demo": (0.0003, 0.001),    # signs
         "diloco": (0.001, 0.003), "streaming-diloco": (0.001, 0.003), "sparseloco": (0.001, 0.003)}
COLOURS = ("#1f1f1f", "#0b5394", "#3fa7d6", "#2aa552", "#c2185b", "#c9561a", "#f0b400", "#8a5bc7",
           "#8a8a2a", "#00601f", "#bf8fe0")
MARKERS = "osD^vPX*<>hp"


def add_arguments(parser):
    train_records.arguments(parser, FIGURE.name, grid=None,
                            grid_said="two of each method's own: " + grid_of(",".join(METHODS)))
    parser.add_argument("--methods", default=",".join(METHODS), metavar="M,M..",
                        help="default: %(default)s")
    parser.add_argument("--rates", default=",".join(RATES), metavar="R,R..",
                        help="of the WAN (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=300, metavar="N",
                        help="at most, of a run (default: %(default)s)")


def draw(options):
    results = Path(options.results or f"runs/{FIGURE.name}")
    if options.measure:
        measure(results, options)
    if not is_finished(results / "numbers"):
        raise Failure(f"no results below {results}. Run scripts/figure {FIGURE.name} --measure.")
    table = numbers(results)
    return [Drawn(FIGURE.name, figure_of(table, options), table)]


def measure(results, options):
    """What is learned at the scenario's own rate; how long iterations take at each rate."""
    train_records.measure(results / "numbers", results, SCENARIO, [
        "--methods", options.methods, "--lr-grid", options.lr_grid or grid_of(options.methods),
        "--seeds", options.seeds, "--max-iterations", options.iterations, "--points", 30, "--pace", "--compose", 10,
        *train_records.data_of(options)])
    for rate in options.rates.split(","):
        train_records.measure(results / rate, results, SCENARIO, [
            "--methods", options.methods, "--compute", "timed", "--max-iterations", 12,
            "--set", f"link.bandwidth={rate}"])


def grid_of(methods):
    """--lr-grid: GRID, and of each method that is here and has one its own."""
    named = {word.split(":")[0].split("+")[0] for word in methods.split(",")}
    own = {name: rates for name, rates in GRIDS.items() if name in named}
    return ";".join([rates_text(GRID), *(f"{name}={rates_text(own[name])}" for name in own)])


def rates_text(rates):
    return ",".join(f"{rate:g}" for rate in rates)


def numbers(results):
    """A row for each method, seed and rate. Composed: updates times the period that was measured at
    the rate; of a method whose weights may be old only where it was trained over that rate."""
    record = train_records.record_of(results / "numbers")
    learned = train_records.curve_table(record, results / "numbers")
    first = longer_at_first(record)
    rows = [learned.assign(rate_mbps=mbps_of(OWN))]
    for directory in sorted(results.iterdir()):
        if not directory.name.endswith("bps") or not is_finished(directory):
            continue
        if directory.name == OWN:
            continue
        record = train_records.record_of(directory)
        timed = train_records.curve_table(record, directory).drop_duplicates("method")
        longer = longer_at_first(record)
        for _, period in timed.iterrows():
            for _, curve in learned[learned["method"] == period["method"]].iterrows():
                if curve["stale"] or pd.isna(curve["updates"]):
                    continue
                steps = curve["updates"] / curve["local_steps"]
                method = curve["method"]
                surcharge = surcharge_of(longer[method], min(int(steps), len(first[method])))
                rows.append(pd.DataFrame([{
                    **period.to_dict(), "seed": curve["seed"], "updates": curve["updates"],
                    "learning_rate": curve["learning_rate"], "validation": curve["validation"],
                    "source": "composed", "rate_mbps": mbps_of(directory.name),
                    "seconds_to_target": steps * period["period_s"] + surcharge}]))
    return pd.concat(rows, ignore_index=True).sort_values(["method", "rate_mbps", "seed"],
                                                          ignore_index=True)


def longer_at_first(record):
    """By method: how much longer each of its first exchanges takes, which send more; seconds."""
    return {curve["method"]: [ns / 1e9 for ns in curve.get("longer_at_first_ns", ())]
            for curve in record["train"]["curves"]}


def surcharge_of(longer, exchanges):
    """Of so many first exchanges; a run that is shorter than that shows the last one's."""
    if not longer:
        return 0
    return sum(longer[:exchanges]) + longer[-1] * max(0, exchanges - len(longer))


def mbps_of(text):
    for suffix, factor in (("Gbps", 1e3), ("Mbps", 1.0), ("kbps", 1e-3)):
        if text.endswith(suffix):
            return float(text[:-len(suffix)]) * factor
    raise Failure(f"{text} is no rate that is read here. Write 5Mbps.")


def figure_of(table, options):
    del options
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(8.6, 4.6))
    methods = list(dict.fromkeys(table["method"]))
    for colour, marker, method in zip(cycle(COLOURS), cycle(MARKERS), methods):
        mine = table[(table["method"] == method) & table["seconds_to_target"].notna()]
        if mine.empty:
            axes.plot([], [], color=colour, marker=marker, label=f"{method}: not within the run")
            continue
        middle = mine.groupby("rate_mbps")["seconds_to_target"].median()
        axes.plot(middle.index, middle, color=colour, marker=marker, markersize=5, linewidth=1.3,
                  label=style.plain(method))
        axes.vlines(middle.index, mine.groupby("rate_mbps")["seconds_to_target"].min(),
                    mine.groupby("rate_mbps")["seconds_to_target"].max(), color=colour, linewidth=2)
    axes.set_xscale("log")
    if table["seconds_to_target"].notna().any():
        axes.set_yscale("log")
    rates = sorted(table["rate_mbps"].unique())
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.minorticks_off()
    axes.set_xlabel("rate of the WAN (Mbps)")
    axes.set_ylabel("time to the target (s)")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("time until the validation loss is down: median of the seeds, and their range\n"
                   f"measured at {OWN}, composed elsewhere (updates x measured iterations)",
                   loc="left", fontsize=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="center left", bbox_to_anchor=(0.66, 0.5),
                  frameon=False, fontsize=8)
    figure.subplots_adjust(left=0.09, right=0.65, top=0.87, bottom=0.12)
    return figure
