"""Equalities on machines of nodes, and their exceptions (specification of machines, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.demand import Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.testing.invariants import violations
from tests.oracles.machine.claims import heads_delayed, left_waiting
from tests.oracles.machine.compared import policy_of, simulated, told
from tests.oracles.machine.parts import Demand, Machine, Node
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES, Rule, Typical
from tests.oracles.machine.schedule import Job
from tests.oracles.machine.translated import platform_of, workload_of

POLICIES = ("fcfs", "first-fit", "easy", "depth", "conservative")
COUNT = 12
"""Random machines of each test and policy."""


def drawn(seed: int, count: int = COUNT) -> Iterator[tuple[np.random.Generator, Machine, list[Job], Rule]]:
    rng = np.random.default_rng([19, seed])
    for number in range(count):
        machine = draw_machine(rng)
        yield rng, machine, draw_jobs(rng, machine), draw_rule(rng, machine, RULES[number % len(RULES)])


def outcome(machine: Machine, jobs: list[Job], policy: str, rule: Rule, **options: Any) -> list[Any]:
    return [told(job) for job in simulated(machine, jobs, policy_of(policy, rule, **options))]


def plain(rng: np.random.Generator, cores: int) -> list[Job]:
    """Draw jobs of plain cores, some of them as wide as the machine or wider."""
    return [
        replace(job, demand=Demand(cores=int(rng.integers(1, cores + 2))))
        for job in draw_jobs(rng, Machine((Node({}),)))
    ]


def times(told_of: list[Any]) -> list[Any]:
    return [each[:3] for each in told_of]


@pytest.mark.parametrize("policy", [*POLICIES, "sjf", "qops", "moldable-greedy"])
def test_a_machine_without_nodes_and_plain_cores_is_the_machine_of_ever(policy: str) -> None:
    # E1: demand columns without further limits change nothing, under any policy.
    rng = np.random.default_rng(20)
    for _ in range(COUNT):
        workload = workload_of(plain(rng, 8))
        bare = replace(workload, demands=None)
        assert workload.demands is not None
        platform = Platform.single(8)
        records = [gs.simulate(each, platform=platform, policy=policy).record for each in (bare, workload)]
        for name in ("start_us", "end_us", "status"):
            one, other = (getattr(record, name) for record in records)
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pool_that_no_job_requests_changes_nothing(policy: str) -> None:
    # E1 and E3 with pools: the cores of a machine with licences equal those of the plain machine.
    rng = np.random.default_rng(21)
    for _ in range(COUNT):
        workload = workload_of(plain(rng, 8))
        with_pool = Platform.of_nodes([], {"cores": 8, "licence": 3})
        bare = gs.simulate(replace(workload, demands=None), platform=Platform.single(8), policy=policy).record
        pools = gs.simulate(workload, platform=with_pool, policy=policy).record
        assert bare.start_us.tolist() == pools.start_us.tolist()
        assert bare.status.tolist() == pools.status.tolist()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", RULES)
def test_one_node_of_all_cores_is_the_pool(policy: str, name: str) -> None:
    # E2: under any placement rule.
    rng = np.random.default_rng(22)
    for _ in range(COUNT // 4):
        jobs = plain(rng, 8)
        node, pool = Machine([Node({"cores": 8})]), Machine([], {"cores": 8})
        rule = draw_rule(rng, node, name)
        assert times(outcome(node, jobs, policy, rule)) == times(outcome(pool, jobs, policy, Rule()))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_resource_that_never_binds_changes_nothing(policy: str) -> None:
    # E3: under first and weight; under the other rules if they ignore the resource.
    for rng, machine, jobs, rule in drawn(3):
        asked = [replace(job, demand=with_scratch(job.demand, int(rng.integers(0, 9)))) for job in jobs]
        most = sum(job.demand.tasks * job.demand.each.get("scratch", 0) for job in asked)
        nodes = [replace(node, capacity={**node.capacity, "scratch": most}) for node in machine.nodes]
        names = tuple(name for name in (*machine.resources, "gpu") if machine.largest(name))
        looked_at = replace(rule, resources=rule.resources or names)
        assert outcome(machine, jobs, policy, looked_at) == outcome(
            replace(machine, nodes=nodes), asked, policy, looked_at
        )


def with_scratch(demand: Demand, amount: int) -> Demand:
    return replace(demand, each={**demand.each, "scratch": amount}) if demand.tasks else demand


@pytest.mark.parametrize("policy", POLICIES)
def test_the_order_of_columns_and_names_means_nothing(policy: str) -> None:
    # E4.
    for _, machine, jobs, rule in drawn(4):
        nodes = [replace(node, capacity=backwards(node.capacity)) for node in machine.nodes]
        other = Machine(nodes, backwards(machine.pools))
        turned = [
            replace(job, demand=replace(job.demand, each=backwards(job.demand.each), pools=backwards(job.demand.pools)))
            for job in jobs
        ]
        assert outcome(machine, jobs, policy, rule) == outcome(other, turned, policy, rule)


def backwards(amounts: Any) -> dict[str, int]:
    return dict(reversed(list(amounts.items())))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_unit_of_a_resource_means_nothing(policy: str) -> None:
    # E5: memory in KiB instead of MiB, cores in thousandths, also in typical demands.
    def finer(amounts: Any) -> dict[str, int]:
        return {name: amount * {"memory": 1024, "cores": 1000}.get(name, 1) for name, amount in amounts.items()}

    def asked(demand: Demand) -> Demand:
        return replace(demand, each=finer(demand.each))

    for _, machine, jobs, rule in drawn(5):
        jobs = [replace(job, demand=job.demand.on(machine)) for job in jobs]
        other = replace(machine, nodes=[replace(node, capacity=finer(node.capacity)) for node in machine.nodes])
        typical = tuple(Typical(asked(each.demand), each.count) for each in rule.typical)
        turned = [replace(job, demand=asked(job.demand)) for job in jobs]
        assert outcome(machine, jobs, policy, rule) == outcome(other, turned, policy, replace(rule, typical=typical))


@pytest.mark.long
def test_depth_zero_is_first_fit_and_depth_one_is_easy() -> None:
    # E6.
    for _, machine, jobs, rule in drawn(6, 2 * COUNT):
        assert outcome(machine, jobs, "depth", rule, k=0) == outcome(machine, jobs, "first-fit", rule)
        assert outcome(machine, jobs, "depth", rule, k=1) == outcome(machine, jobs, "easy", rule)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_schedule_scales_with_all_times(policy: str) -> None:
    # E7.
    for _, machine, jobs, rule in drawn(7):
        slower = [
            replace(job, submit=3 * job.submit, estimate=3 * job.estimate, runtime=3 * job.runtime) for job in jobs
        ]
        expected = [
            (start if reason else 3 * start, end if reason else 3 * end, status, reason, *places)
            for start, end, status, reason, *places in outcome(machine, jobs, policy, rule)
        ]
        assert outcome(machine, slower, policy, rule) == expected


@pytest.mark.parametrize("policy", ["fcfs", "first-fit"])
def test_nodes_of_one_core_are_a_pool_where_nothing_is_reserved(policy: str) -> None:
    # E8.
    rng = np.random.default_rng(23)
    for number in range(2 * COUNT):
        jobs, cores = plain(rng, 6), Machine([Node({"cores": 1})] * 6)
        rule = draw_rule(rng, cores, RULES[number % len(RULES)])
        pool = outcome(Machine([], {"cores": 6}), jobs, policy, Rule())
        assert times(outcome(cores, jobs, policy, rule)) == times(pool)


@pytest.mark.parametrize("policy", ["easy", "depth", "conservative"])
def test_nodes_of_one_core_are_no_pool_where_a_reservation_names_its_cores(policy: str) -> None:
    # E8 does not hold there: in case 19, job 4 finds the idle node reserved.
    given = [(1, 2, 2, 1), (2, 3, 5, 2), (3, 5, 9, 2), (4, 6, 5, 1)]
    jobs = [Job(number, submit, length, length, Demand(cores=cores)) for number, submit, length, cores in given]
    starts: Callable[[Machine], list[int]] = lambda machine: [  # noqa: E731 (said twice below)
        job.start // 10**6 for job in simulated(machine, jobs, policy_of(policy, Rule()))
    ]
    assert starts(Machine([Node({"cores": 1})] * 3)) == [2, 3, 8, 8]
    assert starts(Machine([], {"cores": 3})) == [2, 3, 8, 6]


@pytest.mark.parametrize("policy", POLICIES)
def test_all_invariants_hold_and_a_replay_gives_the_same_record(policy: str) -> None:
    for _, machine, jobs, rule in drawn(8):
        platform, workload = platform_of(machine), workload_of(jobs)
        spec = policy_of(policy, rule, k=2)
        record, again = (gs.simulate(workload, platform=platform, policy=spec).record for _ in range(2))
        assert violations(record, platform=platform) == []
        assert again.start_us.tobytes() == record.start_us.tobytes()
        assert record.allocations is not None
        assert again.allocations is not None
        assert again.allocations.node.tobytes() == record.allocations.node.tobytes()
        assert again.allocations.gpu_texts() == record.allocations.gpu_texts()
        if policy in ("easy", "depth"):
            assert heads_delayed(record, platform) == []
        if policy == "first-fit":
            assert left_waiting(record, platform) == []


def test_plain_cores_need_no_columns() -> None:
    platform = platform_of(Machine([Node({"cores": 4}), Node({"cores": 2})]))
    bare = Workload.from_columns(submit=[0, 0], runtime=[5, 5], cores=[5, 2])
    same = replace(bare, demands=Demands.plain_cores(bare.cores))
    records = [gs.simulate(each, platform=platform, policy="easy").record for each in (bare, same)]
    assert [record.start.tolist() for record in records] == [[0, 5], [0, 5]]
