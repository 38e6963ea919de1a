"""Modified real-time admission: a search over orders that turns back when some job could no longer keep its promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.admission import vector_search
from gridsim.policy.admission.heuristics import EarliestDeadlineAndStart
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.vector_search import VectorSearch
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer
from gridsim.profile.blocks import earliest_from, release, reserve
from gridsim.profile.compiled import compiled, phase
from gridsim.profile.waiting import comes_before

__all__ = ["MRT"]


@dataclass
class MRT:
    """Modified real-time: all waiting jobs are placed anew, depth first, with at most *backtracks* changes of mind.

    Parameters
    ----------
    heuristic : Ordering
        Which job is placed next: ``llf``, ``edf``, ``fifo`` or any other ordering, or ``edf+est``.
    backtracks : int
        How many placements may be undone.
    window : int, optional
        How many of the jobs still to place, in the order of the heuristic, must be able to keep their promises after
        each placement; all where left out.
    hole_filling : bool
        Whether a job may be placed where its cores are taken again later; without, the original real-time algorithm.

    Notes
    -----
    The exact rules are in section 5.2 of the project's specification of deadline admission.
    """

    name: ClassVar[str] = "mrt"
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 2; Ramamritham, Stankovic, Shiah 1990"
    heuristic: Any = field(default_factory=LeastLaxity)
    backtracks: int = 10
    window: int | None = None
    hole_filling: bool = True

    def __post_init__(self) -> None:
        if self.backtracks < 0:
            raise ValueError(f"backtracks is {self.backtracks}; a limit from 0 is needed")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window is {self.window}; at least 1 job is needed")

    @property
    def left_shifted(self) -> bool:
        """Whether every job of a plan is at its earliest place."""
        return self.hole_filling

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        search = plan.search(request, deadline, now)
        dynamic = isinstance(self.heuristic, EarliestDeadlineAndStart)
        weight = self.heuristic.weight if dynamic else 0.0
        keys = plan.promised(search).deadline if dynamic else plan.ranks(self.heuristic, search, now)
        window = len(search.rows) if self.window is None else self.window
        if isinstance(search, VectorSearch):
            plan_of_all = vector_search.depth_first(search, keys, self.backtracks, window, self.hole_filling, weight)
            return None if plan_of_all is None else search.offer(plan_of_all)
        found, starts = depth_first(tuple(search), keys, self.backtracks, window, self.hole_filling, weight)
        return search.offer(starts) if found else None


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
