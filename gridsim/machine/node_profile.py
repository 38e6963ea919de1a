"""Compiled words over what a machine has free over time: hold, drop, free over an interval.

A *row of blocks* is the step function of a vector: block ``i`` is ``[times[i], times[i + 1])`` with ``free[i]``, the
last block has no end, neighbours differ. The machine has one of its totals, and each node one of its own: resources,
then the thousandths of each GPU, then minus the number of holds that have a task there. A *hold* is a demand at a place
for a time; its tasks on one node are a *piece*, and pieces of a hold are a chain of reused slots. Whole microseconds.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.blocks import change, forget
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import IntArray

SIZE, ENDS, SPARE, SPARES, NOW, PROMISED = range(6)
"""Places of `NodeProfile.meta`: blocks of the totals, ends of holds, first spare piece, their number, the present, and
holds that are promises: without any, what is free never falls."""
BLOCKS, PROMISES, THERE = range(3)
"""Places of `NodeProfile.nodes`."""
_NEXT, _NODE, _TASKS = range(3)
FIRST, SINCE, UNTIL, PROMISE = range(4)
"""Places of `NodeProfile.holds`: first piece (-1 for none), start, end, whether it is a promise (not running)."""
TASKS, GPU, MIN_NODES, MAX_NODES, PER_NODE, EXCLUSIVE, HOSTS, TASK = range(8)
"""Places of `Classes.shape`: the limits of a demand, the set of its hosts, and the number of what one task asks for."""


class NodeProfile(NamedTuple):
    """What is free over time, and who holds what.

    Attributes
    ----------
    times, totals : (m,) and (m, c) int64
        Blocks of the totals: node resources, thousandths of GPU, pools.
    ends : (e,) int64
        Ends of all holds, ascending: with the present, the only instants at which something can be placed first.
    node_times, node_free : (n, b) and (n, b, k) int64
        Blocks of each node: resources, GPUs, minus the holds that are there.
    nodes : (3, n) int64
        Blocks of each node; promises on it: what is free on a node without any never falls; all holds there.
    pieces, shares : (3, p) and (p, g) int64
        Next piece of the hold, node and tasks; thousandths of each GPU for all these tasks.
    holds : (4, requests) int64
        First piece, start, end and kind of what each request holds.
    capacity : (n, k) int64
        What each node has.
    meta : (6,) int64
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
    """Demands, each distinct one once.

    Attributes
    ----------
    of : (requests,) int64
        Class of each request.
    each : (classes, r) int64
        What one task asks for of each node resource.
    whole : (classes, c) int64
        What the job asks for of the totals.
    shape : (classes, 8) int64
        Tasks, thousandths of GPU of each, limits, hosts.
    hosts : (sets, n) int64
        Whether each node is a host.
    """

    of: IntArray
    each: IntArray
    whole: IntArray
    shape: IntArray
    hosts: IntArray


class Workspace(NamedTuple):
    """Where a search and a placement write what they find.

    Attributes
    ----------
    low : (n, k) int64
        Least that is free of each host over an interval; less the tasks that have been laid down.
    fits : (n,) int64
        Tasks that each node can take.
    laid : (n,) int64
        Tasks laid down on each.
    given : (n, g) int64
        Thousandths of each GPU that they were given.
    scores, sorted, open : (n,) int64
        Of a placement rule; of limits on nodes: the largest fits, and which nodes have no task yet.
    tree : (2 * leaves,) int64
        A tournament between nodes.
    change : (2, w) int64
        Changes of totals, and of a node.
    """

    low: IntArray
    fits: IntArray
    laid: IntArray
    given: IntArray
    scores: IntArray
    sorted: IntArray
    open: IntArray
    tree: IntArray
    change: IntArray


@njit_noalloc
def advance(floor, now):  # type: ignore[no-untyped-def]
    """The present is *now*; nodes forget the past when they are changed."""
    if floor.meta[NOW] < now:
        floor.meta[NOW] = now
        floor.meta[SIZE] = forget(floor.times, floor.totals, floor.meta[SIZE], now)


@njit_noalloc
def prepare(floor):  # type: ignore[no-untyped-def]
    """Begin with what the nodes have and no hold; all pieces are spare."""
    floor = NodeProfile(*floor)
    for n in range(floor.capacity.shape[0]):
        floor.nodes[BLOCKS, n] = 1
        for k in range(floor.capacity.shape[1]):
            floor.node_free[n, 0, k] = floor.capacity[n, k]
    for p in range(floor.pieces.shape[1]):
        floor.pieces[_NEXT, p] = p + 1
    floor.meta[SIZE], floor.meta[ENDS], floor.meta[SPARE], floor.meta[SPARES] = 1, 0, 0, floor.pieces.shape[1]


