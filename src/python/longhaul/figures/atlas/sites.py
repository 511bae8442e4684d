"""Answers of `longhaul plan` for Atlas' figures 11 and 12."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from longhaul.running import tools

SCENARIO = "atlas-5dc"
SITES = ("dc1", "dc2", "dc3", "dc4", "dc5")
# 5 Gbps over a message that takes C forwards of 10 ms.
MESSAGES = {2: "12.5MB", 4: "25MB"}


@dataclass(frozen=True)
class Inputs:
    """Inputs that the paper leaves open: the distance of the sites, the bytes of an all-reduce."""

    latency_ms: int
    weights: str

    @property
    def text(self):
        return f"{self.latency_ms} ms, all-reduce of {self.weights}"


PINNED = Inputs(10, "824MB")
SPREAD = (PINNED, Inputs(1, "824MB"), Inputs(40, "824MB"), Inputs(10, "0B"))


@dataclass(frozen=True)
class Ask:
    """One call. `gpus`: of each datacenter, in order."""

    schedule: str
    pipelines: int
    gpus: tuple
    inputs: Inputs = PINNED
    sweep: str = ""

    @property
    def overrides(self):
        gpus = (*self.gpus, *(0,) * (len(SITES) - len(self.gpus)))
        return (*(f"datacenter.{site}.gpus={count}" for site, count in zip(SITES, gpus)),
                f"parallel.cell={self.pipelines}", f"costs.message={MESSAGES[self.pipelines]}",
                f"costs.activation={MESSAGES[self.pipelines]}",
                f"costs.weights={self.inputs.weights}", f"link.latency={self.inputs.latency_ms}ms")


def answer(ask):
    """The record of `longhaul plan`."""
    command = [tools.binary("longhaul"), "plan", tools.scenario_file(SCENARIO), "--schedule",
               ask.schedule, "--json"]
    command += tools.set_words(ask.overrides)
    return json.loads(tools.run([*command, *(["--sweep", ask.sweep] if ask.sweep else [])]))


def answers(asks):
    """{ask: its record}, each once, on all cores."""
    wanted = list(dict.fromkeys(asks))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return dict(zip(wanted, pool.map(answer, wanted)))


def timed(ask):
    """Seconds of one call, the start of the program included."""
    began = time.monotonic()
    answer(ask)
    return time.monotonic() - began


def best(record):
    """The plan of the highest throughput; None where none can be made."""
    place = record["best"]["throughput"]
    return None if place is None else record["plans"][place]


def way(plan):
    return ", ".join(f"{share['datacenter']} {share['stages']}" for share in plan["way"])
