"""Blocks of time: what is free over time, in one width and in many, and the compiled loops over it.

Block ``i`` is ``[times[i], times[i + 1])`` and has ``free[i]``, the last block has no end, neighbours differ,
``times[0]`` is the present. ``free`` is a column, (m,) int64, of one resource, such as the cores of a pool; or a row a
block, (m, k) int64, a column a resource, a node's resource or a set of nodes. An amount is a number, or (k,). Times are
whole microseconds. The caller provides room: a change adds at most two blocks.
``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled.

One source serves both widths, at no cost to either: where the number of dimensions is asked for, the compiler knows it
and leaves the other way out.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc

# -- one block: the only places where the width matters ---------------------------------------------------------------


@njit_noalloc
def copied(free, source, target):  # type: ignore[no-untyped-def]
    """Let one block have what another one has."""
    if free.ndim == 1:
        free[target] = free[source]
    else:
        for k in range(free.shape[1]):
            free[target, k] = free[source, k]


@njit_noalloc
def put(free, at, amount):  # type: ignore[no-untyped-def]
    """Let a block have an amount."""
    if free.ndim == 1:
        free[at] = amount
    else:
        for k in range(free.shape[1]):
            free[at, k] = amount[k]


@njit_noalloc
def add(free, at, amount, sign):  # type: ignore[no-untyped-def]
    """Add *sign* times an amount to a block."""
    if free.ndim == 1:
        free[at] += sign * amount
    else:
        for k in range(free.shape[1]):
            free[at, k] += sign * amount[k]


@njit_noalloc
def _equal(free, one, other):  # type: ignore[no-untyped-def]
    if free.ndim == 1:
        return free[one] == free[other]
    else:  # noqa: RET505 (which of them is compiled depends on this)
        k, width = 0, free.shape[1]
        while k < width and free[one, k] == free[other, k]:
            k += 1
        return k == width


@njit_noalloc
def _becomes(free, one, other, amount, sign):  # type: ignore[no-untyped-def]
    """Whether a block is equal to another one, once *sign* times an amount has been added to it."""
    if free.ndim == 1:
        return free[one] + sign * amount == free[other]
    else:  # noqa: RET505 (which of them is compiled depends on this)
        k, width = 0, free.shape[1]
        while k < width and free[one, k] + sign * amount[k] == free[other, k]:
            k += 1
        return k == width


@njit_noalloc
def _nothing(free, amount):  # type: ignore[no-untyped-def]
    """Whether an amount is nothing of anything."""
    if free.ndim == 1:
        return amount == 0
    else:  # noqa: RET505 (which of them is compiled depends on this)
        k, width = 0, free.shape[1]
        while k < width and amount[k] == 0:
            k += 1
        return k == width


@njit_noalloc
def enough(free, at, amount):  # type: ignore[no-untyped-def]
    """Whether a block has an amount."""
    if free.ndim == 1:
        return free[at] >= amount
    else:  # noqa: RET505 (which of them is compiled depends on this)
        k, width = 0, free.shape[1]
        while k < width and free[at, k] >= amount[k]:
            k += 1
        return k == width


# -- changing ---------------------------------------------------------------------------------------------------------


@njit_noalloc
def block_at(times, size, instant):  # type: ignore[no-untyped-def]
    """Index of the block that holds *instant*, the first one for what lies before it; by bisection."""
    return _bisected(times, 0, size, instant)


@njit_noalloc
def _bisected(times, low, high, instant):  # type: ignore[no-untyped-def]
    """The same among the blocks ``[low, high)``."""
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] <= instant:
            low = middle
        else:
            high = middle
    return low


@njit_noalloc
def _block_from(times, low, size, instant):  # type: ignore[no-untyped-def]
    """The same among the blocks from *low* on, near to which it often is: in steps that double, then bisected."""
    step = 1
    while low + step < size and times[low + step] <= instant:
        low += step
        step *= 2
    return _bisected(times, low, min(low + step, size), instant)


@njit_noalloc
def forget(times, free, size, now):  # type: ignore[no-untyped-def]
    """Forget the past: the blocks begin at *now*; their new number."""
    passed = 0
    while passed + 1 < size and times[passed + 1] <= now:
        passed += 1
    if passed:
        _sooner(times, free, passed, size, passed)
    if times[0] < now:
        times[0] = now
    return size - passed


@inline
def _doubled(times, free, size, at, instant):  # type: ignore[no-untyped-def]
    """Let a new block, equal to the one before it, stand at a place and begin at an instant."""
    _later(times, free, at, size)
    times[at] = instant
    copied(free, at - 1, at)


@inline
def opened(times, free, size, instant):  # type: ignore[no-untyped-def]
    """Let a block begin at an instant; its index, 0 for one that lies before all, and the new number of blocks."""
    at = block_at(times, size, instant)
    if times[at] >= instant:
        return at, size
    _doubled(times, free, size, at + 1, instant)
    return at + 1, size + 1


@inline
def joined(times, free, size, at):  # type: ignore[no-untyped-def]
    """Let a block go that is equal to the one before it; the new number of blocks."""
    if at == 0 or not _equal(free, at - 1, at):
        return size
    _sooner(times, free, at + 1, size, 1)
    return size - 1


@njit_noalloc
def _later(times, free, begin, end):  # type: ignore[no-untyped-def]
    """Let blocks ``[begin, end)`` stand one place later.

    Places are unsigned where many blocks are touched: the compiler need not ask whether one counts from the end, and
    moves several at once (600 blocks in 0.17 µs in place of 1.4).
    """
    first, one = np.uint64(begin), np.uint64(1)
    i = np.uint64(end)
    while i > first:
        times[i] = times[i - one]
        i -= one
    i = np.uint64(end)
    while i > first:
        copied(free, i - one, i)
        i -= one


@njit_noalloc
def _sooner(times, free, begin, end, places):  # type: ignore[no-untyped-def]
    """Let blocks ``[begin, end)`` stand so many places sooner."""
    last, one, by = np.uint64(end), np.uint64(1), np.uint64(places)
    i = np.uint64(begin)
    while i < last:
        times[i - by] = times[i]
        i += one
    i = np.uint64(begin)
    while i < last:
        copied(free, i, i - by)
        i += one


@njit_noalloc
def _add_to_all(free, begin, end, amount, sign):  # type: ignore[no-untyped-def]
    """Add *sign* times an amount to blocks ``[begin, end)``."""
    i, last, one = np.uint64(begin), np.uint64(end), np.uint64(1)
    while i < last:
        add(free, i, amount, sign)
        i += one


@njit_noalloc
def change(times, free, size, start, end, amount, sign):  # type: ignore[no-untyped-def]
    """Add *sign* (1 or -1) times an amount to what is free in ``[start, end)``; the new number of blocks.

    Neighbours that become equal are joined, so the number of blocks stays about twice the number of jobs. Blocks before
    *end* move by a place where one begins or goes at *start*, and those behind it by what both ends leave over: often
    not at all, and a short change does not touch the many blocks of a long queue.
    """
    if end <= start or end <= times[0] or _nothing(free, amount):
        return size
    at = block_at(times, size, start)
    opens = int(times[at] < start)
    joins = int(at > 0 and not opens and _becomes(free, at, at - 1, amount, sign))
    last = _block_from(times, at, size, end - 1) + 1
    closes = int(last == size or times[last] > end)
    meets = int(not closes and _becomes(free, last - 1, last, amount, sign))
    middle, behind = opens - joins, opens - joins + closes - meets
    for k in range(behind):
        _later(times, free, last + meets + k, size + k)
    if middle > 0:
        _later(times, free, at, last)
        times[at + 1] = start
    elif middle < 0:
        _sooner(times, free, at + 1, last, 1)
    if behind < 0:
        _sooner(times, free, last + meets, size, -behind)
    last += middle
    _add_to_all(free, at + opens, last, amount, sign)
    if closes:
        times[last] = end
        copied(free, last - 1, last)
        add(free, last, amount, -sign)
    return size + behind


@njit_noalloc
def move(times, free, size, old, new, duration, amount):  # type: ignore[no-untyped-def]
    """Let an amount that is taken for *duration* from *old* on be taken from *new* on, which is earlier.

    What both have in common is not touched. Returns the new number of blocks.
    """
    size = change(times, free, size, new, min(new + duration, old), amount, -1)
    return change(times, free, size, max(new + duration, old), old + duration, amount, 1)


@inline
def reserve(times, free, size, start, end, amount):  # type: ignore[no-untyped-def]
    """Take an amount in ``[start, end)``; the new number of blocks."""
    return change(times, free, size, start, end, amount, -1)


@inline
def release(times, free, size, start, end, amount):  # type: ignore[no-untyped-def]
    """Give an amount back in ``[start, end)``; the new number of blocks."""
    return change(times, free, size, start, end, amount, 1)


# -- searching --------------------------------------------------------------------------------------------------------


@njit_noalloc
def fits(times, free, size, amount, duration):  # type: ignore[no-untyped-def]
    """Whether an amount is free from the beginning for *duration*."""
    end = times[0] + duration
    i = 0
    while i < size and times[i] < end:
        if not enough(free, i, amount):
            return False
        i += 1
    return True


@njit_noalloc
def falls(times, free, size, low, when, least):  # type: ignore[no-untyped-def]
    """Write down the blocks that have fewer free cores than *low* and all before: when, and how many; their number."""
    count = 0
    for i in range(size):
        if free[i] < low:
            low = free[i]
            when[count], least[count] = times[i], low
            count += 1
    return count


@inline
def fits_before(when, least, count, cores, end):  # type: ignore[no-untyped-def]
    """What `fits` says of at most *low* cores until *end*, by what `falls` has written down."""
    i = 0
    while i < count and when[i] < end and least[i] >= cores:
        i += 1
    return i == count or when[i] >= end


@njit_noalloc
def earliest(times, free, size, amount, duration):  # type: ignore[no-untyped-def]
    """First instant from which an amount stays free for *duration*; holes are used.

    Only the present and instants where what is free rises can be answers. The last block must hold the job.
    """
    candidate = times[0]
    for i in range(size - 1):
        if not enough(free, i, amount):
            candidate = times[i + 1]
        elif times[i + 1] - candidate >= duration:
            return candidate
    return candidate


@njit_noalloc
def earliest_from(times, free, size, amount, duration, begin):  # type: ignore[no-untyped-def]
    """The same from *begin* on (at or after the present): what is known to be no earlier need not be searched."""
    i = block_at(times, size, begin)
    candidate = begin
    while i + 1 < size:
        if not enough(free, i, amount):
            candidate = times[i + 1]
        elif times[i + 1] - candidate >= duration:
            return candidate
        i += 1
    return candidate


@njit_noalloc
def latest(times, free, size, amount, duration, last):  # type: ignore[no-untyped-def]
    """Last instant up to *last* from which an amount stays free for *duration*; -1 where there is none.

    Only *last* itself and instants that end where too little is free can be answers.
    """
    candidate = last
    i = block_at(times, size, last + duration - 1)
    while candidate >= times[0]:
        if not enough(free, i, amount):
            candidate = times[i] - duration
        elif times[i] <= candidate:
            return candidate
        i -= 1
    return -1


@njit_noalloc
def lowest(times, free, size, start, end):  # type: ignore[no-untyped-def]
    """The least that is free, of one resource, within ``[start, end)``; for no time what is free at its start."""
    i = block_at(times, size, start)
    low = free[i]
    while i < size and times[i] < end:
        low = min(low, free[i])
        i += 1
    return low


@njit_noalloc
def short_within(times, free, size, amount, start, end):  # type: ignore[no-untyped-def]
    """Whether a block within ``[start, end)`` has less than an amount."""
    i = block_at(times, size, start)
    while i < size and times[i] < end:
        if not enough(free, i, amount):
            return True
        i += 1
    return False


@njit_noalloc
def earlier(times, free, size, amount, duration, planned, frontier, begin):  # type: ignore[no-untyped-def]
    """Where a job planned at *planned* could start, its own place in the profile counted as free for itself.

    A search from *begin* (the present, or what the answer is known to be no earlier than) that ends at the job's own
    place: a stretch that reaches *planned* goes on through the place itself. Returns *planned* when nothing earlier is
    found before *frontier*: the end of all that was given back since the plan was last left-shifted (a job that
    overlaps none of it cannot move).
    """
    candidate = begin
    for i in range(block_at(times, size, begin) if begin > times[0] else 0, size):
        if times[i] >= planned:
            return candidate
        if not enough(free, i, amount):
            if i + 1 == size or times[i + 1] >= planned or times[i + 1] >= frontier:
                return planned
            candidate = times[i + 1]
        elif i + 1 < size and times[i + 1] - candidate >= duration:
            return candidate
    return candidate
