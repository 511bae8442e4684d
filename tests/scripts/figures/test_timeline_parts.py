"""Critical path, layout and colours: the parts of a timeline."""

import itertools
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import synthetic
from longhaul.drawing import layout, memory, panels, style
from longhaul.drawing.paint import bubble_ratios
from longhaul.drawing.time_scale import TimeScale
from longhaul.figures.runs import timeline
from longhaul.path import critical_path, wan_crossings
from longhaul.trace import KINDS, NEW_IN_3, NEW_IN_4, read_trace, select

ROOT = Path(__file__).resolve().parents[3]


def rows_of(orders, durations, latency, transfer, name="1f1b"):
    timeline = synthetic.Timeline().play(name, orders, durations, latency, transfer)
    with tempfile.TemporaryDirectory() as directory:
        trace = read_trace(synthetic.write(Path(directory) / "t.h5", timeline))
    return select(trace.predicted, name)


UNIT = {"F": 100, "B": 200, "D": 100, "W": 100}


class CriticalPath(unittest.TestCase):
    def test_figure_6_of_crosspipe(self):
        """1F1B, P=4, M=8, 2 datacenters: 8 crossings; 4900 at a latency of 2 F."""
        rows = rows_of(synthetic.one_f_one_b(4, 8), UNIT, 200, 0)
        steps = critical_path(rows)
        self.assertEqual(panels.makespan(rows), 4900)
        self.assertEqual(wan_crossings(steps), 8)
        self.assertEqual(steps[0].start_ns, 0)
        self.assertEqual(steps[-1].end_ns, 4900)

    def test_steps_follow_without_a_gap(self):
        steps = critical_path(rows_of(synthetic.zb_h1(4, 8), UNIT, 150, 30))
        blocks = [step for step in steps if step.kind != "send"]
        for before, after in itertools.pairwise(blocks):
            self.assertEqual(before.end_ns, after.start_ns, (before, after))

    def test_no_delay_no_datacenters_to_cross(self):
        rows = rows_of(synthetic.one_f_one_b(4, 8), UNIT, 0, 0)
        self.assertEqual(panels.makespan(rows), 3300)
        rows["datacenter"] = "west"
        self.assertEqual(wan_crossings(critical_path(rows)), 0)

    def test_empty(self):
        rows = rows_of(synthetic.one_f_one_b(2, 2), UNIT, 0, 0)
        self.assertEqual(critical_path(rows.iloc[:0]), [])


class Layout(unittest.TestCase):
    def test_a_band_a_datacenter_and_a_row_a_rank(self):
        laid = layout.arrange(rows_of(synthetic.one_f_one_b(4, 8), UNIT, 100, 10))
        self.assertEqual([band.datacenter for band in laid.bands], ["west", "east"])
        self.assertEqual([row.label for row in laid.rows.values()], ["0", "1", "2", "3"])
        self.assertEqual(set(laid.rows[1].lanes), {("send", 2), ("recv", 2)})
        self.assertEqual(set(laid.rows[2].lanes), {("send", 1), ("recv", 1)})
        self.assertFalse(laid.rows[0].lanes)

    def test_rows_and_lanes_do_not_overlap(self):
        laid = layout.arrange(rows_of(synthetic.interleaved(8, 16), UNIT, 300, 20))
        edges = sorted(edge for row in laid.rows.values()
                       for edge in [(row.top, row.bottom), *((top, top + height) for top, height
                                                             in row.lanes.values())])
        for (_, bottom), (top, _) in itertools.pairwise(edges):
            self.assertLessEqual(bottom, top + 1e-9)
        self.assertLessEqual(edges[-1][1], laid.height)

    def test_both_ends_of_a_message_face_each_other(self):
        laid = layout.arrange(rows_of(synthetic.one_f_one_b(4, 8), UNIT, 100, 10))
        self.assertGreater(laid.rows[1].lanes["send", 2][0], laid.rows[1].top)
        self.assertLess(laid.rows[2].lanes["recv", 1][0], laid.rows[2].top)

    def test_no_lanes_without_delay(self):
        laid = layout.arrange(rows_of(synthetic.one_f_one_b(4, 8), UNIT, 0, 0))
        self.assertFalse(any(row.lanes for row in laid.rows.values()))

    def test_sublanes(self):
        places, count = layout.sublanes([0, 5, 10, 12], [10, 15, 20, 22])
        self.assertEqual(list(places), [0, 1, 0, 2])
        self.assertEqual(count, 3)
        _, count = layout.sublanes(list(range(20)), [100] * 20)
        self.assertEqual(count, layout.MAX_SUBLANES)

    def test_local_chunks(self):
        rows = rows_of(synthetic.interleaved(2, 4), UNIT, 0, 0)
        local = layout.local_chunks(rows)
        for chunk, expected in ((0, 0), (1, 0), (2, 1), (3, 1)):
            blocks = ((rows["chunk"] == chunk) & rows["kind"].isin(("F", "B"))).to_numpy()
            self.assertEqual(set(local[blocks]), {expected}, chunk)

    def test_bubble_ratio(self):
        rows = rows_of(synthetic.one_f_one_b(4, 8), UNIT, 0, 0)
        ratios = bubble_ratios(rows, 3300)
        self.assertEqual(len(ratios), 4)
        for ratio in ratios.values():
            self.assertAlmostEqual(ratio, 1 - 2400 / 3300)


