"""Modified slack-based admission: the new job at every place of the order, the cheapest plan that works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gridsim.policy.admission import vector_search
from gridsim.policy.admission.heuristics import AscendingScheduledTime
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.price import PRICES, Price, term
from gridsim.policy.admission.vector_search import VectorSearch
from gridsim.policy.protocols import Offer
from gridsim.profile.blocks import earliest, reserve
from gridsim.profile.compiled import compiled

__all__ = ["MSB"]


@dataclass
class MSB:
    """Modified slack-based: the new job at every place of the order of the others; the cheapest plan that works.

    Parameters
    ----------
    price : {"slack", "wait", "work_wait", "slowdown", "disturbance"}
        What plans are compared by; the paper does not give its own.
    order : Ordering
        Order of the other jobs: ``ast``, by planned start, in which the jobs before the new one stay where they are; or
        any ordering, by which all are placed anew for each place.

    Notes
    -----
    Equal prices (within 1e-9 of each other) go to the earliest place (spec of the deadline papers, 5.1).
    """

    name: ClassVar[str] = "msb"
    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 1; Talby, Feitelson 1999"
    price: Price = "slack"
    order: Any = field(default_factory=AscendingScheduledTime)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        search = plan.search(request, deadline, now)
        order = plan.requests.in_order(search.rows[:-1], plan.ranks(self.order, search, now)[:-1])
        keep, price = isinstance(self.order, AscendingScheduledTime), PRICES.index(self.price)
        if isinstance(search, VectorSearch):
            found = vector_search.cheapest(search, order, keep, price)
            return None if found is None else search.offer(found)
        cost, starts = cheapest(tuple(search), order, keep, price)
        return None if cost == np.inf else search.offer(starts, cost)


@compiled
def cheapest(search, order, keep, price):  # type: ignore[no-untyped-def]
    """Cheapest plan with the last job at any place of *order*: its price, infinite where there is none, and its starts.

    Each place begins with the profile of the places before and the jobs up to it. A place is given up at the first
    broken promise, and once what has been placed costs as much as the best plan so far. When the new job itself comes
    too late, it does so at all later places. Where the jobs behind it come to lie where they would have stayed, the
    places behind these make the same plan, and are passed over.
    """
    _, cores, estimate, due, submit, planned, times, free, size, _ = search
    new = cores.shape[0] - 1
    best = np.inf
    starts = np.empty(new + 1, dtype=np.int64)
    found = np.empty(new + 1, dtype=np.int64)
    later, later_free = np.empty_like(times), np.empty_like(free)
    spent = 0.0
    place = 0
    while True:
        later[:size], later_free[:size] = times[:size], free[:size]
        later_size, cost, works = size, spent, True
        alike = place
        for i in range(place - 1, new):
            job = order[i] if i >= place else new
            start = earliest(later, later_free, later_size, cores[job], estimate[job])
            if start + estimate[job] > due[job]:
                if job == new:
                    return best, found
                works = False
                break
            cost += term(price, start, planned[job], cores[job], estimate[job], due[job], submit[job])
            if cost >= best * (1 - 1e-9):
                works = False
                break
            if keep and alike == i and start == planned[job]:
                alike += 1
            starts[job] = start
            later_size = reserve(later, later_free, later_size, start, start + estimate[job], cores[job])
        if works:
            best = cost
            found[:] = starts
        if alike == new:
            return best, found
        while place <= alike:
            job = order[place]
            start = planned[job] if keep else earliest(times, free, size, cores[job], estimate[job])
            if start + estimate[job] > due[job]:
                return best, found
            starts[job] = start
            spent += term(price, start, planned[job], cores[job], estimate[job], due[job], submit[job])
            size = reserve(times, free, size, start, start + estimate[job], cores[job])
            place += 1
