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
from gridsim.profile.running import expect_end
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["PlanState", "compress", "enter_plan", "note_broken", "planned", "planned_in_sizes"]

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
    running, moves, order, meta : array of int64
        Running requests, requests that start and that ended, scratch for the order of compression, counts of the plan.
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
    plan, columns, running, began, moves, order, flags = passes
    state = PlanState(plan, columns, running, began, moves, order, flags, plan[2], Earliest(None))
    loop.run_loop(work, events, state)


@whole
def planned_in_sizes(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan in which every arrival gets its size, too."""
    plan, columns, running, began, moves, order, flags, sizes = passes
    state = PlanState(plan, columns, running, began, moves, order, flags, plan[2], Earliest(sizes))
    loop.run_loop(work, events, state)


@enter_plan.register(Earliest)
def enter_earliest(entry, row, step, events, state):  # type: ignore[no-untyped-def]
    plan, (ties, cores, estimate) = state.plan, state.columns
    choose_size(step.now, row, plan, state.columns, state.running, state.began, events[0], entry.sizes)
    start = plans.earliest_start(plan[0], plan[1], plan[2], step.now, cores[row], estimate[row])
    plans.enter(plan, ties, row, start, cores[row], estimate[row])


@loop.wake.register(PlanState)
def wake_of_plan(state):  # type: ignore[no-untyped-def]
    meta, starts = state.meta, state.plan[4]
    return starts[meta[HEAD]] if meta[HEAD] < meta[TAIL] else NEVER


@loop.effort.register(PlanState)
def effort_of_plan(state):  # type: ignore[no-untyped-def]
    queued = state.meta[TAIL] - state.meta[HEAD]
    return 1 + queued * queued  # each may search beside all others


@loop.ended.register(PlanState)
def ended_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if step.ended:
        if state.flags[UNSETTLED] and not events[6][BATCHED]:
            settle_all(step.now, state)
        give_back(step.now, step.ended, state.moves[1], state.plan, state.running, state.columns[1], state.flags)


@loop.overran.register(PlanState)
def overran_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    late = events[5]
    for k in range(step.late):
        expect_end(state.running, state.meta, late[0, k], late[1, k])
    state.flags[OVERRAN] = state.flags[UNSETTLED] = 1


@loop.arrived.register(PlanState)
def arrived_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[UNSETTLED]:
        settle_all(step.now, state)
    for k in range(step.first, step.last):
        enter_plan(state.entry, events[1][1, k], step, events, state)


@loop.settled.register(PlanState)
def settled_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[UNSETTLED] and step.decides:
        settle_all(step.now, state)
    meta, starts = state.meta, state.plan[4]
    return step.decides and meta[HEAD] < meta[TAIL] and starts[meta[HEAD]] <= step.now


@loop.decide.register(PlanState)
def decide_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    return plans.due(step.now, state.plan, state.columns, state.running, state.moves[0], state.began)


@lean
def give_back(now, count, gone, plan, running, cores, flags):  # type: ignore[no-untyped-def]
    """Take who ended out of a plan, and note until when they would have held their cores."""
    times, free, meta, _, _, _ = plan
    for k in range(count):
        row = gone[k]
        until = plans.stop(times, free, meta, running, now, row, cores[row])
        if flags[EVERY]:
            until = max(until, now + 1)
        if until > now:
            flags[FRONTIER] = max(flags[FRONTIER], until)
    flags[UNSETTLED] = 1


@lean
def settle_all(now, state):  # type: ignore[no-untyped-def]
    """The same as `settle`, and note the promises that an overrun breaks."""
    flags = state.flags
    overran = flags[OVERRAN]
    if flags[HOLES] and flags[FRONTIER] > now:
        flags[FRONTIER] = NEVER
    settle(now, state.plan, state.columns, state.running, state.order, flags)
    if overran:
        note_broken(state.entry, state)


@lean
def settle(now, plan, columns, running, order, flags):  # type: ignore[no-untyped-def]
    """Plan again after an overrun, else compress what was given back."""
    _, _, meta, _, _, _ = plan
    head, tail = meta[HEAD], meta[TAIL]
    if flags[OVERRAN]:
        plans.replan(plan, columns, running, now)
    elif flags[FRONTIER] > now and tail > head:
        compress(now, plan, columns, order, flags, flags[FRONTIER])
    flags[OVERRAN] = flags[UNSETTLED] = flags[FRONTIER] = 0


@lean
def compress(now, plan, columns, order, flags, frontier):  # type: ignore[no-untyped-def]
    """Compress a plan as it is to be, up to the end of what was given back; *order* is room for whose turn it is."""
    meta = plan[2]
    head, tail = meta[HEAD], meta[TAIL]
    if flags[COMPRESS] == IN_ORDER:
        for k in range(tail - head):
            order[k] = head + k
        plans.shift_left(plan, columns, now, order[: tail - head], frontier, True)
    elif flags[COMPRESS] == BY_RANK:
        by_rank(plan[3], meta, order, flags[RANKS:])
        plans.shift_left(plan, columns, now, order[: tail - head], NEVER, False)


@lean
def by_rank(waiting, meta, order, ranks):  # type: ignore[no-untyped-def]
    """Write down the places of the waiting requests by the rank of each, equal ones in the order in which they came."""
    count = meta[TAIL] - meta[HEAD]
    for k in range(count):
        order[k] = meta[HEAD] + k
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
