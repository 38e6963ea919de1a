"""Decisions on arrivals for the compiled event loop: input of the searches, the searches, and changes of the plan.

The decisions equal those of `gridsim.policy.scheduler.deadline_guarantee.Guaranteed`, which makes them call by call.
Arguments, plain tuples:

- ``state``: a plan, i.e. its `gridsim.policy.admission.plan_cycle.PlanQueue` and its machine;
- ``asked``: by request its submit time, the requested deadline, the response of an artificial deadline, the number of
  times it has been killed, and whether it may be killed;
- ``how``: the numbers of an admission, named below.
"""

# Types are in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any

import numpy as np

from gridsim.errors import name_of
from gridsim.machine import verbs
from gridsim.machine.blocks import earliest
from gridsim.machine.njit import inline, njit, njit_noalloc
from gridsim.machine.pool_plan import SIZE
from gridsim.machine.queue_order import HEAD, TAIL, sort_places
from gridsim.machine.running_set import RUNNING
from gridsim.model.decimal_numbers import exact
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy.admission.feedback import Feedback, next_deadline, with_slack
from gridsim.policy.admission.mrt import MRT, depth_first
from gridsim.policy.admission.msb import MSB, AscendingScheduledTime, cheapest
from gridsim.policy.admission.plan_cycle import adopt, enter_earliest, requested, stop
from gridsim.policy.admission.qops import QoPS, by_slots
from gridsim.policy.admission.restart import Restart, victims
from gridsim.policy.admission.trial import PRICES, pool_trial
from gridsim.policy.capabilities import search_of
from gridsim.policy.ordering import EarliestDeadline, Fifo, LeastLaxity

SEARCH, ORDER, FEEDBACK, RETRIES, SLACK, SLACK_OF, KILLS, MOST_KILLS, LOOSEN, TICK = range(10)
PARAMETERS = slice(10, 15)
NUMBERS = 15
"""Numbers of an admission: search and its order; whether a later deadline is offered, the number of bisection steps,
and its slack factor, a fraction; whether a job may be killed to free cores, and how often; whether artificial
deadlines are loosened; the unit of offered deadlines, whole microseconds. Then the parameters of the search."""

BY_SLOTS, CHEAPEST, DEPTH_FIRST = range(3)
LAXITY, DEADLINE, ARRIVAL, PLANNED = range(4)

SUBMIT, REQUESTED, RESPONSE, KILLS_OF, RESTARTABLE = range(5)

NONE = -1
REJECTED = -2


# -- an admission as numbers -------------------------------------------------------------------------------------------


_ORDERS: dict[type, int] = {
    LeastLaxity: LAXITY,
    EarliestDeadline: DEADLINE,
    Fifo: ARRIVAL,
    AscendingScheduledTime: PLANNED,
}

_FINEST = 10_000
"""Maximum numerator of a slack factor as a fraction: larger products may not fit into 64 bits."""


def why_not(admission: Any) -> str:
    """Return why the decisions of an admission are not compiled; empty if they are."""
    search = search_of(admission) if type(admission) in (Feedback, Restart) else admission
    if type(search) not in (QoPS, MSB, MRT):
        return f"{name_of(search)} searches in Python"
    if type(_order(search)) not in _ORDERS:
        return f"{name_of(_order(search))} is called for each decision"
    if type(admission) is Feedback and exact(admission.slack_factor, "slack_factor").numerator > _FINEST:
        return f"the slack factor {admission.slack_factor} is too fine"
    return ""


def _order(search: Any) -> Any:
    return search.order if isinstance(search, MSB) else search.heuristic


def numbers_of(admission: Any, *, loosen: bool, tick: int) -> IntArray:
    """Return the numbers of an admission with compiled decisions (see `why_not`): ``how`` of these decisions.

    Parameters
    ----------
    loosen : bool
        Whether artificial deadlines are loosened until the job, appended to the plan, meets them.
    tick : int
        Unit of offered deadlines, whole microseconds.
    """
    how: IntArray = np.zeros(NUMBERS, dtype=np.int64)
    how[LOOSEN], how[TICK] = loosen, tick
    search = admission
    if isinstance(admission, Feedback | Restart):
        search, most = admission.inner, admission.max_kills
        how[MOST_KILLS] = NEVER if most is None else most
        how[KILLS] = isinstance(admission, Restart) or admission.kill_restart
    if isinstance(admission, Feedback):
        slack = exact(admission.slack_factor, "slack_factor")
        how[FEEDBACK], how[RETRIES] = True, admission.retry_count
        how[SLACK], how[SLACK_OF] = slack.numerator, slack.denominator
    how[ORDER] = _ORDERS[type(_order(search))]
    if isinstance(search, QoPS):
        price = PRICES.index(search.price) if search.slots == "best" else -1
        slots = search.slots == "first-slot-only", search.insertion == "first", search.append_slot
        how[SEARCH], how[PARAMETERS] = BY_SLOTS, (search.k_factor, *slots, price)
    elif isinstance(search, MSB):
        keeps = how[ORDER] == PLANNED
        how[SEARCH], how[PARAMETERS] = CHEAPEST, (keeps, PRICES.index(search.price), 0, 0, 0)
    else:
        window = NEVER if search.window is None else search.window
        parameters = (search.backtracks, window, not search.hole_filling, 0, 0)
        how[SEARCH], how[PARAMETERS] = DEPTH_FIRST, parameters
    return how


