"""Compiled replay of a schedule on a machine of nodes: allocations, waiting jobs and free resources over time.

Events are sorted by instant; the state is evaluated after all events of an instant. Free amounts are indexed by nodes
and resources as in `gridsim.model.capacity.Capacity`; GPUs are in thousandths by node and number.
"""

# Types are in the docstrings, since the decorators hide them from type checkers.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.time import NEVER, FloatArray, IntArray

NOTHING = -1
"""No constraint is ignored."""

ORDER, SEVERAL = -1, -2
"""Answers for jobs that could start and wait for their turn, and for jobs with several missing resources."""

INTEGRAL, LEVEL, LAST = range(3)
"""Rows of `Levels.of`: integral over time, current value, and value at the last arrival."""


class Events(NamedTuple):
    """Events: instants (e,), ascending; number of a piece or class, and sign +1 or -1."""

    time: IntArray
    what: IntArray
    sign: IntArray


class Pieces(NamedTuple):
    """Allocated pieces of nodes and pools.

    Attributes
    ----------
    node : (p,) int64
        Node of each piece; -1 for amounts of pools.
    amounts : (p, r) int64
        Amounts by resource of nodes, or by pool.
    first : (p + 1,) int64
        Offset of each piece's GPUs in *gpu*.
    gpu, share : (g,) int64
        Numbers of GPUs on the node, and thousandths.
    """

    node: IntArray
    amounts: IntArray
    first: IntArray
    gpu: IntArray
    share: IntArray


class Tasks(NamedTuple):
    """Requests, by class of equal demands.

    Attributes
    ----------
    shape : (c, 7) int64
        Tasks, GPU thousandths per task, exclusive flag, row of *hosts*, least nodes, most nodes, most tasks per node.
    each : (c, r) int64
        Amounts per task.
    pools : (c, p) int64
        Amounts of pools.
    hosts : (h, n) bool
        Nodes with the features, the partition and the GPU type.
    """

    shape: IntArray
    each: IntArray
    pools: IntArray
    hosts: IntArray


class Typical(NamedTuple):
    """Typical tasks: amounts (m, r), GPU thousandths (m,), accepting nodes (m, n), counts (m,)."""

    each: IntArray
    gpu: IntArray
    accepted: IntArray
    counts: IntArray


class Snapshot(NamedTuple):
    """Free resources and waiting jobs at an instant.

    Attributes
    ----------
    free : (n, r) int64
        Free amount of each resource of a node.
    gpus : (n, g) int64
        Free thousandths of each GPU; 0 for GPUs that a node does not have.
    pools : (p,) int64
        Free amount of each pool.
    touched : (n,) int64
        Number of pieces on each node.
    covered : (n,) int64
        Number of waiting classes that fit on the node.
    fragments : (n,) int64
        Fragmentation F of each node.
    waiting : (c,) int64
        Number of waiting jobs of each class.
    active : (c + 1,) int64
        Classes with waiting jobs; the last entry is their number.
    """

    free: IntArray
    gpus: IntArray
    pools: IntArray
    touched: IntArray
    covered: IntArray
    fragments: IntArray
    waiting: IntArray
    active: IntArray


class Levels(NamedTuple):
    """Results.

    Attributes
    ----------
    of : (3, r + 3) float64
        Free amounts on nodes where no waiting job fits, by resource and then GPUs; fragments; fragments over idle
        GPUs.
    window : (3,) int64
        Begin and end of the integrals, and the last arrival.
    """

    of: FloatArray
    window: IntArray


@njit
def replay(events, pieces, queue, tasks, typical, snapshot, levels, asked, short):  # type: ignore[no-untyped-def]
    """Process all events: integrate over time, and determine the missing resource of the jobs in *asked*.

    *events* allocate and release pieces, *queue* adds and removes waiting jobs of classes, *asked* (2, q) are
    ascending instants and classes. *short* (q,) receives the index of a resource; with r resources, r stands for GPUs,
    r + 1 for node constraints, r + 2 for limits on nodes and exclusive use, r + 3 and above for pools; or `ORDER` or
    `SEVERAL`.
    """
    events, queue, levels = Events(*events), Events(*queue), Levels(*levels)
    pieces, tasks, typical, snapshot = Pieces(*pieces), Tasks(*tasks), Typical(*typical), Snapshot(*snapshot)
    _begin(typical, snapshot, levels)
    i = j = k = 0
    now = levels.window[0]
    scratch = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    while True:
        then = NEVER
        if i < len(events.time):
            then = min(then, events.time[i])
        if j < len(queue.time):
            then = min(then, queue.time[j])
        if k < asked.shape[1]:
            then = min(then, asked[0, k])
        _add(now, min(then, levels.window[1]), snapshot, levels)
        if then == NEVER:
            break
        now = max(now, then)
        while i < len(events.time) and events.time[i] == then:
            _take(events.what[i], events.sign[i], pieces, tasks, typical, snapshot, levels)
            i += 1
        while j < len(queue.time) and queue.time[j] == then:
            _change_waiting(queue.what[j], queue.sign[j], tasks, snapshot, levels)
            j += 1
        while k < asked.shape[1] and asked[0, k] == then:
            short[k] = _short_of(asked[1, k], tasks, snapshot, scratch)
            k += 1
        if then <= levels.window[2]:
            _keep(snapshot, levels)


