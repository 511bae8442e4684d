"""Damaged files of all kinds that Python reads: one line and exit code 2, never a traceback. A traceback
is an exception here, so any that is not a Failure fails the test. The seeds are fixed."""

import contextlib
import io
import json
import os
import random
import shutil
import struct
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

import h5py
import matplotlib.figure
import numpy as np

import fakes
import synthetic
from longhaul.commands import figure, sweep
from longhaul.contained import contained
from longhaul.errors import Failure, guarded
from longhaul.running import runs
from longhaul.trace import COLUMNS, RANGES, TABLES, read_trace

TRACES, SWEEPS = 160, 80
SCENARIO = '[scenario]\nname = "tiny"\n[parallel]\nstages = 4\n'
UNIT = {"F": 1000, "B": 2000}


def damage(content, source):
    """Another content: bits flipped (in the first bytes or anywhere), bytes replaced by extreme numbers, a
    part cut out, the end cut off."""
    content = bytearray(content)
    reach = min(len(content), 2048 if source.random() < .5 else len(content))
    kind = source.choice(("flip", "flips", "number", "hole", "cut"))
    at = source.randrange(reach)
    if kind == "flip":
        content[at] ^= 1 << source.randrange(8)
    elif kind == "flips":
        for _ in range(source.randint(2, 30)):
            content[source.randrange(reach)] ^= 1 << source.randrange(8)
    elif kind == "number":
        value = source.choice((0, 1, 255, 2**31, 2**40, 2**63, 2**64 - 1))
        content[at:at + 8] = struct.pack("<Q", value)
    elif kind == "hole":
        del content[at:at + source.randint(1, 64)]
    else:
        del content[at:]
    return bytes(content)


class DamageTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def call(self, main, *words):
        """(exit code, lines on stderr) of a command."""
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said), \
                warnings.catch_warnings():
            warnings.simplefilter("error")  # one would be a line of its own
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            code = guarded(lambda: main([str(word) for word in words]), "me")
        return code, said.getvalue().splitlines()


