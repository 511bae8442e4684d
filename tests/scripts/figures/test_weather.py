"""The figure of links with weather: from records, and the commands that make them."""

import contextlib
import io
import json
import math
import tempfile
import unittest
from pathlib import Path

import matplotlib.image
import pandas as pd

from longhaul.commands import figure
from longhaul.errors import Failure, guarded
from longhaul.figures.runs import link_weather, weather

MS = 1_000_000
LINK = {"latency_ns": 10 * MS, "bits_per_second": 8e9, "jitter": {"latency": 0.1, "transfer": 0.1},
        "loss_probability": 0, "outages_ns": [[500 * MS, 100 * MS]],
        "states": [{"at_ns": 0, "latency_ns": 10 * MS, "bits_per_second": 8e9},
                   {"at_ns": 300 * MS, "latency_ns": 40 * MS, "bits_per_second": 2e9}]}


def stretch(name, first, begins_ms, takes_ms):
    return {"schedule": name, "first_iteration": first, "predicted_ns": 90 * MS,
            "samples_ns": [int(1.01 * takes * MS) for takes in takes_ms],
            "weather": {"begin_ns": [begin * MS for begin in begins_ms],
                        "predicted_ns": [takes * MS for takes in takes_ms]}}


def record(stretches, switches=()):
    return {"scenario": '[scenario]\nname = "tiny"\n', "time_scale": 0.5, "iterations": 4,
            "weather": "played", "schedules": stretches, "switches": list(switches),
            "weather_of_links": [{"from": "west", "to": "east", **LINK},
                                 {"from": "east", "to": "west", **LINK}]}


FIXED = record([stretch("best", 0, (0, 110, 220, 330), (100, 100, 100, 200)),
                stretch("conservative.csv", 0, (0, 130, 260, 390), (120, 120, 120, 150))])
ADAPTIVE = record([stretch("best", 0, (0, 110, 220), (100, 100, 150)),
                   stretch("best@3", 3, (380,), (120,))],
                  [{"iteration": 3, "event": "switch"}])


class Weather(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def write(self, fixed, adaptive):
        for name, content in (("fixed", fixed), ("adaptive", adaptive)):
            (self.directory / name).mkdir()
            (self.directory / name / "record.json").write_text(json.dumps(content))

    def figure(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = guarded(lambda: figure.main([str(word) for word in words]), "figure")
        return code, said.getvalue()

    def test_three_choices_in_times_of_the_scenario(self):
        self.write(FIXED, ADAPTIVE)
        out = self.directory / "pictures"
        code, said = self.figure("weather", "--results", self.directory, "--out", out)
        self.assertEqual(code, 0, said)
        picture = matplotlib.image.imread(out / "weather.png")
        self.assertGreater(picture[..., :3].std(), 0.05)
        table = pd.read_csv(out / "weather.csv")
        self.assertEqual(list(table["choice"]),
                         ["static"] * 4 + ["conservative"] * 4 + ["adaptive"] * 4)
        last = table.iloc[-1]
        self.assertEqual((last["schedule"], last["iteration"]), ("best@3", 3))
        self.assertAlmostEqual(last["begin_s"], 0.76)
        self.assertAlmostEqual(last["measured_s"], 0.2424)
        self.assertAlmostEqual(last["predicted_s"], 0.24)

    def test_a_run_without_weather_is_refused(self):
        still = record([{key: value for key, value in one.items() if key != "weather"}
                        for one in FIXED["schedules"]])
        self.write(still, ADAPTIVE)
        code, said = self.figure("weather", "--results", self.directory)
        self.assertEqual(code, 2)
        self.assertIn("knows nothing of weather", said)

    def test_a_run_of_other_schedules_is_refused(self):
        self.write(record(FIXED["schedules"] + [stretch("third", 0, (0,), (100,))]), ADAPTIVE)
        code, said = self.figure("weather", "--results", self.directory)
        self.assertEqual(code, 2)
        self.assertIn("none of static and conservative", said)

    def test_equal_directions_are_one_line(self):
        links = link_weather.distinct(FIXED["weather_of_links"])
        self.assertEqual([link["names"] for link in links], [["west to east and back"]])

    def test_steps_repeat_and_end_with_the_picture(self):
        edges, values = link_weather.steps({**LINK, "repeat_ns": 400 * MS}, "latency_ns", 1e9, 0.6)
        self.assertEqual(values, [10 * MS, 40 * MS, 10 * MS])
        for found, expected in zip(edges, (0, 0.3, 0.4, 0.6), strict=True):
            self.assertAlmostEqual(found, expected)

    def test_conservative_links_are_slower_whatever_their_unit(self):
        file = self.directory / "scenario.toml"
        file.write_text('[[link]]\nbetween = ["a", "b"]\nlatency = "9.5ms"\n'
                        'bandwidth = "56.5Gbps"\n[[link]]\nfrom = "a"\nto = "c"\n'
                        'latency_ratio = 0.25\n')
        self.assertEqual(weather.slower(file, 4),
                         ["link.a-b.latency=38ms", "link.a-b.bandwidth=14.125Gbps",
                          "link.a-c.latency_ratio=1"])
        file.write_text('[[link]]\nbetween = ["a", "b"]\ntrace = "wan.csv"\n')
        for text, factor in ((file.read_text(), 4), ("[[link", 4), ("link = 5", 4),
                             ("link = [5]", 4), ('[[link]]\nlatency = "1ms"\n', 0),
                             ('[[link]]\nlatency = "1ms"\n', math.nan)):
            file.write_text(text)
            with self.assertRaises(Failure):
                weather.slower(file, factor)

    def test_nothing_to_draw(self):
        code, said = self.figure("weather")
        self.assertEqual(code, 2)
        self.assertIn("--measure", said)


if __name__ == "__main__":
    unittest.main()
