"""CrossPipe table 6: M70 in 4 datacenters."""

from longhaul.figures.crosspipe import cells, runtimes
from longhaul.figures.crosspipe.cells import CELLS, DYNAMIC, STATIC
from longhaul.figures.crosspipe.table5 import BOTH, RECOMPUTABLE, no_delay
from longhaul.papers import claims

NAME = "crosspipe-table6"
SUMMARY = "the same in 4 datacenters"


def add_arguments(parser):
    runtimes.add_arguments(parser)


def draw(options):
    return runtimes.draw(6, NAME, options,
                         lambda table, seconds: verdicts(table, seconds, options))


def verdicts(table, seconds, options):
    found = runtimes.judge_model(table)
    if seconds.has(1):
        found += [no_delay("no-delay-comparable-4dc", seconds), beats_static(seconds),
                  wave_or_ud(seconds)]
    if seconds.has(1, 2):
        found.append(recompute(seconds))
    if seconds.has(3):
        two = cells.compare(5, (3,), options.results, runtimes.search_of(options))
        found.append(four_dc_slowdown(runtimes.Lookup(two), seconds))
    return found


def beats_static(seconds):
    delayed = CELLS[1:]
    gains = {delay: 100 * (1 - seconds.least(1, delay, DYNAMIC.values())
                           / seconds.least(1, delay, STATIC.values())) for delay in delayed}
    return claims.judge("beats-static-4dc",
                        claims.by_count(sum(gain > 0 for gain in gains.values()), len(gains)),
                        "shorter by " + ", ".join(f"{gain:.1f}%" for gain in gains.values()),
                        "The fastest of its schedules against the fastest static one with early "
                        "receives, at the four delays.")


def wave_or_ud(seconds):
    """Low: (0, 0) and (0.25, 0.25). High: the other three."""
    wave = {delay: seconds(1, delay, "cross-wave")
            / seconds.least(1, delay, ("cross-ud", "cross-ud-sub")) for delay in CELLS}
    agree = [(ratio < 1) == (delay in CELLS[:2]) for delay, ratio in wave.items()]
    return claims.judge("wave-low-ud-high-4dc", claims.by_count(sum(agree), len(agree)),
                        "CrossWave takes " + ", ".join(f"{ratio:.2f}" for ratio in wave.values())
                        + " times as long as the better CrossUD",
                        "At " + ", ".join(f"({a:g}, {b:g})" for a, b in wave) + ".")


def recompute(seconds):
    pairs = [seconds(2, delay, name) / seconds(1, delay, name)
             for name in RECOMPUTABLE for delay in CELLS]
    good = sum(ratio <= 1.02 for ratio in pairs)
    return claims.judge("recompute-pays-4dc", claims.mostly(good, len(pairs)),
                        f"in {good} of {len(pairs)} (case 2 over case 1: "
                        + ", ".join(f"{ratio:.2f}" for ratio in pairs) + ")",
                        "CrossUD, then CrossWave, over the five delays; up to 1.02 counts as "
                        "comparable.")


def four_dc_slowdown(two, four):
    best = ("cross-ud", "cross-ud-sub")
    slower = 100 * (four.least(3, BOTH, best) / two.least(3, BOTH, best) - 1)
    theirs = claims.value("four-dc-slowdown")
    whole = 100 * (four(3, BOTH, "best") / two(3, BOTH, "best") - 1)
    return claims.judge("four-dc-slowdown", claims.HOLDS if slower <= theirs + 2
                        else claims.within(slower, theirs, 0.1, 0.5),
                        f"{slower:.1f}% ({four.least(3, BOTH, best):.4f} against "
                        f"{two.least(3, BOTH, best):.4f} s per microbatch)",
                        f"The better of CrossUD and CrossUDSub; with best {whole:.1f}%.")
