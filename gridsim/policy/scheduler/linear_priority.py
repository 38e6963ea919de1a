"""Linear priority: request ``r`` has the key ``(t + lines[0, r]) / lines[1, r]`` at time ``t``, largest first.

Keys are compared exactly. The queue is not sorted: requests are in slots, slots in blocks, and each block stores its
first request and the instant until which no other request of the block can pass it. A cycle looks at the blocks, and
into those that have changed or expired: the time for each start is proportional to the number of blocks.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.queue_order import HEAD, TAIL, before
from gridsim.machine.running_set import available_now, begin_running, end_running
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.scheduler.list_cycle import CORES, ESTIMATE, JOB, PLACE, QUEUE, READY

BLOCK = 64
"""Slots in a block."""

_EMPTY = -1
_USED, _SPARE = 0, 1
_EXPIRED = -1


class Slots(NamedTuple):
    """Waiting requests in slots, slots in blocks.

    Attributes
    ----------
    lines : (2, n) int64
        The line of each request.
    rows, where : (n,) int64
        Request in each slot, or `_EMPTY`; slot of each request.
    spare : (n,) int64
        A stack of empty slots.
    firsts, expiry : (blocks,) int64
        First request of each block, and the instant from which it may not be that.
    counts : (2,) int64
        How many slots have been used, and how many are spare.
    """

    lines: IntArray
    rows: IntArray
    where: IntArray
    spare: IntArray
    firsts: IntArray
    expiry: IntArray
    counts: IntArray


@njit_noalloc
def product(one, other):  # type: ignore[no-untyped-def]
    """Product of two whole numbers from 0 as (upper, lower) 64 bits."""
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    a, b = np.uint64(one), np.uint64(other)
    a_low, a_high, b_low, b_high = a & mask, a >> shift, b & mask, b >> shift
    low = a_low * b_low
    middle = a_high * b_low + (low >> shift)
    carry = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> shift) + (carry >> shift), (carry << shift) | (low & mask)


@njit_noalloc
def larger(one, below_one, other, below_other):  # type: ignore[no-untyped-def]
    """Whether ``one / below_one > other / below_other``, exactly; all whole numbers, the lower ones above 0.

    Floats decide unless they agree within a relative 2^-50, where products of 128 bits do.
    """
    left, right = one / below_one, other / below_other
    if abs(left - right) > max(left, right) * 2.0**-50:
        return left > right
    left_high, left_low = product(one, below_other)
    right_high, right_low = product(other, below_one)
    return left_high > right_high or (left_high == right_high and left_low > right_low)


@njit_noalloc
def sort_linear(now, table, lines, head, tail):  # type: ignore[no-untyped-def]
    """Put the whole queue into the order of its lines at *now*, largest ``(now + lines[0]) / lines[1]`` first."""
    waiting = table[QUEUE]
    stride = 1
    while stride * 3 + 1 < tail - head:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(head + stride, tail):
            row = waiting[k]
            i = k
            while i - stride >= head and precedes(now, table, lines, row, waiting[i - stride]):
                waiting[i] = waiting[i - stride]
                i -= stride
            waiting[i] = row
        stride //= 3


@njit_noalloc
def precedes(now, table, lines, one, other):  # type: ignore[no-untyped-def]
    """Whether a request has the larger line at *now*; ties by job order, ready time, task index."""
    if larger(now + lines[0, one], lines[1, one], now + lines[0, other], lines[1, other]):
        return True
    if larger(now + lines[0, other], lines[1, other], now + lines[0, one], lines[1, one]):
        return False
    return before(table[PLACE], table[JOB : READY + 1], one, other)


@njit_noalloc
def strict_linear(now, ended, tail, table, running, moves, meta, queue):  # type: ignore[no-untyped-def]
    """A cycle in which none passes: start the request of the largest line while it fits; return how many started.

    *queue* is `Slots` as a plain tuple.
    """
    slots = Slots(*queue)
    for k in range(ended):
        end_running(running, meta, moves[1, k], table[CORES, moves[1, k]])
    for k in range(meta[TAIL], tail):
        enter_slot(now, table, slots, table[QUEUE, k])
    meta[TAIL] = tail
    available = available_now(now, running, meta, table[CORES])
    count = 0
    while available > 0 and meta[HEAD] < tail:
        row = first_of_all(now, table, slots)
        need = table[CORES, row]
        if need > available:
            break
        _empty_slot(slots.where[row], slots)
        meta[HEAD] += 1
        moves[0, count] = row
        count += 1
        available -= need
        begin_running(running, meta, row, now + table[ESTIMATE, row], need)
    return count


@inline
def _empty_slot(slot, slots):  # type: ignore[no-untyped-def]
    """Take a request out of its slot; its block has to be looked into again."""
    slots.rows[slot] = _EMPTY
    slots.spare[slots.counts[_SPARE]] = slot
    slots.counts[_SPARE] += 1
    slots.expiry[slot // BLOCK] = _EXPIRED


@njit_noalloc
def enter_slot(now, table, slots, row):  # type: ignore[no-untyped-def]
    """Put a request into an empty slot, and into its block's knowledge."""
    lines, firsts, expiry, counts = slots.lines, slots.firsts, slots.expiry, slots.counts
    if counts[_SPARE]:
        counts[_SPARE] -= 1
        slot = slots.spare[counts[_SPARE]]
    else:
        slot = counts[_USED]
        counts[_USED] += 1
    slots.rows[slot], slots.where[row] = row, slot
    block = slot // BLOCK
    if slot % BLOCK == 0 and expiry[block] == NEVER:  # the first of a new block
        firsts[block] = _EMPTY
    if expiry[block] <= now:
        return
    first = firsts[block]
    if first == _EMPTY or precedes(now, table, lines, row, first):
        expiry[block] = _EXPIRED
    else:
        expiry[block] = min(expiry[block], overtakes(lines, row, first))


