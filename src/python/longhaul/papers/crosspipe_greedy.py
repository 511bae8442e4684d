"""CrossPipe's greedy as its section 4.2 states it, with one reading of what it leaves open, apart
from the generators of src/schedule: a schedule that those have to be as good as.

Messages leave when their block ends and wait for the one before them on the same way. A device
takes, of the blocks that are there when it is free and fit into its memory: D, then F after an F;
F, then D after a D; D in the tear-down; W where neither can run, and first after a D where memory
has no room for an F. On a V the F of the way up and the D of the way down go first, and an F of the
way down leaves room for one of the way up.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Setting:
    """A pipeline whose stages are equal, in `datacenters` of equal size. Times in ms."""

    stages: int
    microbatches: int
    forward: int
    dgrad: int
    wgrad: int
    budget: float = 1.0
    datacenters: int = 2
    latency: int = 0
    transfer: int = 0

    def scenario(self) -> str:
        """The text of the scenario file; a message of 1 MB takes `transfer` on the links."""
        lines = ["[scenario]", 'name = "random-setting"', "[parallel]", f"stages = {self.stages}",
                 f"microbatches = {self.microbatches}", "[costs]", f'forward = "{self.forward}ms"',
                 f'dgrad = "{self.dgrad}ms"', f'wgrad = "{self.wgrad}ms"', 'message = "1MB"',
                 "[memory]", f"budget = {self.budget}"]
        for number in range(self.datacenters):
            held = [s for s in range(self.stages) if self.datacenter(s) == number]
            lines += ["[[datacenter]]", f'name = "dc{number}"', f"stages = {held}"]
        for number in range(self.datacenters - 1):
            lines += ["[[link]]", f'between = ["dc{number}", "dc{number + 1}"]',
                      f'latency = "{self.latency}ms"']
            if self.transfer:
                lines.append(f'bandwidth = "{8 * 10**6 // self.transfer}kbps"')
        return "\n".join(lines) + "\n"

    def datacenter(self, stage: int) -> int:
        return stage * self.datacenters // self.stages

    def held(self) -> int:
        """Half activations of a stage that a device may hold."""
        return math.floor(2 * self.budget * min(self.stages, self.microbatches) + 1e-9)


def draw(count: int, seed: int) -> list[Setting]:
    """Settings whose makespans are exact in ms: even times, transfers that divide a rate."""
    numbers = random.Random(seed)
    settings = []
    for _ in range(count):
        stages = numbers.choice((2, 4, 6, 8, 12, 16))
        forward, dgrad, wgrad = (2 * numbers.randint(10, 100) for _ in range(3))
        settings.append(Setting(
            stages, numbers.randint(stages, 4 * stages), forward, dgrad, wgrad,
            numbers.choice((1.0, 1.25, 1.5, 2.0)), numbers.choice((2, min(stages, 4))),
            2 * numbers.randint(0, 150), numbers.choice((0, 10, 20, 40, 50, 80, 100, 200))))
    return settings


@dataclass
class _Chunk:
    device: int
    times: dict[str, int]
    arrivals: dict[str, list[int]] = field(default_factory=lambda: {"F": [], "D": []})
    done: dict[str, int] = field(default_factory=lambda: {"F": 0, "D": 0, "W": 0})


class _Run:
    """Memory counts quarters of a stage's activation on a V and halves otherwise: F takes two."""

    def __init__(self, setting: Setting, wave: bool):
        self.setting = setting
        share = 2 if wave else 1
        devices = [*range(setting.stages), *(reversed(range(setting.stages)) if wave else ())]
        times = {"F": setting.forward // share, "D": setting.dgrad // share,
                 "W": setting.wgrad // share}
        self.chunks = [_Chunk(device, times) for device in devices]
        self.chunks[0].arrivals["F"] = [0] * setting.microbatches
        self.limit = share * setting.held()
        self.wave = wave
        self.free = [0] * setting.stages
        self.memory = [0] * setting.stages
        self.last = [""] * setting.stages
        self.links: dict[tuple[int, int], int] = {}
        self.rows: list[list[str]] = [[] for _ in range(setting.stages)]

    def fits(self, number: int) -> bool:
        device = self.chunks[number].device
        up = self.chunks[-1 - device]
        down_alone = self.wave and number == device and up.done["F"] == up.done["D"]
        return self.memory[device] + (4 if down_alone else 2) <= self.limit

    def candidates(self, device: int):
        """(time, kind, chunk) of the next block of every kind and chunk that could run."""
        mine = (device, len(self.chunks) - 1 - device) if self.wave else (device,)
        for number in mine:
            chunk = self.chunks[number]
            for kind in "FD":
                if chunk.done[kind] < len(chunk.arrivals[kind]) and (
                        kind == "D" or self.fits(number)):
                    yield (max(self.free[device], chunk.arrivals[kind][chunk.done[kind]]), kind,
                           number)
            if chunk.done["W"] < chunk.done["D"]:
                yield self.free[device], "W", number

    def order(self, device: int, there) -> str:
        mine = [chunk for chunk in self.chunks if chunk.device == device]
        if all(chunk.done["F"] == self.setting.microbatches for chunk in mine):
            return "DWF"
        if self.last[device] == "F":
            return "DFW"
        full = not any(self.fits(number) for number, chunk in enumerate(self.chunks)
                       if chunk.device == device)
        return "WDF" if full else "FDW"

    def step(self) -> bool:
        ready = {device: list(self.candidates(device)) for device in range(self.setting.stages)}
        first = min(((min(found)[0], device) for device, found in ready.items() if found),
                    default=None)
        if first is None:
            return False
        now, device = first
        there = [(kind, number) for time, kind, number in ready[device] if time <= now]
        order = self.order(device, there)
        # F and W of the way up first, D of the way down.
        kind, number = min(there, key=lambda block: (order.index(block[0]),
                                                     block[1] if block[0] == "D" else -block[1]))
        self.play(now, kind, number)
        return True

    def play(self, now: int, kind: str, number: int) -> None:
        chunk = self.chunks[number]
        device, nth = chunk.device, chunk.done[kind]
        chunk.done[kind] += 1
        end = self.free[device] = now + chunk.times[kind]
        self.memory[device] += 2 if kind == "F" else -1
        self.rows[device].append(f"{number}{'I' if kind == 'D' else kind}{nth}")
        if kind != "W":
            self.last[device] = kind
        last = number == len(self.chunks) - 1
        if kind == "F" and last:
            chunk.arrivals["D"].append(end)
        elif kind == "F":
            self.send(device, number + 1, "F", end)
        elif kind == "D" and number > 0:
            self.send(device, number - 1, "D", end)

    def send(self, device: int, taker: int, kind: str, end: int) -> None:
        to = self.chunks[taker].device
        crossed = abs(self.setting.datacenter(device) - self.setting.datacenter(to))
        if crossed:
            end = max(end, self.links.get((device, to), 0)) + self.setting.transfer
            self.links[device, to] = end
            end += self.setting.latency
        self.chunks[taker].arrivals[kind].append(end)


def generate(setting: Setting, wave: bool = False) -> tuple[int, str]:
    """The makespan in ms by the greedy's own time, and the text of the schedule's file."""
    run = _Run(setting, wave)
    while run.step():
        pass
    blocks = sum(len(row) for row in run.rows)
    assert blocks == 3 * len(run.chunks) * setting.microbatches, (setting, wave, blocks)
    return max(run.free), "\n".join(",".join(row) for row in run.rows) + "\n"


def two_datacenters(stages: int, microbatches: int, latency: int, budget: float = 1) -> Setting:
    """The setting of the published values: F = D = W = 100, no transfer time."""
    return replace(Setting(stages, microbatches, 100, 100, 100), latency=latency, budget=budget)
