"""A pool of cores under a plan: a profile of the running requests and of those that have a planned start."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

from gridsim.machine import blocks, verbs
from gridsim.machine.blocks import earliest_from, forget
from gridsim.machine.queue_order import TAIL
from gridsim.machine.running_set import only_running
from gridsim.machine.search_cache import BOUND, forget_bounds, kind_of
from gridsim.model.time import NEVER, IntArray

SIZE = TAIL + 1
"""Index of the number of profile blocks, after the counts of running and waiting requests."""


class PoolPlan(NamedTuple):
    """Free cores over time. The arrays must have space for two blocks per request and four more.

    Attributes
    ----------
    times, free : (m,) int64
        Blocks of the profile.
    bounds : (4, k) int64
        Bounds of `gridsim.machine.search_cache`, valid within a cycle.
    need : (n,) int64
        Cores of each request.
    running, counts : (2, busy), (k,) int64
        See `gridsim.machine.running_set`.
    """

    times: IntArray
    free: IntArray
    bounds: IntArray
    need: IntArray
    running: IntArray
    counts: IntArray


@verbs.open_cycle.register(PoolPlan)
def open_cycle_of_pool_plan(machine, now):  # type: ignore[no-untyped-def]
    machine.counts[SIZE] = forget(machine.times, machine.free, machine.counts[SIZE], now)
    forget_bounds(machine.bounds)


@verbs.earliest.register(PoolPlan)
def earliest_in_pool_plan(machine, now, row, duration):  # type: ignore[no-untyped-def]
    kind = kind_of(machine.bounds, machine.need[row], duration, now)
    begin = machine.bounds[BOUND, kind]
    start = earliest_from(machine.times, machine.free, machine.counts[SIZE], machine.need[row], duration, begin)
    machine.bounds[BOUND, kind] = start
    return start


@verbs.earlier.register(PoolPlan)
def earlier_in_pool_plan(machine, now, row, duration, planned, frontier, again):  # type: ignore[no-untyped-def]
    times, free, bounds, need, _, counts = machine
    if not again:
        return blocks.earlier(times, free, counts[SIZE], need[row], duration, planned, frontier, now)
    kind = kind_of(bounds, need[row], duration, now)  # in planned order one search bounds the next
    begin = bounds[BOUND, kind]
    if begin >= planned:
        return planned
    start = blocks.earlier(times, free, counts[SIZE], need[row], duration, planned, frontier, begin)
    bounds[BOUND, kind] = start
    return start


@verbs.move.register(PoolPlan)
def move_in_pool_plan(machine, row, start, duration, planned):  # type: ignore[no-untyped-def]
    times, free, counts, amount = machine.times, machine.free, machine.counts, machine.need[row]
    if planned >= NEVER:
        counts[SIZE] = blocks.reserve(times, free, counts[SIZE], start, start + duration, amount)
    else:
        counts[SIZE] = blocks.move(times, free, counts[SIZE], planned, start, duration, amount)
    return 0


@verbs.close_turn.register(PoolPlan)
def close_turn_of_pool_plan(machine, again):  # type: ignore[no-untyped-def]
    return False  # after all requests were tried in planned order, none can move


@verbs.cancel.register(PoolPlan)
def cancel_in_pool_plan(machine, now, row, until):  # type: ignore[no-untyped-def]
    times, free, counts = machine.times, machine.free, machine.counts
    if until > now:
        counts[SIZE] = forget(times, free, counts[SIZE], now)
        counts[SIZE] = blocks.release(times, free, counts[SIZE], now, until, machine.need[row])


@verbs.release.register(PoolPlan)
def release_in_pool_plan(machine, now, rows, count):  # type: ignore[no-untyped-def]
    times, free, _, need, running, counts = machine
    counts[SIZE] = only_running(now, running, counts, need, times, free)
