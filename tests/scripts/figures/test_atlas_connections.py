"""Atlas figure 5: rates of real connections."""

import json
import tempfile
import unittest
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.figures.atlas import fig5 as atlas_fig5


class Connections(unittest.TestCase):
    """Figure 5: rates of bench_tcp."""

    RECORD = {"benchmark": "bench_tcp", "git_commit": "0123456789ab", "command_line": "bench_tcp",
              "scale": 0.5, "network": "namespaces", "environment": {
                  "load_average": {"before": [0.1, 0, 0], "during": [0.2, 0, 0]}},
              "points": [{"latency_ns": 10_000_000, "connections": count,
                          "median_bits_per_second": 600e6, "repetitions": [
                              {"rate_bits_per_second": (596 + i) * 1e6,
                               "flows": [{"bytes": 10}] * count} for i in range(8)]}
                         for count in (1, 5)]}

    def test_rows_say_where_they_come_from(self):
        with tempfile.TemporaryDirectory() as directory:
            run = Path(directory) / "tcp"
            run.mkdir()
            (run / "record.json").write_text(json.dumps(self.RECORD))
            (run / "run.json").write_text('{"measurement": 1}')
            rows, scale = atlas_fig5.measured(run)
        table = pd.DataFrame(atlas_fig5.modelled() + atlas_fig5.published() + rows)
        self.assertEqual(provenance.is_measured(table).sum(), 2)
        self.assertEqual(provenance.problems(table), [])
        self.assertEqual(scale, 0.5)
        self.assertEqual(rows[1]["payload_sent_bytes"], 50)
        self.assertEqual((rows[0]["mbps"], rows[0]["least_mbps"], rows[0]["most_mbps"]),
                         (1200, 1192, 1206))


if __name__ == "__main__":
    unittest.main()
