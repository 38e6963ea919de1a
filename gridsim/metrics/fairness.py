"""Fairness: distribution of a value over jobs, and over users by period. Standard deviations are those of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.metrics.groups import largest
from gridsim.metrics.responsiveness import BOUND, measure
from gridsim.metrics.utilisation import arrival_window, busy_cores
from gridsim.model.time import FloatArray, IntArray, seconds
from gridsim.model.workload import UNKNOWN
from gridsim.record import Record

NAN = float("nan")


def standard_deviation(values: FloatArray) -> float:
    """Return the standard deviation of the sample; NaN for fewer than two values.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 3.0])), standard_deviation(np.array([1.0]))
    (1.4142135623730951, nan)
    """
    return float(values.std(ddof=1)) if len(values) > 1 else NAN


def gini(values: FloatArray) -> float:
    """Return the Gini coefficient of positive values: 0 for equal values, approaching 1 if one value is the whole sum.

    Examples
    --------
    >>> gini(np.array([2.0, 2.0])), gini(np.array([0.0, 0.0, 0.0, 4.0]))
    (0.0, 0.75)
    """
    n, total = len(values), float(values.sum())
    if not n or not total:
        return NAN
    ranks = 2.0 * np.arange(1, n + 1) - n - 1
    return float(ranks @ np.sort(values) / (n * total))


def jain(values: FloatArray) -> float:
    """Return Jain's index: 1 for equal values, 1/n if one value is the whole sum.

    Examples
    --------
    >>> jain(np.array([2.0, 2.0])), jain(np.array([0.0, 0.0, 0.0, 4.0]))
    (1.0, 0.25)
    """
    squares = float(values @ values)
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else NAN


def p99(values: FloatArray) -> float:
    """Return the 99th percentile, interpolated linearly; NaN without values."""
    return float(np.quantile(values, 0.99)) if len(values) else NAN


def max_over_median(values: FloatArray) -> float:
    """Return the largest value over the median; NaN without values."""
    return float(values.max() / np.median(values)) if len(values) else NAN


SPREADS: dict[str, Callable[[FloatArray], float]] = {
    "gini": gini,
    "jain": jain,
    "p99": p99,
    "max_over_median": max_over_median,
}
"""Measures of spread other than the standard deviation, by name."""


# ---- over time ----------------------------------------------------------------------------------------------------

_PERIODS = (28 * 86_400.0, 7 * 86_400.0, 86_400.0, 21_600.0, 3_600.0, 600.0, 60.0, 10.0, 1.0)
_FEWEST_PERIODS, _MOST_PERIODS, _JOBS_A_PERIOD = 12, 150, 100
FEWEST_USERS = 3
"""Number of users below which a period has no Gini coefficient."""

_LARGE = 5


@dataclass(frozen=True, slots=True, eq=False)
class FairnessOverTime:
    """Inequality of slowdowns between users, and share of the largest users, in k periods of equal length.

    Attributes
    ----------
    edges_s : (k + 1,) float64
        Begin of each period, and end of the last one, s. A job belongs to the period of its submission.
    users, jobs : (k,) int64
        Number of users with jobs that ran, and of these jobs.
    slowdown : (k,) float64
        Mean over users of their mean bounded slowdown; NaN without users.
    gini : (k,) float64
        Gini coefficient of the users' mean bounded slowdowns; NaN with fewer than `FEWEST_USERS`.
    share : (k,) float64
        Cores held by the largest users over all cores of the machine, mean over the period; a fraction.
    """

    edges_s: FloatArray
    users: IntArray
    jobs: IntArray
    slowdown: FloatArray
    gini: FloatArray
    share: FloatArray


def period(record: Record) -> float:
    """Return the length of periods for a log, s: four weeks, a week, a day, six hours, an hour … down to a second.

    There are 12 to 150 periods: the shortest length with 100 jobs on average, else the longest. The length is 0 if all
    jobs are submitted within a few seconds. If users react, the log's submit times are used, so that all policies have
    the same periods.

    Examples
    --------
    >>> rows = [dict(submit=t, start=t, end=t + 1) for t in (0.0, 90 * 86_400.0)]
    >>> period(Record.from_rows(rows)) / 86_400
    7.0
    """
    span = arrival_window(record.as_given).length
    fitting = [length for length in _PERIODS if _FEWEST_PERIODS <= span / length < _MOST_PERIODS]
    if not fitting:
        return _PERIODS[0] if span > _PERIODS[0] * _FEWEST_PERIODS else 0.0
    filled = [length for length in fitting if len(record) * length >= _JOBS_A_PERIOD * span]
    return filled[-1] if filled else fitting[0]


def large_users(record: Record) -> list[int]:
    """Return the users with the most work: a quarter of all users, at least 1, at most 5; largest first."""
    known = np.unique(record.workload.labels["user"])
    count = int((known != UNKNOWN).sum())
    return largest(record, "user", max(1, min(_LARGE, count // 4)))


def fairness_over_time(record: Record, *, bound: float = BOUND, rows: Any = None) -> FairnessOverTime | None:
    """Return the inequality between users, and the share of the machine held by the largest users, for each period.

    Parameters
    ----------
    bound : float
        Bound of the bounded slowdown, s.
    rows : mask, slice or indices, optional
        Jobs whose slowdowns count, such as those remaining after a warm-up cut. Cores are those of all jobs.

    Returns
    -------
    FairnessOverTime or None
        None if the log has no users, or all jobs are submitted within a few seconds.

    Notes
    -----
    Every user counts once in a period, regardless of the number of jobs. Users are compared by mean bounded slowdown
    instead of mean wait, because it is 1 for users who do not wait. If no user waits, all values are equal; with
    waits, a single user who waited five seconds would account for the whole sum.

    The measure is Gini's coefficient (half the relative mean difference between two users) instead of Jain's index.
    The index squares the slowdowns, so one short job that waited a day dominates it. With n users it cannot fall below
    1/n, so weeks with few users look fairer. A coefficient above 0 is not unfair by itself, since users who request
    more cores wait longer under any policy. The comparison of policies on the same jobs is meaningful. Therefore jobs
    belong to the period of their submission (in the log, if users react).

    References
    ----------
    C. Gini, "Variabilità e mutabilità", Bologna 1912. R. Jain, D. Chiu and W. Hawe, "A quantitative measure of
    fairness and discrimination for resource allocation in shared computer systems", DEC-TR-301, 1984. The slowdown is
    that of `gridsim.metrics.responsiveness.bounded_slowdown`.

    Examples
    --------
    Three users each submit a job per day. All jobs start immediately, except the 10 s jobs of user 3, which wait 30 s.

    >>> rows = [dict(submit=86_400 * day, start=86_400 * day + late, end=86_400 * day + late + 10, user=user)
    ...     for day in range(13) for user, late in ((1, 0), (2, 0), (3, 30))]
    >>> found = fairness_over_time(Record.from_rows(rows, cores=4))
    >>> len(found.gini), found.users[0], found.slowdown[0], round(found.gini[0], 6)
    (13, np.int64(3), np.float64(2.0), np.float64(0.333333))
    """
    length = period(record)
    if not length or "user" not in record.workload.labels:
        return None
    submit = seconds(record.workload_given.submit)
    first = float(submit[0])
    place = ((submit - first) // length).astype(np.int64)
    count = int(place[-1]) + 1
    edges = first + length * np.arange(count + 1, dtype=np.float64)
    counted = _counted(record, rows)
    values = measure(record, "bounded_slowdown", bound)[counted]
    users, of = np.unique(record.workload.labels["user"][counted], return_inverse=True)
    cells, cell = np.unique(place[counted] * max(1, len(users)) + of, return_inverse=True)
    jobs = np.bincount(cell)
    means = np.bincount(cell, weights=values) / np.maximum(jobs, 1)
    begins = np.searchsorted(cells, np.arange(count + 1) * max(1, len(users)))
    parts = [means[low:high] for low, high in pairwise(begins.tolist())]
    return FairnessOverTime(
        edges,
        np.diff(begins),
        np.bincount(place[counted], minlength=count),
        np.array([part.mean() if len(part) else NAN for part in parts]),
        np.array([gini(part) if len(part) >= FEWEST_USERS else NAN for part in parts]),
        _share_of_large(record, edges),
    )


def _counted(record: Record, rows: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of the jobs that ran, have a user, and are among the *rows*."""
    among = np.ones(len(record), dtype=np.bool_)
    if rows is not None:
        among[:] = False
        among[rows] = True
    counted: npt.NDArray[np.bool_] = among & record.ran & (record.workload.labels["user"] != UNKNOWN)
    return counted


def _share_of_large(record: Record, edges: FloatArray) -> FloatArray:
    """Return the share of the machine held by `large_users`, mean over each period."""
    mine = np.isin(record.workload.labels["user"], large_users(record))
    steps = busy_cores(record.select(np.flatnonzero(mine)))
    binned = steps.resample(len(edges) - 1, float(edges[0]), float(edges[-1]))
    return np.asarray(binned.values[:-1] / (record.cores or np.nan))
