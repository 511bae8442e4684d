"""Verdicts of figure 8 on the observations of CrossPipe's section 5.1, one by one."""

from longhaul.papers import claims

SAME = 1.01   # slowdowns that count as equal
CLOSE = 1.02  # as matching a solver


def judge(table):
    """`table`: crosspipe_fig8's numbers."""
    at = {(row.series, row.axis, row.delay_ratio): row.slowdown for row in table.itertuples()}
    labels = {(row.kind, row.placement, row.schedule): row.series for row in table.itertuples()}
    made = {placement: label for (kind, placement, _), label in labels.items() if kind == "solver"}
    name = {schedule: label for (kind, _, schedule), label in labels.items() if kind != "solver"}
    points = sorted({(row.axis, row.delay_ratio) for row in table.itertuples()})
    return [split(at, name, made, points), wave_or_ud(at, made, name), loop(at, made, name),
            traversal(table), greedy(at, name, made, points),
            latency_as_bandwidth(at, table)]


def split(at, name, made, points):
    """ZB-H1 against 1F1B, whose placement and memory it shares."""
    pairs = [(name["zb-h1"], name["1f1b"]), (made["ud"], name["1f1b"])]
    better = [at[a, *point] < at[b, *point] for a, b in pairs for point in points]
    gains = [100 * (1 - at[pairs[0][0], *point] / at[pairs[0][1], *point]) for point in points]
    return claims.judge("split-beats-unified", claims.by_count(sum(better), len(better)),
                        f"in {sum(better)} of {len(better)} comparisons",
                        f"ZB-H1 is {min(gains):.0f} to {max(gains):.0f}% shorter than 1F1B; "
                        f"{made['ud']} is compared with 1F1B too.")


def wave_or_ud(at, made, name):
    """Wave at or below UD up to some delay, above it from then on."""
    agree, words = [], []
    for wave, ud, kind in ((made["wave"], made["ud"], "solver-made"),
                           (name["zbv"], name["zb-h1"], "static")):
        for axis in ("latency", "transfer"):
            delays = sorted(delay for label, own, delay in at if (label, own) == (wave, axis))
            ahead = [at[wave, axis, delay] <= at[ud, axis, delay] for delay in delays]
            agree.append(ahead[0] and not ahead[-1])
            lost = next((delay for delay, first in zip(delays, ahead) if not first), None)
            words.append(f"{kind} over {axis}: " + (
                "wave is ahead throughout" if lost is None else f"UD is ahead from {lost:g} T_F"))
    return claims.judge("wave-low-ud-high", claims.by_count(sum(agree), len(agree)),
                        "; ".join(words),
                        f"At most {max(delay for _, _, delay in at):g} T_F was tried.")


def loop(at, made, name):
    """Slowdown that 2 T_F add, loop against the others of its kind."""
    def added(label, axis):
        return at[label, axis, 2] - at[label, axis, 0]
    groups = {"solver-made": (made["loop"], made["wave"], made["ud"]),
              "static": (name["interleaved-1f1b"], name["zbv"], name["1f1b"])}
    agree, words = [], []
    for kind, members in groups.items():
        for axis in ("latency", "transfer"):
            first, *others = [added(label, axis) for label in members]
            agree += [first > other for other in others]
            words.append(f"{kind}, {axis}: +{first:.2f} against "
                         + " and ".join(f"+{other:.2f}" for other in others))
    return claims.judge("loop-most-sensitive", claims.by_count(sum(agree), len(agree)),
                        "; ".join(words), "Slowdown that 2 T_F add to loop, wave and UD.")


def traversal(table):
    """Counted messages between the datacenters."""
    counted = table.groupby("placement")["crossings_per_microbatch"].agg(["min", "max"])
    wanted = dict(zip(("loop", "wave", "ud"), (6, 4, 2)))
    agree = [counted.loc[name, "min"] == counted.loc[name, "max"] == number
             for name, number in wanted.items()]
    return claims.judge("traversal-crossings", claims.by_count(sum(agree), len(agree)),
                        ", ".join(f"{counted.loc[name, 'max']:g}" for name in wanted),
                        "Loop, wave, UD; messages between the datacenters, forth and back.")


def greedy(at, name, made, points):
    off = {point: at[name["cross-ud-sub"], *point] / at[made["ud"], *point] for point in points}
    near = sum(ratio <= CLOSE for ratio in off.values())
    worst = max(off, key=off.get)
    return claims.judge("greedy-as-solver", claims.mostly(near, len(off)),
                        f"within {100 * CLOSE - 100:.0f}% of {made['ud']} at {near} of {len(off)} "
                        "delays", f"The most it loses is {100 * off[worst] - 100:.1f}%, at "
                        f"{worst[0]} {worst[1]:g} T_F." if off[worst] > 1 else
                        "It loses nowhere.")


def latency_as_bandwidth(at, table):
    """A chunk's forward time is T_F with one chunk a device, half of it with two."""
    placement = dict(zip(table["series"], table["placement"]))
    small, large = [], []
    for (label, axis, delay), latency in at.items():
        if axis != "latency" or not delay:
            continue
        ratio = at[label, "transfer", delay] / latency
        if delay <= (1 if placement[label] == "ud" else 0.5):
            small.append(ratio)
        else:
            large.append(ratio)
    equal = sum(1 / SAME <= ratio <= SAME for ratio in small)
    more = sum(ratio > 1 for ratio in large)
    return claims.judge("latency-as-bandwidth", claims.by_count(
        (equal >= 0.9 * len(small)) + (more >= 0.9 * len(large)), 2),
        f"equal within 1% in {equal} of {len(small)} up to a chunk's forward time; transfer time "
        f"costs more in {more} of {len(large)} beyond",
        f"Transfer over latency: up to {max(small):.2f} below, up to {max(large):.2f} beyond.")