class Pictures(unittest.TestCase):
    """Of timelines, in ms: blocks of 100, 200."""

    def drawn(self, latency, transfer, **options):
        rows = rows_of(synthetic.one_f_one_b(4, 8), {"F": 100_000_000, "B": 200_000_000}, latency,
                       transfer)
        return panels.draw_stack([panels.Panel(rows, "p")], "t", **options)

    @staticmethod
    def legend(figure):
        return [text.get_text() for text in figure.legends[0].get_texts()]

    @staticmethod
    def thin(figure):
        return [note.get_text() for note in figure.axes[0].texts if "too thin" in note.get_text()]

    def test_lanes_that_are_too_thin_to_see_say_so(self):
        self.assertEqual([], self.thin(self.drawn(200_000_000, 50_000_000)))
        said = self.thin(self.drawn(200_000_000, 1000))
        self.assertEqual(["too thin to see: 1.000 us at most"] * 2, said)  # a send each way
        self.assertEqual(4, len(self.thin(self.drawn(1000, 1000))))

    def test_no_legend_without_a_bar(self):
        for latency, transfer, has in ((200_000_000, 50_000_000, (True, True)),
                                       (200_000_000, 1000, (False, True)),
                                       (0, 50_000_000, (True, False)), (1000, 1000, (False, False)),
                                       (0, 0, (False, False))):
            said = " ".join(self.legend(self.drawn(latency, transfer)))
            self.assertEqual(has, ("transfer" in said, "latency" in said), (latency, transfer))
            self.assertNotIn("weight gradient", said)
            self.assertNotIn("data-parallel", said)

    def test_units_are_those_of_tables(self):
        for largest, text in ((0, "0 ns"), (999, "999.0 ns"), (1000, "1.000 us"),
                              (373_000_000, "373.0 ms"), (2_453_400_000, "2.453 s"),
                              (24_534_000_000, "24.53 s")):
            self.assertEqual(text, TimeScale(largest).text(largest))
        self.assertEqual("0.373 s", TimeScale(2_453_400_000).text(373_000_000))
        figure = self.drawn(0, 0)
        self.assertEqual("time (s)", figure.axes[0].get_xlabel())
        figure.canvas.draw()
        self.assertEqual({"0", "1", "2", "3"}, {tick.get_text() for tick in
                                                figure.axes[0].get_xticklabels()} & set("0123"))
        self.assertEqual("time as played (ms); time_scale 0.5: the scenario's times are 2 times as "
                         "long", panels.time_label(.5, "ms"))

    def test_names_are_no_formulas(self):
        self.assertEqual(r"a\$x_1\$?", style.plain("a$x_1$\0"))


