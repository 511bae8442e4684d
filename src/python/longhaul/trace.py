"""Traces (HDF5) as tables: one row per op, names resolved. Layout: docs/trace.md."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from longhaul.contained import contained
from longhaul.errors import Failure, suggestion

SCHEMA_VERSION = 4
OLDEST_SCHEMA = 2

# The numbers in a file are positions in these, where it does not name them itself. The lists are
# src/base/vocabulary.hpp's; a kind that is none of a block, a message or a task is a collective.
KINDS = ("F", "B", "D", "W", "R", "send", "recv", "all_gather", "reduce_scatter", "all_reduce",
         "broadcast", "reduce", "gather", "scatter", "all_to_all", "host_task", "copy",
         "copy_out", "host_gather", "compress", "merge", "optimize", "copy_in", "prefill")
BLOCK_KINDS = KINDS[:5]
MESSAGE_KINDS = KINDS[5:7]
TASK_KINDS = KINDS[15:]
LEGS = ("whole", "scatter", "wan", "gather")
BOUND_KINDS = ("start", "dependency", "lane", "resource", "rendezvous")
LEVELS = ("node", "datacenter", "wan")
OUTCOMES = ("ran", "withdrawn", "late", "skipped", "undrawn")

# column of a position -> table of names beside the columns
TABLES = {"schedule": "schedules", "datacenter": "datacenters", "lane": "lanes",
          "resource": "resources", "collective": "collectives", "operator": "operators"}
COLUMNS = ("schedule", "iteration", "op", "rank", "replica", "device", "datacenter", "lane",
           "resource", "kind", "chunk", "microbatch", "part", "parts", "peer", "leg", "owner",
           "piece", "pieces", "collective", "step", "level", "layer", "operator", "slice", "slices",
           "outcome", "version", "request", "tokens", "size_bytes", "planned_ns", "ready_ns",
           "start_ns", "end_ns", "bound_by", "bound_kind")
# column that schema 3 brought -> what each row of an older file has in it
NEW_IN_3 = {"collective": -1, "step": -1, "level": -1, "layer": -1, "operator": -1, "slice": 0,
            "slices": 1, "outcome": 0, "version": -1}
NEW_IN_4 = {"request": -1, "tokens": -1}  # likewise schema 4
MAY_BE_NONE = ("resource", "collective", "operator", "level")  # of the columns of names
LARGEST = 2**53  # exact in a double, and safe to add up
INT32 = 2**31 - 1
# column -> (least, largest); positions in tables are checked against these
RANGES = {"iteration": (0, INT32), "op": (0, LARGEST), "rank": (0, INT32), "replica": (0, INT32),
          "device": (0, INT32), "chunk": (-1, INT32), "microbatch": (-1, INT32), "part": (0, INT32),
          "parts": (1, INT32), "peer": (-1, INT32), "owner": (0, INT32), "piece": (0, 254),
          "pieces": (1, 255), "step": (-1, INT32), "layer": (-1, INT32), "slice": (0, INT32),
          "slices": (1, INT32), "version": (-1, INT32), "request": (-1, INT32),
          "tokens": (-1, INT32), "size_bytes": (-LARGEST, LARGEST),
          "planned_ns": (0, LARGEST),
          "ready_ns": (-LARGEST, LARGEST), "start_ns": (0, LARGEST), "end_ns": (0, LARGEST),
          "bound_by": (-1, LARGEST)}


@dataclass
class Trace:
    """`predicted` and `measured` have the columns of TimelineRow; `schedule`, `datacenter`, `lane`,
    `resource`, `collective`, `operator`, `kind`, `leg`, `bound_kind`, `level` and `outcome` are
    categories named as in the file, in its order; a resource that an op did not hold is NaN, as is
    a collective, operator or level that it has none of. Times are nanoseconds as played. Rows of
    kinds that the file names and KINDS does not are left out: `left_out` says so."""

    file: Path
    predicted: pd.DataFrame
    measured: pd.DataFrame
    info: dict = field(default_factory=dict)
    left_out: list = field(default_factory=list)

    @property
    def time_scale(self):
        return float(self.info.get("time_scale", 1.0))

    @property
    def activation_budget_bytes(self):
        """Per device; 0: none."""
        return int(self.info.get("activation_budget_bytes", 0))

    @property
    def schedules(self):
        """Names in the order of the run."""
        names = dict.fromkeys(self.predicted["schedule"].cat.categories)
        names.update(dict.fromkeys(self.measured["schedule"].cat.categories))
        return list(names)


def find_trace(path):
    """The trace that `path` is, or the only one in the directory that it is."""
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise Failure(f"no trace {path} (no such file). Give an .h5 file or a run's directory.")
    files = [path / "trace.h5"] if (path / "trace.h5").is_file() else sorted(path.glob("*.h5"))
    if not files:
        raise Failure(f"no trace in {path} (no .h5 file). Give a directory that a run wrote.")
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise Failure(f"several traces in {path} ({names}). Name one of them.")
    return files[0]


def read_trace(path):
    """Throws Failure on anything but a sound trace of a schema that is known here; memory and time
    are bounded."""
    return contained(_read, find_trace(path))


def _read(path):
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise Failure(f"{path}: not an HDF5 file ({error}). Give a trace.") from error
    with file:
        info = {name: _text(value) for name, value in file.attrs.items()}
        version = info.get("schema_version", -1)
        if version not in range(OLDEST_SCHEMA, SCHEMA_VERSION + 1):
            raise Failure(f"{path}: schema_version is {version} (this reader knows {OLDEST_SCHEMA} "
                          f"to {SCHEMA_VERSION}). Use the scripts of the commit that wrote it.")
        _check_info(path, info)
        left_out = []
        predicted, measured = (_read_group(file, name, version, left_out)
                               for name in ("predicted", "measured"))
    return Trace(path, predicted, measured, info, left_out)


def message_bytes(directory):
    """The size of a run's largest message as the scenario has it; None without a trace."""
    try:
        with h5py.File(Path(directory) / "trace.h5", "r") as file:
            group = file["predicted"]
            kinds = _enumerators(group["kind"], KINDS)
            sizes = group["size_bytes"][()][group["kind"][()] == kinds.index("send")]
            return int(sizes.max()) if len(sizes) else None
    except (OSError, KeyError, ValueError):
        return None


