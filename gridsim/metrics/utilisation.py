"""Metrics of the machine: cores and queue over time, saturation, means over intervals. For jobs see `responsiveness`.

A job holds its cores in ``[start, end)`` and waits in ``[submit, start)``. At an instant that is the end of one job
and the start of another, only the second job counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.record import Record

HOUR = 3600.0

_AT_ONCE = 1 << 20
"""Number of rows processed at once if not all are needed at the same time, to limit memory."""


class Interval(NamedTuple):
    """Interval from *start* to *end*, s; NaN for both if nothing happened."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """End minus start, s."""
        return self.end - self.start


NOWHERE = Interval(float("nan"), float("nan"))


def makespan_window(record: Record) -> Interval:
    """Return the interval from the first submission to the last end, s."""
    ends = record.end_us[record.ran]
    return Interval(seconds(int(record.workload.submit.min())), seconds(int(ends.max()))) if len(ends) else NOWHERE


def arrival_window(record: Record) -> Interval:
    """Return the interval from the first to the last submission, s, without draining of the queue."""
    submit = record.workload.submit
    return Interval(seconds(int(submit.min())), seconds(int(submit.max()))) if len(record) else NOWHERE


def makespan(record: Record) -> float:
    """Return the last end minus the first submission, s."""
    return makespan_window(record).length


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Step function of time: ``values[i]`` from ``times_s[i]`` until the next time.

    Attributes
    ----------
    times_s : (n,) float64
        Ascending times, s. Before the first one the value is 0; from the last one on it is the last value.
    values : (n,) array
        Value from each time on.

    Examples
    --------
    >>> steps = Steps(np.array([0.0, 10.0, 30.0]), np.array([2, 1, 0]))
    >>> steps.at(10.0), steps.mean(0, 30), steps.max(10, 30)
    (1.0, 1.3333333333333333, 1.0)
    """

    times_s: FloatArray
    values: npt.NDArray[np.float64] | IntArray

    @overload
    def at(self, time: float) -> float: ...
    @overload
    def at(self, time: FloatArray) -> FloatArray: ...
    def at(self, time: float | FloatArray) -> float | FloatArray:
        """Return the value at a *time* (s), or at each of several; at a step the new value."""
        rows = np.searchsorted(self.times_s, time, side="right") - 1
        padded = np.append(self.values, 0).astype(np.float64)  # index -1, before the first time, selects this 0
        return float(padded[rows]) if np.ndim(time) == 0 else padded[rows]

    def mean(self, start: float | None = None, end: float | None = None) -> float:
        """Return the time-weighted mean over ``[start, end)``, s; by default from the first to the last time."""
        window = self._window(start, end)
        if not window.length > 0:
            return float("nan")
        low, high = self._integral(np.array(window))
        return float((high - low) / window.length)

    def max(self, start: float | None = None, end: float | None = None) -> float:
        """Return the largest value in ``[start, end)``, s; by default over all times."""
        window = self._window(start, end)
        if not window.length > 0:
            return float("nan")
        first, last = np.searchsorted(self.times_s, window, side="left")
        inside = self.values[first:last]
        return max(self.at(window.start), float(inside.max()) if len(inside) else 0.0)

    def resample(self, n: int, start: float | None = None, end: float | None = None) -> Steps:
        """Return the means over *n* bins of equal length, for plots; the mean over the interval is preserved.

        Returns
        -------
        Steps
            Step function with n + 1 times, the edges of the bins; its last value is the value at the last edge.
        """
        if n < 1:
            raise InputError(f"{n} bins; expected at least 1", field="n")
        window = self._window(start, end)
        if not window.length > 0:
            return Steps(np.zeros(0), np.zeros(0))
        return self.over(np.linspace(window.start, window.end, n + 1))

    def over(self, edges: FloatArray) -> Steps:
        """Return the means over the bins between ascending *edges*, s; the last value is the value at the last edge.

        Examples
        --------
        >>> Steps(np.array([0.0, 10.0]), np.array([2, 0])).over(np.array([0.0, 5.0, 20.0])).values.round(2)
        array([2.  , 0.67, 0.  ])
        """
        means = np.diff(self._integral(edges)) / np.diff(edges)
        return Steps(edges, np.append(means, self.at(float(edges[-1]))))

    def _window(self, start: float | None, end: float | None) -> Interval:
        first, last = (self.times_s[0], self.times_s[-1]) if len(self.times_s) else NOWHERE
        return Interval(float(first if start is None else start), float(last if end is None else end))

    def _integral(self, times: FloatArray) -> FloatArray:
        """Return the integral from the first time to each of the *times*; value times seconds."""
        if not len(self.times_s):
            return np.zeros(len(times))
        reached = np.zeros(len(self.times_s))
        np.cumsum(self.values[:-1] * np.diff(self.times_s), out=reached[1:])
        rows = np.searchsorted(self.times_s, times, side="right") - 1
        known = np.maximum(rows, 0)
        return np.where(rows < 0, 0.0, reached[known] + self.values[known] * (times - self.times_s[known]))


