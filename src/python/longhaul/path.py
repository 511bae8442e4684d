"""The critical path: the ops that an iteration's end waited for, back to its start."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One op on the path, in order of time."""

    op: int
    kind: str
    rank: int
    peer: int
    start_ns: int
    end_ns: int
    crosses: bool  # an arrival from another datacenter


def critical_path(rows):
    """Follows bound_by from the op that ends last (ties: lower op) back to the start: the same
    walk as critical_path() in src/trace/report/report.hpp. `rows`: one schedule and iteration."""
    if rows.empty:
        return []
    indexed = rows.set_index("op", drop=False)
    home = rows.drop_duplicates("rank").set_index("rank")["datacenter"].astype(str).to_dict()
    by_op = {row.op: row for row in indexed.itertuples(index=False)}
    last = rows.sort_values(["end_ns", "op"], ascending=[False, True]).iloc[0]["op"]
    steps, seen, op = [], set(), int(last)
    while op in by_op and op not in seen:
        seen.add(op)
        row = by_op[op]
        crosses = row.kind == "recv" and home.get(row.peer) != home.get(row.rank)
        steps.append(Step(op, row.kind, row.rank, row.peer, row.start_ns, row.end_ns, crosses))
        op = int(row.bound_by) if row.bound_kind != "start" else -1
    return steps[::-1]


def wan_crossings(steps):
    return sum(step.crosses for step in steps)
