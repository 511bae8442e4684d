"""vTrain figure 5: gradients summed in buckets beside the backward, or all at once after it; and
how much of the sum stays exposed in a model of size, over the size of a bucket."""

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.figures.centauri.cells import Cell, numbers
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "vtrain-fig5",
    summary="gradients summed in buckets or at once (figure 5), and what stays exposed of GPT-3.6B",
    shows="gradients summed in buckets beside the backward, or at once",
    repeat=Repeat("vtrain", seconds=10, simulate=("--simulate",)),
    expected=tuple(
        Expected(f"gradients are summed, bucket {bucket} (us)", "exact", low=us, high=us,
                 column="summed_us", where=f"model=four layers; bucket={bucket}", why=why)
        for bucket, us, why in (
            ("150kB", 550, "Four layers of 100 us, 150 us a bucket of two, after the forward."),
            ("none", 700, "400 us of backward and 300 us after it."))))
EXAMPLE, MODEL = "vtrain-fig5", "vtrain-fig5-gpt"
WITH, WITHOUT = "150kB", "none"
BUCKETS = (WITHOUT, "2GiB", "800MiB", "200MiB", "25MiB")
SCHEDULE, OVERLAP = "1f1b", "ddp"
COLOURS = {"Fwd": style.rgb(style.FORWARD), "Bwd": style.rgb(style.INPUT_GRADIENT),
           "WU": style.rgb(style.WEIGHT_GRADIENT), "All-Reduce": style.rgb(style.COLLECTIVE)}
LANES = {"All-Reduce": 0.0}  # the rest computes, one row above


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (always so)")


def draw(options):
    del options
    bars = {bucket: bars_of(rank_of(bucket)) for bucket in (WITH, WITHOUT)}
    table = pd.concat([table_of("four layers", EXAMPLE, (WITH, WITHOUT)),
                       table_of("gpt-3.6b", MODEL, BUCKETS)], ignore_index=True)
    ends = {bucket: summed_us(own) for bucket, own in bars.items()}
    table["summed_us"] = [ends.get(row.bucket) if row.model == "four layers" else None
                          for row in table.itertuples()]
    return [Drawn(FIGURE.name, figure_of(bars, table), table, verdicts(table))]


def rank_of(bucket):
    """Rows of one of the replicas."""
    trace = tools.simulate(tools.scenario_file(EXAMPLE), [SCHEDULE], (f"parallel.bucket={bucket}",),
                           extra=("--overlap", OVERLAP))
    rows = trace.predicted
    return rows[rows["rank"] == 0]


def bars_of(rows):
    """[(what, label, start, end)], times in us: layers by number, dgrad and wgrad of a layer as one
    backward, the messages of a bucket as one all-reduce."""
    compute = rows[rows["lane"] == "compute"].sort_values("start_ns")
    times = lambda own: [(start / 1e3, end / 1e3)  # noqa: E731
                         for start, end in zip(own["start_ns"], own["end_ns"])]
    forward = times(compute[compute["kind"] == "F"])
    backward = times(compute[compute["kind"] == "B"])
    layers = len(forward)
    bars = [("Fwd", f"Fwd {place}", *time) for place, time in enumerate(forward, 1)]
    bars += [("Bwd", f"Bwd {layers - place}", backward[2 * place][0], backward[2 * place + 1][1])
             for place in range(layers)]
    bars += [("WU", "WU", *time) for time in times(compute[compute["operator"] == "optimizer"])]
    sends = rows[rows["kind"] == "send"].sort_values("start_ns")
    buckets = list(sends.groupby((sends["step"] == 0).cumsum()))
    per_bucket = layers // len(buckets) if buckets else 0
    for place, (_, own) in enumerate(buckets):
        last = layers - place * per_bucket
        which = " & ".join(str(layer) for layer in range(last - per_bucket + 1, last + 1))
        bars.append(("All-Reduce", f"All-Reduce {which}", own["start_ns"].min() / 1e3,
                     own["end_ns"].max() / 1e3))
    return bars


def summed_us(bars):
    """From the end of the forward to that of the last all-reduce."""
    return max(end for what, _, _, end in bars if what == "All-Reduce") - max(
        end for what, _, _, end in bars if what == "Fwd")


