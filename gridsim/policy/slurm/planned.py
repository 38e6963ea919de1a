"""Which nodes a backfill pass has planned for jobs to come, interval by interval.

Sources: sinfo(1), state PLANNED ("the node is planned by the backfill scheduler for a higher priority job": whole
nodes); slurm.conf(5), ``bf_resolution``. That plans begin and end at whole multiples of it, and when a job that does
not fit is looked at again, is what a real Slurm 22.05 wrote into its log (``DebugFlags=BackfillMap``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.nodes import WORD
from gridsim.profile.compiled import compiled, lean

__all__ = ["Plan", "empty_plan", "is_clear", "keep_clear", "next_opening", "reserve"]


class Plan(NamedTuple):
    """Intervals of time, one after the other, in which the same nodes are planned; the first one is row 0.

    Attributes
    ----------
    begin, end, after : (r,) int64
        Whole microseconds, and the row of the next interval; -1 for the last one, which has no end.
    taken : (r, w) int64
        The nodes that are planned, a bit each, as `gridsim.policy.slurm.nodes.NodeColumns.packed` has them.
    rows : (1,) int64
        How many rows were ever used.
    """

    begin: IntArray
    end: IntArray
    after: IntArray
    taken: IntArray
    rows: IntArray


@compiled
def empty_plan(begin, nodes):  # type: ignore[no-untyped-def]
    """Nothing is planned, from an instant on."""
    plan = _space(32, -(-nodes // WORD))
    plan.begin[0], plan.end[0], plan.after[0], plan.rows[0] = begin, NEVER, -1, 1
    return plan


@compiled
def _space(rows, words):  # type: ignore[no-untyped-def]
    return Plan(
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros((rows, words), np.int64),
        np.zeros(1, np.int64),
    )


@compiled
def _bits(used, chosen, words):  # type: ignore[no-untyped-def]
    """The first *used* of the nodes *chosen*."""
    bits = np.zeros(words, np.int64)
    for place in range(used):
        bits[chosen[place] // WORD] |= 1 << (chosen[place] % WORD)
    return bits


@compiled
def reserve(begin, end, used, chosen, plan):  # type: ignore[no-untyped-def]
    """Plan the first *used* of the nodes *chosen*; the plan with room for the next ones."""
    words = plan.taken.shape[1]
    if plan.rows[0] + 2 > len(plan.begin):
        wider = _space(2 * len(plan.begin), words)
        for old in range(plan.rows[0]):  # not a slice at once: the compiler takes a second for each
            wider.begin[old], wider.end[old], wider.after[old] = plan.begin[old], plan.end[old], plan.after[old]
            for word in range(words):
                wider.taken[old, word] = plan.taken[old, word]
        wider.rows[0] = plan.rows[0]
        plan = wider
    _divide(begin, plan)
    _divide(end, plan)
    bits, row = _bits(used, chosen, words), 0
    while row >= 0:
        if plan.begin[row] >= begin and plan.end[row] <= end:
            for word in range(words):
                plan.taken[row, word] |= bits[word]
        row = plan.after[row]
    row = 0
    while plan.after[row] >= 0:
        following = plan.after[row]
        if plan.begin[following] <= end and _equal(row, following, plan):
            plan.end[row], plan.after[row] = plan.end[following], plan.after[following]
        else:
            row = following
    return plan


@lean
def _divide(time, plan):  # type: ignore[no-untyped-def]
    """Make two of the interval that holds an instant."""
    row = 0
    while row >= 0:
        if plan.begin[row] < time < plan.end[row]:
            new = plan.rows[0]
            plan.rows[0] += 1
            plan.begin[new], plan.end[new], plan.after[new] = time, plan.end[row], plan.after[row]
            for word in range(plan.taken.shape[1]):
                plan.taken[new, word] = plan.taken[row, word]
            plan.end[row], plan.after[row] = time, new
            return
        row = plan.after[row]


@lean
def _equal(row, other, plan):  # type: ignore[no-untyped-def]
    for word in range(plan.taken.shape[1]):  # noqa: SIM110 (compiled)
        if plan.taken[row, word] != plan.taken[other, word]:
            return False
    return True


@lean
def keep_clear(start, end, member, plan, mask, clear):  # type: ignore[no-untyped-def]
    """Take nodes out of *mask* that are planned at any time from *start* to *end*, that included.

    Those of a group (*member*, bits) that are left are *clear*, bits too.
    """
    begins, ends, after, taken, _ = plan
    words, row = len(clear), 0
    for word in range(words):
        clear[word] = member[word]
    while row >= 0 and begins[row] <= end:
        if ends[row] > start:
            for word in range(words):
                clear[word] &= ~taken[row, word]
        row = after[row]
    for word in range(words):
        if clear[word] != member[word]:
            for node in range(word * WORD, min((word + 1) * WORD, len(mask))):
                if not clear[word] >> (node % WORD) & 1:
                    mask[node] = 0


@compiled
def is_clear(start, end, used, chosen, plan):  # type: ignore[no-untyped-def]
    """Whether none of the nodes chosen is planned at any time from *start* to *end*, that not included."""
    begins, ends, after, taken, _ = plan
    bits, row = _bits(used, chosen, taken.shape[1]), 0
    while row >= 0 and begins[row] < end:
        if ends[row] > start:
            for word in range(len(bits)):
                if taken[row, word] & bits[word]:
                    return False
        row = after[row]
    return True


@lean
def next_opening(start, end, member, plan):  # type: ignore[no-untyped-def]
    """When to look again at a job that does not fit from *start* to *end*; `NEVER` where it is left out of the plan.

    At the first end of an interval after which nodes of its partition (*member*, bits) are free that were planned
    within it. Of the intervals after *end*, only the first one is looked at.
    """
    begins, ends, after, taken, _ = plan
    row = 0
    while after[row] >= 0:
        following = after[row]
        if ends[row] > start:
            for word in range(len(member)):
                if member[word] & taken[row, word] & ~taken[following, word]:
                    return ends[row]
            if begins[row] > end:
                return NEVER
        row = following
    return NEVER
