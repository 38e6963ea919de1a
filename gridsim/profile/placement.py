"""Which cores a job would hold, for drawing: a schedule says when and how many, a picture also needs where.

Schedulers never ask this room; cores are interchangeable to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.profile.compiled import compiled

__all__ = ["Placement", "place"]


class Placement(NamedTuple):
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
        """Numbers of the cores that the job in *row* holds, ascending."""
        pieces = range(int(self.offset[row]), int(self.offset[row + 1]))
        held = [np.arange(self.low[piece], self.low[piece] + self.size[piece], dtype=np.int64) for piece in pieces]
        return np.sort(np.concatenate(held)) if held else np.zeros(0, dtype=np.int64)


def place(start: IntArray, end: IntArray, width: IntArray, cores: int, *, job: IntArray | None = None) -> Placement:
    """Cores that each job of a schedule would hold, were they handed out in order of start.

    A job takes the lowest cores of the first contiguous hole that is wide enough, else the widest hole there is and
    so on for the rest: as few pieces as possible. Jobs hold their cores over ``[start, end)``, so ends come before
    starts of the same instant; jobs that did not run, or ran for no time, hold none.

    Parameters
    ----------
    start, end : (n,) int64
        Whole microseconds; `NEVER` for jobs that did not run.
    width : (n,) int64
        Cores of each job.
    cores : int
        Cores of the machine.
    job : (n,) int64, optional
        Numbers by which an error names jobs; 1, 2, … where left out.

    Raises
    ------
    InputError
        When the schedule needs more cores than the machine has, naming the job and the time.

    Examples
    --------
    >>> place(np.array([0, 5]), np.array([9, 8]), np.array([1, 2]), 4).low.tolist()
    [0, 1]
    """
    held = np.flatnonzero((start < NEVER) & (end > start))
    starts = held[np.argsort(start[held], kind="stable")]
    ends = held[np.argsort(end[held], kind="stable")]
    first, count, low, size, failed, free = _place(start, end, width, starts, ends, cores)
    if failed >= 0:
        raise InputError(
            f"job {failed + 1 if job is None else job[failed]} starts at {start[failed] / MICROSECOND:g} s and needs "
            f"{width[failed]} of {free} free cores; the machine has {cores}"
        )
    offset = np.concatenate(([0], np.cumsum(count)))
    pieces = np.arange(offset[-1]) + np.repeat(first - offset[:-1], count)
    return Placement(offset, low[pieces], size[pieces])


@compiled
def _place(start: Any, end: Any, width: Any, starts: Any, ends: Any, machine: int) -> Any:
    """Sweep starts and ends over a sorted list of holes; -1 or the job that did not fit, and the cores free then."""
    n = len(start)
    first = np.full(n, -1, dtype=np.int64)
    count = np.zeros(n, dtype=np.int64)
    low = np.empty(2 * len(starts) + 16, dtype=np.int32)
    size = np.empty(2 * len(starts) + 16, dtype=np.int32)
    hole_low = np.empty(machine + 2, dtype=np.int64)
    hole_high = np.empty(machine + 2, dtype=np.int64)
    hole_low[0], hole_high[0] = 0, machine
    holes, free, used, next_end = 1, machine, 0, 0
    for job in starts:
        while next_end < len(ends) and end[ends[next_end]] <= start[job]:
            gone = ends[next_end]
            for piece in range(first[gone], first[gone] + count[gone]):
                holes = _give_back(hole_low, hole_high, holes, low[piece], int(low[piece]) + int(size[piece]))
            free += width[gone]
            next_end += 1
        need = width[job]
        if need > free:
            return first, count, low, size, job, free
        free -= need
        first[job] = used
        while need > 0:
            hole = _wide_enough(hole_low, hole_high, holes, need)
            if used == len(low):
                low, size = _doubled(low), _doubled(size)
            taken = min(need, hole_high[hole] - hole_low[hole])
            low[used], size[used] = hole_low[hole], taken
            used += 1
            need -= taken
            hole_low[hole] += taken
            if hole_low[hole] == hole_high[hole]:
                holes = _close(hole_low, hole_high, holes, hole)
        count[job] = used - first[job]
    return first, count, low, size, -1, 0


@compiled
def _wide_enough(hole_low: Any, hole_high: Any, holes: int, need: int) -> int:
    """First hole of at least *need* cores, else the widest, the first of equals."""
    widest, width = 0, 0
    for hole in range(holes):
        size = hole_high[hole] - hole_low[hole]
        if size >= need:
            return hole
        if size > width:
            widest, width = hole, size
    return widest


@compiled
def _close(hole_low: Any, hole_high: Any, holes: int, hole: int) -> int:
    for index in range(hole, holes - 1):
        hole_low[index], hole_high[index] = hole_low[index + 1], hole_high[index + 1]
    return holes - 1


@compiled
def _give_back(hole_low: Any, hole_high: Any, holes: int, low: int, high: int) -> int:
    """Add ``[low, high)`` to the holes, joined with its neighbours where they touch; the new number of holes."""
    after, last = 0, holes
    while after < last:
        middle = (after + last) // 2
        if hole_low[middle] < low:
            after = middle + 1
        else:
            last = middle
    joins_left = after > 0 and hole_high[after - 1] == low
    joins_right = after < holes and hole_low[after] == high
    if joins_left and joins_right:
        hole_high[after - 1] = hole_high[after]
        return int(_close(hole_low, hole_high, holes, after))
    if joins_left:
        hole_high[after - 1] = high
        return holes
    if joins_right:
        hole_low[after] = low
        return holes
    for index in range(holes, after, -1):
        hole_low[index], hole_high[index] = hole_low[index - 1], hole_high[index - 1]
    hole_low[after], hole_high[after] = low, high
    return holes + 1


@compiled
def _doubled(column: Any) -> Any:
    longer = np.empty(2 * len(column), dtype=column.dtype)
    longer[: len(column)] = column
    return longer