@njit_noalloc
def first_of_all(now, table, slots):  # type: ignore[no-untyped-def]
    """The request of the largest line at *now*; there is one."""
    best = _EMPTY
    for block in range((slots.counts[_USED] + BLOCK - 1) // BLOCK):
        if slots.expiry[block] <= now:
            look_into(now, table, slots.lines, slots.rows, slots.firsts, slots.expiry, block)
        first = slots.firsts[block]
        if first != _EMPTY and (best == _EMPTY or precedes(now, table, slots.lines, first, best)):
            best = first
    return best


@njit_noalloc
def look_into(now, table, lines, slots, firsts, expiry, block):  # type: ignore[no-untyped-def]
    """Find the first request of a block, and until when it stays that."""
    best = _EMPTY
    begin = block * BLOCK
    end = min(begin + BLOCK, slots.shape[0])
    for slot in range(begin, end):
        row = slots[slot]
        if row != _EMPTY and (best == _EMPTY or precedes(now, table, lines, row, best)):
            best = row
    firsts[block] = best
    until = NEVER
    if best != _EMPTY:
        for slot in range(begin, end):
            row = slots[slot]
            if row != _EMPTY and row != best:
                until = min(until, overtakes(lines, row, best))
    expiry[block] = max(until, now + 1)


@njit_noalloc
def overtakes(lines, row, first):  # type: ignore[no-untyped-def]
    """An instant before which a request does not pass the first of its block: the crossing of two lines, rounded down.

    Lines of less slope never pass. The margin covers the rounding of the products.
    """
    steeper = lines[1, first] - lines[1, row]
    if steeper <= 0:
        return NEVER
    left = float(lines[0, first]) * float(lines[1, row])
    right = float(lines[0, row]) * float(lines[1, first])
    crossing = (left - right - (abs(left) + abs(right)) * 2.0**-50) / steeper - 1.0
    if crossing >= float(NEVER):
        return NEVER
    return int(max(crossing, 0.0))
