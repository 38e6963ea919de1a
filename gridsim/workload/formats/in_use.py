"""How many cores a log has in use at once: the size of a machine that nobody states."""

from __future__ import annotations

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload

__all__ = ["MOST_IN_USE", "most_in_use", "most_of"]

MOST_IN_USE = "most cores in use at once"
"""What is told of such a size; cores that were always idle are not in it."""


def most_in_use(start: IntArray, end: IntArray, cores: IntArray) -> int:
    """Most cores in use at once; what ends in an instant is gone before what starts in it.

    Examples
    --------
    >>> most_in_use(np.array([0, 5, 6]), np.array([5, 9, 8]), np.array([4, 2, 1]))
    4
    """
    times = np.concatenate((end, start))
    change = np.concatenate((-cores, cores))
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(change[order]).max(initial=0))


def most_of(workload: Workload) -> int | None:
    """The same of a workload, by when its jobs held their cores; its widest job where that is more; None without any.

    Jobs count with the cores that they need, so that each of them fits.
    """
    end = workload.logged_end
    if end is None or not len(workload):
        return None
    known = end < NEVER
    start = (end - _held(workload))[known]
    return max(most_in_use(start, end[known], workload.cores[known]), int(workload.cores.max()))


def _held(workload: Workload) -> IntArray:
    """How long the last run of each job held its cores, whole microseconds."""
    held = workload.logged.get("held")
    return workload.runtime if held is None else np.nan_to_num(held * 1e6).astype(np.int64)
