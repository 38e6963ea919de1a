"""Compiled passes over a cluster's waiting and running requests. Arrays in, numbers out; times in microseconds.

Layouts (few arrays, since each costs a call as much as a short pass does):

- ``table`` (7, n): cores, what they are planned to run (the estimate, or a prediction), place in the order of the run,
  lane, the queue, row of the job, ready time; where those behind the head have an order of their own, the rank in it
  and a scratch. The queue holds request rows in ``[meta[HEAD], meta[TAIL])``, in queue order: by place, then job, ready
  time and row; arrivals are appended behind and sorted in by `take_in`.
- ``running`` (2, busy): who runs until when, as `gridsim.profile.running` has it, and ``meta`` counts them.
- ``moves`` (2, busy): rows that a pass started, rows that ended since the last one.
- ``blocks`` (4, room): scratch for a profile, and for where it falls. ``lanes`` (2, k): capacity of each lane, scratch.
- ``meta``: the counts of running requests, the bounds of the queue, and whether nobody passes a blocked request.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.profile.blocks import earliest, falls, fits_before, reserve
from gridsim.profile.compiled import lean, phase
from gridsim.profile.running import HELD, RUNNING, TOTAL, available_now, begin_running, end_running, running_profile
from gridsim.profile.waiting import HEAD, TAIL, sort, sort_first, sort_in, take_out

__all__ = [
    "ABLE",
    "BLOCKING",
    "CORES",
    "ESTIMATE",
    "GONE",
    "JOB",
    "LANE",
    "PLACE",
    "QUEUE",
    "RANK",
    "READY",
    "backfill",
    "backfill_by_rank",
    "begin_at",
    "first_of_groups",
    "full",
    "rank_by_age",
    "sort_by_age",
    "take_in",
]

BLOCKING = TAIL + 1
CORES, ESTIMATE, PLACE, LANE, QUEUE, JOB, READY, RANK, ABLE = range(9)
GONE = -1
"""In the queue, within a pass: who stood there has started."""


@lean
def take_in(table, running, moves, meta, ended, tail):  # type: ignore[no-untyped-def]
    """Let *ended* requests go and sort the arrivals in ``[meta[TAIL], tail)`` of the queue into it.

    Where arrivals come in queue order this only moves the tail.
    """
    for k in range(ended):
        end_running(running, meta, moves[1, k], table[CORES, moves[1, k]])
    sort_in(table[QUEUE], meta, tail, table[PLACE], table[JOB : READY + 1])


@phase
def sort_by_age(now, table, running, meta, ageing):  # type: ignore[no-untyped-def]
    """Put the queue into the order of its waits at *now*; where nobody passes, as far as that matters."""
    rank_by_age(now, PLACE, table, meta[HEAD], meta[TAIL], ageing)
    waiting, places, ties = table[QUEUE], table[PLACE], table[JOB : READY + 1]
    if meta[BLOCKING]:
        available = available_now(now, running, meta, table[CORES])
        sort_first(waiting, meta, places, ties, table[CORES], available)
    else:
        sort(waiting, meta, places, ties)


@lean
def rank_by_age(now, key, table, head, tail, ageing):  # type: ignore[no-untyped-def]
    """Write what `gridsim.policy.ordering.Ageing` ranks those who wait by, as whole numbers in the order of the floats.

    *key* is the row of the table, *ageing* the submit times (s), units (s), weights and, in each place, the power.
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


@phase
def backfill(now, limit, ended, tail, table, running, moves, blocks, lanes, meta):  # type: ignore[no-untyped-def]
    """One pass: start what may start, protect the holders of lanes; returns how many requests ``moves[0]`` names.

    Requests are looked at in queue order. One that can run from *now* to its expected end beside the running ones and
    the promises made so far in this pass starts. Another becomes a holder, and is given its earliest place, while its
    lane has capacity. Where nobody passes, the first that does not start ends the pass. At most *limit* requests start.

    Until a promise is made the running profile only rises, so a request fits when its cores are free now; the profile
    is written down at the first promise, and a pass that makes none stays linear in what it looks at. From then on
    each is held against the few blocks where the profile falls below all before.
    """
    take_in(table, running, moves, meta, ended, tail)
    cores, estimate, lane, waiting = table[CORES], table[ESTIMATE], table[LANE], table[QUEUE]
    times, free, when, least = blocks[0], blocks[1], blocks[2], blocks[3]
    head = meta[HEAD]
    if head == tail:
        return 0
    available = available_now(now, running, meta, cores)
    capacity, left = lanes[0], lanes[1]
    open_lanes = 0
    for k in range(capacity.shape[0]):
        left[k] = capacity[k]
        open_lanes += capacity[k]
    size = low = 0
    count = 0
    kept = 0  # looked at and not started; moved to the front of the looked-at stretch
    i = head
    while i < tail and available > 0 and count < limit:
        row = waiting[i]
        need = cores[row]
        if need <= available and fits_before(when, least, low, need, now + estimate[row]):
            moves[0, count] = row
            count += 1
            available -= need
            begin_running(running, meta, row, now + estimate[row], need)
            if size:
                size = reserve(times, free, size, now, now + estimate[row], need)
                low = falls(times, free, size, available, when, least)
        else:
            if meta[BLOCKING]:
                break
            if count:
                waiting[head + kept] = row
            kept += 1
            if open_lanes > 0 and left[lane[row]] > 0:
                left[lane[row]] -= 1
                open_lanes -= 1
                if size == 0:
                    size = running_profile(now, available, running, meta, cores, times, free)
                start = earliest(times, free, size, need, estimate[row])
                size = reserve(times, free, size, start, start + estimate[row], need)
                low = falls(times, free, size, available, when, least)
        i += 1
    if count:  # close the gap: what was kept moves up to what was not looked at
        for k in range(kept):
            waiting[i - 1 - k] = waiting[head + kept - 1 - k]
        meta[HEAD] = i - kept
    return count


