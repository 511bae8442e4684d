"""A figure: the facts that its module states, and its pictures.

A figure's module has FIGURE, a Figure; add_arguments(parser) for options of its own; and
draw(options), which returns [Drawn]. Its line in figures/registry.py makes it known to
scripts/figure, scripts/reproduce and the tables of docs/figures.md."""

from dataclasses import dataclass, field


@dataclass
class Drawn:
    """A picture and its numbers; files are named `stem`.png and `stem`.csv. Verdicts of the
    numbers on a paper's claims go to `stem`-verdicts.csv."""

    stem: str
    figure: object
    numbers: object  # pandas.DataFrame
    verdicts: list = field(default_factory=list)  # of claims.Verdict


@dataclass(frozen=True)
class Repeat:
    """How scripts/reproduce repeats a figure. Times are those of 2 cores, for people."""

    paper: str
    seconds: int = 0       # of the simulated part; 0: there is none
    simulate: tuple = ()   # options of the simulated part
    measure: tuple = ()    # options of the measured part; empty: there is none
    minutes: float = 0     # of the measured part
    needs: str = ""        # beyond programs, ranks and .venv
    deterministic: bool = True   # the simulated part is the same on every machine
    data: tuple = ()       # (option, name of a public file that is no part of the project), each
    without_data: bool = True    # it runs without these files too

    def parts(self):
        """(kind, options) in the order in which they run."""
        if self.seconds:
            yield "simulated", self.simulate
        if self.measure:
            yield "measured", self.measure

    @property
    def kinds(self):
        return tuple(kind for kind, _ in self.parts())


@dataclass(frozen=True)
class Figure:
    """The facts of a figure, stated by its module."""

    name: str               # scripts/figure NAME; its files begin with it
    summary: str            # in scripts/figure --help
    shows: str              # in docs/figures.md
    needs: str = "`longhaul`"   # likewise, beside the benchmark that it measures with
    options: str = ""       # likewise, after the name: "[--measure]"
    repeat: Repeat = None   # None: scripts/reproduce leaves it out
    expected: tuple = ()    # of papers.expected.Expected: ranges of its numbers
