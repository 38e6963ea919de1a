"""A plan on one pool as a state of the event loop: every waiting request has a planned start."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar import loop
from gridsim.calendar.events import BATCHED
from gridsim.calendar.moldable_states import choose_size
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import kernels as plans
from gridsim.policy.scheduler import plan_state
from gridsim.profile.compiled import lean, verb
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["compress", "enter_plan", "follow_plan", "note_broken", "planned", "planned_in_sizes"]


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
        Those of `gridsim.policy.scheduler.plan_state`.
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


@lean
def planned(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan in which every arrival gets its earliest start; it is compressed after ends."""
    follow_plan(work, events, passes, Earliest(None))


@lean
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
    return next_start(state.meta, state.starts)


@lean
def next_start(meta, starts):  # type: ignore[no-untyped-def]
    """Return when the next planned request starts."""
    return starts[meta[HEAD]] if meta[HEAD] < meta[TAIL] else NEVER


@loop.effort.register(PlanState)
def effort_of_plan(state):  # type: ignore[no-untyped-def]
    queued = state.meta[TAIL] - state.meta[HEAD]
    return 1 + queued * queued  # each may search beside all others


@loop.ended.register(PlanState)
def ended_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if step.ended:
        if state.flags[plan_state.UNSETTLED] and not events[6][BATCHED]:
            settle(step.now, state)
        give_back(step, state)


@loop.overran.register(PlanState)
def overran_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    loop.expect_late(step, events[5], state.running, state.meta)
    state.flags[plan_state.OVERRAN] = state.flags[plan_state.UNSETTLED] = 1


@loop.arrived.register(PlanState)
def arrived_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[plan_state.UNSETTLED]:
        settle(step.now, state)
    for k in range(step.first, step.last):
        enter_plan(state.entry, events[1][1, k], step, events, state)


@loop.settled.register(PlanState)
def settled_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    if state.flags[plan_state.UNSETTLED] and step.decides:
        settle(step.now, state)
    return step.decides and next_start(state.meta, state.starts) <= step.now


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
        plan_state.note_free(step.now, until, flags)
    flags[plan_state.UNSETTLED] = 1


@lean
def settle(now, state):  # type: ignore[no-untyped-def]
    """Plan again after an overrun, else compress what was given back."""
    flags = state.flags
    if flags[plan_state.OVERRAN]:
        plans.replan(state.plan, state.columns, state.running, now)
        note_broken(state.entry, state)
    elif flags[plan_state.FRONTIER] > now:
        compress(now, state, NEVER if flags[plan_state.HOLES] else flags[plan_state.FRONTIER])
    flags[plan_state.OVERRAN] = flags[plan_state.UNSETTLED] = flags[plan_state.FRONTIER] = 0


@lean
def compress(now, state, frontier):  # type: ignore[no-untyped-def]
    """Compress a plan in its order, up to the end of what was given back."""
    how, count = state.flags[plan_state.COMPRESS], state.meta[TAIL] - state.meta[HEAD]
    if how != plan_state.NONE and count:
        plan_state.arrange(state.plan[3], state.meta, state.order, state.flags)
        until = frontier if how == plan_state.IN_ORDER else NEVER
        plans.shift_left(state.plan, state.columns, now, state.order[:count], until, how == plan_state.IN_ORDER)