class Median(unittest.TestCase):
    """The iteration nearest the median, of equals the first: as trace_attribution.cpp has it."""

    def chosen(self, factors):
        measured = synthetic.Timeline()
        for iteration, factor in enumerate(factors):
            measured.play("1f1b", synthetic.one_f_one_b(2, 2), UNIT, 0, 0, iteration, factor)
        with tempfile.TemporaryDirectory() as directory:
            trace = read_trace(synthetic.write(Path(directory) / "t.h5", synthetic.Timeline(),
                                               measured))
        return timeline.measured_of(trace, "1f1b")[1]

    def test_of_an_odd_number_it_is_the_median(self):
        self.assertEqual("iteration 2, the median of 3", self.chosen((1, 3, 2)))
        self.assertEqual("iteration 0", self.chosen((1,)))

    def test_of_an_even_number_it_is_the_nearest(self):
        self.assertEqual("iteration 2, nearest the median of 4", self.chosen((9, 1, 5, 3)))
        self.assertEqual("iteration 0, nearest the median of 4", self.chosen((5, 9, 1, 3)))
        self.assertEqual("iteration 0, nearest the median of 2", self.chosen((9, 1)))


class Memory(unittest.TestCase):
    def test_changes_are_a_running_sum_of_each_rank(self):
        """Of device 2 of 4: at its warm-up forwards at 200 and 300, then one forward, one backward;
        a backward's end and a forward's start may meet."""
        table = memory.changes(rows_of(synthetic.one_f_one_b(4, 3), UNIT, 0, 0))
        own = table[table["rank"] == 2]
        self.assertEqual(list(own["time_ns"]), [200, 300, 800, 800, 1100, 1400])
        self.assertEqual(list(own["activation_bytes"]), [1024, 2048, 1024, 2048, 1024, 0])
        self.assertEqual(memory.peaks(table), {0: 3072, 1: 3072, 2: 2048, 3: 1024})

    def test_split_backwards_release_in_two_steps(self):
        table = memory.changes(rows_of([[("F", 0, 0), ("D", 0, 0), ("W", 0, 0)]], UNIT, 0, 0))
        self.assertEqual(list(table["time_ns"]), [0, 200, 300])
        self.assertEqual(list(table["activation_bytes"]), [1024, 512, 0])

    def test_panels_share_one_scale(self):
        table = memory.changes(rows_of(synthetic.one_f_one_b(4, 8), UNIT, 0, 0))
        self.assertEqual(memory.scale_of([table], 9999), memory.Scale(9999, 9999))
        self.assertEqual(memory.scale_of([table, table], 100), memory.Scale(100, 4096))
        self.assertIn("budget, 0.0977 KiB", memory.title(memory.scale_of([table], 100)))
        self.assertNotIn("budget", memory.title(memory.scale_of([table], 0)))
        self.assertEqual(memory.scale_of([], 0).full_bytes, 1)