@njit
def _begin(typical, snapshot, levels):  # type: ignore[no-untyped-def]
    width = snapshot.free.shape[1]
    for n in range(snapshot.free.shape[0]):
        snapshot.fragments[n] = _fragments(n, typical, snapshot)
        levels.of[LEVEL, width + 1] += snapshot.fragments[n]
        _free(n, 1, snapshot, levels)


@inline
def _free(n, sign, snapshot, levels):  # type: ignore[no-untyped-def]
    """Add (or subtract) the free resources of a node in the stranded and idle amounts."""
    width = snapshot.free.shape[1]
    gpus = 0
    for g in range(snapshot.gpus.shape[1]):
        gpus += snapshot.gpus[n, g]
    levels.of[LEVEL, width + 2] += sign * gpus
    if snapshot.covered[n] == 0:
        for r in range(width):
            levels.of[LEVEL, r] += sign * snapshot.free[n, r]
        levels.of[LEVEL, width] += sign * gpus


@inline
def _waits(snapshot):  # type: ignore[no-untyped-def]
    return snapshot.active[len(snapshot.active) - 1] > 0


@njit
def _add(since, until, snapshot, levels):  # type: ignore[no-untyped-def]
    """Integrate the levels over an interval; nothing is stranded while no job waits."""
    if until <= since:
        return
    width, length = snapshot.free.shape[1], float(until - since)
    if _waits(snapshot):
        for r in range(width + 1):
            levels.of[INTEGRAL, r] += levels.of[LEVEL, r] * length
    levels.of[INTEGRAL, width + 1] += levels.of[LEVEL, width + 1] * length
    if levels.of[LEVEL, width + 2] > 0:
        levels.of[INTEGRAL, width + 2] += levels.of[LEVEL, width + 1] / levels.of[LEVEL, width + 2] * length


@njit
def _keep(snapshot, levels):  # type: ignore[no-untyped-def]
    """Store the levels as the values at the last arrival."""
    width = snapshot.free.shape[1]
    for r in range(width + 1):
        levels.of[LAST, r] = levels.of[LEVEL, r] if _waits(snapshot) else 0.0
    levels.of[LAST, width + 1] = levels.of[LEVEL, width + 1]
    idle = levels.of[LEVEL, width + 2]
    levels.of[LAST, width + 2] = levels.of[LEVEL, width + 1] / idle if idle > 0 else 0.0


@njit
def _take(piece, sign, pieces, tasks, typical, snapshot, levels):  # type: ignore[no-untyped-def]
    """Allocate (+1) or release (-1) a piece."""
    n = pieces.node[piece]
    if n < 0:
        for p in range(len(snapshot.pools)):
            snapshot.pools[p] -= sign * pieces.amounts[piece, p]
        return
    width = snapshot.free.shape[1]
    _free(n, -1, snapshot, levels)
    for r in range(width):
        snapshot.free[n, r] -= sign * pieces.amounts[piece, r]
    for at in range(pieces.first[piece], pieces.first[piece + 1]):
        snapshot.gpus[n, pieces.gpu[at]] -= sign * pieces.share[at]
    snapshot.touched[n] += sign
    snapshot.covered[n] = 0
    for at in range(snapshot.active[len(snapshot.active) - 1]):
        if _fit(snapshot.active[at], n, 1, NOTHING, tasks, snapshot) > 0:
            snapshot.covered[n] += 1
    _free(n, 1, snapshot, levels)
    before = snapshot.fragments[n]
    snapshot.fragments[n] = _fragments(n, typical, snapshot)
    levels.of[LEVEL, width + 1] += snapshot.fragments[n] - before