def table_of(name, scenario, buckets):
    cells = [Cell(scenario, (f"parallel.bucket={bucket}",), SCHEDULE,
                  (("model", name), ("bucket", bucket))) for bucket in buckets]
    rows = numbers(cells, (OVERLAP,))
    times = {"iteration_us": "makespan_ms", "all_reduce_us": "dp_ms", "exposed_us": "dp_exposed_ms"}
    return pd.DataFrame({"model": rows["model"], "bucket": rows["bucket"],
                         **{us: (1e3 * rows[ms]).round(3) for us, ms in times.items()}})


def verdicts(table):
    shares = {name: 1 - own.set_index("bucket")["exposed_us"] / own["all_reduce_us"].iloc[0]
              for name, own in table.groupby("model")}
    hidden = {"four layers": shares["four layers"][WITH],
              "gpt-3.6b": shares["gpt-3.6b"][BUCKETS[-1]]}
    none = [shares[name][WITHOUT] for name in hidden]
    return [claims.judge(
        "vtrain-buckets-hide", claims.by_count(sum(share > 0 for share in hidden.values()), 2),
        " and ".join(f"{100 * share:.0f}%" for share in hidden.values()) + " hidden",
        "Of four layers in two buckets, and of GPT-3.6B in buckets of 25 MiB on four replicas; "
        f"without buckets {claims.spread([100 * one for one in none], '.0f', '%')}. What the last "
        "bucket takes stays exposed.")]


def figure_of(bars, table):
    plt = style.apply()
    figure = plt.figure(figsize=(10.0, 4.2))
    grid = figure.add_gridspec(2, 2, width_ratios=(2.2, 1), hspace=0.55, wspace=0.2, left=0.08,
                               right=0.98, top=0.9, bottom=0.14)
    end = max(bar[3] for own in bars.values() for bar in own)
    titles = {WITH: "(a) buckets of two layers", WITHOUT: "(b) without buckets"}
    for place, (bucket, own) in enumerate(bars.items()):
        axes = figure.add_subplot(grid[place, 0])
        paint_bars(axes, own)
        axes.set_xlim(0, end * 1.01)
        axes.set_title(f"{titles[bucket]}: summed {summed_us(own):.0f} us after the forward",
                       loc="left", fontweight="bold")
    axes.set_xlabel("time (us), simulated")
    paint_exposed(figure.add_subplot(grid[:, 1]), table[table["model"] == "gpt-3.6b"])
    return figure


def paint_bars(axes, bars):
    for what, label, start, end in bars:
        colour = COLOURS[what]
        y = LANES.get(what, 1.0)
        axes.barh(y, end - start, 0.8, left=start, color=colour, edgecolor=style.EDGE_COLOUR,
                  linewidth=0.5)
        short = label.replace("Fwd ", "F").replace("Bwd ", "B") if end - start < 60 else label
        axes.text((start + end) / 2, y, short, ha="center", va="center", fontsize=7,
                  color=style.text_colour(colour))
    axes.set_yticks([0, 1], ["all-reduce", "compute"])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.55, 1.55)


def paint_exposed(axes, rows):
    places = range(len(rows))
    axes.bar(places, rows["all_reduce_us"] / 1e3, 0.7, color="#e6e6e6", edgecolor="black",
             linewidth=0.4, label="all-reduce")
    axes.bar(places, rows["exposed_us"] / 1e3, 0.42, color=COLOURS["All-Reduce"], label="exposed")
    for place, exposed in zip(places, rows["exposed_us"] / 1e3):
        axes.annotate(f"{exposed:.0f}", (place, exposed), xytext=(0, 2), ha="center", fontsize=7,
                      textcoords="offset points")
    axes.set_xticks(list(places), [bucket.replace("MiB", "\nMiB").replace("GiB", "\nGiB")
                                   for bucket in rows["bucket"]])
    axes.set_ylim(0, 1.28 * rows["all_reduce_us"].max() / 1e3)
    axes.set_xlabel("bucket")
    axes.set_ylabel("ms of an iteration")
    axes.set_title("(c) GPT-3.6B, four replicas", loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="upper right", ncol=2)
