"""The compiled plan of a cluster, on any machine: every waiting request has a planned start and holds its resources.

A change of a plan can stop within a verb (`gridsim.machine.verbs`), or for an ordering in Python. It then returns a
code, and continues at the next call.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsim.machine import verbs
from gridsim.machine.njit import inline, njit, njit_noalloc
from gridsim.machine.nodes import on_nodes
from gridsim.machine.pool_plan import SIZE, PoolPlan
from gridsim.machine.queue_order import HEAD, TAIL, insert, sort_places
from gridsim.machine.running_set import RUNNING, begin_running, end_running, expect_end, only_running
from gridsim.model.time import NEVER, IntArray

COMPRESS, EVERY, HOLES, FRONTIER, OVERRAN, UNSETTLED = range(SIZE + 1, SIZE + 7)
NONE, IN_ORDER, BY_RANK, BY_CALL = range(4)
"""Counts of a plan behind those of its machine: how it is compressed; whether after every end; whether some request
may start earlier without others moving; the end of the resources released since the last compression; whether a
request has exceeded its expected end, and whether any event has occurred, since it was settled."""

TASK, AT, COUNT, MOVED, AGAIN, UNTIL, STOPPED = range(UNSETTLED + 1, UNSETTLED + 8)
NOTHING, RANK, OPEN, TURN, REPLAN = range(5)
"""The change in progress; its place in the order; for a compression the number of requests to try, the number of those
that have moved, whether it repeats until none moves, and its frontier; the code with which a call ended."""

PHASE, ENDED, LATE, FIRST, LAST, DECIDES, STARTED = range(STOPPED + 1, STOPPED + 8)
"""For a step of the event loop: its progress; its parts, as in `gridsim.engine.events.Step`; the requests that it
starts."""

COUNTS = STARTED + 1

TO_RANK = 6
"""Code in addition to those of `gridsim.machine.nodes`: the order of a compression must be written."""

EARLIEST, ENTER, STOP, END, COMPRESS_ALL, SETTLE, DUE = range(7)


class PlanQueue(NamedTuple):
    """Requests of a plan, and columns of all requests.

    Attributes
    ----------
    waiting, planned : (m,) int64
        Waiting requests by planned start, then job order, and their planned starts, in ``[meta[HEAD], meta[TAIL])``.
    meta : (k,) int64
        Counts, named above and in `gridsim.machine.queue_order`.
    order : (m,) int64
        Places in the order of a compression.
    ties : (2, n) int64
        Keys of `gridsim.machine.queue_order`.
    need, estimate : (n,) int64
        Cores and estimate.
    running : (2, busy) int64
        As in `gridsim.machine.running_set`.
    began : (n,) int64
        Start of each request.
    started : (busy,) int64
        Requests that start.
    granted, broken : (n,) int64, (n,) bool
        Latest end guaranteed to each request, and whether that guarantee is broken.
    ranks : (n,) int64
        Order of compression by rank.
    rests : (n,) int64
        Row of what each suspended request keeps until its planned end; -1 for all others.
    """

    waiting: IntArray
    planned: IntArray
    meta: IntArray
    order: IntArray
    ties: IntArray
    need: IntArray
    estimate: IntArray
    running: IntArray
    began: IntArray
    started: IntArray
    granted: IntArray
    broken: Any
    ranks: IntArray
    rests: IntArray


# -- events ------------------------------------------------------------------------------------------------------------


@njit_noalloc
def enter(row, at, queue, machine):  # type: ignore[no-untyped-def]
    """Plan a request for a start *at* which it was just found to fit; return 0 or a code.

    A request that fits at no known time has the start `NEVER`, and holds nothing.
    """
    meta, waiting, planned, duration = queue.meta, queue.waiting, queue.planned, queue.estimate[row]
    code = verbs.move(machine, row, at, duration, NEVER) if at < NEVER else 0
    if code:
        return code
    waiting[meta[TAIL]], planned[meta[TAIL]] = row, at
    meta[TAIL] += 1
    insert(waiting, planned, meta[HEAD], meta[TAIL] - 1, meta[TAIL], queue.ties)
    return 0


@njit_noalloc
def enter_earliest(now, row, queue, machine):  # type: ignore[no-untyped-def]
    """Plan a request for its earliest start; return 0 or a code."""
    verbs.open_cycle(machine, now)
    return enter(row, verbs.earliest(machine, now, row, queue.estimate[row]), queue, machine)


@njit_noalloc
def stop(now, row, queue, machine):  # type: ignore[no-untyped-def]
    """Release the rest of a running request's reservation; return its expected end, -1 if it does not run."""
    until = end_running(queue.running, queue.meta, row, queue.need[row])
    if until >= 0:
        verbs.cancel(machine, now, row, until)
    return until