def busy_cores(record: Record) -> Steps:
    """Return the cores held by jobs, over time."""
    return steps(*record.holds())


def queue_length(record: Record) -> Steps:
    """Return the number of jobs submitted and not yet started, over time, without jobs that never ran.

    A job that is killed to free cores for another one waits again until its restart. For DAG jobs, tasks that are
    ready and not yet started are counted.
    """
    begin, start, _ = waits(record)
    return steps(begin, start, np.ones(len(begin), dtype=np.int64))


def waits(record: Record) -> tuple[IntArray, IntArray, IntArray]:
    """Return the waiting intervals of all jobs (tasks of DAG jobs) that ran, whole microseconds, and their rows.

    Returns
    -------
    begin, until : (k,) int64
        Whole microseconds.
    row : (k,) int64
        Rows; a job that waited again for a restart or its next piece occurs several times.
    """
    record = record.in_stretches
    begin, start = record.workload.submit, record.start_us
    if record.tasks is not None:
        begin, start = record.tasks.ready_us, record.tasks.start_us
    elif len(record.earlier_runs()[0]):
        return _waits_between_runs(record)
    ran = np.flatnonzero(start < NEVER)
    if len(ran) == len(start):  # usually all ran, and no copy is needed
        return begin, start, ran
    return begin[ran], start[ran], ran


def _waits_between_runs(record: Record) -> tuple[IntArray, IntArray, IntArray]:
    """Return the waits of jobs with several runs, before the first run and between runs."""
    ran = np.flatnonzero(record.ran)
    job, start, end = record.earlier_runs()
    row = np.concatenate([ran, job])
    begin = np.concatenate([record.workload.submit[ran], end])
    until = np.concatenate([record.start_us[ran], start])
    # Runs of a job do not overlap, so its waits begin and end in the same order.
    return begin[np.lexsort((begin, row))], until[np.lexsort((until, row))], np.sort(row)


def steps(begin: IntArray, end: IntArray, amount: IntArray) -> Steps:
    """Return the sum of *amount* over all intervals ``[begin, end)``, microseconds, over time."""
    times = np.concatenate([begin, end])
    if not len(times):
        return Steps(np.zeros(0), np.zeros(0, dtype=np.int64))
    order = np.argsort(times)  # each array has 160 MB for ten million jobs, so none is kept longer than needed
    times = times[order]
    level = np.concatenate([amount, -amount])
    level = level[order]
    del order
    np.cumsum(level, out=level)
    settled = np.append(times[1:] != times[:-1], True)
    times, level = times[settled], level[settled]
    moved = np.append(True, level[1:] != level[:-1])
    return Steps(seconds(times[moved]), level[moved])


def interval_us(record: Record, start: float | None, end: float | None) -> tuple[int, int]:
    """Return the interval in whole microseconds, by default the makespan; an empty one at 0 if there is none."""
    default = makespan_window(record)
    low, high = (default.start if start is None else start), (default.end if end is None else end)
    if not (np.isfinite(low) and np.isfinite(high)):
        return 0, 0
    return to_us(float(low)), to_us(float(high))


def overlap(begin: IntArray, end: IntArray, low: int, high: int) -> IntArray:
    """Return the overlap of each ``[begin, end)`` with ``[low, high)``, microseconds."""
    shared = np.minimum(end, high)
    shared -= np.maximum(begin, low)
    return np.maximum(shared, 0, out=shared)


