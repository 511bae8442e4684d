"""Arithmetic of BubbleTea's figures."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import pandas as pd

import fakes
from longhaul import errors, provenance
from longhaul.commands import figure
from longhaul.errors import guarded
from longhaul.figures.bubbletea import (failure, fig13, fig13_measured, fig14, frontier, gpus,
                                        placement, untouched, value, value_picture, wait)
from longhaul.papers import claims, prefill_times


class Figure14(unittest.TestCase):
    def test_stages_follow_each_other(self):
        self.assertAlmostEqual(fig14.ttft_ms(80, 8, 1), 80 + 16)
        # Two chunks: the second leaves the last stage half a stage after the first.
        self.assertAlmostEqual(fig14.ttft_ms(80, 8, 2), 10 * 8 / 2 + 5 + 16)

    def test_the_two_claims_need_two_readings(self):
        said = {one.id: one for one in fig14.verdicts(fig14.numbers())}
        self.assertEqual(said["bubbletea-pp8-short-ms"].verdict, claims.HOLDS)
        self.assertEqual(said["bubbletea-pp1-long"].verdict, claims.FAILS)
        self.assertIn("2 chunks", said["bubbletea-pp1-long"].why)

    def test_simulated_prompts_follow_the_arithmetic(self):
        points = fig14.profile()
        for stages in fig14.DEGREES:
            found = fig14.simulated_ms(stages)
            self.assertEqual(tuple(found), fig14.TOKENS)
            for tokens, ms in found.items():
                self.assertAlmostEqual(ms, fig14.ttft_ms(fig14.whole_ms(points, tokens), stages, 1), places=4)


class Frontier(unittest.TestCase):
    def test_classes_are_of_the_lengths_they_are_named_for(self):
        by_length = [{"below_tokens": 1024, "offered": 3, "refused": 0},
                     {"below_tokens": 2048, "offered": 2, "refused": 1},
                     {"below_tokens": 4096, "offered": 2, "refused": 0},
                     {"below_tokens": None, "offered": 2, "refused": 2}]
        found = {column: frontier.refused_between(by_length, *between)
                 for column, between in frontier.CLASSES.items()}
        self.assertEqual(found, {"refused_short": 0, "refused_middle": 0.25, "refused_long": 1})

    def test_a_stage_of_two_is_of_twice_as_many_gpus(self):
        found = {"utilisation": {"training": 0.5, "total": 0.9, "useful": 0.8, "upper_bound": 1,
                                 "bound_reason": "flow"},
                 "requests": {"offered": 4, "refused": {"slo": 1, "memory": 1}, "by_length": []},
                 "iterations": 2, "period_ns": 1e9, "tokens_served": 4800,
                 "ttft_ns": {"p50": 1e6, "p99": 2e6}}
        for idea, tokens in (("chunks", 200), ("skewed", 100)):
            row = frontier.row_of(idea, "1", frontier.IDEAS[idea][1], found)
            self.assertEqual((row["tokens_per_s"], row["tokens_per_s_gpu"], row["refused"]), (2400, tokens, 0.5))


class Wait(unittest.TestCase):
    PLACED = pd.DataFrame({"arrival_ns": [0, 30, 45, 245], "start_ns": [0] * 4,
                           "end_ns": [20, 20, 20, 20]})  # all take 20
    BUBBLE = [{"start_ns": 40, "end_ns": 90 + wait.GUARD_NS}]  # less the guard 50 long

    def test_a_prompt_alone_waits_for_the_next_bubble_that_holds_it(self):
        waits = wait.spread_waits(self.PLACED, self.BUBBLE, 100, 1)
        self.assertEqual(list(waits), [40, 10, 0, 0])
        late = self.PLACED.assign(arrival_ns=[75] * 4)  # 15 are left of the bubble
        self.assertEqual(list(wait.spread_waits(late, self.BUBBLE, 100, 1)), [65] * 4)

    def test_another_phase_is_nearer(self):
        waits = wait.spread_waits(self.PLACED, self.BUBBLE, 100, 2)  # opens at 40 and at 90
        self.assertEqual(list(waits), [0, 10, 0, 0])

    def test_those_that_no_bubble_takes_are_refused_at_any_limit(self):
        row = wait.row_of("lockstep", pd.Series([0, wait.LIMIT_NS, wait.LIMIT_NS + 1]), 1,
                          {"utilisation": {"training": 0.5}})
        self.assertEqual(row["refused_at_8_ms"], 0.5)
        self.assertEqual(row["requests"], 4)


class Gpus(unittest.TestCase):
    def test_a_pool_serves_in_order_of_arrival(self):
        self.assertEqual(list(gpus.pool_ttft([0, 0, 5], [10, 20, 10], 1)), [10, 30, 35])
        self.assertEqual(list(gpus.pool_ttft([0, 0, 5], [10, 20, 10], 2)), [10, 20, 15])

    def test_the_least_pool_of_no_larger_p99(self):
        placed = pd.DataFrame({"arrival_ns": [0, 0], "start_ns": [0, 0], "end_ns": [10, 15],
                               "tokens": [10, 4096]})
        self.assertEqual(gpus.row_of(0.5, placed)["gpus"], 2)

    def test_all_three_parts_of_the_claim_are_judged(self):
        for pool, long, short, expected in ((1, 0.9, 1.1, claims.HOLDS), (1, 1.1, 1.1, claims.PARTLY),
                                            (1, 0.9, 1.5, claims.PARTLY), (0, 0.9, 1.1, claims.FAILS)):
            table = pd.DataFrame([{"load": 0.1, "gpus": pool, "long_p50_ms": long,
                                   "long_pool_p50_ms": 1, "short_p50_ms": short,
                                   "short_pool_p50_ms": 1}])
            self.assertEqual(gpus.verdicts(table)[0].verdict, expected)


class Failure(unittest.TestCase):
    @staticmethod
    def report(failed=(), left_out=()):
        suites = {}
        for test, _, _ in failure.EVIDENCE:
            suite, name = test.split(".")
            names = [f"{name}/{i}" for i in (0, 1)] if "/" in suite else [name]
            for one in names:
                if test in left_out:
                    continue
                suites.setdefault(suite, []).append(
                    {"name": one, "status": "RUN",
                     **({"failures": [{}]} if test in failed and one == names[-1] else {})})
        return {"testsuites": [{"name": name, "testsuite": tests}
                               for name, tests in suites.items()]}

    def test_holds_partly_at_most_and_only_where_every_test_passes(self):
        def verdict(**what):
            return failure.verdicts(failure.table_of(self.report(**what)))[0]

        self.assertEqual(verdict().verdict, claims.PARTLY)
        self.assertIn("refused at once: 2 of 2", verdict().ours)
        for test, _, _ in failure.EVIDENCE:
            self.assertEqual(verdict(failed=[test]).verdict, claims.FAILS)
            self.assertEqual(verdict(left_out=[test]).verdict, claims.FAILS)


class Figure13(unittest.TestCase):
    def test_blocks_follow_each_other_between_bubbles(self):
        ops = [{"op": i, "kind": kind, "duration_ns": 10} for i, kind in enumerate("FFB")]
        rows = fig13.blocks(3, ops, [{"before_op": 2, "end_ns": 50}], 60)
        self.assertEqual([row["start_ns"] for row in rows], [0, 10, 50])
        # A bubble around the iteration's end delays the first block.
        rows = fig13.blocks(3, ops, [{"before_op": 0, "end_ns": 65}], 60)
        self.assertEqual([row["start_ns"] for row in rows], [5, 15, 25])


    def test_a_prefill_over_a_bubbles_end_fails_the_claim(self):
        found = {"period_ns": 100, "idle_ns": {"too_small": 1, "guard": 1}}
        bubbles = [{"rank": 1, "start_ns": 20, "end_ns": 30},
                   {"rank": 1, "start_ns": 90, "end_ns": 110}]

        def verdict(*spans):
            table = pd.DataFrame([{"rank": rank, "kind": "prefill", "start_ns": start,
                                   "end_ns": end} for rank, start, end in spans])
            return fig13.verdicts(table, found, bubbles)[0].verdict

        self.assertEqual(verdict((1, 22, 30), (1, 290, 310)), claims.HOLDS)
        self.assertEqual(verdict((1, 22, 31)), claims.FAILS)
        self.assertEqual(verdict((2, 22, 30)), claims.FAILS)


class Figure13OnRanks(unittest.TestCase):
    def test_the_second_iteration_begins_with_a_block_that_comes_again(self):
        rows = pd.DataFrame([{"kind": kind, "start_ns": start, "rank": rank, "chunk": 0,
                              "microbatch": 0, "part": 0}
                             for kind, start, rank in (("F", 0, 1), ("F", 5, 2), ("B", 7, 1),
                                                       ("F", 60, 2), ("F", 50, 1), ("B", 57, 1))])
        self.assertEqual(fig13_measured.second_iteration(rows), 50)

    @unittest.skipUnless(fakes.is_built("bench_prefill"), "bench_prefill is not built")
    def test_both_controllers_on_ranks(self):
        with tempfile.TemporaryDirectory() as directory:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = guarded(lambda: figure.main([
                    "bubbletea-fig13", "--measure", "--pairs", "1", "--set", "run.time_scale=0.1",
                    "--results", f"{directory}/runs", "--out", f"{directory}/drawn"]), "figure")
            self.assertEqual(code, 0, said.getvalue())
            table = pd.read_csv(f"{directory}/drawn/bubbletea-fig13-measured.csv")
        self.assertEqual([said for said in provenance.problems(table) if "without" in said or "column" in said],
                         [])
        self.assertEqual(set(table["variant"]), {"alone", *fig13_measured.CONTROLLERS})
        self.assertEqual(set(table.loc[table["variant"] == "alone", "kind"]), {"F", "B", "R"})
        for controller in fig13_measured.CONTROLLERS:
            own = table[table["variant"] == controller]
            self.assertEqual((own["kind"] != "prefill").sum(), (table["variant"] == "alone").sum())
            shares = own.iloc[0].filter(like="idle_")
            self.assertAlmostEqual(shares.sum(), 100 - own["measured_total"].iloc[0], delta=0.5)


class Untouched(unittest.TestCase):
    @staticmethod
    def table(low, high, careless, compared):
        rows = [{"policy": policy, "ratio_of_medians": ratio, "low": low, "high": high, "n": 20,
                 "measured_total": 0.8, "total_predicted": 0.85, "compared": compared}
                for policy, ratio in ((untouched.LIVE, (low + high) / 2),
                                      (untouched.CARELESS, careless))]
        quiet = {**rows[0], "policy": "best-fit", "low": 1.0, "high": 1.0,
                 "compared": "not distinguishable"}
        return pd.DataFrame([quiet, *rows])

    def test_holds_where_the_pairs_could_tell(self):
        same = "not distinguishable"
        for low, high, careless, compared, expected in (
                (0.999, 1.002, 1.2, same, claims.HOLDS), (0.999, 1.005, 1.2, same, claims.PARTLY),
                (1.0001, 1.002, 1.2, "slower", claims.PARTLY),
                (1.02, 1.03, 1.2, "slower", claims.FAILS),
                (0.999, 1.002, 1.001, same, claims.NOT_JUDGED)):
            with self.subTest(low=low, high=high, compared=compared):
                self.assertEqual(
                    untouched.verdict(self.table(low, high, careless, compared)).verdict, expected)


class Placement(unittest.TestCase):
    def test_claims_are_judged_by_the_controller(self):
        said = [{"name": f"decide/{name}", "mean_ns": mean, "median_ns": mean, "p99_ns": 2 * mean}
                for name, mean in (("earliest/12/50", 2000), ("earliest/1000/50", 150e3),
                                   ("earliest/1000/150", 1), ("earliest_of_all/12/50", 100),
                                   ("earliest_of_all/1000/50", 200))]
        verdicts = placement.verdicts(placement.table_of(said))
        self.assertEqual([one.verdict for one in verdicts], [claims.HOLDS, claims.FAILS])
        self.assertIn("p99 300.00 us", verdicts[1].ours)

    def test_is_drawn_from_what_a_run_left(self):
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            with self.assertRaisesRegex(errors.Failure, "Draw with --measure"):
                placement.read(directory)
            (directory / placement.SAID).write_text(json.dumps({
                "facts": {"command": "c", "commit": "0123abcd", "load_average": 0.5},
                "benchmarks": [{"name": "decide/earliest/12/50", "mean_ns": 2000, "median_ns": 1000,
                                "p99_ns": 4000}]}))
            row = placement.read(directory).iloc[0]
        self.assertEqual((row["gpus"], row["controller_p99_us"], row["commit"]), (12, 4.0, "0123abcd"))


class Value(unittest.TestCase):
    def test_worked_out_by_hand(self):
        # 4 GPUs at 3.6 $ an hour: 0.004 $ for the 1 s of the fastest; 2 $ for 2 million tokens.
        # What was found comes first; it is no candidate.
        answer = {"stages": 2, "replicas": 2, "value": {"gpu_hour": 3.6, "prefill_price": 1,
                  "candidates": [
                      {"period_ns": 0.5e9, "iterations": 10, "tokens_served": 0},
                      {"period_ns": 1e9, "iterations": 10, "tokens_served": 0},
                      {"period_ns": 2e9, "iterations": 10, "tokens_served": 2_000_000}]}}
        for ours, worked_out in zip(value.values(answer), (0.008, 0.004, 0.002 + 0.1)):
            self.assertAlmostEqual(ours, worked_out)

    def test_no_other_is_better_in_all_of_three(self):
        def pareto(*points):
            return [row["pareto"] for row in value.with_pareto(
                [dict(zip(("period_s", "tokens_per_s", "ttft_p99_s"), each)) for each in points])]

        self.assertEqual(pareto((1, 10, 5), (2, 20, 5), (3, 20, 4)), [1, 1, 1])
        self.assertEqual(pareto((1, 10, 5), (2, 10, 5), (1, 9, 6)), [1, 0, 0])
        self.assertEqual(pareto((1, 10, 5), (1, 10, 5)), [1, 1], "equal ones both stay")
        self.assertEqual(pareto((1, 10, None), (2, 10, 5)), [1, 1], "it answers none")

    def test_a_letter_for_each_candidate_of_the_set(self):
        table = pd.DataFrame([
            {"schedule": name, "period_s": period, "found": found, "pareto": pareto}
            for name, period, found, pareto in (("gpipe", 2, 0, 1), ("1f1b", 1, 0, 1),
                                                ("zbv", 3, 0, 0), ("best", 1, 1, 1))])
        self.assertEqual(value_picture.letters_of(table), {"1f1b": "a", "gpipe": "b"})
        self.assertEqual(value_picture.cents_text(0), "0")
        self.assertEqual(value_picture.cents_text(0.041), "4.1")
        self.assertEqual(value_picture.cents_text(1e-5), "< 0.1")


class PrefillTimes(unittest.TestCase):
    def test_linear_between_neighbours(self):
        points = [(10, 2.0), (20, 4.0), (40, 12.0)]
        self.assertEqual(prefill_times.predict(points, 5), 2.0)
        self.assertEqual(prefill_times.predict(points, 30), 8.0)
        self.assertAlmostEqual(prefill_times.leave_one_out(points)[0], (2 + 10 / 3) / 4 - 1)
        with self.assertRaises(ValueError):
            prefill_times.predict(points, 41)


if __name__ == "__main__":
    unittest.main()
