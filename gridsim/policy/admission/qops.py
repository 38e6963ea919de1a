"""QoPS: the new job among the last jobs of the plan; late jobs move halfway forward, a limited number of times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.machine.njit import njit, njit_noalloc
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.trial import PRICES, TIE, Price, keep_first, place_all, plan_cost, save, take_off
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer


@dataclass
class QoPS:
    """QoPS: reschedules the last jobs of the plan and the new one by a heuristic, with at most *k_factor* repairs.

    Parameters
    ----------
    k_factor : int
        Maximum number of missed deadlines that are repaired in a slot.
    heuristic : Ordering
        Order in which the last jobs are placed again: ``llf``, ``edf``, ``fifo`` or any other ordering.
    slots : {"first-feasible", "first-slot-only", "best"}
        Slots define how many of the planned jobs move: all, half of them, a quarter, …, none. The first feasible slot
        is used; or the first slot only, as in the literal pseudo-code of the paper, which rejects the job if it fails;
        or the cheapest feasible slot.
    insertion : {"first", "sorted"}
        Place of the new job in all slots except the first: before the other jobs (the papers' prose), or sorted in
        (the pseudo-code of 2004).
    append_slot : bool
        Whether the last slot moves no job.
    price : {"slack", "wait", "work_wait", "slowdown", "disturbance"}
        Price for ``slots=best``.

    Notes
    -----
    The exact rules are in section 5.3 of the project's specification of deadline admission.
    """

    name: ClassVar[str] = "qops"
    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 3"
    k_factor: int = 5
    heuristic: Any = field(default_factory=LeastLaxity)
    slots: Literal["first-feasible", "first-slot-only", "best"] = "first-feasible"
    insertion: Literal["first", "sorted"] = "first"
    append_slot: bool = True
    price: Price = "slack"

    def __post_init__(self) -> None:
        if self.k_factor < 0:
            raise ValueError(f"k_factor is {self.k_factor}; a number of repairs from 0 is needed")

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        search = plan.search(request, deadline, now)
        order = plan.requests.in_order(search.rows, plan.ranks(self.heuristic, search, now))
        only_first, new_first = self.slots == "first-slot-only", self.insertion == "first"
        by = PRICES.index(self.price) if self.slots == "best" else -1
        how = self.k_factor, only_first, new_first, self.append_slot, by
        offer: Offer | None = search.run(by_slots, order, *how)
        return offer


@njit
def by_slots(trial, order, k_factor, only_first, new_first, append, price):  # type: ignore[no-untyped-def]
    """Find a plan with the last job; return its price, 0 if prices do not matter, infinite for no plan.

    The jobs placed in a slot form a stack, so that a repair removes the last ones.
    """
    new = order.shape[0] - 1
    following, stack = np.empty(new + 1, dtype=np.int64), np.empty(new + 1, dtype=np.int64)
    left = np.empty(new + 1, dtype=np.bool_)
    best, tail = np.inf, new
    while True:
        staying = new - tail
        keep_first(trial, staying)
        first = new if new_first and staying else -1
        height, works = 0, False
        for _ in range(k_factor + 1):
            count = _write_following(order, staying, first, stack[:height], left, following)
            laid = place_all(trial, following[:count], False, -1, np.inf)
            stack[height : height + laid] = following[:laid]
            height += laid
            works = laid == count
            if works or height == 0:
                break
            first = following[laid]
            # Jobs that keep their starts count for the height of the stack; half of the jobs above are removed.
            middle = (2 * staying + height) // 2 - staying
            take_off(trial, stack[middle:height])
            height = middle
        if works:
            cost = 0.0
            if price >= 0:
                own = trial.planned, trial.cores, trial.estimate, trial.due, trial.submit
                cost = plan_cost(price, trial.starts, own[0], own[1], own[2], own[3], own[4])
            if cost < best * TIE:
                best = cost
                save(trial)
        if only_first or tail == 0 or (tail == 1 and not append) or (price < 0 and best < np.inf):
            return best
        tail //= 2


@njit_noalloc
def _write_following(order, staying, first, stack, left, following):  # type: ignore[no-untyped-def]
    """Write the jobs to be placed: *first* (-1 for none), then all in *order* that do not stay and are not placed."""
    for job in range(left.shape[0]):
        left[job] = job >= staying
    for job in stack:
        left[job] = False
    count = 0
    if first >= 0:
        left[first], following[0], count = False, first, 1
    for job in order:
        if left[job]:
            following[count] = job
            count += 1
    return count
