"""Files of version 1.0 stay readable for the scripts, too (docs/formats.md)."""

import json
import re
import unittest

from longhaul.running.tools import ROOT
from longhaul.trace import read_trace, select

KEPT = ROOT / "tests/compatibility/1.0"
CMAKE = (ROOT / "CMakeLists.txt").read_text()


class KeptFiles(unittest.TestCase):
    def test_trace_has_the_samples_of_its_record(self):
        trace = read_trace(KEPT / "trace.h5")
        record = json.loads((KEPT / "record.json").read_text())
        self.assertEqual(record["schema_version"], 1)
        for schedule in record["schedules"]:
            rows = select(trace.measured, schedule["schedule"])
            self.assertEqual(list(rows.groupby("iteration")["end_ns"].max()), schedule["samples_ns"])

    def test_the_version_is_the_same_everywhere(self):
        version = re.search(r"project\(longhaul VERSION (\S+)", CMAKE)[1]
        self.assertIn(f"\nversion: {version}\n", (ROOT / "CITATION.cff").read_text())
        self.assertIn(f"\n## {version}\n", (ROOT / "CHANGELOG.md").read_text())


if __name__ == "__main__":
    unittest.main()
