"""A run of a figure's point: what is kept beside its record, and where half a run goes."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from longhaul.errors import Failure
from longhaul.running import awake, runs

MAKE = """
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[1])
out.mkdir()  # fails where something is there, as our programs do
(out / "record.json").write_text(json.dumps({"command_line": os.environ.get("LONGHAUL_AWAKE", "none"),
                                             "git_commit": "0123abcd", "scenario": "s"}))
"""


class Runs(unittest.TestCase):
    def setUp(self):
        self.results = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.results / "point"
        variables = {name: value for name, value in os.environ.items() if name != awake.VARIABLE}
        self.enterContext(mock.patch.dict(os.environ, variables, clear=True))

    def command(self):
        return [sys.executable, "-c", MAKE, self.out]

    def read(self, name):
        return json.loads((self.out / name).read_text())

    def test_no_processor_of_a_virtual_machine_halts_meanwhile(self):
        for virtual, held in ((True, len(os.sched_getaffinity(0))), (False, 0)):
            with self.subTest(virtual=virtual), mock.patch.object(awake, "is_virtual",
                                                                  return_value=virtual):
                runs.run(self.command(), self.out, self.results)
                self.assertEqual(self.read("record.json")["command_line"], str(held) if held else "none")
                self.assertEqual(self.read("run.json")["awake_processors"], held)
        self.assertEqual(awake.count(), 0)

    def test_half_a_run_is_set_aside(self):
        self.out.mkdir()
        (self.out / "trace.h5").write_text("half")
        with self.assertRaises(Failure):
            runs.run(self.command(), self.out, self.results, goes_on=True)
        runs.run(self.command(), self.out, self.results)
        self.assertEqual(self.read("run.json")["measurement"], 1)
        self.assertEqual((self.results / "point.unfinished-1" / "trace.h5").read_text(), "half")


if __name__ == "__main__":
    unittest.main()
