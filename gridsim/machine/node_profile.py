"""Availability of nodes over time, compiled: reserve, cancel, query.

A *row of blocks* is the step function of a vector: block ``i`` is ``[times[i], times[i + 1])`` with ``free[i]``, the
last block has no end, and neighbours differ. The machine has one for its totals, and each node has one: resources, the
thousandths of each GPU, and minus the number of holds that have a task there. A *hold* allocates a demand at a place
for an interval. Its tasks on one node are a *piece*; the pieces of a hold are a chain of reused slots. Times are whole
microseconds.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.blocks import change, forget
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import NEVER, IntArray

SIZE, ENDS, SPARE, SPARES, NOW, PROMISED, ABSENT = range(7)
"""Indices of `NodeProfile.meta`: number of blocks of the totals, number of ends, first spare piece, number of spare
pieces, the present, number of reservations (without any, free amounts never fall), number of absences."""
BLOCKS, PROMISES, THERE = range(3)
"""Rows of `NodeProfile.nodes`."""
_NEXT, _NODE, _TASKS = range(3)
FIRST, SINCE, UNTIL, PROMISE = range(4)
"""Rows of `NodeProfile.holds`: first piece (-1 for none), start, end, whether it is a reservation (not running)."""
TASKS, GPU, MIN_NODES, MAX_NODES, PER_NODE, EXCLUSIVE, HOSTS, TASK = range(8)
"""Columns of `Classes.shape`: limits of a demand, index of its set of eligible nodes, index of the demand of a task."""


ANY_NUMBER = 1 << 40
"""Tasks on an eligible node without its own limit."""


class NodeProfile(NamedTuple):
    """Free amounts over time, and all holds.

    Attributes
    ----------
    times, totals : (m,) and (m, c) int64
        Blocks of the totals: node resources, thousandths of GPU, pools.
    ends : (e,) int64
        Ends of all holds and absences, ascending: with the present, the only candidates for an earliest start.
    node_times, node_free : (n, b) and (n, b, k) int64
        Blocks of each node: resources, GPUs, minus the number of holds on it.
    nodes : (3, n) int64
        Number of blocks of each node; reservations on it (without any, its free amounts never fall); all holds and
        absences on it.
    pieces, shares : (3, p) and (p, g) int64
        Next piece of the hold, node and tasks; thousandths of each GPU for all these tasks.
    holds : (4, requests) int64
        First piece, start, end and kind of the hold of each request.
    capacity : (n, k) int64
        Capacity of each node.
    meta : (7,) int64
        Counts.
    """

    times: IntArray
    totals: IntArray
    ends: IntArray
    node_times: IntArray
    node_free: IntArray
    nodes: IntArray
    pieces: IntArray
    shares: IntArray
    holds: IntArray
    capacity: IntArray
    meta: IntArray


class Classes(NamedTuple):
    """Distinct demands.

    Attributes
    ----------
    of : (requests,) int64
        Class of each request.
    each : (classes, r) int64
        Demand of one task for each node resource.
    whole : (classes, c) int64
        Demand of the whole job on the totals.
    shape : (classes, 8) int64
        Number of tasks, thousandths of GPU of each, limits, eligible nodes.
    hosts : (sets, n) int64
        Maximum number of tasks on each node: 0 on one that is not eligible, else usually `ANY_NUMBER`.
    """

    of: IntArray
    each: IntArray
    whole: IntArray
    shape: IntArray
    hosts: IntArray


class Workspace(NamedTuple):
    """Output arrays of searches and placements.

    Attributes
    ----------
    low : (n, k) int64
        Minimum free amounts of each eligible node over an interval, minus the tasks placed on it.
    fits : (n,) int64
        Number of tasks that each node can take.
    placed : (n,) int64
        Number of tasks placed on each node.
    given : (n, g) int64
        Thousandths of each GPU allocated to them.
    scores, sorted, open : (n,) int64
        Scores of a placement rule; for limits on nodes the largest fits, and whether each node has no task yet.
    tree : (2 * leaves,) int64
        Tournament tree of nodes.
    change : (2, w) int64
        Changes of the totals, and of a node.
    """

    low: IntArray
    fits: IntArray
    placed: IntArray
    given: IntArray
    scores: IntArray
    sorted: IntArray
    open: IntArray
    tree: IntArray
    change: IntArray


@njit_noalloc
def advance(floor, now):  # type: ignore[no-untyped-def]
    """Set the present to *now*; blocks of nodes before it are removed when the node changes."""
    if floor.meta[NOW] < now:
        floor.meta[NOW] = now
        floor.meta[SIZE] = forget(floor.times, floor.totals, floor.meta[SIZE], now)


@njit_noalloc
def prepare(floor):  # type: ignore[no-untyped-def]
    """Initialise the profile with the capacity of the nodes and no holds; all pieces are spare."""
    floor = NodeProfile(*floor)
    for n in range(floor.capacity.shape[0]):
        floor.nodes[BLOCKS, n] = 1
        for k in range(floor.capacity.shape[1]):
            floor.node_free[n, 0, k] = floor.capacity[n, k]
    for p in range(floor.pieces.shape[1]):
        floor.pieces[_NEXT, p] = p + 1
    floor.meta[SIZE], floor.meta[ENDS], floor.meta[SPARE], floor.meta[SPARES] = 1, 0, 0, floor.pieces.shape[1]


@njit_noalloc
def has_capacity(floor):  # type: ignore[no-untyped-def]
    """Return whether the arrays have space for one more hold of any placement: totals and ends, pieces, node blocks.

    Return 0 if they do, else 1, 2 or 3 for the arrays that must grow.
    """
    # Each block begins at a start or an end; a change temporarily adds two blocks.
    if 2 * floor.meta[ENDS] + 6 > floor.times.shape[0]:
        return 1
    if floor.meta[SPARES] < floor.capacity.shape[0]:
        return 2
    for n in range(floor.capacity.shape[0]):
        if 2 * floor.nodes[THERE, n] + 6 > floor.node_times.shape[1]:
            return 3
    return 0


# -- holds -----------------------------------------------------------------------------------------------------------


@njit_noalloc
def _to_node(floor, classes, sketch, c, piece, start, end, sign):  # type: ignore[no-untyped-def]
    """Take the resources of a piece from its node, or release them."""
    n, tasks = floor.pieces[_NODE, piece], floor.pieces[_TASKS, piece]
    each, amounts = classes.each, sketch.change[1]
    resources, gpus = each.shape[1], floor.shares.shape[1]
    if classes.shape[c, EXCLUSIVE]:
        for k in range(resources + gpus):
            amounts[k] = floor.capacity[n, k]
    else:
        for r in range(resources):
            amounts[r] = tasks * each[c, r]
        for g in range(gpus):
            amounts[resources + g] = floor.shares[piece, g]
    amounts[resources + gpus] = 1
    times, free = floor.node_times[n], floor.node_free[n]
    size = forget(times, free, floor.nodes[BLOCKS, n], floor.meta[NOW])
    floor.nodes[BLOCKS, n] = change(times, free, size, max(start, floor.meta[NOW]), end, amounts, sign)


@njit_noalloc
def _to_totals(floor, classes, sketch, row, start, end, sign):  # type: ignore[no-untyped-def]
    c, amounts = classes.of[row], sketch.change[0]
    resources, gpus, exclusive = classes.each.shape[1], floor.shares.shape[1], classes.shape[c, EXCLUSIVE]
    for k in range(floor.totals.shape[1]):
        amounts[k] = 0 if exclusive and k <= resources else classes.whole[c, k]
    if exclusive:
        piece = floor.holds[FIRST, row]
        while piece >= 0:
            n = floor.pieces[_NODE, piece]
            for r in range(resources):
                amounts[r] += floor.capacity[n, r]
            for g in range(gpus):
                amounts[resources] += floor.capacity[n, resources + g]
            piece = floor.pieces[_NEXT, piece]
    start = max(start, floor.meta[NOW])
    floor.meta[SIZE] = change(floor.times, floor.totals, floor.meta[SIZE], start, end, amounts, sign)


@njit_noalloc
def _take_end(floor, end):  # type: ignore[no-untyped-def]
    i = floor.meta[ENDS]
    while i > 0 and floor.ends[i - 1] > end:
        floor.ends[i] = floor.ends[i - 1]
        i -= 1
    floor.ends[i] = end
    floor.meta[ENDS] += 1


@njit_noalloc
def first_end(floor, after):  # type: ignore[no-untyped-def]
    """Return the index of the first end of a hold that is not before an instant."""
    low, high = 0, floor.meta[ENDS]
    while low < high:
        middle = (low + high) >> 1
        if floor.ends[middle] < after:
            low = middle + 1
        else:
            high = middle
    return low


@njit_noalloc
def _drop_end(floor, end):  # type: ignore[no-untyped-def]
    floor.meta[ENDS] -= 1
    for i in range(first_end(floor, end), floor.meta[ENDS]):
        floor.ends[i] = floor.ends[i + 1]


@njit_noalloc
def hold(floor, classes, sketch, row, start, end, promise):  # type: ignore[no-untyped-def]
    """Allocate the placement in the workspace to a request over ``[start, end)``.

    Return the number of nodes, which are the first ones in ``sketch.sorted``; if arrays must grow first, return minus
    the code of `has_capacity`.
    """
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    short = has_capacity(floor)
    if short:
        return -short
    c = classes.of[row]
    count = 0
    last = -1
    floor.holds[FIRST, row] = -1
    for n in range(sketch.placed.shape[0]):
        if sketch.placed[n] == 0:
            continue
        piece = floor.meta[SPARE]
        floor.meta[SPARE] = floor.pieces[_NEXT, piece]
        floor.meta[SPARES] -= 1
        if last < 0:
            floor.holds[FIRST, row] = piece
        else:
            floor.pieces[_NEXT, last] = piece
        floor.pieces[_NEXT, piece], floor.pieces[_NODE, piece] = -1, n
        floor.pieces[_TASKS, piece] = sketch.placed[n]
        for g in range(floor.shares.shape[1]):
            floor.shares[piece, g] = sketch.given[n, g]
        floor.nodes[PROMISES, n] += promise
        floor.nodes[THERE, n] += 1
        _to_node(floor, classes, sketch, c, piece, start, end, np.int64(-1))
        sketch.sorted[count] = n
        count += 1
        last = piece
    floor.meta[PROMISED] += promise
    floor.holds[SINCE, row], floor.holds[UNTIL, row], floor.holds[PROMISE, row] = start, end, promise
    _to_totals(floor, classes, sketch, row, start, end, np.int64(-1))
    _take_end(floor, end)
    return count


@njit_noalloc
def is_same_hold(floor, other, row):  # type: ignore[no-untyped-def]
    """Return whether a request has the same hold and start in two profiles."""
    floor, other = NodeProfile(*floor), NodeProfile(*other)
    one, two = floor.holds[FIRST, row], other.holds[FIRST, row]
    same = floor.holds[SINCE, row] == other.holds[SINCE, row]
    while same and one >= 0 and two >= 0:
        same = floor.pieces[_NODE, one] == other.pieces[_NODE, two]
        same = same and floor.pieces[_TASKS, one] == other.pieces[_TASKS, two]
        for g in range(floor.shares.shape[1]):
            same = same and floor.shares[one, g] == other.shares[two, g]
        one, two = floor.pieces[_NEXT, one], other.pieces[_NEXT, two]
    return same and one == two


@njit_noalloc
def lift(floor, classes, sketch, row, sign):  # type: ignore[no-untyped-def]
    """Remove a hold from the nodes, or (-1) restore it; totals, pieces and ends do not change."""
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        floor.nodes[PROMISES, floor.pieces[_NODE, piece]] -= sign * floor.holds[PROMISE, row]
        _to_node(floor, classes, sketch, classes.of[row], piece, floor.holds[SINCE, row], floor.holds[UNTIL, row], sign)
        piece = floor.pieces[_NEXT, piece]


@njit_noalloc
def lower(floor, classes, sketch, row):  # type: ignore[no-untyped-def]
    """Delete a hold that `lift` has removed from the nodes."""
    start, end = floor.holds[SINCE, row], floor.holds[UNTIL, row]
    _to_totals(floor, classes, sketch, row, start, end, np.int64(1))
    _drop_end(floor, end)
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        after = floor.pieces[_NEXT, piece]
        floor.nodes[THERE, floor.pieces[_NODE, piece]] -= 1
        floor.pieces[_NEXT, piece] = floor.meta[SPARE]
        floor.meta[SPARE] = piece
        floor.meta[SPARES] += 1
        piece = after
    floor.holds[FIRST, row] = -1
    floor.meta[PROMISED] -= floor.holds[PROMISE, row]


@njit_noalloc
def drop(floor, classes, sketch, row):  # type: ignore[no-untyped-def]
    """Release the hold of a request from the present on."""
    lift(floor, classes, sketch, row, np.int64(1))
    lower(floor, classes, sketch, row)


@njit_noalloc
def mark(floor, fresh, row, start, end):  # type: ignore[no-untyped-def]
    """Record the nodes on which a hold releases ``[start, end)``: first and last instant of each node in *fresh*."""
    floor = NodeProfile(*floor)
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        n = floor.pieces[_NODE, piece]
        fresh[0, n], fresh[1, n] = min(fresh[0, n], start), max(fresh[1, n], end)
        piece = floor.pieces[_NEXT, piece]


@njit_noalloc
def where(floor, sketch, row):  # type: ignore[no-untyped-def]
    """Write the nodes and tasks of a request to the workspace; return the number of nodes."""
    floor, sketch = NodeProfile(*floor), Workspace(*sketch)
    count, piece = 0, floor.holds[FIRST, row]
    while piece >= 0:
        n = floor.pieces[_NODE, piece]
        sketch.sorted[count], sketch.placed[n] = n, floor.pieces[_TASKS, piece]
        for g in range(floor.shares.shape[1]):
            sketch.given[n, g] = floor.shares[piece, g]
        count += 1
        piece = floor.pieces[_NEXT, piece]
    return count


@njit_noalloc
def as_running(floor, sketch, now, row):  # type: ignore[no-untyped-def]
    """Turn a reservation into a running hold at the same place; return the number of nodes in the workspace."""
    floor, sketch = NodeProfile(*floor), Workspace(*sketch)
    advance(floor, now)
    count = where(floor, sketch, row)
    for k in range(count):
        floor.nodes[PROMISES, sketch.sorted[k]] -= floor.holds[PROMISE, row]
    floor.meta[PROMISED] -= floor.holds[PROMISE, row]
    floor.holds[PROMISE, row] = 0
    return count


@njit_noalloc
def postpone(floor, classes, sketch, row, end):  # type: ignore[no-untyped-def]
    """Set another *end* of a hold at the same place; free amounts of other reservations there may become negative.

    The new end is earlier if the previous prediction exceeds the currently assumed overrun.
    """
    before = floor.holds[UNTIL, row]
    sign = np.int64(1 if end < before else -1)
    first, last = min(before, end), max(before, end)
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        _to_node(floor, classes, sketch, classes.of[row], piece, first, last, sign)
        piece = floor.pieces[_NEXT, piece]
    _to_totals(floor, classes, sketch, row, first, last, sign)
    _drop_end(floor, before)
    _take_end(floor, end)
    floor.holds[UNTIL, row] = end


@njit_noalloc
def absent(floor, sketch, node, gpu, begin, end, announced, sign):  # type: ignore[no-untyped-def]
    """Remove (-1) the capacity of a node, or of one of its GPUs, in ``[begin, end)``, or restore it (1).

    The totals keep it: they may be too large, since the nodes decide, but not too small. The free amounts of a node
    with two absences at the same time are negative.
    """
    floor, sketch = NodeProfile(*floor), Workspace(*sketch)
    amounts, gpus, width = sketch.change[1], floor.shares.shape[1], floor.capacity.shape[1]
    for k in range(width):
        amounts[k] = floor.capacity[node, k] if gpu < 0 or k == width - 1 - gpus + gpu else 0
    if gpu < 0:
        amounts[width - 1] = 1
    floor.nodes[PROMISES, node] -= sign * announced
    floor.meta[PROMISED] -= sign * announced
    floor.nodes[THERE, node] -= sign
    floor.meta[ABSENT] -= sign
    if end < NEVER:
        if sign < 0:
            _take_end(floor, end)
        else:
            _drop_end(floor, end)
    times, free = floor.node_times[node], floor.node_free[node]
    size = forget(times, free, floor.nodes[BLOCKS, node], floor.meta[NOW])
    floor.nodes[BLOCKS, node] = change(times, free, size, max(begin, floor.meta[NOW]), end, amounts, np.int64(sign))


@njit_noalloc
def release_many(floor, classes, sketch, now, rows, count):  # type: ignore[no-untyped-def]
    """Release the first *count* requests of *rows* from the present, *now*, on."""
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    advance(floor, now)
    for k in range(count):
        drop(floor, classes, sketch, rows[k])


@njit_noalloc
def keep(floor, classes, sketch, now, row, end):  # type: ignore[no-untyped-def]
    """Call `postpone` with the present set to *now*."""
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    advance(floor, now)
    postpone(floor, classes, sketch, row, end)
