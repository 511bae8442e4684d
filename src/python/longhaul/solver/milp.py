"""The mixed integer program of prior work (Qi et al., Zero Bubble Pipeline Parallelism, which
CrossPipe cites as [43]) with HiGHS: an end time of each block, and for each two blocks of one
device a binary that says which comes first. Only figure 14 needs it.

python -m longhaul.solver.milp PROBLEM.json ANSWER.json: a process of its own, since HiGHS and
OR-tools, which has a HiGHS inside, cannot be loaded into one."""

import math
import sys
import time
from itertools import combinations

from longhaul.errors import BAD_INPUT, RUN_FAILED, Failure
from longhaul.solver.cp_sat import read_problem, write_answer

INSTALL = ".venv/bin/pip install -r scripts/requirements-solver.txt"


def load_highspy():
    try:
        import highspy
    except ImportError as error:
        raise Failure(f"no HiGHS in this Python ({error}). Install it: {INSTALL}") from error
    return highspy


class Program:
    """The same problem as constraint_model.Model reads, without the parts that prior work has no
    place for: transfer times, collectives, fused blocks."""

    def __init__(self, highspy, problem):
        if any(message["transfer_ns"] for message in problem["messages"]) or \
                problem["collectives"] or problem["fusions"]:
            raise Failure("the program of prior work has no links with transfer times, no "
                          "collectives, no fused blocks. Leave them out.")
        self.problem = problem
        self.horizon = problem["start_makespan_ns"]
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        blocks = problem["blocks"]
        self.lengths = [block["duration_ns"] for block in blocks]
        self.makespan = self.highs.addVariable(0, self.horizon)
        self.ends = [self.highs.addVariable(length, self.horizon) for length in self.lengths]
        for end in self.ends:
            self.highs.addConstr(end <= self.makespan)
        self.add_dependencies()
        self.before = {}
        for device in range(problem["devices"]):
            mine = [i for i, block in enumerate(blocks) if block["device"] == device]
            self.add_order(mine)
            self.add_memory(mine, problem["memory_limits_bytes"][device])

    def add_dependencies(self):
        pairs = [(before, after, 0) for before, after in self.problem["after"]]
        pairs += [(message["from"], message["to"], message["latency_ns"])
                  for message in self.problem["messages"]]
        for before, after, delay in pairs:
            self.highs.addConstr(self.ends[after] - self.ends[before]
                                 >= delay + self.lengths[after])

    def add_order(self, mine):
        """A known order needs no binary: microbatches in order, F before D before W
        of one."""
        blocks = self.problem["blocks"]
        for one, other in combinations(mine, 2):
            a, b = blocks[one], blocks[other]
            known = a["chunk"] == b["chunk"] and (
                a["microbatch"] == b["microbatch"] or a["kind"] == b["kind"])
            if known:
                rank = [(block["microbatch"], "FDW".index(block["kind"])) for block in (a, b)]
                first, second = (one, other) if rank[0] < rank[1] else (other, one)
                self.before[first, second], self.before[second, first] = 1, 0
                self.highs.addConstr(self.ends[second] - self.ends[first] >= self.lengths[second])
                continue
            binary = self.highs.addBinary()
            self.before[one, other], self.before[other, one] = binary, 1 - binary
            self.highs.addConstr(self.ends[other] - self.ends[one]
                                 >= self.lengths[other] - self.horizon * (1 - binary))
            self.highs.addConstr(self.ends[one] - self.ends[other]
                                 >= self.lengths[one] - self.horizon * binary)

    def add_memory(self, mine, limit):
        takes = dict.fromkeys(mine, 0)
        releases = dict.fromkeys(mine, 0)
        for held in self.problem["held"]:
            if held["from"] in takes:
                takes[held["from"]] += held["bytes"]
                releases[held["until"]] += held["bytes"]
        for block in mine:
            if takes[block]:
                level = sum((takes[other] - releases[other]) * self.before[other, block]
                            for other in mine if other != block)
                self.highs.addConstr(level + takes[block] <= limit)


def whole(bound):
    """A bound in ns; 0 where HiGHS has none yet."""
    return max(0, round(bound)) if math.isfinite(bound) else 0


def solve(problem):
    """{status, objective_ns, bound_ns, seconds, improvements}, as the solver's answer has them.
    The time counts from the making of the program, which large ones spend long on."""
    highspy = load_highspy()
    begin = time.monotonic()
    program = Program(highspy, problem)
    highs = program.highs
    improvements = []

    def improved(event):
        improvements.append({"seconds": time.monotonic() - begin,
                             "objective_ns": round(event.data_out.objective_function_value),
                             "bound_ns": whole(event.data_out.mip_dual_bound)})
    highs.cbMipImprovingSolution += improved
    left = problem["time_limit_s"] - (time.monotonic() - begin)
    seconds = problem["time_limit_s"]
    status = highspy.HighsModelStatus.kTimeLimit
    if left > 0:
        highs.setOptionValue("time_limit", left)
        highs.setOptionValue("threads", max(1, problem["threads"]))
        highs.setOptionValue("mip_rel_gap", problem.get("relative_gap", 0.0))
        highs.minimize(program.makespan)
        status = highs.getModelStatus()
        seconds = time.monotonic() - begin
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise Failure(f"HiGHS ended with {highs.modelStatusToString(status)}. Report it.",
                      RUN_FAILED)
    optimal = status == highspy.HighsModelStatus.kOptimal
    answer = {"status": "optimal" if optimal else "feasible" if improvements else "unknown",
              "seconds": seconds, "improvements": improvements, "bound_ns": 0}
    if left > 0:
        answer["bound_ns"] = whole(highs.getInfo().mip_dual_bound)
    if optimal:
        answer["objective_ns"] = round(highs.getInfo().objective_function_value)
    elif improvements:
        answer["objective_ns"] = improvements[-1]["objective_ns"]
    return answer


def main(arguments=None):
    paths = sys.argv[1:] if arguments is None else arguments
    if len(paths) != 2:
        print("usage: python -m longhaul.solver.milp PROBLEM.json ANSWER.json", file=sys.stderr)
        return BAD_INPUT
    try:
        write_answer(paths[1], solve(read_problem(paths[0])))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
