"""Guarantees hold on machines of nodes; with one binding resource, results equal those of one pool of cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.registry import parse
from gridsim.testing import check_scheduler
from gridsim.testing.invariants import violations
from tests.oracles.machine.compared import policy_of
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES
from tests.oracles.machine.translated import platform_of, workload_of
from tests.properties.test_guarantees import CONTROLLERS, CORES, QUICK, demanding

pytestmark = pytest.mark.long


def simulate(workload: Workload, policy: str, platform: Platform, **options: Any) -> Record:
    policy += ("&" if "?" in policy else "?") + QUICK
    return gs.simulate(workload, platform=platform, policy=policy, **options).record


def told(record: Record) -> dict[str, list[Any]]:
    assert record.promises is not None
    promises = record.promises
    return {
        "start": record.start_us.tolist(),
        "end": record.end_us.tolist(),
        "status": record.status.tolist(),
        "granted": promises.granted_us.tolist(),
        "offer": promises.offer_us.tolist(),
        "doublings": promises.doublings.tolist(),
        "broken": promises.broken.tolist(),
        "killed": promises.killed.tolist(),
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", CONTROLLERS)
@given(workload=demanding(), overrun=st.sampled_from(["kill", "extend"]), memory=st.integers(0, 5))
def test_one_node_of_all_cores_is_the_pool(policy: str, workload: Workload, overrun: Any, memory: int) -> None:
    """Section 6, E2 and E3: the same schedules, the same offers."""
    node = Platform.of_nodes([NodeGroup(group="n", capacity={"cores": CORES, "memory": 5 * 15 * CORES})])
    tasks = [Demand(tasks=cores, each={"cores": 1, "memory": memory}) for cores in workload.cores.tolist()]
    plain = simulate(workload, policy, Platform.single(CORES), overrun=overrun)
    on_node = simulate(replace(workload, demands=Demands.of(tasks)), policy, node, overrun=overrun)
    assert told(on_node) == told(plain)


def with_deadlines(rng: np.random.Generator, workload: Workload) -> Workload:
    """Draw jobs with tight deadlines or none, users with and without tolerance, and jobs that must not be stopped."""
    n = len(workload)
    slack = rng.choice((0, 1, 2, 3, 5, 8, 13, 21), n) * MICROSECOND
    deadline = np.where(rng.random(n) < 0.2, NEVER, workload.submit + workload.estimate + slack)
    tolerance = rng.choice((1.0, 1.5, 3.0, np.inf), n)
    return replace(workload, deadline=deadline, tolerance=tolerance, restartable=rng.random(n) < 0.7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", CONTROLLERS)
def test_promises_are_kept_at_places_that_there_are(policy: str, instant: Any) -> None:
    rng = np.random.default_rng([47, CONTROLLERS.index(policy)])
    promises = 0
    for number in range(6):
        machine = draw_machine(rng)
        platform = platform_of(machine)
        workload = with_deadlines(rng, workload_of(draw_jobs(rng, machine, 14)))
        placement = policy_of("easy", draw_rule(rng, machine, RULES[number % len(RULES)])).parameters["placement"]
        asked = parse(f"{policy}{'&' if '?' in policy else '?'}{QUICK}")
        spec = replace(asked, parameters={**asked.parameters, "placement": placement})
        record = gs.simulate(workload, platform=platform, policy=spec, instant=instant).record
        assert violations(record, platform=platform) == []
        assert record.promises is not None
        granted = record.promises.granted_us
        promised = granted < NEVER
        assert (record.end_us[promised] <= granted[promised]).all()
        assert record.ran[promised].all(), "who is promised an end runs"
        assert not record.promises.broken.any()
        assert record.reason is not None
        left_out = ~promised & (record.reason == "")
        if "best-effort" in policy:
            assert not (record.status == Status.unadmitted).any(), "nobody leaves"
        else:
            assert ((record.status == Status.unadmitted) == left_out).all()
        promises += int(promised.sum())
    assert promises > 12


@pytest.mark.parametrize("policy", ["qops", "fqops?kill_restart=true", "msb?unadmitted=best-effort"])
def test_a_rule_that_draws_draws_for_what_is_taken_in_alone(policy: str) -> None:
    check_scheduler(f"{policy}{'&' if '?' in policy else '?'}placement=random", workloads=3)


@pytest.mark.parametrize("policy", ["msb", "mrt", "qops", "fqops"])
def test_a_job_moves_to_another_node_for_one_that_is_taken_in(policy: str) -> None:
    # Job 3 is planned on the node with much memory, free at 10, until job 4 needs it by 15; the other is free at 12.
    thin = NodeGroup(group="thin", capacity={"cores": 1, "memory": 1})
    fat = NodeGroup(group="fat", capacity={"cores": 1, "memory": 9})
    little, much = (Demand(tasks=1, each={"cores": 1, "memory": memory}) for memory in (1, 9))
    jobs = Workload.from_columns(
        submit=[0, 0, 1, 2],
        runtime=[10, 12, 5, 5],
        deadline=[10, 12, 20, 15],
        demands=Demands.of([much, little, little, much]),
    )
    machine = Platform.of_nodes([fat, thin])
    alone = gs.simulate(jobs.select(slice(0, 3)), platform=machine, policy=policy)
    assert alone.jobs["start"].tolist() == [0, 0, 10]
    result = gs.simulate(jobs, platform=machine, policy=policy)
    assert result.jobs["start"].tolist() == [0, 0, 12, 10]
    assert result.allocations["node"].tolist() == ["fat", "thin", "thin", "fat"]
