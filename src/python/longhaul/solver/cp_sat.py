"""The constraint model of CrossPipe section 4.1 with OR-tools CP-SAT: reads a problem, writes an
answer, both JSON. The longhaul tool starts it; docs/planner.md has the fields."""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

from longhaul.errors import BAD_INPUT, RUN_FAILED, Failure
from longhaul.solver.constraint_model import Model

INSTALL = ".venv/bin/pip install -r scripts/requirements-solver.txt"

# Of problems: 2 has fused blocks and a memory limit for each device.
SCHEMA_VERSION = 2

# The solver's workers follow different strategies; too few of them lack the ones that prove.
FEWEST_WORKERS = 8


def load_cp_model():
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise Failure(f"no OR-tools in {sys.executable} ({error}). "
                      f"Install it: {INSTALL}") from error
    return cp_model


def read_problem(path):
    try:
        problem = json.loads(Path(path).read_text(encoding="utf-8"))
        if problem["schema_version"] != SCHEMA_VERSION:
            raise Failure(f"{path} has schema_version {problem['schema_version']}, not "
                          f"{SCHEMA_VERSION} "
                          "(another version wrote it). Use programs of one version.")
        if not problem["blocks"]:
            raise Failure(f"{path} has no blocks (nothing to order). Give at least one.")
        return problem
    except OSError as error:
        raise Failure(f"cannot read {path} ({error.strerror}). Give a file.") from error
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise Failure(f"{path} is no problem for the solver ({type(error).__name__}: {error}). "
                      "The longhaul tool writes them.") from error


def write_answer(path, answer):
    """Whole or not at all: the reader may come at any moment."""
    draft = Path(f"{path}.draft")
    draft.write_text(json.dumps(answer), encoding="utf-8")
    os.replace(draft, path)


class Progress:
    """Writes each better solution down, for a reader who may not wait for the end."""

    def __init__(self, path, built):
        self.path = path
        self.built = built
        self.begin = time.monotonic()
        self.improvements = []

    def seconds(self):
        return time.monotonic() - self.begin

    def bound_ns(self, bound):
        """0 where times were rounded up: a bound of the model is none of the problem then."""
        return int(bound) * self.built.times.unit_ns if self.built.exact else 0

    def record(self, status, objective, bound, value):
        unit = self.built.times.unit_ns
        answer = {"schema_version": 1, "status": status, "seconds": self.seconds(),
                  "objective_ns": int(objective) * unit,
                  "bound_ns": self.bound_ns(bound),
                  "improvements": self.improvements, **self.built.answer(value)}
        write_answer(self.path, answer)
        return answer

    def improved(self, objective, bound, value):
        unit = self.built.times.unit_ns
        self.improvements.append({"seconds": self.seconds(), "objective_ns": int(objective) * unit,
                                  "bound_ns": self.bound_ns(bound)})
        self.record("feasible", objective, bound, value)


def callback_of(cp_model, progress):
    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self):
            progress.improved(round(self.objective_value),
                              math.ceil(self.best_objective_bound - 1e-6), self.value)
    return Callback()


def solve(problem, answer_path, log=False):
    cp_model = load_cp_model()
    built = Model(cp_model, problem)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = problem["time_limit_s"]
    solver.parameters.num_workers = problem["threads"] or max(FEWEST_WORKERS, os.cpu_count() or 1)
    solver.parameters.relative_gap_limit = problem.get("relative_gap", 0.0)
    solver.parameters.log_search_progress = log
    progress = Progress(answer_path, built)
    status = solver.solve(built.model, callback_of(cp_model, progress))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        proven = status == cp_model.OPTIMAL and built.exact
        return progress.record("optimal" if proven else "feasible",
                               round(solver.objective_value),
                               math.ceil(solver.best_objective_bound - 1e-6), solver.value)
    if status == cp_model.MODEL_INVALID:
        raise Failure(f"the model is invalid ({built.model.validate()}). Report it.", RUN_FAILED)
    bound = max(0, math.ceil(solver.best_objective_bound - 1e-6))
    answer = {"schema_version": 1, "seconds": progress.seconds(), "improvements": [],
              "status": "infeasible" if status == cp_model.INFEASIBLE else "unknown",
              "bound_ns": progress.bound_ns(bound) if status == cp_model.UNKNOWN else 0}
    write_answer(answer_path, answer)
    return answer


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/solve", description=__doc__)
    parser.add_argument("problem", help="JSON that the longhaul tool wrote")
    parser.add_argument("answer", help="JSON to write; replaced at each better solution")
    parser.add_argument("--log", action="store_true", help="let the solver print its progress")
    options = parser.parse_args(arguments)
    try:
        answer = solve(read_problem(options.problem), options.answer, options.log)
    except OSError as error:
        print(f"solve: cannot write {options.answer} ({error.strerror}). Give another path.",
              file=sys.stderr)
        return BAD_INPUT
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.code
    if "objective_ns" in answer:
        gap = answer["objective_ns"] / max(answer["bound_ns"], 1) - 1
        print(f"{answer['status']}: {answer['objective_ns']} ns, bound {answer['bound_ns']} ns"
              f" (gap {100 * gap:.2f}%) after {answer['seconds']:.1f} s")
    else:
        print(f"{answer['status']} after {answer['seconds']:.1f} s")
    return 0 if answer["status"] != "infeasible" else 1


if __name__ == "__main__":
    sys.exit(main())
