"""Compiled operations on a plan: a profile of running and planned requests, and the planned ones in order.

Layouts. ``waiting`` holds request rows by planned start, then job order, in ``[meta[HEAD], meta[TAIL])``, and
``planned`` their planned starts, place by place; ``running`` (2, busy) is who runs until when, as
`gridsim.profile.running` has it, and ``meta`` counts them; ``ties`` are those of `gridsim.profile.waiting`;
``meta[SIZE]`` is the number of blocks of the profile. Times in microseconds. The caller provides room for two blocks a
request and four more.

Bundles, plain tuples since these are handed over quickest:

- ``plan``: times and free cores of the blocks, ``meta``, ``waiting``, ``planned``, and scratch for
  `gridsim.profile.bounds`;
- ``columns``: ``ties``, cores and estimate of each request.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.profile.blocks import earlier, earliest, earliest_from, forget, move, release, reserve
from gridsim.profile.bounds import BOUND, forget_bounds, kind_of
from gridsim.profile.compiled import lean
from gridsim.profile.running import begin_running, end_running, only_running
from gridsim.profile.waiting import HEAD, TAIL, insert

__all__ = ["SIZE", "adopt", "due", "earliest_start", "enter", "replan", "shift_left", "stop"]

SIZE = TAIL + 1


@lean
def earliest_start(times, free, meta, now, cores, duration):  # type: ignore[no-untyped-def]
    """Earliest place from *now* on in the plan as it stands."""
    meta[SIZE] = forget(times, free, meta[SIZE], now)
    return earliest(times, free, meta[SIZE], cores, duration)


@lean
def enter(plan, ties, row, start, cores, duration):  # type: ignore[no-untyped-def]
    """Plan *row* at *start*: it holds its cores in the profile and its place in the order."""
    times, free, meta, waiting, planned, _ = plan
    meta[SIZE] = reserve(times, free, meta[SIZE], start, start + duration, cores)
    waiting[meta[TAIL]], planned[meta[TAIL]] = row, start
    meta[TAIL] += 1
    insert(waiting, planned, meta[HEAD], meta[TAIL] - 1, meta[TAIL], ties)


@lean
def stop(times, free, meta, running, now, row, cores):  # type: ignore[no-untyped-def]
    """A running request ends: what it would have held from *now* until its expected end is free; when that was."""
    until = end_running(running, meta, row, cores)
    if until > now:
        meta[SIZE] = forget(times, free, meta[SIZE], now)
        meta[SIZE] = release(times, free, meta[SIZE], now, until, cores)
    return until


@lean
def shift_left(plan, columns, now, order, frontier, in_order):  # type: ignore[no-untyped-def]
    """Compress: the request at each place of *order* in turn moves to its earliest start, all others staying.

    No request moves later, since its own start stays open to it. *frontier* is the end of what was given back since the
    plan was last left-shifted (`NEVER` when it may not have been): what overlaps none of it cannot move, and what a
    moved request leaves extends it. In planned order (*in_order*) one search bounds the next. Whether all are places.
    """
    times, free, meta, waiting, planned, bounds = plan
    ties, cores, estimate = columns
    meta[SIZE] = forget(times, free, meta[SIZE], now)
    forget_bounds(bounds)
    moved, begin, kind = False, now, 0
    for k in range(order.shape[0]):
        if not meta[HEAD] <= order[k] < meta[TAIL]:
            return False
        row, old = waiting[order[k]], planned[order[k]]
        if old <= now:
            continue
        need, length = cores[row], estimate[row]
        if in_order:
            kind = kind_of(bounds, need, length, now)
            begin = bounds[BOUND, kind]
            if begin >= old:
                continue
        start = earlier(times, free, meta[SIZE], need, length, old, frontier, begin)
        if in_order:
            bounds[BOUND, kind] = start
        if start < old:
            meta[SIZE] = move(times, free, meta[SIZE], old, start, length, need)
            planned[order[k]] = start
            frontier = max(frontier, old + length)
            moved = True
    if moved:
        insert(waiting, planned, meta[HEAD], meta[HEAD] + 1, meta[TAIL], ties)
    return True


@lean
def adopt(plan, columns, running, now, rows, starts):  # type: ignore[no-untyped-def]
    """Let *rows*, by planned start, be the waiting requests, at *starts*; whether they are rows, with a start each."""
    times, free, meta, waiting, planned, _ = plan
    _, cores, estimate = columns
    if rows.shape[0] != starts.shape[0]:
        return False
    for k in range(rows.shape[0]):
        if rows[k] < 0 or rows[k] >= cores.shape[0]:
            return False
    size = only_running(now, running, meta, cores, times, free)
    for k in range(rows.shape[0]):
        row = rows[k]
        size = reserve(times, free, size, starts[k], starts[k] + estimate[row], cores[row])
        waiting[k], planned[k] = row, starts[k]
    meta[HEAD], meta[TAIL], meta[SIZE] = 0, rows.shape[0], size
    return True


@lean
def replan(plan, columns, running, now):  # type: ignore[no-untyped-def]
    """Make the plan anew: running requests until their expected ends, then the waiting ones in planned order.

    What an overrun calls for: places can move later.
    """
    times, free, meta, waiting, planned, bounds = plan
    ties, cores, estimate = columns
    size = only_running(now, running, meta, cores, times, free)
    forget_bounds(bounds)
    for k in range(meta[HEAD], meta[TAIL]):
        row = waiting[k]
        need, length = cores[row], estimate[row]
        kind = kind_of(bounds, need, length, now)
        start = earliest_from(times, free, size, need, length, bounds[BOUND, kind])
        bounds[BOUND, kind] = start
        size = reserve(times, free, size, start, start + length, need)
        planned[k] = start
    meta[SIZE] = size
    insert(waiting, planned, meta[HEAD], meta[HEAD] + 1, meta[TAIL], ties)


@lean
def due(now, plan, columns, running, started, began):  # type: ignore[no-untyped-def]
    """Let the requests planned for *now* run, and write them to *started*; how many they are."""
    _, _, meta, waiting, planned, _ = plan
    _, cores, estimate = columns
    count = 0
    while meta[HEAD] < meta[TAIL] and planned[meta[HEAD]] <= now:
        row = waiting[meta[HEAD]]
        begin_running(running, meta, row, now + estimate[row], cores[row])
        began[row], started[count] = now, row
        meta[HEAD] += 1
        count += 1
    return count