def utilisation(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the core-seconds held in ``[start, end)`` over those available; a fraction, NaN for an empty interval.

    NaN also for machines without cores; for other resources see `gridsim.metrics.resources.share_held`.

    Parameters
    ----------
    start, end : float, optional
        The interval, s; jobs are clipped to it. By default from the first submission to the last end (the makespan);
        ``*arrival_window(record)`` excludes the draining of the queue at the end.

    Examples
    --------
    >>> rows = [dict(submit=0, start=0, end=30, cores=1), dict(submit=10, start=30, end=40, cores=2)]
    >>> record = Record.from_rows(rows)
    >>> utilisation(record), utilisation(record, *arrival_window(record))
    (0.625, 0.5)
    """
    low, high = interval_us(record, start, end)
    if high <= low:
        return float("nan")
    start_us, end_us, cores = record.holds()
    held = overlap(start_us, end_us, low, high)
    return float(np.multiply(held, cores, dtype=np.float64).sum() / (high - low) / (record.cores or np.nan))


def useful_utilisation(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the utilisation without work lost by jobs that were killed and restarted later.

    Parameters
    ----------
    start, end : float, optional
        As in `utilisation`, which includes that work.
    """
    return utilisation(replace(record, promises=None), start, end)


def mean_queue_length(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the mean number of waiting jobs (or ready tasks) in ``[start, end)``; by default the makespan."""
    low, high = interval_us(record, start, end)
    if high <= low:
        return float("nan")
    begin, until = waits(record)[:2]
    waited = overlap(begin, until, low, high)
    return float(waited.sum(dtype=np.float64) / (high - low))


def longest_queue(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the largest number of waiting jobs (or ready tasks) in ``[start, end)``, by default the makespan.

    Examples
    --------
    >>> rows = [dict(submit=t, start=8 + t, end=9 + t, cores=1) for t in (0, 2, 3)]
    >>> longest_queue(Record.from_rows(rows)), longest_queue(Record.from_rows(rows), 8, 11)
    (3.0, 2.0)
    """
    low, high = interval_us(record, start, end)
    if high <= low:
        return float("nan")
    begin, until = (np.sort(column) for column in waits(record)[:2])
    most = int(np.searchsorted(begin, low, side="right") - np.searchsorted(until, low, side="right"))
    first, last = np.searchsorted(begin, (low, high), side="left").tolist()
    for row in range(first, last, _AT_ONCE):  # the queue is longest just after an arrival
        came = begin[row : min(row + _AT_ONCE, last)]
        waiting = np.arange(row + 1, row + 1 + len(came)) - np.searchsorted(until, came, side="right")
        most = max(most, int(waiting.max()))
    return float(most)


def throughput(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the jobs that ended in ``(start, end]`` per hour, completed or killed; by default the makespan."""
    low, high = interval_us(record, start, end)
    if high <= low:
        return float("nan")
    ended = np.count_nonzero((record.end_us > low) & (record.end_us <= high))
    return float(ended / (seconds(high - low) / HOUR))


def waiting_area(record: Record) -> float:
    """Return cores times wait, summed over the jobs that ran (or their ready tasks), core-seconds.

    A killed run does not count as waiting, although its work is lost.
    """
    if record.tasks is not None or record.kills.any():
        begin, start, row = waits(record)
        cores = record.workload.cores if record.workload.tasks is None else record.workload.tasks.cores
        return float((cores[row] * seconds(start - begin)).sum())
    return float(np.nansum(record.workload.cores * record.wait))


def offered_load(record: Record, start: float | None = None, end: float | None = None) -> float:
    """Return the true work of the jobs submitted in ``[start, end]`` over the available core-seconds; a fraction.

    Parameters
    ----------
    start, end : float, optional
        The interval, s; by default from the first to the last submission. Above 1 the queue grows.
    """
    first, last = arrival_window(record)
    low, high = interval_us(record, first if start is None else start, last if end is None else end)
    if high <= low:
        return float("nan")
    workload = record.workload
    inside = (workload.submit >= low) & (workload.submit <= high)
    if workload.tasks is not None:
        return float(workload.area[inside].sum() / seconds(high - low) / (record.cores or np.nan))
    work = np.multiply(workload.cores[inside], workload.runtime[inside], dtype=np.float64).sum()
    return float(work / (high - low) / (record.cores or np.nan))


FIFTHS = 5
"""Number of equal parts of the interval of submissions."""

STILL_THERE = 0.5
"""Ratio of the queue at the last submission to the longest queue, from which on it is not drained."""

GROWTH = 1.25
"""Ratio of waiting jobs in the last two fifths to those in the first two, from which on the queue has grown."""

FULLEST = 0.9
"""Ratio of waiting jobs in the last fifth to those in the fullest one, from which on the queue is still growing."""

DRAIN = 0.02
"""Time from the last submission to the last start, relative to the interval of submissions, from which on it is long.
"""

FEWEST = 100
"""Number of jobs below which saturation is not assessed."""


def keeps_up(record: Record) -> bool:
    """Return False if the system is saturated: the queue is still growing when the workload ends.

    Notes
    -----
    In a saturated system, mean waits grow with the length of the workload. The system is saturated if all of these
    conditions hold over the whole record:

    - at the last submission the queue has at least half of its greatest length;
    - its mean length in the last two fifths of the time is at least a quarter above that in the first two fifths;
    - the last fifth is within a tenth of the fullest one;
    - the last job starts later than the last submission by 2 % of the time between first and last submission.

    A queue that rises and falls with busy weeks violates one of the conditions, unless the workload ends in the
    busiest weeks. No rule can distinguish that case from overload. The thresholds were chosen for gridsim. They
    classified synthetic workloads of 10,000 jobs correctly for all tested seeds, at loads of a tenth below and above
    the limit of a policy. Close to the limit, either result is possible.

    Examples
    --------
    >>> rows = [dict(submit=9 * t, start=10 * t, end=10 * t + 10, cores=1) for t in range(200)]
    >>> keeps_up(Record.from_rows(rows))
    False
    """
    queue = queue_length(record)
    window = arrival_window(record)
    if np.count_nonzero(record.ran) < FEWEST or not window.length > 0 or not queue.values.any():
        return True
    fifths = queue.resample(FIFTHS, *window).values[:FIFTHS]
    last_start = seconds(int(record.start_us[record.ran].max()))
    grows = (
        queue.at(window.end) >= STILL_THERE * queue.values.max()
        and fifths[-2:].sum() >= GROWTH * fifths[:2].sum()
        and fifths[-1] >= FULLEST * fifths.max()
        and last_start - window.end >= DRAIN * window.length
    )
    return not grows