@njit_noalloc
def roomy(floor):  # type: ignore[no-untyped-def]
    """Whether one more hold has room, wherever it goes: in the totals and ends, in pieces, in blocks of nodes.

    A number: 0 where it has, else 1, 2 or 3 for what has to grow.
    """
    # Every bound of a block is a start or an end; two more are there while one is changed.
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
    """Take what a piece says of its node, or give it back."""
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
    """Index of the first end of a hold that is not before an instant."""
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
    """Let a request hold what a sketch has laid down, over ``[start, end)``.

    The number of its nodes, which are the first ones of ``sketch.sorted``; below 0 what has to grow before, as `roomy`
    says.
    """
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    short = roomy(floor)
    if short:
        return -short
    c = classes.of[row]
    count = 0
    last = -1
    floor.holds[FIRST, row] = -1
    for n in range(sketch.laid.shape[0]):
        if sketch.laid[n] == 0:
            continue
        piece = floor.meta[SPARE]
        floor.meta[SPARE] = floor.pieces[_NEXT, piece]
        floor.meta[SPARES] -= 1
        if last < 0:
            floor.holds[FIRST, row] = piece
        else:
            floor.pieces[_NEXT, last] = piece
        floor.pieces[_NEXT, piece], floor.pieces[_NODE, piece] = -1, n
        floor.pieces[_TASKS, piece] = sketch.laid[n]
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
def is_alike(floor, other, row):  # type: ignore[no-untyped-def]
    """Whether a request holds the same from the same instant on, on a floor and on another one."""
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
    """Take a hold out of the nodes, or (-1) put it back where it was; totals, pieces and ends stay as they are."""
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        floor.nodes[PROMISES, floor.pieces[_NODE, piece]] -= sign * floor.holds[PROMISE, row]
        _to_node(floor, classes, sketch, classes.of[row], piece, floor.holds[SINCE, row], floor.holds[UNTIL, row], sign)
        piece = floor.pieces[_NEXT, piece]


@njit_noalloc
def lower(floor, classes, sketch, row):  # type: ignore[no-untyped-def]
    """Let a hold go that has been lifted out of the nodes."""
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
    """A request holds nothing from the present on; what it held before is past."""
    lift(floor, classes, sketch, row, np.int64(1))
    lower(floor, classes, sketch, row)


@njit_noalloc
def mark(floor, fresh, row, start, end):  # type: ignore[no-untyped-def]
    """Take down on which nodes a hold gives ``[start, end)`` back: first and last instant of each in *fresh*."""
    floor = NodeProfile(*floor)
    piece = floor.holds[FIRST, row]
    while piece >= 0:
        n = floor.pieces[_NODE, piece]
        fresh[0, n], fresh[1, n] = min(fresh[0, n], start), max(fresh[1, n], end)
        piece = floor.pieces[_NEXT, piece]


@njit_noalloc
def where(floor, sketch, row):  # type: ignore[no-untyped-def]
    """Tell in the sketch on what nodes a request lies; their number."""
    floor, sketch = NodeProfile(*floor), Workspace(*sketch)
    count, piece = 0, floor.holds[FIRST, row]
    while piece >= 0:
        n = floor.pieces[_NODE, piece]
        sketch.sorted[count], sketch.laid[n] = n, floor.pieces[_TASKS, piece]
        for g in range(floor.shares.shape[1]):
            sketch.given[n, g] = floor.shares[piece, g]
        count += 1
        piece = floor.pieces[_NEXT, piece]
    return count


@njit_noalloc
def as_running(floor, sketch, now, row):  # type: ignore[no-untyped-def]
    """What was a promise runs: it stays where it is. The number of its nodes, which the sketch tells."""
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
    """A hold lasts until another *end*, in its place; what others were promised there may go below 0.

    An earlier one it is where more was believed of a request than the overrun that is assumed of it now.
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
def let_go(floor, classes, sketch, now, rows, count):  # type: ignore[no-untyped-def]
    """The first *count* requests of some rows hold nothing from *now* on, which is the present."""
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    advance(floor, now)
    for k in range(count):
        drop(floor, classes, sketch, rows[k])


@njit_noalloc
def keep(floor, classes, sketch, now, row, end):  # type: ignore[no-untyped-def]
    """`postpone`, *now* being the present."""
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    advance(floor, now)
    postpone(floor, classes, sketch, row, end)
