"""ElasticFlow's algorithm (Gu et al., ASPLOS 2023) and lists in an order, slot by slot in plain lists.

Written from the rules of docs/jobs.md, apart from src/planner/cluster, which works on spans of
slots: an oracle for the allocations of `longhaul cluster`. Times are in seconds.
"""
import dataclasses
import math

SLACK = 1e-6  # plans end so much before deadlines


@dataclasses.dataclass
class Job:
    name: str
    submit: float
    deadline: float  # math.inf: none
    left: float
    rates: dict  # GPUs: iterations a second
    gpus: int = 0
    plan: dict = dataclasses.field(default_factory=dict)  # slot: GPUs
    grants: list = dataclasses.field(default_factory=list)
    admitted: bool = False
    end: float = None
    met: bool = False


def rising(rates):
    kept = {}
    for gpus in sorted(rates):
        if rates[gpus] > max(kept.values(), default=0):
            kept[gpus] = rates[gpus]
    return kept


def fill(job, free, slot, length):
    """The slots of a job, from its deadline backwards, with its least number of GPUs."""
    deadline = job.deadline - SLACK
    last = math.ceil(deadline / length)
    for most in sorted(job.rates):
        left, plan = job.left, {}
        for s in range(last - 1, slot - 1, -1):
            counts = [g for g in job.rates if g <= min(most, free[s])]
            if not counts:
                continue
            plan[s] = max(counts)
            left -= job.rates[max(counts)] * (min((s + 1) * length, deadline) - s * length)
            if left <= 1e-9:
                return plan
    return None


def fill_all(jobs, gpus, slot, length):
    """Plans in the order of `jobs`; None: one would miss its deadline."""
    ends = [job.deadline for job in jobs if job.deadline < math.inf]
    free = {s: gpus for s in range(slot, math.ceil(max(ends, default=0) / length) + 1)}
    plans = {}
    for job in sorted((j for j in jobs if j.deadline < math.inf), key=lambda j: j.deadline):
        plan = fill(job, free, slot, length)
        if plan is None:
            return None
        for s, held in plan.items():
            free[s] -= held
        plans[job.name] = plan
    return plans


def gpu_seconds(job, gpus, now, length):
    """Of the rest of a job with so many GPUs in this slot, its least number afterwards."""
    rate = job.rates[gpus]
    if job.left <= rate * length:
        return job.left / rate * gpus
    least = min(job.rates)
    if job.deadline < math.inf:
        enough = [g for g in sorted(job.rates) if job.rates[g] * (job.deadline - now) >= job.left]
        least = enough[0] if enough else max(job.rates)
    return length * gpus + (job.left - rate * length) / job.rates[least] * least


def hand_out(jobs, free, now, length):
    closed = set()
    while free > 0:
        steps = []
        for place, job in enumerate(jobs):
            more = [g for g in sorted(job.rates) if g > job.gpus]
            if not more or job.name in closed:
                continue
            saved = 0 if job.gpus == 0 else (
                gpu_seconds(job, job.gpus, now, length)
                - gpu_seconds(job, more[0], now, length)) / (more[0] - job.gpus)
            steps.append((job.gpus != 0, -saved, place, more[0]))
        if not steps:
            return
        _, _, place, count = min(steps)
        if count - jobs[place].gpus > free:
            closed.add(jobs[place].name)
            continue
        free -= count - jobs[place].gpus
        jobs[place].gpus = count


def share_elastic(jobs, gpus, slot, length):
    plans = fill_all(jobs, gpus, slot, length)
    changes = math.inf
    for job in jobs:
        if plans is not None:
            job.plan = plans.get(job.name, {})
        job.gpus = job.plan.get(slot, 0)
        later = [s for s in range(slot + 1, max(job.plan, default=slot) + 2)
                 if job.plan.get(s, 0) != job.plan.get(s - 1, 0)]
        changes = min([changes, *later])
    hand_out(jobs, gpus - sum(job.gpus for job in jobs), slot * length, length)
    return changes


def share_in_order(jobs, gpus, policy, now):
    rest = {job.name: job.left / max(job.rates.values()) for job in jobs}
    key = {"edf": lambda j: j.deadline, "fifo": lambda j: 0, "srtf": lambda j: rest[j.name],
           "least-laxity": lambda j: j.deadline - now - rest[j.name]}[policy]
    for job in sorted(jobs, key=key):
        job.gpus = max((g for g in job.rates if g <= gpus), default=0)
        gpus -= job.gpus


def play(jobs, gpus, policy, length):
    """Fills in admitted, grants [[time, GPUs]], end and met of each job."""
    waiting = sorted(jobs, key=lambda job: job.submit)
    running, slot = [], 0
    while waiting or running:
        if not running:
            slot = max(slot, math.ceil(waiting[0].submit / length))
        now = slot * length
        for job in [j for j in running if j.deadline <= now]:
            stop(job, job.deadline, running)
        while waiting and waiting[0].submit <= now:
            job = waiting.pop(0)
            if job.deadline <= now:
                continue
            if policy == "elasticflow" and job.deadline < math.inf and fill_all(
                    running + [job], gpus, slot, length) is None:
                continue
            job.admitted = True
            running.append(job)
        if not running:
            continue
        changes = math.inf
        if policy == "elasticflow":
            changes = share_elastic(running, gpus, slot, length)
        else:
            share_in_order(running, gpus, policy, now)
        ends = {}
        for job in running:
            if job.gpus != (job.grants[-1][1] if job.grants else 0):
                job.grants.append([now, job.gpus])
            ends[job.name] = now + job.left / job.rates[job.gpus] if job.gpus else math.inf
        events = [waiting[0].submit] if waiting else []
        for job in running:
            events += [ends[job.name], job.deadline]
        following = min(changes, max(slot + 1, math.ceil(min(events) / length - 1e-12)))
        for job in list(running):
            if ends[job.name] <= min(following * length, job.deadline) + 1e-9:
                job.met = True
                stop(job, ends[job.name], running)
            elif job.gpus:
                job.left -= job.rates[job.gpus] * (following - slot) * length
        slot = following


def stop(job, end, running):
    job.end = end
    if job.grants and job.grants[-1][1]:
        job.grants.append([end, 0])
    running.remove(job)
