"""scripts/figure NAME: draws one figure; writes NAME.png and NAME.csv."""

import argparse
import sys
from pathlib import Path

from longhaul import progress, provenance
from longhaul.drawing.style import plt
from longhaul.errors import Failure, guarded, result_name, suggestion
from longhaul.figures.registry import FIGURES
from longhaul.papers import claims
from longhaul.replacing import replacing


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """argparse's own exit code is 2 as well; this keeps its words to one line."""
        raise Failure(f"{message}. See {self.prog} --help.")


def overview():
    width = max(map(len, FIGURES))
    lines = [f"  {name:<{width}}  {module.FIGURE.summary}" for name, module in FIGURES.items()]
    return "\n".join([
        "usage: scripts/figure NAME [options]", "",
        "Draws a figure: a PNG and the CSV behind it, in figures/ under the current directory,",
        "or in --out DIR. scripts/figure NAME --help says what each can do; docs/figures.md how",
        "to read it. Figures of a paper say of each of its claims whether it holds here.", "",
        *lines, "",
        "Exit codes: 0 drawn, 2 bad input, 3 a run that the figure needs failed."])


def parser_of(name):
    module = FIGURES[name]
    parser = Parser(prog=f"scripts/figure {name}", description=module.FIGURE.summary)
    parser.add_argument("--out", default="figures", metavar="DIR", type=result_name,
                        help="where the PNG and the CSV go (default: figures)")
    module.add_arguments(parser)
    return parser


def save(drawn, directory):
    """Replaces an older picture of the same name."""
    directory = Path(directory)
    files = [directory / f"{drawn.stem}.png", directory / f"{drawn.stem}.csv"]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with replacing(files[0], "xb") as file:
            drawn.figure.savefig(file, format="png", metadata={"Software": "longhaul"})
        with replacing(files[1]) as file:
            drawn.numbers.to_csv(file, index=False)
        if drawn.verdicts:
            files.append(directory / f"{drawn.stem}-verdicts.csv")
            with replacing(files[2]) as file:
                claims.table(drawn.verdicts, provenance.origin(drawn.numbers)).to_csv(
                    file, index=False)
    except OSError as error:
        raise Failure(f"cannot write to {directory} ({error.strerror}). "
                      "Choose another --out.") from error
    if drawn.verdicts:
        print(claims.text(drawn.verdicts))
    if note := provenance.again_note(drawn.numbers):
        print(note)
    print(*files, sep="\n")


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in FIGURES:
        raise Failure(f'no figure "{name}". {suggestion(name, list(FIGURES))} '
                      "See scripts/figure --help.")
    options = parser_of(name).parse_args(rest)
    progress.step(f"drawing {name}")
    for drawn in FIGURES[name].draw(options):
        save(drawn, options.out)
        plt.close(drawn.figure)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "figure"))
