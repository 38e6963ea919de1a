"""Feedback: where the deadline asked for cannot be kept, offer the earliest one that can."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gridsim.machine.njit import njit_noalloc
from gridsim.model.decimal_numbers import exact
from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.restart import Restart
from gridsim.policy.capabilities import shifts_left
from gridsim.policy.protocols import Offer


@dataclass
class Feedback:
    """Offers the earliest deadline that the inner admission can keep, where it cannot keep the one asked for.

    Parameters
    ----------
    inner : Admission
        What searches for plans.
    retry_count : int
        Steps of the bisection between the deadline asked for and the end that appending the job would give.
    slack_factor : float
        How many times the response of the earliest deadline is offered; 1: no slack.
    kill_restart : bool
        Whether, before that, a running job may be killed so that the deadline asked for can be kept.
    max_kills : int, optional
        How often one job may be killed; any number of times where left out.

    Notes
    -----
    The user decides (tolerance of the workload). Exact rules: sections 7.1 to 7.4 of the project's specification of
    deadline admission.
    """

    name: ClassVar[str] = "feedback"
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2004, figure 2"
    inner: Any = field(default_factory=QoPS)
    retry_count: int = 10
    slack_factor: float = 1.0
    kill_restart: bool = False
    max_kills: int | None = None

    def __post_init__(self) -> None:
        if self.retry_count < 0:
            raise ValueError(f"retry_count is {self.retry_count}; a number of steps from 0 is needed")
        if not 1 <= self.slack_factor < float("inf"):
            raise ValueError(f"slack_factor is {self.slack_factor}; 1 (no slack) or more is needed")

    @property
    def left_shifted(self) -> bool:
        """As its inner admission."""
        return shifts_left(self.inner)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        offer = offer_of(self.inner, request, deadline, plan, now)
        if offer is None and self.kill_restart:
            offer = Restart(self.inner, self.max_kills).rescue(request, deadline, plan, now)
        return self.earliest(request, deadline, plan, now) if offer is None else offer

    def earliest(self, request: int, deadline: int, plan: Plan, now: int) -> Offer:
        """The earliest deadline after *deadline* that the search finds, with slack."""
        start = plan.earliest(request, now)
        found, best = start + int(plan.estimate[request]), Offer(start)
        if found <= deadline:
            return best
        refused = deadline
        for _ in range(self.retry_count):
            if found - refused <= plan.tick:
                break
            middle = refused + max((found - refused) // plan.tick // 2, 1) * plan.tick
            offer = offer_of(self.inner, request, middle, plan, now)
            if offer is None:
                refused = middle
            else:
                found, best = middle, offer
        slack, submit = exact(self.slack_factor, "slack_factor"), int(plan.requests.submit[request])
        exactly = getattr(with_slack, "py_func", with_slack)  # with whole numbers of any size
        return best._replace(granted=exactly(found, submit, plan.tick, slack.numerator, slack.denominator))


@njit_noalloc
def with_slack(deadline, submit, tick, times, of):  # type: ignore[no-untyped-def]
    """Deadline whose response is longer by a slack factor, *times*/*of*, in whole ticks after the submit."""
    if times == of:
        return deadline
    whole, rest = (deadline - submit) // (of * tick), (deadline - submit) % (of * tick)
    ticks = times * whole + (times * rest + of * tick - 1) // (of * tick)
    return min(submit + ticks * tick, NEVER - 1)
