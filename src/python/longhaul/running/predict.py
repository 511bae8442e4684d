"""Predictions of `longhaul simulate --json`, many at a time."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from longhaul import progress
from longhaul.errors import Failure
from longhaul.running import tools


@dataclass(frozen=True)
class Question:
    """One call: a point of a scenario, and the schedules wanted there."""

    scenario: Path
    schedules: tuple
    overrides: tuple = ()
    comm: str = "decoupled"
    extra: tuple = ()  # options of a search: "--placement", "ud"


def ratios(latency, transfer):
    """Overrides that set the delay of every link, in units of the largest T_F."""
    return (f"link.latency_ratio={latency:g}", f"link.transfer_ratio={transfer:g}")


def ask(question):
    """{schedule: its entry of the record}; a schedule that the scenario cannot have is missing."""
    command = [tools.binary("longhaul"), "simulate", question.scenario, "--schedule",
               ",".join(question.schedules), "--comm", question.comm, "--json"]
    command += tools.set_words(question.overrides)
    record = json.loads(tools.run([*command, *question.extra]))
    return {entry["schedule"]: entry for entry in record["schedules"]}


def ask_all(questions):
    """{question: its answer by `ask`}, each question once, on all cores."""
    wanted = list(dict.fromkeys(questions))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        try:
            answers = {}
            for question, answer in zip(wanted, pool.map(ask, wanted)):
                answers[question] = answer
                progress.step(f"prediction {len(answers)} of {len(wanted)}")
            return answers
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def seconds(entry):
    return entry["makespan_ns"] * 1e-9


def known_schedules():
    """Names that this build's `longhaul presets` lists."""
    try:
        record = json.loads(tools.run([tools.binary("longhaul"), "presets", "--json"]))
        return [entry["name"] for entry in record["schedules"]]
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"longhaul presets --json lists no schedules ({error}). "
                      "Run scripts/build.") from error
