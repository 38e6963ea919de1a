"""Worlds on machines of nodes and pools: later submissions and external reservations have the results of known ones."""

from __future__ import annotations

import collections.abc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simpy import Event

import gridsim as gs
from gridsim.model.demand import Demand, Demands
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.record import Record
from gridsim.testing.invariants import violations
from gridsim.world import World
from tests.oracles.machine.compared import policy_of
from tests.oracles.machine.parts import Machine, Node
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES
from tests.oracles.machine.translated import platform_of, workload_of

Process = collections.abc.Generator[Event, Any, None]
Hold = tuple[float, float, list[int]]
"""Start, end and nodes of each external reservation, s."""


def submits(world: World, workload: Workload) -> Process:
    """Submit the jobs of a workload at their times, each after the previous ones."""
    assert workload.demands is not None
    for row in range(len(workload)):
        yield world.timeout(workload.submit[row] / 1e6 - world.now)
        job = {"runtime": workload.runtime[row] / 1e6, "estimate": workload.estimate[row] / 1e6}
        world.submit({**job, "demand": workload.demands[row]})


def same(one: Record, other: Record) -> None:
    for name in ("start_us", "end_us", "status"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for found, expected in ((one.reason, other.reason), (one.workload.submit, other.workload.submit)):
        assert (found is None) == (expected is None)
        assert found is None or expected is None or found.tolist() == expected.tolist()
    held, wanted = one.allocations, other.allocations
    assert (held is None) == (wanted is None)
    if held is None or wanted is None:
        return
    for name in ("node", "tasks", "start_us", "end_us", "gpu", "gpu_share"):
        assert getattr(held, name).tolist() == getattr(wanted, name).tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "depth", "conservative"])
def test_a_job_that_submits_later_is_placed_as_if_known_from_the_beginning(policy: str, instant: Any) -> None:
    rng = np.random.default_rng([31, 1])
    for number in range(12):
        machine = draw_machine(rng) if number % 4 else Machine((), {"cores": 6, "licence": 2})
        workload, rule = workload_of(draw_jobs(rng, machine)), draw_rule(rng, machine, RULES[number % len(RULES)])
        platform, options = platform_of(machine), Run(instant=instant)
        scheduler = policy_of(policy, rule)
        known = int(rng.integers(1, len(workload)))
        order = np.arange(len(workload))
        workload = replace(workload, job=order + 1)
        if workload.submit[known] == workload.submit[known - 1]:  # jobs of one instant would arrive in two batches
            known = 1 if workload.submit[0] < workload.submit[1] else len(workload) - 1
        world = World(workload.select(order < known), platform, scheduler, options)
        world.env.process(submits(world, workload.select(order >= known)))
        world.run()
        same(world.record(), gs.simulate(workload, platform=platform, policy=scheduler, options=options).record)


def crew(world: World, rng: np.random.Generator, log: list[Hold]) -> Process:
    """Reserve nodes repeatedly: any nodes, given nodes, or cores; sometimes release them early."""
    machine = world.machines["cluster"]
    assert machine.nodes is not None
    names = machine.nodes.names
    for _ in range(4):
        yield world.timeout(float(rng.integers(0, 6)))
        until = world.now + float(rng.integers(20, 60))
        what: dict[str, Any] = {"nodes": int(rng.integers(1, len(names) + 1))}
        if rng.random() < 0.4:
            what = {"nodes": [names[node] for node in rng.permutation(len(names))[: what["nodes"]]]}
        elif rng.random() < 0.3:
            what = {"cores": int(rng.integers(1, 1 + machine.cores))}
        request = machine.request(**what, until=until)
        try:
            yield request
        except gs.PolicyError:  # no capacity was idle for so long
            continue
        began, node = world.now, list(np.array(request.placement.node).tolist())  # type: ignore[union-attr]
        early = rng.random() < 0.5
        yield world.timeout(float(rng.integers(1, 9)) if early else until - world.now)
        if request.holds:
            yield machine.release(request)
        if "nodes" in what:
            log.append((began, min(world.now, until), node))


def check(world: World) -> Process:
    """Assert that no free amount is ever below 0."""
    machine = world.machines["cluster"]
    assert machine.nodes is not None
    while world.env.peek() < float("inf"):
        yield world.timeout(0.5)
        assert machine.free >= 0
        assert (machine.nodes.left >= 0).all()
        assert (machine.nodes.gpus >= 0).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "depth"])
def test_nothing_is_given_twice_where_crews_hold_nodes_and_users_submit(policy: str, instant: Any) -> None:
    rng, held = np.random.default_rng([31, 2]), 0
    for _ in range(12):
        machine = draw_machine(rng)
        workload, rule, platform = workload_of(draw_jobs(rng, machine)), draw_rule(rng, machine), platform_of(machine)
        world = World(
            workload.select(workload.submit < 2_000_000), platform, policy_of(policy, rule), Run(instant=instant)
        )
        log: list[Hold] = []
        world.env.process(submits(world, workload.select(workload.submit >= 2_000_000)))
        for _ in range(2):
            world.env.process(crew(world, rng, log))
        world.env.process(check(world))
        world.run()
        record = world.record()
        assert len(record) == len(workload)
        assert not violations(record)
        apart(record, log)
        assert world.machines["cluster"].free == platform.cores
        held += len(log)
    assert held > 40


def apart(record: Record, log: list[Hold]) -> None:
    """Assert that no job and no other process is on a node while a process holds it whole."""
    found = record.allocations
    assert found is not None
    rows = list(zip(found.node.tolist(), (found.start_us / 1e6).tolist(), (found.end_us / 1e6).tolist(), strict=True))
    for number, (begin, end, nodes) in enumerate(log):
        for node, start, over in rows:
            assert node not in nodes or over <= begin or start >= end
        for start, over, others in log[:number]:
            assert not set(others) & set(nodes) or over <= begin or start >= end


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "depth"])
def test_nodes_that_are_held_are_a_job_of_exclusive_nodes_to_the_scheduler(policy: str) -> None:
    rng = np.random.default_rng([31, 3])
    for _ in range(12):
        nodes = int(rng.integers(1, 4))
        machine = Machine([Node({"cores": 4, "memory": 8}, gpus=1)] * 4)
        jobs = workload_of(draw_jobs(rng, machine))
        jobs = replace(jobs, submit=jobs.submit + 1_000_000, deadline=jobs.deadline)
        world = World(jobs, platform_of(machine), policy)

        def taken(count: int = nodes, world: World = world) -> Process:
            yield world.machines["cluster"].request(nodes=count, until=20)

        world.env.process(taken())
        world.run()
        whole = Demand(tasks=nodes, each={"cores": 1}, tasks_per_node=1, min_nodes=nodes, exclusive=True)
        assert jobs.demands is not None
        every = Workload.from_columns(
            submit=np.append(0, jobs.submit) / 1e6,
            runtime=np.append(20, jobs.runtime / 1e6),
            estimate=np.append(20, jobs.estimate / 1e6),
            demands=Demands.of([whole]).joined(jobs.demands),
        )
        expected = gs.simulate(every, platform=platform_of(machine), policy=policy).record
        assert world.record().start_us.tolist() == expected.start_us[1:].tolist()
