"""Reading traces, and what tracing costs."""

import re
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np

import synthetic
from longhaul.commands.trace_cost import cost_percent, of_record
from longhaul.errors import Failure
from longhaul.running.tools import ROOT
from longhaul.trace import (COLUMNS, KINDS, LEVELS, NEW_IN_3, NEW_IN_4, OUTCOMES, collectives,
                            read_trace, select)


class Kinds(unittest.TestCase):
    def test_are_those_of_the_vocabulary(self):
        text = (ROOT / "src/base/vocabulary.hpp").read_text(encoding="utf-8").replace("\\\n", " ")
        numbers = {}
        for which in ("BLOCK_KINDS", "MESSAGE_SIDES", "COLLECTIVE_KINDS", "TASK_KINDS"):
            listed = re.search(rf"#define LONGHAUL_{which}\(X\)(.*)", text)[1]
            for name, number in re.findall(r'X\(\w+, "(\w+)", (\d+)', listed):
                numbers[int(number)] = name
        self.assertEqual(tuple(numbers[i] for i in range(len(numbers))), KINDS)

    def test_levels_and_outcomes_are_those_of_the_vocabulary(self):
        text = (ROOT / "src/base/vocabulary.hpp").read_text(encoding="utf-8").replace("\\\n", " ")
        for which, names in (("NETWORK_LEVELS", LEVELS), ("OUTCOMES", OUTCOMES)):
            listed = re.search(rf"#define LONGHAUL_{which}\(X\)(.*)", text)[1]
            self.assertEqual(tuple(re.findall(r'X\(\w+, "(\w+)"', listed)), names)


