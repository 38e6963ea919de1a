"""A plan on one pool as a state of the event loop: every waiting request has a planned start."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar import loop
from gridsim.calendar.events import BATCHED
from gridsim.calendar.sizes import choose_size
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import kernels as plans
from gridsim.profile.compiled import lean, verb, whole
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["compress", "enter_plan", "follow_plan", "note_broken", "planned", "planned_in_sizes"]

COMPRESS, EVERY, FRONTIER, OVERRAN, UNSETTLED, HOLES, RANKS = range(7)
NONE, IN_ORDER, BY_RANK = range(3)
"""Flags of a plan: how it is compressed and whether after every end; the end of what was given back since; whether
somebody goes on who should have ended; whether ends have not been looked at; where ends are promised, whether somebody
may wait who could start earlier; and from here on the rank of each request by which it moves up, 0 by arrival."""


class PlanState(NamedTuple):
    """A plan of one pool.

    Attributes
    ----------
    plan, columns : tuple of arrays
        Those of `gridsim.policy.admission.kernels`.
    running, moves, order, meta, starts : array of int64
        Running requests, requests that start and that ended, scratch for the order of compression, counts of the plan
        and planned starts.
    began : (n,) int64
        Start of each request.
    flags : (k,) int64
        Those named above.
    entry : Earliest or Admission
        How an arrival enters the plan; its class selects the verbs `enter_plan` and `note_broken`.
    """

    plan: tuple[IntArray, ...]
    columns: tuple[IntArray, ...]
    running: IntArray
    began: IntArray
    moves: IntArray
    order: IntArray
    flags: IntArray
    meta: IntArray
    starts: IntArray
    entry: Any


class Earliest(NamedTuple):
    """An arrival gets its earliest start.

    Attributes
    ----------
    sizes : tuple or None
        By which it gets its size first (`choose_size`); None where it keeps the requested one.
    """

    sizes: Any


@verb
def enter_plan(entry, row, step, events, state):  # type: ignore[no-untyped-def]
    """Give an arrival its planned start, if it is admitted."""


@verb
def note_broken(entry, state):  # type: ignore[no-untyped-def]
    """Note which promised ends are broken by a plan that was made anew."""


@whole
def planned(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan in which every arrival gets its earliest start; it is compressed after ends."""
    follow_plan(work, events, passes, Earliest(None))


@whole
def planned_in_sizes(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan in which every arrival gets its size, too, by what is last in *passes*."""
    follow_plan(work, events, passes[:-1], Earliest(passes[-1]))


@lean
def follow_plan(work, events, passes, entry):  # type: ignore[no-untyped-def]
    """Run a plan; *passes* are those of `gridsim.policy.admission.plan.Plan.columns_for`, and flags."""
    plan, columns, running, began, moves, order, flags = passes
    state = PlanState(plan, columns, running, began, moves, order, flags, plan[2], plan[4], entry)
    loop.run_loop(work, events, state)


@enter_plan.register(Earliest)
def enter_earliest(entry, row, step, events, state):  # type: ignore[no-untyped-def]
    plan, (ties, cores, estimate) = state.plan, state.columns
    choose_size(step.now, row, plan, state.columns, state.running, state.began, events[0], entry.sizes)
    start = plans.earliest_start(plan[0], plan[1], plan[2], step.now, cores[row], estimate[row])
    plans.enter(plan, ties, row, start, cores[row], estimate[row])


@loop.wake.register(PlanState)
def wake_of_plan(state):  # type: ignore[no-untyped-def]
    return state.starts[state.meta[HEAD]] if state.meta[HEAD] < state.meta[TAIL] else NEVER


@loop.effort.register(PlanState)
def effort_of_plan(state):  # type: ignore[no-untyped-def]
    queued = state.meta[TAIL] - state.meta[HEAD]
    return 1 + queued * queued  # each may search beside all others


@loop.ended.register(PlanState)
def ended_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if step.ended:
        if state.flags[UNSETTLED] and not events[6][BATCHED]:
            settle(step.now, state)
        give_back(step, state)


@loop.overran.register(PlanState)
def overran_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    loop.expect_late(step, events[5], state.running, state.meta)
    state.flags[OVERRAN] = state.flags[UNSETTLED] = 1


@loop.arrived.register(PlanState)
def arrived_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[UNSETTLED]:
        settle(step.now, state)
    for k in range(step.first, step.last):
        enter_plan(state.entry, events[1][1, k], step, events, state)


@loop.settled.register(PlanState)
def settled_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[UNSETTLED] and step.decides:
        settle(step.now, state)
    return step.decides and wake_of_plan(state) <= step.now


@loop.decide.register(PlanState)
def decide_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    return plans.due(step.now, state.plan, state.columns, state.running, state.moves[0], state.began)


@lean
def give_back(step, state):  # type: ignore[no-untyped-def]
    """Remove the requests that ended from a plan, and note until when they would have held their cores."""
    plan, flags = state.plan, state.flags
    for k in range(step.ended):
        row = state.moves[1, k]
        until = plans.stop(plan[0], plan[1], plan[2], state.running, step.now, row, state.columns[1][row])
        note_free(step.now, until, flags)
    flags[UNSETTLED] = 1


@lean
def note_free(now, until, flags):  # type: ignore[no-untyped-def]
    """Note until when a request that ended would have held something."""
    if flags[EVERY]:
        until = max(until, now + 1)
    if until > now:
        flags[FRONTIER] = max(flags[FRONTIER], until)


@lean
def settle(now, state):  # type: ignore[no-untyped-def]
    """Plan again after an overrun, else compress what was given back."""
    flags = state.flags
    if flags[OVERRAN]:
        plans.replan(state.plan, state.columns, state.running, now)
        note_broken(state.entry, state)
    elif flags[FRONTIER] > now:
        compress(now, state, NEVER if flags[HOLES] else flags[FRONTIER])
    flags[OVERRAN] = flags[UNSETTLED] = flags[FRONTIER] = 0


@lean
def compress(now, state, frontier):  # type: ignore[no-untyped-def]
    """Compress a plan in its order, up to the end of what was given back."""
    how, count = state.flags[COMPRESS], state.meta[TAIL] - state.meta[HEAD]
    if how != NONE and count:
        arrange(state.plan[3], state.meta, state.order, state.flags)
        until = frontier if how == IN_ORDER else NEVER
        plans.shift_left(state.plan, state.columns, now, state.order[:count], until, how == IN_ORDER)


@lean
def arrange(waiting, meta, order, flags):  # type: ignore[no-untyped-def]
    """Write the places of the waiting requests to *order*: as planned, or by rank, ties by arrival."""
    count, ranks = meta[TAIL] - meta[HEAD], flags[RANKS:]
    for k in range(count):
        order[k] = meta[HEAD] + k
    if flags[COMPRESS] != BY_RANK:
        return
    stride = 1
    while stride * 3 + 1 < count:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(stride, count):
            place = order[k]
            i = k
            row = waiting[place]
            while i >= stride:
                other = waiting[order[i - stride]]
                if ranks[other] < ranks[row] or (ranks[other] == ranks[row] and other < row):
                    break
                order[i] = order[i - stride]
                i -= stride
            order[i] = place
        stride //= 3