class Traces(DamageTest):
    def trace(self):
        predicted, measured = synthetic.Timeline(), synthetic.Timeline()
        predicted.play("1f1b", synthetic.one_f_one_b(2, 2), UNIT, 500, 200)
        for iteration in range(2):
            measured.play("1f1b", synthetic.one_f_one_b(2, 2), UNIT, 500, 200, iteration)
        return synthetic.write(self.directory / "t.h5", predicted, measured, 0.5, 3000)

    def test_damaged_bytes(self):
        file, source, codes = self.trace(), random.Random(14), []
        content = file.read_bytes()
        coarse = matplotlib.figure.Figure.savefig
        with mock.patch.object(matplotlib.figure.Figure, "savefig",
                               lambda self, *args, **named: coarse(self, *args, **{**named, "dpi": 20})):
            for number in range(TRACES):
                file.write_bytes(damage(content, source))
                with self.subTest(number=number):
                    code, said = self.call(figure.main, "timeline", "--trace", file, "--path",
                                           "--memory", "--out", self.directory / "out")
                    codes.append(code)
                    self.assertIn((code, len(said)), ((0, 0), (2, 1)), said)
        self.assertGreater(codes.count(2), TRACES // 4, "most damage is seen")
        self.assertEqual([], [path for path in self.directory.iterdir()
                              if path.name not in ("t.h5", "out")])

    def lie(self, change, why):
        with h5py.File(self.trace(), "a") as file:
            change(file)
        with self.assertRaisesRegex(Failure, why):
            read_trace(self.directory / "t.h5")

    def test_lies_in_sound_hdf5(self):
        def column(name, values):
            def change(file):
                old = file[f"predicted/{name}"][()]
                del file[f"predicted/{name}"]
                file[f"predicted/{name}"] = values(old)
            return change

        def attribute(name, value):
            return lambda file: file.attrs.__setitem__(name, value)
        for change, why in (
                (column("rank", lambda old: old - 1), "rank \\[-1\\]"),
                (column("rank", lambda old: old[:-1]), "several lengths"),
                (column("op", lambda old: old * 1.5), "no column of whole numbers"),
                (column("op", lambda old: old.reshape(-1, 1)), "no column of whole numbers"),
                (column("end_ns", lambda old: old - 9999), "end_ns"),
                (column("end_ns", lambda old: old + 2**60), "end_ns"),
                (column("part", lambda old: old + 1), "part above parts"),
                (column("slice", lambda old: old + 1), "slice above slices"),
                (column("slices", lambda old: old - 1), "slices \\[0\\]"),
                (column("step", lambda old: old - 1), "step \\[-2\\]"),
                (column("level", lambda old: old + 4), "column level names entry 3 of a table of 3"),
                (column("outcome", lambda old: old - 1), "column outcome names entry -1"),
                (column("operator", lambda old: old + 1), "operator names entry 0 of a table of 0"),
                (column("collective", lambda old: old - 1), "column collective names entry -2"),
                (column("peer", lambda old: np.where(old >= 0, 7, old)), "a peer that is no rank"),
                (column("schedule", lambda old: old - 1), "column schedule names entry -1"),
                (lambda file: file.__delitem__("predicted/schedules"), "a table of 0"),
                (attribute("time_scale", np.nan), "time_scale is nan"),
                (attribute("time_scale", 0.0), "time_scale is 0"),
                (attribute("time_scale", "x"), "time_scale is x"),
                (attribute("schema_version", "x"), "schema_version is x"),
                (attribute("activation_budget_bytes", -1), "activation_budget_bytes is -1")):
            self.lie(change, why)

    def test_names_that_are_paths_or_formulas(self):
        with h5py.File(self.trace(), "a") as file:
            for group, table in (("predicted", "schedules"), ("measured", "schedules"),
                                 ("predicted", "datacenters"), ("measured", "datacenters")):
                names = [b"../$\\no$" + bytes([7 + i]) for i in range(len(file[f"{group}/{table}"]))]
                del file[f"{group}/{table}"]
                file[group].create_dataset(table, data=names, dtype=h5py.string_dtype())
        out = self.directory / "deep" / "out"
        code, said = self.call(figure.main, "timeline", "--trace", self.directory / "t.h5", "--out",
                               out)
        self.assertEqual((0, []), (code, said))
        self.assertEqual(2, len(list(out.iterdir())))
        self.assertEqual(["out"], [path.name for path in out.parent.iterdir()])

    def test_every_column_has_its_range(self):
        self.assertEqual(set(COLUMNS), set(RANGES) | set(TABLES)
                         | {"kind", "leg", "bound_kind", "level", "outcome"})


class Contained(unittest.TestCase):
    """What a reader may do to its process."""

    def failure(self, read):
        with self.assertRaises(Failure) as caught:
            contained(read, Path("some.h5"))
        self.assertEqual(2, caught.exception.code)
        self.assertTrue(str(caught.exception).startswith("some.h5: cannot be read ("))
        return str(caught.exception)

    def test_harm(self):
        self.assertIn("signal 11", self.failure(lambda _: os.kill(os.getpid(), 11)))
        self.assertIn("gave up", self.failure(lambda _: os._exit(3)))
        self.assertIn("MemoryError", self.failure(lambda _: bytearray(1 << 40)))
        self.assertIn("KeyError", self.failure(lambda _: {}["x"]))
        self.assertIn("gave up", self.failure(lambda _: (lambda: 0)))  # cannot be handed over

    def test_texts_of_libraries_are_left_out(self):
        def damaged(_):
            raise KeyError("Unable to synchronously open object (incorrect metadata checksum)")

        self.assertIn("cannot be read (KeyError; the file", self.failure(damaged))
        self.assertIn("(No such file or directory; the file", self.failure(lambda _: open("/no/file").read()))

    def test_time(self):
        with mock.patch.multiple("longhaul.contained", LEAST_S=1, WAIT_FACTOR=1):
            self.assertIn("reader", self.failure(lambda _: time.sleep(60)))

    def test_answers(self):
        self.assertEqual([1, "a"], contained(lambda _: [1, "a"], "x"))
        with self.assertRaisesRegex(Failure, "^no$") as caught:
            contained(mock.Mock(side_effect=Failure("no", 3)), "x")
        self.assertEqual(3, caught.exception.code)


class Sweeps(DamageTest):
    def setUp(self):
        super().setUp()
        (self.directory / "bin").mkdir()
        fakes.install(self, self.directory / "bin")
        (self.directory / "tiny.toml").write_text(SCENARIO)
        self.kept, self.out = self.directory / "kept", self.directory / "out"
        code, _ = self.call(sweep.main, "--scenario", self.directory / "tiny.toml", "--out", self.out,
                            "--cells", "0:0", "--schedules", "1f1b")
        self.assertEqual(0, code)
        self.out.rename(self.kept)

    def files(self):
        point = "tiny/decoupled/latency0-transfer0"
        return ["sweep.json", f"{point}.input.json", f"{point}/record.json", f"{point}/input.json"]

    def resume(self, name, content):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(self.kept, self.out)
        (self.out / name).write_bytes(content)
        return self.call(sweep.main, "--resume", self.out)

    def test_damaged_bytes(self):
        source, codes = random.Random(15), []
        for number in range(SWEEPS):
            name = self.files()[number % 4]
            with self.subTest(number=number, file=name):
                code, said = self.resume(name, damage((self.kept / name).read_bytes(), source))
                codes.append(code)
                # What is done anew is said as well; a point whose command is damaged fails.
                self.assertIn(code, (0, 2, 3), said)
                if code == 2:
                    self.assertEqual(1, len([line for line in said if line.startswith("me: ")]), said)
        self.assertGreater(codes.count(2), 5)

    def test_lies_in_sound_json(self):
        text = (self.kept / "sweep.json").read_text()
        for old, new in (('"scenario": [', '"scenario": [3, '), ('"cells": "0:0"', '"cells": 5'),
                         ('"comm": "decoupled"', '"comm": null'), ('"set": []', '"set": [1]'),
                         ('"extra": ""', '"extra": "\'"'), ('"iterations": null', '"iterations": "x"'),
                         ('"schedules": "1f1b"', '"schedule": "1f1b"')):
            self.assertIn(old, text)
            code, said = self.resume("sweep.json", text.replace(old, new).encode())
            self.assertEqual((2, 1), (code, len(said)), said)
            self.assertIn("sweep.json", said[0])
        record = json.loads((self.kept / self.files()[2]).read_text())
        for name, value in (("schedules", [3]), ("schedules", [{}]), ("command_line", "'"),
                            ("schedules", {"a": 1}), ("environment", [1]), ("scenario", [1])):
            code, said = self.resume(self.files()[2], json.dumps({**record, name: value}).encode())
            self.assertIn(code, (0, 2), said)
            self.assertLessEqual(len(said), 1, said)

    def test_a_damaged_input_is_named(self):
        """Not the scenario, which has not changed: the point is done anew, and its run set aside."""
        for name in (self.files()[1], self.files()[3]):
            for content in (b"{", b"[]", b"", b"\xff\xfe"):
                files = [self.kept / self.files()[2], self.kept / runs.LEDGER]
                whole = [file.read_bytes() for file in files]
                for file in files:
                    file.unlink()  # it was cut short, so its input counts
                code, said = self.resume(name, content)
                for file, was in zip(files, whole):
                    file.write_bytes(was)
                self.assertEqual(0, code, said)
                self.assertIn(f"{name.split('/')[-1]} is damaged", " ".join(said))
                self.assertFalse([line for line in said if "tiny.toml" in line], said)
                self.assertEqual(1, len(list(self.out.rglob("*.unfinished-1"))))


if __name__ == "__main__":
    unittest.main()
