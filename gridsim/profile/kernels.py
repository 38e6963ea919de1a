"""Compiled loops over a profile: arrays in, numbers out. `Profile` gives them names for people.

A profile is the step function of free cores: block ``i`` is ``[times[i], times[i + 1])`` with ``free[i]`` cores, the
last block has no end, neighbours differ, ``times[0]`` is the present. Times are whole microseconds. The caller
provides room: a change adds at most two blocks. ``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.profile.compiled import compiled, lean, phase

__all__ = [
    "advance",
    "block_at",
    "change",
    "earlier",
    "earliest",
    "earliest_from",
    "falls",
    "fits",
    "fits_before",
    "only_running",
]


@lean
def block_at(times, size, instant):  # type: ignore[no-untyped-def]
    """Index of the block that holds *instant*, the first one for what lies before it; by bisection."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] <= instant:
            low = middle
        else:
            high = middle
    return low


@lean
def advance(times, free, size, now):  # type: ignore[no-untyped-def]
    """Forget the past: the profile begins at *now*; returns its new size."""
    passed = 0
    while passed + 1 < size and times[passed + 1] <= now:
        passed += 1
    if passed:
        for i in range(passed, size):
            times[i - passed] = times[i]
            free[i - passed] = free[i]
    if times[0] < now:
        times[0] = now
    return size - passed


@lean
def change(times, free, size, start, end, cores):  # type: ignore[no-untyped-def]
    """Add *cores* (negative to take them) to the free cores of ``[start, end)``; returns the new size.

    Neighbours that become equal are merged, so the number of blocks stays about twice the number of jobs.
    """
    if end <= start:
        return size
    first = block_at(times, size, start)
    if times[first] < start:  # split the block that *start* falls into
        for i in range(size, first + 1, -1):
            times[i] = times[i - 1]
            free[i] = free[i - 1]
        first += 1
        times[first] = start
        free[first] = free[first - 1]
        size += 1
    last = first
    while last < size and times[last] < end:
        free[last] += cores
        last += 1
    if last == size or times[last] > end:  # split the block that *end* falls into
        for i in range(size, last, -1):
            times[i] = times[i - 1]
            free[i] = free[i - 1]
        times[last] = end
        free[last] = free[last - 1] - cores
        size += 1
    if free[last] == free[last - 1]:
        for i in range(last, size - 1):
            times[i] = times[i + 1]
            free[i] = free[i + 1]
        size -= 1
    if first > 0 and free[first] == free[first - 1]:
        for i in range(first, size - 1):
            times[i] = times[i + 1]
            free[i] = free[i + 1]
        size -= 1
    return size


@lean
def fits(times, free, size, cores, duration):  # type: ignore[no-untyped-def]
    """Whether *cores* are free from the beginning of the profile for *duration*."""
    end = times[0] + duration
    i = 0
    while i < size and times[i] < end:
        if free[i] < cores:
            return False
        i += 1
    return True


@lean
def falls(times, free, size, low, when, least):  # type: ignore[no-untyped-def]
    """Write down the blocks that have fewer free cores than *low* and all before: when, and how many; their number."""
    count = 0
    for i in range(size):
        if free[i] < low:
            low = free[i]
            when[count], least[count] = times[i], low
            count += 1
    return count


@phase
def fits_before(when, least, count, cores, end):  # type: ignore[no-untyped-def]
    """What `fits` says of at most *low* cores until *end*, by what `falls` has written down."""
    i = 0
    while i < count and when[i] < end and least[i] >= cores:
        i += 1
    return i == count or when[i] >= end


@lean
def earliest(times, free, size, cores, duration):  # type: ignore[no-untyped-def]
    """First instant from which *cores* stay free for *duration*; holes are used.

    Only the present and instants where free cores rise can be answers. The last block must hold the job.
    """
    candidate = times[0]
    for i in range(size - 1):
        if free[i] < cores:
            candidate = times[i + 1]
        elif times[i + 1] - candidate >= duration:
            return candidate
    return candidate


@lean
def earliest_from(times, free, size, cores, duration, begin):  # type: ignore[no-untyped-def]
    """The same from *begin* on (at or after the present): what is known to be no earlier need not be searched."""
    i = block_at(times, size, begin)
    candidate = begin
    while i + 1 < size:
        if free[i] < cores:
            candidate = times[i + 1]
        elif times[i + 1] - candidate >= duration:
            return candidate
        i += 1
    return candidate


@lean
def earlier(times, free, size, cores, duration, planned, frontier):  # type: ignore[no-untyped-def]
    """Where a job planned at *planned* could start, its own place in the profile counted as free for itself.

    A search from the present that ends at the job's own place: a stretch that reaches *planned* goes on through the
    place itself. Returns *planned* when nothing earlier is found before *frontier*: the end of all that was given back
    since the plan was last left-shifted (a job that overlaps none of it cannot move).
    """
    candidate = times[0]
    for i in range(size):
        if times[i] >= planned:
            return candidate
        if free[i] < cores:
            if i + 1 == size or times[i + 1] >= planned or times[i + 1] >= frontier:
                return planned
            candidate = times[i + 1]
        elif i + 1 < size and times[i + 1] - candidate >= duration:
            return candidate
    return candidate


@compiled
def only_running(times, free, now, running, expected, cores, total):  # type: ignore[no-untyped-def]
    """Make the profile of the running requests alone, each until its expected end; returns its size."""
    times[0], free[0] = now, total
    for row in running:
        if expected[row] > now:
            free[0] -= cores[row]
    size = 1
    for k in np.argsort(expected[running]):
        row = running[k]
        if expected[row] <= now:
            continue
        if expected[row] > times[size - 1]:
            times[size], free[size] = expected[row], free[size - 1]
            size += 1
        free[size - 1] += cores[row]
    return size
