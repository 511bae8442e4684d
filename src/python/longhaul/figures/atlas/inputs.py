"""Shared by the figures of Atlas: its models, its latencies, the inputs that it leaves
open, and runs on ranks."""

import csv
import json
from dataclasses import dataclass

from longhaul.records import overrides_of, pipeline_table
from longhaul.running import predict, tools
from longhaul.running.sweep_points import Point

LATENCIES_MS = (10, 20, 30, 40)
NODE_BITS_PER_SECOND = 5e9
# A transfer at 5 Gbps takes so many F: the paper's "3-4x" (footnote 3, section 6.3).
RATIOS = (3.0, 3.5, 4.0)
MIDDLE = 3.5


@dataclass(frozen=True)
class Model:
    """A stage holds one layer and runs one sequence a microbatch."""

    name: str
    preset: str
    message_bytes: int   # B L H of 2 bytes, B = 1
    activation: str
    weights: str         # fp16, of the published parameters of a layer

    def forward_ns(self, ratio):
        return round(8e9 * self.message_bytes / NODE_BITS_PER_SECOND / ratio)

    def overrides(self, ratio):
        """R takes as long as F, B twice as long."""
        forward = self.forward_ns(ratio)
        return (f"costs.forward={forward}ns", f"costs.recompute={forward}ns",
                f"costs.backward={2 * forward}ns", f"costs.message={self.message_bytes}B",
                f"costs.activation={self.activation}", f"costs.weights={self.weights}")


MODELS = {"gpt-a": Model("GPT-A", "gpt-a", 4096 * 4096 * 2, "958MB", "824MB"),
          "gpt-b": Model("GPT-B", "gpt-b", 6144 * 8192 * 2, "2203MB", "2400MB")}


def table1():
    """{latency in ms: published Mbps of one TCP connection}."""
    path = tools.ROOT / "results" / "papers" / "atlas-table1.csv"
    with path.open(encoding="utf-8") as file:
        return {int(row["latency_ms"]): float(row["bandwidth_mbps"])
                for row in csv.DictReader(file)}


def checked(scenario, overrides):
    """The answer of `longhaul check` for a scenario."""
    command = [tools.binary("longhaul"), "check", scenario, "--json"]
    command += tools.set_words(overrides)
    return json.loads(tools.run(command))["files"][0]


def utilization(entry):
    """Of the devices, recomputation counts as busy."""
    ratios = entry["bubble_ratio"]
    return 1 - sum(ratios) / len(ratios)


def point(scenario, label, overrides, schedules, entries):
    """One start of bench_pipeline. `entries`: the simulator's, by schedule."""
    return Point(scenario, "decoupled", label=label, overrides=overrides,
                 schedules=schedules,
                 expected_s=sum(predict.seconds(entries[name]) for name in schedules))


def measured(results, ignored=("run.time_scale",)):
    """{(scenario, overrides, schedule): row of pipeline_table}; times in seconds of the scenario.
    `overrides` is a frozenset of PATH=VALUE."""
    found = {}
    for row in pipeline_table(results).to_dict("records"):
        key = frozenset(f"{path}={value}" for path, value in overrides_of(row["command"]).items()
                        if path not in ignored)
        for name in ("measured_min", "measured_median", "measured_p95"):
            row[f"{name}_s"] = row[f"{name}_ns"] / row["time_scale"] / 1e9
        found[row["scenario"], key, row["schedule"]] = row
    return found
