"""The solver's program on small problems. Without ortools only its messages are tested."""

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.errors import Failure
from longhaul.solver import constraint_model, cp_sat as solver, milp
from longhaul.solver.pipeline_problem import pipeline

HAS_HIGHS = importlib.util.find_spec("highspy") is not None
HAS_ORTOOLS = importlib.util.find_spec("ortools") is not None


class Program(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.answer = self.directory / "answer.json"

    def run_it(self, problem):
        """Exit code, standard error."""
        path = self.directory / "problem.json"
        path.write_text(problem if isinstance(problem, str) else json.dumps(problem))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = solver.main([str(path), str(self.answer)])
        return code, errors.getvalue()


class Messages(Program):
    def test_missing_package_says_how_to_install_it(self):
        with mock.patch.dict(sys.modules, {"ortools": None, "ortools.sat.python": None}):
            code, said = self.run_it(pipeline(1, 1))
        self.assertEqual(code, 2)
        self.assertIn("pip install -r scripts/requirements-solver.txt", said)
        self.assertEqual(len(said.strip().splitlines()), 1)
        self.assertFalse(self.answer.exists())

    def test_bad_problems_are_bad_input(self):
        for problem in ("rubbish", "[]", "{}", {**pipeline(1, 1), "schema_version": 1},
                        {**pipeline(1, 1), "blocks": []}):
            code, said = self.run_it(problem)
            self.assertEqual(code, 2, problem)
            self.assertEqual(len(said.strip().splitlines()), 1, said)

    def test_no_such_file(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(solver.main([str(self.directory / "none"), str(self.answer)]), 2)
        self.assertIn("cannot read", errors.getvalue())


@unittest.skipUnless(HAS_ORTOOLS, "no ortools: " + solver.INSTALL)
class Optimum(Program):
    def solve(self, problem):
        code, said = self.run_it(problem)
        self.assertEqual((code, said), (0, ""))
        return json.loads(self.answer.read_text())

    def assert_optimum(self, problem, makespan):
        answer = self.solve(problem)
        self.assertEqual((answer["status"], answer["objective_ns"], answer["bound_ns"]),
                         ("optimal", makespan, makespan))
        self.assertEqual(sorted(sum(answer["rows"], [])), list(range(len(problem["blocks"]))))
        return answer

    def test_one_device(self):
        answer = self.assert_optimum(pipeline(1, 3), 900)
        kinds = [(pipeline(1, 3)["blocks"][i]["kind"], pipeline(1, 3)["blocks"][i]["microbatch"])
                 for i in answer["rows"][0]]
        for kind in "FDW":
            self.assertEqual([m for k, m in kinds if k == kind], [0, 1, 2])

    def test_latency_is_hidden_only_where_memory_allows(self):
        # F, 500, F D, 500, D W: both microbatches overlap with room for two ...
        self.assert_optimum(pipeline(2, 2, latency=500), 1700)
        # ... and follow each other with room for one: 1400 to the end of D, W; twice.
        self.assert_optimum(pipeline(2, 2, latency=500, memory=1), 3000)

    def test_each_device_has_its_own_memory(self):
        # As above with room for one, though on one of the two devices only.
        problem = pipeline(2, 2, latency=500, memory=1)
        self.assert_optimum({**problem, "memory_limits_bytes": [4, 2]}, 1800)
        self.assert_optimum({**problem, "memory_limits_bytes": [2, 4]}, 3000)
        self.assert_optimum({**problem, "memory_limits_bytes": [3, 4]}, 2900)

    def test_messages_share_a_link_in_turn(self):
        # F to 100; messages to 1100, 2100; F, D to 2300; back to 3300; D, W.
        self.assert_optimum(pipeline(2, 2, transfer=1000), 3500)

    def test_known_optimum_of_zb_h1(self):
        self.assert_optimum(pipeline(3, 3), 1100)

    def test_collectives_come_before_f_and_after_w(self):
        problem = pipeline(1, 2)
        of = {kind: [i for i, block in enumerate(problem["blocks"]) if block["kind"] == kind]
              for kind in "FW"}
        problem["collectives"] = [
            {"gather": True, "devices": [0], "duration_ns": 300, "blocks": of["F"]},
            {"gather": False, "devices": [0], "duration_ns": 200, "blocks": of["W"]}]
        self.assert_optimum(problem, 300 + 600 + 200)

    def test_a_cheaper_b_replaces_d_and_w(self):
        problem = pipeline(1, 3)
        of = {(block["kind"], block["microbatch"]): i
              for i, block in enumerate(problem["blocks"])}
        problem["fusions"] = [{"gradient": of["D", m], "weight": of["W", m], "duration_ns": 150,
                               "fused": False} for m in range(2)]
        answer = self.solve(problem)
        self.assertEqual((answer["status"], answer["objective_ns"]), ("optimal", 800))
        self.assertEqual(answer["fused"], [of["D", 0], of["D", 1]])
        self.assertEqual(len(answer["rows"][0]), 7)

    def test_a_dearer_b_does_not(self):
        # Two devices, one microbatch: D passes the gradient on before W; B would not.
        problem = pipeline(2, 1)
        of = {(block["kind"], block["chunk"]): i for i, block in enumerate(problem["blocks"])}
        problem["fusions"] = [{"gradient": of["D", 1], "weight": of["W", 1], "duration_ns": 190,
                               "fused": True}]
        answer = self.solve(problem)
        self.assertEqual((answer["objective_ns"], answer["fused"]), (500, []))

    def test_times_are_in_the_largest_unit_that_divides_them(self):
        self.assertEqual(constraint_model.Times(pipeline(2, 2, latency=250)).unit_ns, 50)
        self.assertTrue(constraint_model.Times(pipeline(2, 2, latency=251)).exact)
        huge = pipeline(1, 2)
        huge["blocks"][0]["duration_ns"] = 10**13 + 1
        times = constraint_model.Times(huge)
        self.assertFalse(times.exact)
        self.assertEqual(times.up(times.unit_ns + 1), 2)
        answer = self.solve(huge)
        self.assertEqual((answer["status"], answer["bound_ns"]), ("feasible", 0))
        self.assertEqual({step["bound_ns"] for step in answer["improvements"]}, {0})

    def test_rounded_times_leave_room_for_a_schedule(self):
        # One microbatch on one device: each of three blocks is rounded up, none overlaps.
        huge = pipeline(1, 1)
        for i, block in enumerate(huge["blocks"]):
            block["duration_ns"] = 10**12 + 2 * i + 1
        self.assertFalse(constraint_model.Times(huge).exact)
        self.assertEqual(self.solve(huge)["rows"], [[0, 1, 2]])

    def test_improvements_get_better(self):
        answer = self.solve(pipeline(3, 4, latency=150))
        objectives = [step["objective_ns"] for step in answer["improvements"]]
        self.assertEqual(objectives, sorted(objectives, reverse=True))
        self.assertEqual(objectives[-1], answer["objective_ns"])

    def test_no_time_gives_no_schedule_but_an_answer(self):
        answer = self.solve({**pipeline(8, 16, latency=333), "time_limit_s": 1e-9})
        self.assertEqual(answer["status"], "unknown")
        self.assertNotIn("rows", answer)

    def test_impossible_is_the_answer_no(self):
        problem = {**pipeline(2, 1), "start_makespan_ns": 100}
        code, _ = self.run_it(problem)
        self.assertEqual(code, 1)
        self.assertEqual(json.loads(self.answer.read_text())["status"], "infeasible")


class IntegerProgram(unittest.TestCase):
    """In processes of its own: OR-tools has a HiGHS inside, and the two do not go together."""

    def solve(self, problem):
        with tempfile.TemporaryDirectory() as directory:
            path, answer = Path(directory) / "problem.json", Path(directory) / "answer.json"
            path.write_text(json.dumps(problem))
            done = subprocess.run([sys.executable, "-m", "longhaul.solver.milp", path, answer],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return json.loads(answer.read_text())

    def test_missing_package_says_how_to_install_it(self):
        with mock.patch.dict(sys.modules, {"highspy": None}):
            with self.assertRaisesRegex(Failure, "pip install -r"):
                milp.solve(pipeline(1, 1))

    def test_only_wrong_words_are_wrong_usage(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(milp.main(["one.json"]), 2)
        self.assertIn("usage: ", errors.getvalue())
        with mock.patch.object(milp, "read_problem"), \
                mock.patch.object(milp, "solve", side_effect=ValueError("a fault")):
            with self.assertRaisesRegex(ValueError, "a fault"):
                milp.main(["problem.json", "answer.json"])

    @unittest.skipUnless(HAS_HIGHS, "no highspy: " + milp.INSTALL)
    def test_optima_are_those_of_the_constraint_model(self):
        for problem, makespan in ((pipeline(1, 3), 900), (pipeline(2, 2, latency=500), 1700),
                                  (pipeline(2, 2, latency=500, memory=1), 3000),
                                  (pipeline(3, 3), 1100)):
            answer = self.solve(problem)
            self.assertEqual((answer["status"], answer["objective_ns"]), ("optimal", makespan))
            self.assertEqual(answer["improvements"][-1]["objective_ns"], makespan)

    @unittest.skipUnless(HAS_HIGHS, "no highspy: " + milp.INSTALL)
    def test_running_out_of_time_is_no_failure(self):
        answer = self.solve({**pipeline(8, 16, latency=333), "time_limit_s": 0.01})
        self.assertEqual(answer["status"], "unknown")

    @unittest.skipUnless(HAS_HIGHS, "no highspy: " + milp.INSTALL)
    def test_transfer_times_are_refused(self):
        with self.assertRaisesRegex(AssertionError, "transfer times"):
            self.solve(pipeline(2, 2, transfer=100))


if __name__ == "__main__":
    unittest.main()
