"""Modified real-time admission by an order that placing a job changes: by deadlines and earliest starts together."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.profile.blocks import earliest_from, release, reserve
from gridsim.profile.compiled import compiled, phase
from gridsim.profile.waiting import comes_before

__all__ = ["depth_first"]


@compiled
def _sort(order, count, keys, jobs):  # type: ignore[no-untyped-def]
    """Order the first *count* jobs by key, then job order; they are nearly sorted."""
    for i in range(1, count):
        job = order[i]
        k = i
        while k > 0:
            other = order[k - 1]
            if keys[other] < keys[job]:
                break
            if keys[other] == keys[job] and comes_before(jobs.ties, jobs.rows[other], jobs.rows[job]):
                break
            order[k] = other
            k -= 1
        order[k] = job


class Jobs(NamedTuple):
    """What is the same at all vertices of a search: the jobs, their keys, and how they are looked at.

    Attributes
    ----------
    rows, cores, estimate, due, ties : arrays of int64
        As `Search` has them.
    keys, sorting : (n,) float64
        What the heuristic says of each; the same with what the earliest start adds.
    window, hole_filling, weight
        See `MRT` and `EarliestDeadlineAndStart`.
    """

    rows: IntArray
    cores: IntArray
    estimate: IntArray
    due: IntArray
    ties: IntArray
    keys: FloatArray
    sorting: FloatArray
    window: int
    hole_filling: bool
    weight: float


@compiled
def _open(times, free, size, jobs, earliest, order, count):  # type: ignore[no-untyped-def]
    """Enter a vertex: whether each job of the window could still be placed in time, alone.

    Brings the earliest starts of these jobs up to date, which placing others only makes later. With a weight the order
    depends on those of all jobs.
    """
    if jobs.weight:
        for job in order[:count]:
            earliest[job] = _earliest(times, free, size, jobs, job, earliest[job])
            jobs.sorting[job] = jobs.keys[job] + jobs.weight * (earliest[job] / MICROSECOND)
        _sort(order, count, jobs.sorting, jobs)
    for job in order[: min(count, jobs.window)]:
        earliest[job] = _earliest(times, free, size, jobs, job, earliest[job])
        if earliest[job] + jobs.estimate[job] > jobs.due[job]:
            return False
    return True


@phase
def _earliest(times, free, size, jobs, job, bound):  # type: ignore[no-untyped-def]
    """Earliest place of a job from a bound on; without hole filling one after which its cores stay free."""
    duration = jobs.estimate[job] if jobs.hole_filling else NEVER
    return earliest_from(times, free, size, jobs.cores[job], duration, bound)


@compiled
def depth_first(search, keys, limit, window, hole_filling, weight):  # type: ignore[no-untyped-def]
    """Search for a plan of all jobs; whether there is one, and its starts. *search* is a `Search` as a plain tuple.

    A vertex of the search is a partial schedule: ``order[depth]`` are the jobs left by the heuristic, and
    ``earliest[depth]`` are their earliest starts, or bounds of them from vertices before. *keys* are those of the
    heuristic, s; *weight* times the earliest start comes on top.
    """
    rows, cores, estimate, due, _, _, times, free, size, ties = search
    jobs = Jobs(rows, cores, estimate, due, ties, keys, keys.copy(), window, hole_filling, weight)
    n = rows.shape[0]
    order = np.empty((n + 1, n), dtype=np.int32)
    earliest = np.empty((n + 1, n), dtype=np.int64)
    following = np.zeros(n + 1, dtype=np.int64)
    placed = np.empty(n + 1, dtype=np.int64)
    starts = np.empty(n, dtype=np.int64)
    order[0] = np.arange(n)
    earliest[0] = times[0]
    _sort(order[0], n, keys, jobs)
    depth, backtracks = 0, 0
    if not _open(times, free, size, jobs, earliest[0], order[0], n):
        return False, starts
    while depth < n:
        left = n - depth
        if following[depth] == left:  # no other job to go on with: back to the vertex before
            depth -= 1
            backtracks += 1
            if depth < 0 or backtracks > limit:
                return False, starts
            job = placed[depth]
            size = release(times, free, size, starts[job], starts[job] + estimate[job], cores[job])
            continue
        choice = following[depth]
        following[depth] += 1
        job = order[depth, choice]
        start = _earliest(times, free, size, jobs, job, earliest[depth, job])
        if start + estimate[job] <= due[job]:
            size = reserve(times, free, size, start, start + estimate[job], cores[job])
            _leave_out(choice, order[depth, :left], order[depth + 1], earliest[depth], earliest[depth + 1])
            if _open(times, free, size, jobs, earliest[depth + 1], order[depth + 1], left - 1):
                placed[depth], starts[job] = job, start
                depth += 1
                following[depth] = 0
                continue
            size = release(times, free, size, start, start + estimate[job], cores[job])
        backtracks += 1
        if backtracks > limit:
            return False, starts
    return True, starts


@phase
def _leave_out(choice, order, order_below, earliest, earliest_below):  # type: ignore[no-untyped-def]
    """Hand the jobs left on to the vertex below, all but the one at a place of the order."""
    for i in range(order.shape[0] - 1):
        other = order[i if i < choice else i + 1]
        order_below[i] = other
        earliest_below[other] = earliest[other]
