"""The facts that each row of a measured CSV carries beside its numbers, and what is refused without
them."""

import json
import re
import shlex

from longhaul.errors import Failure

# Of a row's run. The load is that of one minute, before it and the largest while it went on; bytes
# are those of a message; `measurement` counts the runs of one point by one program from 1, of which
# there are `measurements`.
COLUMNS = ("command", "commit", "load_average", "load_average_during", "payload_sent_bytes",
           "payload_nominal_bytes", "lateness_credit_ns", "time_scale", "n", "measurement",
           "measurements")
# What blocks and links were, for which a verdict on the model asks, and how many processors were
# kept from halting (see awake), each of which adds 1 to the loads.
KINDS = ("blocks", "network", "awake_processors")
LEAST_N = 8
PATHS = re.compile(r"(?<![^\s=:,'])/[^\s=:,']+")  # absolute ones, as words or values of a command
COMMIT = re.compile(r"[0-9a-f]{7,40}")
# A CSV with a value in a column of these names, or one that begins so, is measured.
MARKS = ("measured", "sample_ns", "loss")
NOT_MEASURED = ("predicted", "simulated", "timetable", "model", "paper", "published")  # in a column `source`
RUN_FILE = "run.json"  # in a run's directory, by the one that started it


def of(record, directory=None):
    """{column: fact} of a benchmark's record, without `n`; None for what the record does not say.
    `directory`: the run's, for what stands beside its record."""
    kept = kept_of(directory)
    nominal = record.get("message_bytes")
    if nominal is None and directory is not None:
        from longhaul.trace import message_bytes  # reads HDF5, which few callers need
        nominal = message_bytes(directory)  # of a record from before it had them
    return {
        "command": command_of(record), "commit": commit_of(record),
        "load_average": load_average(record) if load_average(record) is not None
        else kept.get("load_average"),
        "load_average_during": load_average(record, "during") or kept.get("load_average_during"),
        "load_average_after": load_average(record, "after"),
        "payload_sent_bytes": sent_bytes(record, nominal), "payload_nominal_bytes": nominal,
        "lateness_credit_ns": record.get("lateness_credit_ns"),
        "measurement": kept.get("measurement"), "measurements": kept.get("measurement"),
        "blocks": blocks_of(record), "network": record.get("network"),
        "awake_processors": awake_processors(record, kept),
    }


def kept_of(directory):
    """What the one that started a run wrote beside its record."""
    try:
        return json.loads((directory / RUN_FILE).read_text())
    except (OSError, ValueError, TypeError):
        return {}


def command_of(record):
    """From the root of a checkout: no directory of one machine stands in it."""
    command = record.get("command_line", "")
    text = shlex.join(command) if isinstance(command, list) else str(command)
    return PATHS.sub(lambda found: as_in_checkout(found[0]), text)


def as_in_checkout(path):
    """Of an absolute path: what follows the checkout's root, or its name where it lies elsewhere."""
    for folder in ("build/bin", "benchmarks", "runs", "results"):
        if f"/{folder}/" in path:
            return f"{folder}/{path.split(f'/{folder}/', 1)[1]}"
    return path.rsplit("/", 1)[1]


def commit_of(record):
    """It ends in -dirty where the program's tree had changes."""
    commit = str(record.get("git_commit", ""))
    environment = record.get("environment")
    program = environment.get("program", {}) if isinstance(environment, dict) else {}
    dirty = isinstance(program, dict) and program.get("git_dirty")
    return f"{commit}-dirty" if dirty and not commit.endswith("-dirty") else commit


def load_average(record, when="before"):
    """Of the last minute, when the run began or ended."""
    environment = record.get("environment")
    found = environment.get("load_average") if isinstance(environment, dict) else None
    if isinstance(found, dict):
        found = found.get(when)
    elif when != "before":
        return None
    return found[0] if isinstance(found, list) and found else found