class ReadTrace(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.file = self.directory / "trace.h5"

    def write(self):
        """One forward on rank 0, its message to rank 1 in the other datacenter: 7 + 5 ns."""
        timeline = synthetic.Timeline()
        timeline.tables.update(schedules=["gpipe"], lanes=["compute", "send>1", "recv<0"],
                               resources=["link 0>1"])
        none, sent = (NEW_IN_3 | NEW_IN_4).values(), (0, 2, 2, -1, 0, 1, 4, 2, 7, 3, 512)
        timeline.tables.update(collectives=["all_reduce of chunk 0"], operators=["attention"])
        #        schedule iter op rank replica device dc lane resource kind chunk mb part parts peer
        timeline.rows = [
            (0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 3, 0, 1, -1, 0, 0, 0, 1, *none, 64, 10, 0, 0, 10, -1, 0),
            (0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 0, 3, 0, 1, 1, 2, 0, 1, 3, *sent, 32, 7, 10, 10, 17, 0, 1),
            (0, 0, 2, 1, 0, 1, 1, 2, 0, 6, 0, 3, 0, 1, 0, 2, 0, 1, 3, *none, 32, 5, 10, 10, 22, 1, 4)]
        return synthetic.write(self.file, timeline, time_scale=0.5)

    def test_values_and_names(self):
        trace = read_trace(self.write())
        rows = select(trace.predicted, "gpipe")
        self.assertEqual(list(rows.columns), list(COLUMNS))
        self.assertEqual(list(rows["kind"]), ["F", "send", "recv"])
        self.assertEqual(list(rows["bound_kind"]), ["start", "dependency", "rendezvous"])
        self.assertEqual(list(rows["leg"]), ["whole", "wan", "wan"])
        self.assertEqual(list(rows["pieces"]), [1, 3, 3])
        self.assertEqual(list(rows["datacenter"]), ["west", "west", "east"])
        self.assertEqual(list(rows["lane"]), ["compute", "send>1", "recv<0"])
        self.assertTrue(np.isnan(rows["resource"].astype(object)[0]))
        self.assertEqual(rows["resource"][1], "link 0>1")
        self.assertEqual(list(rows["end_ns"]), [10, 17, 22])
        self.assertEqual(trace.schedules, ["gpipe"])
        self.assertEqual(trace.time_scale, 0.5)
        self.assertTrue(trace.measured.empty)

    def test_values_and_names_of_schema_3(self):
        rows = select(read_trace(self.write()).predicted, "gpipe")
        first, sent = rows.iloc[0], rows.iloc[1]
        for column in ("collective", "operator", "level"):
            self.assertTrue(np.isnan(rows[column].astype(object)[0]), column)
        self.assertEqual([first[column] for column in ("step", "layer", "slice", "slices", "outcome",
                                                       "version")], [-1, -1, 0, 1, "ran", -1])
        self.assertEqual([sent[column] for column in NEW_IN_3],
                         ["all_reduce of chunk 0", 2, "wan", -1, "attention", 1, 4, "late", 7])

    def test_reads_schema_2(self):
        after = read_trace(self.write()).predicted
        with h5py.File(self.file, "a") as file:
            file.attrs["schema_version"] = 2
            for group in ("predicted", "measured"):
                for member in (*NEW_IN_3, *NEW_IN_4, "collectives", "operators"):
                    del file[f"{group}/{member}"]
        before = read_trace(self.file).predicted
        self.assertEqual(list(before.columns), list(COLUMNS))
        old = [column for column in COLUMNS if column not in NEW_IN_3 | NEW_IN_4]
        self.assertTrue(before[old].equals(after[old]))
        self.assertEqual(list(before["slices"]), [1, 1, 1])
        self.assertEqual(list(before["step"]), [-1, -1, -1])
        self.assertEqual(list(before["outcome"]), ["ran", "ran", "ran"])
        self.assertTrue(before["collective"].isna().all() and before["level"].isna().all())

    def test_reads_schema_3(self):
        after = read_trace(self.write()).predicted
        self.assertEqual(list(after["request"]), [-1, 3, -1])
        self.assertEqual(list(after["tokens"]), [-1, 512, -1])
        with h5py.File(self.file, "a") as file:
            file.attrs["schema_version"] = 3
            for group in ("predicted", "measured"):
                for member in NEW_IN_4:
                    del file[f"{group}/{member}"]
        before = read_trace(self.file).predicted
        old = [column for column in COLUMNS if column not in NEW_IN_4]
        self.assertTrue(before[old].equals(after[old]))
        self.assertEqual(list(before["request"]), [-1, -1, -1])

    def test_leaves_out_kinds_that_it_does_not_know(self):
        with h5py.File(self.write(), "a") as file:
            kinds = h5py.enum_dtype({"F": 0, "send": 5, "recv": 6, "barrier": 40}, basetype="u1")
            numbers = file["predicted/kind"][()]
            numbers[0] = 40
            del file["predicted/kind"]
            file["predicted"].create_dataset("kind", data=numbers.astype("u1"), dtype=kinds)
        trace = read_trace(self.file)
        self.assertEqual(list(trace.predicted["kind"]), ["send", "recv"])
        self.assertEqual(trace.left_out, ["predicted: 1 rows of kind 40 (barrier) are left out "
                                          "(this program does not know it)"])
        self.assertFalse(collectives(trace.predicted).any())

    def test_kinds_are_those_that_the_file_names(self):
        with h5py.File(self.write(), "a") as file:
            kinds = h5py.enum_dtype({"F": 0, "send": 5, "recv": 6, "broadcast": 10}, basetype="u1")
            numbers = file["predicted/kind"][()]
            numbers[0] = 10
            del file["predicted/kind"]
            file["predicted"].create_dataset("kind", data=numbers.astype("u1"), dtype=kinds)
        rows = select(read_trace(self.file).predicted, "gpipe")
        self.assertEqual(list(rows["kind"]), ["broadcast", "send", "recv"])
        self.assertEqual(list(collectives(rows)), [True, False, False])

    def test_directory_with_one_trace(self):
        self.write()
        self.assertEqual(len(read_trace(self.directory).predicted), 3)

    def test_directory_with_several_traces(self):
        self.write().rename(self.directory / "a.h5")
        self.write().rename(self.directory / "b.h5")
        with self.assertRaisesRegex(Failure, "several traces.*a.h5, b.h5"):
            read_trace(self.directory)

    def test_select_one_iteration(self):
        timeline = synthetic.Timeline()
        for iteration in range(3):
            timeline.play("1f1b", synthetic.one_f_one_b(2, 2), {"F": 10, "B": 20}, 5, 0, iteration)
        trace = read_trace(synthetic.write(self.file, synthetic.Timeline(), timeline))
        rows = select(trace.measured, "1f1b", 2)
        self.assertEqual(set(rows["iteration"]), {2})
        self.assertEqual(len(rows), len(trace.measured) // 3)
        self.assertTrue(rows["op"].is_monotonic_increasing)

    def refuses(self, pattern):
        with self.assertRaisesRegex(Failure, pattern) as caught:
            read_trace(self.file)
        self.assertEqual(caught.exception.code, 2)

    def test_refuses_what_is_no_trace(self):
        self.refuses("no such file")
        self.file.write_bytes(b"garbage" * 100)
        self.refuses("not an HDF5 file")

    def test_refuses_another_schema(self):
        self.write()
        with h5py.File(self.file, "a") as file:
            file.attrs["schema_version"] = 99
        self.refuses("schema_version is 99")

    def test_refuses_a_missing_column(self):
        self.write()
        with h5py.File(self.file, "a") as file:
            del file["predicted/end_ns"]
        self.refuses("predicted has no column end_ns")

    def test_refuses_a_position_outside_its_table(self):
        self.write()
        with h5py.File(self.file, "a") as file:
            file["predicted/datacenter"][2] = 7
        self.refuses("column datacenter names entry 7 of a table of 2")


class TraceCost(unittest.TestCase):
    def test_an_iteration_is_its_share_of_the_run(self):
        record = {"environment": {"iterations_ns": 1000},
                  "schedules": [{"samples_ns": [10, 20], "measured_median_ns": 15},
                                {"samples_ns": [30, 50], "measured_median_ns": 40}]}
        self.assertEqual(of_record(record), (250, 27.5))

    def test_costs_are_those_of_neighbouring_runs(self):
        samples = {"on": [(101, 0), (210, 0), (303, 0)], "off": [(100, 0), (200, 0), (300, 0)]}
        middle, least, largest = cost_percent(samples, 0)
        self.assertAlmostEqual(middle, 1)
        self.assertAlmostEqual(least, 1)
        self.assertAlmostEqual(largest, 5)


if __name__ == "__main__":
    unittest.main()
