"""Jobs as columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload


def workload(**columns: Any) -> Workload:
    return Workload.from_columns(**{"submit": [0, 5, 9], "runtime": [10, 20, 30], "cores": [1, 2, 4], **columns})


def test_times_are_held_in_whole_microseconds() -> None:
    jobs = workload(submit=[0, 0.5, 1])
    assert jobs.submit.tolist() == [0, 500_000, 1_000_000]
    assert jobs.runtime.dtype == np.int64


def test_jobs_are_sorted_by_submit_time_and_equal_ones_keep_their_order() -> None:
    jobs = workload(submit=[7, 3, 7], job=[30, 20, 10], labels={"user": [1, 2, 3]})
    assert jobs.job.tolist() == [20, 30, 10]
    assert jobs.labels["user"].tolist() == [2, 1, 3]


def test_estimates_are_the_runtimes_where_none_are_given() -> None:
    jobs = workload()
    assert jobs.estimate.tolist() == jobs.runtime.tolist()
    assert jobs.estimate is not jobs.runtime


def test_jobs_are_numbered_from_one_where_no_numbers_are_given() -> None:
    assert workload().job.tolist() == [1, 2, 3]


def test_one_number_of_cores_stands_for_all_jobs() -> None:
    assert workload(cores=2).cores.tolist() == [2, 2, 2]


def test_no_deadline_is_never() -> None:
    assert workload().deadline.tolist() == [NEVER] * 3
    assert workload(deadline=[math.nan, 60, math.inf]).deadline.tolist() == [NEVER, 60_000_000, NEVER]


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("runtime", [10, 0, 30], "job 2 has 0.0; expected a finite run time above 0 s"),
        ("runtime", [10, -1, 30], "job 2 has -1.0"),
        ("runtime", [10, math.nan, 30], "job 2 has inf"),
        ("estimate", [10, 20, 0], "job 3 has 0.0; expected a finite estimate above 0 s"),
        ("estimate", [10, 20, math.inf], "job 3 has inf"),
        ("cores", [0, 2, 4], "job 1 has 0; expected at least 1 core"),
        ("cores", [1.5, 2, 4], "has 1.5; expected whole numbers"),
        ("cores", ["a", 2, 4], "is not a column of whole numbers"),
        ("cores", [1, math.nan, 4], "has nan; expected whole numbers"),
        ("cores", [1, 2], "column has 2 rows, but there are 3"),
        ("submit", [-1, 5, 9], "job 1 has -1.0; expected a submit time from 0 s"),
        ("submit", [0, math.nan, 9], "job 2 has inf"),
        ("runtime", [10, 20], "column has 2 rows"),
        ("estimate", [10], "column has 1 rows"),
        ("deadline", [10], "column has 1 rows"),
        ("job", [1, 2], "but there are 2 job numbers"),
    ],
)
def test_an_invalid_job_is_refused_with_its_column(column: str, values: list[Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        workload(**{column: values})
    assert told in str(caught.value)
    assert caught.value.field == column or "rows" in str(caught.value)


def test_a_workload_may_be_empty() -> None:
    jobs = workload(submit=[], runtime=[], cores=[])
    assert len(jobs) == 0
    assert repr(jobs) == "<Workload: no jobs>"
    assert math.isnan(jobs.offered_load(4))


def test_every_column_is_selected_equally() -> None:
    jobs = workload(labels={"user": [5, 6, 7]}, logged={"wait": [1.0, 2.0, 3.0]}, deadline=[50, 60, 70])
    part = jobs.select([2, 0])
    assert {name: column.tolist() for name, column in part.columns()} == {
        "job": [3, 1],
        "submit": [9_000_000, 0],
        "runtime": [30_000_000, 10_000_000],
        "estimate": [30_000_000, 10_000_000],
        "cores": [4, 1],
        "deadline": [70_000_000, 50_000_000],
        "user": [7, 5],
        "wait": [3.0, 1.0],
    }


def test_a_row_is_a_job_of_one_task_in_seconds() -> None:
    job = workload(estimate=[15, 25, 35], labels={"user": [-1, 6, 7]}, deadline=[math.inf, 60, 70])[1]
    assert (job.id, job.submit, job.user, job.deadline) == (2, 5.0, 6, 60.0)
    assert (job.tasks[0].cores, job.tasks[0].runtime, job.tasks[0].estimate) == (2, 20.0, 25.0)


def test_a_row_without_user_or_deadline_says_none() -> None:
    job = workload(labels={"user": [-1, 6, 7]})[0]
    assert (job.user, job.deadline) == (None, None)


def test_provenance_is_added_to_a_new_workload() -> None:
    jobs = workload(provenance={"source": "x"})
    assert jobs.with_provenance(step=1).provenance == {"source": "x", "step": 1}
    assert jobs.provenance == {"source": "x"}


def test_offered_load_is_work_over_capacity_between_the_submits() -> None:
    jobs = workload()
    assert jobs.area.tolist() == [10.0, 40.0, 120.0]
    assert jobs.offered_load(4) == pytest.approx(170 / (4 * 9))


def test_the_repr_reports_how_many_jobs_and_when() -> None:
    assert repr(workload()) == "<Workload: 3 jobs, 0 s to 9 s>"


def test_a_number_that_is_given_to_several_jobs_is_named() -> None:
    with pytest.raises(InputError, match=r"^field 'job': several jobs have the number 7; expected unique numbers"):
        Workload.from_columns(job=[9, 7, 8, 7], submit=[0, 1, 2, 3], runtime=[1] * 4, cores=[1] * 4)
    assert len(Workload.from_columns(job=[9, 7, 8], submit=[0, 1, 2], runtime=[1] * 3, cores=[1] * 3)) == 3


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"deadline": [14]}, "field 'deadline': job 1 has 14.0; expected a deadline at submit . estimate or later"),
        ({"tolerance": [0.5]}, "field 'tolerance': job 1 has 0.5; expected a tolerance of 1 or more"),
        ({"tolerance": [float("nan")]}, "field 'tolerance': job 1 has nan"),
    ],
)
def test_impossible_deadlines_and_tolerances_are_refused(columns: dict[str, list[float]], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Workload.from_columns(submit=[5], runtime=[4], estimate=[10], cores=[1], **columns)
    Workload.from_columns(submit=[5], runtime=[4], estimate=[10], cores=[1], deadline=[15], tolerance=[1])
