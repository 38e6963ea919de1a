"""Modified real-time admission: a search over orders that turns back when some job could no longer keep its promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER
from gridsim.policy.admission.heuristics import EarliestDeadlineAndStart
from gridsim.policy.admission.plan import Plan
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer
from gridsim.profile.compiled import compiled
from gridsim.profile.kernels import change, earliest_from

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
        found, starts = depth_first(
            search.times,
            search.free,
            search.size,
            search.rows,
            search.cores,
            search.estimate,
            search.due,
            keys,
            self.backtracks,
            len(search.rows) if self.window is None else self.window,
            self.hole_filling,
            weight,
        )
        return search.offer(starts) if found else None


@compiled
def _sort(order, count, keys, rows):  # type: ignore[no-untyped-def]
    """Order the first *count* jobs by key, then row; they are nearly sorted."""
    for i in range(1, count):
        job = order[i]
        k = i
        while k > 0:
            before = order[k - 1]
            if keys[before] < keys[job] or (keys[before] == keys[job] and rows[before] < rows[job]):
                break
            order[k] = before
            k -= 1
        order[k] = job


@compiled
def _open(  # type: ignore[no-untyped-def]
    times, free, size, rows, cores, estimate, due, keys, weight, sorting, earliest, order, count, window, hole_filling
):
    """Enter a vertex: whether each job of the window could still be placed in time, alone.

    Brings the earliest starts of these jobs up to date, which placing others only makes later. With a *weight* the
    order depends on those of all jobs.
    """
    checked = min(count, window)
    if weight:
        for i in range(count):
            job = order[i]
            duration = estimate[job] if hole_filling else NEVER
            earliest[job] = earliest_from(times, free, size, cores[job], duration, earliest[job])
            sorting[job] = keys[job] + weight * (earliest[job] / MICROSECOND)
        _sort(order, count, sorting, rows)
    for i in range(checked):
        job = order[i]
        duration = estimate[job] if hole_filling else NEVER
        earliest[job] = earliest_from(times, free, size, cores[job], duration, earliest[job])
        if earliest[job] + estimate[job] > due[job]:
            return False
    return True


@compiled
def depth_first(  # type: ignore[no-untyped-def]
    times, free, size, rows, cores, estimate, due, keys, limit, window, hole_filling, weight
):
    """Search for a plan of all jobs; whether there is one, and its starts.

    A vertex of the search is a partial schedule: ``order[depth]`` are the jobs left by the heuristic, and
    ``earliest[depth]`` are their earliest starts, or bounds of them from vertices before. *keys* are those of the
    heuristic, s; *weight* times the earliest start comes on top.
    """
    n = rows.shape[0]
    order = np.empty((n + 1, n), dtype=np.int32)
    earliest = np.empty((n + 1, n), dtype=np.int64)
    following = np.zeros(n + 1, dtype=np.int64)
    placed = np.empty(n + 1, dtype=np.int64)
    starts = np.empty(n, dtype=np.int64)
    sorting = keys.copy()
    order[0] = np.arange(n)
    earliest[0] = times[0]
    _sort(order[0], n, keys, rows)
    depth, backtracks = 0, 0
    if not _open(
        times,
        free,
        size,
        rows,
        cores,
        estimate,
        due,
        keys,
        weight,
        sorting,
        earliest[0],
        order[0],
        n,
        window,
        hole_filling,
    ):
        return False, starts
    while depth < n:
        left = n - depth
        if following[depth] == left:  # no other job to go on with: back to the vertex before
            depth -= 1
            backtracks += 1
            if depth < 0 or backtracks > limit:
                return False, starts
            job = placed[depth]
            size = change(times, free, size, starts[job], starts[job] + estimate[job], cores[job])
            continue
        choice = following[depth]
        following[depth] += 1
        job = order[depth, choice]
        duration = estimate[job] if hole_filling else NEVER
        start = earliest_from(times, free, size, cores[job], duration, earliest[depth, job])
        if start + estimate[job] <= due[job]:
            size = change(times, free, size, start, start + estimate[job], -cores[job])
            for i in range(left - 1):
                other = order[depth, i if i < choice else i + 1]
                order[depth + 1, i] = other
                earliest[depth + 1, other] = earliest[depth, other]
            if _open(
                times,
                free,
                size,
                rows,
                cores,
                estimate,
                due,
                keys,
                weight,
                sorting,
                earliest[depth + 1],
                order[depth + 1],
                left - 1,
                window,
                hole_filling,
            ):
                placed[depth], starts[job] = job, start
                depth += 1
                following[depth] = 0
                continue
            size = change(times, free, size, start, start + estimate[job], cores[job])
        backtracks += 1
        if backtracks > limit:
            return False, starts
    return True, starts
