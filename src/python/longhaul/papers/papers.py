"""What scripts/reproduce runs for each paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One figure of a paper. Times are those of 2 cores, for people."""

    figure: str
    seconds: int           # of the simulated part; 0: there is none
    simulate: tuple = ()   # options of the simulated part
    measure: tuple = ()    # options of the measured part; empty: there is none
    minutes: float = 0     # of the measured part
    needs: str = ""        # beyond programs, ranks and .venv
    deterministic: bool = True   # the simulated part is the same on every machine

    def parts(self):
        """(kind, options) in the order in which they run."""
        if self.seconds:
            yield "simulated", self.simulate
        if self.measure:
            yield "measured", self.measure


SIMULATE = ("--simulate",)
PAPERS = {
    "crosspipe": (
        Item("crosspipe-table2", 2, SIMULATE),
        Item("crosspipe-table3", 3, SIMULATE),
        Item("crosspipe-table5", 25, SIMULATE, ("--measure", "--minutes", "14"), 14),
        Item("crosspipe-table6", 25, SIMULATE, ("--measure", "--minutes", "14"), 14),
        Item("crosspipe-fig5", 3, SIMULATE),
        Item("crosspipe-fig6", 3, SIMULATE),
        # Of the solver a second is wanted for each point: what it finds depends on the machine.
        Item("crosspipe-fig8", 30, ("--simulate", "--time-limit", "0"), deterministic=False),
        Item("crosspipe-fig9", 25, SIMULATE),
        Item("crosspipe-fig11", 25, SIMULATE, ("--measure", "--minutes", "12"), 12,
             deterministic=False),
        Item("crosspipe-fig12", 25, SIMULATE, ("--measure", "--minutes", "12"), 12),
        # Times to solution, hence measured.
        Item("crosspipe-fig14", 0, measure=SIMULATE, minutes=5, needs="OR-tools"),
        Item("crosspipe-fig15", 4, SIMULATE),
        Item("crosspipe-fig17", 0, measure=("--extra", "--samples 50"), minutes=0.6),
        Item("crosspipe-static", 10),
        Item("hot-switch", 0, measure=("--run",), minutes=2),
    ),
    "atlas": (
        Item("atlas-table1", 3, SIMULATE),
        Item("atlas-fig2", 15, SIMULATE),
        Item("atlas-fig3", 20, SIMULATE),
        Item("atlas-fig4", 4, SIMULATE, ("--measure",), 2),
        Item("atlas-fig5", 0, measure=("--measure",), minutes=4, needs="root"),
        Item("atlas-fig6", 5, SIMULATE, ("--measure",), 2),
        Item("atlas-fig9", 40, SIMULATE, ("--measure", "--minutes", "6"), 6),
        Item("atlas-fig10", 40, SIMULATE, ("--measure", "--minutes", "4"), 4),
        Item("atlas-fig11", 40, SIMULATE),
        Item("atlas-fig12", 15, SIMULATE),
    ),
}
