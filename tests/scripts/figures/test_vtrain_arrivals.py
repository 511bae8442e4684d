"""What figures of jobs say of a trace of arrivals that is none."""

import tempfile
import unittest
from pathlib import Path

from longhaul.errors import Failure
from longhaul.figures.vtrain import workloads


class Arrivals(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.file = Path(temporary.name) / "trace.csv"

    def refused(self, text, why):
        if text is not None:
            self.file.write_text(text, encoding="utf-8")
        with self.assertRaisesRegex(Failure, why):
            workloads.arrivals(self.file)

    def test_sorts_the_arrivals_of_each_cluster(self):
        self.file.write_text("cluster,submit_s\nb,2\na,3\nb,1\n", encoding="utf-8")
        self.assertEqual(workloads.arrivals(self.file), {"a": [3.0], "b": [1.0, 2.0]})

    def test_refuses_what_is_no_trace(self):
        self.refused(None, "cannot be read")
        self.refused("a,b\n1,2\n", "no column 'cluster'")
        self.refused("cluster,submit_s\n", "no arrivals in it")
        for bad in ("x", "nan", ""):
            self.refused(f"cluster,submit_s\na,1\na,{bad}\n", ":3: submit_s")

    def test_refuses_a_trace_that_is_too_short(self):
        with self.assertRaisesRegex(Failure, "no cluster of the trace has 64 arrivals"):
            workloads.draw_jobs({"a": [1.0, 2.0]}, None, 64, 1)


if __name__ == "__main__":
    unittest.main()
