"""Compiled operations on a plan: a profile of running and planned requests, and the planned ones in order.

Layouts. ``waiting`` holds request rows by planned start, then job order, in ``[meta[HEAD], meta[TAIL])``, and
``planned`` their planned starts, place by place; ``running[:meta[RUNNING]]`` are the running rows in no order,
``expected[row]`` is the expected end of one; ``coming[row]`` is what job order compares before the rows;
``meta[SIZE]`` is the number of blocks of the profile. Times in microseconds. The caller provides room for two blocks a
request and four more.

Bundles, plain tuples since these are handed over quickest:

- ``plan``: times and free cores of the blocks, ``meta``, ``waiting``, ``planned``;
- ``columns``: ``coming``, cores and estimate of each request;
- ``held``: ``running``, ``expected``, cores of the machine.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.profile.compiled import lean
from gridsim.profile.kernels import advance, change, earlier, earliest, only_running

__all__ = [
    "HEAD",
    "RUNNING",
    "SIZE",
    "TAIL",
    "adopt",
    "due",
    "earliest_start",
    "enter",
    "replan",
    "shift_left",
    "stop",
]

HEAD, TAIL, SIZE, RUNNING = 0, 1, 2, 3


@lean
def earliest_start(times, free, meta, now, cores, duration):  # type: ignore[no-untyped-def]
    """Earliest place from *now* on in the plan as it stands."""
    meta[SIZE] = advance(times, free, meta[SIZE], now)
    return earliest(times, free, meta[SIZE], cores, duration)


@lean
def enter(plan, coming, row, start, cores, duration):  # type: ignore[no-untyped-def]
    """Plan *row* at *start*: it holds its cores in the profile and its place in the order."""
    times, free, meta, waiting, planned = plan
    meta[SIZE] = change(times, free, meta[SIZE], start, start + duration, -cores)
    i = meta[TAIL]
    while i > meta[HEAD]:
        if planned[i - 1] < start or (planned[i - 1] == start and came_before(coming, waiting[i - 1], row)):
            break
        waiting[i], planned[i] = waiting[i - 1], planned[i - 1]
        i -= 1
    waiting[i], planned[i] = row, start
    meta[TAIL] += 1


@lean
def stop(times, free, meta, running, now, row, until, cores):  # type: ignore[no-untyped-def]
    """A running request ends: what it would have held from *now* until its expected end is free."""
    for k in range(meta[RUNNING]):
        if running[k] == row:
            meta[RUNNING] -= 1
            running[k] = running[meta[RUNNING]]
            break
    if until > now:
        meta[SIZE] = advance(times, free, meta[SIZE], now)
        meta[SIZE] = change(times, free, meta[SIZE], now, until, cores)


@lean
def came_before(coming, one, other):  # type: ignore[no-untyped-def]
    """Whether a request stands before another in job order."""
    return coming[one] < coming[other] or (coming[one] == coming[other] and one < other)


@lean
def sort_waiting(meta, waiting, planned, coming):  # type: ignore[no-untyped-def]
    """Order the waiting requests by planned start, then job order; they are nearly sorted."""
    for i in range(meta[HEAD] + 1, meta[TAIL]):
        row, start = waiting[i], planned[i]
        k = i
        while k > meta[HEAD]:
            if planned[k - 1] < start or (planned[k - 1] == start and came_before(coming, waiting[k - 1], row)):
                break
            waiting[k], planned[k] = waiting[k - 1], planned[k - 1]
            k -= 1
        waiting[k], planned[k] = row, start


@lean
def shift_left(plan, columns, now, order, frontier):  # type: ignore[no-untyped-def]
    """Compress: the request at each place of *order* in turn moves to its earliest start, all others staying.

    No request moves later, since its own start stays open to it. *frontier* is the end of what was given back since the
    plan was last left-shifted (`NEVER` when it may not have been): what overlaps none of it cannot move, and what a
    moved request leaves extends it.
    """
    times, free, meta, waiting, planned = plan
    coming, cores, estimate = columns
    meta[SIZE] = advance(times, free, meta[SIZE], now)
    moved = False
    for k in range(order.shape[0]):
        row, old = waiting[order[k]], planned[order[k]]
        if old <= now:
            continue
        start = earlier(times, free, meta[SIZE], cores[row], estimate[row], old, frontier)
        if start < old:
            meta[SIZE] = change(times, free, meta[SIZE], old, old + estimate[row], cores[row])
            meta[SIZE] = change(times, free, meta[SIZE], start, start + estimate[row], -cores[row])
            planned[order[k]] = start
            frontier = max(frontier, old + estimate[row])
            moved = True
    if moved:
        sort_waiting(meta, waiting, planned, coming)


@lean
def adopt(plan, columns, held, now, rows, starts):  # type: ignore[no-untyped-def]
    """Let *rows*, by planned start, be the waiting requests, at *starts*."""
    times, free, meta, waiting, planned = plan
    _, cores, estimate = columns
    running, expected, total = held
    size = only_running(times, free, now, running[: meta[RUNNING]], expected, cores, total)
    for k in range(rows.shape[0]):
        row = rows[k]
        size = change(times, free, size, starts[k], starts[k] + estimate[row], -cores[row])
        waiting[k], planned[k] = row, starts[k]
    meta[HEAD], meta[TAIL], meta[SIZE] = 0, rows.shape[0], size


@lean
def replan(plan, columns, held, now):  # type: ignore[no-untyped-def]
    """Make the plan anew: running requests until their expected ends, then the waiting ones in planned order.

    What an overrun calls for: places can move later.
    """
    times, free, meta, waiting, planned = plan
    coming, cores, estimate = columns
    running, expected, total = held
    size = only_running(times, free, now, running[: meta[RUNNING]], expected, cores, total)
    for k in range(meta[HEAD], meta[TAIL]):
        row = waiting[k]
        start = earliest(times, free, size, cores[row], estimate[row])
        size = change(times, free, size, start, start + estimate[row], -cores[row])
        planned[k] = start
    meta[SIZE] = size
    sort_waiting(meta, waiting, planned, coming)


@lean
def due(meta, waiting, planned, estimate, running, began, expected, now):  # type: ignore[no-untyped-def]
    """Let the requests planned for *now* run; returns how many rows were added behind the running ones."""
    count = 0
    while meta[HEAD] < meta[TAIL] and planned[meta[HEAD]] <= now:
        row = waiting[meta[HEAD]]
        running[meta[RUNNING]] = row
        began[row], expected[row] = now, now + estimate[row]
        meta[HEAD] += 1
        meta[RUNNING] += 1
        count += 1
    return count
