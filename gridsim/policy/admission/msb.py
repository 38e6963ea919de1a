"""Modified slack-based admission: tries the new job at every place of the order and uses the cheapest valid plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gridsim.errors import PolicyError
from gridsim.machine.njit import njit
from gridsim.model.time import FloatArray
from gridsim.policy.admission import trial as trials
from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Offer
from gridsim.policy.queue import Promised, Queue


@dataclass
class AscendingScheduledTime:
    """By planned start, for ``msb``: jobs before the new one keep their starts."""

    name: ClassVar[str] = "ast"
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 1"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        if not isinstance(queue, Promised):
            raise PolicyError("the order ast needs planned start times, which only a plan has: msb?order=ast")
        return queue.planned


@dataclass
class MSB:
    """Modified slack-based: tries the new job at each position among the others; uses the cheapest valid plan.

    Parameters
    ----------
    price : {"slack", "wait", "work_wait", "slowdown", "disturbance"}
        Price by which plans are compared; the paper does not define its own.
    order : Ordering
        Order of the other jobs: ``ast``, by planned start, in which the jobs before the new one keep their starts; or
        any ordering, with which all jobs are placed again for each place.

    Notes
    -----
    Of equal prices (within 1e-9 of each other) the earliest place is used (spec of the deadline papers, 5.1).
    """

    name: ClassVar[str] = "msb"
    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 1; Talby, Feitelson 1999"
    price: trials.Price = "slack"
    order: Any = field(default_factory=AscendingScheduledTime)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        search = plan.search(request, deadline, now)
        order = plan.requests.in_order(search.rows[:-1], plan.ranks(self.order, search, now)[:-1])
        keeps, price = isinstance(self.order, AscendingScheduledTime), trials.PRICES.index(self.price)
        offer: Offer | None = search.run(cheapest, order, keeps, price)
        return offer


@njit
def cheapest(trial, order, keeps, price):  # type: ignore[no-untyped-def]
    """Find the cheapest plan with the last job at any place of *order*; return its price, infinite if there is none.

    A place is abandoned at the first missed deadline, and once the placed jobs cost as much as the best plan so far.
    If the new job itself is late, it is late at all later places. If the jobs behind it get the starts that they would
    have kept, the places between them that give it the same start have the same plan.
    """
    new = order.shape[0]
    best, spent, alike = np.inf, 0.0, -1
    rest = np.empty(new + 1, dtype=np.int64)
    trials.keep_first(trial, 0)
    for place in range(new + 1):
        left, count = new + 1 - place, 0
        if place > alike or not trial.one_pool:
            rest[0], rest[1:left] = new, order[place:]
            trial.cost[0] = spent
            count = trials.place_all(trial, rest[:1], False, price, best * trials.TIE)
            if trial.state[trials.LATE]:
                break
            if count and (trials.has_moved(trial, new) or place > alike):
                count += trials.place_all(trial, rest[1:left], False, price, best * trials.TIE)
                if count == left:
                    best = trial.cost[0]
                    trials.save(trial)
                alike = place - 1
                if keeps:
                    alike = place + trials.count_unmoved(trial, rest[1:count])
        if place == new or (trial.one_pool and alike == new):
            break
        trials.restore(trial, rest[:count])
        job = order[place]
        if not trials.keep(trial, job, keeps):
            break
        own = trial.planned[job], trial.cores[job], trial.estimate[job], trial.due[job], trial.submit[job]
        spent += trials.term(price, trial.starts[job], own[0], own[1], own[2], own[3], own[4])
    return best
