"""Where a measured number comes from: each row of a measured CSV says it, or is refused."""

import contextlib
import hashlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pandas as pd

import fakes
import synthetic
from longhaul import provenance, records
from longhaul.commands import sweep
from longhaul.errors import Failure
from longhaul.figures.registry import FIGURES
from longhaul.running import runs, tools

RESULTS = tools.ROOT / "results"
REFERENCE = RESULTS / "reference"
# Kept from before rows carried these facts: (digest of the content, why it stays so). A file whose
# content changes, and any other file, needs all of them. results/README.md says what each lacks.
INCOMPLETE = {
    "atlas-fig9-measured.csv": ("6a546039d5d854e4", "from a tree with changes; no record is left"),
    "atlas-fig10-measured.csv": ("eeb768124afd6f59", "the same run as figure 9"),
    "atlas-ideas-measured.csv": ("397c94499c17dd0e", "6 iterations; no record is left"),
    "atlas-measured.csv": ("0671e59c749de9fb", "played by hand; no record is left"),
    "atlas-tcp.csv": ("502314e3791a8332", "no one watched the load during the runs"),
    "crosspipe-table5-measured.csv": ("760e1aaba0504245", "6 of 15 points are second runs, the first are gone"),
    "crosspipe-table6-measured.csv": ("9d7a6695b026b480", "6 of 15 points are second runs, the first are gone"),
    "fig11.csv": ("1a1f303a97488763", "3 iterations, M8 and M70 at two scales"),
    "link.csv": ("40df6e1698b283d7", "no record is left"),
    "profile-to-schedule.csv": ("6eed410087b94281", "no record is left but its commit"),
    "stages16.csv": ("cdac004e7c229c28", "3 iterations"),
    "table5-cells.csv": ("d173179eabb9af32", "5 iterations"),
}


def whole(rows=3):
    """A measured table with all facts."""
    return pd.DataFrame([{
        "schedule": f"s{index}", "measured_median_ns": 1000 + index, "command": "bench_pipeline x",
        "commit": "c0ffee12", "load_average": 0.0, "load_average_during": 0.5,
        "payload_sent_bytes": 65536, "payload_nominal_bytes": 33554432,
        "lateness_credit_ns": 0, "time_scale": 0.3, "n": 8, "measurement": 1, "measurements": 1}
        for index in range(rows)])


class Refused(unittest.TestCase):
    def test_a_table_with_all_facts_is_accepted(self):
        self.assertEqual(provenance.problems(whole()), [])

    def test_each_fact_is_asked_for(self):
        for name in provenance.COLUMNS:
            with self.subTest(fact=name):
                self.assertEqual(provenance.problems(whole().drop(columns=name)),
                                 [f"no column {name}"])
                table = whole().astype({name: object})
                table.loc[1, name] = None
                self.assertIn(f"1 of 3 rows without {name}", provenance.problems(table))

    def test_commands_are_of_no_machine(self):
        words = ["/home/me/longhaul/build/bin/bench_train", "/home/me/longhaul/benchmarks/scenarios/a.toml",
                 "--data", "text:/data/books/shakespeare.txt", "--out", "/tmp/x/runs/one", "--set", "a=1/2"]
        plain = ("build/bin/bench_train benchmarks/scenarios/a.toml --data text:shakespeare.txt --out "
                 "runs/one --set a=1/2")
        for command in (words, " ".join(words)):
            self.assertEqual(provenance.command_of({"command_line": command}), plain)
        self.assertEqual(provenance.command_of({"command_line": "bench_tcp --out /tmp/ab12/tcp"}),
                         "bench_tcp --out tcp")
        table = whole().assign(command=" ".join(words))
        self.assertEqual(provenance.problems(table), ["a command names a directory of one machine"])

    def test_what_no_rank_played_needs_none(self):
        rows = [{"source": source, "start_slot": 0.5} for source in (
            "predicted", "simulated", "timetable", "model", "paper", "published", "measured")]
        table = pd.DataFrame(rows)
        self.assertEqual(list(provenance.is_measured(table)), [False] * 6 + [True])
        stamped = provenance.stamp(table[6:], whole(1).iloc[0])
        self.assertEqual(provenance.problems(pd.concat([table[:6], stamped])), [])

    def test_values_that_are_refused(self):
        for name, value, text in (("commit", "721c7a465055-dirty", "a tree with changes"),
                                  ("commit", "main", "a tree with changes, or from none"),
                                  ("n", 7, "n = 7, wanted are 8"),
                                  ("time_scale", 0.4, "several time scales in one table: 0.3, 0.4"),
                                  ("measurement", 2, "1 rows are not of the first run")):
            with self.subTest(fact=name, value=value):
                table = whole()
                table.loc[1, name] = value
                found = provenance.problems(table)
                self.assertEqual(len(found), 1)
                self.assertIn(text, found[0])

    def test_predicted_rows_need_none(self):
        table = pd.concat([whole(), pd.DataFrame([{"schedule": "x", "predicted_ns": 1}])])
        self.assertEqual(provenance.problems(table), [])
        table["source"] = ["tcp", "tcp", "tcp", "predicted"]
        self.assertEqual(provenance.problems(table), [])


