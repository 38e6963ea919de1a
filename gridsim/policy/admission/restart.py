"""Kill-and-restart: a running job makes room for one that could not be taken otherwise, and keeps its own promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.capabilities import shifts_left
from gridsim.policy.protocols import Offer


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
        for victim in self.victims(plan, now):
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

    def victims(self, plan: Plan, now: int) -> list[int]:
        """Running jobs that may be killed now, by the work that they would lose, then job order."""
        rows = plan.running()
        able = (plan.began[rows] < now) & (plan.granted[rows] < NEVER)  # who holds no promise could keep none
        if plan.requests.restartable is not None:
            able &= plan.requests.restartable[rows]
        if self.max_kills is not None:
            able &= plan.kills[rows] < self.max_kills
        rows = rows[able]
        lost = (plan.need[rows] * (now - plan.began[rows])).tolist()
        return [row for _, row in sorted(zip(lost, rows.tolist(), strict=True))]
