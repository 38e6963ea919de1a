"""The second implementation and the fast one make exactly the same schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.workload import Workload
from gridsim.testing.oracle import ORDERS, schedule
from tests.oracles.strategies import workloads

CORES = 8
INSTANTS = ("batched", "per-event")
OVERRUNS = ("kill", "extend")

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fcfs": ("fcfs", {}),
    "easy": ("easy", {}),
    "first-fit": ("first-fit", {}),
    "depth?k=2": ("depth", {"k": 2}),
    "depth?k=1": ("easy", {}),
    "conservative?compress=planned": ("conservative", {"compress": "planned"}),
    "conservative?compress=arrival": ("conservative", {"compress": "arrival"}),
    "conservative?compress=arrival&compress_at=every": (
        "conservative",
        {"compress": "arrival", "compress_at": "every"},
    ),
    "conservative?compress_at=every": ("conservative", {}),
    "conservative?compress=none": ("conservative", {"compress": "none"}),
}

RULES = {
    "strict": ("fcfs", {}),
    "easy": ("easy", {}),
    "first-fit": ("first-fit", {}),
    "depth(k=3)": ("depth", {"k": 3}),
}

MACHINES = {
    "cores": gs.Platform.single(CORES),
    "pools": gs.Platform.of_nodes([], {"cores": CORES, "licence": 1}),
    "one node": gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": CORES})]),
    "nodes of one core": gs.Platform.of_nodes([gs.NodeGroup(group="n", count=CORES, capacity={"cores": 1})]),
}
"""Machines on which jobs that request cores alone have the same schedule, on the last without reservations."""

RATIONAL = [name for name in ORDERS if name not in ("wfp3", "unicef")]
"""Orders with small rational keys: equal keys are also equal as floats."""


def assert_same(workload: Workload, spec: str, policy: str, cores: int = CORES, **options: Any) -> None:
    shared = {name: value for name, value in options.items() if name in ("overrun", "instant", "tick")}
    slow = schedule(workload, cores, policy, **options)  # type: ignore[arg-type]
    fast = gs.simulate(workload, platform=gs.Platform.single(cores), policy=spec, **shared).record
    assert fast.start_us.tolist() == slow.start_us.tolist()
    assert fast.end_us.tolist() == slow.end_us.tolist()
    assert fast.status.tolist() == slow.status.tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("overrun", OVERRUNS)
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("spec", POLICIES)
@given(workload=workloads(cores=CORES))
def test_policies_in_first_come_order(spec: str, instant: str, overrun: str, workload: Workload) -> None:
    policy, options = POLICIES[spec]
    assert_same(workload, spec, policy, instant=instant, overrun=overrun, **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reserve", RULES)
@pytest.mark.parametrize("order", RATIONAL)
@given(
    workload=workloads(cores=CORES, deadlines=True),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
)
@settings(max_examples=max(12, settings.default.max_examples // 3))  # type: ignore[union-attr]
def test_any_ordering_with_any_rule(order: str, reserve: str, workload: Workload, instant: str, overrun: str) -> None:
    policy, options = RULES[reserve]
    spec = f"backfilling?ordering={order}&reserve={reserve}"
    assert_same(workload, spec, policy, order=order, instant=instant, overrun=overrun, **options)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("machine", MACHINES)
@given(
    workload=workloads(cores=CORES, deadlines=True),
    order=st.sampled_from(RATIONAL),
    reserve=st.sampled_from(list(RULES)),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
)
def test_list_policies_on_any_machine(
    machine: str, engine: str, workload: Workload, order: str, reserve: str, instant: Any, overrun: Any
) -> None:
    name, k = RULES[reserve]
    # A reservation on given nodes is narrower than one of a number of cores: jobs that are backfilled cannot move.
    assume(machine != "nodes of one core" or name in ("fcfs", "first-fit"))
    shared = {"instant": instant, "overrun": overrun}
    slow = schedule(workload, CORES, name, order=order, **k, **shared)  # type: ignore[arg-type]
    policy = f"backfilling?ordering={order}&reserve={reserve}"
    fast = gs.simulate(workload, platform=MACHINES[machine], policy=policy, engine=engine, **shared).record  # type: ignore[arg-type]
    assert fast.start_us.tolist() == slow.start_us.tolist()
    assert fast.end_us.tolist() == slow.end_us.tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", [name for name in RATIONAL if name != "fifo"])
@given(
    workload=workloads(cores=CORES, deadlines=True),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
)
@settings(max_examples=max(12, settings.default.max_examples // 3))  # type: ignore[union-attr]
def test_any_ordering_of_compression(order: str, workload: Workload, instant: str, overrun: str) -> None:
    spec = f"conservative?ordering={order}"
    assert_same(workload, spec, "conservative", order=order, instant=instant, overrun=overrun)


@pytest.mark.parametrize("reserve", ["strict", "easy"])
@pytest.mark.parametrize("order", ["wfp3", "unicef"])
@given(seed=st.integers(0, 2**32 - 1))
def test_orderings_whose_keys_are_rounded_on_times_without_ties(order: str, reserve: str, seed: int) -> None:
    rng, jobs = np.random.default_rng(seed), 12
    runtime = rng.uniform(1, 20, jobs)
    workload = Workload.from_columns(
        submit=np.sort(rng.uniform(0, 20, jobs)),
        runtime=runtime,
        estimate=runtime * rng.uniform(1, 3, jobs),
        cores=rng.integers(1, CORES + 1, jobs),
    )
    assert_same(workload, f"backfilling?ordering={order}&reserve={reserve}", RULES[reserve][0], order=order)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@given(workload=workloads(cores=CORES), tick=st.sampled_from([0.25, 1.0, 3.0]))
def test_the_tick_of_overruns(policy: str, workload: Workload, tick: float) -> None:
    assert_same(workload, policy, policy, overrun="extend", tick=tick)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@given(workload=workloads(cores=CORES))
def test_jobs_wider_than_the_machine_are_rejected_by_both(policy: str, workload: Workload) -> None:
    assert_same(workload, policy, policy, cores=CORES - 1)


@given(workload=workloads(cores=CORES), instant=st.sampled_from(INSTANTS), overrun=st.sampled_from(OVERRUNS))
def test_the_oracle_agrees_with_itself_on_easy_as_one_reservation(
    workload: Workload, instant: Any, overrun: Any
) -> None:
    literal = schedule(workload, CORES, "easy", instant=instant, overrun=overrun)
    reserved = schedule(workload, CORES, "depth", k=1, instant=instant, overrun=overrun)
    assert literal.start_us.tolist() == reserved.start_us.tolist()
