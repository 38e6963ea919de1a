"""A plan as a state of the event loop: every waiting request has a planned start."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.engine import loop
from gridsim.engine.events import BATCHED
from gridsim.engine.moldable_states import choose_size
from gridsim.machine.njit import njit_noalloc, verb
from gridsim.machine.nodes import on_nodes
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import plan_cycle as plans
from gridsim.policy.admission.plan_cycle import PlanQueue, in_pool


class PlanState(NamedTuple):
    """A plan on any machine.

    Attributes
    ----------
    queue : PlanQueue
        Requests of the plan.
    machine : PoolPlan or Nodes
        Machine of the plan.
    moves, meta : array of int64
        Requests that start and that ended; counts of the plan.
    entry : Earliest, Sized or Admission
        How an arrival enters the plan; its class selects the verb `enter_plan`.
    """

    queue: PlanQueue
    machine: Any
    moves: IntArray
    meta: IntArray
    entry: Any


class Earliest(NamedTuple):
    """An arrival gets its earliest start."""


class Sized(NamedTuple):
    """An arrival first gets its size (`choose_size`).

    Attributes
    ----------
    sizes : tuple
        Limits and sizes.
    """

    sizes: Any


@verb
def enter_plan(entry, now, row, events, queue, machine):  # type: ignore[no-untyped-def]
    """Give an arrival its planned start, if it is admitted; return 0 or the code of a verb of the machine."""


@njit_noalloc
def plan_in_pool(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan on one pool, in which every arrival gets its earliest start."""
    parts, pool, moves = passes
    queue = PlanQueue(*parts)
    loop.run_loop(work, events, PlanState(queue, in_pool(queue, pool), moves, queue.meta, Earliest()))


@njit_noalloc
def sized_plan_in_pool(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan on one pool, in which every arrival gets its size and its earliest start."""
    parts, pool, moves, sizes = passes
    queue = PlanQueue(*parts)
    loop.run_loop(work, events, PlanState(queue, in_pool(queue, pool), moves, queue.meta, Sized(sizes)))


@njit_noalloc
def plan_on_nodes(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan on nodes or several pools, in which every arrival gets its earliest start."""
    parts, nodes, moves = passes
    queue = PlanQueue(*parts)
    loop.run_loop(work, events, PlanState(queue, on_nodes(queue, nodes), moves, queue.meta, Earliest()))


@enter_plan.register(Earliest)
def enter_earliest(entry, now, row, events, queue, machine):  # type: ignore[no-untyped-def]
    return plans.enter_earliest(now, row, queue, machine)


@enter_plan.register(Sized)
def enter_sized(entry, now, row, events, queue, machine):  # type: ignore[no-untyped-def]
    choose_size(now, row, queue, machine, events[0], entry.sizes)
    return plans.enter_earliest(now, row, queue, machine)


@loop.wake.register(PlanState)
def wake_of_plan(state):  # type: ignore[no-untyped-def]
    return _next_start(state.meta, state.queue.planned)


@njit_noalloc
def _next_start(meta, planned):  # type: ignore[no-untyped-def]
    return planned[meta[HEAD]] if meta[HEAD] < meta[TAIL] else NEVER


@loop.effort.register(PlanState)
def effort_of_plan(state):  # type: ignore[no-untyped-def]
    queued = state.meta[TAIL] - state.meta[HEAD]
    return 1 + queued * queued  # each request may search among all others


@loop.ended.register(PlanState)
def ended_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    meta = state.meta
    meta[plans.PHASE], meta[plans.STARTED], meta[plans.ENDED], meta[plans.LATE] = 0, 0, step.ended, step.late
    meta[plans.FIRST], meta[plans.LAST], meta[plans.DECIDES] = step.first, step.last, step.decides


@loop.settled.register(PlanState)
def settled_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    return True  # the decision processes the whole step, since it can stop at each change of the plan


@loop.decide.register(PlanState)
def decide_in_plan(state, step, events):  # type: ignore[no-untyped-def]
    state.meta[plans.STOPPED] = follow(step.now, events, state)
    return -1 if state.meta[plans.STOPPED] else state.meta[plans.STARTED]


@njit_noalloc
def follow(now, events, state):  # type: ignore[no-untyped-def]
    """Apply a step, or the rest of it, to a plan; return 0 or the code of a verb."""
    queue, machine, meta, late = state.queue, state.machine, state.meta, events[5]
    while True:
        code = plans.change(now, queue, machine)
        if code:
            return code
        meta[plans.PHASE] += 1
        if meta[plans.PHASE] == 1:
            if meta[plans.ENDED] and meta[plans.UNSETTLED] and not events[6][BATCHED]:
                plans.settle(now, queue, machine)
        elif meta[plans.PHASE] == 2:
            for k in range(meta[plans.ENDED]):
                plans.end(now, state.moves[1, k], queue, machine)
            for k in range(meta[plans.LATE]):
                plans.expect(late[0, k], late[1, k], queue.running, meta)
            if meta[plans.UNSETTLED] and (meta[plans.DECIDES] or meta[plans.LAST] > meta[plans.FIRST]):
                plans.settle(now, queue, machine)
        elif meta[plans.FIRST] < meta[plans.LAST]:
            code = enter_plan(state.entry, now, events[1][1, meta[plans.FIRST]], events, queue, machine)
            if code:
                return code
            meta[plans.FIRST] += 1
        else:
            return plans.due(now, queue, machine) if meta[plans.DECIDES] else 0
