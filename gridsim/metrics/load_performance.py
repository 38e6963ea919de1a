"""Load against performance: what came in each day, and how slowly it was served; a joint distribution, not a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.responsiveness import BOUND, mean_ranks, measure
from gridsim.metrics.utilisation import busy_cores
from gridsim.model.dates import calendar_of
from gridsim.model.time import MICROSECOND, FloatArray, IntArray, seconds
from gridsim.record import Record

DAY = 86_400.0
"""Usual period, s."""

LEAST = 10
"""Jobs of a period below which it is left out."""

LOADS = 21
"""Rows of cells: load by 0.1 from 0, the last one 2 and above."""

SLOWDOWNS = 17
"""Columns of cells: powers of two from 1, the last one from 2 to the 16th."""


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Periods of a schedule, by load and mean bounded slowdown of the jobs that came in them.

    Attributes
    ----------
    start : (periods,) float64
        s of the log's clock.
    load : (periods,) float64
        Offered: work of the jobs that came, over cores times period; or the utilisation in the period.
    slowdown : (periods,) float64
        Mean bounded slowdown of the jobs that came.
    jobs : (periods,) int64
        How many came.
    left_out : int
        Periods with some jobs, but fewer than asked for.
    """

    start: FloatArray
    load: FloatArray
    slowdown: FloatArray
    jobs: IntArray
    left_out: int

    def cells(self, weight: Literal["periods", "jobs"] = "periods") -> IntArray:
        """How many periods, or jobs, are in each cell: (`LOADS`, `SLOWDOWNS`) int64; the sum is that of all kept."""
        row = np.minimum((self.load * 10 + 1e-9).astype(np.int64), LOADS - 1)
        column = np.clip(np.floor(np.log2(np.maximum(self.slowdown, 1.0))).astype(np.int64), 0, SLOWDOWNS - 1)
        found = np.zeros((LOADS, SLOWDOWNS), dtype=np.int64)
        np.add.at(found, (row, column), self.jobs if weight == "jobs" else 1)
        return found

    def each(self, step: int) -> Joint:
        """Every so many of the periods."""
        rows = slice(None, None, step)
        return Joint(self.start[rows], self.load[rows], self.slowdown[rows], self.jobs[rows], self.left_out)

    def rank_correlation(self) -> float:
        """Spearman's, of load and slowdown over periods; NaN with fewer than two."""
        if len(self.load) < 2:
            return float("nan")
        ranks = [mean_ranks(column) for column in (self.load, self.slowdown)]
        deviations = [column - column.mean() for column in ranks]
        scale = float(np.sqrt((deviations[0] ** 2).sum() * (deviations[1] ** 2).sum()))
        return float((deviations[0] * deviations[1]).sum()) / scale if scale else float("nan")


class LoadBin(NamedTuple):
    """Periods of loads from *low* up to *low* + 0.1 that two policies have in common: how many, and median slowdowns.

    ``difference`` is the median of the paired differences, the first policy minus the other one.
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
    """Load and performance of each period of a schedule, those with at least *least* jobs.

    Parameters
    ----------
    period : float
        s; periods begin with midnight, on the log's clock, at or before the first submit, or with the first submit
        where the log has no dates.
    by : {"offered", "utilisation"}
        Load of the jobs that came in a period, or share of the cores that were busy in it.
    bound : float
        Of the bounded slowdown, s.

    Raises
    ------
    InputError
        For jobs of several tasks, and a *period* that is none.

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
    record.workload.require_rigid("load and performance are told of rigid jobs")
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
    """Two policies by load, period by period: those that both have, in bins of 0.1 of the first one's load."""
    _, first, second = np.intersect1d(mine.start, theirs.start, return_indices=True)
    row = np.minimum((mine.load[first] * 10 + 1e-9).astype(np.int64), LOADS - 1)
    found = []
    for number in np.unique(row).tolist():
        pair = [joint.slowdown[rows[row == number]] for joint, rows in ((mine, first), (theirs, second))]
        medians = [float(np.median(column)) for column in (*pair, pair[0] - pair[1])]
        found.append(LoadBin(number / 10, len(pair[0]), *medians))
    return found


def midnight(record: Record, *, weeks: bool = False) -> int:
    """Midnight at or before the first submit, on the log's clock, whole microseconds; else the first submit.

    With *weeks*, midnight of the Monday at or before it.
    """
    first = int(record.workload.submit.min())
    calendar = calendar_of(record.workload.provenance)
    if calendar is None:
        return first
    date = calendar.date(first // MICROSECOND)
    since = (date.weekday() * 24 * weeks + date.hour) * 3600 + date.minute * 60 + date.second
    return first // MICROSECOND * MICROSECOND - since * MICROSECOND
