"""What slurm/submit asks before a job is queued: how many ranks it needs, and whether the programs
would refuse its options. Prints the number of ranks.

    python -m longhaul.commands.before_queue ME pipeline SCENARIO [OPTIONS OF bench_pipeline]
    python -m longhaul.commands.before_queue ME collectives SCENARIO [OPTIONS OF bench_collectives]
    python -m longhaul.commands.before_queue ME train SCENARIO [OPTIONS OF bench_train]
    python -m longhaul.commands.before_queue ME prefill SCENARIO [OPTIONS OF bench_prefill]
    python -m longhaul.commands.before_queue ME sweep FILE

Of a sweep the ranks are those of its largest scenario; the options of each line are checked."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from longhaul import scenario_text
from longhaul.commands import sweep
from longhaul.errors import BAD_INPUT, Failure, guarded
from longhaul.running import sweep_points, sweep_state, tools
from longhaul.running.sweep import command_for

CHECK_S = 20  # a search that is asked for is made, so a check may take longer: then it is left out
# Of the machine that runs the job, not of the one that submits it.
ELSEWHERE = ("--device", "--transport")
DIRECTORIES = ("--out",)


def without(words, names):
    """The words less these options and their values."""
    kept, skip = [], False
    for word in words:
        if not skip and word.split("=")[0] not in names:
            kept.append(word)
        skip = not skip and word in names
    return kept


def value_of(words, name):
    """The last value of an option; None where it has none."""
    found = [after for word, after in zip(words, words[1:]) if word == name]
    found += [word[len(name) + 1:] for word in words if word.startswith(name + "=")]
    return found[-1] if found else None


def refusal(scenario, words, ranks):
    """Why bench_pipeline would refuse these words; empty: it would not, or cannot be asked here (it
    is not built, MPI does not start on this machine, or it takes too long)."""
    with tempfile.TemporaryDirectory(prefix="longhaul-") as scratch:
        command = [scenario, *without(words, (*ELSEWHERE, *DIRECTORIES)), "--out",
                   str(Path(scratch) / "none"), "--print-map"]
        if value_of(words, "--ranks-per-process") is None:
            command += ["--ranks-per-process", str(ranks)]
        if sweep_state.resumable(words) and "--resume" not in command:
            command.append("--resume")  # as pipeline.sbatch does
        try:
            done = subprocess.run([tools.binary("bench_pipeline"), *command], text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, check=False,
                                  timeout=CHECK_S)
        except (Failure, OSError, subprocess.TimeoutExpired):
            return ""
        said = done.stderr.strip().splitlines()
        if done.returncode != BAD_INPUT or not said:
            return ""
        return without_program(said[-1])


def without_program(line):
    """A message less the names of who says it."""
    return re.sub(r"^longhaul: (bench_[a-z]+: )?| `bench_[a-z]+ --help` [a-z ]+\.$", "", line)


def check_real_layers(words, refused):
    """`refused`: what the program says of the words. A program that goes on with real layers says
    nothing."""
    if value_of(words, "--compute") != "real" or not sweep_state.resumable(words):
        return
    if "--compute real" in refused or not can_be_asked():
        raise Failure("--compute real cannot go on when its job is queued again (the weights of real "
                      "layers are not kept when a run ends). Add --trace off: then it begins anew.")


def can_be_asked():
    try:
        return bool(tools.run([tools.binary("bench_pipeline"), "--version"], timeout_s=CHECK_S))
    except (Failure, OSError):
        return False


def ranks_of(scenario, words):
    settings = [after for word, after in zip(words, words[1:]) if word == "--set"]
    settings += [word[len("--set="):] for word in words if word.startswith("--set=")]
    return scenario_text.ranks_of(scenario, settings)


def check_pipeline(scenario, words):
    """The ranks that it needs."""
    ranks = ranks_of(scenario, words)
    refused = refusal(scenario, words, ranks)
    check_real_layers(words, refused)
    if refused:
        raise Failure(f"bench_pipeline refuses these options: {refused}")
    return ranks


def check_names(program):
    """Of a program that cannot be asked without running: started as one rank it refuses options that it
    does not have, then the number of ranks."""
    def check(scenario, words):
        ranks = ranks_of(scenario, words)
        if ranks == 1 or "--check" in words:
            return ranks  # it would run
        asked = without(words, (*DIRECTORIES, "--ranks-per-process"))
        try:
            done = subprocess.run([tools.binary(program), scenario, *asked], text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, check=False,
                                  timeout=CHECK_S)
        except (Failure, OSError, subprocess.TimeoutExpired):
            return ranks
        refused = without_program((done.stderr.strip().splitlines() or [""])[-1])
        if refused.startswith("unknown option"):
            raise Failure(f"{program} refuses these options: {refused}")
        return ranks
    return check


def check_prefill(scenario, words):
    """Started as one rank bench_prefill names the ranks that train and serve, or why not. Where it
    cannot be asked: those that train, a controller, and one that decodes in each datacenter."""
    most = ranks_of(scenario, words) + 1 + max(1, scenario_text.datacenters_of(scenario))
    try:
        done = subprocess.run([tools.binary("bench_prefill"), scenario,
                               *without(words, (*DIRECTORIES, "--ranks-per-process"))],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
                              timeout=CHECK_S)
    except (Failure, OSError, subprocess.TimeoutExpired):
        return most
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if needed := re.search(r" needs (\d+) ranks \(", said):
        return int(needed[1])
    if done.returncode == BAD_INPUT and said:
        raise Failure(f"bench_prefill refuses these options: {without_program(said)}")
    return most


def check_line(line, place):
    """The ranks that a line of a sweep's file needs."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Failure(f"{place}: {error}.") from error
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            options = sweep.parse([*words, "--out", "none"])
    except SystemExit:
        said = said.getvalue().strip().splitlines()
        raise Failure(f"{place}: {said[-1] if said else 'no options of scripts/sweep'}.") from None
    try:
        scenarios = [tools.scenario_file(name) for name in options.scenario]
        if not scenarios:
            raise Failure("no scenario given. Add --scenario FILE.")
        points = sweep_points.points_of(scenarios, sweep_points.parse_cells(options.cells),
                                        options.comm.split(","))
        ranks = max(scenario_text.ranks_of(file, options.set) for file in scenarios)
        for scenario in scenarios:
            point = next(point for point in points if point.scenario == scenario)
            if refused := refusal_of_point(point, options):
                raise Failure(f"bench_pipeline refuses its options: {refused}")
    except Failure as failure:
        raise Failure(f"{place}: {failure}") from failure
    return ranks


def refusal_of_point(point, options):
    try:
        tools.binary("bench_pipeline")
    except Failure:
        return ""
    _, _, ranks, _, scenario, *words = command_for(point, Path("none"), options)
    if not Path(scenario).is_absolute():
        scenario = str(tools.ROOT / scenario)
    return refusal(scenario, words, int(ranks))


def check_sweep(file):
    """The most ranks that a line needs. Lines that say nothing do not count, as in its tasks."""
    lines = [line for line in Path(file).read_text(encoding="utf-8").splitlines()
             if not re.match(r"\s*(#|$)", line)]
    return max(check_line(line, f"{file}: task {number}") for number, line in enumerate(lines, 1))


def main():
    kind, *words = sys.argv[2:]
    check = {"collectives": check_names("bench_collectives"), "pipeline": check_pipeline,
             "prefill": check_prefill, "train": check_names("bench_train")}
    print(check_sweep(words[0]) if kind == "sweep" else check[kind](words[0], words[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, sys.argv[1]))
