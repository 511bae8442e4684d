"""A tiny model learns the same under every schedule, and under every overlap of tensor ranks, shards
and copies: the loss of each iteration, on top of the curve of one rank that computes everything."""

import os
import re
import shlex
from pathlib import Path

import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import RUN_FAILED, Failure
from longhaul.running import runs, tools

FIGURE = Figure(
    "loss",
    summary="a tiny model's loss over some hundred iterations: every schedule, and one rank",
    shows="the loss of a tiny model under every schedule, on top of one rank's",
    options="[--measure] [--overlap LIST]",
    repeat=Repeat("longhaul", measure=("--measure",), minutes=4))
REFERENCE = "one rank"
ONE_RANK = "one-rank.toml"
SCHEDULES = "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-h2,zbv,cross-ud,cross-wave,cross-loop"


def add_arguments(parser):
    parser.add_argument("--measure", "--run", action="store_true",
                        help="run both; one that is finished is not run again")
    parser.add_argument("--results", metavar="DIR",
                        help="what --measure wrote; with --measure, where it goes "
                             f"(default: runs/{FIGURE.name})")
    parser.add_argument("--dry-run", action="store_true",
                        help="print what --measure would run, and run nothing")
    parser.add_argument("--scenario", default="tiny-real", metavar="FILE",
                        help="default: benchmarks/scenarios/tiny-real.toml")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"),
                        help="what computes the layers (default: %(default)s)")
    parser.add_argument("--schedule", default=SCHEDULES, metavar="S[,S..]",
                        help="default: %(default)s")
    parser.add_argument("--overlap", metavar="O[,O..]",
                        help="overlaps under which each schedule runs; the one rank has all "
                             "replicas' microbatches (default: none)")
    parser.add_argument("--iterations", type=int, default=300, metavar="N",
                        help="of each schedule (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, metavar="X",
                        help="of AdamW (default: %(default)g)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario; may be given again")


def draw(options):
    directory = Path(options.results or f"runs/{FIGURE.name}")
    if options.dry_run:
        for _, command in commands(directory, options):
            tools.say(shlex.join(command))
        return []
    if options.measure:
        os.makedirs(directory, exist_ok=True)
        (directory / ONE_RANK).write_text(
            without_places(tools.scenario_file(options.scenario).read_text()))
        for target, command in commands(directory, options):
            if not records.is_finished(target):
                tools.say(shlex.join(command))
                runs.run(["env", "-C", tools.ROOT, *command], target, directory)
    elif not options.results:
        raise Failure("nothing to draw (neither --results DIR nor --measure). "
                      "Give the directory that --measure wrote, or --measure.")
    one = losses_of(directory / "one-rank")
    table = pd.concat([one.assign(schedule=REFERENCE), losses_of(directory / "schedules")],
                      ignore_index=True)
    table = compared(table)
    tools.say(verdict(table))
    return [Drawn(FIGURE.name, figure_of(table, directory), thinned(table))]


def commands(directory, options):
    """(its directory, command) in order."""
    scenario = tools.scenario_file(options.scenario)
    alone = [*options.set, "parallel.stages=1"]
    if options.overlap:
        count = scenario_text.product_of(scenario, ("replicas", "microbatches"), options.set)
        alone += ["parallel.tensor=1", "parallel.replicas=1", "parallel.shard=1",
                  "parallel.gradient_sync=all-reduce", f"parallel.microbatches={count}"]
    for name, file, overrides, schedules in (
            ("one-rank", directory / ONE_RANK, alone, "1f1b"),
            ("schedules", scenario, options.set, options.schedule)):
        target = directory / name
        command = ["scripts/mpi", "-n", scenario_text.ranks_of(scenario, overrides),
                   tools.from_root(tools.binary("bench_pipeline")), tools.from_root(file),
                   "--compute", "real", "--device", options.device,
                   "--optimizer", "adamw", "--learning-rate", f"{options.learning_rate:g}",
                   "--check-gradients", "first", "--schedule", schedules,
                   "--iterations", options.iterations, "--warmup", 0, "--trace", "off"]
        if options.overlap and name == "schedules":
            command += ["--overlap", options.overlap]
        command += [word for override in overrides for word in ("--set", override)]
        yield target, [str(word) for word in (*command, "--out", tools.from_root(target))]


def without_places(text):
    """The scenario's text without the places of its stages: one rank has no two places."""
    kept, place = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            place = re.match(r"\s*\[\[\s*(datacenter|link|node)\s*\]\]", line) is not None
        if not place:
            kept.append(line)
    return "\n".join(kept) + "\n"