def digest_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


class Origin(unittest.TestCase):
    def test_each_run_once(self):
        origin = lambda **columns: provenance.origin(pd.DataFrame(columns))
        self.assertEqual(origin(a=[1]), {})
        self.assertEqual(origin(command=["", None]), {})
        self.assertEqual(origin(p99_us=[1, 2], command=["a", "a"], commit=[1234567, 1234567]),
                         {"command": "a", "commit": "1234567"})
        self.assertEqual(origin(measured_s=[1, None], commit=["new", "older"]),
                         {"command": "", "commit": "new"})
        self.assertEqual(origin(source=["measured", "model"], command=["a", "b"]),
                         {"command": "a", "commit": ""})


class Kept(unittest.TestCase):
    """The files of results/reference."""

    def files(self):
        for file in sorted(REFERENCE.glob("*.csv")):
            if not file.name.endswith("-verdicts.csv"):
                yield file, pd.read_csv(file)

    def test_measured_ones_have_all_facts_or_are_on_the_list(self):
        for file, table in self.files():
            if not provenance.is_measured(table).any():
                continue
            with self.subTest(file=file.name):
                found = provenance.problems(table)
                if file.name not in INCOMPLETE:
                    self.assertEqual(found, [])
                    continue
                self.assertTrue(found, "it has all facts: take it off the list")
                self.assertEqual(digest_of(file), INCOMPLETE[file.name][0],
                                 "its content changed: now it needs all facts, " + "; ".join(found))

    def test_the_others_are_simulated_by_a_figure(self):
        for file, table in self.files():
            if not provenance.is_measured(table).any():
                stem = file.stem.removesuffix("-simulated").removesuffix("-gains")
                self.assertIn(stem, FIGURES, file.name)

    def test_the_list_is_of_files_and_the_page_has_it(self):
        page = (RESULTS / "README.md").read_text(encoding="utf-8")
        section = page.split("## Files whose provenance is incomplete", 1)[1].split("\n## ")[0]
        listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
        self.assertEqual(listed, set(INCOMPLETE))
        for name, (_, reason) in INCOMPLETE.items():
            self.assertTrue((REFERENCE / name).is_file(), name)
            self.assertTrue(reason)