@njit_noalloc
def end(now, row, queue, machine):  # type: ignore[no-untyped-def]
    """Do the same as `stop`, and note that the plan can be compressed."""
    meta, until = queue.meta, stop(now, row, queue, machine)
    frontier = max(until, now + 1) if meta[EVERY] else until
    if frontier > now:
        meta[FRONTIER] = max(meta[FRONTIER], frontier)
    meta[UNSETTLED] = 1
    return until


@njit_noalloc
def adopt(rows, starts, now, queue, machine):  # type: ignore[no-untyped-def]
    """Set the waiting requests to *rows*, by planned start, and *starts*; return False for invalid arguments."""
    meta, waiting, planned, estimate = queue.meta, queue.waiting, queue.planned, queue.estimate
    if rows.shape[0] != starts.shape[0]:
        return False
    for k in range(rows.shape[0]):
        if rows[k] < 0 or rows[k] >= estimate.shape[0]:
            return False
    verbs.release(machine, now, waiting[meta[HEAD] : meta[TAIL]], meta[TAIL] - meta[HEAD])
    for k in range(rows.shape[0]):
        verbs.move(machine, rows[k], starts[k], estimate[rows[k]], NEVER)
        waiting[k], planned[k] = rows[k], starts[k]
    meta[HEAD], meta[TAIL] = 0, rows.shape[0]
    return True


@njit_noalloc
def expect(row, until, running, meta):  # type: ignore[no-untyped-def]
    """Set the expected end of a running request; all waiting requests must be planned again."""
    expect_end(running, meta, row, until)
    meta[OVERRAN] = meta[UNSETTLED] = 1


