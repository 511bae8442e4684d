"""Runs everything of a paper into results/<date>-<commit>/ and prints which of its numbers lie in
the range in which they are expected. What is done there already is not run again."""

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path

from longhaul.errors import RUN_FAILED, Failure, guarded, result_name, suggestion
from longhaul.figures import registry
from longhaul.figures.registry import PAPERS
from longhaul.papers import claims, expected
from longhaul.reproducing import evidence, parts
from longhaul.reproducing.reproduction import Data, Reproduction, Room
from longhaul.running import tools

ANSWER_IS_NO = 1
ALL = "all"
ORDER = (*claims.PAPERS, registry.OWN)  # of `all`


def directory_for(options, commit):
    """--out; otherwise the newest of this commit, so that a run goes on, or a new one."""
    if options.out:
        return Path(options.out)
    results = tools.ROOT / "results"
    short = commit[:9] + ("-dirty" if commit.endswith("-dirty") else "")
    earlier = sorted(path for path in results.glob(f"20??-??-??-{short}") if path.is_dir())
    return earlier[-1] if earlier else results / f"{date.today().isoformat()}-{short}"


def listing(papers, kinds):
    """The parts, how long each takes, and how many numbers are expected of it."""
    lines = [f"{'part':<34}{'takes':>8}  numbers  needs"]
    seconds = {"simulated": 0.0, "measured": 0.0}
    for paper, items in papers.items():
        numbers = registry.expected(paper)
        for item in items:
            for kind in item.repeat.kinds:
                if kind not in kinds:
                    continue
                repeat = item.repeat
                seconds[kind] += repeat.seconds if kind == "simulated" else 60 * repeat.minutes
                takes = f"{repeat.seconds} s" if kind == "simulated" else f"{repeat.minutes:g} min"
                count = sum((one.figure, one.kind) == (item.name, kind) for one in numbers)
                wanted = [repeat.needs] if kind == "measured" and repeat.needs else []
                wanted += [name for _, name in repeat.data]
                lines.append(f"{item.name + ', ' + kind:<34}{takes:>8}{count:>9}  "
                             f"{', '.join(wanted)}".rstrip())
    lines += ["", "In all " + " and ".join(f"{seconds[kind] / 60:.0f} minutes {kind}"
                                           for kind in kinds) + ".", "", "Ranges rest on:"]
    lines += [f"  {name:<10} {meaning}" for name, meaning in expected.BASES.items()]
    lines += ["  verdict    the verdict that results/reference keeps, by docs/figures.md",
              "  repeat     the number that results/reference keeps: simulation is deterministic"]
    return "\n".join(lines)


def chosen(paper, only):
    """{paper: its figures}."""
    papers = {name: PAPERS[name] for name in (ORDER if paper == ALL else (paper,))}
    if not only:
        return papers
    known = {item.name: item for items in papers.values() for item in items}
    short = {name.split("-", 1)[-1]: name for name in known} if paper != ALL else {}
    names = set()
    for word in only.split(","):
        name = word if word in known else short.get(word)
        if name is None:
            raise Failure(f'--only: no figure "{word}". {suggestion(word, list(known))}')
        names.add(name)
    picked = {name: tuple(item for item in items if item.name in names)
              for name, items in papers.items()}
    return {name: items for name, items in picked.items() if items}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce", description=__doc__,
        epilog="Exit codes: 0 all as expected, 1 some number or claim is not, 2 bad input, 3 a "
               "part could not be run. docs/artifact.md walks through it.")
    parser.add_argument("paper", choices=[*ORDER, ALL], metavar="PAPER",
                        help=f"{', '.join(ORDER[:-1])}, longhaul (figures of no paper) or {ALL}")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--simulated-only", action="store_true", help="no ranks: some minutes")
    which.add_argument("--measure", action="store_true",
                       help="ranks too (default): on a machine that has nothing else to do")
    parser.add_argument("--only", metavar="FIGURE[,FIGURE]", help="table5,fig6: these alone")
    parser.add_argument("--data", metavar="DIR",
                        help="public files that are no part of the project, found by their names "
                             "below it (--list has them)")
    parser.add_argument("--minutes", type=float, metavar="X",
                        help="begin no part that is planned to end later; the same command goes on")
    parser.add_argument("--out", metavar="DIR", type=result_name,
                        help="default: results/<date>-<commit>, the newest of this commit")
    parser.add_argument("--keep", action="store_true",
                        help=f"with {ALL}, once every part is done: results/reference becomes it")
    parser.add_argument("--keep-done", action="store_true",
                        help=f"with {ALL}: parts that are done replace theirs in results/reference, "
                             "and those kept there of this commit count as done: goes on on "
                             "another machine")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    options = parser.parse_args(arguments)
    if options.keep and (options.paper != ALL or options.only or options.simulated_only):
        raise Failure(f"--keep replaces all of results/reference: it takes {ALL}, measured, without"
                      " --only.")
    if options.keep_done and options.paper != ALL:
        raise Failure(f"--keep-done: it takes {ALL}.")
    if options.data and not Path(options.data).is_dir():
        raise Failure(f"--data: no directory {options.data}.")
    return options


