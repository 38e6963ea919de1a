"""Responsiveness: waits, slowdowns and overtaking, per job and summarised.

For metrics of the machine see `utilisation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, require_known
from gridsim.model.time import FloatArray, seconds
from gridsim.record import Record

BOUND = 10.0
"""Default lower bound of run times in the bounded slowdown, s."""

CUTS = {"bound": BOUND, "warmup": 0.0, "cooldown": 0.0}
"""Default parameters of metrics, s."""

QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99}

SUMMARY = ("mean", *QUANTILES, "max")
"""Names of the results of `summarise`, in order."""


def wait(record: Record) -> FloatArray:
    """Return start minus submit of each job, s; NaN for jobs that did not run."""
    return record.wait


def response(record: Record) -> FloatArray:
    """Return end minus submit of each job, s; NaN for jobs that did not run."""
    return record.response


def slowdown(record: Record) -> FloatArray:
    """Return the response over the held time of each job; dimensionless, at least 1; NaN for jobs that did not run.

    Notes
    -----
    The held time is the true run time, or the estimate for a job that was killed at it. A job that held its cores for
    zero time (possible only in schedules of other simulators) has the slowdown NaN.
    """
    held = record.held
    held[held <= 0] = np.nan
    return record.response / held


def bounded_slowdown(record: Record, bound: float = BOUND) -> FloatArray:
    """Return the bounded slowdown of each job, which limits the effect of short jobs; dimensionless, at least 1.

    Parameters
    ----------
    bound : float
        Lower bound of held times, s.

    References
    ----------
    Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, "Theory and practice in parallel job scheduling",
    JSSPP 1997, section 2: max(1, response / max(runtime, bound)).

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=30, end=35, cores=1)])
    >>> bounded_slowdown(record)
    array([3.5])
    """
    if not bound > 0:
        raise InputError(f"the bound of the bounded slowdown is {bound} s; expected more than 0 s", field="bound")
    values = record.held
    np.maximum(values, bound, out=values)
    np.divide(record.response, values, out=values)
    return np.maximum(values, 1.0, out=values)


MEASURES: dict[str, Callable[[Record], FloatArray]] = {
    "wait": wait,
    "response": response,
    "slowdown": slowdown,
    "bounded_slowdown": bounded_slowdown,
}
"""Metrics per job, by name; lower is better for all of them."""


def slr(record: Record) -> FloatArray:
    """Return the response over the critical path of each DAG job (schedule length ratio).

    NaN for jobs that did not run.
    """
    if record.critical_path is None:
        raise InputError("these jobs have no critical path; expected a record of DAG jobs", field="slr")
    return record.response / seconds(record.critical_path)


DAG_MEASURES: dict[str, Callable[[Record], FloatArray]] = {"slr": slr}
"""Metrics per job that are defined only for DAG jobs."""


def measure(record: Record, metric: str, bound: float = BOUND) -> FloatArray:
    """Return the *metric* of each job, one of `MEASURES` or `DAG_MEASURES`; NaN for jobs that did not run."""
    if metric in DAG_MEASURES:
        return DAG_MEASURES[metric](record)
    require_known("metric", MEASURES, metric)
    return bounded_slowdown(record, bound) if metric == "bounded_slowdown" else MEASURES[metric](record)


def summarise(values: FloatArray, weights: npt.ArrayLike | None = None) -> dict[str, float]:
    """Return mean, median, 95th and 99th percentile and maximum of the finite *values*.

    Parameters
    ----------
    values : (n,) array
        One value per job; NaN for missing values. The results are NaN without values.
    weights : (n,) array, optional
        Weights of the values, such as the core-seconds of each job; not negative. Values of weight 0 are ignored, also
        in the maximum.

    Notes
    -----
    Plain percentiles interpolate linearly between order statistics, as numpy, pandas, R and spreadsheets do by
    default (type 7 of Hyndman and Fan), so they can be checked on the job table. Weighted ones are those of
    `weighted_quantiles`. With equal weights the two can differ by one gap between neighbouring values.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50(4), 1996.

    Examples
    --------
    >>> summarise(np.array([0.0, 10.0, 20.0, np.nan]))["mean"]
    10.0
    >>> summarise(np.array([0.0, 10.0]), weights=[1, 3])["mean"]
    7.5
    """
    there = np.isfinite(values)
    if weights is not None:
        shares = np.asarray(weights, dtype=np.float64)
        there &= shares > 0
    everything = bool(there.all())  # mostly true, and no copy is needed
    known = values if everything else values[there]
    if not len(known):
        return dict.fromkeys(SUMMARY, float("nan"))
    if weights is None:
        mean, quantiles = known.mean(), np.quantile(known, list(QUANTILES.values()))
    else:
        shares = shares if everything else shares[there]
        mean, quantiles = (
            (known * shares).sum() / shares.sum(),
            weighted_quantiles(known, shares, list(QUANTILES.values())),
        )
    return dict(zip(SUMMARY, map(float, (mean, *quantiles, known.max())), strict=True))


def weighted_quantiles(values: FloatArray, weights: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Return the weighted quantile of the *values* at each of the *shares* (fractions), always one of the values.

    Notes
    -----
    The quantile at q is the smallest value v for which the values up to and including v carry at least q of all
    weight: the inverse of the weighted distribution function (type 1 of Hyndman and Fan with weights). It does not
    change when a job is split into parts of the same value, as required of weights by core-seconds.

    Examples
    --------
    >>> weighted_quantiles(np.array([5.0, 1.0, 9.0]), np.array([2.0, 1.0, 1.0]), [0.25, 0.26, 0.75, 1.0])
    array([1., 5., 5., 9.])
    """
    order = np.argsort(values)
    carried = weights[order]
    np.cumsum(carried, out=carried)
    rows = np.searchsorted(carried, np.asarray(shares) * carried[-1], side="left")
    quantiles: FloatArray = values[order[np.minimum(rows, len(order) - 1)]]
    return quantiles


