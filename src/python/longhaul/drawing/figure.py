"""One module a figure. Each has NAME, SUMMARY, add_arguments(parser) and draw(options), which
returns [Drawn]. Modules without NAME hold what some of them share."""

from dataclasses import dataclass, field


@dataclass
class Drawn:
    """A picture and the numbers behind it; files are named `stem`.png and `stem`.csv. What the
    numbers say about a paper's claims goes to `stem`-verdicts.csv."""

    stem: str
    figure: object
    numbers: object  # pandas.DataFrame
    verdicts: list = field(default_factory=list)  # of claims.Verdict