# -- one search ------------------------------------------------------------------------------------------------------


@njit_noalloc
def _seconds(instant):  # type: ignore[no-untyped-def]
    """Return an instant as orderings see it."""
    return np.inf if instant >= NEVER else instant / MICROSECOND


@njit
def _in_order(search, count, which, granted):  # type: ignore[no-untyped-def]
    """Return the first *count* jobs of a search in one of the orders, ties in job order, and their keys."""
    rows, _, estimate, due, _, planned, _, _, _, ties = search
    last = rows.shape[0] - 1
    keys, order = np.zeros(count), np.arange(count)
    for k in range(count):
        promised = due[k] if k == last else granted[rows[k]]
        if which == LAXITY:
            keys[k] = _seconds(promised) - estimate[k] / MICROSECOND
        elif which == DEADLINE:
            keys[k] = _seconds(promised)
        elif which == PLANNED:
            keys[k] = _seconds(planned[k])
    sort_places(order, keys, False, rows, ties)
    return order, keys


@njit
def _arranged(rows, starts, ties):  # type: ignore[no-untyped-def]
    """Return requests by planned start, then in job order, and their starts."""
    order = np.arange(rows.shape[0])
    sort_places(order, starts, False, rows, ties)
    return rows[order], starts[order]


@njit
def _searched(request, deadline, now, state, asked, how):  # type: ignore[no-untyped-def]
    """Return the plan that the search of an admission finds: requests in order, and starts; empty if it finds none."""
    search = requested(request, deadline, now, state[0], asked[SUBMIT])
    rows, _, estimate, due, _, _, times, free, size, ties = search
    new = rows.shape[0] - 1
    if earliest(times, free, size, search[1][new], estimate[new]) + estimate[new] > due[new]:
        return rows[:0], rows[:0]  # too late even without other waiting requests
    one, two, three, four, five = how[10], how[11], how[12], how[13], how[14]
    trial = pool_trial(search)
    order, keys = _in_order(search, new if how[SEARCH] == CHEAPEST else new + 1, how[ORDER], state[0].granted)
    if how[SEARCH] == BY_SLOTS:
        price = by_slots(trial, order, one, two != 0, three != 0, four != 0, five)
    elif how[SEARCH] == CHEAPEST:
        price = cheapest(trial, order, one != 0, two)
    else:
        price = depth_first(trial, order, keys, one, two, three != 0, False, 0.0)
    if price == np.inf:
        return rows[:0], rows[:0]
    return _arranged(rows, trial.found, ties)


# -- an offer --------------------------------------------------------------------------------------------------------


@njit
def _answer_request(request, now, state, trial, asked, how):  # type: ignore[no-untyped-def]
    """Return the answer to a requested deadline: the offered end, the request to kill, requests in order, and starts.

    Without a plan the request is appended; `NEVER` as the end rejects it.
    """
    deadline = asked[REQUESTED][request]
    rows, starts = _searched(request, deadline, now, state, asked, how)
    if rows.shape[0]:
        return deadline, NONE, rows, starts
    if how[KILLS]:
        victim, rows, starts = _rescued(request, deadline, now, state, trial, asked, how)
        if victim >= 0:
            return deadline, victim, rows, starts
    if not how[FEEDBACK]:
        return NEVER, NONE, rows, starts
    found = _appended(request, now, state)
    if found <= deadline:
        return deadline, NONE, rows, starts
    refused, tick = deadline, how[TICK]
    for _ in range(how[RETRIES]):
        middle = next_deadline(found, refused, tick)
        if middle == found:
            break
        other, places = _searched(request, middle, now, state, asked, how)
        if other.shape[0]:
            found, rows, starts = middle, other, places
        else:
            refused = middle
    return with_slack(found, asked[SUBMIT][request], how[TICK], how[SLACK], how[SLACK_OF]), NONE, rows, starts


