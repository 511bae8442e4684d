"""The points of a sweep: delay cells, arrangements and scenarios."""

from dataclasses import dataclass
from pathlib import Path

from longhaul.errors import Failure

CELL_SETS = {
    "table5": ((0, 0), (.25, .25), (.25, 2), (2, .25), (2, 2)),
    "axes": ((0, 0), (.5, 0), (1, 0), (2, 0), (0, .5), (0, 1), (0, 2)),
    "grid": tuple((a, b) for b in (0, .5, 1, 2) for a in (0, .5, 1, 2)),
}
COMMS = ("decoupled", "grouped")


@dataclass(frozen=True)
class Point:
    """One start of bench_pipeline. Where a point is silent, the options of the sweep count."""

    scenario: Path
    comm: str
    latency_ratio: float = None   # both None: as the scenario and the overrides say
    transfer_ratio: float = None
    label: str = ""         # of the overrides, in the name of its directory
    overrides: tuple = ()   # before the delays
    schedules: tuple = ()
    extra: tuple = ()       # further options of bench_pipeline
    expected_s: float = 0.0  # of one iteration of every schedule, at time_scale 1; 0: unknown

    @property
    def name(self):
        inner = f"{self.label}/{self.comm}" if self.label else self.comm
        cell = ("" if self.latency_ratio is None else
                f"/latency{self.latency_ratio:g}-transfer{self.transfer_ratio:g}")
        return f"{self.scenario.stem}/{inner}{cell}"


def parse_cells(text):
    """'axes', 'grid', 'table5', or LATENCY:TRANSFER pairs: '0:0,0.25:2'."""
    if text in CELL_SETS:
        return CELL_SETS[text]
    try:
        cells = tuple(tuple(float(part) for part in cell.split(":")) for cell in text.split(","))
        if all(len(cell) == 2 and min(cell) >= 0 for cell in cells):
            return cells
    except ValueError:
        pass
    raise Failure(f'no cells "{text}" (neither {", ".join(CELL_SETS)} nor LATENCY:TRANSFER '
                  "pairs). Write 0:0,0.25:2, for instance.")


def points_of(scenarios, cells, comms):
    return [Point(scenario, comm, *cell)
            for scenario in scenarios for cell in cells for comm in comms]
