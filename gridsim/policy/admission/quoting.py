"""What a plan could promise a job that has not been taken in: how early, at whose cost, and who must be killed for it.

Only questions are asked here: plans, promises and running jobs stay as they are.
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
"""An offer for a deadline, or a later one that says so in ``granted``; None for a refusal."""

_DOUBLINGS = 40


class Guarantee(NamedTuple):
    """The earliest end that could be promised, as far as the search finds it. Instants in whole microseconds.

    Attributes
    ----------
    deadline : int
        The end: a job that asks for it is taken in.
    offer : Offer
        Where it would go, and what that takes.
    refused : int or None
        Latest deadline before it that was tried and refused; None where nothing earlier was possible or tried.
    """

    deadline: int
    offer: Offer
    refused: int | None = None


class Disturbance(NamedTuple):
    """What taking a job in does to those that wait.

    Attributes
    ----------
    moved : int
        Waiting jobs whose planned start changes.
    delayed : int
        Those of them that would start later; never beyond what they were promised.
    delay : int
        The longest of these delays, whole microseconds.
    request : int or None
        Whose it is.
    """

    moved: int = 0
    delayed: int = 0
    delay: int = 0
    request: int | None = None


def keeps_starts(scheduler: Any) -> bool:
    """Whether a scheduler has a plan: whoever is taken in has a promised start."""
    return capabilities_of(scheduler).plan and isinstance(scheduler.plan, Plan)


def keeps_deadlines(scheduler: Any) -> bool:
    """Whether a scheduler answers to deadlines with guarantees."""
    return keeps_starts(scheduler) and capabilities_of(scheduler).guarantees


def asking(scheduler: Any, request: int, now: int) -> Ask:
    """The question that a scheduler with a plan is asked: would you take *request* in, to end by a deadline?

    A request that would only wait behind all promises, without one of its own, counts as refused.
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
    """The same scheduler, if it also killed a running job for a new one (`Restart`); it shares the plan, so only ask.

    Parameters
    ----------
    scheduler : Scheduler
        One that keeps deadlines.
    max_kills : int, optional
        As `Restart` takes it.
    """
    twin = copy.copy(scheduler)
    twin.admission = Restart(search_of(scheduler.admission), max_kills)
    return twin


def earliest_guarantee(scheduler: Any, request: int, now: int) -> Guarantee | None:
    """The earliest end that a scheduler with a plan can promise *request*; None where it promises none at all.

    Notes
    -----
    See `search`; it begins with the end that appending the request to the plan would give.
    """
    plan: Plan = scheduler.plan
    estimate = int(plan.estimate[request])
    appended = plan.earliest(request, now) + estimate
    return search(asking(scheduler, request, now), now, now + estimate, appended, plan.tick)


def search(ask: Ask, submit: int, tightest: int, appended: int, tick: int) -> Guarantee | None:
    """The earliest deadline that is accepted: the tightest one, or what bisection finds between it and a late one.

    Parameters
    ----------
    ask : callable
        Whether a deadline can be kept.
    submit, tightest, appended : int
        Submit of the job, the earliest end that there is, and the end if nobody moves for the job; whole microseconds.
    tick : int
        Deadlines that differ by no more are not told apart.

    Notes
    -----
    An admission that answers with a later deadline (`Feedback`) has its own search, which is the answer. One that
    refuses even the end of an appended job is asked for twice that response, four times, …. Admission is not monotone
    in the deadline, so this is the earliest that the bisection meets, not always the earliest that there is.
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


def disturbance(plan: Plan, offer: Offer) -> Disturbance:
    """What an offer would do to the requests that wait in a plan."""
    if offer.arrangement is None:
        return Disturbance()
    before = plan.starts()
    later = {
        row: start - before[row]
        for row, start in zip(offer.arrangement.rows.tolist(), offer.arrangement.starts.tolist(), strict=True)
        if row in before and start != before[row]
    }
    worst = max(later, key=lambda row: later[row], default=None)
    if worst is None or later[worst] <= 0:
        return Disturbance(len(later))
    return Disturbance(len(later), sum(delay > 0 for delay in later.values()), later[worst], worst)


def lost_work(plan: Plan, offer: Offer, now: int) -> int:
    """Work that the kills of an offer would undo, core-microseconds."""
    rows = np.array(offer.kills, dtype=np.int64)
    return int((plan.need[rows] * (now - plan.began[rows])).sum())
