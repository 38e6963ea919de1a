"""Metrics of a finished schedule on a machine (section 5.3), as exact fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from gridsim.model.time import NEVER
from tests.oracles.machine.free_capacity import FreeCapacity, can_be_placed, fit, free_at, has_features, has_kind
from tests.oracles.machine.parts import WHOLE, Demand, Hold, Machine, Node
from tests.oracles.machine.rules import Typical, fragments
from tests.oracles.machine.schedule import Job

__all__ = ["fragmentation", "short_of", "stranded", "used", "utilisation"]


def utilisation(machine: Machine, jobs: Sequence[Job]) -> dict[str, Fraction]:
    """Return the held share of each resource from first submit to last end; exclusive jobs hold whole nodes."""
    return _shares(machine, jobs, exclusive=True)


def used(machine: Machine, jobs: Sequence[Job]) -> dict[str, Fraction]:
    """Return the held share counting only requests of tasks; the difference is the loss from exclusive use."""
    return _shares(machine, jobs, exclusive=False)


def _shares(machine: Machine, jobs: Sequence[Job], *, exclusive: bool) -> dict[str, Fraction]:
    ran = [job for job in jobs if job.end < NEVER]
    length = max((job.end for job in ran), default=0) - min((job.submit for job in jobs), default=0)
    names = [*machine.pools, *machine.resources, *(["gpu"] if machine.largest("gpu") else [])]
    totals = {name: _total(machine, name) for name in names}
    held = {name: sum(_held(machine, job, name, exclusive) * (job.end - job.start) for job in ran) for name in names}
    return {name: Fraction(held[name], totals[name] * length) for name in names if totals[name] * length > 0}


def _of_node(machine: Machine, number: int, name: str) -> int:
    node = machine.nodes[number]
    return WHOLE * node.gpus if name == "gpu" else node.capacity.get(name, 0)


def _total(machine: Machine, name: str) -> int:
    if name in machine.pools:
        return machine.pools[name]
    return sum(_of_node(machine, number, name) for number in range(len(machine.nodes)))


def _held(machine: Machine, job: Job, name: str, exclusive: bool) -> int:
    if name in machine.pools:
        return job.demand.pools.get(name, 0)
    if exclusive and job.demand.exclusive:
        return sum(_of_node(machine, number, name) for number in job.nodes())
    asked = job.demand.gpu if name == "gpu" else job.demand.each.get(name, 0)
    return job.demand.tasks * asked


def stranded(machine: Machine, jobs: Sequence[Job]) -> dict[str, Fraction]:
    """Return the mean share of each node resource that is free on nodes that fit no task of a waiting job."""

    def mean(name: str) -> Fraction:
        def of_no_use(room: FreeCapacity, waiting: Sequence[Job]) -> Fraction:
            some = [job for job in waiting if job.demand.tasks]
            idle = [n for n in range(len(machine.nodes)) if not any(_takes_one(machine, job, room, n) for job in some)]
            free = sum(sum(room.gpus[n]) if name == "gpu" else room.amounts[n][name] for n in idle)
            return Fraction(free, _total(machine, name)) if some else Fraction(0)

        return _mean(machine, jobs, of_no_use)

    return {name: mean(name) for name in (*machine.resources, "gpu") if _total(machine, name) > 0}


def _takes_one(machine: Machine, job: Job, room: FreeCapacity, number: int) -> bool:
    """Return whether a job fits on a node, limits on nodes aside."""
    without = replace(job.demand, min_nodes=1, max_nodes=None, tasks_per_node=None)
    return fit(machine, without, room, number) > 0


def fragmentation(machine: Machine, jobs: Sequence[Job], typical: Sequence[Typical]) -> tuple[Fraction, Fraction]:
    """Return idle GPU capacity unusable by typical tasks, over all GPUs and over idle GPUs; means over time."""
    counts, total = sum(each.count for each in typical), _total(machine, "gpu")

    def useless(room: FreeCapacity) -> int:
        numbers = range(len(machine.nodes))
        return sum(fragments(machine.nodes[n], typical, room.amounts[n], room.gpus[n]) for n in numbers)

    def of_idle(room: FreeCapacity) -> Fraction:
        idle = sum(map(sum, room.gpus))
        return Fraction(useless(room), counts * idle) if idle else Fraction(0)

    whole = _mean(machine, jobs, lambda room, waiting: Fraction(useless(room), counts * total))
    return whole, _mean(machine, jobs, lambda room, waiting: of_idle(room))


def _mean(machine: Machine, jobs: Sequence[Job], of: Callable[[FreeCapacity, Sequence[Job]], Fraction]) -> Fraction:
    """Return the mean over time from first submit to last end."""
    ran = [job for job in jobs if job.end < NEVER]
    if not ran:
        return Fraction(0)
    holds = [Hold(job.demand, job.places, job.start, job.end) for job in ran]
    instants = sorted({job.submit for job in jobs} | {job.start for job in ran} | {job.end for job in ran})
    total = Fraction(0)
    for now, then in pairwise(instants):
        waiting = [job for job in ran if job.submit <= now < job.start]
        total += of(free_at(machine, holds, now), waiting) * (then - now)
    first, last = min(job.submit for job in jobs), max(job.end for job in ran)
    inside = [instant for instant in instants if instant <= last]
    assert inside[0] == first
    return total / (last - first)


def short_of(machine: Machine, jobs: Sequence[Job], one: Job, now: int) -> str:
    """Return the only resource that blocks a waiting job; ``order`` if it could start, ``several`` if there is none."""
    running = [job for job in jobs if job.start <= now < job.end]
    room = free_at(machine, [Hold(job.demand, job.places, job.start, job.end) for job in running], now)
    asked, hosts = one.demand, _marked(machine, one.demand)
    without = {
        "order": asked,
        **{name: replace(asked, each={**asked.each, name: 0}) for name in machine.resources},
        "gpu": replace(asked, gpu=0, features=frozenset({"host"})),
        "features": replace(asked, features=frozenset(), partitions=frozenset(), gpu_kinds=None),
        "nodes": replace(asked, min_nodes=1, max_nodes=None, tasks_per_node=None, exclusive=False),
        **{name: replace(asked, pools={**asked.pools, name: 0}) for name in sorted(machine.pools)},
    }
    return next((name for name, demand in without.items() if can_be_placed(hosts, demand, room)), "several")


def _marked(machine: Machine, demand: Demand) -> Machine:
    """Return a machine that marks nodes with the requested features and GPU kind."""

    def marked(node: Node) -> Node:
        host = has_features(node, demand) and has_kind(node, demand)
        return replace(node, features=node.features | {"host"}) if host else node

    return replace(machine, nodes=[marked(node) for node in machine.nodes])
