"""Runs that were cut short to make room for other jobs: how many, what work that lost, and for whose jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.groups import LABELLED, called
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.record import Record

_HOUR = 3600.0


class CutRuns(NamedTuple):
    """Runs that were cut short to make room, one row a run: those that began anew, then those that were cancelled.

    Attributes
    ----------
    job, by : (k,) int64
        Row of the job, and of the one that it made room for; -1 where that is not known.
    lost : (k,) float64
        Work that was lost, core-seconds.
    """

    job: IntArray
    by: IntArray
    lost: npt.NDArray[np.float64]


class LoggedRuns(NamedTuple):
    """Runs that were preempted on the machine itself, as a log tells.

    Attributes
    ----------
    runs, jobs : int
        Those runs, and the jobs that they were of.
    every : bool
        Whether some job has several runs in the log. If none has, it may have left out all but the last ones.
    """

    runs: int
    jobs: int
    every: bool


def logged_runs(workload: Workload, kept: npt.NDArray[np.bool_] | None = None) -> LoggedRuns | None:
    """What the log says of preempted runs of the jobs in *kept*; None where it says nothing, or was changed since."""
    column = workload.logged.get("preempted")
    if column is None or workload.provenance.get("transforms"):
        return None
    column = column if kept is None else column[kept]
    return LoggedRuns(int(column.sum()), int(np.count_nonzero(column)), "runs" in workload.logged)


def concerns_preemption(record: Record) -> bool:
    """Whether the policy preempts without promising anything: what others cut is told with their promises."""
    return record.promises is not None and not record.promises.guarantees


def cut_runs(record: Record) -> CutRuns:
    """Runs of a record that were cut short to make room."""
    promises = record.promises
    if promises is None:
        nothing: IntArray = np.zeros(0, dtype=np.int64)
        return CutRuns(nothing, nothing, np.zeros(0))
    over = np.flatnonzero(promises.cancelled_by != NEVER)
    job = np.concatenate([promises.killed, over])
    held = np.concatenate(
        [promises.killed_end_us - promises.killed_start_us, record.end_us[over] - record.start_us[over]]
    )
    by = np.concatenate([promises.killed_by, promises.cancelled_by[over]])
    return CutRuns(job, by, record.given[job] * seconds(held))


def preemption_metrics(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Numbers of `gridsim.metrics.summary.PREEMPTION_METRICS`, of the jobs in *kept*.

    Examples
    --------
    >>> preemption_metrics(Record.from_rows([dict(submit=0, start=0, end=1, cores=1)]))
    {'preempted_runs': 0.0, 'preempted_jobs': 0.0, 'preempted_core_hours': 0.0}
    """
    found = _of(cut_runs(record), kept)
    return {
        "preempted_runs": float(len(found.job)),
        "preempted_jobs": float(len(np.unique(found.job))),
        "preempted_core_hours": float(found.lost.sum()) / _HOUR,
    }


def _of(found: CutRuns, kept: npt.NDArray[np.bool_] | None) -> CutRuns:
    if kept is None:
        return found
    rows = kept[found.job]
    return CutRuns(found.job[rows], found.by[rows], found.lost[rows])


def told_by(record: Record) -> str | None:
    """Label that preempted runs are grouped by: that of the policy's rule, else the one in which most runs differ.

    Of equals the first of QOS, partition, account and user; None where no label is known or nothing was cut.
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
    """Runs cut short and core-hours lost, by whose jobs they made room for, most runs first.

    Parameters
    ----------
    label : str
        One of `gridsim.metrics.groups.LABELLED`, which the workload has.
    """
    found, workload = _of(cut_runs(record), kept), record.workload
    column: Any = workload.labels[label]
    values = np.where(found.by >= 0, column[np.maximum(found.by, 0)], UNKNOWN)
    groups: dict[str, tuple[int, float]] = {}
    for value in np.unique(values).tolist():
        rows = values == value
        one = LABELLED[label][0]
        name = f"no known {one}" if value == UNKNOWN else f"{one} {called(workload, label, value)}"
        groups[name] = (int(rows.sum()), float(found.lost[rows].sum()) / _HOUR)
    return dict(sorted(groups.items(), key=lambda item: (-item[1][0], item[0])))


def by_owners(
    records: Mapping[str, Record], kept: npt.NDArray[np.bool_] | None = None
) -> dict[str, dict[str, tuple[float, float]]]:
    """Groups as `by_owner` has them, the same for every policy, those with most runs over all policies first.

    NaN for groups of another label than that of the policy's own preempted runs.
    """
    labels = {policy: told_by(record) for policy, record in records.items()}
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
