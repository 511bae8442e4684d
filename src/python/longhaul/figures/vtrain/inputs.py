"""Layouts of vTrain's models by `longhaul plan --search parallel`, for its figures.

The paper's profile is not published: times are those of `longhaul predict`'s machine. Its schedule
is 1F1B with full recomputation and no ZeRO, as Megatron-DeepSpeed ran; layouts need not fit, since
the paper has no memory model."""

import json

import pandas as pd

from longhaul.running import tools

MT_NLG = tools.ROOT / "benchmarks" / "layouts" / "mt-nlg.toml"
ITERATIONS = 68_000     # the paper's; 270e9 tokens are 68,665
AS_THE_PAPER = ("--schedule", "1f1b", "--recompute", "full", "--sharding", "none",
                "--memory", "any", "--micro-batch", "1", "--iterations", ITERATIONS)
FOUND = ((8, 12, 21), (8, 15, 21), (8, 24, 15))
BASELINE = ((8, 8, 35), (8, 10, 35), (8, 12, 35))


def searched(*options, scenario=MT_NLG):
    words = [tools.binary("longhaul"), "plan", scenario, "--search", "parallel", "--json", *options]
    return json.loads(tools.run(words))


def plans(*options, scenario=MT_NLG):
    """A row for each plan."""
    return pd.DataFrame(searched(*options, scenario=scenario)["plans"])


def layout(tensor, data, pipeline, *options):
    """The plan of one (t, d, p)."""
    return plans("--tensor", tensor, "--data", data, "--pipeline", pipeline, *AS_THE_PAPER,
                 *options).iloc[0]


def all_layouts(*options):
    """All of figure 10's space that divides: t to 16, d to 32, p to 105, layers evenly."""
    return plans("--tensor", "1,2,4,8,16", "--data", "1:32", "--pipeline", "1,3,5,7,15,21,35,105", "--keep", "all",
                 "--exhaustive", *AS_THE_PAPER, *options)


def seconds(plan, key="iteration_ns"):
    return plan[key] / 1e9
