"""Problems for the solvers, made without the longhaul tool: one stage a device, F = D = W."""

UNIT_NS = 100


def pipeline(stages, microbatches, latency=0, transfer=0, memory=None, crossings=None):
    """`latency` and `transfer` in ns, on the boundaries after the stages in `crossings` (default:
    all); `memory` in activations (default: `stages`). The horizon is that of rounds of as many
    microbatches as fit, one round after the other, so that some schedule always fits into it."""
    memory = memory or stages
    blocks, index = [], {}
    for microbatch in range(microbatches):
        for kind in "FDW":
            for stage in range(stages):
                index[kind, stage, microbatch] = len(blocks)
                blocks.append({"device": stage, "kind": kind, "chunk": stage,
                               "microbatch": microbatch, "duration_ns": UNIT_NS, "start_ns": 0,
                               "head_ns": 0, "tail_ns": 0})
    after, messages, held = [], [], []
    for (kind, stage, microbatch), i in index.items():
        if kind == "D":
            forward, weight = index["F", stage, microbatch], index["W", stage, microbatch]
            after += [[forward, i], [i, weight]]
            # Half an activation each.
            held += [{"from": forward, "until": until, "bytes": 1} for until in (i, weight)]
        step = {"F": 1, "D": -1}.get(kind, 0)
        if not step or not 0 <= stage + step < stages:
            continue
        crosses = crossings is None or min(stage, stage + step) in crossings
        messages.append({"from": i, "to": index[kind, stage + step, microbatch],
                         "transfer_ns": transfer * crosses, "latency_ns": latency * crosses,
                         "resources": [f"link {stage}>{stage + step}"]})
    rounds = -(-microbatches // memory)
    most = min(memory, microbatches)
    delays = sum(message["transfer_ns"] * most + message["latency_ns"]
                 for message in messages if blocks[message["from"]]["microbatch"] == 0)
    horizon = rounds * (3 * UNIT_NS * (most + stages) + delays)
    return {"schema_version": 2, "devices": stages, "blocks": blocks, "after": after,
            "messages": messages, "collectives": [], "fusions": [], "held": held,
            "microbatch_order": True, "memory_limits_bytes": [2 * memory] * stages,
            "time_limit_s": 60, "threads": 1, "start_makespan_ns": horizon,
            "lower_bound_ns": 0, "exact": True, "hinted": False}
