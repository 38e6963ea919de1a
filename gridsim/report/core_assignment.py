"""Assignment of cores to jobs for charts, since a schedule contains only times and numbers of cores.

Schedulers do not use this module, since cores are interchangeable for them.
"""

# Types are in the docstrings, since the decorators hide them from type checkers.
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import MICROSECOND, NEVER, IntArray


class CoreAssignment(NamedTuple):
    """Contiguous pieces of cores, grouped by job.

    Attributes
    ----------
    offset : (n + 1,) int64
        Pieces of job *i* are ``offset[i]:offset[i + 1]``; none for a job that held nothing.
    low : (m,) int32
        Lowest core of each piece, from 0.
    size : (m,) int32
        Cores of each piece.
    """

    offset: npt.NDArray[np.int64]
    low: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]

    def cores(self, row: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the cores of the job in *row*, ascending."""
        pieces = range(int(self.offset[row]), int(self.offset[row + 1]))
        held = [np.arange(self.low[piece], self.low[piece] + self.size[piece], dtype=np.int64) for piece in pieces]
        return np.sort(np.concatenate(held)) if held else np.zeros(0, dtype=np.int64)


def assign_cores(
    start: IntArray, end: IntArray, width: IntArray, cores: int, *, job: IntArray | None = None
) -> CoreAssignment:
    """Assign cores to the jobs of a schedule in order of start.

    A job receives the lowest cores of the first contiguous hole that is wide enough. Otherwise it receives the widest
    hole, and the rest in the same way, so the number of pieces is small. Jobs hold their cores over ``[start, end)``,
    so ends precede starts of the same instant. Jobs that did not run, or ran for zero time, hold none.

    Parameters
    ----------
    start, end : (n,) int64
        Whole microseconds; `NEVER` for jobs that did not run.
    width : (n,) int64
        Cores of each job.
    cores : int
        Cores of the machine.
    job : (n,) int64, optional
        Numbers of jobs for errors; by default 1, 2, …

    Raises
    ------
    InputError
        If the schedule needs more cores than the machine has; with the job and the time.

    Examples
    --------
    >>> assign_cores(np.array([0, 5]), np.array([9, 8]), np.array([1, 2]), 4).low.tolist()
    [0, 1]
    """
    held = np.flatnonzero((start < NEVER) & (end > start))
    starts = held[np.argsort(start[held], kind="stable")]
    ends = held[np.argsort(end[held], kind="stable")]
    jobs = (np.array(start), np.array(end), np.array(width), starts, ends)
    n, told, room = len(start), np.zeros(3, dtype=np.int64), 2 * len(starts) + 16
    holes = np.empty((2, cores + 2), dtype=np.int64)
    while True:
        first, count = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        low, size = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        sweep(int(cores), jobs, holes, (first, count, low, size), told)
        if not told[FULL]:
            break
        room *= 4
    failed, free, _ = told.tolist()
    if failed >= 0:
        raise InputError(
            f"job {failed + 1 if job is None else job[failed]} starts at {start[failed] / MICROSECOND:g} s and needs "
            f"{width[failed]} of {free} free cores; the machine has {cores}"
        )
    offset = np.concatenate(([0], np.cumsum(count)))
    pieces = np.arange(offset[-1]) + np.repeat(first - offset[:-1], count)
    return CoreAssignment(offset, low[pieces], size[pieces])


FAILED, FREE, FULL = range(3)
"""Results of a sweep: the job that did not fit (or -1), the free cores at that time, and whether the arrays are full.
"""


@njit_noalloc
def sweep(machine, jobs, holes, found, told):  # type: ignore[no-untyped-def]
    """Assign cores from a sorted list of holes to *jobs*: starts, ends, widths, and rows by start and by end.

    *holes* (2, machine + 2) are lowest cores and ends, *found* the first piece and the pieces of each job, and the
    lowest core and the size of each piece.
    """
    start, end, width, starts, ends = jobs
    first, count, low, size = found
    holes[0, 0], holes[1, 0] = 0, machine
    known, free, used, next_end = 1, machine, 0, 0
    told[FAILED], told[FREE], told[FULL] = -1, 0, 0
    for k in range(starts.shape[0]):
        job = starts[k]
        while next_end < ends.shape[0] and end[ends[next_end]] <= start[job]:
            gone = ends[next_end]
            for piece in range(first[gone], first[gone] + count[gone]):
                known = _give_back(holes, known, np.int64(low[piece]), np.int64(low[piece]) + size[piece])
            free += width[gone]
            next_end += 1
        need = width[job]
        if need > free:
            told[FAILED], told[FREE] = job, free
            return
        free -= need
        first[job] = used
        while need > 0:
            if used == low.shape[0]:
                told[FULL] = 1
                return
            hole = _wide_enough(holes, known, need)
            taken = min(need, holes[1, hole] - holes[0, hole])
            low[used], size[used] = holes[0, hole], taken
            used += 1
            need -= taken
            holes[0, hole] += taken
            if holes[0, hole] == holes[1, hole]:
                known = _close(holes, known, hole)
        count[job] = used - first[job]


@njit_noalloc
def _wide_enough(holes, known, need):  # type: ignore[no-untyped-def]
    """Return the first hole of at least *need* cores, else the widest (the first of equal ones)."""
    widest, width = 0, 0
    for hole in range(known):
        size = holes[1, hole] - holes[0, hole]
        if size >= need:
            return hole
        if size > width:
            widest, width = hole, size
    return widest


@njit_noalloc
def _close(holes, known, hole):  # type: ignore[no-untyped-def]
    for index in range(hole, known - 1):
        holes[0, index], holes[1, index] = holes[0, index + 1], holes[1, index + 1]
    return known - 1


@njit_noalloc
def _give_back(holes, known, low, high):  # type: ignore[no-untyped-def]
    """Add ``[low, high)`` to the holes, merged with adjacent ones; return the new number of holes."""
    after, last = 0, known
    while after < last:
        middle = (after + last) // 2
        if holes[0, middle] < low:
            after = middle + 1
        else:
            last = middle
    joins_left = after > 0 and holes[1, after - 1] == low
    joins_right = after < known and holes[0, after] == high
    if joins_left and joins_right:
        holes[1, after - 1] = holes[1, after]
        return _close(holes, known, after)
    if joins_left:
        holes[1, after - 1] = high
        return known
    if joins_right:
        holes[0, after] = low
        return known
    for index in range(known, after, -1):
        holes[0, index], holes[1, index] = holes[0, index - 1], holes[1, index - 1]
    holes[0, after], holes[1, after] = low, high
    return known + 1
