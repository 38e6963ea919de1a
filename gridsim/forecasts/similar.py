"""Waits of similar jobs of a log: a baseline of forecasts, and their source where the futures are worse."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gridsim.forecasts.model import History
from gridsim.model.time import NEVER, FloatArray, IntArray

LAST, AMONG = 500, 2000
"""Number of waits in a sample, and of the last jobs that started after waiting among which they are."""

ENOUGH, ENOUGH_LONGER = 20, 5
"""Number of similar jobs, and of those that waited longer, below which all jobs are used."""

_LIMITS = np.array([15 * 60, 3600, 4 * 3600, 12 * 3600])


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
        for chosen in (alike, np.ones(len(waits), dtype=np.bool_)):
            if chosen is alike and alike.sum() < ENOUGH:
                continue
            longer = waits[chosen][-LAST:]
            longer = longer[longer > waited] if waited else longer
            if len(longer) >= ENOUGH_LONGER or (chosen is not alike and len(longer)):
                return np.sort(longer - waited).astype(np.float64)
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
    share: npt.NDArray[np.bool_] = np.stack([cores * part > machine for part in (64, 16, 4)])
    found: IntArray = 5 * share.sum(axis=0) + np.searchsorted(_LIMITS, limit, side="left")
    return found
