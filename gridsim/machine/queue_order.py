"""Queue order with a common order of ties: comparison and sorts, compiled.

Requests with an equal key (a position, rank, planned start or deadline) wait in *job order*: by the row of their job,
then by ready time, then by their own row. ``ties`` (2, n) contains the first two. If users submit jobs during the run,
the first is equal for all, so that the ready time decides.

The queue ``waiting`` holds rows in ``[counts[HEAD], counts[TAIL])``; ``counts`` begins with the counts of
`gridsim.machine.running_set`.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.machine.running_set import OWN
from gridsim.model.time import FloatArray, IntArray

HEAD, TAIL = range(OWN, OWN + 2)


@njit_noalloc
def comes_before(ties, one, other):  # type: ignore[no-untyped-def]
    """Return whether a request precedes another one in job order."""
    if ties[0, one] != ties[0, other]:
        return ties[0, one] < ties[0, other]
    if ties[1, one] != ties[1, other]:
        return ties[1, one] < ties[1, other]
    return one < other


@njit_noalloc
def before(keys, ties, one, other):  # type: ignore[no-untyped-def]
    """Return whether a request precedes another one by key, *keys* (n,), then in job order."""
    if keys[one] != keys[other]:
        return keys[one] < keys[other]
    return comes_before(ties, one, other)


def in_order(rows: IntArray, ties: IntArray | None, keys: IntArray | FloatArray | None = None) -> IntArray:
    """Return the indices that sort requests by key, then in job order.

    Parameters
    ----------
    rows : (r,) int64
        The requests.
    ties : (2, n) int64, optional
        Values compared before the rows; omitted if job order is row order.
    keys : (r,) int64 or float64, optional
        Key of each request; omitted if all are equal.
    """
    if ties is None:
        return np.argsort(rows) if keys is None else np.lexsort((rows, keys))
    order = (rows, ties[1, rows], ties[0, rows])
    return np.lexsort(order if keys is None else (*order, keys))


@njit_noalloc
def sort_in(waiting, counts, tail, keys, ties):  # type: ignore[no-untyped-def]
    """Sort the arrivals in ``[counts[TAIL], tail)`` into the queue by key, *keys* (n,).

    If arrivals are already in queue order, this only moves the tail. Returns the first index of an arrival, or the
    tail.
    """
    head, first = counts[HEAD], counts[TAIL]
    for k in range(counts[TAIL], tail):
        row = waiting[k]
        if k == head or before(keys, ties, waiting[k - 1], row):
            continue
        low, high = head, k
        while low < high:
            middle = (low + high) >> 1
            if before(keys, ties, waiting[middle], row):
                low = middle + 1
            else:
                high = middle
        place, one, last = np.uint64(k), np.uint64(1), np.uint64(low)
        while place > last:  # unsigned: no test for negative indices
            waiting[place] = waiting[place - one]
            place -= one
        waiting[low] = row
        first = min(first, low)
    counts[TAIL] = tail
    return first


@njit_noalloc
def sort(waiting, counts, keys, ties):  # type: ignore[no-untyped-def]
    """Sort the whole queue by key, *keys* (n,); fast if it is nearly sorted."""
    head, tail = counts[HEAD], counts[TAIL]
    stride = 1
    while stride * 3 + 1 < tail - head:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(head + stride, tail):
            row = waiting[k]
            i = k
            while i - stride >= head and before(keys, ties, row, waiting[i - stride]):
                waiting[i] = waiting[i - stride]
                i -= stride
            waiting[i] = row
        stride //= 3


@njit_noalloc
def sort_places(order, keys, by_row, rows, ties):  # type: ignore[no-untyped-def]
    """Sort indices of *rows* by the key of each index, or of its request (*by_row*), then in job order."""
    stride = 1
    while stride * 3 + 1 < order.shape[0]:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(stride, order.shape[0]):
            one, i = order[k], k
            key = keys[rows[one] if by_row else one]
            while i >= stride:
                other = order[i - stride]
                at = rows[other] if by_row else other
                if keys[at] < key or (keys[at] == key and comes_before(ties, rows[other], rows[one])):
                    break
                order[i] = other
                i -= stride
            order[i] = one
        stride //= 3


@njit_noalloc
def sort_first(waiting, counts, keys, ties, cores, available):  # type: ignore[no-untyped-def]
    """Move the first requests of the queue to its front, as long as they fit in the available cores, and one more.

    This is sufficient without backfilling; the rest of the queue is not sorted.
    """
    i = counts[HEAD]
    while i < counts[TAIL] and available >= 0:
        best = i
        for k in range(i + 1, counts[TAIL]):
            if before(keys, ties, waiting[k], waiting[best]):
                best = k
        waiting[i], waiting[best] = waiting[best], waiting[i]
        available -= cores[waiting[i]]
        i += 1


@njit_noalloc
def insert(waiting, planned, head, first, tail, ties):  # type: ignore[no-untyped-def]
    """Insert the requests in ``[first, tail)`` one by one among the sorted requests before them.

    The keys, *planned*, are in the same positions. The sort is fast if requests are nearly sorted, as after a change of
    a plan.
    """
    for i in range(first, tail):
        row, start = waiting[i], planned[i]
        k = i
        while k > head:
            other = waiting[k - 1]
            if planned[k - 1] < start or (planned[k - 1] == start and comes_before(ties, other, row)):
                break
            waiting[k], planned[k] = other, planned[k - 1]
            k -= 1
        waiting[k], planned[k] = row, start


@njit_noalloc
def index_of(waiting, counts, row):  # type: ignore[no-untyped-def]
    """Return the index of a waiting request in the queue."""
    i = counts[HEAD]
    while waiting[i] != row:
        i += 1
    return i - counts[HEAD]


@njit_noalloc
def take_out(waiting, counts, index):  # type: ignore[no-untyped-def]
    """Remove the request at an index from the queue, without reordering the others; return its row."""
    place = counts[HEAD] + index
    row = waiting[place]
    for k in range(place, counts[HEAD], -1):
        waiting[k] = waiting[k - 1]
    counts[HEAD] += 1
    return row
