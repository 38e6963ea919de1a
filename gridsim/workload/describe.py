"""Statistics of a workload before simulation: number, size, run time and estimate accuracy of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray, seconds, to_us
from gridsim.model.workload import UNKNOWN, Workload

_QUANTILES = {"p05": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


def describe(workload: Workload, cores: int) -> dict[str, Any]:
    """Return statistics of *workload* on *cores* cores in seconds, cores and fractions; JSON types only.

    Returns
    -------
    dict
        ``jobs, users, groups, queues`` (numbers of them, None if the source does not contain them), ``cores``,
        ``first_submit, last_submit, span``, ``area`` (core-seconds), ``offered_load`` (area over cores x span),
        ``same_instant`` (jobs submitted at the same time as the previous job), ``size, runtime, estimate, gap`` (each
        with mean, min, quantiles, max), ``share`` (of jobs that are serial, a power of two above 1, neither),
        ``accuracy`` (of estimates) and ``logged`` (schedule recorded in the source; None without one).

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 10], runtime=[5, 10], cores=[1, 2])
    >>> facts = describe(log, 4)
    >>> facts["area"], facts["offered_load"], facts["share"]["serial"]
    (25.0, 0.625, 0.5)
    """
    first, last = (seconds(int(workload.submit[row])) for row in (0, -1))
    gap = np.diff(workload.submit)
    load = workload.offered_load(cores)
    return {
        "jobs": len(workload),
        **{f"{name}s": _distinct(workload.labels.get(name)) for name in ("user", "group", "queue")},
        "cores": cores,
        "first_submit": first,
        "last_submit": last,
        "span": last - first,
        "area": float(workload.area.sum()),
        "offered_load": load if np.isfinite(load) else None,
        "same_instant": int(np.count_nonzero(gap == 0)),
        "size": _summary(workload.cores),
        "runtime": _summary(seconds(workload.runtime)),
        "estimate": _summary(seconds(workload.estimate)),
        "gap": _summary(seconds(gap)) if len(gap) else None,
        "share": _shares(workload.cores),
        "accuracy": _accuracy(workload),
        "logged": _logged(workload, cores),
    }


def _distinct(column: IntArray | None) -> int | None:
    return None if column is None else len(np.unique(column[column != UNKNOWN]))


def _summary(column: npt.NDArray[Any]) -> dict[str, float]:
    quantiles = np.quantile(column, list(_QUANTILES.values()))
    return {
        "mean": float(column.mean()),
        "min": float(column.min()),
        **dict(zip(_QUANTILES, map(float, quantiles), strict=True)),
        "max": float(column.max()),
    }


def _shares(cores: IntArray) -> dict[str, float]:
    serial = cores == 1
    power = (cores & (cores - 1) == 0) & ~serial
    return {
        "serial": float(serial.mean()),
        "power_of_two": float(power.mean()),
        "other": float(1 - (serial | power).mean()),
    }


def _accuracy(workload: Workload) -> dict[str, Any]:
    """Compare run times with estimates: ratio, jobs that reach or exceed their estimate, rounding of estimates."""
    ratio = workload.runtime / workload.estimate
    return {
        "mean": float(ratio.mean()),
        "median": float(np.median(ratio)),
        "exact": int(np.count_nonzero(workload.runtime == workload.estimate)),
        "over": int(np.count_nonzero(workload.runtime > workload.estimate)),
        "over_share": float((workload.runtime > workload.estimate).mean()),
        "over_by_a_tenth": int(np.count_nonzero(10 * workload.runtime > 11 * workload.estimate)),
        "distinct_estimates": len(np.unique(workload.estimate)),
    }


def _logged(workload: Workload, cores: int) -> dict[str, Any] | None:
    """Return statistics of the schedule in the source; unknown waits count as 0, cores are the allocated ones.

    ``load`` is the area relative to the machine between the first start and the last end; ``above`` is the share of
    that time in which more cores are in use than the machine has.
    """
    wait: npt.NDArray[Any] | None = workload.logged.get("wait")
    if wait is None:
        return None
    held = _held(workload)
    start = workload.submit + np.where(np.isnan(wait), 0, to_us(np.nan_to_num(wait)))
    end = start + workload.runtime
    time, used = _in_use(start, end, held)
    length = int(end.max() - start.min())
    above = int(np.diff(time)[used[:-1] > cores].sum())
    known = wait[~np.isnan(wait)]
    return {
        "waits_known": len(known),
        "wait": _summary(known) if len(known) else None,
        "load": float((held * seconds(workload.runtime)).sum() / (cores * seconds(length))),
        "peak": int(used.max()),
        "above": above / length,
        "allocated_differs": int(np.count_nonzero(held != workload.cores)),
    }


def _held(workload: Workload) -> IntArray:
    """Return the allocated cores of each job according to its source, or the requested ones if these are unknown."""
    allocated: Mapping[str, npt.NDArray[Any]] = workload.logged
    if "allocated" not in allocated:
        return workload.cores
    got = allocated["allocated"]
    return np.where(got > 0, got, workload.cores)


def _in_use(start: IntArray, end: IntArray, cores: IntArray) -> tuple[IntArray, IntArray]:
    """Return the times at which the number of busy cores changes, and the number from each on; ends precede starts."""
    time, index = np.unique(np.concatenate((start, end)), return_inverse=True)
    change = np.bincount(index, weights=np.concatenate((cores, -cores)), minlength=len(time))
    return time, np.cumsum(change.astype(np.int64))
