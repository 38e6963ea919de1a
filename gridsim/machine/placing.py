"""Compiled placement with look-ahead: tasks go to the nodes with the lowest score (spec of machines, 3.3 to 3.6)."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.feasibility import WHOLE, largest
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.node_profile import GPU, MAX_NODES, MIN_NODES, TASK, TASKS, Classes, Workspace
from gridsim.model.time import FloatArray, IntArray

FIRST_NODE, PACK, SPREAD, WEIGHT, PRODUCT_HIGH, PRODUCT_LOW, FRAGMENTS, OUTSIDE = range(8)
"""Kinds of placement rules; `OUTSIDE` rules are written in Python."""

FINE = 2**33
"""Scale of scores that are not whole numbers: scores that differ by less than about 1e-9 are equal."""

KIND, _ROUGH, _COUNT, _UNIT, _SUM = range(5)
_NONE = -1


class Rule(NamedTuple):
    """Scores of a placement rule.

    Attributes
    ----------
    what : (5,) int64
        Kind; whether scores are rounded down to a hundred steps; number of counted resources; score of a resource that
        is entirely free; sum of the counts of the typical demands.
    weights : (r + 1,) int64
        Score of a unit of each resource and of a thousandth of a GPU; 0 if *ratios* are used.
    ratios : (r + 1,) float64
        The same as floats if whole numbers would be too large, with `FINE` for 1.
    nodes : (n,) int64
        Weights of nodes.
    typical : (m, r + 2) int64
        Demand of each typical task for the resources, thousandths of GPU, count.
    accepts : (m, n) int64
        Whether the GPUs of a node have a type that the typical task accepts.
    known : (tasks, n, k + 1) int64
        By distinct task and node: the free amounts for which the score was computed, and the score. 0 tasks for no
        cache.
    """

    what: IntArray
    weights: IntArray
    ratios: FloatArray
    nodes: IntArray
    typical: IntArray
    accepts: IntArray
    known: IntArray


# -- fragmentation ---------------------------------------------------------------------------------------------------


@njit_noalloc
def fragments(low, rule, n):  # type: ignore[no-untyped-def]
    """Return the idle thousandths of GPU of a node that typical tasks cannot use, times their counts (3.6)."""
    typical = rule.typical
    resources = typical.shape[1] - 2
    last = low.shape[0] - 1
    idle = 0
    for i in range(resources, last):
        idle += low[i]
    if idle == 0:
        return 0
    total = 0
    for m in range(typical.shape[0]):
        share = typical[m, resources]
        useful = share > 0 and rule.accepts[m, n] > 0
        for r in range(resources):
            useful = useful and low[r] >= typical[m, r]
        lost = idle
        if useful:
            able, small = 0, 0
            for i in range(resources, last):
                if low[i] >= min(share, WHOLE):
                    able += 1
                else:
                    small += low[i]
            if able >= max(1, share // WHOLE):
                lost = small
        total += typical[m, resources + 1] * lost
    return total


@njit_noalloc
def _change_of(low, each, shape, rule, n):  # type: ignore[no-untyped-def]
    """Return the fragmentation that a task adds to a node, on the GPU where it adds least."""
    before = fragments(low, rule, n)
    resources, last, share = each.shape[0], low.shape[0] - 1, shape[GPU]
    for r in range(resources):
        low[r] -= each[r]
    if share == 0:
        after = fragments(low, rule, n)
    elif share < WHOLE:
        gpu = _least_lost(low, resources, share, rule, n)
        low[gpu] -= share
        after = fragments(low, rule, n)
        low[gpu] += share
    else:
        taken = _take_free_gpus(low, resources, share // WHOLE)
        after = fragments(low, rule, n)
        for i in range(resources, last):
            if taken >> (i - resources) & 1:
                low[i] = WHOLE
    for r in range(resources):
        low[r] += each[r]
    return after - before


@njit_noalloc
def _take_free_gpus(low, resources, count):  # type: ignore[no-untyped-def]
    """Take the free GPUs with the lowest numbers; return a bit for each."""
    taken = 0
    for i in range(resources, low.shape[0] - 1):
        if count > 0 and low[i] == WHOLE:
            low[i] = 0
            taken |= 1 << (i - resources)
            count -= 1
    return taken


@njit_noalloc
def _least_lost(low, resources, share, rule, n):  # type: ignore[no-untyped-def]
    """Return the index of the GPU that fits a share with the least fragmentation afterwards; lower numbers first."""
    best, least = -1, 0
    for i in range(resources, low.shape[0] - 1):
        if low[i] < share:
            continue
        low[i] -= share
        lost = fragments(low, rule, n)
        low[i] += share
        if best < 0 or lost < least:
            best, least = i, lost
    return best


# -- scores ----------------------------------------------------------------------------------------------------------


@njit_noalloc
def _score(sketch, classes, rule, c, n):  # type: ignore[no-untyped-def]
    """Return the score of one more task on a node; lowest first (3.5)."""
    kind = rule.what[KIND]
    if kind in (FIRST_NODE, OUTSIDE):
        return 0
    if kind == WEIGHT:
        return rule.nodes[n]
    if kind == FRAGMENTS:
        return _fragmentation(sketch.low[n], classes, rule, c, n)
    low, each, share = sketch.low[n], classes.each[c], classes.shape[c, GPU]
    resources = each.shape[0]
    products = kind in (PRODUCT_HIGH, PRODUCT_LOW)
    steps = rule.what[_ROUGH] > 0
    total, ratio = 0, 0.0
    for r in range(resources + 1):
        asked = each[r] if r < resources else share
        left = low[r]
        if r == resources:
            left = 0
            for i in range(resources, low.shape[0] - 1):
                left += low[i]
        if steps and not products:
            left -= asked
        total += left * rule.weights[r] * (asked if products else 1)
        ratio += left * rule.ratios[r] * (asked if products else 1)
    total += int(np.rint(ratio))
    least_first = kind in (PACK, PRODUCT_LOW)
    if not steps:
        return total if least_first else -total
    most = rule.what[_COUNT] * rule.what[_UNIT]
    return -(100 * (most - total if least_first else total) // most)


@njit_noalloc
def _fragmentation(low, classes, rule, c, n):  # type: ignore[no-untyped-def]
    """Return the fragmentation that a task adds to a node; from the cache if the free amounts are the same."""
    task, last = classes.shape[c, TASK], low.shape[0]
    if task < rule.known.shape[0]:
        known = rule.known[task, n]
        same = True
        for k in range(last - 1):
            same = same and known[k] == low[k]
        if same:
            return known[last]
    found = _change_of(low, classes.each[c], classes.shape[c], rule, n)
    if rule.what[_ROUGH] > 0:
        found = -int(np.floor(100.0 / (1.0 + np.exp(found / (1000.0 * rule.what[_SUM])))))
    if task < rule.known.shape[0]:
        for k in range(last):
            rule.known[task, n, k] = low[k]
        rule.known[task, n, last] = found
    return found


# -- placement -----------------------------------------------------------------------------------------------------


@njit_noalloc
def give(sketch, classes, rule, c, n, tasks, gpu):  # type: ignore[no-untyped-def]
    """Place tasks on a node: allocate their resources and GPUs (3.4); a share on GPU *gpu*, or -1 for any."""
    low, each, share = sketch.low[n], classes.each[c], classes.shape[c, GPU]
    resources, last = each.shape[0], low.shape[0] - 1
    sketch.placed[n] += tasks
    for r in range(resources):
        low[r] -= tasks * each[r]
    if share == 0:
        return
    kind = rule.what[KIND]
    for _ in range(tasks):
        if share >= WHOLE:
            taken = _take_free_gpus(low, resources, share // WHOLE)
            for i in range(resources, last):
                if taken >> (i - resources) & 1:
                    sketch.given[n, i - resources] = WHOLE
            continue
        best = resources + gpu
        if gpu < 0:
            best = -1
            if kind == FRAGMENTS:
                best = _least_lost(low, resources, share, rule, n)
            for i in range(resources, last if best < 0 else resources):
                if low[i] >= share:
                    better = best < 0 or (low[i] > low[best] if kind == SPREAD else low[i] < low[best])
                    best = i if better else best
        low[best] -= share
        sketch.given[n, best - resources] += share


@njit_noalloc
def _winner(scores, one, other):  # type: ignore[no-untyped-def]
    """Return the node with the lower score, of equal ones the left, which has the lower number; `_NONE` loses."""
    if one == _NONE or (other != _NONE and scores[other] < scores[one]):
        return other
    return one


@njit_noalloc
def _enter(sketch, n, able):  # type: ignore[no-untyped-def]
    """Set the leaf of a node in the tournament tree: its new score, or removed if it is not *able*."""
    tree = sketch.tree
    i = tree.shape[0] // 2 + n
    tree[i] = n if able else _NONE
    i >>= 1
    while i > 0:
        tree[i] = _winner(sketch.scores, tree[2 * i], tree[2 * i + 1])
        i >>= 1


@njit_noalloc
def may_take(sketch, shape, n, left, used, slack, others):  # type: ignore[no-untyped-def]
    """Return whether the next task may go to a node such that the remaining tasks still fit (3.3).

    *left* tasks remain, including this one. *used* nodes have tasks and can take *slack* more. *others* is the number
    of tasks that fit on the maximum number of further nodes.
    """
    if sketch.placed[n] >= sketch.fits[n]:
        return False
    if sketch.placed[n] > 0:
        return shape[MIN_NODES] - used < left
    return used < shape[MAX_NODES] and sketch.fits[n] >= left - slack - others


@njit_noalloc
def place_tasks(sketch, classes, rule, row):  # type: ignore[no-untyped-def]
    """Place all tasks of a request on the free capacity that a search left in the workspace, where they fit."""
    sketch, classes, rule = Workspace(*sketch), Classes(*classes), Rule(*rule)
    c = classes.of[row]
    shape, fits, placed, scores = classes.shape[c], sketch.fits, sketch.placed, sketch.scores
    begin(sketch)
    left, able = shape[TASKS], 0
    used = slack = np.int64(0)  # variables, since constants would compile the callee once for each
    if left == 0:
        return
    for n in range(fits.shape[0]):
        able += fits[n] > 0
        sketch.open[n] = 1
    limited = able > shape[MAX_NODES]
    stays = rule.what[KIND] in (FIRST_NODE, WEIGHT, PACK)
    others, first, last = left, np.int64(0), fits.shape[0]  # nodes whose scores are needed
    while left > 0:
        for n in range(first, last):
            if placed[n] < fits[n]:
                scores[n] = _score(sketch, classes, rule, c, n)
        if limited:
            others = largest(fits, sketch.open, sketch.sorted, shape[MAX_NODES] - used - 1)
        elif used == 0:
            _draw(sketch)
        else:
            _enter(sketch, first, placed[first] < fits[first])
        best = sketch.tree[1]
        if limited or used + left <= shape[MIN_NODES]:
            best = _best(sketch, shape, left, used, slack, others)
        later = max(0, shape[MIN_NODES] - used - (0 if placed[best] else 1))
        tasks = min(fits[best] - placed[best], left - later) if stays else 1
        slack -= tasks
        if placed[best] == 0:
            used += 1
            slack += fits[best]
            sketch.open[best] = 0
        give(sketch, classes, rule, c, best, tasks, np.int64(-1))
        left -= tasks
        first, last = best, best + 1


@njit_noalloc
def begin(sketch):  # type: ignore[no-untyped-def]
    """Begin without placed tasks."""
    for n in range(sketch.placed.shape[0]):
        sketch.placed[n] = 0
        for g in range(sketch.given.shape[1]):
            sketch.given[n, g] = 0


@njit_noalloc
def _draw(sketch):  # type: ignore[no-untyped-def]
    """Enter all nodes that can take tasks in the tournament."""
    tree = sketch.tree
    half = tree.shape[0] // 2
    for n in range(half):
        tree[half + n] = n if n < sketch.fits.shape[0] and sketch.fits[n] > 0 else _NONE
    for i in range(half - 1, 0, -1):
        tree[i] = _winner(sketch.scores, tree[2 * i], tree[2 * i + 1])


@njit_noalloc
def _best(sketch, shape, left, used, slack, others):  # type: ignore[no-untyped-def]
    """Return the node of lowest score among those that may take the next task."""
    best = _NONE
    for n in range(sketch.fits.shape[0]):
        if may_take(sketch, shape, n, left, used, slack, others):
            best = n if best == _NONE or sketch.scores[n] < sketch.scores[best] else best
    return best


# -- rules in Python -----------------------------------------------------------------------------------------------


@njit_noalloc
def ready(sketch, classes, c, step, able):  # type: ignore[no-untyped-def]
    """Write the nodes that may take the next task to *able*; return the number of remaining tasks.

    *step* contains the remaining tasks, the used nodes and how many more tasks these can take; -1 at first.
    """
    sketch, classes = Workspace(*sketch), Classes(*classes)
    shape = classes.shape[c]
    if step[0] < 0:
        begin(sketch)
        step[0], step[1], step[2] = shape[TASKS], 0, 0
    for n in range(able.shape[0]):
        sketch.open[n] = sketch.placed[n] == 0
    others = largest(sketch.fits, sketch.open, sketch.sorted, shape[MAX_NODES] - step[1] - 1)
    for n in range(able.shape[0] if step[0] > 0 else 0):
        able[n] = may_take(sketch, shape, n, step[0], step[1], step[2], others)
    return step[0]


@njit_noalloc
def take(sketch, classes, rule, c, step, n, gpu):  # type: ignore[no-untyped-def]
    """Place the next task on a node; a share on GPU *gpu*, or -1 for the fullest one."""
    sketch, classes, rule = Workspace(*sketch), Classes(*classes), Rule(*rule)
    if sketch.placed[n] == 0:
        step[1] += 1
        step[2] += sketch.fits[n]
    step[0] -= 1
    step[2] -= 1
    give(sketch, classes, rule, c, n, 1, gpu)
