"""Comparison of a gridsim schedule with one of the second implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridsim.registry import Spec
from tests.oracles.machine.parts import Machine
from tests.oracles.machine.random_machines import smallest
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import Job, schedule
from tests.oracles.machine.translated import (
    asked_of,
    jobs_of,
    machine_of,
    platform_of,
    schedule_of,
    workload_of,
)

__all__ = ["difference", "policy_of", "simulated", "told"]

Told = tuple[Any, ...]


def told(job: Job) -> Told:
    """Return the outcome of a job: start, end, status, reason, tasks by node, thousandths by node and GPU."""
    return (job.start, job.end, job.status, job.reason or "", job.nodes(), job.gpus())


def policy_of(policy: str, rule: Rule, *, k: int = 1, compress: str = "planned", order: str = "fifo") -> Spec:
    """Return the gridsim policy for a policy of `schedule`, with its placement rule."""
    words: dict[str, Any] = {}
    if rule.name == "dot-product":
        words["align"] = rule.align
    if rule.name in ("pack", "spread", "dot-product") and rule.resources is not None:
        words["resources"] = "+".join(rule.resources)
    if rule.name == "fragmentation":
        words["typical"] = [
            {"each": asked.each, "gpu": asked.gpu, "gpu_kinds": asked.gpu_kinds, "count": each.count}
            for each in rule.typical
            for asked in [asked_of(each.demand)]
        ]
    given: dict[str, Any] = {"placement": Spec(rule.name, words)}
    if policy == "depth":
        given["k"] = k
    if policy == "conservative":
        given["compress"] = compress
    elif order != "fifo":
        given["ordering"] = order
    return Spec(policy, given)


def simulated(machine: Machine, jobs: Sequence[Job], policy: Any, *, overrun: Any = "kill") -> list[Job]:
    """Return the outcomes of some jobs in gridsim, sorted by submit time and number."""
    from gridsim.simulation import simulate  # imported late: loads compiled kernels

    platform = platform_of(machine)
    record = simulate(workload_of(jobs), platform=platform, policy=policy, overrun=overrun).record
    return schedule_of(record, platform)


def difference(
    machine: Machine, jobs: Sequence[Job], policy: str, rule: Rule, *, overrun: Any = "kill", **options: Any
) -> str:
    """Return the differences between gridsim and the second implementation, with as few jobs as show one.

    Parameters
    ----------
    policy : str
        A policy of `schedule`, with its *options*.
    """

    def both(some: Sequence[Job]) -> tuple[list[Job], list[Job]]:
        platform = platform_of(machine)
        slow = schedule(
            machine_of(platform), jobs_of(workload_of(some)), policy, rule, overrun=overrun, tick=10**6, **options
        )
        return slow, simulated(machine, some, policy_of(policy, rule, **options), overrun=overrun)

    def differs(some: Sequence[Job]) -> bool:
        slow, fast = both(some)
        return [*map(told, slow)] != [*map(told, fast)]

    if not differs(jobs):
        return ""
    few = smallest(jobs, differs)
    lines = [f"{policy} {options} {overrun}", repr(rule), repr(machine), *map(repr, few), "slow and fast:"]
    slow, fast = both(few)
    return "\n".join([*lines, *(f"{told(one)}\n{told(other)}" for one, other in zip(slow, fast, strict=True))])
