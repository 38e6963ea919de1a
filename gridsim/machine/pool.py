"""A machine of one amount, such as cores, or of several that are independent of one another: pools without nodes.

One source serves both. The compiler knows the number of dimensions of an array where the array is an argument of a
function, so the small functions below have arrays as arguments.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

from gridsim.machine import verbs
from gridsim.machine.blocks import add, copied, earliest, enough, falls, fits, fits_before
from gridsim.machine.blocks import reserve as reserve_block
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import HELD, RUNNING, TOTAL, available_now, running_profile
from gridsim.model.time import IntArray

CAPACITY, AVAILABLE = range(2)
"""Rows of amounts: the total, for several amounts only; the free amount in a cycle, in which requests past their
expected end hold nothing."""

BLOCKS, DIPS = range(TAIL + 1, TAIL + 3)
"""Counts of a cycle: blocks of the profile, 0 while there is none; number of new minima of the profile."""

TIMES, _WHEN, _LEAST = range(3)


class Pool(NamedTuple):
    """Free amounts now, and over time in a scheduling cycle.

    Attributes
    ----------
    need : (n,) or (n, p) int64
        Amounts that each request requests.
    idle : (2,) or (2, p) int64
        Total amounts, and the free ones.
    blocks : (3, m) int64
        Times of the profile; times of new minima of one amount, and their values.
    free : (m,) or (m, p) int64
        Free amounts of the profile.
    running, counts : (2, busy), (k,) int64
        See `gridsim.machine.running_set`: these requests hold all amounts that are not free.
    """

    need: IntArray
    idle: IntArray
    blocks: IntArray
    free: IntArray
    running: IntArray
    counts: IntArray


class PoolProfile(NamedTuple):
    """Free cores over time in the first *size* blocks; see `gridsim.machine.blocks`."""

    times: IntArray
    free: IntArray
    size: int


@verbs.open_cycle.register(Pool)
def open_cycle_in_pool(machine, now):  # type: ignore[no-untyped-def]
    _open(now, machine.need, machine.idle, machine.running, machine.counts)


@njit_noalloc
def _open(now, needs, idle, running, counts):  # type: ignore[no-untyped-def]
    counts[BLOCKS] = counts[DIPS] = 0
    if needs.ndim == 1:
        idle[AVAILABLE] = available_now(now, running, counts, needs)
    else:
        copied(idle, CAPACITY, AVAILABLE)
        i = counts[RUNNING] - 1
        while i >= 0 and running[0, i] > now:
            add(idle, AVAILABLE, needs[running[1, i]], -1)
            i -= 1


@verbs.resume_cycle.register(Pool)
def resume_cycle_in_pool(machine, now):  # type: ignore[no-untyped-def]
    machine.blocks[TIMES, 0] = now  # the first block extends to the next expected end


@verbs.keeps_reservations.register(Pool)
def keeps_reservations_in_pool(machine):  # type: ignore[no-untyped-def]
    return True


@verbs.is_full.register(Pool)
def is_full_in_pool(machine):  # type: ignore[no-untyped-def]
    return _is_none_left(machine.idle)


@njit_noalloc
def _is_none_left(idle):  # type: ignore[no-untyped-def]
    if idle.ndim == 1:
        return idle[AVAILABLE] <= 0
    else:  # noqa: RET505 (the compiler keeps one branch)
        return False


@verbs.nothing_fits.register(Pool)
def nothing_fits_in_pool(machine, now, waiting):  # type: ignore[no-untyped-def]
    return is_too_full(now, machine.need, waiting, machine.running, machine.counts)


@njit_noalloc
def is_too_full(now, needs, waiting, running, counts):  # type: ignore[no-untyped-def]
    """Return whether the smallest waiting request needs more than is free; False if there are several amounts."""
    if needs.ndim == 1:
        if counts[RUNNING] and running[0, 0] <= now:
            return False
        least = counts[TOTAL] + 1
        for k in range(counts[HEAD], counts[TAIL]):
            least = min(least, needs[waiting[k]])
        return least > counts[TOTAL] - counts[HELD]
    else:  # noqa: RET505 (the compiler keeps one branch)
        return False


@verbs.fits_now.register(Pool)
def fits_now_in_pool(machine, now, row):  # type: ignore[no-untyped-def]
    return enough(machine.idle, AVAILABLE, machine.need[row])


@verbs.fits_until.register(Pool)
def fits_until_in_pool(machine, now, row, duration):  # type: ignore[no-untyped-def]
    return _fits_until(now, machine.blocks, machine.free, machine.counts, machine.need[row], duration)


@njit_noalloc
def _fits_until(now, blocks, free, counts, need, duration):  # type: ignore[no-untyped-def]
    if free.ndim == 1:
        return fits_before(blocks[_WHEN], blocks[_LEAST], counts[DIPS], need, now + duration)
    else:  # noqa: RET505 (the compiler keeps one branch)
        return counts[BLOCKS] == 0 or fits(blocks[TIMES], free, counts[BLOCKS], need, duration)


@verbs.reserve.register(Pool)
def reserve_in_pool(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    needs, idle, blocks, free, running, counts = machine
    _reserve(now, needs, idle, blocks, free, running, counts, needs[row], duration, more)
    return 0


@njit_noalloc
def _reserve(now, needs, idle, blocks, free, running, counts, need, duration, more):  # type: ignore[no-untyped-def]
    times = blocks[TIMES]
    if free.ndim == 1:  # noqa: SIM102 (the compiler keeps one branch)
        if counts[BLOCKS] == 0 and not more:
            _reserve_only(now, needs, idle, blocks, running, counts, need)
            return
    if counts[BLOCKS] == 0:
        counts[BLOCKS] = running_profile(now, idle[AVAILABLE], running, counts, needs, times, free)
    begin = earliest(times, free, counts[BLOCKS], need, duration)
    counts[BLOCKS] = reserve_block(times, free, counts[BLOCKS], begin, begin + duration, need)
    if free.ndim == 1:
        counts[DIPS] = falls(times, free, counts[BLOCKS], idle[AVAILABLE], blocks[_WHEN], blocks[_LEAST])


@njit_noalloc
def _reserve_only(now, needs, idle, blocks, running, counts, need):  # type: ignore[no-untyped-def]
    """Make the only reservation of a cycle: free amounts only rise until then, so that two numbers suffice."""
    available, i = idle[AVAILABLE], 0
    while i < counts[RUNNING] and running[0, i] <= now:
        i += 1
    begin, there = now, available
    while i < counts[RUNNING] and (there < need or running[0, i] == begin):
        begin = running[0, i]
        there += needs[running[1, i]]
        i += 1
    blocks[_WHEN, 0], blocks[_LEAST, 0] = begin, there - need
    counts[DIPS] = int(there - need < available)


@verbs.start.register(Pool)
def start_in_pool(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    _start(now, machine.idle, machine.blocks, machine.free, machine.counts, machine.need[row], duration, more)
    return 0


@njit_noalloc
def _start(now, idle, blocks, free, counts, need, duration, more):  # type: ignore[no-untyped-def]
    times, when, least = blocks[TIMES], blocks[_WHEN], blocks[_LEAST]
    add(idle, AVAILABLE, need, -1)
    if free.ndim == 1:
        if counts[BLOCKS] and more:
            counts[BLOCKS] = reserve_block(times, free, counts[BLOCKS], now, now + duration, need)
        count, below = 0, idle[AVAILABLE]
        for k in range(counts[DIPS]):
            amount = least[k] - need if when[k] < now + duration else least[k]
            if amount < below:
                when[count], least[count] = when[k], amount
                below = amount
                count += 1
        counts[DIPS] = count
    elif counts[BLOCKS]:
        counts[BLOCKS] = reserve_block(times, free, counts[BLOCKS], now, now + duration, need)


@verbs.open_profile.register(Pool)
def open_profile_of_pool(machine, now):  # type: ignore[no-untyped-def]
    needs, idle, blocks, free, running, counts = machine
    _open(now, needs, idle, running, counts)
    counts[BLOCKS] = running_profile(now, idle[AVAILABLE], running, counts, needs, blocks[TIMES], free)


@verbs.reserve_on.register(Pool)
def reserve_on_in_pool(machine, now, row, cores, begin, duration):  # type: ignore[no-untyped-def]
    times, counts = machine.blocks[TIMES], machine.counts
    counts[BLOCKS] = reserve_block(times, machine.free, counts[BLOCKS], begin, begin + duration, cores)
    return 0


@verbs.fits_on.register(PoolProfile)
def fits_on_in_profile(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    return fits(machine.times, machine.free, machine.size, cores, duration)


@verbs.earliest_on.register(PoolProfile)
def earliest_on_in_profile(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    return earliest(machine.times, machine.free, machine.size, cores, duration)
