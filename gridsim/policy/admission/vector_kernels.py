"""Compiled operations on a plan of requests that ask for several resources; see `gridsim.policy.admission.kernels`.

What is free is a `gridsim.profile.floor.Floor`; ``waiting`` and ``planned`` are as there.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.model.time import NEVER
from gridsim.policy.admission.price import term
from gridsim.profile.blocks import block_at
from gridsim.profile.compiled import lean
from gridsim.profile.fitting import can_place, first_place, fit, fits_over, not_before, totals_over
from gridsim.profile.floor import (
    BLOCKS,
    ENDS,
    HOSTS,
    TASKS,
    Classes,
    Floor,
    Sketch,
    first_end,
    hold,
)
from gridsim.profile.laying import KIND, OUTSIDE, lay

__all__ = ["AT", "BY_RULE", "LAID", "LASTING", "LATE", "NOW", "PRICE"]
__all__ += ["all_in_time", "bring_up", "first_anew", "first_by_totals", "first_on_fresh", "lay_down"]

AT, NOW, LASTING, PRICE, LAID = range(5)
"""Of laying down in an order: the place in it, the present, whether places are for ever, which price counts (-1 for
none), whether the request there has its place already."""

LATE, DEAR, BY_RULE = range(4, 7)
"""Why laying down stops, beside what has to grow (1 to 3): an end behind its deadline, a price that is too high, a rule
that is asked in Python."""


@lean
def first_by_totals(floor, classes, c, duration, begin, before):  # type: ignore[no-untyped-def]
    """First instant at which a waiting request may start earlier than planned as far as the totals go; -1 for none.

    Its own hold, from *before* on, is among what is held, and leaves it what it needs.
    """
    at = begin
    while at < before:
        short = totals_over(floor, classes, c, at, min(at + duration, before))
        if short < 0:
            return at
        index = first_end(floor, short)
        if index >= floor.meta[ENDS]:
            return np.int64(-1)
        at = floor.ends[index]
    return np.int64(-1)


@lean
def first_on_fresh(floor, classes, fresh, nodes, c, duration, begin, before, own):  # type: ignore[no-untyped-def]
    """An instant before which a waiting request cannot start anew: no node that got something back has room for a task.

    Nodes that got nothing back have no more room than when the request was looked at last. *before* where there is none
    at all. From *own* on its own hold is among what is held (`NEVER` for none): what lies there is not looked at.
    """
    shape = classes.shape[c]
    if shape[TASKS] == 0 or classes.whole[c, classes.each.shape[1] + 1 :].sum() > 0:  # pools have no nodes
        return begin
    first = before
    for n in nodes:
        if not classes.hosts[shape[HOSTS], n]:
            continue
        times, size, last = floor.node_times[n], floor.nodes[BLOCKS, n], min(fresh[1, n], first)
        at = max(begin, fresh[0, n] - duration + 1)
        i = block_at(times, size, at)
        while at < last and i < size and times[i] < min(at + duration, own):
            if fit(floor.node_free[n, i], classes, c, floor.shares.shape[1], np.int64(1)) == 0:
                at = times[i + 1] if i + 1 < size else before
            i += 1
        if at < last:
            first = at
    return first


@lean
def first_anew(floor, classes, sketch, fresh, nodes, row, duration, begin, old):  # type: ignore[no-untyped-def]
    """First instant from *begin* on at which a request fits whose hold has been lifted out of the nodes; -1 for none.

    The totals count its hold from *old* on, where it leaves them what they need. The sketch tells what is free there.
    """
    c, at = classes.of[row], begin
    while at < old:
        hope = first_on_fresh(floor, classes, fresh, nodes, c, duration, at, old, NEVER)
        if hope > at:  # only the present and ends of holds can be answers
            index = first_end(floor, hope)
            if hope >= old or index >= floor.meta[ENDS]:
                break
            at = floor.ends[index]
            if at > hope:
                continue
        short = totals_over(floor, classes, c, at, min(at + duration, old))
        if short >= 0:
            after = short
        elif fits_over(floor, classes, sketch, c, at, at + duration):
            return at
        else:
            after = max(at + 1, not_before(floor, classes, sketch, c, at, at + duration))
        index = first_end(floor, after)
        if index >= floor.meta[ENDS]:
            break
        at = floor.ends[index]
    return np.int64(-1)


# -- searches --------------------------------------------------------------------------------------------------------


@lean
def lay_down(order, step, cost, jobs, starts, floor, classes, sketch, rule):  # type: ignore[no-untyped-def]
    """Lay requests of a search down, each at its earliest place beside those before it; 0 when all are, else why not.

    *jobs* are columns of a `NodeSearch`, *order* numbers in them, and ``step[AT]`` how many are laid down, with which
    it goes on. What they add to the price comes upon ``cost[0]``, which has to stay below ``cost[1]``.
    """
    rows, cores, estimate, due, submit, planned = jobs
    while step[AT] < order.shape[0]:
        job = order[step[AT]]
        row = rows[job]
        if not step[LAID]:
            duration = NEVER if step[LASTING] else estimate[job]
            start = first_place(floor, classes, sketch, step[NOW], row, duration, NEVER, NEVER)
            if start < 0 or start + estimate[job] > due[job]:
                return LATE
            if step[PRICE] >= 0:
                own = planned[job], cores[job], estimate[job], due[job], submit[job]
                cost[0] += term(step[PRICE], start, own[0], own[1], own[2], own[3], own[4])
                if cost[0] >= cost[1]:
                    return DEAR
            starts[job], step[LAID] = start, 1
            if rule[0][KIND] == OUTSIDE:
                return BY_RULE
            lay(sketch, classes, rule, row)
        count = hold(floor, classes, sketch, row, starts[job], starts[job] + estimate[job], np.int64(1))
        if count < 0:
            return -count
        step[LAID] = 0
        step[AT] += 1
    return 0


@lean
def bring_up(order, last, earliest, jobs, lasting, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Bring the earliest starts of requests up to date, which were right before one was laid down from when to when."""
    rows, estimate = jobs[0], jobs[2]
    for job in order:
        duration = NEVER if lasting else estimate[job]
        at = earliest[job]
        if at < last[1] and at + duration > last[0]:
            start = first_place(floor, classes, sketch, at, rows[job], duration, NEVER, NEVER)
            earliest[job] = NEVER if start < 0 else start


@lean
def all_in_time(order, last, known, jobs, lasting, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Whether each request could still be placed in time, alone: at its *known* instant, or any other.

    *last* is the present, how many are laid down, and from when to when the last one is. ``known[0]`` are instants at
    which they can be placed, ``known[1]`` beside how many of those laid down that was found out, -1 for never; the
    latest that there is at once, which what is laid down later seldom touches.
    """
    rows, _, estimate, due, _, _ = jobs
    floor, classes, sketch = Floor(*floor), Classes(*classes), Sketch(*sketch)
    now, depth, start, end = last
    for job in order:
        c, duration = classes.of[rows[job]], NEVER if lasting else estimate[job]
        at, beside = known[0, job], known[1, job]
        untouched = depth > 0 and beside == depth - 1 and (at >= end or at + duration <= start)
        if beside < 0 or not (untouched or can_place(floor, classes, sketch, c, at, at + duration)):
            at = due[job] - estimate[job]
            if at < now or not can_place(floor, classes, sketch, c, at, at + duration):
                at = first_place(floor, classes, sketch, now, rows[job], duration, NEVER, NEVER)
                if at < 0 or at + estimate[job] > due[job]:
                    known[1, job] = -1
                    return False
            known[0, job] = at
        known[1, job] = depth
    return True
