"""Limits of the cores of waiting requests, compiled: the rules of the included partitions as columns.

The *limits* are passed as a plain tuple, which is fastest:

- ``rule`` (3,): rule, weighting, and the work that counts; ``factors`` (2,): weight factor and gap factor;
- ``weights`` (2, n): effective sequential run time of each request, s, and its weight; ``counts`` (n,): whether it
  counts in the sum;
- ``allowed`` (n,): maximum cores, the result; ``values`` (n + 1,), ``halves`` (3, 64), ``sums`` (64,): workspace.

Section 4 of the project's specification of moldable jobs.
"""

# Types are in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.running_set import RUNNING
from gridsim.machine.running_set import TOTAL as ALL
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.queue import Requests

RULE, WEIGHT, SCOPE = range(3)
GIVEN, ANY, SHARE = range(3)
"""Rules: limits computed in Python, any size, a share of the work."""
LINEAR, SQRT, SQRT_PARALLEL, EQUAL = range(4)
SYSTEM, REMAINING, QUEUED = range(3)
WF, GAP = range(2)
WHOLE, WEIGHED = range(2)
_BLOCK = 128


class Limits(NamedTuple):
    """Parameters and workspace of the limits of a run, as described above."""

    rule: IntArray
    factors: FloatArray
    weights: FloatArray
    counts: IntArray
    allowed: IntArray
    values: FloatArray
    halves: IntArray
    sums: FloatArray


def limits_of(
    requests: Requests,
    rule: int,
    weight: int = LINEAR,
    scope: int = SYSTEM,
    *,
    wf: float = 1.0,
    gap: float = 1.0,
) -> Limits:
    """Return the limits of a run, by one of the rules of this module."""
    n = len(requests)
    found = Limits(
        rule=np.array([rule, weight, scope], dtype=np.int64),
        factors=np.array([wf, gap], dtype=np.float64),
        weights=np.zeros((2, n if rule == SHARE else 0)),
        counts=np.ones(n, dtype=np.int64),
        allowed=np.zeros(n, dtype=np.int64),
        values=np.zeros(n + 1),
        halves=np.zeros((3, 64), dtype=np.int64),
        sums=np.zeros(64),
    )
    take_down(found, requests, slice(None))
    return found


def take_down(limits: Limits, requests: Requests, rows: slice | int) -> None:
    """Store the weights of some requests."""
    if limits.rule[RULE] != SHARE:
        return
    weight = requests.weight_seconds[rows]
    limits.weights[WHOLE, rows] = weight
    weighed = weight if limits.rule[WEIGHT] == LINEAR else np.sqrt(weight)
    limits.weights[WEIGHED, rows] = 1.0 if limits.rule[WEIGHT] == EQUAL else weighed
    if limits.rule[WEIGHT] == SQRT_PARALLEL:
        limits.counts[rows] = requests.maximum[rows] > 1


@inline
def _few(values, begin, count):  # type: ignore[no-untyped-def]
    """Return the sum of at most 128 numbers, added in the order of numpy."""
    if count < 8:
        found = 0.0
        for i in range(begin, begin + count):
            found += values[i]
        return found
    a, b, c, d = values[begin], values[begin + 1], values[begin + 2], values[begin + 3]
    e, f, g, h = values[begin + 4], values[begin + 5], values[begin + 6], values[begin + 7]
    i, end = begin + 8, begin + count - count % 8
    while i < end:
        a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
        e, f, g, h = e + values[i + 4], f + values[i + 5], g + values[i + 6], h + values[i + 7]
        i += 8
    found = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(end, begin + count):
        found += values[k]
    return found


@njit_noalloc
def total(values, count, halves, sums):  # type: ignore[no-untyped-def]
    """Return the sum of the first *count* numbers, equal to numpy's to the last bit (pairwise summation).

    *halves* (3, 64) and *sums* (64,) are workspace: begin and length of each second half, whether the first half has
    been summed, and its sum.
    """
    depth, begin, length = 0, 0, count
    while True:
        while length > _BLOCK:
            first = length // 2
            first -= first % 8
            halves[0, depth], halves[1, depth], halves[2, depth] = begin + first, length - first, 0
            depth += 1
            length = first
        found = _few(values, begin, length)
        while depth and halves[2, depth - 1]:
            depth -= 1
            found = sums[depth] + found
        if not depth:
            return found
        sums[depth - 1], halves[2, depth - 1] = found, 1
        begin, length = halves[0, depth - 1], halves[1, depth - 1]


@njit_noalloc
def _work(now, rows, running, busy, began, limits):  # type: ignore[no-untyped-def]
    """Return the work in the system: of the waiting requests *rows* and of the *busy* running ones, by the rule."""
    rule, values = limits.rule, limits.values
    whole, weighed = limits.weights[WHOLE], limits.weights[WEIGHED]
    for i in range(rows.shape[0]):
        values[i] = weighed[rows[i]] if limits.counts[rows[i]] else 0.0
    everything = total(values, rows.shape[0], limits.halves, limits.sums)
    if rule[SCOPE] == QUEUED:
        return everything
    count = 0
    for i in range(busy):
        row = running[1, i]
        if not limits.counts[row]:
            continue
        values[count] = weighed[row]
        if rule[SCOPE] == REMAINING and rule[WEIGHT] != EQUAL:
            begin, end = began[row] / 1e6, running[0, i] / 1e6
            left = whole[row] * max(0.0, end - now / 1e6) / (end - begin)
            values[count] = left if rule[WEIGHT] == LINEAR else np.sqrt(left)
        count += 1
    return everything + total(values, count, limits.halves, limits.sums)


@njit_noalloc
def _share(row, everything, cores, limits):  # type: ignore[no-untyped-def]
    """Return the maximum cores of a request by its share of all work."""
    share = limits.weights[WEIGHED, row] / everything if everything > 0 else 0.0
    part = min(limits.factors[WF] * share, limits.factors[GAP])
    return max(1, np.int64(np.floor(part * cores + 1e-9)))


@njit_noalloc
def allow(now, rows, held, least, most, limits):  # type: ignore[no-untyped-def]
    """Set ``allowed`` to the maximum cores of each waiting request, in the order of *rows*; limits from Python stay.

    *held* has the running requests by expected end, their counts, the cores of all requests and their start times.
    *least* and *most* (n,) are the ends of the size ranges; the minimum size is always allowed.
    """
    running, counts, _, began = held
    if limits.rule[RULE] == GIVEN:
        return
    if limits.rule[RULE] == ANY:
        for i in range(rows.shape[0]):
            limits.allowed[i] = most[rows[i]]
        return
    everything = _work(now, rows, running, counts[RUNNING], began, limits)
    for i in range(rows.shape[0]):
        row = rows[i]
        limits.allowed[i] = min(most[row], max(_share(row, everything, counts[ALL], limits), least[row]))


@njit_noalloc
def allow_one(now, rows, held, least, most, limits):  # type: ignore[no-untyped-def]
    """Return the maximum cores of the last of the *rows*, a new request behind the waiting ones."""
    running, counts, _, began = held
    row = rows[rows.shape[0] - 1]
    if limits.rule[RULE] == ANY:
        return most[row]
    everything = _work(now, rows, running, counts[RUNNING], began, limits)
    return min(most[row], max(_share(row, everything, counts[ALL], limits), least[row]))
