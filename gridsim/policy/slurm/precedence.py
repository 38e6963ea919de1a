"""Who comes before whom in the queue.

Sources: slurm.schedmd.com/priority_multifactor.html, "Job Prioritization" ("jobs that can preempt, jobs with an
advanced reservation, partition PriorityTier, job priority, job submit time, job ID"). That the first of these is asked
of each two jobs, and what comes of it where no order suits all of them, is what a real Slurm 22.05 did.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc, records
from gridsim.model.time import IntArray
from gridsim.policy.slurm.nodes import Bytes


class Precedence(NamedTuple):
    """What is looked at.

    Attributes
    ----------
    may : (k, k) uint8
        Whether an entry of one class may preempt one of another (`gridsim.policy.slurm.preemption.Rules`).
    came : (r,) int64
        When each request came, or came back, whole microseconds.
    own : record array
        One row an entry.

        request, kind
            Its request; its class.
        free
            0 where it asks for a reservation, else 1.
        tier, priority
            The tier of its partition, and its priority as last made.
        natural
            Its place in the queue before that is put in order: by request, then higher tiers first.
    """

    may: Bytes
    came: IntArray
    own: Any


def precedence_of(
    may: Bytes, kind: IntArray, request: IntArray, free: IntArray, tier: IntArray, came: IntArray
) -> Precedence:
    """Of entries without priorities."""
    natural = np.empty(len(request), dtype=np.int64)
    natural[np.lexsort((-tier, request))] = np.arange(len(request))
    own = records(
        request=request, kind=kind, free=free, tier=tier, priority=np.zeros(len(request), np.int64), natural=natural
    )
    return Precedence(may, came, own)


def levels_of(may: Bytes, kind: IntArray) -> IntArray | None:
    """The level of each entry, where those of each level may preempt all of those below it and nobody else.

    None where it is not so: then three entries can each come before the next one, and the last before the first.
    """
    used, place = np.unique(kind, return_inverse=True)
    above = may[np.ix_(used, used)] > 0
    level = above.sum(axis=0)
    return level[place] if (above == (level[:, None] < level[None, :])).all() else None


def by_levels(rows: IntArray, level: IntArray, precedence: Precedence) -> IntArray:
    """Entries in order, the quick way, where they have levels."""
    own, request = precedence.own, precedence.own["request"][rows]
    now = (-own["priority"][rows], -own["tier"][rows], own["free"][rows])
    keys = (own["natural"][rows], precedence.came[request], *now, level[rows])
    ordered: IntArray = rows[np.lexsort(keys)]
    return ordered


@njit_noalloc
def _compare(one, other, precedence):  # type: ignore[no-untyped-def]
    """Below 0 where an entry comes before another one, above 0 where after it."""
    may, came, own = precedence
    if _goes_before(one, other, may, own):
        return -1
    if _goes_before(other, one, may, own):
        return 1
    if own.free[one] != own.free[other]:
        return own.free[one] - own.free[other]
    if own.tier[one] != own.tier[other]:
        return own.tier[other] - own.tier[one]
    if own.priority[one] != own.priority[other]:
        return own.priority[other] - own.priority[one]
    first, second = own.request[one], own.request[other]
    if came[first] != came[second]:
        return came[first] - came[second]
    return own.natural[one] - own.natural[other]


@njit_noalloc
def _goes_before(one, other, may, own):  # type: ignore[no-untyped-def]
    """Whether an entry could preempt another one if that ran; within one class the higher priority counts."""
    if not may[own.kind[one], own.kind[other]]:
        return False
    return own.kind[one] != own.kind[other] or own.priority[one] > own.priority[other]


def in_order(rows: IntArray, precedence: Precedence) -> IntArray:
    """Entries in order, whoever may preempt whom.

    They are put in their natural order, then the halves of the list are put in order and merged: where who comes before
    whom goes round in a circle, the outcome depends on this.
    """
    ordered: IntArray = rows[np.argsort(precedence.own["natural"][rows])]
    _merge_all(ordered, np.empty_like(ordered), np.zeros((max(len(rows) - 1, 1), 2), np.int64), precedence)
    return ordered


@njit_noalloc
def _merge_all(ordered, spare, bounds, precedence):  # type: ignore[no-untyped-def]
    """Put the halves of a list in order and merge them; *bounds* is room for its parts of two and more entries.

    Those that hold others come first.
    """
    count = len(ordered)
    bounds[0, 1] = count
    parts = min(count - 1, 1)
    for part in range(count - 1):
        begin, end = bounds[part, 0], bounds[part, 1]
        middle = begin + (end - begin) // 2
        for low, high in ((begin, middle), (middle, end)):
            if high - low > 1:
                bounds[parts, 0], bounds[parts, 1] = low, high
                parts += 1
    for part in range(count - 2, -1, -1):
        _merge(ordered, spare, bounds[part, 0], bounds[part, 1], precedence)


@njit_noalloc
def _merge(rows, spare, begin, end, precedence):  # type: ignore[no-untyped-def]
    """Merge two halves, each of which is in order."""
    middle = begin + (end - begin) // 2
    for place in range(begin, middle):
        spare[place] = rows[place]
    left, right, place = begin, middle, begin
    while left < middle:
        if right < end and _compare(spare[left], rows[right], precedence) > 0:
            rows[place] = rows[right]
            right += 1
        else:
            rows[place] = spare[left]
            left += 1
        place += 1


@njit_noalloc
def place_of(entry, rows, precedence):  # type: ignore[no-untyped-def]
    """Where an entry belongs among others that are in order."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if _compare(rows[middle], entry, precedence) > 0:
            high = middle
        else:
            low = middle + 1
    return low