@lean
def backfill_by_rank(now, limit, ended, tail, table, running, moves, blocks, lanes, meta):  # type: ignore[no-untyped-def]
    """One pass as `backfill` makes it, but those behind the protected are looked at by their rank, ties by the queue.

    The queue's order decides until as many are blocked as may hold promises, or one where none may (specification of
    predictions, 4.2). Who is wider than what is free then cannot start, in whichever order.
    """
    take_in(table, running, moves, meta, ended, tail)
    cores, estimate, lane, waiting = table[CORES], table[ESTIMATE], table[LANE], table[QUEUE]
    times, free, when, least = blocks[0], blocks[1], blocks[2], blocks[3]
    if meta[HEAD] == tail:
        return 0
    available = available_now(now, running, meta, cores)
    capacity, left = lanes[0], lanes[1]
    open_lanes = 0
    for k in range(capacity.shape[0]):
        left[k] = capacity[k]
        open_lanes += capacity[k]
    i, blocked, size, low, count = meta[HEAD], 0, 0, 0, 0
    while i < tail and available > 0 and count < limit and (open_lanes > 0 or blocked == 0):
        row = waiting[i]
        need = cores[row]
        if need <= available and fits_before(when, least, low, need, now + estimate[row]):
            size = _begin(now, row, size, count, table, running, moves, times, free, meta)
            waiting[i] = GONE
            available -= need
            count += 1
            low = falls(times, free, size, available, when, least) if size else 0
        else:
            blocked += 1
            if left[lane[row]] > 0:
                left[lane[row]] -= 1
                open_lanes -= 1
                if size == 0:
                    size = running_profile(now, available, running, meta, cores, times, free)
                start = earliest(times, free, size, need, estimate[row])
                size = reserve(times, free, size, start, start + estimate[row], need)
                low = falls(times, free, size, available, when, least)
        i += 1
    able, few = table[ABLE], tail - i  # places in the queue of those who may start yet: who cannot now, cannot later
    for k in range(few):
        able[k] = i + k
    while few and available > 0 and count < limit:
        best, kept = -1, 0
        for k in range(few):
            row = waiting[able[k]]
            if cores[row] > available or not fits_before(when, least, low, cores[row], now + estimate[row]):
                continue
            if best < 0 or table[RANK, row] < table[RANK, waiting[able[best]]]:
                best = kept
            able[kept] = able[k]
            kept += 1
        few = 0
        if best >= 0:
            row = waiting[able[best]]
            size = _begin(now, row, size, count, table, running, moves, times, free, meta)
            waiting[able[best]] = GONE
            available -= cores[row]
            count += 1
            low = falls(times, free, size, available, when, least) if size else 0
            few = kept - 1
            for k in range(best, few):
                able[k] = able[k + 1]
    if count:
        _close_gaps(waiting, meta)
    return count


@phase
def _begin(now, row, size, count, table, running, moves, times, free, meta):  # type: ignore[no-untyped-def]
    """Start a request in a pass that has a profile of *size* blocks, 0 for none yet; the new size."""
    moves[0, count] = row
    end = now + table[ESTIMATE, row]
    begin_running(running, meta, row, end, table[CORES, row])
    return reserve(times, free, size, now, end, table[CORES, row]) if size else 0


@lean
def _close_gaps(waiting, meta):  # type: ignore[no-untyped-def]
    """Move who still waits up to the end of the queue."""
    place = meta[TAIL]
    for k in range(meta[TAIL] - 1, meta[HEAD] - 1, -1):
        if waiting[k] != GONE:
            place -= 1
            waiting[place] = waiting[k]
    meta[HEAD] = place


@lean
def full(now, table, running, meta):  # type: ignore[no-untyped-def]
    """Whether the narrowest waiting request is wider than the free cores, so that no order lets anything start."""
    if meta[RUNNING] and running[0, 0] <= now:
        return False
    cores, waiting, free = table[CORES], table[QUEUE], meta[TOTAL] - meta[HELD]
    least = meta[TOTAL] + 1
    for k in range(meta[HEAD], meta[TAIL]):
        least = min(least, cores[waiting[k]])
    return least > free


@lean
def begin_at(now, index, table, running, meta):  # type: ignore[no-untyped-def]
    """Start the request at *index* of the queue if its cores are free; whether it did."""
    waiting = table[QUEUE]
    i = meta[HEAD] + index
    row = waiting[i]
    need = table[CORES, row]
    if need > available_now(now, running, meta, table[CORES]):
        return False
    take_out(waiting, meta, index)
    begin_running(running, meta, row, now + table[ESTIMATE, row], need)
    return True


@lean
def first_of_groups(table, meta, group, place):  # type: ignore[no-untyped-def]
    """Index in the queue of the request whose group has the least place; ties as the queue is sorted.

    The search ends at the first request of a group that none can come before.
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
