"""Machines of nodes: the second implementation and the fast one agree job by job, with nodes and GPUs."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.oracles.machine.compared import difference
from tests.oracles.machine.parts import Machine
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES

POLICIES = ("fcfs", "first-fit", "easy", "depth", "conservative")
MACHINES = {"usual": 60, "search": 2000, "thorough": 20_000}[os.environ.get("GRIDSIM_HYPOTHESIS", "usual")]
"""Random machines for each policy: 300 in total in the default suite, 10,000 in a search."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES)
def test_both_make_the_same_schedules_with_the_same_places(policy: str) -> None:
    rng = np.random.default_rng([17, POLICIES.index(policy)])
    for number in range(MACHINES):
        machine = draw_machine(rng)
        rule = draw_rule(rng, machine, RULES[number % len(RULES)])
        options = {"k": int(rng.integers(2, 5))} if policy == "depth" else {}
        if policy == "conservative":
            options = {"compress": str(rng.choice(["planned", "planned", "arrival", "none"]))}
        overrun = "extend" if number % 4 == 3 else "kill"
        found = difference(machine, draw_jobs(rng, machine, most=14), policy, rule, overrun=overrun, **options)
        assert not found, found


@pytest.mark.parametrize("order", ["sjf", "ljf", "largest-cores", "smallest-area"])
def test_both_agree_under_other_orders_of_the_queue(order: str) -> None:
    rng = np.random.default_rng([18, len(order)])
    for number in range(MACHINES // 10):
        machine = draw_machine(rng)
        policy = ("fcfs", "first-fit", "easy", "depth")[number % 4]
        found = difference(machine, draw_jobs(rng, machine, most=14), policy, draw_rule(rng, machine), order=order, k=2)
        assert not found, found


@pytest.mark.parametrize("policy", POLICIES)
def test_both_agree_on_machines_of_several_pools_without_nodes(policy: str) -> None:
    rng = np.random.default_rng([19, POLICIES.index(policy)])
    for number in range(MACHINES // 5):
        machine = Machine((), {"cores": 2 + number % 7, "licence": 1 + number % 4, "burst": 1 + number % 5})
        order = "fifo" if policy == "conservative" else ("fifo", "sjf", "xfactor")[number % 3]
        overrun = "extend" if number % 4 == 3 else "kill"
        rule, jobs = draw_rule(rng, machine, "first"), draw_jobs(rng, machine, most=16)
        found = difference(machine, jobs, policy, rule, overrun=overrun, order=order, k=2)
        assert not found, found
