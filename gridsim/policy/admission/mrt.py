"""Modified real-time admission: a search over orders that turns back when some job could no longer keep its promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import dynamic, vector_search
from gridsim.policy.admission.heuristics import EarliestDeadlineAndStart
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.vector_search import VectorSearch
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer
from gridsim.profile.blocks import earliest, latest, lowest, release, reserve, short_within
from gridsim.profile.compiled import compiled, lean, phase

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
        dynamic_order = isinstance(self.heuristic, EarliestDeadlineAndStart)
        weight = self.heuristic.weight if dynamic_order else 0.0
        keys = plan.promised(search).deadline if dynamic_order else plan.ranks(self.heuristic, search, now)
        window = len(search.rows) if self.window is None else self.window
        if isinstance(search, VectorSearch):
            plan_of_all = vector_search.depth_first(search, keys, self.backtracks, window, self.hole_filling, weight)
            return None if plan_of_all is None else search.offer(plan_of_all)
        if dynamic_order:
            how = (self.backtracks, window, self.hole_filling, weight)
            found, starts = dynamic.depth_first(tuple(search), keys, *how)
        else:
            order = plan.requests.in_order(search.rows, keys)
            found, starts = depth_first(tuple(search), order, self.backtracks, window, self.hole_filling)
        return search.offer(starts) if found else None


class Left(NamedTuple):
    """The jobs that have not been placed, and why each of them still can be.

    Attributes
    ----------
    after, before : (n + 1,) int64
        The jobs left in the order of the heuristic, as a list; n stands for both of its ends.
    witness : (n,) int64
        An instant at which each could start and keep its promise, if it were the only one left: the latest that there
        was when it was looked for, which what is placed later seldom touches.
    known : (n,) int64
        Beside how many of those placed that has been found out; -1 for a job without a witness.
    duration : (n,) int64
        How long its cores must be free.
    """

    after: IntArray
    before: IntArray
    witness: IntArray
    known: IntArray
    duration: IntArray


@compiled
def depth_first(search, order, limit, window, hole_filling):  # type: ignore[no-untyped-def]
    """Search for a plan of all jobs; whether there is one, and its starts. *search* is a `Search` as a plain tuple.

    A vertex of the search is a partial schedule: ``placed[:depth]``, and the jobs left in *order*. Where all must be
    able to keep their promises, nothing but the place of the last job can have changed that, and only for those whose
    witness it overlaps.
    """
    _, cores, estimate, due, _, _, times, free, size, _ = search
    n = order.shape[0]
    jobs = cores, estimate, due
    left = _all_left(order, estimate, hole_filling)
    placed, starts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    depth, backtracks = 0, 0
    if not _open(times, free, size, jobs, left, window, (0, 0, 0)):
        return False, starts
    job = left.after[n]
    while depth < n:
        if job == n:  # no other job to go on with: back to the vertex before
            depth -= 1
            backtracks += 1
            if depth < 0 or backtracks > limit:
                return False, starts
            job = placed[depth]
            size = release(times, free, size, starts[job], starts[job] + estimate[job], cores[job])
            _put_back(left, job, depth)
            job = left.after[job]
            continue
        start = earliest(times, free, size, cores[job], left.duration[job])
        end = start + estimate[job]
        if end <= due[job]:
            size = reserve(times, free, size, start, end, cores[job])
            _take(left, job)
            if _open(times, free, size, jobs, left, window, (depth + 1, start, end)):
                placed[depth], starts[job] = job, start
                depth += 1
                job = left.after[n]
                continue
            size = release(times, free, size, start, end, cores[job])
            _put_back(left, job, depth)
        backtracks += 1
        if backtracks > limit:
            return False, starts
        job = left.after[job]
    return True, starts


@compiled
def _all_left(order, estimate, hole_filling):  # type: ignore[no-untyped-def]
    n = order.shape[0]
    after, before = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    last = n
    for job in order:
        after[last], before[job] = job, last
        last = job
    after[last], before[n] = n, last
    duration = estimate if hole_filling else np.full(n, NEVER)
    return Left(after, before, np.zeros(n, dtype=np.int64), np.full(n, -1), duration)


@phase
def _take(left, job):  # type: ignore[no-untyped-def]
    """Let a job be left no more."""
    left.after[left.before[job]] = left.after[job]
    left.before[left.after[job]] = left.before[job]


@phase
def _put_back(left, job, depth):  # type: ignore[no-untyped-def]
    """Let the last one that was taken be left again, at its place; what was found out beside it is forgotten."""
    left.after[left.before[job]] = job
    left.before[left.after[job]] = job
    for other in range(left.known.shape[0]):
        left.known[other] = min(left.known[other], depth)


@lean
def _open(times, free, size, jobs, left, window, last):  # type: ignore[no-untyped-def]
    """Enter a vertex: whether each job of the window could still be placed in time, alone.

    *last* is how many are placed, and from when to when the last one is.
    """
    cores, estimate, due = jobs
    depth, start, end = last
    low = lowest(times, free, size, start, end)
    job, seen = left.after[cores.shape[0]], 0
    while job < cores.shape[0] and seen < window:
        at, until = left.witness[job], left.witness[job] + left.duration[job]
        if left.known[job] == depth - 1 and depth:
            lost = at < end and until > start and cores[job] > low
            lost = lost and short_within(times, free, size, cores[job], max(at, start), min(until, end))
        else:
            lost = left.known[job] < 0 or short_within(times, free, size, cores[job], at, until)
        if lost:
            at = latest(times, free, size, cores[job], left.duration[job], due[job] - estimate[job])
            if at < 0:
                left.known[job] = -1
                return False
            left.witness[job] = at
        left.known[job] = depth
        job = left.after[job]
        seen += 1
    return True