def main(arguments=None):
    options = parse(arguments)
    kinds = ("simulated",) if options.simulated_only else ("simulated", "measured")
    papers = chosen(options.paper, options.only)
    if options.list:
        print(listing(papers, kinds))
        return 0
    commit = tools.program_commit()
    directory = directory_for(options, commit)
    runs = [Reproduction(paper, items, directory, commit, Data(options.data))
            for paper, items in papers.items()]
    refuse_another_commit(directory, commit)
    reference = tools.ROOT / "results" / "reference"
    if options.keep_done:
        parts.take_up(runs, reference)
    tools.say(f"into {directory if len(runs) > 1 else runs[0].directory}")
    failed, later = run_all(runs, kinds, Room(options.minutes))
    if not failed and not any(run.done(kinds) for run in runs):
        raise Failure("nothing could be run here. Name other figures, or leave out "
                      "--simulated-only.", RUN_FAILED)
    # Pages are of what was measured earlier, too.
    judged = {run.paper: run.outcomes(evidence.KINDS if options.paper == ALL else kinds)
              for run in runs}
    good = all([summarise(run, [one for kind in kinds for one in judged[run.paper][kind]])
                for run in runs])
    if options.paper == ALL:
        evidence.write(runs, judged, directory)
        parts.write_ledger(directory / "kept", parts.of_done(runs))
        tools.say(f"pages: {directory / 'kept' / 'README.md'}")
    if options.keep_done:
        parts.keep_done(runs, reference)
    if failed:
        raise Failure(f"{len(failed)} parts failed: {', '.join(failed)}. Run the same command "
                      "again to repeat them alone.", RUN_FAILED)
    if later:
        raise Failure(f"{len(later)} parts are left, for which there were not minutes enough: "
                      f"{', '.join(later)}. Run the same command again.", RUN_FAILED)
    if options.keep:
        evidence.keep(runs, directory)
    return 0 if good else ANSWER_IS_NO


def refuse_another_commit(directory, commit):
    """Runs that are finished are not run again, whatever the program: one directory, one commit."""
    for about in directory.glob("*/about.json"):
        found = json.loads(about.read_text(encoding="utf-8")).get("commit")
        if found != commit:
            raise Failure(f"--out: {directory} has figures of commit {found}, the program is of "
                          f"{commit}. Name another directory.")


def run_all(runs, kinds, room):
    """(parts that failed, parts left for later). Simulated ones of all papers come first."""
    failed, later = [], []
    for kind in kinds:
        for run in runs:
            for names, more in zip((failed, later), run.run_all((kind,), room)):
                names += more
    return failed, later


def summarise(run, outcomes):
    """Prints and writes how its numbers came out; whether all are as expected."""
    text = expected.text(outcomes)
    run.write_summary(outcomes, text)
    print(text)
    return all(one.outcome in expected.GOOD for one in outcomes)


if __name__ == "__main__":
    sys.exit(guarded(main, "reproduce"))
