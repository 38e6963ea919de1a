"""The second implementation on schedules that can be checked by hand."""

from __future__ import annotations

import pytest

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.record import Status
from gridsim.testing.oracle import schedule

MIXED = Workload.from_columns(submit=[0, 1, 2, 3], runtime=[10, 10, 10, 30], cores=[3, 3, 4, 1])
"""Job 2 waits for job 1; job 4 is narrow and long; job 3 needs all four cores."""


def starts(workload: Workload, policy: str, cores: int = 4, **options: object) -> list[float]:
    return schedule(workload, cores, policy, **options).start.tolist()  # type: ignore[arg-type]


def test_fcfs_easy_and_conservative_on_one_list() -> None:
    assert starts(MIXED, "fcfs") == [0, 10, 20, 30]
    assert starts(MIXED, "easy") == [0, 10, 33, 3]
    assert starts(MIXED, "conservative") == [0, 10, 20, 30]


def test_first_fit_protects_no_job_and_depth_two_protects_the_second() -> None:
    assert starts(MIXED, "first-fit") == [0, 10, 33, 3]
    assert starts(MIXED, "depth", k=2) == [0, 10, 20, 30]


def test_an_overrunning_job_is_expected_to_end_after_one_two_four_ticks() -> None:
    late = Workload.from_columns(submit=[0, 1], runtime=[14, 10], estimate=[10, 10], cores=[4, 4])
    plans: dict[int, dict[int, int]] = {}
    record = schedule(
        late, 4, "conservative", overrun="extend", watch=lambda now, plan: plans.update({now: dict(plan)})
    )
    assert [plans[second * 10**6].get(2, 0) // 10**6 for second in (1, 10, 11, 12)] == [10, 11, 12, 14]
    assert record.end.tolist() == [14, 24]


def test_a_job_that_reaches_its_estimate_is_killed_there() -> None:
    late = Workload.from_columns(submit=[0, 1], runtime=[14, 10], estimate=[10, 10], cores=[4, 4])
    record = schedule(late, 4, "fcfs")
    assert record.end.tolist() == [10, 20]
    assert record.status.tolist() == [Status.killed_walltime, Status.completed]


def test_a_job_wider_than_the_machine_is_rejected() -> None:
    record = schedule(MIXED, 3, "easy")
    assert record.status.tolist() == [Status.completed, Status.completed, Status.rejected, Status.completed]
    assert not record.ran[2]


def test_an_order_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match="has no order 'alphabet'"):
        schedule(MIXED, 4, order="alphabet")
