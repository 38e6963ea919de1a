"""Plan of a backfill cycle: planned nodes by time interval (Slurm's ``node_space``).

Sources: sinfo(1), state PLANNED ("the node is planned by the backfill scheduler for a higher priority job": whole
nodes); slurm.conf(5), ``bf_resolution``. Two rules are taken from the log of a real Slurm 22.05
(``DebugFlags=BackfillMap``): plans begin and end at multiples of the resolution, and the instants at which a job that
does not fit is tried again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.blocks import block_at, joined, opened
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.nodes import WORD


class Plan(NamedTuple):
    """Consecutive time intervals with constant sets of planned nodes: blocks of `gridsim.machine.blocks`.

    Attributes
    ----------
    begin : (r,) int64
        Whole microseconds; each interval ends at the begin of the next, the last one never.
    taken : (r, w) int64
        Planned nodes as bit masks, as in `gridsim.policy.slurm.nodes.NodeColumns.packed`.
    size : (1,) int64
        Number of intervals.
    bits : (w,) int64
        Workspace.
    """

    begin: IntArray
    taken: IntArray
    size: IntArray
    bits: IntArray


def plan_for(reservations: int, nodes: int) -> Plan:
    """Return an empty plan with space for this number of reservations, each of which begins and ends an interval."""
    rows, words = 2 * reservations + 1, -(-nodes // WORD)
    begin, size = np.zeros(rows, np.int64), np.zeros(1, np.int64)
    return Plan(begin, np.zeros((rows, words), np.int64), size, np.zeros(words, np.int64))


@njit_noalloc
def clear_plan(begin, plan):  # type: ignore[no-untyped-def]
    """Clear the plan; it begins at an instant."""
    plan.begin[0], plan.size[0] = begin, 1
    for word in range(plan.taken.shape[1]):
        plan.taken[0, word] = 0


@njit_noalloc
def _put_bits(used, chosen, bits):  # type: ignore[no-untyped-def]
    """Set bits to the first *used* of the nodes *chosen*."""
    for word in range(len(bits)):
        bits[word] = 0
    for place in range(used):
        bits[chosen[place] // WORD] |= 1 << (chosen[place] % WORD)


@njit_noalloc
def reserve(begin, end, used, chosen, plan):  # type: ignore[no-untyped-def]
    """Plan the first *used* of the nodes *chosen* from *begin* to *end*."""
    begins, taken, bits, words, size = plan.begin, plan.taken, plan.bits, plan.taken.shape[1], plan.size[0]
    if end <= begin:
        return
    _put_bits(used, chosen, bits)
    first, size = opened(begins, taken, size, begin)
    last, size = opened(begins, taken, size, end)
    for row in range(first, last):
        for word in range(words):
            taken[row, word] |= bits[word]
    for row in range(last, first, -1):  # nodes may have been planned before, so any neighbours may be equal
        size = joined(begins, taken, size, row)
    plan.size[0] = joined(begins, taken, size, first)


@njit_noalloc
def clear_nodes(start, end, low, high, member, plan, clear):  # type: ignore[no-untyped-def]
    """Find nodes of a group (*member*, bits) without plans from *start* to *end*, inclusive; return their number.

    Sets the words of *clear* from *low* on and before *high*.
    """
    begins, taken, size, _ = plan
    for word in range(low, high):
        clear[word] = member[word]
    row = block_at(begins, size[0], start)
    while row < size[0] and begins[row] <= end:
        for word in range(low, high):
            clear[word] &= ~taken[row, word]
        row += 1
    found = 0
    for word in range(low, high):
        bits = clear[word]  # counted in pairs, fours, eights
        bits -= (bits >> 1) & 0x55555555
        bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
        bits = (bits + (bits >> 4)) & 0x0F0F0F0F
        found += ((bits * 0x01010101) & 0xFFFFFFFF) >> 24
    return found


@njit_noalloc
def keep_clear(low, high, member, mask, clear):  # type: ignore[no-untyped-def]
    """Clear *mask* for nodes of a group (*member*, bits) that are not *clear*, in words from *low* to *high*."""
    for word in range(low, high):
        if clear[word] != member[word]:
            for node in range(word * WORD, min((word + 1) * WORD, len(mask))):
                if not clear[word] >> (node % WORD) & 1:
                    mask[node] = 0


@njit_noalloc
def is_clear(start, end, used, chosen, plan):  # type: ignore[no-untyped-def]
    """Return whether no chosen node is planned from *start* to *end*, exclusive."""
    begins, taken, size, bits = plan
    _put_bits(used, chosen, bits)
    row = block_at(begins, size[0], start)
    while row < size[0] and begins[row] < end:
        for word in range(len(bits)):
            if taken[row, word] & bits[word]:
                return False
        row += 1
    return True


@njit_noalloc
def next_opening(start, end, low, high, member, plan):  # type: ignore[no-untyped-def]
    """Return when a job that does not fit from *start* to *end* is tried again; `NEVER` if it gets no plan.

    This is the first end of an interval after which nodes of its partition (*member*, bits in words from *low* to
    *high*) are free that were planned within it. Of the intervals after *end*, only the first one counts.
    """
    begins, taken, size, _ = plan
    for row in range(block_at(begins, size[0], start), size[0] - 1):
        for word in range(low, high):
            if member[word] & taken[row, word] & ~taken[row + 1, word]:
                return begins[row + 1]
        if begins[row] > end:
            return NEVER
    return NEVER
