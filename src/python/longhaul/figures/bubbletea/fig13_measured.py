"""BubbleTea figure 13 on ranks: what a plan and a live controller make of the same two GPUs."""

import pandas as pd

from longhaul import provenance, records, trace
from longhaul.drawing import style
from longhaul.figures.bubbletea import asked
from longhaul.papers.expected import Expected
from longhaul.running import measuring, tools

NAME = "bubbletea-fig13-measured"
CONTROLLERS = ("planned", "live")
STRETCH = 2  # iterations; the second one is drawn, whose begin is filled, too
EXPECTED = tuple(
    Expected(f"figure 13, {controller}: utilisation measured less predicted (points)", "goal",
             low=-1, high=1, column="points", where=f"controller={controller}", reduce="max_abs",
             kind="measured", file="-measured", why="Within 1 point of what is predicted.")
    for controller in CONTROLLERS)


def add_arguments(parser):
    measuring.add_once(parser, "runs/bubbletea-fig13")
    parser.add_argument("--pairs", type=int, default=20, metavar="N",
                        help="measured: of stretches with prefill and without, by each controller "
                             "(default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=16, metavar="N",
                        help="measured: that train and serve (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="measured: override of the scenario; may be given again")


def table_of(options, ranks):
    """A row for each block and prefill of `ranks` in the iteration that is drawn: `variant` alone, or
    by the controller that filled it. Times from the iteration's begin."""
    directory = measuring.directory_of(options)
    tables = []
    for controller in CONTROLLERS:
        run = directory / controller
        if options.measure:
            measuring.run_once([
                tools.binary("bench_prefill"), asked.SCENARIO, "--ranks-per-process", options.ranks,
                "--schedule", "atlas", "--controller", controller, "--requests", options.requests,
                "--backlog", 512, "--pairs", options.pairs, "--stretch", STRETCH, "--set",
                "parallel.gradient_sync=none", "--deadline", "60s", "--no-report",
                *tools.set_words(options.set)], run, directory)
        tables.append(rows_of(run, controller, ranks))
    return pd.concat(tables, ignore_index=True)


def rows_of(run, controller, ranks):
    record = records.read_finished(run)
    entry = record["schedules"][0]
    measured = trace.read_trace(run).measured
    last = measured["iteration"].max()
    pairs = record["pairs"]
    share = 1 / (record["training_ranks"] * sum(pairs["on_ns"]))
    common = {"controller": controller, "n": len(pairs["on_ns"]),
              "time_scale": record["time_scale"],
              "measured_training": 100 * entry["utilisation"]["training"],
              "measured_total": 100 * entry["utilisation"]["total"],
              "predicted_total": 100 * entry["predicted_utilisation"]["total"],
              "points": 100 * (entry["utilisation"]["total"]
                               - entry["predicted_utilisation"]["total"]),
              **{f"idle_{cause}": 100 * share * time for cause, time in entry["idle_ns"].items()}}
    facts = provenance.of(record, run)
    rows = []
    for variant, schedule in (("alone", "atlas"), (controller, "atlas+prefill")):
        if variant == "alone" and controller != CONTROLLERS[0]:
            continue
        own = measured[(measured["schedule"] == schedule) & (measured["iteration"] == last)
                       & measured["outcome"].isin(("ran", "late"))]
        begin = second_iteration(own)
        for row in own[own["rank"].isin(ranks) & own["kind"].isin(("F", "B", "R", "prefill"))
                       & (own["end_ns"] > begin)].itertuples():
            rows.append(provenance.add({
                "variant": variant, "rank": row.rank, "kind": row.kind,
                "start_ns": row.start_ns - begin, "end_ns": row.end_ns - begin,
                "tokens": max(0, row.tokens), **common}, facts))
    return pd.DataFrame(rows)


def second_iteration(rows):
    """When it begins: with the first block of those that come again."""
    blocks = rows[rows["kind"] == "F"].sort_values("start_ns")
    again = blocks[blocks.duplicated(["rank", "chunk", "microbatch", "part"])]
    return int(again["start_ns"].min())


def figure_of(table, ranks, colours):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(10.4, 4.6))
    places, labels = [], []
    for rank in ranks:
        for variant in ("alone", *CONTROLLERS):
            place = -len(places) - 0.5 * ranks.index(rank)
            own = table[(table["rank"] == rank) & (table["variant"] == variant)]
            for kind, colour in colours.items():
                spans = own[own["kind"] == kind]
                axes.broken_barh([(row.start_ns / 1e9, (row.end_ns - row.start_ns) / 1e9)
                                  for row in spans.itertuples()], (place - 0.4, 0.8),
                                 facecolor=colour, edgecolor="white", linewidth=0.2)
            places.append(place)
            labels.append(f"GPU {rank}, {variant}")
    axes.set_yticks(places, labels)
    axes.set_xlim(0, table["end_ns"].max() / 1e9)
    axes.set_xlabel("s")
    axes.set_title("One iteration of Atlas on ranks, alone and with a backlog of prompts (measured)\n"
                   + "\n".join(said(table, controller) for controller in CONTROLLERS),
                   loc="left", fontsize=9)
    return figure


def said(table, controller):
    row = table[table["controller"] == controller].iloc[0]
    idle = ", ".join(f"{cause.removeprefix('idle_').replace('_', ' ')} {row[cause]:.1f}"
                     for cause in table.columns if cause.startswith("idle_") and row[cause] >= 0.05)
    return (f"{controller}: {row['measured_total']:.1f}% used, {row['predicted_total']:.1f} predicted; "
            f"idle (%): {idle}")