def damaged(place, what):
    return Failure(f"{place}: {what} (not a valid trace). Check it with longhaul check.")


def _check_info(path, info):
    scale, budget = info.get("time_scale", 1.0), info.get("activation_budget_bytes", 0)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 < scale < math.inf:
        raise damaged(path, f"time_scale is {scale}")
    if not isinstance(budget, int) or not 0 <= budget <= LARGEST:
        raise damaged(path, f"activation_budget_bytes is {budget}")


def select(rows, schedule, iteration=None):
    """Rows of one schedule and iteration, ordered by op."""
    chosen = rows[rows["schedule"] == schedule]
    if iteration is not None:
        chosen = chosen[chosen["iteration"] == iteration]
    return chosen.sort_values("op", kind="stable").reset_index(drop=True)


def require_schedule(trace, name):
    if name not in trace.schedules:
        raise Failure(f'{trace.file} holds no schedule "{name}". '
                      + suggestion(name, trace.schedules))


def _text(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return value.item() if value.size == 1 else value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def collectives(rows):
    """Which of the rows are collectives that are one op."""
    return ~rows["kind"].isin(BLOCK_KINDS + MESSAGE_KINDS + TASK_KINDS)


def are_steps(rows):
    """Which of the rows are messages that a collective is made of."""
    if "collective" not in rows:
        return np.zeros(len(rows), dtype=bool)
    return (rows["kind"].isin(MESSAGE_KINDS) & rows["collective"].notna()).to_numpy(bool)


def collective_parts(rows):
    """`rank`, `start_ns` and `end_ns` of each rank's part of each collective: of one that is
    messages from the rank's first to its last."""
    whole = rows.loc[collectives(rows), ["rank", "start_ns", "end_ns"]]
    mine = rows[are_steps(rows)]
    if mine.empty:
        return whole
    groups = mine.groupby(["rank", mine["collective"].astype(str)], observed=True)
    parts = groups.agg(start_ns=("start_ns", "min"), end_ns=("end_ns", "max")).reset_index()
    return pd.concat([whole, parts[["rank", "start_ns", "end_ns"]]], ignore_index=True)


def _enumerators(dataset, names):
    """The names of its numbers, as the file has them; `names` where it has none."""
    numbers = h5py.check_enum_dtype(dataset.dtype)
    if not numbers:
        return names
    if not 0 <= min(numbers.values()) <= max(numbers.values()) <= 255:
        raise damaged(dataset.file.filename, "a kind has a number above 255")
    known = {number: name for name, number in numbers.items()}
    return tuple(known.get(number, _unnamed(number)) for number in range(max(known) + 1))


def _unnamed(number):
    return f"unnamed {number}"


def _names(group, table):
    if table not in group:
        return []
    names = group[table]
    if names.ndim != 1 or h5py.check_string_dtype(names.dtype) is None:
        raise damaged(group.file.filename, f"{group.name}/{table} holds no names")
    return [_text(value) for value in names[()]]


def _read_group(file, name, version, left_out):
    if name not in file:
        return _frame({column: np.zeros(0, np.int64) for column in COLUMNS}, {})
    group = file[name]
    new = (NEW_IN_3 if version < 3 else {}) | (NEW_IN_4 if version < 4 else {})
    stored = [column for column in COLUMNS if column not in new]
    missing = [column for column in stored if column not in group]
    if missing:
        raise Failure(f"{file.filename}: {name} has no column {', '.join(missing)} "
                      "(not a trace, or cut short). Check it with longhaul check.")
    columns = {column: _column(group, column) for column in stored}
    if len({len(values) for values in columns.values()}) != 1:
        raise damaged(file.filename, f"columns of {name} have several lengths")
    for column in COLUMNS:
        if column not in stored:
            columns[column] = np.full(len(columns["op"]), new[column], np.int32)
    columns = {column: columns[column] for column in COLUMNS}
    kinds = _enumerators(group["kind"], KINDS)
    columns = _without_new_kinds(name, columns, kinds, left_out)
    _check_values(f"{file.filename}: {name}", columns)
    names = {column: [] if column in new else _names(group, table)
             for column, table in TABLES.items()}
    names["kind"] = kinds
    return _frame(columns, names)


def _without_new_kinds(name, columns, kinds, left_out):
    """The columns without the rows of kinds that a newer program has; tells in `left_out`."""
    for number, kind in enumerate(kinds):
        if kind in KINDS or kind == _unnamed(number):
            continue
        stays = columns["kind"] != number
        if not stays.all():
            left_out.append(f"{name}: {np.count_nonzero(~stays)} rows of kind {number} ({kind}) are "
                            "left out (this program does not know it)")
            columns = {column: values[stays] for column, values in columns.items()}
    return columns


def _column(group, column):
    dataset = group[column]
    if not isinstance(dataset, h5py.Dataset) or dataset.ndim != 1 or dataset.dtype.kind not in "iu":
        raise damaged(group.file.filename, f"{group.name}/{column} is no column of whole numbers")
    return dataset[()]


def _check_values(place, columns):
    """The rules of src/trace/validate/check_values.cpp about single rows."""
    def all_of(what, good):
        if not np.all(good):
            raise damaged(place, f"row {int(np.argmin(good))} has {what}")
    for column, (low, high) in RANGES.items():
        values = columns[column]
        all_of(f"{column} {values[~((values >= low) & (values <= high))][:1].tolist()}",
               (values >= low) & (values <= high))
    for low, high in (("start_ns", "end_ns"), ("part", "parts"), ("piece", "pieces"),
                      ("slice", "slices")):
        values = columns[high].astype(np.int64) - columns[low].astype(np.int64)
        all_of(f"{low} above {high}", values >= (0 if low == "start_ns" else 1))
    message = np.isin(columns["kind"], [KINDS.index(kind) for kind in MESSAGE_KINDS])
    all_of("a peer that is no rank", ~message | np.isin(columns["peer"], columns["rank"]))


def _frame(columns, names):
    tables = {"kind": names.get("kind", KINDS), "leg": LEGS, "bound_kind": BOUND_KINDS,
              "level": LEVELS, "outcome": OUTCOMES,
              **{column: names.get(column, ()) for column in TABLES}}
    frame = pd.DataFrame(columns)
    for column, categories in tables.items():
        codes = frame[column].to_numpy(np.int64)
        if len(codes) and codes.min() < (-1 if column in MAY_BE_NONE else 0):
            raise Failure(f"column {column} names entry {codes.min()} (not a valid trace). Check it "
                          "with longhaul check.")
        if len(codes) and codes.max() >= len(categories):
            raise Failure(f"column {column} names entry {codes.max()} of a table of "
                          f"{len(categories)} (not a valid trace). Check it with longhaul check.")
        frame[column] = _named(codes, categories)
    return frame


def _named(codes, names):
    """Categories must differ, names in a file need not."""
    unique = list(dict.fromkeys(names))
    places = {name: place for place, name in enumerate(unique)}
    position = np.array([places[name] for name in names] + [-1])  # code -1: none
    return pd.Categorical.from_codes(position[codes], categories=unique)


def crosses(rows):
    """Which messages go to another datacenter."""
    home = rows.drop_duplicates("rank").set_index("rank")["datacenter"].astype(str)
    return rows["peer"].map(home) != rows["datacenter"].astype(str)
