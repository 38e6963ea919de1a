"""Compiled feasibility checks on a node profile: whether and when a demand can be placed.

Feasibility does not depend on the placement rule. The totals are checked before any node.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine import node_profile as floors
from gridsim.machine.blocks import block_at
from gridsim.machine.njit import inline, njit, njit_noalloc
from gridsim.model.time import NEVER

WHOLE = 1000
"""Thousandths in a whole GPU."""

FITS, ONE, ALL, LIMITS = range(4)
"""Why the empty machine cannot hold tasks: a single one, all together, limits on nodes; `FITS` if it can."""


@njit_noalloc
def fit(low, classes, c, gpus, most):  # type: ignore[no-untyped-def]
    """Return how many of *most* tasks of a class fit in the free amounts *low* of a node (spec of machines, 3.1)."""
    each, shape = classes.each[c], classes.shape[c]
    resources = each.shape[0]
    if shape[floors.EXCLUSIVE] and low[resources + gpus] < 0:
        return 0
    found = most
    for r in range(resources):
        if each[r] > 0:
            if low[r] < each[r] * found:
                found = max(low[r], 0) // each[r]
            if found == 0:
                return 0
    share = shape[floors.GPU]
    if share > 0:
        slots = 0
        for i in range(resources, resources + gpus):
            if share < WHOLE:
                slots += max(low[i], 0) // share
            elif low[i] == WHOLE:
                slots += 1
        found = min(found, slots if share < WHOLE else slots // (share // WHOLE))
    return found


@njit_noalloc
def fits_over(floor, classes, sketch, c, start, end):  # type: ignore[no-untyped-def]
    """Write the free amounts of nodes over ``[start, end)`` and their fits; return whether the demand can be placed."""
    shape, low, fits = classes.shape[c], sketch.low, sketch.fits
    hosts = classes.hosts[shape[floors.HOSTS]]
    width, gpus = low.shape[1], floor.shares.shape[1]
    if shape[floors.TASKS] == 0:
        return True
    together, able, most = 0, 0, min(shape[floors.TASKS], shape[floors.PER_NODE])
    for n in range(low.shape[0]):
        fits[n] = 0
        if not hosts[n]:
            continue
        size, free, mine = floor.nodes[floors.BLOCKS, n], floor.node_free[n], low[n]
        i = block_at(floor.node_times[n], size, start)
        for k in range(width):
            mine[k] = free[i, k]
        found = min(fit(mine, classes, c, gpus, most), hosts[n])
        if found > 0 and floor.nodes[floors.PROMISES, n] > 0:
            i += 1
            before = i
            while i < size and floor.node_times[n, i] < end:
                for k in range(width):
                    mine[k] = min(mine[k], free[i, k])
                i += 1
            if i > before:
                found = min(fit(mine, classes, c, gpus, most), hosts[n])
        if found > 0:
            fits[n] = found
            together += found
            able += 1
    if together < shape[floors.TASKS] or able < shape[floors.MIN_NODES]:
        return False
    if able <= shape[floors.MAX_NODES]:
        return True
    return largest(fits, hosts, sketch.sorted, shape[floors.MAX_NODES]) >= shape[floors.TASKS]


@njit_noalloc
def largest(fits, counts, ordered, count):  # type: ignore[no-untyped-def]
    """Return the sum of the *count* largest fits of the nodes selected by *counts*."""
    kept = 0
    for n in range(fits.shape[0] if count > 0 else 0):
        value = fits[n]
        if not counts[n] or value == 0 or (kept == count and value <= ordered[kept - 1]):
            continue
        i = kept if kept < count else kept - 1
        while i > 0 and ordered[i - 1] < value:
            ordered[i] = ordered[i - 1]
            i -= 1
        ordered[i] = value
        kept = min(kept + 1, count)
    total = 0
    for i in range(kept):
        total += ordered[i]
    return total


@njit_noalloc
def totals_over(floor, classes, c, start, end):  # type: ignore[no-untyped-def]
    """Return the end of the last block in ``[start, end)`` whose totals are too low for a class; -1 for none."""
    need, totals, size = classes.whole[c], floor.totals, floor.meta[floors.SIZE]
    i = block_at(floor.times, size, start)
    last = -1
    while i < size and floor.times[i] < end:
        for k in range(need.shape[0]):
            if totals[i, k] < need[k]:
                last = i
                break
        i += 1
    if last < 0:
        return -1
    return floor.times[last + 1] if last + 1 < size else NEVER


@inline
def can_place(floor, classes, sketch, c, start, end):  # type: ignore[no-untyped-def]
    """Return whether a demand can be placed over ``[start, end)``; then the workspace has the free amounts and fits."""
    return totals_over(floor, classes, c, start, end) < 0 and fits_over(floor, classes, sketch, c, start, end)


@njit_noalloc
def not_before(floor, classes, sketch, c, start, end):  # type: ignore[no-untyped-def]
    """Return a lower bound of the start of a demand that cannot be placed over ``[start, end)``.

    A node can take more tasks only after a block without free capacity for any, or after its present block. The bound
    is reached when enough nodes for the missing tasks have passed that point.
    """
    shape, fits, rises = classes.shape[c], sketch.fits, sketch.sorted
    most, gpus, together = min(shape[floors.TASKS], shape[floors.PER_NODE]), floor.shares.shape[1], 0
    for n in range(fits.shape[0]):
        together += fits[n]
    needed = max(1, (shape[floors.TASKS] - together + most - 1) // most)
    kept = 0
    for n in range(fits.shape[0]):
        if fits[n] == most or not classes.hosts[shape[floors.HOSTS], n]:
            continue
        times, size = floor.node_times[n], floor.nodes[floors.BLOCKS, n]
        i = block_at(times, size, start)
        last = i
        while fits[n] == 0 and i < size and times[i] < end:
            if fit(floor.node_free[n, i], classes, c, gpus, np.int64(1)) == 0:
                last = i
            i += 1
        rise = times[last + 1] if last + 1 < size else NEVER
        if kept == needed and rise >= rises[kept - 1]:
            continue
        k = kept if kept < needed else kept - 1
        while k > 0 and rises[k - 1] > rise:
            rises[k] = rises[k - 1]
            k -= 1
        rises[k] = rise
        kept = min(kept + 1, needed)
    return rises[kept - 1] if kept == needed else NEVER


@njit_noalloc
def first_place(floor, classes, sketch, begin, row, duration, before, own):  # type: ignore[no-untyped-def]
    """Return the first time in ``[begin, before)`` at which a request can be placed for *duration*; -1 for none.

    From *own* on, the totals include the allocation of the request itself (`NEVER` for none), which leaves enough for
    it.

    Only the present and the ends of allocations are candidates. The workspace has the free amounts at the result.
    Without reservations, free amounts never fall, and the first end is found by bisection.
    """
    floor, classes, sketch = floors.NodeProfile(*floor), floors.Classes(*classes), floors.Workspace(*sketch)
    c, count, rising = classes.of[row], floor.meta[floors.ENDS], floor.meta[floors.PROMISED] == 0
    at, index, high = begin, floors.first_end(floor, begin + 1), -1  # no bisection yet
    while at < before:
        short = totals_over(floor, classes, c, at, min(at + duration, own))
        able = short < 0 and fits_over(floor, classes, sketch, c, at, at + duration)
        if able and (high < 0 or index == high):
            return at
        if high >= 0:
            middle = (index + high) >> 1
            index, high = (index, middle) if able else (middle + 1, high)
        elif short >= 0:
            index = floors.first_end(floor, short)
        elif rising:
            count = floors.first_end(floor, before)  # what a suspended job keeps has no known end
            high = count - 1
        else:
            index = floors.first_end(floor, max(at + 1, not_before(floor, classes, sketch, c, at, at + duration)))
        if index >= count:
            return -1
        at = floor.ends[index if high < 0 else (index + high) >> 1]
    return -1


@njit
def refusals(classes, empty):  # type: ignore[no-untyped-def]
    """Return why a machine with nodes *empty* cannot hold the tasks of each class (spec of machines, 4.5)."""
    classes = floors.Classes(*classes)
    found = np.zeros(classes.shape.shape[0], dtype=np.int64)
    fits, ordered = np.zeros(empty.shape[0], dtype=np.int64), np.zeros(empty.shape[0], dtype=np.int64)
    for c in range(found.shape[0]):
        shape = classes.shape[c]
        hosts, tasks = classes.hosts[shape[floors.HOSTS]], shape[floors.TASKS]
        together, unlimited, able = 0, 0, 0
        for n in range(empty.shape[0]):
            fits[n] = 0
            if hosts[n]:
                most = fit(empty[n], classes, c, empty.shape[1] - classes.each.shape[1] - 1, tasks)
                fits[n] = min(most, shape[floors.PER_NODE])
                unlimited += most
                together += fits[n]
                able += fits[n] > 0
        if tasks == 0:
            continue
        if unlimited == 0:
            found[c] = ONE
        elif unlimited < tasks:
            found[c] = ALL
        elif (
            together < tasks
            or able < shape[floors.MIN_NODES]
            or (able > shape[floors.MAX_NODES] and largest(fits, hosts, ordered, shape[floors.MAX_NODES]) < tasks)
        ):
            found[c] = LIMITS
    return found
