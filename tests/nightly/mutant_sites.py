"""Where one operator or number of C++ can be another one, by the text alone (mutants)."""

import dataclasses
import re

# clang-format puts spaces around operators of two operands, and none in templates.
CHANGES = ((r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" % ", " / "),
           (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
           (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+= ", " -= "),
           (r" -= ", " += "), (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
           (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"(?<![\w.])0(?![\w.'])", "1"),
           (r"(?<![\w.])1(?![\w.'])", "0"), (r"(?<![\w.])2(?![\w.'])", "3"),
           (r"(?<=\()!(?=\w)", ""), (r"\bcontinue;", "break;"))
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|//.*')
NO_CODE = re.compile(r"\s*(#|using |namespace |template|static_assert|LONGHAUL_ASSERT|friend )")


@dataclasses.dataclass(frozen=True)
class Site:
    file: str
    module: str
    line: int  # from 1
    start: int  # in the line
    end: int
    new: str
    before: str  # the line, without the space around it
    after: str

    def applied(self, text):
        lines = text.split("\n")
        line = lines[self.line - 1]
        lines[self.line - 1] = line[:self.start] + self.new + line[self.end:]
        return "\n".join(lines)


def of_line(line):
    """(start, end, new) of each change."""
    if NO_CODE.match(line):
        return
    bare = TEXT.sub(lambda match: " " * len(match[0]), line)
    for pattern, new in CHANGES:
        for match in re.finditer(pattern, bare):
            yield match.start(), match.end(), new


def of_module(root, module):
    """Those of src/MODULE, in the order of files and lines."""
    found = []
    for path in sorted((root / "src" / module).rglob("*.cpp")):
        file = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for start, end, new in of_line(line):
                after = line[:start] + new + line[end:]
                found.append(Site(file, module, number, start, end, new, line.strip(),
                                  after.strip()))
    return found
