"""Quotes for a job that is not submitted: earliest guarantees, effects on other jobs, and required kills.

The functions change no plans, guarantees or running jobs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.restart import Restart
from gridsim.policy.capabilities import capabilities_of, search_of
from gridsim.policy.protocols import Offer

Ask = Callable[[int], Offer | None]
"""Returns an offer for a deadline, possibly with a later one in ``granted``; None if it rejects the job."""

_DOUBLINGS = 40


class Guarantee(NamedTuple):
    """The earliest end that can be guaranteed, as found by the search. Instants in whole microseconds.

    Attributes
    ----------
    deadline : int
        The end: a job that requests it is admitted.
    offer : Offer
        Its planned start and consequences.
    refused : int or None
        Latest earlier deadline that was tried and rejected; None if no earlier one was possible or tried.
    """

    deadline: int
    offer: Offer
    refused: int | None = None


class Impact(NamedTuple):
    """Effects of admitting a job on waiting jobs.

    Attributes
    ----------
    moved : int
        Waiting jobs whose planned start changes.
    delayed : int
        Number of these that would start later; never beyond their guarantees.
    delay : int
        The longest of these delays, whole microseconds.
    request : int or None
        Request with the longest delay.
    """

    moved: int = 0
    delayed: int = 0
    delay: int = 0
    request: int | None = None


def keeps_starts(scheduler: Any) -> bool:
    """Return whether a scheduler has a plan, in which each admitted request has a planned start."""
    return capabilities_of(scheduler).plan and isinstance(scheduler.plan, Plan)


def keeps_deadlines(scheduler: Any) -> bool:
    """Return whether a scheduler guarantees deadlines."""
    return keeps_starts(scheduler) and capabilities_of(scheduler).guarantees


def asking(scheduler: Any, request: int, now: int) -> Ask:
    """Return the function that requests an offer of a scheduler with a plan for *request* by deadline.

    A request that would only wait behind all guarantees, without its own, counts as rejected.
    """

    def with_deadline(deadline: int) -> Offer | None:
        quote = scheduler.promise(request, deadline, now)
        return None if quote is None or quote.offer.granted >= NEVER else quote.offer

    def with_start(deadline: int) -> Offer | None:
        quote = scheduler.quote(request, now)
        if quote is None:
            return None
        end = quote.offer.start + int(scheduler.plan.estimate[request])
        offer: Offer = quote.offer._replace(granted=max(end, deadline))
        return offer if end <= deadline else offer._replace(granted=end)

    return with_deadline if keeps_deadlines(scheduler) else with_start


def killing(scheduler: Any, max_kills: int | None = None) -> Any:
    """Return the scheduler with `Restart`, which may kill running jobs; it shares the plan, so only request quotes.

    Parameters
    ----------
    scheduler : Scheduler
        A scheduler that guarantees deadlines.
    max_kills : int, optional
        As for `Restart`.
    """
    twin = copy.copy(scheduler)
    twin.admission = Restart(search_of(scheduler.admission), max_kills)
    return twin


def earliest_guarantee(scheduler: Any, request: int, now: int) -> Guarantee | None:
    """Return the earliest end that a scheduler with a plan can guarantee for *request*; None if there is none.

    Notes
    -----
    See `search`; it starts from the end of the request if it is appended to the plan.
    """
    plan: Plan = scheduler.plan
    estimate = int(plan.estimate[request])
    appended = plan.earliest(request, now) + estimate
    return search(asking(scheduler, request, now), now, now + estimate, appended, plan.tick)


def search(ask: Ask, submit: int, tightest: int, appended: int, tick: int) -> Guarantee | None:
    """Return the earliest deadline that is accepted: the tightest one, or the result of a bisection.

    Parameters
    ----------
    ask : callable
        Returns an offer for a deadline.
    submit, tightest, appended : int
        Submit time of the job, its earliest possible end, and its end if no other job moves; whole microseconds.
    tick : int
        Resolution of the deadlines.

    Notes
    -----
    An admission that offers a later deadline (`Feedback`) has its own search, whose result is returned. If an
    admission rejects even the end of an appended job, twice that response is tried, then four times, and so on.
    Acceptance is not monotonic in the deadline, so the result is the earliest deadline that the bisection finds, not
    always the earliest possible one.
    """
    offer = ask(tightest)
    if offer is not None:
        return Guarantee(offer.granted, offer)
    refused, found = tightest, max(appended, tightest + tick)
    offer = ask(found)
    for _ in range(_DOUBLINGS):
        if offer is not None:
            break
        refused, found = found, submit + 2 * (found - submit)
        if found >= NEVER:
            return None
        offer = ask(found)
    if offer is None:
        return None
    while found - refused > tick:
        middle = refused + max((found - refused) // tick // 2, 1) * tick
        other = ask(middle)
        if other is None:
            refused = middle
        else:
            found, offer = middle, other
    return Guarantee(found, offer, refused)


def disturbance(plan: Plan, offer: Offer) -> Impact:
    """Return the effects of an offer on the waiting requests of a plan."""
    if offer.arrangement is None:
        return Impact()
    before = plan.starts()
    later = {
        row: start - before[row]
        for row, start in zip(offer.arrangement.rows.tolist(), offer.arrangement.starts.tolist(), strict=True)
        if row in before and start != before[row]
    }
    worst = max(later, key=lambda row: later[row], default=None)
    if worst is None or later[worst] <= 0:
        return Impact(len(later))
    return Impact(len(later), sum(delay > 0 for delay in later.values()), later[worst], worst)


def lost_work(plan: Plan, offer: Offer, now: int) -> int:
    """Return the work that the kills of an offer would lose, core-microseconds."""
    rows = np.array(offer.kills, dtype=np.int64)
    return int((plan.need[rows] * (now - plan.began[rows])).sum())