@njit
def requested(request, deadline, now, queue, submit):  # type: ignore[no-untyped-def]
    """Return the input of a search that admits a request: a `Search` as a plain tuple."""
    queue = PlanQueue(*queue)
    meta, waiting, starts, need, length = queue.meta, queue.waiting, queue.planned, queue.need, queue.estimate
    head, count = meta[HEAD], meta[TAIL] - meta[HEAD]
    rows, planned = np.empty(count + 1, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    cores, estimate = np.empty(count + 1, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    due, submits = np.empty(count + 1, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    for k in range(count + 1):
        row = request if k == count else waiting[head + k]
        rows[k], cores[k], estimate[k], submits[k] = row, need[row], length[row], submit[row]
        due[k] = NEVER if queue.broken[row] else queue.granted[row]
        planned[k] = NEVER if k == count else starts[head + k]
    due[count] = deadline
    size = 2 * (count + meta[RUNNING] + 1) + 8
    times, free = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    size = only_running(now, queue.running, meta, need, times, free)
    return rows, cores, estimate, due, submits, planned, times, free, size, queue.ties


@njit_noalloc
def due(now, queue, machine):  # type: ignore[no-untyped-def]
    """Start the requests planned for *now*: the first ``meta[STARTED]`` of ``started``; return 0 or a code."""
    meta, waiting, planned, need, estimate = queue.meta, queue.waiting, queue.planned, queue.need, queue.estimate
    while meta[HEAD] < meta[TAIL] and planned[meta[HEAD]] <= now:
        row = waiting[meta[HEAD]]
        code = verbs.start_planned(machine, now, row)
        if code:
            return code
        begin_running(queue.running, meta, row, now + estimate[row], need[row])
        queue.began[row], queue.started[meta[STARTED]] = now, row
        meta[STARTED] += 1
        meta[HEAD] += 1
    return 0


# -- changes -----------------------------------------------------------------------------------------------------------


@njit_noalloc
def settle(now, queue, machine):  # type: ignore[no-untyped-def]
    """Begin to plan again after an overrun, else to compress after resources were released."""
    meta = queue.meta
    if meta[OVERRAN]:
        replan(now, queue, machine)
    elif meta[FRONTIER] > now:
        compress(NEVER if meta[HOLES] else meta[FRONTIER], queue)
    meta[OVERRAN] = meta[UNSETTLED] = meta[FRONTIER] = 0


@njit_noalloc
def replan(now, queue, machine):  # type: ignore[no-untyped-def]
    """Begin to place all waiting requests again, in planned order, given the running ones.

    Requests that hold nothing are the first ones, with negative starts: they were stopped; and the last ones, which
    fitted at no known time.
    """
    meta, running, planned = queue.meta, queue.running, queue.planned
    verbs.open_cycle(machine, now)
    first, last = meta[HEAD], meta[TAIL]
    while first < last and planned[first] < 0:
        first += 1
    while last > first and planned[last - 1] >= NEVER:
        last -= 1
    verbs.release(machine, now, queue.waiting[first:last], last - first)
    for k in range(meta[RUNNING]):
        verbs.postpone(machine, now, running[1, k], running[0, k])
    for k in range(meta[HEAD], meta[TAIL]):
        if queue.rests[queue.waiting[k]] >= 0:
            verbs.postpone(machine, now, queue.rests[queue.waiting[k]], NEVER)
    meta[TASK], meta[AT] = REPLAN, meta[HEAD]


@njit_noalloc
def compress(frontier, queue):  # type: ignore[no-untyped-def]
    """Begin to move all waiting requests to earlier starts, one after the other in the order of compression."""
    meta = queue.meta
    if meta[HEAD] == meta[TAIL] or (meta[COMPRESS] == NONE and queue.planned[meta[TAIL] - 1] < NEVER):
        return
    in_order = meta[COMPRESS] == IN_ORDER
    _write_order(queue)
    meta[TASK] = RANK if meta[COMPRESS] == BY_CALL else OPEN
    meta[AGAIN], meta[UNTIL] = in_order, frontier if in_order else NEVER


@njit_noalloc
def _write_order(queue):  # type: ignore[no-untyped-def]
    """Write the places of the waiting requests in the order of compression: as planned, or by rank."""
    waiting, meta, order, ranks, ties = queue.waiting, queue.meta, queue.order, queue.ranks, queue.ties
    count = meta[COUNT] = meta[TAIL] - meta[HEAD]
    for k in range(count):
        order[k] = meta[HEAD] + k
    if meta[COMPRESS] == NONE:  # only those without a start
        count = 0
        for k in range(meta[HEAD], meta[TAIL]):
            order[count] = k
            count += queue.planned[k] >= NEVER
        meta[COUNT] = count
    if meta[COMPRESS] == BY_RANK:
        sort_places(order[:count], ranks, True, waiting, ties)


@njit_noalloc
def change(now, queue, machine):  # type: ignore[no-untyped-def]
    """Continue the change in progress, if any, to its end; return 0 or a code."""
    meta, code = queue.meta, 0
    while meta[TASK] != NOTHING and not code:
        if meta[TASK] == RANK:
            code = TO_RANK
        elif meta[TASK] == OPEN:
            verbs.open_cycle(machine, now)
            meta[TASK], meta[AT], meta[MOVED] = TURN, 0, 0
        elif meta[TASK] == TURN:
            code = _turn(now, queue, machine)
        else:
            code = _place(now, queue, machine)
    return code


@njit_noalloc
def _turn(now, queue, machine):  # type: ignore[no-untyped-def]
    """Move each request in the order to its earliest start, while all others stay; none moves later."""
    waiting, planned, meta, order = queue.waiting, queue.planned, queue.meta, queue.order
    while meta[AT] < meta[COUNT]:
        place = order[meta[AT]]
        row, old = waiting[place], planned[place]
        if old > now:
            duration = queue.estimate[row]
            if old < NEVER:
                new = verbs.earlier(machine, now, row, duration, old, meta[UNTIL], meta[AGAIN])
            else:
                new = verbs.earliest(machine, now, row, duration)
            if 0 <= new < old:
                code = verbs.move(machine, row, new, duration, old)
                if code:
                    return code
                planned[place] = new
                meta[UNTIL] = max(meta[UNTIL], min(old, NEVER - duration) + duration)
                meta[MOVED] += 1
        meta[AT] += 1
    meta[TASK] = NOTHING
    if verbs.close_turn(machine, meta[AGAIN]) and meta[MOVED]:
        for k in range(meta[COUNT]):
            order[k] = meta[HEAD] + k
        meta[TASK], meta[UNTIL] = OPEN, 0
    if meta[MOVED]:
        insert(waiting, planned, meta[HEAD], meta[HEAD] + 1, meta[TAIL], queue.ties)
    return 0


@njit_noalloc
def _place(now, queue, machine):  # type: ignore[no-untyped-def]
    """Place the waiting requests again; guarantees that their new starts do not keep are broken."""
    waiting, planned, meta, estimate = queue.waiting, queue.planned, queue.meta, queue.estimate
    while meta[AT] < meta[TAIL]:
        row = waiting[meta[AT]]
        new = verbs.earliest(machine, now, row, estimate[row])
        code = verbs.move(machine, row, new, estimate[row], NEVER) if new >= 0 else 0
        if code:
            return code
        planned[meta[AT]] = new if new >= 0 else NEVER
        if queue.rests[row] >= 0:
            verbs.postpone(machine, now, queue.rests[row], min(NEVER, planned[meta[AT]] + estimate[row]))
        if new + estimate[row] > queue.granted[row]:
            queue.broken[row] = True
        meta[AT] += 1
    insert(waiting, planned, meta[HEAD], meta[HEAD] + 1, meta[TAIL], queue.ties)
    meta[TASK] = NOTHING
    return 0


# -- for Python, where calls with plain tuples are faster
# --------------------------------------------------------------


@inline
def in_pool(queue, pool):  # type: ignore[no-untyped-def]
    """Return the machine of a plan on one pool."""
    times, free, bounds = pool
    return PoolPlan(times, free, bounds, queue.need, queue.running, queue.meta)


@njit_noalloc
def act_in_pool(what, now, row, at, queue, pool):  # type: ignore[no-untyped-def]
    """Do one of the actions named above; leave 0 or a code in ``meta[STOPPED]``."""
    queue = PlanQueue(*queue)
    return _act(what, now, row, at, queue, in_pool(queue, pool))


@njit_noalloc
def adopt_in_pool(rows, starts, now, queue, pool):  # type: ignore[no-untyped-def]
    """`adopt` on one pool."""
    queue = PlanQueue(*queue)
    return adopt(rows, starts, now, queue, in_pool(queue, pool))


@njit_noalloc
def act_on_nodes(what, now, row, at, queue, nodes):  # type: ignore[no-untyped-def]
    """Do one of the actions named above; leave 0 or a code in ``meta[STOPPED]``."""
    queue = PlanQueue(*queue)
    return _act(what, now, row, at, queue, on_nodes(queue, nodes))


@njit_noalloc
def _act(what, now, row, at, queue, machine):  # type: ignore[no-untyped-def]
    meta, answer = queue.meta, 0
    meta[STOPPED] = 0
    if what == EARLIEST:
        verbs.open_cycle(machine, now)
        answer = verbs.earliest(machine, now, row, queue.estimate[row])
    elif what == ENTER:
        meta[STOPPED] = enter(row, at, queue, machine)
    elif what == STOP:
        answer = stop(now, row, queue, machine)
    elif what == END:
        answer = end(now, row, queue, machine)
    elif what == DUE:
        meta[STOPPED] = due(now, queue, machine)
    else:
        if meta[TASK] == NOTHING and what == COMPRESS_ALL:
            compress(NEVER, queue)
        elif meta[TASK] == NOTHING:
            settle(now, queue, machine)
        meta[STOPPED] = change(now, queue, machine)
    return answer
