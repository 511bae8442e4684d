"""How long what is left of a sweep takes."""

from pathlib import Path

from longhaul.records import is_finished

START_S = 3.0  # of one start of bench_pipeline: launching, searching for best, writing


def played_s(points, out, iterations, warmup=1):
    """(seconds that the points not yet finished play at time_scale 1, how many they are)."""
    left = [point for point in points if not is_finished(Path(out) / point.name)]
    return sum(point.expected_s for point in left) * (iterations + warmup), len(left)


def time_scale_within(points, out, iterations, seconds):
    """The largest of two digits that should end within `seconds`; at most 1, at least 0.01."""
    played, left = played_s(points, out, iterations)
    room = seconds - START_S * left
    if played <= 0:
        return 1.0
    return min(1.0, max(0.01, int(100 * room / played) / 100))


def estimate(points, out, iterations, time_scale):
    """For people: what is left to run, and how long that takes."""
    played, left = played_s(points, out, iterations)
    minutes = (played * time_scale + START_S * left) / 60
    return (f"{left} of {len(points)} points left, {iterations} iterations and a warm-up each, "
            f"time_scale {time_scale:g}: about {minutes:.1f} minutes")