class Written(unittest.TestCase):
    """What starts runs and reads their records writes the facts."""

    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "bin").mkdir()
        fakes.install(self, self.directory / "bin")
        self.scenario = self.directory / "tiny.toml"
        self.scenario.write_text('[scenario]\nname = "tiny"\n[parallel]\nstages = 2\n')
        self.out = self.directory / "out"

    def sweep(self, *more):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = sweep.guarded(lambda: sweep.main([
                "--scenario", str(self.scenario), "--out", str(self.out), "--cells", "0:0",
                "--schedules", "1f1b", "--time-scale", "0.5", *more]), "sweep")
        return code, said.getvalue()

    def point(self, name="latency0-transfer0"):
        return self.out / "tiny/decoupled" / name

    def test_a_sweep_keeps_every_fact(self):
        with mock.patch("os.getloadavg", side_effect=[(load, 0, 0) for load in
                                                      (1, 1, 2.5, *[1.5] * 100)]):
            self.assertEqual(self.sweep()[0], 0)
        synthetic.write(self.point() / "trace.h5", synthetic.Timeline().play(
            "1f1b", synthetic.one_f_one_b(2, 2), {"F": 1, "B": 2, "D": 1, "W": 1}, 1, 1))
        row = records.pipeline_table(self.out).iloc[0]
        for name in provenance.COLUMNS:
            self.assertFalse(pd.isna(row[name]), name)
        self.assertEqual(row["load_average_during"], 2.5)
        self.assertEqual(row["payload_sent_bytes"], min(65536, row["payload_nominal_bytes"]))
        self.assertEqual((row["measurement"], row["measurements"], row["lateness_credit_ns"]),
                         (1, 1, 1000000))
        self.assertEqual((row["blocks"], row["network"]), ("timed", "emulated"))

    def test_a_record_alone_has_all_but_the_number_of_its_run(self):
        """What its starter counts is which run of its point it is; the rest is in the record."""
        record = {"command_line": "bench_pipeline x.toml", "git_commit": "c0ffee12",
                  "payload_bytes": 65536, "message_bytes": 1 << 20, "lateness_credit_ns": 0,
                  "compute": {"compute": "timed"}, "network": "emulated",
                  "environment": {"load_average": {"before": [0.5, 1, 1], "during": [2.5, 1, 1],
                                                   "after": [1.5, 1, 1]},
                                  "mpi": {"parameters": {"LONGHAUL_AWAKE": "2"}}}}
        facts = provenance.of(record, self.directory)
        self.assertEqual(facts["awake_processors"], 2)
        missing = {name for name in (*provenance.COLUMNS, *provenance.KINDS)
                   if facts.get(name) is None}
        self.assertEqual(missing, {"n", "time_scale", "measurement", "measurements"})
        self.assertEqual(facts["load_average_during"], 2.5)
        self.assertEqual((facts["payload_sent_bytes"], facts["payload_nominal_bytes"]),
                         (65536, 1 << 20))

    def test_a_record_without_its_load_has_that_of_its_starter(self):
        (self.directory / "run.json").write_text(
            '{"measurement": 1, "load_average": 0.0, "load_average_during": 0.5}')
        facts = provenance.of({"command_line": "bench_compress", "message_bytes": 0}, self.directory)
        self.assertEqual((facts["load_average"], facts["load_average_during"]), (0.0, 0.5))

    def test_a_point_measured_again_keeps_its_first_run(self):
        self.sweep()
        first = (self.point() / "record.json").read_text()
        for count in (1, 2):
            self.assertEqual(self.sweep("--again")[0], 0)
            self.assertTrue(self.point(f"latency0-transfer0.again-{count}").is_dir())
        self.assertEqual((self.point() / "record.json").read_text(), first)
        shown = records.pipeline_table(self.out)
        self.assertEqual((shown["measurement"].tolist(), shown["measurements"].tolist()),
                         ([1], [3]))
        self.assertIn("1 of 1 rows were measured more than once: the first run is shown",
                      provenance.again_note(shown))
        every = pd.read_csv(self.out / "sweep.csv")
        self.assertEqual(every["measurement"].tolist(), [1, 2, 3])

    def test_a_run_that_replaces_another_is_refused(self):
        self.sweep()
        self.point().rename(self.directory / "missed")
        code, said = self.sweep("--time-scale", "0.7")  # at another scale it is the same point
        self.assertEqual(code, 2)
        self.assertIn("the first run of some points is gone", said)
        kept = json.loads((self.point() / provenance.RUN_FILE).read_text())
        self.assertEqual(kept["measurement"], 2)
        with self.assertRaisesRegex(Failure, "never replaced"):
            records.pipeline_table(self.out)

    def test_a_tree_with_changes_shows(self):
        for record in ({"git_commit": "c0ffee1-dirty"},
                       {"git_commit": "c0ffee1", "environment": {"program": {"git_dirty": True}}}):
            self.assertEqual(provenance.commit_of(record), "c0ffee1-dirty")
        self.assertEqual(provenance.commit_of({"git_commit": "c0ffee1"}), "c0ffee1")

    def test_real_layers_send_whole_tensors(self):
        record = {"payload_bytes": 65536, "compute": {"compute": "real"}}
        self.assertEqual(provenance.sent_bytes(record, 1 << 20), 1 << 20)
        record["compute"]["compute"] = "timed"
        self.assertEqual(provenance.sent_bytes(record, 1 << 20), 65536)
        self.assertEqual(provenance.sent_bytes(record, 1 << 10), 1 << 10)

    def test_a_run_that_fails_counts_for_nothing(self):
        with mock.patch.dict("os.environ", {"FAIL_ONCE": "latency0-transfer0"}):
            self.assertEqual(self.sweep()[0], 3)
        self.assertFalse((self.out / runs.LEDGER).exists())


if __name__ == "__main__":
    unittest.main()
