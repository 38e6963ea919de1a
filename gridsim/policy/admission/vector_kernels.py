"""Compiled operations on a plan of requests that ask for several resources; see `gridsim.policy.admission.kernels`.

What is free is a `gridsim.profile.floor.Floor`; ``waiting`` and ``planned`` are as there.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.model.time import NEVER
from gridsim.profile.blocks import block_at
from gridsim.profile.compiled import lean
from gridsim.profile.fitting import fit, fits_over, not_before, totals_over
from gridsim.profile.floor import BLOCKS, ENDS, HOSTS, TASKS, first_end

__all__ = ["first_anew", "first_by_totals", "first_on_fresh"]


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
