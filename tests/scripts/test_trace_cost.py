"""The cost of tracing, from records."""

import unittest

from longhaul.commands.trace_cost import cost_percent, of_record


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
