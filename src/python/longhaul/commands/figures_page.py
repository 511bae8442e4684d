"""python -m longhaul.commands.figures_page: writes into docs/figures.md, between its markers, the
parts that the figures' modules state, and into results/README.md how many claims hold. tests/scripts/figures/test_registry.py fails where they are old."""

import re
import sys
import textwrap

from longhaul.commands.figure import parser_of
from longhaul.drawing.figure import Figure
from longhaul.errors import Failure, guarded
from longhaul.figures.registry import FIGURES
from longhaul.papers import claims
from longhaul.replacing import replacing
from longhaul.running import tools

WIDTH = 120


def commands():
    """A table of all figures."""
    lines = ["| `scripts/figure` | shows |", "|---|---|"]
    for module in FIGURES.values():
        figure = module.FIGURE
        command = " ".join(filter(None, (figure.name, figure.options)))
        needs = "" if figure.needs == Figure.needs else f"; needs {figure.needs}"
        lines.append(f"| `{command}` | {figure.shows}{needs} |")
    return "\n".join(lines)


def measuring():
    """Which figures have the options of running.measuring."""
    names = [f"`{name}`" for name in FIGURES if parser_of(name).get_default("default_results")]
    return textwrap.fill(f"{', '.join(names[:-1])} and {names[-1]} take these; without any of them "
                         "they show predictions.", WIDTH, break_on_hyphens=False)


def claims_kept():
    """How many claims of each paper hold."""
    return claims.summary(tools.ROOT / "results" / "reference")


PAGES = {"docs/figures.md": {"commands": commands, "measuring": measuring},
         "results/README.md": {"claims": claims_kept}}


def with_parts(page, place):
    """The page with each part as it should be."""
    for name, part in PAGES[place].items():
        begin, end = f"<!-- {name}: written by longhaul.commands.figures_page -->", "<!-- end -->"
        found = re.search(f"{re.escape(begin)}\n.*?\n{re.escape(end)}", page, re.DOTALL)
        if not found:
            raise Failure(f"{place} has no part {name} (its marker is gone). Restore it.")
        page = page[:found.start()] + f"{begin}\n{part()}\n{end}" + page[found.end():]
    return page


def main():
    for place in PAGES:
        path = tools.ROOT / place
        page = with_parts(path.read_text(encoding="utf-8"), place)
        with replacing(path) as file:
            file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "figures_page"))