def mean_ranks(values: FloatArray) -> FloatArray:
    """Ranks of the *values* from 1; equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Return Spearman's rank correlation; NaN for fewer than two values and for equal ones."""
    ranks = [mean_ranks(column) for column in (one, other)]
    if len(one) < 2 or not all(rank.std() for rank in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def mean(values: Any) -> float:
    """Return the mean of values; NaN of none."""
    return float(np.mean(values)) if len(values) else float("nan")


def overtook(record: Record) -> npt.NDArray[np.bool_]:
    """Return a mask of the jobs that started while an earlier job (in job order) was waiting for the same cluster.

    Notes
    -----
    Each cluster, and each partition that is simulated separately, has a separate queue; jobs overtake only jobs in the
    same queue. Job order is by submit time, and by position in the source for equal times. A job that starts in the
    same instant as an earlier one does not overtake it. Jobs that never ran neither overtake nor are overtaken. Under
    strict FCFS no job overtakes; under EASY and conservative these are the backfilled jobs. Under an ordering other
    than FIFO, jobs that the ordering ranked first also count.

    Examples
    --------
    >>> rows = [dict(submit=0, start=5, end=9), dict(submit=1, start=1, end=2), dict(submit=2, start=9, end=10)]
    >>> overtook(Record.from_rows(rows)).tolist()
    [False, True, False]
    """
    if not len(record):
        return np.zeros(0, dtype=np.bool_)
    order = np.argsort(record.workload.submit, kind="stable")  # rows are in this order unless users reacted
    order = order[record.ran[order]]
    result = np.zeros(len(record), dtype=np.bool_)
    for cluster in np.unique(record.cluster[order]):
        queue = order[record.cluster[order] == cluster]
        start = record.start_us[queue]
        result[queue[1:]] = np.maximum.accumulate(start)[:-1] > start[1:]
    return result


def backfilled_share(record: Record, rows: Any = None, *, by_area: bool = False) -> float:
    """Return the share of jobs that overtook an earlier job, among those that ran; a fraction.

    Parameters
    ----------
    rows : mask, slice or indices, optional
        Jobs to count; overtaking is always determined on the whole record.
    by_area : bool
        Count core-seconds instead of jobs.
    """
    weights = np.nan_to_num(record.area) if by_area else record.ran.astype(np.float64)
    ahead = overtook(record)
    if rows is not None:
        weights, ahead = weights[rows], ahead[rows]
    total = float(weights.sum())
    return float(weights[ahead].sum()) / total if total else float("nan")
