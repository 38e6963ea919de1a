"""Compiled operations on a plan of requests that ask for several resources; see `gridsim.policy.admission.kernels`.

What is free is a `gridsim.profile.floor.Floor`; ``waiting`` and ``planned`` are as there.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.policy.admission.kernels import HEAD, TAIL
from gridsim.profile.compiled import lean
from gridsim.profile.fitting import first_place, totals_over
from gridsim.profile.floor import ENDS, NOW, Classes, Floor, Sketch, advance, first_end, lift, lower

__all__ = ["AT", "FRONTIER", "MOVED", "SINCE", "START", "next_move", "sort_order"]

AT, START, SINCE, FRONTIER, MOVED = range(5)
"""Of a compression: place in its order, where the request there can go; when what was given back begins and ends;
how many have moved."""


@lean
def sort_order(meta, waiting, planned, coming):  # type: ignore[no-untyped-def]
    """Order the waiting requests by planned start, then job order; they are nearly sorted."""
    for i in range(meta[HEAD] + 1, meta[TAIL]):
        row, start = waiting[i], planned[i]
        k = i
        while k > meta[HEAD]:
            other = waiting[k - 1]
            if planned[k - 1] < start:
                break
            if planned[k - 1] == start and (
                coming[other] < coming[row] or (coming[other] == coming[row] and other < row)
            ):
                break
            waiting[k], planned[k] = other, planned[k - 1]
            k -= 1
        waiting[k], planned[k] = row, start


@lean
def first_by_totals(floor, classes, c, duration, begin, before, frontier):  # type: ignore[no-untyped-def]
    """First instant at which a waiting request may start earlier than planned as far as the totals go; -1 for none.

    Its own hold, from *before* on, is among what is held, and leaves it what it needs.
    """
    at = begin
    while at < before and at < frontier:
        short = totals_over(floor, classes, c, at, min(at + duration, before))
        if short < 0:
            return at
        index = first_end(floor, short)
        if index >= floor.meta[ENDS]:
            return np.int64(-1)
        at = floor.ends[index]
    return np.int64(-1)


@lean
def next_move(now, order, step, plan, estimate, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Go on to the next request of a compression that can start earlier, and take its hold out; whether there is one.

    The sketch tells what is free at its new start, which is to be laid down before the next call.
    """
    waiting, planned = plan
    floor, classes, sketch = Floor(*floor), Classes(*classes), Sketch(*sketch)
    advance(floor, now)
    while step[AT] + 1 < order.shape[0]:
        step[AT] += 1
        row, old = waiting[order[step[AT]]], planned[order[step[AT]]]
        if old <= now:
            continue
        duration, c = estimate[row], classes.of[row]
        begin = floor.meta[NOW]
        if step[SINCE] - duration >= begin:  # what ends before anything was given back cannot be new
            index = first_end(floor, step[SINCE] - duration + 1)
            if index >= floor.meta[ENDS]:
                continue
            begin = floor.ends[index]
        begin = first_by_totals(floor, classes, c, duration, begin, old, step[FRONTIER])
        if begin < 0:
            continue
        lift(floor, classes, sketch, row, np.int64(1))
        start = first_place(floor, classes, sketch, begin, row, duration, min(old, step[FRONTIER]))
        if start >= 0:
            lower(floor, row)
            step[START] = start
            step[SINCE], step[FRONTIER] = min(step[SINCE], old), max(step[FRONTIER], old + duration)
            step[MOVED] += 1
            return True
        lift(floor, classes, sketch, row, np.int64(-1))
    return False
