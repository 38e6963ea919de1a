"""Schedules on machines of nodes, GPUs and pools are those of the slow second implementation, place by place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim import registry
from gridsim.policy.presets import policy as make_policy
from gridsim.simulation import simulate
from gridsim.testing.machine.drawn import draw_jobs, draw_machine, draw_rule
from gridsim.testing.machine.rules import Rule
from gridsim.testing.machine.schedule import Job, schedule
from gridsim.testing.machine.translated import jobs_of, machine_of, platform_of, schedule_of, workload_of

POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}),
    ("first-fit", {}),
    ("easy", {}),
    ("depth", {"k": 2}),
    ("depth", {"k": 5}),
    ("conservative", {"compress": "planned"}),
    ("conservative", {"compress": "arrival"}),
    ("conservative", {"compress": "none"}),
]
ORDERS = ("fifo", "fifo", "sjf", "ljf", "wfp3", "largest-area")
MANY = 10_000


def rule_of(rule: Rule) -> Any:
    given: dict[str, Any] = {}
    if rule.name == "dot-product":
        given["align"] = rule.align
    if rule.resources and rule.name in ("pack", "spread", "dot-product"):
        given["resources"] = rule.resources
    if rule.name == "fragmentation":
        given["typical"] = [
            {
                "each": dict(task.demand.each),
                "gpu": task.demand.gpu,
                "gpu_kinds": tuple(sorted(task.demand.gpu_kinds or ())),
                "count": task.count,
            }
            for task in rule.typical
        ]
    return registry.make("placement", registry.Spec(rule.name, given))


def told(jobs: list[Job]) -> list[tuple[Any, ...]]:
    return [(job.number, job.status, job.start, job.end, job.nodes(), job.gpus()) for job in jobs]


def agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    machine = draw_machine(rng)
    rule, jobs = draw_rule(rng, machine), draw_jobs(rng, machine, most=16)
    name, given = POLICIES[int(rng.integers(len(POLICIES)))]
    order = "fifo" if name == "conservative" else ORDERS[int(rng.integers(len(ORDERS)))]
    overrun = "extend" if rng.random() < 0.2 else "kill"
    platform, workload = platform_of(machine), workload_of(jobs)
    spec = registry.Spec(name, given | ({} if order == "fifo" else {"ordering": order}))
    policy = make_policy(spec)
    policy.placement = rule_of(rule)
    found = schedule_of(simulate(workload, platform=platform, policy=policy, overrun=overrun).record, platform)
    parameters = {"k": given.get("k", 1), "compress": given.get("compress", "planned"), "order": order}
    slow = schedule(machine_of(platform), jobs_of(workload), name, rule, overrun=overrun, tick=1_000_000, **parameters)
    assert told(found) == told(slow), (seed, name, given, rule, order, overrun)


def test_schedules_on_drawn_machines_are_those_of_the_second_implementation() -> None:
    for seed in range(120):
        agree(seed)


@pytest.mark.long
def test_schedules_on_many_drawn_machines_are_those_of_the_second_implementation() -> None:
    for seed in range(MANY):
        agree(seed)
