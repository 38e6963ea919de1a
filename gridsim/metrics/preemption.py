"""Runs killed to free resources for other jobs: number, lost work, and preempting jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.availability import runs_of, spent_in_runs
from gridsim.metrics.groups import LABELLED, called, no_value
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.model.workload import Workload
from gridsim.record import PREEMPTED, Record, Status

_HOUR = 3600.0


class CutRuns(NamedTuple):
    """Runs killed to free resources, one row per run: first those of restarted jobs, then those of cancelled jobs.

    Attributes
    ----------
    job, by : (k,) int64
        Row of the job, and of the preempting job; -1 if unknown.
    lost : (k,) float64
        Lost work, core-seconds.
    """

    job: IntArray
    by: IntArray
    lost: npt.NDArray[np.float64]


class LoggedRuns(NamedTuple):
    """Preempted runs recorded in a log.

    Attributes
    ----------
    runs, jobs : int
        Number of these runs, and of their jobs.
    every : bool
        Whether some job has several runs in the log. If not, the log may contain only the last run of each job.
    """

    runs: int
    jobs: int
    every: bool


def logged_runs(workload: Workload, kept: npt.NDArray[np.bool_] | None = None) -> LoggedRuns | None:
    """Return the preempted runs recorded for the jobs in *kept*.

    None if the log has no such data, or jobs were changed.
    """
    column = workload.logged.get("preempted")
    if column is None or workload.provenance.get("transforms"):
        return None
    column = column if kept is None else column[kept]
    return LoggedRuns(int(column.sum()), int(np.count_nonzero(column)), "runs" in workload.logged)


def concerns_preemption(record: Record) -> bool:
    """Return whether the policy preempts without guarantees; with guarantees, kills are reported with these."""
    return record.promises is not None and not record.promises.guarantees


def cut_runs(record: Record) -> CutRuns:
    """Return the runs of a record that were killed to free resources."""
    promises = record.promises
    if promises is None:
        nothing: IntArray = np.zeros(0, dtype=np.int64)
        return CutRuns(nothing, nothing, np.zeros(0))
    if record.by_class:
        row, *_, reason, by = runs_of(record)
        cut = np.flatnonzero(np.array(reason) == PREEMPTED)
        lost = record.given[row[cut]] * seconds(spent_in_runs(record).lost[cut])
        tasks = record.workload.tasks
        job, by = (each[cut] if tasks is None else tasks.jobs_of(each[cut]) for each in (row, by))
        return CutRuns(job, by, lost)
    over = np.flatnonzero(promises.cancelled_by != NEVER)
    job = np.concatenate([promises.killed, over])
    held = np.concatenate(
        [promises.killed_end_us - promises.killed_start_us, record.end_us[over] - record.start_us[over]]
    )
    by = np.concatenate([promises.killed_by, promises.cancelled_by[over]])
    return CutRuns(job, by, record.given[job] * seconds(held))


def preemption_metrics(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Return `gridsim.metrics.summary.PREEMPTION_METRICS` of the jobs in *kept*.

    Examples
    --------
    >>> preemption_metrics(Record.from_rows([dict(submit=0, start=0, end=1, cores=1)]))
    {'preempted_runs': 0.0, 'preempted_jobs': 0.0, 'preempted_core_hours': 0.0}
    """
    found = _of(cut_runs(record), kept)
    numbers = {
        "preempted_runs": float(len(found.job)),
        "preempted_jobs": float(len(np.unique(found.job))),
        "preempted_core_hours": float(found.lost.sum()) / _HOUR,
    }
    if not record.by_class:
        return numbers
    part = record if kept is None else record.select(kept)
    asleep = None if part.interruptions is None else part.interruptions.suspended
    times = np.zeros(0) if asleep is None else seconds(asleep[3] - asleep[2])
    return numbers | {
        "preempted": float(np.count_nonzero(part.status == Status.preempted)),
        "suspensions": float(len(times)),
        "suspended_hours": float(times.sum()) / _HOUR,
    }


def _of(found: CutRuns, kept: npt.NDArray[np.bool_] | None) -> CutRuns:
    if kept is None:
        return found
    rows = kept[found.job]
    return CutRuns(found.job[rows], found.by[rows], found.lost[rows])


def preemption_label(record: Record) -> str | None:
    """Return the label for grouping preempted runs: that of the policy's rule, else the most distinctive one.

    The most distinctive label differs in most runs between the two jobs; for equal numbers it is the first of QOS,
    partition, account and user. None if no label is known or no run was killed.
    """
    found, labels = cut_runs(record), record.workload.labels
    if record.promises is not None and (rule := record.promises.preempts_by):
        return rule if rule in labels and len(found.job) else None
    differ = dict.fromkeys(("qos", "partition", "account", "user"), 0)
    known = found.by >= 0
    for label in differ:
        column = labels.get(label)
        if column is not None:
            differ[label] = int((column[found.job[known]] != column[found.by[known]]).sum())
    best = max(differ, key=lambda label: differ[label])
    return best if differ[best] else None


def by_owner(record: Record, label: str, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, tuple[int, float]]:
    """Return killed runs and lost core-hours by label of the preempting job, most runs first.

    Parameters
    ----------
    label : str
        One of `gridsim.metrics.groups.LABELLED`, which the workload has.
    """
    found, workload = _of(cut_runs(record), kept), record.workload
    column: Any = workload.labels[label]
    none = no_value(label)
    values = np.where(found.by >= 0, column[np.maximum(found.by, 0)], none)
    groups: dict[str, tuple[int, float]] = {}
    for value in np.unique(values).tolist():
        rows = values == value
        one = LABELLED[label][0]
        name = f"no known {one}" if value == none else f"{one} {called(workload, label, value)}"
        groups[name] = (int(rows.sum()), float(found.lost[rows].sum()) / _HOUR)
    return dict(sorted(groups.items(), key=lambda item: (-item[1][0], item[0])))


def by_owners(
    records: Mapping[str, Record], kept: npt.NDArray[np.bool_] | None = None
) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the groups of `by_owner`, the same for every policy, sorted by runs over all policies.

    Values are NaN for groups of a label other than that of the policy's own preempted runs.
    """
    labels = {policy: preemption_label(record) for policy, record in records.items()}
    groups = {
        policy: {} if (label := labels[policy]) is None else by_owner(record, label, kept)
        for policy, record in records.items()
    }
    label_of = {name: labels[policy] for policy, found in groups.items() for name in found}
    total = {name: sum(found.get(name, (0, 0.0))[0] for found in groups.values()) for name in label_of}
    order = sorted(label_of, key=lambda name: (-total[name], name))
    unknown = (math.nan, math.nan)
    return {
        policy: {
            name: found.get(name, (0, 0.0) if labels[policy] in (None, label_of[name]) else unknown) for name in order
        }
        for policy, found in groups.items()
    }
