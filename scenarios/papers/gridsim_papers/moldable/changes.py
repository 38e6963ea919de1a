"""Gains and losses of moldable jobs: changes of the mean response by category of weight.

A change is the mean response under one policy divided by that under another, minus 1: negative is better. Windows of a
log are the sample; logarithms of the ratios are averaged and tested.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003; section 8.4 of the project's specification of moldable jobs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gridsim import Record
from gridsim.metrics.groups import rows_by_group, weight_classes
from gridsim.metrics.paired_tests import log_ratios, t_test
from gridsim.model.time import MICROSECOND, FloatArray, IntArray, seconds

__all__ = [
    "CATEGORIES",
    "LEAST_JOBS",
    "Change",
    "categories",
    "category_responses",
    "change",
    "promise_waits",
]

CATEGORIES = tuple(f"weight:{number}" for number in range(1, 11))
"""Names of the ten categories, the lightest first."""

LEAST_JOBS = 10
"""Minimum number of jobs in a category."""


def categories(record: Record, rows: Any = None) -> dict[str, IntArray]:
    """Rows of the jobs of each nonempty category in `CATEGORIES`, limited to *rows* (mask, slice or indices).

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=end, cores=1) for end in (100, 101, 656_101)])
    >>> categories(record)
    {'weight:1': array([0]), 'weight:2': array([1]), 'weight:10': array([2])}
    """
    return rows_by_group(replace(weight_classes(record), names=CATEGORIES), rows)


def category_responses(record: Record) -> dict[str, tuple[int, float]]:
    """Number of jobs that ran and their mean response, s, by nonempty category."""
    own = record.response
    return {name: (len(rows), float(own[rows].mean())) for name, rows in categories(record, record.ran).items()}


class Change(NamedTuple):
    """Change of a mean response over windows.

    Attributes
    ----------
    change, low, high : float
        Geometric mean of the ratios minus 1, and its 95 % interval (Student's t on the logarithms); NaN if undefined.
    p : float
        Two-sided, for no change.
    windows : int
        Windows with both means.
    """

    change: float
    low: float
    high: float
    p: float
    windows: int


def change(mine: FloatArray, theirs: FloatArray, *, confidence: float = 0.95) -> Change:
    """Change from *theirs* to *mine*, one mean response per window; windows that lack one are ignored.

    Examples
    --------
    >>> found = change(np.array([90.0, 80.0, 70.0]), np.array([100.0, 100.0, 100.0]))
    >>> round(found.change, 3), found.windows
    (-0.204, 3)
    """
    logs = log_ratios(mine, theirs)
    test = t_test(logs[np.isfinite(logs)], confidence=confidence)
    return Change(math.expm1(test.mean), math.expm1(test.low), math.expm1(test.high), test.p, test.pairs)


def promise_waits(record: Record, k: float = 4.0) -> FloatArray:
    """Wait of each job until it got a promise by its expansion factor, s; NaN for jobs without one.

    Parameters
    ----------
    record : Record
        Of a policy with ``reserve=xfactor``, whose other promise belongs to the oldest blocked job.
    k : float
        The threshold.

    Notes
    -----
    Promises are not in a record, but they can be derived from it. A scheduling cycle runs at every arrival and every
    end. A job gets the promise at the first cycle after its expansion factor has crossed the threshold. The other
    promise is given to the oldest waiting job without one, as soon as its holder has started.
    """
    workload = record.workload
    scale = workload.cores if workload.moldable is None else workload.moldable.weight
    crossing = np.floor(workload.submit + (k - 1) * workload.estimate / MICROSECOND * scale * MICROSECOND + 1e-3)
    passes = np.unique(np.concatenate([workload.submit, record.end_us[record.ran]]))
    after = np.searchsorted(passes, crossing, side="right")
    promised = np.where(after < len(passes), passes[np.minimum(after, len(passes) - 1)], np.iinfo(np.int64).max)
    due = (promised <= record.start_us) & record.ran
    promised = np.where(due, promised, np.iinfo(np.int64).max)
    oldest = np.argsort(workload.submit, kind="stable")  # jobs are already in this order unless users reacted
    columns = (column[oldest].tolist() for column in (workload.submit, record.start_us, promised))
    due[oldest[_heads(passes.tolist(), *columns)]] = False
    return np.where(due, seconds(np.where(due, promised, 0) - workload.submit), np.nan)


def _heads(passes: list[int], submit: list[int], start: list[int], promised: list[int]) -> list[int]:
    """Jobs that held the promise of the oldest blocked job, in the order in which they got it."""
    heads: list[int] = []
    free_at, oldest = -1, 0
    for now in passes:
        if now < free_at:
            continue
        while oldest < len(submit) and start[oldest] <= now:
            oldest += 1
        for job in range(oldest, len(submit)):
            if submit[job] > now:
                break
            if start[job] > now and promised[job] > now:
                heads.append(job)
                free_at = start[job]
                break
    return heads
