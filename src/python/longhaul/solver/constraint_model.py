"""The constraint model of CrossPipe section 4.1 in terms of OR-tools CP-SAT."""

import math
from collections import defaultdict

# Beyond this many units a horizon strains 64-bit sums inside the solver; times are rounded up.
LONGEST_HORIZON = 10**11
KINDS = "FRDW"


class Times:
    """Nanoseconds to units of the model: the largest that divides all durations."""

    def __init__(self, problem):
        durations = [block["duration_ns"] for block in problem["blocks"]]
        for message in problem["messages"]:
            durations += [message["transfer_ns"], message["latency_ns"]]
        for extra in ("collectives", "fusions"):
            durations += [item["duration_ns"] for item in problem[extra]]
        self.horizon_ns = sum(durations)
        self.unit_ns = math.gcd(*durations) or 1
        coarsest = -(-self.horizon_ns // LONGEST_HORIZON)
        self.exact = self.unit_ns >= coarsest
        self.unit_ns = max(self.unit_ns, coarsest)
        # Each is rounded up by itself.
        self.horizon = sum(self.up(duration) for duration in durations)

    def up(self, time_ns):
        return -(-time_ns // self.unit_ns)

    def down(self, time_ns):
        return time_ns // self.unit_ns


class Model:
    """An interval for each block, message and collective; a minimal makespan."""

    def __init__(self, cp_model, problem):
        self.problem = problem
        self.times = Times(problem)
        self.model = cp_model.CpModel()
        exact = problem["exact"] and self.times.exact
        # The warm start is in the model, so that its makespan limits every start.
        self.horizon = (self.times.up(problem["start_makespan_ns"]) if exact
                        else self.times.horizon)
        self.makespan = self.model.new_int_var(
            self.times.down(problem["lower_bound_ns"]) if exact else 0, self.horizon, "makespan")
        self.exact = exact
        self.hinted = problem.get("hinted", True)  # are its times those of a schedule?
        self.starts, self.ends = [], []
        self.fused = {}  # literal of each block that may be fused: a D with the W after it
        self.by_device = defaultdict(list)
        self.on_resource = defaultdict(list)  # (start variable, producer) of each message
        self.collective_starts = []
        self.add_blocks()
        self.add_dependencies()
        self.add_messages()
        self.add_collectives()
        self.add_memory()
        self.add_order()
        self.model.minimize(self.makespan)

    def add_fusions(self):
        """Lengths of blocks: a D that is fused with its W takes as long as a B, the W no time. The
        W then stands at the end of the D, where its memory is released."""
        lengths = [self.times.up(block["duration_ns"]) for block in self.problem["blocks"]]
        for fusion in self.problem["fusions"]:
            literal = self.model.new_bool_var(f"fused{fusion['gradient']}")
            self.model.add_hint(literal, fusion["fused"])
            gradient, weight = fusion["gradient"], fusion["weight"]
            self.fused[gradient] = self.fused[weight] = literal
            longer = self.times.up(fusion["duration_ns"]) - lengths[gradient]
            lengths[gradient] = lengths[gradient] + longer * literal
            lengths[weight] = lengths[weight] - lengths[weight] * literal
        return lengths

    def add_blocks(self):
        model = self.model
        for i, (block, length) in enumerate(zip(self.problem["blocks"], self.add_fusions())):
            alone = self.times.up(block["duration_ns"])
            fusible = i in self.fused
            earliest = self.times.down(block["head_ns"]) if self.exact else 0
            tail = self.times.down(block["tail_ns"]) if self.exact else alone
            if fusible and block["kind"] == "W":
                tail -= alone  # counted from its end below
            start = model.new_int_var(earliest, max(earliest, self.horizon - tail), f"start{i}")
            end = start + length
            if fusible:
                end = model.new_int_var(earliest, self.horizon, f"end{i}")
                interval = model.new_interval_var(start, length, end, f"block{i}")
            else:
                interval = model.new_fixed_size_interval_var(start, length, f"block{i}")
            self.starts.append(start)
            self.ends.append(end)
            self.by_device[block["device"]].append(interval)
            model.add(end <= self.makespan)
            if self.exact:
                model.add((end if fusible and block["kind"] == "W" else start) + tail
                          <= self.makespan)
            if self.hinted:
                model.add_hint(start, self.times.up(block["start_ns"]))
        for fusion in self.problem["fusions"]:
            model.add(self.starts[fusion["weight"]] == self.ends[fusion["gradient"]]
                      ).only_enforce_if(self.fused[fusion["gradient"]])
        if self.exact and self.hinted:
            model.add_hint(self.makespan, self.horizon)
        for intervals in self.by_device.values():
            model.add_no_overlap(intervals)

    def add_dependencies(self):
        for before, after in self.problem["after"]:
            self.model.add(self.starts[after] >= self.ends[before])

    def add_messages(self):
        """A message that takes no time on its link cannot be in another's way."""
        intervals = defaultdict(list)
        for i, message in enumerate(self.problem["messages"]):
            transfer = self.times.up(message["transfer_ns"])
            latency = self.times.up(message["latency_ns"])
            producer, consumer = message["from"], message["to"]
            if transfer == 0:
                self.model.add(self.starts[consumer] >= self.ends[producer] + latency)
                continue
            begin = self.model.new_int_var(0, self.horizon, f"message{i}")
            interval = self.model.new_fixed_size_interval_var(begin, transfer, f"transfer{i}")
            self.model.add(begin >= self.ends[producer])
            self.model.add(self.starts[consumer] >= begin + transfer + latency)
            for resource in message["resources"]:
                intervals[resource].append(interval)
                self.on_resource[resource].append((begin, producer, consumer))
        for same in intervals.values():
            self.model.add_no_overlap(same)

    def add_collectives(self):
        lanes = defaultdict(list)
        for i, collective in enumerate(self.problem["collectives"]):
            length = self.times.up(collective["duration_ns"])
            start = self.model.new_int_var(0, self.horizon, f"collective{i}")
            interval = self.model.new_fixed_size_interval_var(start, length, f"group{i}")
            for device in collective["devices"]:
                lanes[device].append(interval)
            for block in collective["blocks"]:
                if collective["gather"]:
                    self.model.add(self.starts[block] >= start + length)
                else:
                    self.model.add(start >= self.ends[block])
            self.model.add(start + length <= self.makespan)
        for same in lanes.values():
            self.model.add_no_overlap(same)

    def add_memory(self):
        """The reservoir of a device as a cumulative: each portion is held from the start of one
        block to the end of another. Portions with one span are one."""
        blocks = self.problem["blocks"]
        unit = math.gcd(*(held["bytes"] for held in self.problem["held"])) or 1
        of_device = defaultdict(list)
        for i, held in enumerate(self.problem["held"]):
            begin, end = self.starts[held["from"]], self.ends[held["until"]]
            size = self.model.new_int_var(0, self.horizon, f"held{i}")
            interval = self.model.new_interval_var(begin, size, end, f"memory{i}")
            of_device[blocks[held["from"]]["device"]].append((interval, held["bytes"] // unit))
        for device, portions in of_device.items():
            self.model.add_cumulative([interval for interval, _ in portions],
                                      [demand for _, demand in portions],
                                      self.problem["memory_limits_bytes"][device] // unit)

    def add_order(self):
        if not self.problem["microbatch_order"]:
            return
        blocks = self.problem["blocks"]
        groups = defaultdict(list)
        for i, block in enumerate(blocks):
            groups[block["kind"], block["chunk"]].append((block["microbatch"], i))
        for group in groups.values():
            group.sort()
            for (_, before), (_, after) in zip(group, group[1:]):
                turn = self.model.add(self.starts[after] >= self.ends[before])
                # A W that has gone into its B keeps no other W waiting.
                if blocks[after]["kind"] == "W" and after in self.fused:
                    turn.only_enforce_if(~self.fused[before], ~self.fused[after])

    def answer(self, value):
        """The rows of which the planner makes a schedule. Blocks of no length come before what
        starts with them only if they do not wait for it, so ties go along the dependencies."""
        blocks = self.problem["blocks"]

        def key(i):
            # A forward pass runs up the chunks, a backward pass down.
            block = blocks[i]
            kind = KINDS.index(block["kind"])
            along = block["chunk"] if kind == 0 else -block["chunk"]
            return value(self.starts[i]), value(self.ends[i]), kind, block["microbatch"], along
        fused = [i for i, literal in self.fused.items() if value(literal)]
        gone = {i for i in fused if blocks[i]["kind"] == "W"}
        rows = [[] for _ in range(self.problem["devices"])]
        for i in sorted(set(range(len(blocks))) - gone, key=key):
            rows[blocks[i]["device"]].append(i)
        link_orders = {}
        for resource, messages in self.on_resource.items():
            ways = {(blocks[producer]["device"], blocks[consumer]["device"])
                    for _, producer, consumer in messages}
            if len(ways) > 1:
                ordered = sorted(messages, key=lambda message: (value(message[0]), message[1]))
                link_orders[resource] = [producer for _, producer, _ in ordered]
        return {"rows": rows, "fused": sorted(set(fused) - gone), "link_orders": link_orders}
