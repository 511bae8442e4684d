"""One module a figure. Each has NAME, SUMMARY, add_arguments(parser) and draw(options), which
returns [Drawn]."""

from dataclasses import dataclass


@dataclass
class Drawn:
    """A picture and the numbers behind it; files are named `stem`.png and `stem`.csv."""

    stem: str
    figure: object
    numbers: object  # pandas.DataFrame
