"""A line of a figure: a schedule with its search options, its overrides and its look."""

import functools
import importlib.util
import os
import sys
from dataclasses import dataclass

from longhaul.drawing import style
from longhaul.running import predict

SOLVED = {"ud": "cross-ud-opt", "wave": "cross-wave-opt"}


@dataclass(frozen=True)
class Series:
    label: str
    schedule: str
    colour: str = style.OTHER_COLOUR
    extra: tuple = ()      # options of the search
    overrides: tuple = ()  # of the scenario: a budget
    kind: str = "static"   # or greedy, solver
    placement: str = "ud"  # or wave, loop


def of(schedule, kind="static", placement="ud", **more):
    return Series(style.schedule_name(schedule), schedule,
                  style.SCHEDULE_COLOURS.get(schedule, style.OTHER_COLOUR), kind=kind,
                  placement=placement, **more)


@functools.cache
def has_solver():
    """OR-tools is an optional package."""
    return (importlib.util.find_spec("ortools") is not None
            and set(SOLVED.values()) <= set(predict.known_schedules()))


def solved(placement, moves, time_limit_s=None, overrides=()):
    """The best that can be made on a placement: CP-SAT's where it is installed, a time limit is
    given and it has that placement, else `best` restricted to it."""
    names = {"ud": "UD", "wave": "Wave", "loop": "Loop"}
    colours = {"ud": "cross-ud-opt", "wave": "cross-wave-opt", "loop": "cross-loop"}
    colour = style.SCHEDULE_COLOURS[colours[placement]]
    if time_limit_s is not None and placement in SOLVED and has_solver():
        os.environ.setdefault("LONGHAUL_PYTHON", sys.executable)  # the one that has it
        return Series(f"Cross{names[placement]}, CP-SAT", SOLVED[placement], colour,
                      ("--time-limit", f"{time_limit_s:g}s", "--search-moves", str(moves)),
                      overrides, "solver", placement)
    return Series(f"Cross{names[placement]}, search", "best", colour,
                  ("--placement", placement, "--search-moves", str(moves)), overrides, "solver",
                  placement)


def answers(series, scenario, points, comm="decoupled", bounds=False):
    """{(series, point): entry of the record}. `points`: {key: overrides}. Series that differ in
    their schedule alone share a call. `bounds`: with a lower bound for each."""
    asked = {}
    for one in series:
        for key, overrides in points.items():
            extra = (*one.extra, "--bounds") if bounds else one.extra
            call = ((*overrides, *one.overrides), extra)
            asked.setdefault(call, []).append((one, key))
    questions = {call: predict.Question(scenario, tuple(dict.fromkeys(
        one.schedule for one, _ in places)), call[0], comm, call[1])
        for call, places in asked.items()}
    said = predict.ask_all(questions.values())
    return {(one, key): said[questions[call]][one.schedule]
            for call, places in asked.items() for one, key in places
            if one.schedule in said[questions[call]]}