class GreyPicture(unittest.TestCase):
    """A drawn timeline as a grey print shows it."""

    KINDS = ("F", "D", "W", "R", "send", "reduce_scatter")
    LEAST = 18  # of 255

    def setUp(self):
        """One row of each kind in turn on rank 0; the message and the collective have lanes."""
        timeline = synthetic.Timeline()
        place = timeline.position
        for index, name in enumerate(("west", "east")):
            self.assertEqual(place("datacenters", name), index)
        place("schedules", "all")
        for rank, kinds in enumerate((self.KINDS, ("recv",))):
            for index, kind in enumerate(kinds):
                begin = 1_000_000 * index if rank == 0 else 4_000_000
                timeline.rows.append((
                    0, 0, len(timeline.rows), rank, 0, rank, rank, place("lanes", kind),
                    place("resources", "any"), KINDS.index(kind), 0, 0, 0, 1,
                    1 - rank if kind in ("send", "recv") else -1, 0, 0, 0, 1,
                    *NEW_IN_3.values(), *NEW_IN_4.values(), 0, 0, begin, begin, begin + 1_000_000, -1, 0))
        with tempfile.TemporaryDirectory() as directory:
            trace = read_trace(synthetic.write(Path(directory) / "t.h5", timeline))
        self.rows = select(trace.predicted, "all")

    def shades(self):
        """kind -> the middle of the luminance of all dots of its box."""
        figure = panels.draw_stack([panels.Panel(self.rows, "all")], "all")
        figure.canvas.draw()
        dots = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        grey = dots @ np.array([0.299, 0.587, 0.114])
        row = layout.arrange(self.rows).rows[0]
        shades = {}
        for kind in self.KINDS:
            own = self.rows[(self.rows["kind"] == kind) & (self.rows["rank"] == 0)].iloc[0]
            top, height = {"send": row.lanes.get(("send", 1)),
                           "reduce_scatter": row.lanes.get(("collective", -1))}.get(
                               kind, (row.top, layout.ROW))
            corners = figure.axes[0].transData.transform(
                [(own["start_ns"] / 1e6, top), (own["end_ns"] / 1e6, top + height)])
            (left, upper), (right, lower) = np.round(corners).astype(int)
            box = grey[len(grey) - upper + 2:len(grey) - lower - 2, left + 4:right - 4]
            self.assertGreater(box.size, 50, kind)
            shades[kind] = float(np.median(box))
        return shades

    def test_kinds_differ(self):
        shades = self.shades()
        for (one, other) in itertools.combinations(self.KINDS, 2):
            self.assertGreaterEqual(abs(shades[one] - shades[other]), self.LEAST,
                                    (one, other, shades))

    def test_colours_as_they_are_meant(self):
        shades = self.shades()
        for kind in "FDW":
            self.assertAlmostEqual(shades[kind], style.luminance(style.block_colour(kind)), delta=2)
        self.assertGreaterEqual(abs(style.luminance(style.wire_colour(0.6))
                                    - style.luminance(style.wire_colour(0.2))), self.LEAST)
        self.assertEqual(style.BLOCK_COLOURS["B"], style.BLOCK_COLOURS["D"])


class Colours(unittest.TestCase):
    def test_kinds_and_chunks_differ_in_grey(self):
        shades = sorted(style.luminance(style.block_colour(kind, chunk))
                        for kind in "FDW" for chunk in (0, 1))
        for darker, lighter in itertools.pairwise(shades):
            self.assertGreaterEqual(lighter - darker, 18)

    def test_schedules_differ_in_grey(self):
        """Static ones among each other, and those that CrossPipe's figures show beside them."""
        static = ("gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv")
        for names in (static, ("cross-ud", "cross-ud-sub", "cross-wave", "best")):
            colours = [style.SCHEDULE_COLOURS[name] for name in names]
            shades = sorted(style.luminance(style.rgb([int(colour[i:i + 2], 16)
                                                       for i in (1, 3, 5)])) for colour in colours)
            for darker, lighter in itertools.pairwise(shades):
                self.assertGreaterEqual(lighter - darker, 25)

    def test_kinds_of_the_page_differ_in_grey_or_pattern(self):
        text = (ROOT / "src/report/page/timeline.js").read_text(encoding="utf-8")
        styles = re.search(r"const STYLES = \{(.*?)\};", text, re.DOTALL).group(1)
        kinds = re.findall(r'(\w+): \["#(\w{6})"(?:, "([^"]+)")?\]', styles)
        self.assertEqual(len(kinds), styles.count("["))
        self.assertLessEqual({"F", "B", "D", "W", "send", "prefill", "collective", "optimize"},
                             {kind for kind, _, _ in kinds})
        for one, other in itertools.combinations(kinds, 2):
            shades = [style.luminance(style.rgb(bytes.fromhex(colour))) for _, colour, _ in (one, other)]
            if one[2] == other[2]:
                self.assertGreaterEqual(abs(shades[0] - shades[1]), 20, (one, other))

    def test_labels_are_readable(self):
        for kind in style.BLOCK_COLOURS:
            for chunk in (0, 1):
                background = style.block_colour(kind, chunk)
                text = 255 if style.text_colour(background) == "white" else 0
                self.assertGreater(abs(style.luminance(background) - text), 120, (kind, chunk))


if __name__ == "__main__":
    unittest.main()
