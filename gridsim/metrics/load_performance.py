"""Joint distribution of load and performance by period, such as a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.responsiveness import BOUND, measure, rank_correlation
from gridsim.metrics.utilisation import busy_cores
from gridsim.model.dates import calendar_of
from gridsim.model.time import MICROSECOND, FloatArray, IntArray, seconds
from gridsim.record import Record

DAY = 86_400.0
"""Default period, s."""

LEAST = 10
"""Number of jobs below which a period is excluded."""

LOADS = 21
"""Rows of cells: load in steps of 0.1 from 0; the last row is 2 and above."""

SLOWDOWNS = 17
"""Columns of cells: powers of two from 1; the last column is from 2 to the 16th."""


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Load and mean bounded slowdown of the jobs submitted in each period of a schedule.

    Attributes
    ----------
    start : (periods,) float64
        Begin of each period, s of the log's clock.
    load : (periods,) float64
        Offered load (work of the submitted jobs over cores times period), or utilisation in the period.
    slowdown : (periods,) float64
        Mean bounded slowdown of the submitted jobs.
    jobs : (periods,) int64
        Number of submitted jobs.
    left_out : int
        Number of periods with some jobs, but fewer than the minimum.
    """

    start: FloatArray
    load: FloatArray
    slowdown: FloatArray
    jobs: IntArray
    left_out: int

    def cells(self, weight: Literal["periods", "jobs"] = "periods") -> IntArray:
        """Return the number of periods, or jobs, in each cell:

        (`LOADS`, `SLOWDOWNS`) int64; the sum is that of all kept periods.
        """
        row = np.minimum((self.load * 10 + 1e-9).astype(np.int64), LOADS - 1)
        column = np.clip(np.floor(np.log2(np.maximum(self.slowdown, 1.0))).astype(np.int64), 0, SLOWDOWNS - 1)
        found = np.zeros((LOADS, SLOWDOWNS), dtype=np.int64)
        np.add.at(found, (row, column), self.jobs if weight == "jobs" else 1)
        return found

    def each(self, step: int) -> Joint:
        """Return every *step*-th period."""
        rows = slice(None, None, step)
        return Joint(self.start[rows], self.load[rows], self.slowdown[rows], self.jobs[rows], self.left_out)

    def rank_correlation(self) -> float:
        """Spearman's rank correlation of load and slowdown over periods; NaN with fewer than two."""
        return rank_correlation(self.load, self.slowdown)


class LoadBin(NamedTuple):
    """Number and median slowdowns of common periods of two policies with loads from *low* up to *low* + 0.1.

    ``difference`` is the median of the paired differences, first policy minus second.
    """

    low: float
    periods: int
    mine: float
    theirs: float
    difference: float


def joint(
    record: Record,
    *,
    period: float = DAY,
    least: int = LEAST,
    by: Literal["offered", "utilisation"] = "offered",
    bound: float = BOUND,
) -> Joint:
    """Return load and performance of each period of a schedule with at least *least* jobs.

    Parameters
    ----------
    period : float
        Length of a period, s. The first period begins at midnight of the log's clock, at or before the first
        submission; without dates, at the first submission.
    by : {"offered", "utilisation"}
        Load of the jobs submitted in a period, or share of busy cores.
    bound : float
        Bound of the bounded slowdown, s.

    Raises
    ------
    InputError
        For DAG jobs, and an invalid *period*.

    References
    ----------
    Krakov, Feitelson, "Comparing performance heatmaps", JSSPP 2013; section 5 of the project's specification of
    methods.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=t, start=t + 10, end=t + 20, cores=1) for t in range(0, 100, 10)])
    >>> found = joint(record, period=100)
    >>> found.load.tolist(), found.slowdown.tolist(), found.jobs.tolist()
    ([1.0], [2.0], [10])
    """
    record.workload.require_rigid("load and performance are defined for rigid jobs")
    if not period >= 1:
        raise InputError(f"a period of {period} s; expected 1 or more", field="period")
    slowdown = measure(record, "bounded_slowdown", bound)
    ran = np.flatnonzero(np.isfinite(slowdown))
    if not len(ran):
        nothing = np.empty(0)
        return Joint(nothing, nothing, nothing, np.empty(0, dtype=np.int64), 0)
    origin = midnight(record)
    number = ((record.workload.submit[ran] - origin) // round(period * MICROSECOND)).astype(np.int64)
    jobs = np.bincount(number)
    kept = np.flatnonzero(jobs >= least)
    start = np.asarray(seconds(origin) + kept * period, dtype=np.float64)
    if by == "offered":
        load = np.bincount(number, weights=record.workload.area[ran])[kept] / ((record.cores or np.nan) * period)
    else:
        busy = busy_cores(record)
        load = np.array([busy.mean(at, at + period) for at in start.tolist()]) / (record.cores or np.nan)
    means = np.bincount(number, weights=slowdown[ran])[kept] / jobs[kept]
    return Joint(start, load, means, jobs[kept], int(np.count_nonzero(jobs)) - len(kept))


def load_bins(mine: Joint, theirs: Joint) -> list[LoadBin]:
    """Compare two policies in bins of 0.1 of the first one's load, over their common periods."""
    _, first, second = np.intersect1d(mine.start, theirs.start, return_indices=True)
    row = np.minimum((mine.load[first] * 10 + 1e-9).astype(np.int64), LOADS - 1)
    found = []
    for number in np.unique(row).tolist():
        pair = [joint.slowdown[rows[row == number]] for joint, rows in ((mine, first), (theirs, second))]
        medians = [float(np.median(column)) for column in (*pair, pair[0] - pair[1])]
        found.append(LoadBin(number / 10, len(pair[0]), *medians))
    return found


def midnight(record: Record, *, weeks: bool = False) -> int:
    """Return midnight at or before the first submission, whole microseconds; without dates the first submission.

    With *weeks*, return midnight of the Monday at or before it.
    """
    first = int(record.workload.submit.min())
    calendar = calendar_of(record.workload.provenance)
    if calendar is None:
        return first
    date = calendar.date(first // MICROSECOND)
    since = (date.weekday() * 24 * weeks + date.hour) * 3600 + date.minute * 60 + date.second
    return first // MICROSECOND * MICROSECOND - since * MICROSECOND
