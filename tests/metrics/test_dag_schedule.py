"""Schedules of DAG jobs: from tasks and from records, and input that is not a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.metrics.dag import dag_metrics
from gridsim.metrics.schedule import Schedule
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload
from gridsim.record import Record, Status

GOOD: dict[str, Any] = {
    "arrival": [0, 5],
    "critical_path": [3, 2],
    "task_job": [0, 1, 0],
    "task_start": [0, 6, 1],
    "task_finish": [1, 8, 4],
    "task_cores": [1, 2, 3],
    "cores": 4,
}


@dataclass(frozen=True)
class Times:
    start_us: IntArray
    end_us: IntArray


def test_job_columns_follow_from_tasks_in_any_order() -> None:
    schedule = Schedule.from_tasks(**GOOD)
    assert schedule.start.tolist() == [0, 6]
    assert schedule.finish.tolist() == [4, 8]
    assert schedule.work.tolist() == [1 + 9, 4]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("arrival", [5, 0], "order of arrival"),
        ("critical_path", [3], "1 values for 2 jobs"),
        ("critical_path", [3, 0], "critical path of at least 1"),
        ("task_job", [0, 0, 0], "a task for each job"),
        ("task_job", [0, 1, 2], "belongs to none"),
        ("task_finish", [0, 8, 4], "a finish after the start"),
        ("task_finish", [1, 8], "2 finishes for 3 tasks"),
        ("task_cores", [1, 2, 0], "at least 1 core"),
        ("cores", 0, "a grid of 0 cores"),
    ],
)
def test_invalid_schedules_are_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Schedule.from_tasks(**{**GOOD, field: value})
    assert field in str(caught.value) or field == "task_finish"


def test_a_selection_keeps_the_tasks_of_its_jobs() -> None:
    second = Schedule.from_tasks(**GOOD).select(np.array([False, True]))
    assert second.task_job.tolist() == [0]
    assert second.task_start.tolist() == second.start.tolist() == [6]


def test_a_record_of_rigid_jobs_is_a_schedule_of_one_task_jobs() -> None:
    record = Record.from_rows(
        [{"submit": 0, "start": 0, "end": 4, "cores": 2}, {"submit": 1, "start": 4, "end": 6, "cores": 1}]
    )
    schedule = Schedule.from_record(record)
    assert schedule.critical_path.tolist() == [4, 2]
    assert dag_metrics(schedule)["worst_slr"] == 2.5


def test_jobs_that_did_not_run_are_left_out() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": None, "end": None, "runtime": 3, "cores": 1},
            {"submit": 1, "start": 4, "end": 6, "cores": 1},
        ],
        cores=2,
    )
    schedule = Schedule.from_record(record)
    assert (len(schedule), schedule.arrival.tolist(), schedule.task_job.tolist()) == (1, [1], [0])


def dag_record() -> tuple[Record, Times]:
    """A job of three tasks and one of a single task that never ran."""
    tasks = Tasks.from_edges(counts=[3, 1], runtime=[2, 3, 4, 5], cores=[1, 1, 2, 1], edges=[(0, 1), (0, 2)])
    workload = Workload.from_tasks(tasks, submit=[5, 6])
    record = Record(
        workload,
        start_us=np.array([to_us(6), NEVER]),
        end_us=np.array([to_us(12), NEVER]),
        status=np.array([Status.completed, Status.rejected], dtype=np.int8),
        cluster=np.zeros(2, dtype=np.int16),
        cores=4,
    )
    starts, ends = to_us(np.array([6, 8, 8])), to_us(np.array([8, 11, 12]))
    return record, Times(np.append(starts, NEVER), np.append(ends, NEVER))


def test_a_record_of_dag_jobs_gives_its_tasks_and_longest_chains() -> None:
    record, times = dag_record()
    schedule = Schedule.from_record(record, tasks=times)
    assert (schedule.critical_path.tolist(), schedule.work.tolist()) == ([6], [13])
    assert schedule.task_start.tolist() == [6, 8, 8]
    delayed = Schedule.from_record(record, tasks=times, critical_path=to_us(np.array([7, 5])))
    assert delayed.critical_path.tolist() == [7]


def test_times_between_ticks_are_an_error_and_a_smaller_tick_is_the_cure() -> None:
    record = Record.from_rows([{"submit": 0, "start": 0.5, "end": 2, "cores": 1}])
    with pytest.raises(InputError, match="not a multiple of the tick"):
        Schedule.from_record(record)
    assert Schedule.from_record(record, tick=500_000).start.tolist() == [1]
