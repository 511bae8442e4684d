"""Is a predicted collective true? Each algorithm's time as predicted and as bench_collectives
measured it."""

import tempfile
from pathlib import Path

import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import RUN_FAILED, Failure
from longhaul.running import runs, tools

FIGURE = Figure(
    "collectives",
    summary="collectives message by message: predicted and measured, by each algorithm",
    shows="collectives message by message, by each algorithm: predicted and measured",
    needs="`bench_collectives`, or results of it",
    repeat=Repeat("longhaul", measure=("--scenario", "collectives-2dc"), minutes=3))
PREDICTED, MEASURED = "#c2185b", "#0b5394"


def add_arguments(parser):
    parser.add_argument("--results", metavar="DIR",
                        help="what bench_collectives wrote; default: run it now")
    parser.add_argument("--scenario", default="collectives-2dc", metavar="FILE",
                        help="where it is run (default: %(default)s)")
    parser.add_argument("--extra", metavar="'OPTIONS'",
                        default="--kind all-reduce,all-gather --bytes 8MB,16MB --algorithm all "
                                "--iterations 12",
                        help="options for bench_collectives, as one word, where it is run "
                             "(default: %(default)s)")


def draw(options):
    if options.results:
        return [drawn(options.results)]
    scenario = tools.scenario_file(options.scenario)
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        results = Path(directory) / "bench_collectives"
        runs.run([tools.ROOT / "scripts" / "mpi", "-n", scenario_text.ranks_of(scenario, []),
                  tools.binary("bench_collectives"), scenario, *options.extra.split(), "--out",
                  results], results, directory, timeout_s=1800)
        return [drawn(results)]


def drawn(directory):
    record = records.read_record(directory)
    if record.get("benchmark") != "bench_collectives":
        raise Failure(f"{directory}: a record of {record.get('benchmark')} (bench_collectives has "
                      "collectives). Give what that wrote.")
    if record.get("check") != "ok":
        raise Failure(f"{directory}: messages or numbers came wrong (its check says "
                      f"{record.get('check')}). Look into its record.", RUN_FAILED)
    table = table_of(record, directory)
    return Drawn(FIGURE.name, figure_of(table, record), table)


def table_of(record, directory):
    """A row for each collective: seconds."""
    run = provenance.of(record, Path(directory))
    run["time_scale"] = record.get("time_scale", 1.0)
    rows = []
    for each in record["collectives"]:
        low, high = each["interval_ns"] or (None, None)
        own = (each.get("own_out_of_place") or {}).get("median_ns")
        ties = each.get("over_ties") or {}
        facts = run | {"payload_nominal_bytes": each.get("largest_message_bytes"),
                       "payload_sent_bytes": each.get("largest_sent_bytes"),
                       "lateness_credit_ns": (each.get("credit") or {}).get("total_ns", 0)}
        way = each["way"] if each["pieces"] == 1 else f"{each['way']}, {each['pieces']} pieces"
        rows.append(provenance.add(
            {"kind": each["kind"].replace("_", "-"), "ranks": each["members"],
             "size_bytes": each["size_bytes"],
             "algorithm": way, "n": each["n"], "predicted_s": each["predicted_ns"] / 1e9,
             "ties_low_s": seconds(ties.get("low_ns")), "ties_high_s": seconds(ties.get("high_ns")),
             "measured_s": each["median_ns"] / 1e9,
             "low_s": seconds(low), "high_s": seconds(high),
             "difference_percent": each["difference_percent"],
             "difference_over_ties_percent": ties.get("difference_percent"),
             "own_s": seconds(own)}, facts))
    return pd.DataFrame(rows)


def seconds(nanoseconds):
    return None if nanoseconds is None else nanoseconds / 1e9


def figure_of(table, record):
    plt = style.apply()
    groups = list(table.groupby(["kind", "ranks", "size_bytes"], sort=False))
    most = max(len(rows) for _, rows in groups)
    columns = min(2, len(groups))
    lines = -(-len(groups) // columns)
    height = lines * (0.75 + 0.25 * most) + 0.85
    figure, panels = plt.subplots(lines, columns, figsize=(5.3 * columns, height), squeeze=False)
    for axes in panels.flat[len(groups):]:
        axes.set_visible(False)
    for axes, ((kind, ranks, size), rows) in zip(panels.flat, groups):
        panel(axes, rows)
        axes.set_title(f"{kind} of {size_text(size)} among {ranks} ranks", loc="left", fontsize=9)
    machine = record.get("emulation") == "off"
    figure.suptitle(f"{'At full speed' if machine else 'Emulated links'}: predicted and measured "
                    f"({style.plain(records.scenario_of(record))})",
                    x=0.01, y=1 - 0.08 / height, va="top", ha="left", fontsize=11,
                    fontweight="bold")
    handles, labels = panels[0][0].get_legend_handles_labels()
    narrow = columns == 1
    figure.legend(handles, labels, frameon=False, fontsize=8, ncols=2 if narrow else 4,
                  loc="upper left", bbox_to_anchor=(0.0, 1 - 0.3 / height))
    figure.tight_layout(rect=(0, 0, 1, 1 - (0.75 if narrow else 0.55) / height))
    return figure


def panel(axes, rows):
    """A line for each algorithm: the bar measured, the marks predicted."""
    places = range(len(rows))
    scale, unit = (1e3, "ms") if rows["measured_s"].max() < 1 else (1, "s")
    measured, predicted = scale * rows["measured_s"], scale * rows["predicted_s"]
    axes.barh(places, measured, height=0.62, color=MEASURED, alpha=0.75, label="measured (median)")
    ends = [measured, predicted]
    for low, high, height, line in (
            ("low_s", "high_s", -0.12, {"color": "black", "linewidth": 1.2,
                                        "label": "95% interval"}),
            ("ties_low_s", "ties_high_s", 0.16, {
                "color": PREDICTED, "linewidth": 3.5,
                "label": "predicted, ties in any order"})):
        known = rows[low].notna().to_numpy()
        if known.any():
            axes.hlines([at + height for at, is_known in zip(places, known) if is_known],
                        scale * rows.loc[known, low], scale * rows.loc[known, high], **line)
        ends.append(scale * rows[high].astype(float))
    axes.plot(predicted, places, "|", markersize=13, markeredgewidth=2, color=PREDICTED,
              label="predicted")
    rights = pd.concat(ends, axis=1).max(axis=1)
    for at, (right, difference) in enumerate(zip(rights, rows["difference_percent"])):
        axes.annotate(f"{difference:+.2f}%", (right, at), xytext=(6, 0), va="center",
                      textcoords="offset points", fontsize=7.5)
    axes.set_yticks(places, [style.plain(name) for name in rows["algorithm"]], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.22 * rights.max())
    axes.set_xlabel(f"time ({unit})")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def size_text(size):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"
