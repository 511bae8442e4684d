"""Runs the points of a sweep with bench_pipeline, each in a directory of its own, and gathers them.
Points that are finished are not run again, and those that were cut short go on."""

import os
import shlex
import subprocess
import time
from pathlib import Path

from longhaul import progress, scenario_text
from longhaul.records import RATIOS, is_finished, pipeline_table
from longhaul.running import children, runs, sweep_state, tools


def command_for(point, directory, options):
    """As a person would type it in the root of the checkout, which is where it runs."""
    overrides = [*point.overrides, *options.set]
    if point.latency_ratio is not None:
        overrides += [f"link.latency_ratio={point.latency_ratio:g}",
                      f"link.transfer_ratio={point.transfer_ratio:g}"]
    if options.time_scale is not None:
        overrides.append(f"run.time_scale={options.time_scale:g}")
    command = ["scripts/mpi", "-n", scenario_text.ranks_of(point.scenario, overrides),
               tools.from_root(tools.binary("bench_pipeline")), tools.from_root(point.scenario),
               "--schedule", ",".join(point.schedules or [options.schedules]),
               "--comm", point.comm, *point.extra]
    if options.iterations is not None:
        command += ["--iterations", options.iterations]
    command += tools.set_words(overrides)
    command += ["--no-report", "--out", tools.from_root(directory), *shlex.split(options.extra)]
    command = [str(word) for word in command]
    if sweep_state.resumable(command):
        command.append("--resume")  # a result says so whether or not it was cut short
    return command


def run_point(point, directory, options, commit, out):
    """True where the point is finished afterwards."""
    if sweep_state.is_running(directory):
        tools.say(f"  another run is going on in {directory}; it is left alone")
        return False
    command = command_for(point, directory, options)
    wanted = sweep_state.input_of(command, point.scenario, commit)
    if is_finished(directory):
        sweep_state.set_aside(directory, "outdated")
    elif not (sweep_state.resumable(command) and sweep_state.can_go_on(directory, wanted)):
        sweep_state.set_aside(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    sweep_state.write_whole(sweep_state.input_file(directory), wanted)
    log = directory.with_name(directory.name + ".log")
    with open(log, "a", encoding="utf-8") as output, runs.recorded(directory, out):
        output.write(shlex.join(command) + "\n")
        output.flush()
        done = children.run(command, cwd=tools.ROOT, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode == 0 and is_finished(directory):
        return True
    tools.say(f"  failed with {done.returncode}; what it said is in {log}")
    return False


def run_points(points, out, options):
    """Returns the names of points that failed."""
    out = Path(out).resolve()
    commit = sweep_state.commit_of(tools.binary("bench_pipeline"))
    failed = []
    for number, point in enumerate(points, 1):
        directory = out / point.name
        if getattr(options, "again", False):
            directory = runs.next_of(directory)
        elif is_current(point, directory, options, commit):
            continue
        tools.say(f"[{number}/{len(points)}] {point.name} (load {os.getloadavg()[0]:.2f})")
        if options.dry_run:
            print(shlex.join(command_for(point, directory, options)))
            continue
        began = time.monotonic()
        progress.step(f"point {number} of {len(points)}, {point.name}")
        if not run_point(point, directory, options, commit, out):
            failed.append(point.name)
        tools.say(f"  {time.monotonic() - began:.1f} s")
        gather(out)
    return failed


def is_current(point, directory, options, commit):
    """Nothing is to be run. A sweep that is resumed takes no result of another input for its own;
    otherwise a finished point stays."""
    if not getattr(options, "resume", None):
        return is_finished(directory)
    command = command_for(point, directory, options)
    return sweep_state.is_done(directory,
                               sweep_state.input_of(command, point.scenario, commit))


def gather(out):
    """Writes DIR/sweep.csv, with all runs of each point, in one step and returns its table."""
    table = pipeline_table(out, runs="all")
    if table.empty:
        return table
    target = Path(out) / "sweep.csv"
    part = sweep_state.part_of(target)
    table.assign(**{name: table[name].map(scenario_text.ratio_text) for name in RATIOS}).to_csv(
        part, index=False)
    part.replace(target)
    return table