@njit_noalloc
def _appended(request, now, state):  # type: ignore[no-untyped-def]
    """Return the end of a request at its earliest start in the present plan."""
    queue, machine = state
    verbs.open_cycle(machine, now)
    return verbs.earliest(machine, now, request, queue.estimate[request]) + queue.estimate[request]


@njit_noalloc
def doubled(response, least):  # type: ignore[no-untyped-def]
    """Return the response of an artificial deadline, doubled until it is at least *least*, and how often."""
    doublings = 0
    while response < least:
        response, doublings = 2 * response, doublings + 1
    return response, doublings


@njit
def _artificial(request, now, state, asked, how):  # type: ignore[no-untyped-def]
    """Return the answer to a job without deadline, as `_answer_request`, and how often its deadline was doubled."""
    submit, response = asked[SUBMIT][request], asked[RESPONSE][request]
    rows, starts = _searched(request, submit + response, now, state, asked, how)
    if rows.shape[0]:
        return submit + response, 0, rows, starts
    if not how[LOOSEN]:
        return NEVER, 0, rows, starts
    response, doublings = doubled(response, _appended(request, now, state) - submit)
    return submit + response, doublings, rows, starts


# -- kill and restart ------------------------------------------------------------------------------------------------


@njit
def _rescued(request, deadline, now, state, trial, asked, how):  # type: ignore[no-untyped-def]
    """Return a running request to kill, and the plan in which both end in time; `NONE` if no kill helps."""
    queue, machine = trial
    granted, running = queue.granted, state[0].running[1, : state[0].meta[RUNNING]]
    found = victims(
        now, running, queue.need, queue.began, granted, asked[KILLS_OF], asked[RESTARTABLE], how[MOST_KILLS]
    )
    for victim in found:
        _copy(state, trial)
        stop(now, victim, queue, machine)
        rows, starts = _searched(request, deadline, now, trial, asked, how)
        if rows.shape[0] == 0:
            continue
        before = granted[request]
        granted[request] = deadline
        adopt(rows, starts, now, queue, machine)
        rows, starts = _searched(victim, granted[victim], now, trial, asked, how)
        granted[request] = before
        for k in range(rows.shape[0]):
            if rows[k] == victim and starts[k] > now:
                return victim, rows, starts
    return NONE, found[:0], found[:0]


@njit_noalloc
def _copy(state, trial):  # type: ignore[no-untyped-def]
    """Copy a plan into a second one."""
    (queue, machine), (its_queue, its_machine) = state, trial
    meta = queue.meta
    for k in range(meta.shape[0]):
        its_queue.meta[k] = meta[k]
    for k in range(meta[SIZE]):
        its_machine.times[k], its_machine.free[k] = machine.times[k], machine.free[k]
    for k in range(meta[HEAD], meta[TAIL]):
        its_queue.waiting[k], its_queue.planned[k] = queue.waiting[k], queue.planned[k]
    for k in range(meta[RUNNING]):
        its_queue.running[0, k], its_queue.running[1, k] = queue.running[0, k], queue.running[1, k]


# -- the decision ----------------------------------------------------------------------------------------------------


@njit
def admit(request, now, state, trial, asked, answers, how):  # type: ignore[no-untyped-def]
    """Answer a request and admit it if its user accepts; return the request to kill, `NONE` or `REJECTED`.

    *answers* is a `gridsim.policy.protocols.Answers` as a plain tuple, *trial* a second ``state`` for trial kills.
    """
    granted, offer, doublings, refused, takes, _, _ = answers
    victim, doubled = NONE, 0
    if asked[REQUESTED][request] >= NEVER:
        end, doubled, rows, starts = _artificial(request, now, state, asked, how)
    else:
        end, victim, rows, starts = _answer_request(request, now, state, trial, asked, how)
    if end < NEVER and end > asked[REQUESTED][request]:
        offer[request] = end
    if end >= NEVER or end > takes[request]:
        refused[request] = True
        return REJECTED
    granted[request], doublings[request] = end, doubled
    _take(request, now, end, victim, rows, starts, state, asked)
    return victim


@inline
def _take(request, now, end, victim, rows, starts, state, asked):  # type: ignore[no-untyped-def]
    """Carry out an offer: stop the victim, guarantee the request its end, and adopt the plan of the offer."""
    queue, machine = state
    if victim >= 0:
        stop(now, victim, queue, machine)
        asked[KILLS_OF][victim] += 1
    queue.granted[request] = end
    if rows.shape[0]:
        adopt(rows, starts, now, queue, machine)
    else:
        enter_earliest(now, request, queue, machine)
