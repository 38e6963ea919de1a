"""How evenly a value is spread over jobs, or over users as time goes on. Standard deviations are those of samples."""

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
    """Standard deviation of the sample; NaN for fewer than two values, never 0.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 3.0])), standard_deviation(np.array([1.0]))
    (1.4142135623730951, nan)
    """
    return float(values.std(ddof=1)) if len(values) > 1 else NAN


def gini(values: FloatArray) -> float:
    """Gini coefficient of values above 0: 0 where all are equal, towards 1 where one job has it all.

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
    """Jain's index: 1 where all values are equal, 1/n where one job has it all.

    Examples
    --------
    >>> jain(np.array([2.0, 2.0])), jain(np.array([0.0, 0.0, 0.0, 4.0]))
    (1.0, 0.25)
    """
    squares = float(values @ values)
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else NAN


def p99(values: FloatArray) -> float:
    """99th percentile, interpolated linearly between neighbours; NaN without values."""
    return float(np.quantile(values, 0.99)) if len(values) else NAN


def max_over_median(values: FloatArray) -> float:
    """Largest value over the median one; NaN without values."""
    return float(values.max() / np.median(values)) if len(values) else NAN


SPREADS: dict[str, Callable[[FloatArray], float]] = {
    "gini": gini,
    "jain": jain,
    "p99": p99,
    "max_over_median": max_over_median,
}
"""Measures of spread beside the standard deviation, by name."""


# ---- over time ----------------------------------------------------------------------------------------------------

_PERIODS = (28 * 86_400.0, 7 * 86_400.0, 86_400.0, 21_600.0, 3_600.0, 600.0, 60.0, 10.0, 1.0)
_FEWEST_PERIODS, _MOST_PERIODS, _JOBS_A_PERIOD = 12, 150, 100
FEWEST_USERS = 3
"""Users below which a period has no inequality: of two there is only a difference."""

_LARGE = 5


@dataclass(frozen=True, slots=True, eq=False)
class FairnessOverTime:
    """How unequally users were slowed down, and what the largest held, period by period; k periods of equal length.

    Attributes
    ----------
    edges_s : (k + 1,) float64
        Where the periods begin and, last, where the last one ends, s. Jobs belong to the one of their submission.
    users, jobs : (k,) int64
        Users with jobs that ran, and these jobs.
    slowdown : (k,) float64
        Mean over users of their mean bounded slowdown; NaN where there are none.
    gini : (k,) float64
        Gini coefficient of the users' mean bounded slowdowns; NaN with fewer than `FEWEST_USERS`.
    share : (k,) float64
        Cores that the largest users held over all cores of the machine, mean over the period; a fraction.
    """

    edges_s: FloatArray
    users: IntArray
    jobs: IntArray
    slowdown: FloatArray
    gini: FloatArray
    share: FloatArray


def period(record: Record) -> float:
    """Length of the periods that suit a log, s: four weeks, a week, a day, six hours, an hour … down to a second.

    There are 12 to 150 of them: the shortest that have 100 jobs on average, else the longest. 0 where all jobs come
    within a few seconds. Where users react, the log's own submit times count, so that all policies have the same.

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
    """The users whose jobs are the most work: a quarter of all users, at least 1, at most 5; largest first."""
    known = np.unique(record.workload.labels["user"])
    count = int((known != UNKNOWN).sum())
    return largest(record, "user", max(1, min(_LARGE, count // 4)))


def fairness_over_time(record: Record, *, bound: float = BOUND, rows: Any = None) -> FairnessOverTime | None:
    """Inequality between users, and the share of the machine that the largest held, in each period of the log.

    Parameters
    ----------
    bound : float
        Of the bounded slowdown, s.
    rows : mask, slice or indices, optional
        Jobs whose slowdowns count, such as those that a warm-up cut leaves. Cores are those of all jobs.

    Returns
    -------
    FairnessOverTime or None
        None where the log does not name users, or all jobs come within a few seconds.

    Notes
    -----
    Every user counts once in a period, however many jobs: what is compared is how long each of them waits for what
    they ask for. That is the mean bounded slowdown and not the mean wait, because it is 1 for whoever does not wait:
    where nobody waits all are equal, while of waits the one user who waited five seconds would have all there is.

    The measure is Gini's coefficient (half the mean difference between two users, in means), not Jain's index: the
    index squares the slowdowns, so that one short job that waited a day decides it, and with n users it cannot fall
    below 1/n, so that weeks with few users look fairer. A coefficient above 0 is not unjust by itself: users who ask
    for more cores wait longer under any policy. What says something is one policy against another on the same jobs,
    which is why jobs belong to the period in which they were submitted (in the log, where users react).

    References
    ----------
    C. Gini, "Variabilità e mutabilità", Bologna 1912. R. Jain, D. Chiu and W. Hawe, "A quantitative measure of
    fairness and discrimination for resource allocation in shared computer systems", DEC-TR-301, 1984. The slowdown is
    that of `gridsim.metrics.responsiveness.bounded_slowdown`.

    Examples
    --------
    Three users each submit a job a day; all run at once but those of user 3, which wait 30 s for their 10 s.

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
    """Jobs that ran, have a user, and are among the *rows*."""
    among = np.ones(len(record), dtype=np.bool_)
    if rows is not None:
        among[:] = False
        among[rows] = True
    counted: npt.NDArray[np.bool_] = among & record.ran & (record.workload.labels["user"] != UNKNOWN)
    return counted


def _share_of_large(record: Record, edges: FloatArray) -> FloatArray:
    """Share of the machine that `large_users` hold, mean over each of the periods."""
    mine = np.isin(record.workload.labels["user"], large_users(record))
    steps = busy_cores(record.select(np.flatnonzero(mine)))
    binned = steps.resample(len(edges) - 1, float(edges[0]), float(edges[-1]))
    return np.asarray(binned.values[:-1] / (record.cores or np.nan))
