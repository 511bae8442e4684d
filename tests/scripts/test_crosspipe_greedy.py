"""The greedy of CrossPipe's section 4.2 as it is stated, and the settings it is compared on."""

import contextlib
import io
import unittest
from unittest import mock

from longhaul.commands import compare_crosspipe
from longhaul.papers import crosspipe_greedy


def makespans(stages, microbatches, latencies, budget=1):
    return [crosspipe_greedy.generate(crosspipe_greedy.two_datacenters(
        stages, microbatches, latency, budget))[0] for latency in latencies]


class StatedGreedy(unittest.TestCase):
    def test_gives_the_published_values_but_two(self):
        """The authors' code has 3500 at L = 200, and 7100 at P = 8 with one budget."""
        latencies = (0, 50, 100, 200, 400)
        self.assertEqual(makespans(4, 8, latencies), [2700, 3000, 3100, 3600, 4300])
        self.assertEqual(makespans(4, 8, latencies, 2), [2700, 2750, 2800, 2900, 3100])
        self.assertEqual(makespans(8, 16, (400,)) + makespans(8, 16, (400,), 2), [7200, 5900])

    def test_memory_for_one_microbatch_on_a_v_is_enough(self):
        """16 blocks of 50 one after the other, and the last W of device 0, before the next F there.
        No F fits meanwhile, so that W goes first on device 3 too, but in the tear-down."""
        setting = crosspipe_greedy.Setting(4, 3, 100, 100, 100, budget=1 / 3, datacenters=1)
        self.assertEqual(crosspipe_greedy.generate(setting, wave=True)[0], 3 * 17 * 50 + 2 * 50)

    def test_rows_are_a_file_of_a_schedule(self):
        """Memory for one activation: W before the next F."""
        setting = crosspipe_greedy.Setting(1, 2, 100, 100, 100, datacenters=1)
        self.assertEqual(crosspipe_greedy.generate(setting)[1], "0F0,0I0,0W0,0F1,0I1,0W1\n")


class RandomSettings(unittest.TestCase):
    def test_a_seed_draws_the_same(self):
        self.assertEqual(crosspipe_greedy.draw(20, 1), crosspipe_greedy.draw(20, 1))
        self.assertNotEqual(crosspipe_greedy.draw(20, 1), crosspipe_greedy.draw(20, 2))

    def test_a_longer_schedule_is_named_and_fails(self):
        times = {"cross-ud": 90, "cross-ud stated": 100,
                 "cross-wave": 101, "cross-wave stated": 100}
        with mock.patch.object(compare_crosspipe, "makespans", return_value=times), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(1, compare_crosspipe.main(["--random", "2"]))
        self.assertIn("cross-ud: shorter than the stated greedy by 10.0% on average and 10.0% at "
                      "most; longer in 0 of 2 settings (seed 1)", said.getvalue())
        self.assertIn("cross-wave: shorter than the stated greedy by -1.0% on average",
                      said.getvalue())
        self.assertEqual(2, said.getvalue().count("101 ms, stated 100 ms: Setting("))