def awake_processors(record, kept):
    """How many were kept from halting; None of a run before this was known."""
    environment = record.get("environment")
    mpi = environment.get("mpi") if isinstance(environment, dict) else None
    parameters = mpi.get("parameters", {}) if isinstance(mpi, dict) else {}
    count = parameters.get("LONGHAUL_AWAKE", kept.get("awake_processors"))
    return None if count is None else int(count)


def blocks_of(record):
    """"timed": they take their modelled time. "real": they compute."""
    compute = record.get("compute")
    return compute.get("compute") if isinstance(compute, dict) else compute


def sent_bytes(record, nominal):
    """Of a message, in truth: real layers send whole tensors, others at most --payload."""
    sent = record.get("payload_bytes")
    if blocks_of(record) == "real":
        return nominal
    return sent if nominal is None or sent is None else min(sent, nominal)


def is_measured(table):
    """Which of its rows are."""
    columns = [name for name in table.columns
               if name in MARKS or name.startswith(MARKS[0])]
    found = table[columns].notna().any(axis=1)
    if "source" in table.columns:
        found |= ~table["source"].isin(NOT_MEASURED)
    return found


def origin(table):
    """{"command": .., "commit": ..} of the runs that a figure's numbers come from, each once, "; "
    between several: of its measured rows, or of all where no column says which are; empty where
    none has one."""
    measured = is_measured(table)
    rows = table[measured] if measured.any() else table
    found = {name: "; ".join(dict.fromkeys(text for text in rows[name].dropna().astype(str) if text))
             if name in rows.columns else "" for name in ("command", "commit")}
    return found if any(found.values()) else {}


def problems(table):
    """Why a measured CSV is refused, a line each; none: it is accepted."""
    rows = table[is_measured(table)]
    found = []
    for name in COLUMNS:
        if name not in rows.columns:
            found.append(f"no column {name}")
        elif empty := int((rows[name].isna() | (rows[name].astype(str) == "")).sum()):
            found.append(f"{empty} of {len(rows)} rows without {name}")
    if "commit" in rows.columns:
        odd = [name for name in rows["commit"].dropna().astype(str).unique()
               if not COMMIT.fullmatch(name)]
        if odd:
            found.append(f"made from a tree with changes, or from none that is known: {odd[0]}")
    if "command" in rows.columns and rows["command"].astype(str).str.contains(PATHS).any():
        found.append("a command names a directory of one machine")
    if "n" in rows.columns and (least := rows["n"].astype(float).min()) < LEAST_N:
        found.append(f"n = {least:g}, wanted are {LEAST_N} at least")
    if "time_scale" in rows.columns and len(scales := set(rows["time_scale"].dropna())) > 1:
        found.append("several time scales in one table: "
                     + ", ".join(f"{scale:g}" for scale in sorted(scales)))
    if "measurement" in rows.columns:
        if later := int((rows["measurement"].astype(float) > 1).sum()):
            found.append(f"{later} rows are not of the first run of their point")
    return found


def add(row, run):
    """The facts of a run beside a figure's own numbers of it; empty where ranks did not run it."""
    return row | {name: run.get(name) for name in (*COLUMNS, *KINDS) if name not in row}


def stamp(table, run):
    """A table, all of whose rows are of one run, with its facts."""
    return table.assign(**{name: run.get(name) for name in (*COLUMNS, *KINDS)})


def later_note(table):
    """For people, where rows are not of the first run of their point; else empty."""
    if "measurement" not in table.columns:
        return ""
    later = int((table["measurement"].astype(float) > 1).sum())
    return f"{later} measured rows are of a second run: the first is gone." if later else ""


def again_note(table):
    """For people, where points were measured more than once; else empty."""
    if "measurements" not in table.columns:
        return ""
    again = int((table["measurements"].astype(float) > 1).sum())
    return (f"{again} of {len(table)} rows were measured more than once: the first run is shown, "
            "the others are beside it.") if again else ""


def require_first(table, results):
    """Refuses a directory whose points lost their first runs."""
    if (table["measurement"].astype(float) > 1).any():
        raise Failure(f"{results}: the first run of some points is gone (runs may be added with "
                      "--again, never replaced). Bring it back, or measure into another DIR.")
