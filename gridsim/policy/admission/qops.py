"""QoPS: the new job among the last jobs of the plan; who then comes too late moves halfway forward, a few times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.policy.admission import vector_search
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.price import PRICES, Price, term
from gridsim.policy.admission.vector_search import VectorSearch
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.protocols import Offer
from gridsim.profile.blocks import earliest, release, reserve
from gridsim.profile.compiled import compiled

__all__ = ["QoPS"]


@dataclass
class QoPS:
    """QoPS: the last jobs of the plan and the new one are placed anew by a heuristic, with at most *k_factor* repairs.

    Parameters
    ----------
    k_factor : int
        How many broken promises a slot may repair.
    heuristic : Ordering
        Order in which the last jobs are placed again: ``llf``, ``edf``, ``fifo`` or any other ordering.
    slots : {"first-feasible", "first-slot-only", "best"}
        How many of the planned jobs move: all, half of them, a quarter, …, none. The first slot that works; the literal
        pseudo-code of the paper, where the job is refused when the first slot fails; or the cheapest that works.
    insertion : {"first", "sorted"}
        Where the new job comes in all slots but the first: before the others (the papers' prose), or sorted in (the
        pseudo-code of 2004).
    append_slot : bool
        Whether the slots end with the one that moves nobody.
    price : {"slack", "wait", "work_wait", "slowdown", "disturbance"}
        What ``slots=best`` compares by.

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
        if isinstance(search, VectorSearch):
            how: Any = {"only_first": only_first, "new_first": new_first, "append": self.append_slot, "price": by}
            found = vector_search.by_slots(search, order, self.k_factor, **how)
            return None if found is None else search.offer(found)
        price, starts = by_slots(tuple(search), order, self.k_factor, only_first, new_first, self.append_slot, by)
        return None if price == np.inf else search.offer(starts, price)


@compiled
def by_slots(search, order, k_factor, only_first, new_first, append, price):  # type: ignore[no-untyped-def]
    """A plan with the last job: its price (0 where prices do not matter, infinite for no plan) and its starts.

    The slots share the profile of the jobs that stay. Who waits to be placed is marked by its place in *order*; what
    has been placed is a stack, so that a repair takes the last ones off again.
    """
    _, cores, estimate, due, submit, planned, times, free, size, _ = search
    new = cores.shape[0] - 1
    place_of = np.empty(new + 1, dtype=np.int64)
    for place in range(new + 1):
        place_of[order[place]] = place
    to_place = np.zeros(new + 1, dtype=np.bool_)
    stack, starts = np.empty(new + 1, dtype=np.int64), np.empty(new + 1, dtype=np.int64)
    found = np.empty(new + 1, dtype=np.int64)
    later, later_free = np.empty_like(times), np.empty_like(free)
    best = np.inf
    kept, tail = 0, new
    while True:
        staying = new - tail
        while kept < staying:
            stack[kept], starts[kept] = kept, planned[kept]
            size = reserve(times, free, size, planned[kept], planned[kept] + estimate[kept], cores[kept])
            kept += 1
        later[:size], later_free[:size] = times[:size], free[:size]
        later_size, height, left, lowest, violations, works = size, staying, tail, 0, 0, True
        to_place[:] = False
        for job in range(staying, new):
            to_place[place_of[job]] = True
        first = new if new_first and staying else -1
        if first < 0:
            to_place[place_of[new]] = True
            left += 1
        while left or first >= 0:
            if first >= 0:
                job, first = first, -1
            else:
                while not to_place[lowest]:
                    lowest += 1
                job = order[lowest]
                to_place[lowest] = False
                left -= 1
            start = earliest(later, later_free, later_size, cores[job], estimate[job])
            if start + estimate[job] <= due[job]:
                stack[height], starts[job] = job, start
                height += 1
                later_size = reserve(later, later_free, later_size, start, start + estimate[job], cores[job])
                continue
            violations += 1
            if violations > k_factor or height == staying:
                works = False
                break
            middle = (staying + height) // 2
            while height > middle:
                height -= 1
                moved = stack[height]
                begin = starts[moved]
                later_size = release(later, later_free, later_size, begin, begin + estimate[moved], cores[moved])
                to_place[place_of[moved]] = True
                lowest = min(lowest, place_of[moved])
                left += 1
            first = job
        if works:
            if price < 0:
                return 0.0, starts
            cost = 0.0
            for job in range(new + 1):
                cost += term(price, starts[job], planned[job], cores[job], estimate[job], due[job], submit[job])
            if cost < best * (1 - 1e-9):
                best = cost
                found[:] = starts
        if only_first or tail == 0 or (tail == 1 and not append):
            return best, found
        tail //= 2
