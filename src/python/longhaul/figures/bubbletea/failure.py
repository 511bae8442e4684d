"""What happens to requests and training where a part of BubbleTea fails: tests as evidence."""

import json
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "bubbletea-failure",
    summary="what a dead controller, a drained GPU, a client that goes and a full datacenter do",
    shows="requests and training where a part of BubbleTea fails, by tests (section 5.1; "
          "[prefill.md](prefill.md))",
    needs="`prefill_test` (`scripts/build release -t prefill_test`)",
    repeat=Repeat("bubbletea", seconds=5, simulate=("--simulate",), needs="`prefill_test`"),
    expected=(
        Expected("tests that pass", "bound", low=1, column="passed", reduce="min",
                 why="Each is a known value or a property of seeded runs."),
    ))
PART, REFUSAL = "a part fails", "refused at once"
# test, what it is evidence of, what it shows
EVIDENCE = (
    ("LiveFaults.ADeadControllerLeavesTrainingAndWhatItHadGivenAlone", PART,
     "a dead controller: training and placed prompts go on"),
    ("LiveFaults.LoseNoRequestAndAnswerNoneTwice", PART,
     "1,000 seeds of faults: no request lost or answered twice, no block late"),
    ("LiveFaults.ADrainedGpuBeginsNothingUntilItIsBack", PART,
     "a GPU out of service: others take its prompts"),
    ("TwoSites.TheNearestIsAskedFirstAndTheNextOnANo", PART,
     "a datacenter that says no: the next nearest is asked"),
    ("Both/SocketArrivalsTest.AClientThatGoesCancelsWhatIsOpen", PART,
     "a client that goes: what had not begun is cancelled"),
    ("LineServer.TakesOverWhereAServerWasKilled", PART,
     "a killed service: the next one takes its address"),
    ("LiveStretches.RefuseAtOnce", REFUSAL, "no bubble, no profile, too late: refused at once"),
    ("Placement.RefusesWithTheFirstReasonThatHolds", REFUSAL,
     "each refusal has the first reason that holds"),
)
# What ranks do: no test of ours shows a run that outlives one of its ranks.
NOT_SHOWN = "on ranks a rank that dies, the controller's too, ends the run (Open MPI)"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="runs prefill_test (always so)")


def draw(options):
    del options
    table = numbers()
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def numbers():
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "tests.json"
        subprocess.run([str(tools.binary("prefill_test")),
                        "--gtest_filter=" + ":".join(f"{test}:{test}/*" for test, _, _ in EVIDENCE),
                        f"--gtest_output=json:{report}"], capture_output=True, check=False)
        if not report.is_file():
            raise Failure("prefill_test did not end in a report. Run it by itself.")
        return table_of(json.loads(report.read_text(encoding="utf-8")))


def table_of(report):
    """A row for each evidence; a test that did not run has not passed, nor one of which a
    parameter did not."""
    ran = {}
    for suite in report["testsuites"]:
        for one in suite["testsuite"]:
            name = f"{suite['name']}.{one['name'].split('/')[0]}"
            passed = one["status"] == "RUN" and not one.get("failures")
            ran[name] = ran.get(name, True) and passed
    return pd.DataFrame([{"test": test, "claim": claim, "shows": shows,
                          "passed": int(ran.get(test, False))}
                         for test, claim, shows in EVIDENCE])


def verdicts(table):
    """All pass: partly, for what NOT_SHOWN says. Both halves of the claim have their tests."""
    passed = table.groupby("claim")["passed"].agg(["sum", "count"])
    said = ", ".join(f"{claim}: {row['sum']} of {row['count']}" for claim, row in passed.iterrows())
    holds = bool(table["passed"].all())
    return [claims.judge(
        "bubbletea-failure", claims.PARTLY if holds else claims.FAILS, f"tests that pass: {said}",
        f"By the simulator and the service's sockets; {NOT_SHOWN}.")]


def figure_of(table):
    plt = style.apply()
    figure, axes = plt.subplots(figsize=(9.2, 3.4))
    axes.axis("off")
    rows = [*table.itertuples(), None]
    for place, row in enumerate(rows):
        height = 1 - (place + 0.5) / len(rows)
        mark, colour, text = (("not shown", "#444444", NOT_SHOWN) if row is None else
                              ("passes", "#2aa552", row.shows) if row.passed else
                              ("FAILS", "#c62828", row.shows))
        axes.text(0, height, mark, color=colour, va="center", fontweight="bold")
        axes.text(0.1, height, text, va="center")
        axes.text(0.66, height, "" if row is None else row.test, va="center", fontsize=6,
                  color="#777777")
    axes.set_title("Where a part of BubbleTea fails: tests, simulated", loc="left",
                   fontweight="bold")
    figure.subplots_adjust(left=0.02, right=0.98, top=0.9, bottom=0.02)
    return figure
