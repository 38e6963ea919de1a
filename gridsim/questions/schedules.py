"""Schedules as columns in seconds, one row per job, from a record or a result directory of any origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.groups import called
from gridsim.metrics.stranding import lacking
from gridsim.model.dates import Calendar, calendar_of
from gridsim.model.job_id import JobIds
from gridsim.model.platform import Platform
from gridsim.model.time import FloatArray, IntArray, seconds
from gridsim.model.workload import UNKNOWN
from gridsim.questions.partition_view import Parts, parts_of, parts_read, rows_of
from gridsim.record import PREEMPTED, REASONS, SAVED, SUSPENDED, Record
from gridsim.run_folder import RUN_TABLES, read_run, read_run_table
from gridsim.tables import read_names

PLACES = ("account", "partition")
"""Labels of the destination of a job."""

_USERS = ("user", "account", "group")


STOPPED = ("other jobs", "absent nodes", "its own save", "suspension")
"""Causes of the end of a run before the last one of its job."""


class CutRuns(NamedTuple):
    """Runs that were stopped, by row: start and end, s, and *why*: indices in `STOPPED`; None: all for other jobs."""

    row: IntArray
    start: FloatArray
    end: FloatArray
    why: IntArray | None = None


class JobSchedule(NamedTuple):
    """Columns of one schedule, one row per job in order of arrival; times in seconds, NaN if a job did not run.

    For a job in a chain of *pieces*, start and end are those of the last piece; *earlier* is the run time of the
    others. *cut* are the runs that were lost before the last one. *prediction* is the predicted run time. *short_of*
    is the missing resource at the begin of the wait, on machines of nodes and pools. *logged_start* and
    *logged_reason* are start and reason in the log.
    """

    job: IntArray
    cores: IntArray
    submit: FloatArray
    start: FloatArray
    end: FloatArray
    estimate: FloatArray
    status: npt.NDArray[np.str_]
    user: npt.NDArray[Any]
    machine: int
    account: npt.NDArray[Any] | None = None
    partition: npt.NDArray[Any] | None = None
    named: JobIds | None = None
    parts: Parts | None = None
    pooled: bool = False
    pieces: IntArray | None = None
    earlier: FloatArray | None = None
    calendar: Calendar | None = None
    cut: CutRuns | None = None
    prediction: FloatArray | None = None
    short_of: npt.NDArray[np.str_] | None = None
    logged_start: FloatArray | None = None
    logged_reason: npt.NDArray[np.str_] | None = None

    @classmethod
    def of(cls, record: Record, platform: Platform | None = None) -> JobSchedule:
        """Return the schedule of a record of one-task jobs, with names of users and other labels if known.

        Parameters
        ----------
        platform : Platform, optional
            The machine of the run, with its clusters; by default a single cluster.
        """
        record = record.in_stretches
        workload = record.workload
        users = workload.labels.get("user", np.full(len(record), UNKNOWN))
        logged = record.logged

        def named(label: str) -> npt.NDArray[Any] | None:
            if not workload.names.get(label) or label not in workload.labels:
                return None
            return _texts(workload.labels[label], lambda value: called(workload, label, value))

        return cls(
            job=workload.job,
            cores=record.given,
            submit=record.submit,
            start=record.start,
            end=record.end,
            estimate=seconds(workload.estimate),
            status=record.status_names,
            user=_texts(users, lambda value: called(workload, "user", value)),
            machine=record.cores,
            named=JobIds.of(workload),
            parts=(parts := parts_of(record, platform)),
            pooled=parts is None and _partitions(workload.labels.get("partition")) > 1,
            calendar=calendar_of(workload.provenance),
            pieces=None if record.beyond is None else record.beyond.pieces + 1,
            earlier=None if record.beyond is None else seconds(record.beyond.held_us),
            cut=None
            if (runs := cut_runs_of(record)) is None
            else CutRuns(runs[0], seconds(runs[1]), seconds(runs[2]), runs[3]),
            prediction=None if record.predictions is None else seconds(record.predictions.prediction_us),
            short_of=lacking(record),
            logged_start=logged.get("start"),
            logged_reason=logged.get("reason"),
            **{label: named(label) for label in PLACES},
        )

    def cut_runs(self, row: int) -> FloatArray:
        """Return the killed runs of a job before its last run, (k, 2) in seconds, in order of time."""
        if self.cut is None:
            return np.zeros((0, 2))
        own = self.cut.row == row
        return np.stack([self.cut.start[own], self.cut.end[own]], axis=1)

    def stopped_by(self, row: int) -> tuple[tuple[str, int], ...]:
        """Return what stopped the runs of a job before its last run (`STOPPED`), and how many of them."""
        if self.cut is None:
            return ()
        own = self.cut.row == row
        count = np.bincount(np.zeros(own.sum(), dtype=np.int64) if self.cut.why is None else self.cut.why[own])
        return tuple((STOPPED[why], number) for why, number in enumerate(count.tolist()) if number)

    @property
    def ids(self) -> JobIds:
        """Ids of the jobs."""
        return JobIds(self.job) if self.named is None else self.named

    def row(self, job: int | str) -> int:
        """Return the row of a job, by its number or by its id in the log, such as ``41206_5`` (`JobIds.row`).

        Raises
        ------
        InputError
            If no job, or several jobs match.
        """
        return self.ids.row(job)

    @property
    def wait(self) -> FloatArray:
        """Start minus submit, without the time of earlier pieces of a chain and of killed runs."""
        wait = self.start - self.submit - (0 if self.earlier is None else self.earlier)
        if self.cut is not None:
            np.subtract.at(wait, self.cut.row, self.cut.end - self.cut.start)
        return wait

    def longest(self) -> int:
        """Number of the job with the longest wait.

        Raises
        ------
        InputError
            If no job ran.
        """
        if np.isnan(self.wait).all():
            raise InputError("no job ran, so none waited")
        return int(self.job[np.nanargmax(self.wait)])


def _partitions(column: npt.NDArray[Any] | None) -> int:
    return 0 if column is None else len(np.unique(column[column != UNKNOWN]))


def _texts(values: npt.NDArray[Any], called: Callable[[int], str]) -> npt.NDArray[Any]:
    """Return the name of each number; empty for `UNKNOWN`."""
    known, place = np.unique(values, return_inverse=True)
    texts = ["" if value == UNKNOWN else called(value) for value in known.tolist()]
    return np.array(texts, dtype=object)[place]


def cut_runs_of(record: Record) -> tuple[IntArray, IntArray, IntArray, IntArray] | None:
    """Return the stopped runs before the last one of each job: row, start, end (whole microseconds), and why."""
    pieces = 0 if record.beyond is None else len(record.beyond.job)
    job, start, end = (column[: len(column) - pieces] for column in record.earlier_runs())
    if not len(job):
        return None
    earlier = end <= np.where(record.ran, record.start_us, -1)[job]
    order = np.lexsort((start, job))
    order = order[earlier[order]]
    why: IntArray = np.zeros(len(job), dtype=np.int64)
    if record.interruptions is not None:  # after the killed runs
        reason = record.interruptions.reason
        why[len(job) - len(reason) :] = 1 + (reason == SAVED) + 2 * (reason == SUSPENDED)
    return job[order], start[order], end[order], why[order]


def read_schedules(folder: str | Path) -> dict[str, JobSchedule]:
    """Return the schedules of a result directory, of one run or of `gridsim compare`, by policy.

    Raises
    ------
    InputError
        If it is not a result directory, is damaged, or has DAG jobs.
    """
    folder = Path(folder)
    told = read_run(folder)
    if "folders" not in told:
        return {str(told.get("label") or told["policy"]): _read(folder, told)}
    if not told["folders"]:
        raise InputError("is empty; expected the folders of policies", path=folder / "run.json", field="folders")
    return {label: _read(folder / place, read_run(folder / place)) for label, place in told["folders"].items()}


def _read(folder: Path, run: Mapping[str, Any]) -> JobSchedule:
    if (folder / "tasks.csv").exists() or (folder / "tasks.parquet").exists():
        raise InputError("has DAG jobs, which have one wait per task", path=folder)
    columns, names = read_run_table(folder), read_names(folder)
    if "folders" in run:
        raise InputError("is a comparison of several policies; expected a single run", path=folder / "run.json")

    def named(label: str) -> npt.NDArray[Any]:
        known = names.get(label, {})
        return _texts(columns[label], lambda value: known.get(value, str(value)))

    job, start = columns["job"], columns["start"].copy()
    cut = _cut(folder, job, start)
    whose = next((named(name) for name in _USERS if name in columns), np.full(len(columns["job"]), ""))
    return JobSchedule(
        job=job,
        cores=columns["cores_used" if "cores_used" in columns else "cores"],
        submit=columns["submit"],
        start=start,
        end=columns["end"],
        estimate=columns["estimate"],
        status=columns["status"],
        user=whose,
        machine=run["platform"]["cores"],
        parts=(parts := parts_read(folder, columns, run["platform"]["tree"])),
        pooled=parts is None and _partitions(columns.get("partition")) > 1,
        calendar=calendar_of(run["workload"]),
        pieces=(pieces := columns["pieces"] if {"pieces", "wait"} <= set(columns) else None),
        earlier=None if pieces is None else _earlier(pieces, start - columns["submit"] - columns["wait"]),
        cut=cut,
        prediction=columns.get("prediction"),
        short_of=columns.get("short_of"),
        **_logged(folder, job),
        named=JobIds.read(job, columns["job_id"].tolist()) if "job_id" in columns else None,
        **{label: named(label) for label in PLACES if label in columns and label in names},
    )


def _cut(folder: Path, job: IntArray, start: FloatArray) -> CutRuns | None:
    """Return the stopped runs before the last one of each job; None if no file contains any.

    Stretches between suspensions count as runs, and *start* becomes the begin of the last one of each job.
    """
    found: list[tuple[npt.NDArray[Any], ...]] = []
    name = next((name for name in RUN_TABLES if (folder / f"{name}.csv").is_file()), None)
    if name is not None:
        table = read_run_table(folder, name)
        reason = table.get("reason", np.full(len(table["job"]), PREEMPTED))
        why = np.select([reason == PREEMPTED, reason == REASONS[SAVED]], [0, 2], 1)
        found.append((rows_of(job, table["job"], folder), table["start"].copy(), table["end"], why))
    if (folder / "suspensions.csv").is_file():
        table = read_run_table(folder, "suspensions")
        rows, since, until = rows_of(job, table["job"], folder), table["from"], table["until"]
        for row, asleep, awake in zip(rows.tolist(), since.tolist(), until.tolist(), strict=True):
            for of, begin, end, _ in found:  # the run continues after its suspension
                begin[(of == row) & (begin <= asleep) & (awake <= end)] = awake
        np.maximum.at(start, rows, until)
        found.append((rows, table["start"], since, np.full(len(rows), STOPPED.index("suspension"))))
    if not found:
        return None
    rows, begin, end, why = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.lexsort((begin, rows))
    order = order[(end <= start[rows])[order]]
    return CutRuns(rows[order], begin[order], end[order], why[order])


def _logged(folder: Path, job: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Return start and reason of each job in the log, if the folder has them."""
    path = folder / "logged.csv"
    if not path.is_file():
        return {}
    columns = read_run_table(folder, "logged")
    if not np.array_equal(columns["job"], job):
        raise InputError("has other jobs than the table of jobs", path=path, field="job")
    return {"logged_start": columns["start"]} | ({"logged_reason": columns["reason"]} if "reason" in columns else {})


def _earlier(pieces: IntArray, rest: FloatArray) -> FloatArray:
    """Return the run time of the pieces before the last one of each job, s, which is not part of the wait."""
    return np.where(pieces > 1, np.nan_to_num(rest), 0.0)
