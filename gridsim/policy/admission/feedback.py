"""Feedback: if the requested deadline cannot be guaranteed, offer the earliest one that can."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gridsim.machine.njit import as_python, njit_noalloc
from gridsim.model.decimal_numbers import exact
from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.restart import Restart
from gridsim.policy.capabilities import shifts_left
from gridsim.policy.protocols import Offer


@dataclass
class Feedback:
    """Offers the earliest deadline that the inner admission can keep, if it cannot keep the requested one.

    Parameters
    ----------
    inner : Admission
        Admission that searches for plans.
    retry_count : int
        Steps of the bisection between the requested deadline and the end of the job if it is appended to the plan.
    slack_factor : float
        Factor between the offered response and that of the earliest deadline; 1: no slack.
    kill_restart : bool
        Whether a running job may be killed first, so that the requested deadline can be kept.
    max_kills : int, optional
        Maximum number of kills of one job; unlimited if omitted.

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
        """True if the inner admission is left-shifted."""
        return shifts_left(self.inner)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        offer = offer_of(self.inner, request, deadline, plan, now)
        if offer is None and self.kill_restart:
            offer = Restart(self.inner, self.max_kills).rescue(request, deadline, plan, now)
        return self.earliest(request, deadline, plan, now) if offer is None else offer

    def earliest(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        """Return the offer with the earliest deadline after *deadline* that the search finds, with slack.

        None if the request fits at no known time.
        """
        start = plan.earliest(request, now)
        if start >= NEVER:
            return None
        found, best = start + int(plan.estimate[request]), Offer(start)
        if found <= deadline:
            return best
        refused = deadline
        for _ in range(self.retry_count):
            middle = as_python(next_deadline)(found, refused, plan.tick)
            if middle == found:
                break
            offer = offer_of(self.inner, request, middle, plan, now)
            if offer is None:
                refused = middle
            else:
                found, best = middle, offer
        slack, submit = exact(self.slack_factor, "slack_factor"), int(plan.requests.submit[request])
        ratio = (slack.numerator, slack.denominator)
        return best._replace(granted=as_python(with_slack)(found, submit, plan.tick, *ratio))


@njit_noalloc
def next_deadline(found, refused, tick):  # type: ignore[no-untyped-def]
    """Return the deadline that the bisection tries next, whole ticks after the refused one; *found* at its end."""
    return found if found - refused <= tick else refused + max((found - refused) // tick // 2, 1) * tick


@njit_noalloc
def with_slack(deadline, submit, tick, times, of):  # type: ignore[no-untyped-def]
    """Return the deadline with the response multiplied by *times*/*of*, in whole ticks after the submit time."""
    if times == of:
        return deadline
    whole, rest = (deadline - submit) // (of * tick), (deadline - submit) % (of * tick)
    ticks = times * whole + (times * rest + of * tick - 1) // (of * tick)
    return min(submit + ticks * tick, NEVER - 1)
