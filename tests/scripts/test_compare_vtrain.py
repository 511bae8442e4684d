"""scripts/compare-vtrain on synthetic rows, as vTrain's predictor makes them: 1F1B over the sums of
operators, a transfer's time on the stage that sends."""

import csv
import json
import os
import random
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

COMMAND = (sys.executable, "-m", "longhaul.commands.compare_vtrain")
COLUMNS = ("row", "gpus", "global_batch", "micro_batch", "sequence", "hidden", "layers", "vocabulary",
           "tensor", "data", "pipeline", "iteration_ms")
MAKES = {"layer_forward": 1_000_003, "layer_backward": 2_000_005, "embedding": 300_001,
         "head_forward": 1_000_000, "head_backward": 2_000_000, "layer_update": 200_003, "update": 900_001}


def all_reduce(data, layers, pipeline):
    return 0 if data == 1 else 1_000_000 * data + 10_007 * layers // pipeline


def iteration_ns(layers, pipeline, data, microbatches, boundary):
    """The latest end of 1F1B, block by block: an oracle written apart."""
    orders = []
    for stage in range(pipeline):
        warm = min(pipeline - 1 - stage, microbatches)
        order = [("F", m) for m in range(warm)]
        for m in range(microbatches):
            order += [("F", m + warm)] if m + warm < microbatches else []
            order.append(("B", m))
        orders.append(order)
    share = layers // pipeline

    def length(stage, kind):
        first, last = stage == 0, stage == pipeline - 1
        if kind == "F":
            return (share * MAKES["layer_forward"] + (0 if last else boundary)
                    + (MAKES["head_forward"] if last else 0))
        return (share * MAKES["layer_backward"] + (0 if first else boundary)
                + (MAKES["embedding"] if first else 0) + (MAKES["head_backward"] if last else 0))

    ends, done = {}, [0] * pipeline
    places = [0] * pipeline
    while any(places[s] < len(orders[s]) for s in range(pipeline)):
        for stage in range(pipeline):
            if places[stage] == len(orders[stage]):
                continue
            kind, m = orders[stage][places[stage]]
            need = {"F": (stage - 1, "F", m), "B": (stage + 1, "B", m)}[kind]
            if 0 <= need[0] < pipeline and need not in ends:
                continue
            start = max(done[stage], ends.get(need, 0))
            done[stage] = ends[(stage, kind, m)] = start + length(stage, kind)
            places[stage] += 1
    return max(done) + all_reduce(data, layers, pipeline) + MAKES["update"] + share * MAKES["layer_update"]


def rows():
    boundary = 2 * 1 * 1024 * 1024 * 2 / (800 * 2**30 / 32) * 1e9
    number = 0
    for layers in (12, 24):
        for pipeline in (1, 2, 4):
            for data in (1, 2):
                for microbatches in (4, 8, 32):
                    number += 1
                    time = iteration_ns(layers, pipeline, data, microbatches, boundary)
                    yield dict(zip(COLUMNS, (number, data * pipeline, data * microbatches, 1, 1024, 1024,
                                             layers, 50257, 1, data, pipeline, f"{time / 1e6:.6f}")))


class CompareVtrain(unittest.TestCase):
    def run_on(self, fitted, compared, collectives=None):
        with TemporaryDirectory() as directory:
            for name, some in (("a.csv", fitted), ("b.csv", compared)):
                with (Path(directory) / name).open("w", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    writer.writeheader()
                    writer.writerows(some)
            command = [*COMMAND, "--fit", Path(directory) / "a.csv", "--rows", Path(directory) / "b.csv"]
            if collectives:
                table = Path(directory) / "c.csv"
                table.write_text("gpu,operation,ranks,size_bytes,in_place_ns\n" + collectives)
                command += ["--collectives", table]
            return subprocess.run([*command, "--json"], capture_output=True, text=True, env=os.environ,
                                  check=False)

    def test_rows_follow_from_others_and_the_simulator_gives_them(self):
        everything = list(rows())
        random.Random(3).shuffle(everything)
        done = self.run_on(everything[:24], everything[24:])
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertGreaterEqual(answer["rows"], 8)
        self.assertLessEqual(answer["largest_difference_ns"], 10)
        self.assertLess(answer["fit"]["numbers"], 16)

    def test_another_time_is_found(self):
        everything = list(rows())
        wrong = [dict(everything[0], iteration_ms="1.0")]
        done = self.run_on(everything, wrong)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertGreater(json.loads(done.stdout)["largest_difference_ns"], 1000)

    def test_rows_that_do_not_follow_are_named(self):
        everything = list(rows())
        done = self.run_on(everything[:2], everything[-1:])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(json.loads(done.stdout)["not_recovered"]), 1)

    def test_a_table_of_all_reduces_tells_rows_that_no_row_tells(self):
        """Fitted on single replicas alone: those of two need their all-reduces, by MiB."""
        single = [row for row in rows() if row["data"] == 1]
        double = [row for row in rows() if row["data"] == 2][::6]
        alone = json.loads(self.run_on(single, double).stdout)
        self.assertEqual(alone["rows"], 0)
        because = alone["not_recovered_because"]
        self.assertEqual(len(because["an operator or all-reduce that no fitted row has"]), 3)
        lines = ""
        for row in double:
            layers, pipeline = row["layers"], row["pipeline"]
            numbers = (12 * 1024**2 + 13 * 1024) * layers // pipeline + (50257 + 1024) * 1024
            numbers += 50257 * 1024 if pipeline == 1 else 0
            mib = round(2 * numbers / 2**20)
            lines += f"a100,all_reduce,2,{mib * 2**20},{all_reduce(2, layers, pipeline)}\n"
        done = self.run_on(single, double, lines)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["rows"], 3)
        refused = self.run_on(single, double, "v100,all_reduce,2,1048576,1\n")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("there is no all_reduce of a100", refused.stderr)

    def test_a_missing_column_is_refused_with_its_line(self):
        with TemporaryDirectory() as directory:
            file = Path(directory) / "a.csv"
            file.write_text("row,gpus\n1,2\n")
            done = subprocess.run([*COMMAND, "--fit", file, "--rows", file],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('a.csv:1: the column "global_batch" is missing', done.stderr)


if __name__ == "__main__":
    unittest.main()
