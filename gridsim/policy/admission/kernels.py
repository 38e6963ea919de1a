"""Compiled operations on a plan: a profile of running and planned requests, and the planned ones in order.

Layouts. ``waiting`` holds request rows by planned start, then job order, in ``[meta[HEAD], meta[TAIL])``;
``planned[row]`` is a planned start, ``expected[row]`` the expected end of a running request; ``meta[SIZE]`` is the
number of blocks of the profile. Times in microseconds. The caller provides room for two blocks a request and four more.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from numba import njit

from gridsim.profile.kernels import advance, change, earlier, earliest

__all__ = ["HEAD", "SIZE", "TAIL", "due", "earliest_start", "enter", "release", "replan", "shift_left"]

HEAD, TAIL, SIZE = 0, 1, 2


@njit(cache=True)
def earliest_start(times, free, meta, now, cores, duration):  # type: ignore[no-untyped-def]
    """Earliest place from *now* on in the plan as it stands."""
    meta[SIZE] = advance(times, free, meta[SIZE], now)
    return earliest(times, free, meta[SIZE], cores, duration)


@njit(cache=True)
def enter(times, free, meta, waiting, planned, row, start, cores, duration):  # type: ignore[no-untyped-def]
    """Plan *row* at *start*: it holds its cores in the profile and its place in the order."""
    meta[SIZE] = change(times, free, meta[SIZE], start, start + duration, -cores)
    planned[row] = start
    i = meta[TAIL]
    while i > meta[HEAD]:
        before = waiting[i - 1]
        if planned[before] < start or (planned[before] == start and before < row):
            break
        waiting[i] = before
        i -= 1
    waiting[i] = row
    meta[TAIL] += 1


@njit(cache=True)
def release(times, free, meta, now, until, cores):  # type: ignore[no-untyped-def]
    """Give back what an ended request would have held from *now* until its expected end."""
    meta[SIZE] = advance(times, free, meta[SIZE], now)
    meta[SIZE] = change(times, free, meta[SIZE], now, until, cores)


@njit(cache=True)
def sort_waiting(meta, waiting, planned):  # type: ignore[no-untyped-def]
    """Order the waiting requests by planned start, then job order; they are nearly sorted."""
    for i in range(meta[HEAD] + 1, meta[TAIL]):
        row = waiting[i]
        k = i
        while k > meta[HEAD]:
            before = waiting[k - 1]
            if planned[before] < planned[row] or (planned[before] == planned[row] and before < row):
                break
            waiting[k] = before
            k -= 1
        waiting[k] = row


@njit(cache=True)
def shift_left(times, free, meta, waiting, planned, cores, estimate, now, order, frontier):  # type: ignore[no-untyped-def]
    """Compress: each request of *order* in turn moves to its earliest place, all others staying where they are.

    No request moves later, since its own place stays open to it. *frontier* is the end of what was given back since the
    plan was last left-shifted (`NEVER` when it may not have been): what overlaps none of it cannot move, and what a
    moved request leaves extends it.
    """
    meta[SIZE] = advance(times, free, meta[SIZE], now)
    moved = False
    for k in range(order.shape[0]):
        row = order[k]
        old = planned[row]
        if old <= now:
            continue
        start = earlier(times, free, meta[SIZE], cores[row], estimate[row], old, frontier)
        if start < old:
            meta[SIZE] = change(times, free, meta[SIZE], old, old + estimate[row], cores[row])
            meta[SIZE] = change(times, free, meta[SIZE], start, start + estimate[row], -cores[row])
            planned[row] = start
            frontier = max(frontier, old + estimate[row])
            moved = True
    if moved:
        sort_waiting(meta, waiting, planned)


@njit(cache=True)
def replan(times, free, meta, waiting, planned, cores, estimate, now, running, expected, total):  # type: ignore[no-untyped-def]
    """Make the plan anew: running requests until their expected ends, then the waiting ones in planned order.

    What an overrun calls for: places can move later.
    """
    times[0], free[0] = now, total
    size = 1
    for k in range(running.shape[0]):
        row = running[k]
        size = change(times, free, size, now, expected[row], -cores[row])
    for k in range(meta[HEAD], meta[TAIL]):
        row = waiting[k]
        start = earliest(times, free, size, cores[row], estimate[row])
        size = change(times, free, size, start, start + estimate[row], -cores[row])
        planned[row] = start
    meta[SIZE] = size
    sort_waiting(meta, waiting, planned)


@njit(cache=True)
def due(meta, waiting, planned, estimate, expected, now, started):  # type: ignore[no-untyped-def]
    """Take the requests planned for *now* out of the waiting ones; returns how many rows of *started* are set."""
    count = 0
    while meta[HEAD] < meta[TAIL] and planned[waiting[meta[HEAD]]] <= now:
        row = waiting[meta[HEAD]]
        started[count] = row
        expected[row] = now + estimate[row]
        meta[HEAD] += 1
        count += 1
    return count
