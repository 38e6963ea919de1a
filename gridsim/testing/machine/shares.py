"""Utilisation of a finished schedule (section 5.3), as exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gridsim.model.time import NEVER
from gridsim.testing.machine.parts import WHOLE, Machine
from gridsim.testing.machine.schedule import Job

__all__ = ["used", "utilisation"]


def utilisation(machine: Machine, jobs: Sequence[Job]) -> dict[str, Fraction]:
    """Share of each resource that was held, from the first submit to the last end; exclusive jobs hold whole nodes."""
    return _shares(machine, jobs, exclusive=True)


def used(machine: Machine, jobs: Sequence[Job]) -> dict[str, Fraction]:
    """The same with what tasks ask for: what exclusive use loses is the difference."""
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