@njit
def _change_waiting(c, sign, tasks, snapshot, levels):  # type: ignore[no-untyped-def]
    """Add or remove a waiting job of a class; a class without tasks needs no node."""
    snapshot.waiting[c] += sign
    if tasks.shape[c, 0] == 0 or snapshot.waiting[c] != (1 if sign > 0 else 0):
        return
    active = snapshot.active
    last = len(active) - 1
    if sign > 0:
        active[active[last]] = c
        active[last] += 1
    else:
        at = 0
        while active[at] != c:
            at += 1
        active[last] -= 1
        active[at] = active[active[last]]
    for n in range(snapshot.free.shape[0]):
        if _fit(c, n, 1, NOTHING, tasks, snapshot) > 0:
            _free(n, -1, snapshot, levels)
            snapshot.covered[n] += sign
            _free(n, 1, snapshot, levels)


@njit
def _fit(c, n, most, spared, tasks, snapshot):  # type: ignore[no-untyped-def]
    """Return how many tasks of a class fit on a node, up to *most*, if one constraint is ignored."""
    width = snapshot.free.shape[1]
    if spared != width + 1 and not tasks.hosts[tasks.shape[c, 3], n]:
        return 0
    if spared != width + 2 and tasks.shape[c, 2] and snapshot.touched[n] > 0:
        return 0
    found = most
    for r in range(width):
        if tasks.each[c, r] > 0 and r != spared:
            found = min(found, snapshot.free[n, r] // tasks.each[c, r])
    g = tasks.shape[c, 1]
    if g > 0 and spared != width:
        slots = 0
        for at in range(snapshot.gpus.shape[1]):
            slots += snapshot.gpus[n, at] // g if g < WHOLE_GPU else snapshot.gpus[n, at] // WHOLE_GPU
        found = min(found, slots if g < WHOLE_GPU else slots // (g // WHOLE_GPU))
    return max(found, 0)


@njit
def _able(c, spared, tasks, snapshot, fits):  # type: ignore[no-untyped-def]
    """Return whether a job of a class could start now if one constraint is ignored (specification, section 3.2)."""
    width = snapshot.free.shape[1]
    for p in range(len(snapshot.pools)):
        if spared != width + 3 + p and snapshot.pools[p] < tasks.pools[c, p]:
            return False
    k, least, most, each = tasks.shape[c, 0], tasks.shape[c, 4], tasks.shape[c, 5], tasks.shape[c, 6]
    if spared == width + 2:
        least, most, each = 1, k, k
    if k == 0:
        return True
    hosts = 0
    for n in range(snapshot.free.shape[0]):
        fits[n] = -_fit(c, n, each, spared, tasks, snapshot)
        hosts += fits[n] < 0
    if hosts < least:
        return False
    if most < hosts:
        fits.sort()
    slots = 0
    for n in range(len(fits) if most >= hosts else most):
        slots -= fits[n]
    return slots >= k


@njit
def _short_of(c, tasks, snapshot, scratch):  # type: ignore[no-untyped-def]
    """Return the one constraint without which a job could start."""
    if _able(c, NOTHING, tasks, snapshot, scratch):
        return ORDER
    for spared in range(snapshot.free.shape[1] + 3 + len(snapshot.pools)):
        if _able(c, spared, tasks, snapshot, scratch):
            return spared
    return SEVERAL


@njit
def _fragments(n, typical, snapshot):  # type: ignore[no-untyped-def]
    """Return the fragmentation F of a node (section 3.6): idle thousandths that the typical tasks cannot use."""
    total, width = 0, snapshot.free.shape[1]
    idle = 0
    for at in range(snapshot.gpus.shape[1]):
        idle += snapshot.gpus[n, at]
    if idle == 0:
        return 0
    for m in range(len(typical.gpu)):
        g = min(typical.gpu[m], WHOLE_GPU)
        useless, able = 0, 0
        for at in range(snapshot.gpus.shape[1]):
            if snapshot.gpus[n, at] >= g:
                able += snapshot.gpus[n, at] > 0
            else:
                useless += snapshot.gpus[n, at]
        short = g == 0 or not typical.accepted[m, n] or able < max(1, typical.gpu[m] // WHOLE_GPU)
        for r in range(width):
            short = short or snapshot.free[n, r] < typical.each[m, r]
        total += typical.counts[m] * (idle if short else useless)
    return total
