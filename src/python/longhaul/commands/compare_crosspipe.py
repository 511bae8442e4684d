"""Which arrangement explains CrossPipe's static schedules? Simulates the static columns of tables 5
and 6 (cases 1 and 2) under both arrangements and compares each cell with the published number.
With --random N: are cross-ud and cross-wave as good as the greedy of section 4.2 as it is stated
(longhaul.papers.crosspipe_greedy) on N random settings? Exit 1 where one is longer."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

from longhaul.errors import Failure, guarded, result_name
from longhaul.figures.crosspipe.tables import FIELDS, compare, summary
from longhaul.papers import crosspipe_greedy
from longhaul.running import tools

OURS = ("cross-ud", "cross-wave")


def makespans(setting: crosspipe_greedy.Setting) -> dict[str, float]:
    """ms, simulated, of OURS and of the stated greedy in the same order of placements."""
    with tempfile.TemporaryDirectory(prefix="longhaul-") as name:
        directory = Path(name)
        scenario = directory / "setting.toml"
        scenario.write_text(setting.scenario(), encoding="utf-8")
        files = [directory / f"{ours}-stated.csv" for ours in OURS]
        own = []
        for file, wave in zip(files, (False, True)):
            end, text = crosspipe_greedy.generate(setting, wave)
            file.write_text(text, encoding="utf-8")
            own.append(end)
        record = json.loads(tools.run([
            tools.binary("longhaul"), "simulate", scenario, "--schedule",
            ",".join([*OURS, *map(str, files)]), "--json"]))
    times = [entry["makespan_ns"] / 10**6 for entry in record["schedules"]]
    if times[len(OURS):] != own:
        raise Failure(f"the stated greedy and the simulator disagree ({own} and "
                      f"{times[len(OURS):]} ms of {setting}). Report it.")
    return dict(zip((*OURS, *(f"{ours} stated" for ours in OURS)), times))


def compare_random(count: int, seed: int) -> int:
    """Prints how ours and the stated greedy differ; how often ours is longer."""
    longer = {name: [] for name in OURS}
    ratios = {name: [] for name in OURS}
    for setting in crosspipe_greedy.draw(count, seed):
        times = makespans(setting)
        for name in OURS:
            ratios[name].append(times[name] / times[f"{name} stated"])
            if ratios[name][-1] > 1 + 1e-9:
                longer[name].append((setting, times[name], times[f"{name} stated"]))
    for name in OURS:
        mean = 100 * (1 - sum(ratios[name]) / count)
        print(f"{name}: shorter than the stated greedy by {mean:.1f}% on average and "
              f"{100 * (1 - min(ratios[name])):.1f}% at most; longer in {len(longer[name])} of "
              f"{count} settings (seed {seed})")
        for setting, ours, stated in longer[name]:
            print(f"  {ours:.0f} ms, stated {stated:.0f} ms: {setting}")
    return sum(map(len, longer.values()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare-crosspipe", description=__doc__)
    parser.add_argument("--out", type=lambda text: Path(result_name(text)), help="CSV to write (never overwritten)")
    parser.add_argument("--random", type=int, metavar="N", help="compare on N random settings instead of the tables")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the settings (default: 1)")
    options = parser.parse_args(arguments)
    if options.random is not None:
        if options.random < 1 or options.out:
            raise Failure("--random needs a number of 1 or more, and has no --out (it prints "
                          "all). Give --random 120.")
        return 1 if compare_random(options.random, options.seed) else 0
    if options.out and options.out.exists():
        raise Failure(f"{options.out} exists (a result is never overwritten). "
                      "Choose another --out.")
    cells = compare()
    print("simulated against published seconds per microbatch (CrossPipe tables 5 and 6)")
    print(summary(cells))
    if options.out:
        with options.out.open("x", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(cells)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "compare-crosspipe"))
