"""States of list schedulers and linear priorities in the event loop: queues and their changes."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.engine import loop
from gridsim.engine.events import ESTIMATE, RUNTIME, START
from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.nodes import on_nodes
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import RUNNING, expect_end
from gridsim.machine.verbs import nothing_fits, postpone
from gridsim.model.time import IntArray
from gridsim.policy.runtime_history import FIRST, PRESENT, correct, learn, predict
from gridsim.policy.scheduler import list_cycle as cycle
from gridsim.policy.scheduler.linear_priority import sort_linear, strict_linear
from gridsim.policy.scheduler.list_cycle import AGAIN, JOB, PLACE, QUEUE, RANK, READY, ListQueue
from gridsim.policy.scheduler.list_cycle import ESTIMATE as PLANNED
from gridsim.policy.scheduler.list_state import AGED_TAIL, AGEING, ALL, CALLBACK, LINEAR, PREDICTED, RANDOM, STATIC
from gridsim.policy.scheduler.machines import in_pool
from gridsim.policy.scheduler.random_selection import draw_order
from gridsim.policy.scheduler.sequential_selection import Selection, run_selection
from gridsim.policy.scheduler.sequential_selection import take_ended as take_in_selection

ORDER, BEHIND, PREDICTS, DRAWS, WAITS, BLOCKED, ASKS, BY_READY = range(8)
"""Flags of a list scheduler: sort keys of the queue, and of the requests behind the reservations; whether run times are
predicted; whether an order is drawn even if nothing can start; whether a blocked first request waits for the next end,
and whether it does now; whether Python is called before a cycle; whether tasks are sorted by ready time."""


class ListSchedulerState(NamedTuple):
    """A list scheduler on any machine.

    Attributes
    ----------
    queue : ListQueue
        Waiting and running requests.
    machine : Pool or Nodes
        Free capacity.
    order : tuple
        Sort keys of the queue and of the requests behind the reservations: see `gridsim.policy.scheduler.list_state`.
    flags : (8,) int64
        Flags of the order, named above.
    resorts : bool
        Whether each cycle sorts the queue, or ranks the requests behind the reservations.
    moves, meta : array of int64
        Arrays of the queue.
    """

    queue: ListQueue
    machine: Any
    order: tuple[Any, ...]
    flags: IntArray
    resorts: bool
    moves: IntArray
    meta: IntArray


class LinearState(NamedTuple):
    """A queue in which the request with the highest linear priority is first, without backfilling.

    Attributes
    ----------
    queue : ListQueue
        Waiting and running requests.
    slots : tuple of arrays
        `gridsim.policy.scheduler.linear_priority.Slots` as a plain tuple.
    moves, meta : array of int64
        Arrays of the queue.
    """

    queue: ListQueue
    slots: tuple[IntArray, ...]
    moves: IntArray
    meta: IntArray


class SelectionState(NamedTuple):
    """A queue in which the next request is selected again after each start, without backfilling.

    Attributes
    ----------
    queue, moves, meta
        See `LinearState`.
    selection : tuple of arrays
        `gridsim.policy.scheduler.sequential_selection.Selection` as a plain tuple.
    """

    queue: ListQueue
    selection: Any
    moves: IntArray
    meta: IntArray


@njit_noalloc
def list_in_pool(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a list scheduler on one or several amounts; *passes* are a queue, a pool and an order as plain tuples."""
    loop.run_loop(work, events, list_state_in_pool(passes))


