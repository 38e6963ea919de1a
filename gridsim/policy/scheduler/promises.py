"""A compiled pass over requests whose size is chosen when they start: holders of promises first, then the others.

Sections 3.4 and 5 of the project's specification of moldable jobs. Times in microseconds.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

from gridsim.model.time import IntArray
from gridsim.policy.limits import Limits, allow
from gridsim.policy.scheduler.sizes import LEAST, MOST, Sizes, choose, fitting_now, on, starts_now
from gridsim.profile.blocks import reserve
from gridsim.profile.compiled import lean, phase
from gridsim.profile.running import begin_running, only_running
from gridsim.profile.waiting import before, index_of, take_out

__all__ = ["ANEW", "BEST", "BY_QUEUE", "CORES", "DUE", "HELD", "LANE", "ROWS", "STARTED", "STARTING", "PromiseColumns"]
__all__ += ["mold"]

HOLDERS, STARTED, ANEW = range(3)
LANE, DUE, HOLDS, ALLOWED, LIMIT, START, WIDTH, HELD, STARTING, CORES = range(10)
ROWS = 10
NOBODY, IN_LANE, ALONE = range(3)
BEST, BY_QUEUE = range(2)
"""How a pass is made."""


class PromiseColumns(NamedTuple):
    """Who holds a promise, the place that it was given last, and who starts.

    Attributes
    ----------
    table : (10, n) int64
        Of each request: lane; instant after which it holds a promise of its own, outside of its lane; how it holds one;
        most cores in this pass; limit, start and cores of its place. Then two lists of requests, in order: those that
        hold promises, those that this pass starts; and the cores of the latter.
    unheld : (k,) int64
        Promises that each lane may still give.
    counts : (3,) int64
        Holders; how many this pass has started; whether places must be found anew, since cores came free early.
    ties : (2, n) int64
        Those of `gridsim.profile.waiting`.
    """

    table: IntArray
    unheld: IntArray
    counts: IntArray
    ties: IntArray


@lean
def mold(now, rows, waiting, how, limits, shapes, promises, held, blocks):  # type: ignore[no-untyped-def]
    """One pass: promises that have come due, holders in order, then the others in queue order; how many it starts.

    *rows* wait, in queue order, in the queue *waiting*. ``how[BEST]``: a request without a promise starts only if no
    later start ends earlier; ``how[BY_QUEUE]``: holders are served in queue order. *limits*, *shapes* and *promises*
    are `gridsim.policy.limits.Limits`, `Sizes` and `PromiseColumns` as plain tuples; *held* who runs until when and on
    how many cores, as `only_running` takes it, and since when; *blocks* (2, room) is scratch for the profile.
    """
    sizes, places, most = Sizes(*shapes), PromiseColumns(*promises), Limits(*limits)
    running, counts, cores, _ = held
    times, free = blocks[0], blocks[1]
    allow(now, rows, held, sizes.table[LEAST], sizes.table[MOST], most)
    size = only_running(now, running, counts, cores, times, free)
    _come_due(now, rows, most.allowed, places)
    if how[BY_QUEUE]:
        _put_in_queue_order(rows, places)
        places.counts[ANEW] = 1
    places.counts[STARTED] = 0
    size = _serve_holders(now, times, free, size, sizes, places)
    _serve_others(now, rows, times, free, size, how[BEST], sizes, places)
    _begin(now, waiting, held, sizes, places)
    return places.counts[STARTED]


@phase
def _come_due(now, rows, high, promises):  # type: ignore[no-untyped-def]
    """Note the limits of this pass; who has waited too long holds a promise too, those due first before others."""
    table, counts = promises.table, promises.counts
    known = counts[HOLDERS]
    for i in range(rows.shape[0]):
        row = rows[i]
        table[ALLOWED, row] = high[i]
        if table[HOLDS, row] != NOBODY or table[DUE, row] >= now:
            continue
        k = counts[HOLDERS]
        while k > known and before(table[DUE], promises.ties, row, table[HELD, k - 1]):
            table[HELD, k] = table[HELD, k - 1]
            k -= 1
        table[HELD, k] = row
        table[HOLDS, row], table[LIMIT, row] = ALONE, -1
        counts[HOLDERS] += 1


@phase
def _put_in_queue_order(rows, promises):  # type: ignore[no-untyped-def]
    k = 0
    for row in rows:
        if promises.table[HOLDS, row] != NOBODY:
            promises.table[HELD, k] = row
            k += 1


@phase
def _serve_holders(now, times, free, size, shapes, promises):  # type: ignore[no-untyped-def]
    """Place all holders in order, and start those whose place begins now; the new size of the profile.

    A holder's place is that of the last pass unless its limit, the place of a holder before it or the future of the
    running requests has changed: who has started since respected it, and what ends when expected frees nothing new.
    """
    table, counts = promises.table, promises.counts
    anew, still = counts[ANEW] != 0, 0
    counts[ANEW] = 0
    for k in range(counts[HOLDERS]):
        row = table[HELD, k]
        start, width = table[START, row], table[WIDTH, row]
        if anew or table[ALLOWED, row] != table[LIMIT, row]:
            start, width = choose(times, free, size, shapes, row, table[ALLOWED, row])
            anew = anew or start != table[START, row] or width != table[WIDTH, row]
        size = reserve(times, free, size, start, start + on(shapes.table, shapes.relative, row, width), width)
        if start == now:
            if table[HOLDS, row] == IN_LANE:
                promises.unheld[table[LANE, row]] += 1
            table[HOLDS, row] = NOBODY
            _start(row, width, promises)
        else:
            _keep(row, start, width, still, table)
            still += 1
    counts[HOLDERS] = still
    return size


@phase
def _serve_others(now, rows, times, free, size, best, shapes, promises):  # type: ignore[no-untyped-def]
    """Start requests without promises in queue order; one that cannot holds a promise where its lane has any left."""
    table, counts, unheld = promises.table, promises.counts, promises.unheld
    gone = counts[STARTED]
    for row in rows:
        may_hold = unheld[table[LANE, row]] > 0
        if table[HOLDS, row] != NOBODY or not (may_hold or shapes.table[LEAST, row] <= free[0]):
            continue
        if gone and row in table[STARTING, :gone]:
            continue
        start = now
        if may_hold:
            start, width = choose(times, free, size, shapes, row, table[ALLOWED, row])
        elif best:
            width = starts_now(times, free, size, shapes, row, table[ALLOWED, row])
        else:
            width = fitting_now(times, free, size, shapes, row, table[ALLOWED, row])
        if not width:
            continue
        size = reserve(times, free, size, start, start + on(shapes.table, shapes.relative, row, width), width)
        if start == now:
            _start(row, width, promises)
        else:
            unheld[table[LANE, row]] -= 1
            table[HOLDS, row] = IN_LANE
            _keep(row, start, width, counts[HOLDERS], table)
            counts[HOLDERS] += 1


@phase
def _begin(now, waiting, held, shapes, promises):  # type: ignore[no-untyped-def]
    """Let those that start leave the queue and run."""
    running, counts, need, began = held
    for k in range(promises.counts[STARTED]):
        row, width = promises.table[STARTING, k], promises.table[CORES, k]
        take_out(waiting, counts, index_of(waiting, counts, row))
        need[row], began[row] = width, now
        begin_running(running, counts, row, now + on(shapes.table, shapes.relative, row, width), width)


@phase
def _start(row, width, promises):  # type: ignore[no-untyped-def]
    count = promises.counts[STARTED]
    promises.table[STARTING, count], promises.table[CORES, count] = row, width
    promises.counts[STARTED] += 1


@phase
def _keep(row, start, width, place, table):  # type: ignore[no-untyped-def]
    """Remember the place that a holder has, and its turn among the holders."""
    table[LIMIT, row], table[START, row], table[WIDTH, row] = table[ALLOWED, row], start, width
    table[HELD, place] = row
