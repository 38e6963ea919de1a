"""Properties of the schedules of each policy on any workload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.claims import fcfs_order_kept, heads_delayed, heads_kept_waiting, promises_broken, work
from gridsim.testing.conformance.running import run
from gridsim.testing.invariants import violations
from tests.oracles.strategies import workloads

CORES = 8
INSTANTS = st.sampled_from(["batched", "per-event"])
OVERRUNS = st.sampled_from(["kill", "extend"])
FIRST_COME = ["fcfs", "easy", "depth?k=3"]
ALL = [
    *FIRST_COME,
    "first-fit",
    "conservative",
    "conservative?compress=arrival",
    "conservative?compress=none",
    "conservative?ordering=sjf",
    "wfp3",
    "easy?ordering=xfactor",
    "easy?ordering=random",
    "backfilling?ordering=random&reserve=strict",
    "depth?k=4&ordering=llf",
]


def simulate(workload: Workload, policy: str, **options: Any) -> Record:
    return gs.simulate(workload, platform=gs.Platform.single(CORES), policy=policy, **options).record


def scaled(workload: Workload, factor: int) -> Workload:
    return Workload.from_columns(
        submit=workload.submit * factor / 1e6,
        runtime=workload.runtime * factor / 1e6,
        estimate=workload.estimate * factor / 1e6,
        cores=workload.cores,
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", ALL)
@given(workload=workloads(cores=CORES, deadlines=True), instant=INSTANTS, overrun=OVERRUNS)
def test_schedules_are_possible_complete_and_repeatable(
    policy: str, workload: Workload, instant: str, overrun: str
) -> None:
    record = simulate(workload, policy, instant=instant, overrun=overrun, seed=3)
    assert violations(record, overrun=overrun) == []  # type: ignore[arg-type]
    held = workload.runtime if overrun == "extend" else np.minimum(workload.runtime, workload.estimate)
    assert work(record) == int((held * workload.cores).sum())
    again = simulate(workload, policy, instant=instant, overrun=overrun, seed=3)
    assert record.start_us.tolist() == again.start_us.tolist()


@given(workload=workloads(cores=CORES), instant=INSTANTS, overrun=OVERRUNS)
def test_fcfs_lets_no_job_overtake(workload: Workload, instant: str, overrun: str) -> None:
    assert fcfs_order_kept(simulate(workload, "fcfs", instant=instant, overrun=overrun))


@pytest.mark.parametrize("policy", FIRST_COME)
@given(workload=workloads(cores=CORES), instant=INSTANTS, overrun=OVERRUNS)
def test_no_head_waits_with_enough_free_cores(policy: str, workload: Workload, instant: str, overrun: str) -> None:
    assert heads_kept_waiting(simulate(workload, policy, instant=instant, overrun=overrun)) == []


@pytest.mark.parametrize("policy", ["easy", "depth?k=3"])
@given(workload=workloads(cores=CORES), instant=INSTANTS)
def test_easy_never_delays_the_first_job(policy: str, workload: Workload, instant: str) -> None:
    assert heads_delayed(simulate(workload, policy, instant=instant)) == []


@pytest.mark.parametrize("compress", ["planned", "arrival", "none"])
@given(workload=workloads(cores=CORES), instant=INSTANTS)
def test_conservative_never_moves_a_promise_later(compress: str, workload: Workload, instant: str) -> None:
    record, plans = run(workload, CORES, f"conservative?compress={compress}", instant=instant)
    latest: dict[int, int] = {}
    for _, plan in sorted(plans.items()):
        for job, start in plan.items():
            assert start <= latest.get(job, start)
            latest[job] = start
    assert promises_broken(record, latest) == []


@given(workload=workloads(cores=CORES, estimates="exact"))
def test_compression_has_nothing_to_do_when_estimates_are_exact(workload: Workload) -> None:
    starts = [
        simulate(workload, f"conservative?compress={mode}").start_us.tolist() for mode in ("planned", "arrival", "none")
    ]
    assert starts[0] == starts[1] == starts[2]


@given(workload=workloads(cores=CORES))
def test_every_policy_is_fcfs_when_every_job_needs_the_whole_machine(workload: Workload) -> None:
    wide = Workload.from_columns(
        submit=workload.submit / 1e6,
        runtime=workload.runtime / 1e6,
        estimate=workload.estimate / 1e6,
        cores=np.full(len(workload), CORES),
    )
    expected = simulate(wide, "fcfs").start_us.tolist()
    for policy in ("easy", "first-fit", "depth?k=3", "conservative"):
        assert simulate(wide, policy).start_us.tolist() == expected


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "wfp3"])
@given(workload=workloads(cores=CORES), factor=st.sampled_from([2, 3, 60]))
def test_scaling_all_times_scales_the_schedule(policy: str, workload: Workload, factor: int) -> None:
    once = simulate(workload, policy).start_us * factor
    assert simulate(scaled(workload, factor), policy).start_us.tolist() == once.tolist()


@given(workload=workloads(cores=CORES, largest=60, estimates="over"))
def test_longer_queues_break_no_promise(workload: Workload) -> None:
    record, plans = run(workload, CORES, "conservative")
    first: dict[int, int] = {}
    for _, plan in sorted(plans.items()):
        for job, start in plan.items():
            first.setdefault(job, start)
    assert promises_broken(record, first) == []
    assert violations(record) == []
