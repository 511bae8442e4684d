"""Does prefill in the bubbles slow training down? Pairs of stretches with and without on ranks: by a
plan whose estimates hold, by a live controller whose estimates do not, and by the careless policy
that gives way to no block (BubbleTea, section 6.5)."""

import pandas as pd

from longhaul import provenance, records
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.running import measuring, tools

FIGURE = Figure(
    "bubbletea-untouched",
    summary="training with prefill in its bubbles to training without, in pairs on ranks",
    shows="training with prefill over training without, in pairs on 12 ranks: by a plan, live with 5% of "
          "noise, and by a policy that gives way to no block (section 6.5; [prefill.md](prefill.md#on-ranks))",
    options="[--measure]",
    repeat=Repeat("bubbletea", measure=("--measure",), minutes=9))
LIMIT_PERCENT = 0.3  # that the ends of the interval may be off 1
NOISE = 0.05         # of prompts' times around their estimates, where a live controller decides
LIVE, CARELESS = "live, noise 5%", "careless"
COLOURS = {"best-fit": "#0b5394", LIVE: "#2a9d8f", CARELESS: "#c2185b"}
RUNS = {"best-fit": ("best-fit", ("--policy", "best-fit")),
        LIVE: ("live", ("--policy", "best-fit", "--controller", "live",
                        "--set", f"prefill.noise={NOISE}")),
        CARELESS: ("careless", ("--policy", "careless"))}  # directory and options


def add_arguments(parser):
    measuring.add_once(parser, f"runs/{FIGURE.name}")
    parser.add_argument("--scenario", default="bubbletea", metavar="FILE",
                        help="with [prefill] (default: %(default)s)")
    parser.add_argument("--schedule", default="atlas", metavar="S", help="default: %(default)s")
    parser.add_argument("--ranks", type=int, default=16, metavar="N",
                        help="that train and serve (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=20, metavar="N",
                        help="of each; careless a quarter of them, but 8 at least (default: %(default)s)")


def draw(options):
    directory = measuring.directory_of(options)
    if options.measure:
        measure(options, directory)
    tables = [table_of(directory / run, policy) for policy, (run, _) in RUNS.items()]
    table = pd.concat(tables, ignore_index=True)
    return [Drawn(f"{FIGURE.name}-measured", figure_of(table), table, [verdict(table)])]


def measure(options, directory):
    scenario = tools.from_root(tools.scenario_file(options.scenario))
    for policy, (run, words) in RUNS.items():
        pairs = max(8, options.pairs // 4) if policy == CARELESS else options.pairs
        measuring.run_once([
            tools.binary("bench_prefill"), scenario, "--ranks-per-process", options.ranks,
            "--schedule", options.schedule, *words, "--requests",
            "benchmarks/requests/prompts.csv", "--backlog", 512, "--pairs", pairs, "--set",
            "parallel.gradient_sync=none", "--deadline", "60s", "--no-report"], directory / run,
            directory)


def table_of(run, policy):
    """A row for each pair."""
    record = records.read_finished(run)
    facts = provenance.of(record, run)
    pairs, entry = record["pairs"], record["schedules"][0]
    low, high = pairs["interval"] or (None, None)
    return pd.DataFrame([provenance.add(
        {"policy": policy, "schedule": entry["schedule"], "pair": number, "on_s": on / 1e9,
         "off_s": off / 1e9, "ratio": on / off, "ratio_of_medians": pairs["ratio_of_medians"],
         "low": low, "high": high, "compared": pairs["verdict"],
         "delay_ms": entry["training_delay"]["total_ns"] / 1e6,
         "predicted_delay_ms": entry["predicted_training_delay"]["total_ns"] / 1e6,
         "training_predicted": entry["predicted_utilisation"]["training"],
         "total_predicted": entry["predicted_utilisation"]["total"],
         "measured_total": entry["utilisation"]["total"], "check": record["check"],
         "n": len(pairs["on_ns"]), "time_scale": record["time_scale"]}, facts)
        for number, (on, off) in enumerate(zip(pairs["on_ns"], pairs["off_ns"]), 1)])


def verdict(table):
    """By the interval that is farthest off 1, and whether each could be told from it."""
    first = {policy: table[table["policy"] == policy].iloc[0] for policy in RUNS}
    own = [row for policy, row in first.items() if policy != CARELESS]
    ours = ", ".join([*(f"{policy} x{row['ratio_of_medians']:.4f} ({row['low']:.4f} to {row['high']:.4f})"
                        for policy, row in first.items() if policy != CARELESS),
                      f"careless x{first[CARELESS]['ratio_of_medians']:.4f}"])
    off = 100 * max(max(abs(row["low"] - 1), abs(row["high"] - 1)) for row in own)
    same = all(row["compared"] == "not distinguishable" for row in own)
    told_apart = first[CARELESS]["ratio_of_medians"] > 1 + LIMIT_PERCENT / 100
    said = claims.NOT_JUDGED if not told_apart else (
        claims.HOLDS if off <= LIMIT_PERCENT and same else
        claims.PARTLY if off <= 4 * LIMIT_PERCENT else claims.FAILS)
    used = " and ".join(f"{100 * row['measured_total']:.1f}% ({100 * row['total_predicted']:.1f}%)"
                        for row in own)
    return claims.judge(
        "bubbletea-untouched", said, ours,
        f"Ratio of medians of {own[0]['n']} pairs on ranks and its interval, blocks timed; within "
        f"{LIMIT_PERCENT}% and not distinguishable holds. {used} of the GPUs' time were used "
        "(predicted). The careless policy is the control that the pairs can tell.")


def figure_of(table):
    plt = style.apply()
    figure, every_axes = plt.subplots(len(RUNS), figsize=(7.6, 4.6))
    for axes, (policy, colour) in zip(every_axes, COLOURS.items()):
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
