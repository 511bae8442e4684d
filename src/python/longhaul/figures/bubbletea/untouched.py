"""Does prefill in the bubbles slow training down? Pairs of stretches with and without on ranks, by
best-fit, and by the careless policy that gives way to no block (BubbleTea, section 6.5)."""

import pandas as pd

from longhaul import provenance, records
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.running import measuring, tools

FIGURE = Figure(
    "bubbletea-untouched",
    summary="training with prefill in its bubbles to training without, in pairs on ranks",
    shows="training with prefill over training without, in pairs on 12 ranks, and by a policy that "
          "gives way to no block (section 6.5; [prefill.md](prefill.md#on-ranks))",
    options="[--measure]",
    repeat=Repeat("bubbletea", measure=("--measure",), minutes=6))
LIMIT_PERCENT = 0.3  # that a pair's median may be off 1, and its interval wide
POLICIES = {"best-fit": "#0b5394", "careless": "#c2185b"}


def add_arguments(parser):
    measuring.add_once(parser, f"runs/{FIGURE.name}")
    parser.add_argument("--scenario", default="bubbletea", metavar="FILE",
                        help="with [prefill] (default: %(default)s)")
    parser.add_argument("--schedule", default="gpipe", metavar="S", help="default: %(default)s")
    parser.add_argument("--ranks", type=int, default=16, metavar="N",
                        help="that train and serve (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=20, metavar="N",
                        help="by best-fit; a quarter of them, but 8 at least, careless (default: %(default)s)")


def draw(options):
    directory = measuring.directory_of(options)
    if options.measure:
        measure(options, directory)
    tables = [table_of(directory / policy, policy) for policy in POLICIES]
    table = pd.concat(tables, ignore_index=True)
    return [Drawn(f"{FIGURE.name}-measured", figure_of(table), table, [verdict(table)])]


def measure(options, directory):
    scenario = tools.from_root(tools.scenario_file(options.scenario))
    for policy in POLICIES:
        pairs = options.pairs if policy == "best-fit" else max(8, options.pairs // 4)
        measuring.run_once([
            tools.binary("bench_prefill"), scenario, "--ranks-per-process", options.ranks,
            "--schedule", options.schedule, "--policy", policy, "--requests",
            "benchmarks/requests/prompts.csv", "--backlog", 512, "--pairs", pairs, "--set",
            "parallel.gradient_sync=none", "--deadline", "60s"], directory / policy, directory)


def table_of(run, policy):
    """A row for each pair."""
    record = records.read_finished(run)
    facts = provenance.of(record, run)
    pairs, entry = record["pairs"], record["schedules"][0]
    low, high = pairs["interval"] or (None, None)
    return pd.DataFrame([provenance.add(
        {"policy": policy, "schedule": entry["schedule"], "pair": number, "on_s": on / 1e9,
         "off_s": off / 1e9, "ratio": on / off, "ratio_of_medians": pairs["ratio_of_medians"],
         "low": low, "high": high, "training_predicted": entry["predicted_utilisation"]["training"],
         "total_predicted": entry["predicted_utilisation"]["total"],
         "measured_total": entry["utilisation"]["total"], "check": record["check"],
         "n": len(pairs["on_ns"]), "time_scale": record["time_scale"]}, facts)
        for number, (on, off) in enumerate(zip(pairs["on_ns"], pairs["off_ns"]), 1)])


def verdict(table):
    own = table[table["policy"] == "best-fit"].iloc[0]
    careless = table[table["policy"] == "careless"].iloc[0]
    ours = (f"x{own['ratio_of_medians']:.4f} ({own['low']:.4f} to {own['high']:.4f}), careless "
            f"x{careless['ratio_of_medians']:.4f}")
    off = 100 * max(abs(own["low"] - 1), abs(own["high"] - 1))
    told_apart = careless["ratio_of_medians"] > 1 + LIMIT_PERCENT / 100
    said = claims.NOT_JUDGED if not told_apart else (
        claims.HOLDS if off <= LIMIT_PERCENT else
        claims.PARTLY if off <= 4 * LIMIT_PERCENT else claims.FAILS)
    return claims.judge(
        "bubbletea-untouched", said, ours,
        f"Ratio of medians of {own['n']} pairs on ranks and its interval, blocks timed; within "
        f"{LIMIT_PERCENT}% holds. {100 * own['measured_total']:.1f}% of the GPUs' time were used, "
        f"predicted {100 * own['total_predicted']:.1f}%. The careless policy is the control that the "
        "pairs can tell.")


def figure_of(table):
    plt = style.apply()
    figure, every_axes = plt.subplots(len(POLICIES), figsize=(7.6, 3.4))
    for axes, (policy, colour) in zip(every_axes, POLICIES.items()):
        draw_policy(axes, table[table["policy"] == policy], policy, colour)
    every_axes[0].set_title("Training beside prefill on ranks: each policy at a scale of its own", loc="left",
                            fontweight="bold")
    every_axes[-1].set_xlabel("time of a stretch with prefill / without (points: pairs; line: ratio of medians, "
                              "95% interval)")
    figure.tight_layout()
    return figure


def draw_policy(axes, rows, policy, colour):
    first = rows.iloc[0]
    middle = first["ratio_of_medians"]
    axes.plot(rows["ratio"], [0] * len(rows), "o", color=colour, alpha=0.5, markersize=6)
    if pd.notna(first["low"]):
        axes.hlines(-0.5, first["low"], first["high"], color="black", linewidth=1.6)
    axes.plot(middle, -0.5, "|", color="black", markersize=12, markeredgewidth=2)
    axes.annotate(f"{middle:.4f}", (middle, -0.5), xytext=(0, -8), textcoords="offset points", ha="center",
                  va="top", fontsize=8)
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_yticks([0], [policy])
    axes.set_ylim(-1.3, 0.6)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
