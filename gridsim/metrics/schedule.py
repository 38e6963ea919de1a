"""Finished schedule of DAG jobs as columns of whole ticks, the input of the metrics in `dag`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.record import Record

Origin = Literal["first-arrival", "absolute"]
"""Origin of the clock: the first arrival (default), or the 0 of the schedule."""


class TaskTimes(Protocol):
    """Start and end times of the tasks of a workload, aligned with their rows."""

    @property
    def start_us(self) -> IntArray:
        """Starts, whole microseconds."""

    @property
    def end_us(self) -> IntArray:
        """Ends, whole microseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Finished jobs in job order with their tasks; times in ticks.

    Attributes
    ----------
    arrival, start, finish : (n,) int64
        Arrival, start of the first task and finish of the last task of each job. Arrivals ascend or are equal.
    work : (n,) int64
        Sum of execution time times cores over the tasks (J_exec), core-ticks.
    critical_path : (n,) int64
        Longest chain of a job with its unavoidable delays (J_CP), ticks.
    task_start, task_finish, task_cores : (m,) int64
        Interval ``[start, finish)`` in which each task holds its cores, and the number of cores.
    task_job : (m,) int64
        Row of the task's job.
    cores : int
        Cores of the grid.
    """

    arrival: IntArray
    start: IntArray
    finish: IntArray
    work: IntArray
    critical_path: IntArray
    task_start: IntArray
    task_finish: IntArray
    task_cores: IntArray
    task_job: IntArray
    cores: int

    @classmethod
    def from_tasks(
        cls,
        *,
        arrival: Any,
        critical_path: Any,
        task_job: Any,
        task_start: Any,
        task_finish: Any,
        task_cores: Any = 1,
        cores: int,
    ) -> Schedule:
        """Return a schedule whose job columns are derived from the tasks.

        Raises
        ------
        InputError
            If columns differ in length, arrivals descend, a job has no task, or a value is impossible.

        Examples
        --------
        >>> one = Schedule.from_tasks(
        ...     arrival=[0], critical_path=[5], task_job=[0, 0], task_start=[1, 3], task_finish=[3, 6], cores=4
        ... )
        >>> one.start.tolist(), one.finish.tolist(), one.work.tolist()
        ([1], [6], [5])
        """
        arrival, critical_path = _ints(arrival), _ints(critical_path)
        job, begin, end = _ints(task_job), _ints(task_start), _ints(task_finish)
        width = np.broadcast_to(_ints(task_cores), begin.shape).copy()
        _check(arrival, critical_path, job, begin, end, width, cores)
        order = np.argsort(job, kind="stable")
        first = np.searchsorted(job[order], np.arange(len(arrival)))
        empty = not len(arrival)
        return cls(
            arrival=arrival,
            start=arrival if empty else np.minimum.reduceat(begin[order], first),
            finish=arrival if empty else np.maximum.reduceat(end[order], first),
            work=arrival if empty else np.add.reduceat((end - begin)[order] * width[order], first),
            critical_path=critical_path,
            task_start=begin,
            task_finish=end,
            task_cores=width,
            task_job=job,
            cores=cores,
        )

    @classmethod
    def from_record(
        cls,
        record: Record,
        *,
        tasks: TaskTimes | None = None,
        critical_path: IntArray | None = None,
        tick: int = MICROSECOND,
    ) -> Schedule:
        """Return the schedule of the jobs of a record that ran.

        Parameters
        ----------
        record : Record
            Record of DAG jobs, or of rigid jobs, which are treated as jobs of one task.
        tasks : TaskTimes, optional
            Times of each task of ``record.workload.tasks``; by default those of the record.
        critical_path : (n,) int64, optional
            Critical paths with unavoidable delays, microseconds; by default those of the record.
        tick : int
            Length of a tick, microseconds.

        Raises
        ------
        InputError
            If a time is not a whole number of ticks.
        """
        workload = record.workload
        times = record.tasks if tasks is None else tasks
        critical_path = record.critical_path if critical_path is None else critical_path
        if workload.tasks is None:
            job, width = np.arange(len(workload)), record.given
            begin, end = record.start_us, record.end_us
        elif times is None:
            raise InputError("this record of DAG jobs has no times of tasks", field="tasks")
        else:
            job, width = workload.tasks.job_rows(), workload.tasks.cores if record.tasks is None else record.given
            begin, end = times.start_us, times.end_us
        ran, longest = record.ran, workload.runtime if critical_path is None else critical_path
        kept, rows = ran[job], np.cumsum(ran) - 1
        return cls.from_tasks(
            arrival=_ticks(workload.submit[ran], tick, "submit"),
            critical_path=_ticks(longest[ran], tick, "critical_path"),
            task_job=rows[job[kept]],
            task_start=_ticks(begin[kept], tick, "start"),
            task_finish=_ticks(end[kept], tick, "end"),
            task_cores=width[kept],
            cores=record.cores,
        )

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def makespan(self) -> int:
        """Latest finish, ticks on the clock of the schedule; 0 without jobs."""
        return int(self.finish.max(initial=0))

    def from_origin(self, origin: Origin = "first-arrival") -> Schedule:
        """Return the schedule on a clock with another *origin*."""
        first = int(self.arrival[0]) if origin == "first-arrival" and len(self) else 0
        if not first:
            return self
        names = ("arrival", "start", "finish", "task_start", "task_finish")
        return replace(self, **{name: getattr(self, name) - first for name in names})

    def select(self, rows: npt.NDArray[np.bool_]) -> Schedule:
        """Return the schedule of the jobs in a mask."""
        kept, renumbered = rows[self.task_job], np.cumsum(rows) - 1
        jobs = {name: getattr(self, name)[rows] for name in ("arrival", "start", "finish", "work", "critical_path")}
        tasks = {name: getattr(self, name)[kept] for name in ("task_start", "task_finish", "task_cores")}
        return Schedule(**jobs, **tasks, task_job=renumbered[self.task_job[kept]], cores=self.cores)


def _ints(values: Any) -> IntArray:
    return np.asarray(values, dtype=np.int64)


def _ticks(values: IntArray, tick: int, field: str) -> IntArray:
    """Convert microseconds to ticks."""
    ticks = values // tick
    if (ticks * tick != values).any():
        late = int(values[ticks * tick != values][0])
        raise InputError(f"{late} us is not a multiple of the tick of {tick} us; give a smaller tick", field=field)
    return ticks


def _check(
    arrival: IntArray,
    critical_path: IntArray,
    job: IntArray,
    begin: IntArray,
    end: IntArray,
    width: IntArray,
    cores: int,
) -> None:
    if len(critical_path) != len(arrival):
        raise InputError(f"{len(critical_path)} values for {len(arrival)} jobs", field="critical_path")
    if not len(job) == len(begin) == len(end):
        raise InputError(f"{len(begin)} starts and {len(end)} finishes for {len(job)} tasks", field="task_start")
    if ((job < 0) | (job >= len(arrival))).any():
        raise InputError(f"a task belongs to none of the {len(arrival)} jobs", field="task_job")
    counts = np.bincount(job, minlength=len(arrival))
    for field, bad, rule in (
        ("arrival", np.diff(arrival) < 0, "jobs in order of arrival"),
        ("critical_path", critical_path < 1, "a critical path of at least 1 tick"),
        ("task_job", counts < 1, "a task for each job"),
        ("task_finish", end <= begin, "a finish after the start"),
        ("task_cores", width < 1, "at least 1 core"),
    ):
        if bad.any():
            raise InputError(f"row {int(np.argmax(bad))} is wrong; expected {rule}", field=field)
    if cores < 1:
        raise InputError(f"a grid of {cores} cores; expected at least 1", field="cores")
