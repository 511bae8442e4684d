"""Small traces made here, in the layout of docs/trace.md, under the decoupled model of time."""

import h5py
import numpy as np

from longhaul.trace import BOUND_KINDS, COLUMNS, KINDS, NEW_IN_3, NEW_IN_4, SCHEMA_VERSION, TABLES


# Bytes of a block's activations; messages have 1024.
SIZES = {"F": 1024, "B": -1024, "D": -512, "W": -512, "R": 0}


def one_f_one_b(stages, microbatches):
    """Per device, in order: (kind, chunk, microbatch)."""
    orders = []
    for stage in range(stages):
        warmup = min(stages - stage - 1, microbatches)
        order = [("F", stage, m) for m in range(warmup)]
        for m in range(microbatches - warmup):
            order += [("F", stage, warmup + m), ("B", stage, m)]
        orders.append(order + [("B", stage, m)
                               for m in range(microbatches - warmup, microbatches)])
    return orders


def zb_h1(stages, microbatches):
    orders = []
    for stage in range(stages):
        warmup = min(stages - stage - 1, microbatches)
        order = [("F", stage, m) for m in range(warmup)]
        weights = 0
        for m in range(microbatches):
            if warmup + m < microbatches:
                order.append(("F", stage, warmup + m))
            order.append(("D", stage, m))
            if m >= stage:
                order.append(("W", stage, weights))
                weights += 1
        orders.append(order + [("W", stage, m) for m in range(weights, microbatches)])
    return orders


def interleaved(stages, microbatches, chunks=2):
    """Megatron's; microbatches divisible by stages."""
    orders = []
    total = microbatches * chunks

    def item(k, kind, stage):
        chunk = k % (stages * chunks) // stages
        if kind == "B":
            chunk = chunks - 1 - chunk
        return kind, chunk * stages + stage, k // (stages * chunks) * stages + k % stages

    for stage in range(stages):
        warmup = min(2 * (stages - stage - 1) + (chunks - 1) * stages, total)
        order = [item(k, "F", stage) for k in range(warmup)]
        for k in range(total - warmup):
            order += [item(warmup + k, "F", stage), item(k, "B", stage)]
        orders.append(order + [item(k, "B", stage) for k in range(total - warmup, total)])
    return orders


class Timeline:
    """Rows of several schedules and iterations, with the tables they name."""

    def __init__(self, datacenters=("west", "east")):
        self.tables = {"schedules": [], "datacenters": list(datacenters), "lanes": [],
                       "resources": [], "collectives": [], "operators": []}
        self.rows = []

    def position(self, table, name):
        names = self.tables[table]
        if name not in names:
            names.append(name)
        return names.index(name)

    def play(self, schedule, orders, durations, latency, transfer, iteration=0, factor=1.0):
        """Devices lie evenly in the datacenters; `durations` are of a device, in ns."""
        _Player(self, schedule, orders, durations, (latency, transfer), iteration, factor).run()
        return self


class _Player:
    def __init__(self, timeline, schedule, orders, durations, delay, iteration, factor):
        self.timeline, self.orders, self.factor = timeline, orders, factor
        self.schedule = timeline.position("schedules", schedule)
        self.iteration = iteration
        self.chunks = {rank: sorted({block[1] for block in order})
                       for rank, order in enumerate(orders)}
        self.holder = {chunk: rank for rank, chunks in self.chunks.items() for chunk in chunks}
        self.durations, self.delay = durations, delay
        self.arrivals, self.link, self.next_op = {}, {}, 0

    def datacenter(self, rank):
        return rank * len(self.timeline.tables["datacenters"]) // len(self.orders)

    def run(self):
        position = [0] * len(self.orders)
        last = [None] * len(self.orders)  # (end, op)
        moved = True
        while moved:
            moved = False
            for rank, order in enumerate(self.orders):
                while position[rank] < len(order) and self.input_of(order[position[rank]]) != "no":
                    last[rank] = self.block(rank, order[position[rank]], last[rank])
                    position[rank] += 1
                    moved = True
        assert all(p == len(o) for p, o in zip(position, self.orders)), "deadlock"

    def input_of(self, block):
        kind, chunk, m = block
        if kind == "W":
            return None
        key = ("F", chunk - 1, m) if kind == "F" else (
            ("F", chunk, m) if chunk + 1 == len(self.holder) else ("back", chunk + 1, m))
        if kind == "F" and chunk == 0:
            return None
        return self.arrivals.get(key, "no")

    def block(self, rank, block, last):
        kind, chunk, m = block
        duration = int(self.durations[kind] * self.factor / len(self.chunks[rank]))
        arrival = self.input_of(block)
        start, bound, why = (last[0], last[1], "lane") if last else (0, -1, "start")
        if arrival and arrival[0] > start:
            start, bound, why = arrival[0], arrival[1], "dependency"
        op = self.row(rank, kind, chunk, m, (start, start, start + duration), bound, why,
                      lane="compute", resource=f"device {rank}", planned=duration)
        self.pass_on(rank, block, start + duration, op)
        return start + duration, op

    def pass_on(self, rank, block, end, op):
        kind, chunk, m = block
        if kind == "W":
            return
        key = ("F" if kind == "F" else "back", chunk, m)
        to = self.holder.get(chunk + (1 if kind == "F" else -1))
        if to is None or to == rank:
            self.arrivals[key] = (end, op)
            return
        wan = self.datacenter(rank) != self.datacenter(to)
        latency, transfer = self.delay if wan else (0, 0)
        free, holder = self.link.get((rank, to), (0, -1))
        begin, bound, why = (free, holder, "resource") if free > end else (end, op, "dependency")
        link = f"link {rank}>{to}"
        send = self.row(rank, "send", chunk, m, (end, begin, begin + transfer), bound, why,
                        f"send>{to}", link, transfer, to)
        arrival = begin + transfer + latency
        recv = self.row(to, "recv", chunk, m, (begin, begin, arrival), send, "rendezvous",
                        f"recv<{rank}", link, latency, rank)
        self.link[rank, to] = (begin + transfer, send)
        self.arrivals[key] = (arrival, recv)

    def row(self, rank, kind, chunk, m, times, bound, why, lane, resource, planned, peer=-1):
        position, op = self.timeline.position, self.next_op
        self.next_op += 1
        self.timeline.rows.append((
            self.schedule, self.iteration, op, rank, 0, rank, self.datacenter(rank),
            position("lanes", lane), position("resources", resource), KINDS.index(kind), chunk, m,
            0, 1, peer, 0, 0, 0, 1, *NEW_IN_3.values(), *NEW_IN_4.values(), SIZES.get(kind, 1024), planned,
            *times, bound, BOUND_KINDS.index(why)))
        return op


def write(path, predicted, measured=None, time_scale=1.0, budget_bytes=0):
    with h5py.File(path, "w") as file:
        file.attrs.update({"schema_version": SCHEMA_VERSION, "creator": "synthetic", "git_commit": "0" * 40,
                           "command_line": "synthetic", "scenario": 'name = "synthetic"',
                           "environment": "{}", "time_scale": time_scale,
                           "activation_budget_bytes": budget_bytes})
        for name, timeline in (("predicted", predicted), ("measured", measured)):
            _write_group(file.create_group(name), timeline or Timeline())
    return path


def _write_group(group, timeline):
    rows = np.array(timeline.rows, dtype=np.int64).reshape(-1, len(COLUMNS))
    for index, column in enumerate(COLUMNS):
        group[column] = rows[:, index]
    for table in TABLES.values():
        group.create_dataset(table, data=timeline.tables[table], dtype=h5py.string_dtype())
