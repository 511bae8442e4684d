"""Records that benchmarks write (record.json), as tables."""

import json
import math
import shlex
from pathlib import Path

from longhaul import provenance, scenario_text
from longhaul.errors import Failure
from longhaul.provenance import command_of
from longhaul.scenario_text import number

RECORD = "record.json"
RATIOS = ("latency_ratio", "transfer_ratio")
COLUMNS = ["schedule", "comm", "scenario", "latency_ratio", "transfer_ratio", "time_scale", "n",
           "predicted_ns", "measured_median_ns", "measured_min_ns", "measured_p95_ns",
           "measured_median_low_ns", "measured_median_high_ns", "difference_percent", "check",
           "load_average", "load_average_during", "load_average_after", "payload_sent_bytes",
           "payload_nominal_bytes", "lateness_credit_ns", "blocks", "network", "measurement",
           "measurements", "command", "commit"]
AGAIN = ".again-"  # after a point's name: its second run and later ones


def read_record(path):
    """A record.json, or the directory that holds one."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    try:
        record = json.loads(path.read_text())
    except OSError as error:
        raise Failure(f"no record {path} ({error.strerror}). Give a directory that a benchmark "
                      "wrote.") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path}: not JSON ({error}). Give a record that a benchmark "
                      "wrote.") from error
    if not isinstance(record, dict):
        raise Failure(f"{path}: not a record (no JSON object). Give one that a benchmark wrote.")
    return record


def is_finished(directory):
    """Benchmarks write their record last and whole; one that was told to drain says so in it."""
    try:
        return "stopped" not in read_record(directory)
    except Failure:
        return False


def read_finished(directory):
    """The record of a run that came to its end."""
    record = read_record(directory)
    if "stopped" in record:
        raise Failure(f"{directory} was stopped after {record['stopped'].get('pairs')} of "
                      f"{record['stopped'].get('pairs_asked')} pairs. Measure it again.")
    return record


def local_steps(curve):
    """Updates of an exchange of a curve of bench_train: its points count updates, its losses and
    periods are of exchanges."""
    return (curve.get("rival") or {}).get("local_steps", 1)


def pipeline_table(directory, runs="first"):
    """All records of bench_pipeline below `directory`: one row a schedule and point, of the
    point's first run; `runs`="all": a row for each of its runs."""
    rows = []
    for file in sorted(Path(directory).rglob(RECORD)):
        if any(".outdated-" in part for part in file.relative_to(directory).parts):
            continue  # a sweep has set it aside
        record = read_record(file)
        point = file.parent.relative_to(directory).as_posix().split(AGAIN)[0]
        try:
            if record.get("schedules"):
                rows += [row | {"point": point} for row in pipeline_rows(record, file.parent)]
        except (AttributeError, KeyError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise Failure(f"{file}: not a record of bench_pipeline ({type(error).__name__}: {error}; it "
                          "may be damaged). Remove it, and run its point again.") from error
    import pandas as pd  # half a second that no other function here needs
    table = pd.DataFrame(rows, columns=[*COLUMNS, "point"])
    if table.empty:
        return table[COLUMNS]
    table["measurements"] = table.groupby("point")["measurement"].transform("max")
    table = table.sort_values(["point", "measurement"], kind="stable", na_position="first")
    provenance.require_first(table.drop_duplicates("point"), directory)
    if runs == "first":
        table = table[table["measurement"].isna() | (table["measurement"] == 1)]
    return table[COLUMNS].reset_index(drop=True)


def pipeline_rows(record, directory=None):
    facts = provenance.of(record, directory)
    settings = overrides_of(facts["command"])
    common = {
        **facts,
        "comm": record.get("comm") or option_of(facts["command"], "--comm") or "decoupled",
        "scenario": scenario_of(record),
        "latency_ratio": setting(record, settings, "link", "latency_ratio"),
        "transfer_ratio": setting(record, settings, "link", "transfer_ratio"),
        "time_scale": time_scale_of(record, settings),
    }
    return [{**common, **schedule_row(entry)} for entry in record["schedules"]]


def facts_of(directory, schedule):
    """Of one schedule's run, for a picture of one of its `n` iterations; empty where no record
    stands beside the trace."""
    if not is_finished(directory):
        return {}
    rows = pipeline_rows(read_record(directory), Path(directory))
    return next((row for row in rows if row["schedule"] == schedule), {})


def schedule_row(entry):
    predicted, median = entry["predicted_ns"], entry["measured_median_ns"]
    row = {name: entry.get(name)
           for name in ("schedule", "n", "check", "measured_min_ns", "measured_p95_ns",
                        "measured_median_low_ns", "measured_median_high_ns")}
    row.update(predicted_ns=predicted, measured_median_ns=median)
    row["difference_percent"] = round(100 * (median / predicted - 1), 3) if predicted else None
    return row


def overrides_of(command):
    """--set PATH=VALUE of a command line; a path set twice has its last value."""
    words = shlex.split(command)
    pairs = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--set"]
    pairs += [word[len("--set="):] for word in words if word.startswith("--set=")]
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def option_of(command, name):
    words = shlex.split(command)
    for index, word in enumerate(words):
        if word == name and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(name + "="):
            return word[len(name) + 1:]
    return None


def scenario_of(record):
    """Its name, wherever the record has it: a name, an object, or TOML text."""
    scenario = record.get("scenario", "")
    if isinstance(scenario, dict):
        return str(scenario.get("name", ""))
    if "=" not in str(scenario):
        return str(scenario)
    return scenario_text.name_of(scenario, command_of(record)) or str(scenario)


def setting(record, overrides, section, key):
    """A number of the scenario: from --set, else from its TOML text; NaN where neither has it."""
    texts = [record.get(name) for name in ("scenario_text", "scenario")]
    text = next((text for text in texts if isinstance(text, str) and "=" in text), "")
    return scenario_text.setting(text, section, key, overrides)


def time_scale_of(record, overrides):
    if "time_scale" in record:
        return number(record["time_scale"])
    found = setting(record, overrides, "run", "time_scale")
    return 1.0 if math.isnan(found) else found


def link_table(directory):
    """Samples that bench_link wrote: test (latency, bandwidth), target_ns, sample_ns,
    error_percent."""
    record = read_record(directory)
    facts = provenance.of(record, Path(directory))
    facts |= {"time_scale": 1.0, "lateness_credit_ns": 0}
    if facts["payload_nominal_bytes"] is None:
        facts["payload_nominal_bytes"] = facts["payload_sent_bytes"]
    rows = []
    for entry in record.get("measurements", []):
        target, samples = entry["target_ns"], entry["samples_ns"]
        rows += [provenance.add({"test": entry["test"], "target_ns": target, "sample_ns": sample,
                                 "error_percent": 100 * (sample / target - 1),
                                 "n": len(samples)}, facts) for sample in samples]
    if not rows:
        raise Failure("the record holds no measurements of a link. Give what bench_link wrote.")
    import pandas as pd
    return pd.DataFrame(rows)
