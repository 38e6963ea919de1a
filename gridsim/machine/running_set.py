"""Running requests by expected end, for every scheduler, with compiled operations.

- ``running`` (2, busy): expected ends, ascending, and request rows, in ``[0, counts[RUNNING])``; equal ends in order of
  starting.
- ``counts``: `RUNNING`, the number of running requests; `HELD`, the cores they hold; `TOTAL`, all cores. Users of this
  module may add other counts from `OWN` on.

Times are whole microseconds. A request that is past its expected end but not removed holds nothing; this occurs in a
cycle between two events of an instant.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.blocks import add, copied, put
from gridsim.machine.njit import njit_noalloc

RUNNING, HELD, TOTAL, OWN = range(4)


def most_running(cores: int, requests: int) -> int:
    """Return how many of the requests can run at once on the cores.

    A cycle between two events of an instant may start one more request, on cores that another one releases within it.
    """
    return min(2 * cores, requests)


@njit_noalloc
def begin_running(running, counts, row, end, cores):  # type: ignore[no-untyped-def]
    """Add a request to the running ones.

    Indices are unsigned, here and in `end_running`, so that the compiler omits the test for negative indices.
    """
    one, low, high = np.uint64(1), np.uint64(0), np.uint64(counts[RUNNING])
    i = high
    while low < high:
        middle = (low + high) >> one
        if running[0, middle] <= end:
            low = middle + one
        else:
            high = middle
    while i > low:
        running[0, i], running[1, i] = running[0, i - one], running[1, i - one]
        i -= one
    running[0, low] = end
    running[1, low] = row
    counts[RUNNING] += 1
    counts[HELD] += cores


@njit_noalloc
def end_running(running, counts, row, cores):  # type: ignore[no-untyped-def]
    """Remove a request from the running ones; return its expected end, or -1 if it does not run."""
    one, i, count = np.uint64(1), np.uint64(0), np.uint64(counts[RUNNING])
    while i < count and running[1, i] != row:
        i += one
    if i == count:
        return np.int64(-1)
    end = running[0, i]
    counts[RUNNING] -= 1
    counts[HELD] -= cores
    last = np.uint64(counts[RUNNING])
    while i < last:
        running[0, i], running[1, i] = running[0, i + one], running[1, i + one]
        i += one
    return end


@njit_noalloc
def expect_end(running, counts, row, end):  # type: ignore[no-untyped-def]
    """Change the expected end of a running request; among equal ends it becomes the last."""
    i = 0
    while i < counts[RUNNING] and running[1, i] != row:
        i += 1
    if i == counts[RUNNING]:
        return
    while i + 1 < counts[RUNNING] and running[0, i + 1] <= end:
        running[0, i], running[1, i] = running[0, i + 1], running[1, i + 1]
        i += 1
    while i > 0 and running[0, i - 1] > end:
        running[0, i], running[1, i] = running[0, i - 1], running[1, i - 1]
        i -= 1
    running[0, i], running[1, i] = end, row


@njit_noalloc
def available_now(now, running, counts, cores):  # type: ignore[no-untyped-def]
    """Return the free cores; *cores* (n,) are the cores of each request."""
    available = counts[TOTAL] - counts[HELD]
    i = 0
    while i < counts[RUNNING] and running[0, i] <= now:
        available += cores[running[1, i]]
        i += 1
    return available


@njit_noalloc
def running_profile(now, available, running, counts, held, times, free):  # type: ignore[no-untyped-def]
    """Write the free amounts from *now* on with the running requests only; return the number of blocks.

    *available* is the amount free now. *held* (n,) or (n, k) is the amount of each request; see
    `gridsim.machine.blocks` for amounts of one or several resources.
    """
    times[0] = now
    put(free, 0, available)
    size = 1
    for i in range(counts[RUNNING]):
        if running[0, i] <= now:
            continue
        if running[0, i] > times[size - 1]:
            times[size] = running[0, i]
            copied(free, size - 1, size)
            size += 1
        add(free, size - 1, held[running[1, i]], 1)
    return size


@njit_noalloc
def only_running(now, running, counts, cores, times, free):  # type: ignore[no-untyped-def]
    """Write the free cores from *now* on with the running requests only; *cores* (n,) are the cores of each request."""
    available = available_now(now, running, counts, cores)
    return running_profile(now, available, running, counts, cores, times, free)
