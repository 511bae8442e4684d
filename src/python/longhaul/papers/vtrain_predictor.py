"""What vTrain's predictor says of runs in one node, taken apart: for each (hidden, tensor,
micro_batch) five sums of operators, for each size an all-reduce. Each row is linear in them, because
the last stage, which has the head, is the one that all others wait for."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longhaul.errors import Failure

COLUMNS = ("row", "gpus", "global_batch", "micro_batch", "sequence", "hidden", "layers", "vocabulary",
           "tensor", "data", "pipeline", "iteration_ms")
BOUNDARY_GBPS = 800  # of vTrain's formula between nodes, which it takes for all boundaries
NUMBER_BYTES = 2
LARGEST_TABLE_MIB = 1024  # of its all-reduce tables; larger ones by the rate of the largest
SMALL = 1e-11  # of the largest singular value: none
# Where rows do not tell two sums apart, the larger share goes to the product's side.
UNLIKELY = {"embedding": 20, "update": 20, "layer update": 20}


@dataclass(frozen=True)
class Row:
    name: str
    micro_batch: int
    sequence: int
    hidden: int
    layers: int
    vocabulary: int
    tensor: int
    data: int
    pipeline: int
    microbatches: int
    iteration_ns: float

    @property
    def group(self):
        return self.hidden, self.tensor, self.micro_batch

    @property
    def layers_of_stage(self):
        return self.layers // self.pipeline

    @property
    def boundary_ns(self):
        """Of what crosses between two stages, forward or back: vTrain counts it four times over."""
        size = 2 * self.micro_batch * self.sequence * self.hidden * NUMBER_BYTES
        return size / (BOUNDARY_GBPS * 2**30 / 8 / 4) * 1e9

    @property
    def gradient_mib(self):
        """Of the first stage, the largest: its layers, the embedding and, alone, the head."""
        h, t = self.hidden, self.tensor
        table = self.vocabulary // t * h
        layer = 12 * h * (h // t) + 3 * h // t + 4 * h // t + 6 * h
        numbers = layer * self.layers_of_stage + table + self.sequence * h
        if self.pipeline == 1:
            numbers += table
        return round(numbers * NUMBER_BYTES / 2**20)


def read_rows(path):
    path = Path(path)
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise Failure(f"{path}:1: the column \"{missing[0]}\" is missing (rows of vTrain's "
                              "predictor have it). Add it.")
            return [_row(path, number, line) for number, line in enumerate(reader, start=2)]
    except OSError as error:
        raise Failure(f"{path}: the file cannot be read ({error.strerror}). Correct its name.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failure(f"{path}: this is no CSV ({error}). Name another file.") from error


def _row(path, number, line):
    try:
        counts = {name: int(line[name]) for name in COLUMNS[1:-1]}
        time = float(line["iteration_ms"])
    except (TypeError, ValueError) as error:
        raise Failure(f"{path}:{number}: a value is no number ({error}). Correct it.") from error
    if min(counts.values()) < 1 or not 0 < time < 1e12:
        raise Failure(f"{path}:{number}: a count or a time is not above 0. Correct it.")
    global_batch, data = counts.pop("global_batch"), counts["data"]
    gpus, batch = counts.pop("gpus"), counts["micro_batch"]
    if gpus != counts["tensor"] * data * counts["pipeline"]:
        raise Failure(f"{path}:{number}: {gpus} gpus are not tensor x data x pipeline. Correct it.")
    if global_batch % (data * batch) or counts["layers"] % counts["pipeline"]:
        raise Failure(f"{path}:{number}: data x micro_batch divides global_batch, pipeline divides "
                      "layers; here not. Correct it.")
    return Row(name=line["row"], microbatches=global_batch // (data * batch),
               iteration_ns=time * 1e6, **counts)


def terms(row):
    """({name of an unknown: how often the iteration has it}, ns that are known)."""
    stages, count, group = row.pipeline, row.microbatches, row.group
    turns = count if stages == 1 else 1  # of the embedding: fill and drain alone, beside the head
    parts = {("layer", *group): (count + stages - 1) * row.layers_of_stage,
             ("embedding", *group): turns, ("head", *group): count,
             ("layer update", *group): row.layers_of_stage, ("update", *group): 1}
    if row.data > 1:
        parts[all_reduce_of(row)] = row.gradient_mib if row.gradient_mib > LARGEST_TABLE_MIB else 1
    known = 0 if stages == 1 else row.boundary_ns * (count + 2 * stages - 3)
    return parts, known


def all_reduce_of(row):
    if row.gradient_mib > LARGEST_TABLE_MIB:
        return "all-reduce of a MiB", row.data
    return "all-reduce", row.gradient_mib, row.data


def read_collectives(path, gpu="a100"):
    """{name of an all-reduce: its ns} of a table by MiB and ranks inside a node, in place, as vTrain
    looks it up: the columns gpu, operation, ranks, size_bytes and in_place_ns."""
    found = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if (line["gpu"], line["operation"]) == (gpu, "all_reduce"):
                    mib, left = divmod(int(line["size_bytes"]), 2**20)
                    if left == 0:
                        found["all-reduce", mib, int(line["ranks"])] = float(line["in_place_ns"])
    except OSError as error:
        raise Failure(f"{path}: the file cannot be read ({error.strerror}). Correct its name.") from error
    except (KeyError, TypeError, ValueError, UnicodeDecodeError, csv.Error) as error:
        raise Failure(f"{path}: this is no table of all-reduces ({error}). It has the columns gpu, "
                      "operation, ranks, size_bytes and in_place_ns.") from error
    if not found:
        raise Failure(f"{path}: there is no all_reduce of {gpu} in it. Name another table.")
    return found


class Recovered:
    """The least-squares solution of the rows' equations, and of which other rows it says all.
    `known`: numbers that need no row, as read_collectives() has them."""

    def __init__(self, rows, known=None):
        self.known = known or {}
        self.places = {}
        for row in rows:
            for name in terms(row)[0]:
                if name not in self.known:
                    self.places.setdefault(name, len(self.places))
        matrix = self._matrix(rows)
        self.scale = np.linalg.norm(matrix, axis=0)
        self.scale *= [UNLIKELY.get(name[0], 1) for name in self.places]
        wanted = np.array([row.iteration_ns - self._known_ns(row) for row in rows])
        left, values, ways = np.linalg.svd(matrix / self.scale, full_matrices=False)
        kept = values > values[0] * SMALL
        self.ways = ways[kept]
        solution = self.ways.T @ ((left[:, kept].T @ wanted) / values[kept])
        self.values = solution / self.scale
        self.numbers = int(kept.sum())
        self.residual_ns = float(np.abs(matrix @ self.values - wanted).max())

    def _known_ns(self, row):
        parts, known = terms(row)
        return known + sum(count * self.known.get(name, 0) for name, count in parts.items())

    def _matrix(self, rows):
        matrix = np.zeros((len(rows), len(self.places)))
        for place, row in enumerate(rows):
            for name, count in terms(row)[0].items():
                if name not in self.known:
                    matrix[place, self.places[name]] = count
        return matrix

    def tells(self, row):
        """Does the row follow from those that it was recovered from?"""
        if self.unseen(row):
            return False
        equation = self._matrix([row])[0] / self.scale
        outside = equation - self.ways.T @ (self.ways @ equation)
        return np.linalg.norm(outside) < 1e-6 * np.linalg.norm(equation)

    def unseen(self, row):
        """Numbers of the row that no row has which it was recovered from."""
        return [name for name in terms(row)[0] if name not in self.places and name not in self.known]

    def value(self, name):
        return self.known[name] if name in self.known else float(self.values[self.places[name]])
