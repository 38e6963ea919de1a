"""One scheduling cycle for FCFS, first-fit, EASY and reservations of any depth, over the verbs of a machine.

Arguments are arrays and numbers; times are whole microseconds. The number of arrays is small, since passing each from
Python takes as long as a short cycle.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import verbs
from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.pool import DIPS
from gridsim.machine.queue_order import HEAD, TAIL, sort, sort_first, sort_in, take_out
from gridsim.machine.running_set import available_now, begin_running, end_running
from gridsim.model.time import IntArray

BLOCKING, RANKED, OPEN, PENDING, MADE, SURE, AT, COUNT = range(DIPS + 1, DIPS + 9)
LAST, WITHIN, ACTION, ROW, FITS, BEHIND, FEW, STOPPED, AGAIN = range(DIPS + 9, DIPS + 18)
META = DIPS + 18
"""Numbers of a cycle in ``meta``: whether the first request that does not start ends it; whether a rank orders those
behind the reservations; how many reservations may still be added, are due, and are made; how many requests at the front
of the queue must stay there for the reservations to be valid; the place that is tested next; how many have started and
the last place of one. Within a cycle: that it is; what is to be done, with which request; how far the request at the
next place is known to fit; whether the rank orders the rest, and how many candidates are left. The code of the verb at
which the cycle of a whole run stopped; whether the next one may be continued."""

CORES, ESTIMATE, PLACE, LANE, QUEUE, JOB, READY, RANK, ABLE, RESERVED = ROWS = range(10)

RESERVE, START = 1, 2
_NOW, _UNTIL = 1, 2

GONE = -1
"""In the queue, within a cycle: the request at this place has started."""


class ListQueue(NamedTuple):
    """Waiting and running requests of one cluster, and the progress of a cycle.

    Attributes
    ----------
    table : (10, n) int64
        By request: cores, planned run time (the estimate or a prediction), place in the order of the run, lane; the
        queue, in ``[meta[HEAD], meta[TAIL])``, with arrivals behind it; row of the job, ready time; rank of the
        backfill order; scratch: places of candidates, requests that get a reservation.
    running : (2, busy) int64
        As in `gridsim.machine.running_set`.
    moves : (2, busy) int64
        Requests that a cycle started; requests that ended since the last one.
    lanes : (2, k) int64
        Capacity of each lane; scratch.
    meta : (k,) int64
        Counts of running requests, bounds of the queue, counts of a pool, then those named here.
    """

    table: IntArray
    running: IntArray
    moves: IntArray
    lanes: IntArray
    meta: IntArray


@njit_noalloc
def catch_up(now, ended, tail, queue, machine):  # type: ignore[no-untyped-def]
    """Take in *ended* requests and the arrivals up to *tail* (`take_in`), and release what the ended ones held."""
    verbs.release(machine, now, queue.moves[1], ended)
    return take_in(queue.table, queue.running, queue.moves, queue.meta, ended, tail)


@njit_noalloc
def run_cycle(now, limit, again, ended, tail, queue, machine):  # type: ignore[no-untyped-def]
    """Start at most *limit* requests; ``moves[0]`` contains them, ``meta[COUNT]`` is their number.

    Requests are tested in queue order. A request starts if it fits from *now* to its expected end, given the running
    requests and the reservations of this cycle. Otherwise it gets a reservation while its lane has capacity.
    Reservations are made before the first request behind them that fits now. In blocking mode the first request that
    does not start ends the cycle. With ranks, requests behind the reservations are tested by rank, ties by queue
    order.

    With *again*, the last cycle is continued if it tested the complete queue and only arrivals have happened since.
    Then no request that could not start can start now. Reservations are valid until the next expected end, unless a
    request has arrived ahead of the last one with a reservation.
    Returns 0, or the code of a verb that needs help: then the cycle continues when it is called again.
    """
    meta, estimate = queue.meta, queue.table[ESTIMATE]
    if not meta[WITHIN]:
        _begin(now, again, ended, tail, queue, machine)
    while meta[ACTION] or _find_action(now, limit, queue, machine):
        row = meta[ROW]
        if meta[ACTION] == RESERVE:
            more = meta[OPEN] > 0 or meta[MADE] + 1 < meta[PENDING]
            stop = verbs.reserve(machine, now, row, estimate[row], more)
            meta[MADE] += stop == 0
        else:
            stop = verbs.start(machine, now, row, estimate[row], meta[OPEN] > 0)
            if stop == 0:
                begin_running(queue.running, meta, row, now + estimate[row], queue.table[CORES, row])
                queue.moves[0, meta[COUNT]] = row
                meta[COUNT] += 1
        if stop:
            return stop
        meta[ACTION] = 0
    verbs.close_cycle(machine, queue.table[RESERVED], meta[MADE])
    if meta[COUNT]:
        _close_gaps(queue.table[QUEUE], meta)
    meta[WITHIN] = 0
    return 0


@njit_noalloc
def _begin(now, again, ended, tail, queue, machine):  # type: ignore[no-untyped-def]
    """Take in arrivals and ended requests, and find the first place of the queue that must be tested."""
    meta, lanes = queue.meta, queue.lanes
    first = catch_up(now, ended, tail, queue, machine)
    meta[COUNT] = meta[FITS] = meta[LAST] = 0
    meta[WITHIN] = 1
    if again and verbs.keeps_reservations(machine) and first >= meta[HEAD] + meta[SURE]:
        verbs.resume_cycle(machine, now)
        meta[AT] = tail if meta[BLOCKING] else first
        return
    meta[AT] = meta[HEAD]
    meta[OPEN] = meta[PENDING] = meta[MADE] = meta[SURE] = meta[BEHIND] = 0
    for k in range(lanes.shape[1]):
        lanes[1, k] = lanes[0, k]
        meta[OPEN] += lanes[0, k]
    verbs.open_cycle(machine, now)


@njit_noalloc
def _find_action(now, limit, queue, machine):  # type: ignore[no-untyped-def]
    """Find the next request that starts or gets a reservation; return the action, 0 if there is none."""
    table, meta, left = queue.table, queue.meta, queue.lanes[1]
    waiting, estimate, lane = table[QUEUE], table[ESTIMATE], table[LANE]
    if meta[COUNT] >= limit:
        return 0
    i, tail, fit = meta[AT], meta[TAIL], meta[FITS]
    meta[FITS] = 0
    while i < tail and not verbs.is_full(machine):
        whole = meta[MADE] == meta[PENDING]
        if meta[OPEN] == 0 and not meta[BLOCKING] and fit == 0:
            if meta[RANKED]:
                if meta[BEHIND] or i - meta[HEAD] > meta[COUNT]:
                    meta[AT] = i
                    return _find_behind(now, queue, machine)
            else:
                i = _next_fit(i, tail, now, waiting, estimate, whole, machine)
                if i == tail:
                    break
                fit = _UNTIL if whole else _NOW
        row = waiting[i]
        if fit or verbs.fits_now(machine, now, row):
            if not whole:
                meta[AT], meta[FITS] = i, _NOW
                return _act(RESERVE, table[RESERVED, meta[MADE]], meta)
            if fit == _UNTIL or verbs.fits_until(machine, now, row, estimate[row]):
                meta[AT], meta[LAST] = i + 1, i
                waiting[i] = GONE
                return _act(START, row, meta)
        fit = 0
        i += 1
        if meta[BLOCKING]:
            meta[SURE] = i - meta[HEAD] - meta[COUNT]
            break
        ever = verbs.NEVER_FITS
        if meta[OPEN] > 0 and left[lane[row]] > 0:
            ever = verbs.ever_fits(machine, now, row, estimate[row])
        if ever == verbs.FITS_BEFORE and not whole:
            meta[AT] = i - 1  # it is tested again
            return _act(RESERVE, table[RESERVED, meta[MADE]], meta)
        if ever != verbs.NEVER_FITS:
            left[lane[row]] -= 1
            meta[OPEN] -= 1
            table[RESERVED, meta[PENDING]] = row
            meta[PENDING] += 1
            meta[SURE] = i - meta[HEAD] - meta[COUNT]
    return 0


@inline
def _act(action, row, meta):  # type: ignore[no-untyped-def]
    meta[ACTION], meta[ROW] = action, row
    return action


@njit_noalloc
def _next_fit(first, tail, now, waiting, estimate, whole, machine):  # type: ignore[no-untyped-def]
    """Return the next place of a request that fits now, and if *whole* until its end; *tail* if there is none.

    Places and rows are unsigned here and below: the compiler need not test for negative indices.
    """
    i, last, one = np.uint64(first), np.uint64(tail), np.uint64(1)
    while i < last:
        row = np.uint64(waiting[i])
        if verbs.fits_now(machine, now, row) and (not whole or verbs.fits_until(machine, now, row, estimate[row])):
            break
        i += one
    return np.int64(i)


@njit_noalloc
def _find_behind(now, queue, machine):  # type: ignore[no-untyped-def]
    """Find the next request behind the reservations by rank, as `_find_action`.

    A request that cannot start cannot start later in this cycle either.
    """
    table, meta = queue.table, queue.meta
    waiting, estimate, rank, able = table[QUEUE], table[ESTIMATE], table[RANK], table[ABLE]
    if not meta[BEHIND]:
        meta[BEHIND], meta[FEW] = 1, meta[TAIL] - meta[AT]
        for k in range(meta[FEW]):
            able[k] = meta[AT] + k
    best, few = -1, 0
    for k in range(meta[FEW]):
        row = waiting[able[k]]
        if verbs.fits_now(machine, now, row):
            if meta[MADE] < meta[PENDING]:
                return _act(RESERVE, table[RESERVED, meta[MADE]], meta)
            if verbs.fits_until(machine, now, row, estimate[row]):
                if best < 0 or rank[row] < rank[waiting[able[best]]]:
                    best = few
                able[few] = able[k]
                few += 1
    meta[FEW] = max(0, few - 1)
    if best < 0:
        return 0
    place = able[best]
    for k in range(best, few - 1):
        able[k] = able[k + 1]
    row = waiting[place]
    if verbs.fits_now(machine, now, row):  # a start is placed by the preceding test
        verbs.fits_until(machine, now, row, estimate[row])
    waiting[place] = GONE
    meta[LAST] = max(meta[LAST], place)
    return _act(START, row, meta)


@njit_noalloc
def _close_gaps(waiting, meta):  # type: ignore[no-untyped-def]
    """Move waiting requests up to the last place from which one has started."""
    left, k = meta[COUNT], meta[LAST]
    place = k
    while left > 0:
        if waiting[k] == GONE:
            left -= 1
        else:
            waiting[place] = waiting[k]
            place -= 1
        k -= 1
    _moved(waiting, meta[HEAD], k + 1, meta[HEAD] + meta[COUNT])
    meta[HEAD] += meta[COUNT]


@njit_noalloc
def _moved(waiting, begin, end, place):  # type: ignore[no-untyped-def]
    """Move the places ``[begin, end)`` of the queue up to another *place* and those behind it."""
    first, last, one = np.uint64(begin), np.uint64(end), np.uint64(1)
    to = np.uint64(place) + last - first
    while last > first:
        last, to = last - one, to - one
        waiting[to] = waiting[last]


@njit_noalloc
def take_in(table, running, moves, meta, ended, tail):  # type: ignore[no-untyped-def]
    """Remove *ended* requests and sort the arrivals in ``[meta[TAIL], tail)`` into the queue.

    If the arrivals are in queue order, this only moves the tail. Returns the first place of an arrival, or the tail.
    """
    for k in range(ended):
        end_running(running, meta, moves[1, k], table[CORES, moves[1, k]])
    return sort_in(table[QUEUE], meta, tail, table[PLACE], table[JOB : READY + 1])


@inline
def sort_by_age(now, table, running, meta, ageing):  # type: ignore[no-untyped-def]
    """Sort the queue by waits at *now*; without backfilling, only as many requests as could start."""
    rank_by_age(now, PLACE, table, meta[HEAD], meta[TAIL], ageing)
    waiting, places, ties = table[QUEUE], table[PLACE], table[JOB : READY + 1]
    if meta[BLOCKING]:
        available = available_now(now, running, meta, table[CORES])
        sort_first(waiting, meta, places, ties, table[CORES], available)
    else:
        sort(waiting, meta, places, ties)


@njit_noalloc
def rank_by_age(now, key, table, head, tail, ageing):  # type: ignore[no-untyped-def]
    """Write the ranks of `gridsim.policy.ordering.Ageing` for waiting requests, as integers in the same order.

    *key* is the row of the table; *ageing* has submit times (s), units (s), weights and, in each column, the power.
    """
    waiting, submit, unit, weight = table[QUEUE], ageing[0], ageing[1], ageing[2]
    seconds = now / 1e6
    for k in range(head, tail):
        row = waiting[k]
        waited = (seconds - submit[row]) / unit[row]
        grown = waited
        for _ in range(int(ageing[3, row]) - 1):
            grown = grown * waited
        bits = np.float64(-grown * weight[row] + 0.0).view(np.int64)  # + 0.0: minus zero is zero
        table[key, row] = bits ^ np.int64(0x7FFFFFFFFFFFFFFF) if bits < 0 else bits


@njit_noalloc
def begin_at(now, index, table, running, meta):  # type: ignore[no-untyped-def]
    """Start the request at *index* of the queue if its cores are free; return whether it started."""
    waiting = table[QUEUE]
    i = meta[HEAD] + index
    row = waiting[i]
    need = table[CORES, row]
    if need > available_now(now, running, meta, table[CORES]):
        return False
    take_out(waiting, meta, index)
    begin_running(running, meta, row, now + table[ESTIMATE, row], need)
    return True


@njit_noalloc
def first_of_groups(table, meta, group, place):  # type: ignore[no-untyped-def]
    """Return the index in the queue of the request whose group has the least place; ties in queue order.

    The search ends at the first request of a group that no other group can precede.
    """
    waiting = table[QUEUE]
    least = place[0]
    for k in range(1, place.shape[0]):
        least = min(least, place[k])
    best = meta[HEAD]
    for i in range(meta[HEAD], meta[TAIL]):
        if place[group[waiting[i]]] < place[group[waiting[best]]]:
            best = i
        if place[group[waiting[best]]] == least:
            break
    return best - meta[HEAD]