def losses_of(run):
    """One row a schedule and iteration of the run in a directory."""
    record = records.read_record(run)
    facts = provenance.of(record, run)
    facts["time_scale"] = record.get("time_scale")
    rows = []
    for entry in record["schedules"]:
        if entry.get("check") != "ok":
            raise Failure(f"{entry['schedule']} computed something wrong (its check says "
                          f"{entry.get('check')}). Look into its record.", RUN_FAILED)
        losses = (entry.get("real") or {}).get("loss")
        if not losses:
            raise Failure(f"the record of {entry['schedule']} has no losses (it is none of "
                          "--compute real). Give what --measure wrote.")
        rows += [provenance.add({"schedule": entry["schedule"], "iteration": i, "loss": loss,
                                 "n": len(losses)}, facts) for i, loss in enumerate(losses)]
    return pd.DataFrame(rows)


def compared(table):
    """Adds how far each loss lies from that of one rank, relative to it."""
    one = table[table["schedule"] == REFERENCE].set_index("iteration")["loss"]
    reference = table["iteration"].map(one)
    return table.assign(relative_difference=table["loss"] / reference - 1)


def thinned(table, every=10):
    """Its first row, each `every`-th and the last of a schedule, with the farthest
    `relative_difference` since the row before."""
    spans = (table["iteration"] + every - 1) // every
    groups = table.groupby(["schedule", spans], sort=False)
    farthest = groups["relative_difference"].transform(lambda span: span.loc[span.abs().idxmax()])
    return table.assign(relative_difference=farthest)[groups.cumcount(ascending=False) == 0]


def finals(table):
    """Loss of each schedule's last iteration."""
    last = table[table["iteration"] == table["iteration"].max()]
    return last.set_index("schedule")["loss"]


def verdict(table):
    final = finals(table)
    apart = (final / final[REFERENCE] - 1).abs()
    first = table.loc[table["iteration"] == 0, "loss"].max()
    most = table["relative_difference"].abs().max()
    if most == 0:
        return (f"{FIGURE.name}: from {first:.4f} to {final[REFERENCE]:.4f} in "
                f"{table['iteration'].max() + 1} iterations; every loss of {len(final) - 1} "
                "schedules is one rank's to the last bit.")
    return (f"{FIGURE.name}: from {first:.4f} to {final[REFERENCE]:.4f} in "
            f"{table['iteration'].max() + 1} iterations. Final losses of {len(final) - 1} "
            f"schedules differ from one rank's by at most {apart.max():.1e} "
            f"({apart.idxmax()}), losses of any iteration by at most {most:.1e}, relatively.")


def figure_of(table, directory):
    plt = style.apply()
    figure, (axes, below) = plt.subplots(2, 1, figsize=(7.6, 5.2), sharex=True,
                                         height_ratios=(2.2, 1))
    names = [name for name in table["schedule"].unique() if name != REFERENCE]
    for number, name in enumerate(names):
        rows = table[table["schedule"] == name]
        colour = style.SCHEDULE_COLOURS.get(name, style.OTHER_COLOUR)
        # The first is drawn widest, so that those on top of it leave it seen.
        axes.plot(rows["iteration"], rows["loss"], color=colour,
                  linewidth=1.6 + 0.6 * (len(names) - number), label=style.schedule_name(name))
        below.plot(rows["iteration"], 1e6 * rows["relative_difference"], color=colour,
                   linewidth=0.9)
    one = table[table["schedule"] == REFERENCE]
    axes.plot(one["iteration"], one["loss"], color="black", linewidth=1, label=REFERENCE)
    axes.set_ylabel("loss (nats a token)")
    below.set_ylabel("difference to\none rank ($10^{-6}$)")
    most = 1e6 * table["relative_difference"].abs().max()
    below.set_ylim(-max(1, 1.2 * most), max(1, 1.2 * most))
    if most == 0:
        below.annotate("equal to the last bit", (0.5, 0.62), xycoords="axes fraction", ha="center")
    below.set_xlabel("iteration")
    below.set_xlim(0, table["iteration"].max())
    for each in (axes, below):
        each.grid(color="#dddddd", linewidth=0.6)
        each.set_axisbelow(True)
    axes.legend(frameon=False, ncols=2, loc="upper right")
    axes.set_title(title(directory, table), loc="left", fontweight="bold", fontsize=10)
    figure.align_ylabels()
    figure.tight_layout()
    return figure


def title(directory, table):
    record = records.read_record(directory / "schedules")
    ranks = len(record["schedules"][0]["real"].get("peak_memory_bytes", []))
    return (f"One model under {table['schedule'].nunique() - 1} schedules "
            f"({records.scenario_of(record)}{f' on {ranks} ranks' if ranks else ''})")
