"""`longhaul cluster` against a plain ElasticFlow of its own (support/elasticflow.py)."""

import csv
import json
import math
import pathlib
import random
import subprocess
import tempfile
import unittest

import elasticflow
from longhaul.running import tools

SLOT = 60.0


def draw(seed):
    """Jobs and rates of a small cluster."""
    draws = random.Random(seed)
    rates = {}
    for model in ("a", "b", "c"):
        rate = draws.uniform(0.5, 2)
        rates[model] = {}
        for gpus in (1, 2, 4, 8)[draws.randrange(2):]:
            rates[model][gpus] = rate
            rate *= draws.uniform(0.9, 2)
    jobs = []
    for number in range(draws.randrange(3, 12)):
        model = draws.choice("abc")
        submit = round(draws.uniform(0, 3000), 1)
        iterations = draws.randrange(200, 4000)
        alone = iterations / max(rates[model].values())
        deadline = round(submit + alone * draws.uniform(1.05, 4), 1)
        jobs.append([f"j{number}", submit, model, 1, iterations,
                     "" if draws.random() < 0.2 else deadline])
    return jobs, rates


class Cluster(unittest.TestCase):
    def play(self, folder, jobs, rates, policy):
        with open(folder / "jobs.csv", "w", newline="") as file:
            csv.writer(file).writerows(
                [["job", "submit_s", "model", "global_batch", "iterations", "deadline_s"], *jobs])
        with open(folder / "rates.csv", "w", newline="") as file:
            csv.writer(file).writerows(
                [["model", "global_batch", "gpus", "iterations_per_second"],
                 *([model, 1, gpus, repr(rate)] for model, counts in rates.items()
                   for gpus, rate in counts.items())])
        run = subprocess.run(
            [tools.binary("longhaul"), "cluster", folder / "jobs.csv", "--gpus", "10",
             "--throughput", folder / "rates.csv", "--policy", policy, "--slot", f"{SLOT:g}s",
             "--json"], capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    def test_equals_the_plain_one(self):
        admitted = 0
        with tempfile.TemporaryDirectory() as name:
            for seed in range(24):
                policy = ("elasticflow", "elasticflow", "edf", "fifo", "srtf",
                          "least-laxity")[seed % 6]
                jobs, rates = draw(seed)
                plain = [elasticflow.Job(job[0], job[1], math.inf if job[5] == "" else job[5],
                                         job[4], elasticflow.rising(rates[job[2]])
                                         if policy == "elasticflow" else rates[job[2]])
                         for job in jobs]
                elasticflow.play(plain, 10, policy, SLOT)
                answer = self.play(pathlib.Path(name), jobs, rates, policy)
                for job, ours in zip(plain, answer["jobs"], strict=True):
                    with self.subTest(seed=seed, policy=policy, job=job.name):
                        self.assertEqual(job.admitted, ours["admitted"])
                        self.assertEqual(job.met, ours["met"])
                        self.assertEqual([gpus for _, gpus in job.grants],
                                         [gpus for _, gpus in ours["allocations"]])
                        for [mine, _], [theirs, _] in zip(job.grants, ours["allocations"]):
                            self.assertAlmostEqual(mine, theirs, delta=1e-5)
                        admitted += job.admitted
        self.assertLess(80, admitted)


if __name__ == "__main__":
    unittest.main()
