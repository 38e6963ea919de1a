"""Scheduling cycles under an ordering, by how often its ranks change: never, in time, each cycle, each start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridsim.errors import InputError, call, name_of, policy_error
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.capabilities import counts_in_columns, draws_alone, of_ordering
from gridsim.policy.dag_ordering import FifoTask
from gridsim.policy.ordering import Fifo
from gridsim.policy.protocols import integer_column, ranks_of
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.scheduler import linear_priority, list_cycle
from gridsim.policy.scheduler.list_state import ListState, Order
from gridsim.policy.scheduler.random_selection import drawing, nothing_drawn
from gridsim.policy.scheduler.sequential_selection import NONE

Cycle = Callable[[int], Sequence[int]]
"""A scheduling cycle at an instant: the requests that it starts."""


def cycle_for(ordering: Any, state: ListState, cluster: ClusterView) -> Cycle:
    """Return the cycle for an ordering: static, linear, sorted in each cycle or after each start, or selected."""
    can = of_ordering(ordering)
    changes = can.changes
    if changes == "static":
        return _static(ordering, state)
    if changes == "linear":
        return _linear(ordering, state, cluster)
    if can.pick and state.blocking:
        return _picked(ordering, state, holds=can.hold)
    if can.group and state.blocking:
        return _grouped(ordering, state)
    return _each_start(ordering, state) if changes == "start" else _each_cycle(ordering, state, draws=can.pick)


def _static(ordering: Any, state: ListState) -> Cycle:
    rows = np.arange(len(state.requests))
    first_come = type(ordering) is Fifo
    if type(ordering) is FifoTask:
        state.by_ready = True
    elif first_come:
        state.table[list_cycle.PLACE] = state.requests.ties[0]
    else:
        state.set_places(rows, ranks_of(ordering, state.queue(rows), 0.0))
    # In first-come order without backfilling, a blocked first request stays blocked until a request ends. Tasks do not
    # arrive in that order, and with reacting users the jobs of one instant may not either.
    waits = first_come and state.blocking and state.requests.tasks is None and not state.requests.moves
    state.export_ordered_state(Order(waits=waits))
    # Submit times and deadlines may be unknown before.
    ranks_arrivals = state.requests.moves and not first_come and not state.by_ready

    def cycle(now: int) -> Sequence[int]:
        if waits and state.blocked:
            return ()
        if ranks_arrivals and len(new := state.arrivals()):
            state.set_places(new, ranks_of(ordering, state.queue(new), now / 1e6))
        return state.run_list_cycle(now)

    return cycle


def _linear(ordering: Any, state: ListState, cluster: ClusterView) -> Cycle:
    everyone = state.queue(np.arange(len(state.requests)))
    keys = _lines_of(ordering, everyone, cluster.tick)

    def take_arrivals() -> None:
        if state.requests.moves and len(new := state.arrivals()):  # a line begins at the submission
            keys[:, new] = _lines_of(ordering, state.queue(new), cluster.tick)

    if state.blocking and state.machine.is_one_amount and state.plain:
        n = len(state.requests)
        blocks = n // linear_priority.BLOCK + 1
        slots = np.full(n, -1, dtype=np.int64)
        where, spare = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        firsts, expiry = np.full(blocks, -1, dtype=np.int64), np.full(blocks, NEVER, dtype=np.int64)
        arrays = tuple(linear_priority.Slots(keys, slots, where, spare, firsts, expiry, np.zeros(2, dtype=np.int64)))

        state.export_state("strict_lines", arrays)

        def strict_cycle(now: int) -> Sequence[int]:
            take_arrivals()
            return state.strict_linear(now, arrays)

        return strict_cycle

    def sort(now: int) -> None:
        linear_priority.sort_linear(now, state.table, keys, state.meta[HEAD], state.meta[TAIL])

    def cycle(now: int) -> Sequence[int]:
        take_arrivals()
        state.take_in()
        if state.empty:
            return ()
        sort(now)
        return state.run_list_cycle(now)

    state.export_ordered_state(Order(sort, lines=keys))

    return cycle


def _lines_of(ordering: Any, queue: Queue, tick: int) -> IntArray:
    """Return checked linear priorities: integers (a, b) with b of at least 1, not negative at the submission."""
    answer = call(ordering, "lines", queue, tick)
    if not isinstance(answer, tuple | list | np.ndarray) or len(answer) != 2:
        raise policy_error(ordering, f"returned {answer!r} from lines; expected two columns of whole numbers")
    ahead = integer_column(ordering, "offsets of lines", answer[0], len(queue))
    slope = integer_column(ordering, "reciprocal slopes of lines", answer[1], len(queue), least=1)
    submit = queue.requests.submit[queue.rows]
    if (below := ahead + submit < 0).any():
        at = int(below.argmax())
        raise policy_error(ordering, f"has a line below 0 at the submission of its job, at {ahead[at] + submit[at]}")
    return np.stack([ahead, slope])


def _sort(ordering: Any, state: ListState, now: int) -> None:
    """Sort the queue for this instant; ties by job order."""
    rows = state.rows_in_job_order()
    rows[:] = rows[np.argsort(ranks_of(ordering, state.queue(rows), now / 1e6), kind="stable")]


def _each_cycle(ordering: Any, state: ListState, *, draws: bool) -> Cycle:
    ageing = state.ageing(ordering)

    def sort(now: int) -> None:
        if ageing is None:
            _sort(ordering, state, now)
        else:
            state.sort_by_age(now, ageing)

    def cycle(now: int) -> Sequence[int]:
        state.take_in()
        if state.empty or (not draws and state.full(now)):
            return ()
        sort(now)
        return state.run_list_cycle(now)

    drawn = drawing(ordering.stream) if draws_alone(ordering) else None
    state.export_ordered_state(Order(sort, ageing=ageing, draws=draws, drawn=drawn))

    return cycle


def _each_start(ordering: Any, state: ListState) -> Cycle:
    """Sort again after each start, since a start changes the order."""

    def cycle(now: int) -> Sequence[int]:
        started: list[int] = []
        state.take_in()
        while not state.empty and not state.full(now):
            _sort(ordering, state, now)
            more = state.run_list_cycle(now, 1)
            if not more:
                break
            started.extend(more)
        return started

    return cycle


def _picked(ordering: Any, state: ListState, *, holds: bool) -> Cycle:
    """Let the ordering pick the next request until one does not fit or no core is free, without backfilling.

    If it *holds*, a request that does not fit is also the next one of the following cycle. The queue stays in job
    order.
    """
    held = NONE
    draws = drawing(ordering.stream) if draws_alone(ordering) else None
    if draws is not None and state.plain:
        how, none = np.array([NONE, holds, 0], dtype=np.int64), np.zeros(0, dtype=np.int64)
        state.export_state("selected", (draws, none, np.zeros((3, 0), dtype=np.int64), how))

    def index_at(now: int, started: int) -> int:
        nonlocal held
        rows = state.rows()
        where = np.flatnonzero(rows == held)  # empty if it has started
        index = where[0] if len(where) else call(ordering, "pick", state.queue(rows), now / 1e6)
        if not isinstance(index, int | np.integer) or not 0 <= index < len(rows):
            raise policy_error(ordering, f"picked number {index!r} of {len(rows)} requests")
        held = int(rows[index]) if holds else NONE
        return int(index)

    return _selecting(state, index_at)


def _selecting(state: ListState, index_at: Callable[[int, int], int]) -> Cycle:
    """Start the request at an index of the queue until one does not fit; *index_at* gets the number of starts."""

    def cycle(now: int) -> Sequence[int]:
        started: list[int] = []
        state.take_in()
        while not state.empty and state.available(now):
            request = state.begin_at(index_at(now, len(started)), now)
            if request is None:
                break
            started.append(request)
        return started

    return cycle


def _grouped(ordering: Any, state: ListState) -> Cycle:
    """Order groups, such as shares, again after each start; job order is kept within a group."""
    group = state.requests.labels.get(ordering.group)
    if group is None or (len(group) and group.min() < 0):
        raise InputError(f"{name_of(ordering)} needs jobs with a {ordering.group}", field=ordering.group)
    groups = int(group.max(initial=-1)) + 1
    if counts_in_columns(ordering) and state.plain:
        weights = ordering.column
        shares = np.stack([np.zeros_like(weights), weights, weights])
        how = np.array([NONE, 0, ordering.changes == "start"], dtype=np.int64)
        state.export_state("selected", (nothing_drawn(), np.ascontiguousarray(group), shares, how))
    place: IntArray = np.zeros(0, dtype=np.int64)

    def index_at(now: int, started: int) -> int:
        nonlocal place
        if not started or ordering.changes == "start":
            place = integer_column(ordering, "places", call(ordering, "places", now))
            if len(place) < groups:
                raise policy_error(ordering, f"returned places of {len(place)} groups; expected {groups}")
        return int(list_cycle.first_of_groups(state.table, state.meta, group, place))

    return _selecting(state, index_at)
