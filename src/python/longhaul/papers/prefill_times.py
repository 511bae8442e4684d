"""How well times of prefill between measured sizes are predicted: linear between neighbours, as
[prefill] profile is (docs/prefill.md).

python -m longhaul.papers.prefill_times FILE.csv reads model, gpu, tensor_parallel, prompt_tokens,
prefill_ms, leaves out each size between the first and the last of its configuration in turn, and
prints how far it is off. With only a few sizes far apart that is much further than between given
ones."""

import sys

import pandas as pd

from longhaul.errors import BAD_INPUT, Failure
from longhaul.running import tools

COLUMNS = ("model", "gpu", "tensor_parallel", "prompt_tokens", "prefill_ms")


def read(path):
    """{(model, gpu, tensor_parallel): [(tokens, ms)], by tokens}."""
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}. Name a CSV file.", BAD_INPUT) from error
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        raise Failure(f"{path}: there is no column {missing[0]}. It has {', '.join(COLUMNS)}.",
                      BAD_INPUT)
    return {key: sorted(zip(own["prompt_tokens"], own["prefill_ms"]))
            for key, own in table.groupby(["model", "gpu", "tensor_parallel"])}


def predict(points, tokens):
    """Constant below the first point; none above the last."""
    if tokens <= points[0][0]:
        return points[0][1]
    for (low, low_ms), (high, high_ms) in zip(points, points[1:]):
        if tokens <= high:
            return low_ms + (high_ms - low_ms) * (tokens - low) / (high - low)
    raise ValueError(f"{tokens} tokens are above the last size, {points[-1][0]}")


def leave_one_out(points):
    """|predicted / measured - 1| of each size between the first and the last."""
    return [abs(predict(points[:i] + points[i + 1:], tokens) / ms - 1)
            for i, (tokens, ms) in enumerate(points) if 0 < i < len(points) - 1]


def main(path):
    every = []
    for key, points in read(path).items():
        errors = leave_one_out(points)
        every += errors
        mean = sum(errors) / len(errors) if errors else 0
        print(f"{' '.join(map(str, key))}: {len(points)} sizes, {100 * mean:.1f}% off in the mean")
    if every:
        print(f"all: {len(every)} sizes left out, {100 * sum(every) / len(every):.1f}% off in the "
              "mean")


if __name__ == "__main__":
    try:
        if len(sys.argv) != 2:
            raise Failure("prefill_times: name one CSV file.", BAD_INPUT)
        main(sys.argv[1])
    except Failure as failure:
        tools.say(str(failure))
        sys.exit(failure.code)
