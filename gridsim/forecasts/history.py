"""Jobs of a log up to a moment: candidates of run times, and waits of similar jobs (spec of forecasts, 2.2 and 4).

Times are whole seconds. Nothing that became known after the moment is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.model.workload import UNKNOWN, Workload

ENOUGH = 10
"""Number of values from which a pool of run times is used."""

OF_USER, OF_ALL = 100, 2000
"""Numbers of last jobs of a user, and of all users, in the pools."""

LAST, AMONG = 500, 2000
"""Number of waits in a sample, and of the last jobs that started after waiting among which they are."""

ENOUGH_ALIKE, ENOUGH_LONGER = 20, 5
"""Number of similar jobs, and of those that waited longer, below which all jobs are used."""

_LIMITS = np.array([15 * 60, 3600, 4 * 3600, 12 * 3600])


POOLS = ("user and limit", "user", "limit class", "all")
UNIFORM = "uniform"
"""Names of the pools, and of the distribution without one."""


@dataclass(frozen=True)
class History:
    """Jobs of a log as columns, in order of submission, with a schedule: recorded, or of a policy.

    Attributes
    ----------
    submit, run, limit, cores, user : (n,) int64
        Times in whole seconds; run times above the limit count as the limit.
    start, end : (n,) int64
        Schedule; `NEVER` for jobs that never started or ended.
    left : (n,) int64
        When jobs were cancelled while they waited; `NEVER` for all others. These jobs are not copied.
    """

    submit: IntArray
    run: IntArray
    limit: IntArray
    cores: IntArray
    user: IntArray
    start: IntArray
    end: IntArray
    left: IntArray

    @classmethod
    def of(cls, workload: Workload, start: IntArray, end: IntArray) -> History:
        """Return the jobs of a workload with a schedule in whole microseconds."""
        after = workload.labels.get("withdrawn", np.full(len(start), UNKNOWN))  # seconds after the submission
        # A job waits at a whole second if it is submitted by then and starts later: these times are rounded up.
        up, near = MICROSECOND - 1, MICROSECOND // 2
        times = ((workload.submit, up), (workload.runtime, near), (workload.estimate, near), (start, up), (end, up))
        submit, run, limit, start, end = (
            np.where(column >= NEVER, NEVER, (column + more) // MICROSECOND) for column, more in times
        )
        user = workload.labels.get("user", np.full(len(submit), UNKNOWN, dtype=np.int64))
        limit = np.maximum(limit, 1)
        left = np.where((after >= 0) & (start >= NEVER), submit + after, NEVER)
        return cls(submit, np.minimum(run, limit), limit, workload.cores, user, start, end, left)

    @cached_property
    def _by_end(self) -> IntArray:
        """Jobs in the order of their ends."""
        return np.argsort(self.end, kind="stable")[: int((self.end < NEVER).sum())]

    @cached_property
    def _ends(self) -> IntArray:
        return self.end[self._by_end]

    @cached_property
    def _of_users(self) -> dict[int, IntArray]:
        """Positions in the order of ends, by known user."""
        users = self.user[self._by_end]
        order = np.argsort(users, kind="stable")
        names, first = np.unique(users[order], return_index=True)
        found = zip(names.tolist(), np.split(order, first)[1:], strict=True)
        return {user: rows for user, rows in found if user != UNKNOWN}

    def candidates(self, at: int, limit: int, elapsed: int, user: int) -> tuple[str, IntArray]:
        """Return the pool of the run time of a job, and its values, sorted; without one, none.

        Parameters
        ----------
        at : int
            The moment.
        limit, elapsed, user : int
            Limit, elapsed time and user of the job.
        """
        for name, rows in zip(POOLS, self._pools(at, limit, user), strict=True):
            if len(found := self._scaled(rows, limit, elapsed)) >= ENOUGH:
                return name, found
        return UNIFORM, np.zeros(0, dtype=np.int64)

    def _pools(self, at: int, limit: int, user: int) -> Iterator[IntArray]:
        """Yield the jobs of each pool that ended at or before a moment."""
        known = int(np.searchsorted(self._ends, at, side="right"))
        own = self._of_users.get(user, np.zeros(0, dtype=np.int64))
        last = self._by_end[own[: np.searchsorted(own, known)][-OF_USER:]]
        yield last[self.limit[last] == limit]
        yield last
        everyone = self._by_end[:known][-OF_ALL:]
        yield everyone[np.frexp(self.limit[everyone].astype(np.float64))[1] == limit.bit_length()]
        yield everyone

    def _scaled(self, rows: IntArray, limit: int, elapsed: int) -> IntArray:
        """Return run times scaled to a limit, rounded half up, those above the elapsed time, sorted."""
        run, own = self.run[rows], self.limit[rows]
        values = np.minimum(limit, np.maximum(1, (2 * run * limit + own) // (2 * own)))
        return np.sort(values[values > elapsed])


def drawn(values: IntArray, u: float, limit: int, elapsed: int) -> int:
    """Return the run time at a uniform *u*, from sorted candidates if there are any.

    Examples
    --------
    >>> drawn(np.array([5, 7]), 0.5, 9, 0), drawn(np.array([], dtype=int), 0.5, 10, 4)
    (7, 8)
    """
    if len(values):
        return int(values[int(u * len(values))])
    return elapsed + 1 + int(u * max(limit - elapsed, 1))


class Waits:
    """Waits of the jobs of a log that did not start as they were submitted, by start.

    Parameters
    ----------
    history : History
        The jobs, with their schedule.
    machine : int
        Cores of the machine.
    least : int
        Waits above it count, s.
    """

    def __init__(self, history: History, machine: int, least: int = 0) -> None:
        waited = np.flatnonzero((history.start < NEVER) & (history.start - history.submit > least))
        rows = waited[np.argsort(history.start[waited], kind="stable")]
        self._start, self._wait = history.start[rows], history.start[rows] - history.submit[rows]
        self._class = job_class(history.cores, history.limit, machine)
        self._classes = self._class[rows]

    def similar(self, row: int, at: int, waited: int) -> FloatArray:
        """Return the sorted further waits of jobs like one that has *waited* for some time, s; empty without any."""
        until = int(np.searchsorted(self._start, at, side="left"))
        among = slice(max(0, until - AMONG), until)
        waits, alike = self._wait[among], self._classes[among] == self._class[row]
        for chosen, enough, longer in ((waits[alike], ENOUGH_ALIKE, ENOUGH_LONGER), (waits, 0, 1)):
            found = chosen[-LAST:][chosen[-LAST:] > waited]
            if len(chosen) >= enough and len(found) >= longer:
                return np.sort(found - waited).astype(np.float64)
        return np.zeros(0)

    def last(self, at: int, waited: int) -> float:
        """Return the wait of the last job that started after waiting, minus the time waited; 0 without any."""
        until = int(np.searchsorted(self._start, at, side="left"))
        return float(max(0, self._wait[until - 1] - waited)) if until else 0.0


def job_class(cores: IntArray, limit: IntArray, machine: int) -> IntArray:
    """Return the class of cores (up to 1/64, 1/16, 1/4, all) and limit (up to 15 min, 1, 4, 12 h, more), as a number.

    Examples
    --------
    >>> job_class(np.array([1, 64]), np.array([900, 43201]), 64).tolist()
    [0, 19]
    """
    share = (cores[:, None] * np.array([64, 16, 4]) > machine).sum(axis=1)
    found: IntArray = 5 * share + np.searchsorted(_LIMITS, limit, side="left")
    return found
