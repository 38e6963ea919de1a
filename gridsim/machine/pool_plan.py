"""A pool of cores under a plan: a profile of the running requests and of those that have a planned start.

A search result bounds the next search for at least the same amount: if the free cores before some time only fall
between searches, a job cannot start before the start found for another job of its cores and length. Placing or
compressing thousands of jobs from parameter sweeps then searches the profile once per kind of job, not once per job.
Two series of searches have this property:

- jobs are placed one after another, on an empty profile or on existing allocations, and each takes its place;
- a plan is compressed in planned order: a job that moves releases nothing before its old start, and all later jobs are
  planned after that. (A place before the bound that extends into the job's own one would be feasible for the other job,
  too.)

Both also hold for jobs with at least as many cores and at least the same length.

``bounds`` (4, `SLOTS` + 1) int64 has a column for each of the last `KINDS` kinds of job of a series: cores, length (µs)
and bound. The last row has the column of a kind for each slot, then the number of columns used. A replaced entry only
costs a search.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import blocks, verbs
from gridsim.machine.blocks import earliest_from, forget
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.queue_order import TAIL
from gridsim.machine.running_set import only_running
from gridsim.model.time import NEVER, IntArray

SIZE = TAIL + 1
"""Index of the number of profile blocks, after the counts of running and waiting requests."""

KINDS, SLOTS = 128, 256
CORES, LENGTH, BOUND, COLUMN = range(4)


def no_bounds() -> IntArray:
    """Return an array for the bounds of consecutive series."""
    return np.zeros((4, SLOTS + 1), dtype=np.int64)


@njit_noalloc
def forget_bounds(bounds):  # type: ignore[no-untyped-def]
    """Begin a series of searches without known bounds."""
    bounds[COLUMN, SLOTS] = 0


@njit_noalloc
def kind_of(bounds, cores, length, now):  # type: ignore[no-untyped-def]
    """Return the column of a kind of job: it cannot start before ``bounds[BOUND, column]``, which is *now* or later.

    The caller searches from there and writes the result to the same entry; the result must not be earlier.
    """
    slot = (cores * 25_717 + length // 1_000_000 * 40_503) >> 7 & (SLOTS - 1)
    column, filled = bounds[COLUMN, slot], bounds[COLUMN, SLOTS]
    known = min(filled, KINDS)
    if column < known and bounds[CORES, column] == cores and bounds[LENGTH, column] == length:
        return column
    bound = now
    for k in range(known):
        if bounds[CORES, k] <= cores and bounds[LENGTH, k] <= length:
            bound = max(bound, bounds[BOUND, k])
    column = filled % KINDS
    bounds[CORES, column], bounds[LENGTH, column], bounds[BOUND, column] = cores, length, bound
    bounds[COLUMN, slot], bounds[COLUMN, SLOTS] = column, filled + 1
    return column


class PoolPlan(NamedTuple):
    """Free cores over time. The arrays must have space for two blocks per request and four more.

    Attributes
    ----------
    times, free : (m,) int64
        Blocks of the profile.
    bounds : (4, k) int64
        Bounds of earliest starts (above), valid within a cycle.
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
