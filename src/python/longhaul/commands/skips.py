"""What scripts/test did not run, and whether it may: prints each label's tests, how many of them ran
or skipped, and why not; fails where a skip is not on the list of those that are allowed.

python -m longhaul.commands.skips JUNIT LISTING ALLOWED: ctest's --output-junit, its
--show-only=json-v1 of all tests, and tests/skips-allowed. Needs nothing but python."""

import collections
import fnmatch
import json
import re
import sys
import xml.etree.ElementTree
from dataclasses import dataclass
from pathlib import Path

# The kinds of tests that docs/testing.md lists: a build without one says so.
KINDS = ("pure", "mpi", "gpu", "scripts", "slurm", "netns", "tcp")
NOT_BUILT = {"gpu": "no nvcc when this was configured", "mpi": "no MPI", "slurm": "no MPI",
             "netns": "no MPI", "tcp": "not Linux"}
GTEST = re.compile(r"^\S+:\d+: Skipped\n(.+)$", re.MULTILINE)
UNITTEST = re.compile(r"""\.\.\. skipped (?:'(.*)'|"(.*)")$""", re.MULTILINE)
TOTAL = re.compile(r"\(.*?skipped=(\d+).*?\)$", re.MULTILINE)
COLOUR = re.compile(r"\[NON-XML-CHAR-0x1B\]\[[0-9;]*m")  # as ctest writes it
NOT_SAID = "(not said)"
NOTHING = "[  PASSED  ] 0 tests."  # a process of GoogleTest that skipped all it has


@dataclass(frozen=True)
class Skip:
    test: str
    reason: str


@dataclass
class Rule:
    """A line of the list. `most`: None for any number."""

    which: str
    most: int
    says: str
    found: int = 0

    def fits(self, skip, labels):
        named = (self.which.removeprefix("label:") in labels if self.which.startswith("label:")
                 else fnmatch.fnmatchcase(skip.test, self.which))
        return named and re.search(self.says, skip.reason) is not None


def rules_of(text):
    """Bars stand between the fields; one in a regular expression has no space on both sides."""
    rules = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            which, most, says, why = re.split(r"\s+\|\s+", line.strip())
            if not why:
                raise ValueError(f"{line}: no reason")
            rules.append(Rule(which, None if most == "any" else int(most), says))
    return rules


def reasons_in(output):
    """Of the skips that a test's output speaks of."""
    found = [match.strip() for match in GTEST.findall(output)]
    found += [one or other for one, other in UNITTEST.findall(output)]
    total = sum(map(int, TOTAL.findall(output)))
    return found + [NOT_SAID] * (total - len(found))


def reason_of(output):
    """Of a test that skipped as a whole."""
    if found := reasons_in(output):
        return found[0]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if re.match(r"skipped\b|skipping\b|.*not possible", line)]
    return (said or lines or [NOT_SAID])[-1]


def read_junit(path, labels):
    """({test: did it run?}, its skips). A test that ran may have skipped parts of itself; of one on
    several ranks, each of which speaks of them, a reason counts once."""
    ran, skips = {}, []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, output = case.get("name"), COLOUR.sub("", case.findtext("system-out") or "")
        reasons = reasons_in(output)
        ran[name] = case.get("status") not in ("notrun", "disabled") and not (
            reasons and NOTHING in output)
        if not ran[name]:
            skips.append(Skip(name, reason_of(output)))
        else:
            if any(label.startswith("ranks-") or label == "mpi" for label in labels.get(name, ())):
                reasons = list(dict.fromkeys(reasons))
            skips += [Skip(name, reason) for reason in reasons]
    return ran, skips


def read_labels(path):
    """{test: its labels}, of all tests of the build."""
    return {test["name"]: set(next((one["value"] for one in test.get("properties", [])
                                    if one["name"] == "LABELS"), []))
            for test in json.loads(Path(path).read_text())["tests"]}


def report(ran, skips, labels):
    """A line for each label: tests, ran, skipped; then why some did not run."""
    why = collections.defaultdict(collections.Counter)
    for skip in skips:
        for label in labels.get(skip.test, ()):
            why[label][skip.reason] += not ran[skip.test]
    lines = [f"{'label':<12}{'tests':>6}{'ran':>6}{'skipped':>9}  not run"]
    for label in sorted(set(KINDS).union(*labels.values()), key=order):
        own = [test for test, has in labels.items() if label in has]
        ended = [ran[test] for test in own if test in ran]
        skipped = ended.count(False)
        words = [f"{count} x {reason}" for reason, count in why[label].most_common() if count]
        if not own:
            words.append(f"none in this build: {NOT_BUILT.get(label, 'not configured')}")
        elif len(own) > len(ended):
            words.append(f"{len(own) - len(ended)} not asked for")
        lines.append(f"{label:<12}{len(own):>6}{ended.count(True):>6}{skipped:>9}  "
                     f"{'; '.join(words)}".rstrip())
    return lines


def order(label):
    return (KINDS.index(label) if label in KINDS else len(KINDS), label)


def refused(skips, labels, rules):
    """A line for each skip that no rule fits, and for each rule that counts more than it allows."""
    lines = []
    for skip in skips:
        rule = next((rule for rule in rules if rule.fits(skip, labels.get(skip.test, ()))), None)
        if rule is None:
            lines.append(f"{skip.test} skipped: {skip.reason}")
        else:
            rule.found += 1
    return lines + [f"{rule.found} skips of {rule.which} that say {rule.says}, at most {rule.most} "
                    "are allowed" for rule in rules
                    if rule.most is not None and rule.found > rule.most]


def main(junit, listing, allowed):
    labels = read_labels(listing)
    ran, skips = read_junit(junit, labels)
    print("\n== What ran, by label", *report(ran, skips, labels), sep="\n")
    if inside := sum(ran[skip.test] for skip in skips):
        print(f"{inside} parts of tests that ran were skipped.")
    if lines := refused(skips, labels, rules_of(Path(allowed).read_text(encoding="utf-8"))):
        print("\nSkips that tests/skips-allowed does not allow:", *lines, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