@njit_noalloc
def list_on_nodes(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a list scheduler on nodes."""
    queue, nodes, order = passes
    queue = ListQueue(*queue)
    loop.run_loop(work, events, list_state(queue, on_nodes(queue, nodes), order))


@njit_noalloc
def strict_lines(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a linear priority; *passes* are a queue and slots as plain tuples."""
    loop.run_loop(work, events, linear_state(passes))


@njit_noalloc
def selected(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a sequential selection; *passes* are a queue and a selection as plain tuples."""
    loop.run_loop(work, events, selection_state(passes))


@inline
def list_state_in_pool(passes):  # type: ignore[no-untyped-def]
    queue, pool, order = passes
    queue = ListQueue(*queue)
    return list_state(queue, in_pool(queue, pool), order)


@inline
def list_state(queue, machine, order):  # type: ignore[no-untyped-def]
    flags = order[5]
    resorts = flags[ASKS] or flags[ORDER] != STATIC or flags[BEHIND] == AGED_TAIL
    return ListSchedulerState(queue, machine, order, flags, resorts, queue.moves, queue.meta)


@inline
def linear_state(passes):  # type: ignore[no-untyped-def]
    queue = ListQueue(*passes[0])
    return LinearState(queue, passes[1], queue.moves, queue.meta)


@inline
def selection_state(passes):  # type: ignore[no-untyped-def]
    queue = ListQueue(*passes[0])
    return SelectionState(queue, passes[1], queue.moves, queue.meta)


@loop.ended.register(ListSchedulerState)
def ended_in_list(state, step, events):  # type: ignore[no-untyped-def]
    queue, flags = state.queue, state.flags
    if flags[PREDICTS]:
        if correct_running(step.now, events[0], queue, state.machine, state.order[3]):
            queue.meta[AGAIN] = 0
        learn_and_predict(step, queue.moves[1], events[0], events[1], queue.table, flags, state.order[3])
    if step.ended or step.late:
        flags[BLOCKED] = queue.meta[AGAIN] = 0


@loop.take_ended.register(ListSchedulerState)
def take_ended_from_list(state, now, ended):  # type: ignore[no-untyped-def]
    cycle.catch_up(now, ended, state.meta[TAIL], state.queue, state.machine)


@loop.overran.register(ListSchedulerState)
def overran_in_list(state, step, events):  # type: ignore[no-untyped-def]
    queue, late = state.queue, events[5]
    loop.take_ended(state, step.now, step.ended)
    for k in range(step.late):
        expect_end(queue.running, queue.meta, late[0, k], late[1, k])
        postpone(state.machine, step.now, late[0, k], late[1, k])


@loop.settled.register(ListSchedulerState)
def settled_in_list(state, step, events):  # type: ignore[no-untyped-def]
    queue, flags, meta = state.queue, state.flags, state.meta
    if flags[BLOCKED] or not step.decides:
        return False
    if state.resorts:
        cycle.catch_up(step.now, 0 if step.late else step.ended, step.last, queue, state.machine)
        skips = (flags[ORDER] == AGEING or flags[ORDER] == CALLBACK) and not flags[DRAWS]
        if meta[HEAD] == meta[TAIL] or (skips and nothing_fits(state.machine, step.now, queue.table[QUEUE])):
            return False
    return True


@loop.needs_python.register(ListSchedulerState)
def needs_python_in_list(state):  # type: ignore[no-untyped-def]
    return state.flags[ASKS] != 0


@loop.decide.register(ListSchedulerState)
def decide_in_list(state, step, events):  # type: ignore[no-untyped-def]
    queue, flags, meta = state.queue, state.flags, state.meta
    now, resorts, running = step.now, state.resorts, queue.running
    if resorts and not meta[cycle.WITHIN]:
        sort_queue(now, queue, state.order)
    again = meta[AGAIN] and not resorts and not meta[cycle.RANKED] and not (meta[RUNNING] and running[0, 0] <= now)
    ended = 0 if resorts or step.late else step.ended
    meta[cycle.STOPPED] = cycle.run_cycle(now, ALL, again, ended, step.last, queue, state.machine)
    if meta[cycle.STOPPED]:
        return -1
    meta[AGAIN] = meta[TAIL] > meta[HEAD]
    flags[BLOCKED] = flags[WAITS] and meta[AGAIN]
    return meta[cycle.COUNT]


@njit_noalloc
def sort_queue(now, queue, order):  # type: ignore[no-untyped-def]
    """Sort the queue, and rank the requests behind the reservations, unless an ordering in Python does."""
    lines, ageing, tail_ageing, _, draws, flags = order
    table, meta = queue.table, queue.meta
    if flags[ORDER] == LINEAR:
        sort_linear(now, table, lines, meta[HEAD], meta[TAIL])
    elif flags[ORDER] == AGEING:
        cycle.sort_by_age(now, table, queue.running, meta, ageing)
    elif flags[ORDER] == RANDOM:
        draw_order(draws, table[QUEUE], meta, table[PLACE], table[JOB : READY + 1])
    if flags[BEHIND] == AGED_TAIL:
        cycle.rank_by_age(now, RANK, table, meta[HEAD], meta[TAIL], tail_ageing)


@njit_noalloc
def learn_and_predict(step, gone, jobs, come, table, flags, history):  # type: ignore[no-untyped-def]
    """Learn from the run times of requests that ended in a step, and predict those of its arrivals."""
    predicted = history[0]
    for k in range(step.ended):
        row = gone[k]
        learn(row, min(step.now - jobs[START, row], jobs[ESTIMATE, row]), history)
    for k in range(step.first, step.last):
        row = come[1, k]
        found = predict(row, jobs[ESTIMATE, row], history)
        predicted[FIRST, row] = predicted[PRESENT, row] = table[PLANNED, row] = found
        if flags[BEHIND] == PREDICTED:
            table[RANK, row] = found


@njit_noalloc
def correct_running(now, jobs, queue, machine, history):  # type: ignore[no-untyped-def]
    """Correct the predictions that running requests have exceeded by now, in that order; return their number.

    A correction alone starts no request, so it is sufficient to do this before a cycle.
    """
    predicted, running, meta = history[0], queue.running, queue.meta
    i, count = 0, 0
    while i < meta[RUNNING] and running[0, i] <= now:
        row = running[1, i]
        if predicted[PRESENT, row] < jobs[RUNTIME, row] and predicted[PRESENT, row] < jobs[ESTIMATE, row]:
            until = jobs[START, row] + correct(row, jobs[ESTIMATE, row], history)
            expect_end(running, meta, row, until)
            postpone(machine, now, row, until)
            count += 1
        else:
            i += 1
    return count


@loop.take_ended.register(LinearState)
def take_ended_linear(state, now, ended):  # type: ignore[no-untyped-def]
    cycle.take_in(state.queue.table, state.queue.running, state.moves, state.meta, ended, state.meta[TAIL])


@loop.take_ended.register(SelectionState)
def take_ended_from_selection(state, now, ended):  # type: ignore[no-untyped-def]
    take_in_selection(ended, state.meta[TAIL], state.queue, Selection(*state.selection))


@loop.overran.register(LinearState)
@loop.overran.register(SelectionState)
def overran_linear(state, step, events):  # type: ignore[no-untyped-def]
    loop.take_ended(state, step.now, step.ended)
    loop.expect_late(step, events[5], state.queue.running, state.meta)


@loop.decide.register(LinearState)
def decide_linear(state, step, events):  # type: ignore[no-untyped-def]
    table, running, moves, _, meta = state.queue
    ended = 0 if step.late else step.ended
    return strict_linear(step.now, ended, step.last, table, running, moves, meta, state.slots)


@loop.decide.register(SelectionState)
def decide_in_selection(state, step, events):  # type: ignore[no-untyped-def]
    ended = 0 if step.late else step.ended
    return run_selection(step.now, ended, step.last, state.queue, Selection(*state.selection))
