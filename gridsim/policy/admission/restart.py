"""Kill-and-restart: a running job makes room for one that could not be taken otherwise, and keeps its own promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gridsim.machine.njit import njit
from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.capabilities import shifts_left
from gridsim.policy.protocols import Offer
from gridsim.policy.queue import Requests


@dataclass
class Restart:
    """Kills one running job, the one with the least work to lose, where that lets both keep their promises.

    Parameters
    ----------
    inner : Admission
        What finds places, for the new job and then for the killed one.
    max_kills : int, optional
        How often a job may be killed; any number of times where left out.

    Notes
    -----
    A victim has begun before now, may be started over, and does not start again at once. Its promise stays; the work
    that it has done is lost (spec of the deadline papers, 7.4).
    """

    name: ClassVar[str] = "restart"
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2004, section 5"
    inner: Any = field(default_factory=QoPS)
    max_kills: int | None = None

    @property
    def left_shifted(self) -> bool:
        """As its inner admission: a kill is followed by a compression of its own."""
        return shifts_left(self.inner)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        offer = offer_of(self.inner, request, deadline, plan, now)
        return self.rescue(request, deadline, plan, now) if offer is None else offer

    def rescue(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        """An offer that kills a job; None where no kill helps."""
        most, may = NEVER if self.max_kills is None else self.max_kills, restartable(plan.requests)
        for victim in victims(now, plan.running(), plan.need, plan.began, plan.granted, plan.kills, may, most).tolist():
            trial = plan.without(victim, now)
            offer = offer_of(self.inner, request, deadline, trial, now)
            if offer is None:
                continue
            trial.take(request, offer._replace(granted=deadline), now)
            again = offer_of(self.inner, victim, int(plan.granted[victim]), trial, now)
            if again is None or again.start <= now:
                continue
            trial.take(victim, again._replace(granted=int(plan.granted[victim])), now)
            return Offer(trial.starts()[request], trial.arrangement(), granted=deadline, kills=(victim,))
        return None


def restartable(requests: Requests) -> npt.NDArray[np.bool_]:
    """Return whether each request may be started over; a copy."""
    may = requests.restartable
    return np.ones(len(requests), dtype=np.bool_) if may is None else np.array(may, dtype=np.bool_)


@njit
def victims(now, running, need, began, granted, kills, may, most):  # type: ignore[no-untyped-def]
    """Return running requests that may be killed now, by the work that they would lose, then by their rows.

    *kills* is how often each was killed, *may* whether it may be, *most* how often at most. A request without a promise
    could keep none.
    """
    found, lost = np.empty(running.shape[0], dtype=np.int64), np.empty(running.shape[0], dtype=np.int64)
    count = 0
    for row in running:
        if began[row] >= now or granted[row] >= NEVER or not may[row] or kills[row] >= most:
            continue
        work, i = need[row] * (now - began[row]), count
        while i > 0 and (lost[i - 1] > work or (lost[i - 1] == work and found[i - 1] > row)):
            found[i], lost[i] = found[i - 1], lost[i - 1]
            i -= 1
        found[i], lost[i] = row, work
        count += 1
    return found[:count]
