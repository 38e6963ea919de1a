"""Modified real-time admission: a search over orders that backtracks when a job could no longer keep its deadline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gridsim.errors import PolicyError
from gridsim.machine.njit import njit
from gridsim.machine.queue_order import sort_places
from gridsim.model.time import MICROSECOND, NEVER, FloatArray
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.trial import advance_start, all_in_time, keep_first, place_all, save, take_off
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer
from gridsim.policy.queue import Queue


@dataclass
class EarliestDeadlineAndStart:
    """Smallest sum of deadline and *weight* times the earliest start in the partial schedule, for ``mrt``.

    Parameters
    ----------
    weight : float
        Weight of the earliest start.
    """

    name: ClassVar[str] = "edf+est"
    source: ClassVar[str] = "Ramamritham, Stankovic, Shiah 1990"
    weight: float = 1.0

    def rank(self, queue: Queue, now: float) -> FloatArray:
        raise PolicyError(
            "the heuristic edf+est needs earliest start times in a partial schedule: mrt?heuristic=edf+est"
        )


@dataclass
class MRT:
    """Modified real-time: reschedules all waiting jobs, depth first, with at most *backtracks* backtracking steps.

    Parameters
    ----------
    heuristic : Ordering
        Order of placement: ``llf``, ``edf``, ``fifo`` or any other ordering, or ``edf+est``.
    backtracks : int
        Maximum number of placements that may be undone.
    window : int, optional
        Number of the remaining jobs, in the order of the heuristic, that must be able to keep their deadlines after
        each placement; all if omitted.
    hole_filling : bool
        Whether a job may be placed if its cores are reserved again later; without it, the original real-time
        algorithm.

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
        """True if every job of a plan has its earliest start."""
        return self.hole_filling

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        search = plan.search(request, deadline, now)
        re_ranks, weight = isinstance(self.heuristic, EarliestDeadlineAndStart), 0.0
        if isinstance(self.heuristic, EarliestDeadlineAndStart):
            weight, keys = self.heuristic.weight, plan.promised(search).deadline
        else:
            keys = plan.ranks(self.heuristic, search, now)
        order = plan.requests.in_order(search.rows, keys)
        window = len(search.rows) if self.window is None else self.window
        how = self.backtracks, window, not self.hole_filling, re_ranks, weight
        offer: Offer | None = search.run(depth_first, order, keys, *how)
        return offer


@njit
def depth_first(trial, order, keys, limit, window, lasting, re_ranks, weight):  # type: ignore[no-untyped-def]
    """Search for a plan of all jobs; return 0 if there is one, else infinity.

    A vertex of the search is a partial schedule: ``order[:depth]`` are placed in this order, ``order[depth:]`` remain,
    sorted by the heuristic; ``index[depth]`` is the index of the job placed at a vertex among the remaining ones. If
    the heuristic *re_ranks* at each vertex, *weight* times the earliest start is added to *keys*, s.
    """
    n = order.shape[0]
    index = np.empty(n, dtype=np.int64)
    depth, backtracks, start, end = 0, 0, 0, 0
    keep_first(trial, 0)
    if re_ranks:
        start, end = -NEVER, NEVER
    while True:
        left = order[depth:]
        if re_ranks:
            advance_start(trial, left, lasting, start, end)
            sort_places(left, keys + weight * (trial.earliest / MICROSECOND), False, trial.rows, trial.ties)
            looked_at = left[:window]
            works = not np.any(trial.earliest[looked_at] + trial.estimate[looked_at] > trial.due[looked_at])
        else:
            works = all_in_time(trial, left[:window], lasting, depth, start, end)
        if works and depth == n:
            save(trial)
            return 0.0
        at = depth
        while True:
            if not works or at == n:  # back to the previous vertex
                if depth == 0:
                    return np.inf
                depth -= 1
                works, job, at = True, order[depth], index[depth]
                take_off(trial, order[depth : depth + 1])
                if re_ranks:
                    left = order[depth:]
                    trial.earliest[left] = trial.now
                    advance_start(trial, left, lasting, -NEVER, NEVER)
                    sort_places(left, keys + weight * (trial.earliest / MICROSECOND), False, trial.rows, trial.ties)
                    at = depth
                    while order[at] != job:
                        at += 1
                else:
                    for k in range(depth, at):
                        order[k] = order[k + 1]
                    order[at] = job
                    known = trial.known[1]
                    known[:] = np.minimum(known, depth)
            elif place_all(trial, order[at : at + 1], lasting, -1, np.inf):
                job, index[depth] = order[at], at
                start = trial.starts[job]
                end = start + trial.estimate[job]
                for k in range(at, depth, -1):
                    order[k] = order[k - 1]
                order[depth] = job
                depth += 1
                break
            backtracks += 1
            if backtracks > limit:
                return np.inf
            at += 1
