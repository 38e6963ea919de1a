"""Queue order.

Sources: slurm.schedmd.com/priority_multifactor.html, "Job Prioritization" ("jobs that can preempt, jobs with an
advanced reservation, partition PriorityTier, job priority, job submit time, job ID"). The first criterion is evaluated
for each pair of jobs. This, and the order if it is not transitive, follow a real Slurm 22.05.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc, records
from gridsim.model.time import IntArray
from gridsim.policy.slurm.nodes import Bytes


class SortColumns(NamedTuple):
    """Sort keys of entries.

    Attributes
    ----------
    may : (k, k) uint8
        Whether an entry of one class may preempt one of another (`gridsim.policy.slurm.preemption.Rules`).
    submitted : (r,) int64
        Submission or requeue of each request, whole microseconds.
    own : record array
        One row per entry.

        request, kind
            Its request; its class.
        free
            0 if it requests a reservation, else 1.
        tier, priority
            The tier of its partition, and its last computed priority.
        natural
            Its place in the queue before sorting: by request, then higher tiers first.
    """

    may: Bytes
    submitted: IntArray
    own: Any


def sort_columns_of(
    may: Bytes, kind: IntArray, request: IntArray, free: IntArray, tier: IntArray, submitted: IntArray
) -> SortColumns:
    """Return the sort keys of entries without priorities."""
    natural = np.empty(len(request), dtype=np.int64)
    natural[np.lexsort((-tier, request))] = np.arange(len(request))
    own = records(
        request=request, kind=kind, free=free, tier=tier, priority=np.zeros(len(request), np.int64), natural=natural
    )
    return SortColumns(may, submitted, own)


def levels_of(may: Bytes, kind: IntArray) -> IntArray | None:
    """Return the level of each entry, if entries of each level may preempt exactly those of all lower levels.

    None otherwise: preemption can then be cyclic, for example among three entries.
    """
    used, place = np.unique(kind, return_inverse=True)
    above = may[np.ix_(used, used)] > 0
    level = above.sum(axis=0)
    return level[place] if (above == (level[:, None] < level[None, :])).all() else None


def by_levels(rows: IntArray, level: IntArray, precedence: SortColumns) -> IntArray:
    """Return entries with levels in queue order, by a fast sort."""
    own, request = precedence.own, precedence.own["request"][rows]
    now = (-own["priority"][rows], -own["tier"][rows], own["free"][rows])
    keys = (own["natural"][rows], precedence.submitted[request], *now, level[rows])
    ordered: IntArray = rows[np.lexsort(keys)]
    return ordered


@njit_noalloc
def _compare(one, other, precedence):  # type: ignore[no-untyped-def]
    """Return a number below 0 if an entry precedes another one, above 0 if it follows."""
    may, submitted, own = precedence
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
    if submitted[first] != submitted[second]:
        return submitted[first] - submitted[second]
    return own.natural[one] - own.natural[other]


@njit_noalloc
def _goes_before(one, other, may, own):  # type: ignore[no-untyped-def]
    """Return whether an entry could preempt another one if that ran; within a class, if its priority is higher."""
    if not may[own.kind[one], own.kind[other]]:
        return False
    return own.kind[one] != own.kind[other] or own.priority[one] > own.priority[other]


def in_order(rows: IntArray, precedence: SortColumns) -> IntArray:
    """Return entries in queue order, for any preemption rules.

    They are merge-sorted from their natural order, as in Slurm: with cyclic preemption the result depends on the
    algorithm.
    """
    ordered: IntArray = rows[np.argsort(precedence.own["natural"][rows])]
    _merge_all(ordered, np.empty_like(ordered), np.zeros((max(len(rows) - 1, 1), 2), np.int64), precedence)
    return ordered


@njit_noalloc
def _merge_all(ordered, spare, bounds, precedence):  # type: ignore[no-untyped-def]
    """Merge-sort a list; *bounds* is workspace for the bounds of its parts of two and more entries.

    Parts precede their own parts.
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
    """Merge two sorted halves."""
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
    """Return the place of an entry in a sorted list."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if _compare(rows[middle], entry, precedence) > 0:
            high = middle
        else:
            low = middle + 1
    return low
