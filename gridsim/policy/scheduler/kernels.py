"""Compiled passes over a cluster's waiting and running requests. Arrays in, numbers out; times in microseconds.

Layouts (few arrays, since each costs a call as much as a short pass does):

- ``table`` (7, n): cores, what they are planned to run (the estimate, or a prediction), place in the order of the run,
  lane, the queue, row of the job, ready time; where those behind the head have an order of their own, the rank in it
  and a scratch. The queue holds request rows in ``[meta[HEAD], meta[TAIL])``, in queue order: by place, then job, ready
  time and row; arrivals are appended behind and sorted in by `take_in`.
- ``running`` (2, busy): who runs until when, as `gridsim.profile.running` has it, and ``meta`` counts them.
- ``moves`` (2, busy): rows that a pass started, rows that ended since the last one.
- ``blocks`` (4, room): scratch for a profile, and for where it falls. ``lanes`` (2, k): capacity of each lane, scratch.
- ``meta``: the counts of running requests, the bounds of the queue, and the numbers of passes (`BLOCKING` and behind).
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
    "begin_pass",
    "first_of_groups",
    "full",
    "look_from",
    "rank_by_age",
    "sort_by_age",
    "take_in",
]

BLOCKING, AVAILABLE, OPEN, BLOCKS, FALLS, SURE = range(TAIL + 1, TAIL + 7)
"""Numbers of passes in ``meta``: whether nobody passes a blocked request; of the last one, how many cores it left free,
how many promises it could have made yet, of how many blocks its profile was and how often it fell, and how many of
those who are first in the queue must stay that for what it found out to hold."""

CORES, ESTIMATE, PLACE, LANE, QUEUE, JOB, READY, RANK, ABLE = range(9)
GONE = -1
"""In the queue, within a pass: who stood there has started."""


@lean
def take_in(table, running, moves, meta, ended, tail):  # type: ignore[no-untyped-def]
    """Let *ended* requests go and sort the arrivals in ``[meta[TAIL], tail)`` of the queue into it.

    Where arrivals come in queue order this only moves the tail. Returns the first place where one stands, or the tail.
    """
    for k in range(ended):
        end_running(running, meta, moves[1, k], table[CORES, moves[1, k]])
    return sort_in(table[QUEUE], meta, tail, table[PLACE], table[JOB : READY + 1])


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
    """
    first = begin_pass(now, False, ended, tail, table, running, moves, blocks, lanes, meta)
    return look_from(first, now, limit, table, running, moves, blocks, lanes, meta)


@phase
def begin_pass(now, again, ended, tail, table, running, moves, blocks, lanes, meta):  # type: ignore[no-untyped-def]
    """Take in who came and who ended; the place in the queue of the first that a pass has to look at.

    It goes on with the last pass (*again*) where that looked at everybody, and only arrivals have happened since. Free
    cores have not risen, so that whoever could not start cannot now, and the promises stand: none before the next
    expected end, and who started after one was made leaves it its place. All that must hold is that nobody has come
    before the last holder; where nobody passes, none of those who came behind the head can start.
    """
    first = take_in(table, running, moves, meta, ended, tail)
    if again and first >= meta[HEAD] + meta[SURE]:
        blocks[0, 0] = now  # the first block of the profile goes on to the next expected end
        return tail if meta[BLOCKING] else first
    meta[AVAILABLE] = available_now(now, running, meta, table[CORES])
    meta[OPEN] = meta[BLOCKS] = meta[FALLS] = meta[SURE] = 0
    for k in range(lanes.shape[1]):
        lanes[1, k] = lanes[0, k]
        meta[OPEN] += lanes[0, k]
    return meta[HEAD]


@phase
def look_from(first, now, limit, table, running, moves, blocks, lanes, meta):  # type: ignore[no-untyped-def]
    """A pass from a place in the queue on, and how many it starts; ``meta`` says how far it has come.

    Until a promise is made the running profile only rises, so a request fits when its cores are free now. From then on
    each is held against the few blocks where the profile falls below all before, all that is kept of it once no more
    promises can be made. A pass that makes none stays linear in what it looks at.
    """
    cores, estimate, lane, waiting = table[CORES], table[ESTIMATE], table[LANE], table[QUEUE]
    when, least, left = blocks[2], blocks[3], lanes[1]
    head, tail, available, low = meta[HEAD], meta[TAIL], meta[AVAILABLE], meta[FALLS]
    count = 0
    kept = first - head  # looked at and not started; moved to the front of the looked-at stretch
    i = first
    while i < tail and available > 0 and count < limit:
        if meta[OPEN] == 0 and not meta[BLOCKING]:
            able = _next_able(i, tail, now, available, low, table, blocks)
            if count:
                _moved(waiting, i, able, head + kept)
            kept += able - i
            i = able
            if i == tail:
                break
        row = waiting[i]
        need = cores[row]
        if need <= available and fits_before(when, least, low, need, now + estimate[row]):
            moves[0, count] = row
            count += 1
            available -= need
            begin_running(running, meta, row, now + estimate[row], need)
            low = _taken(now, estimate[row], need, available, low, blocks, meta)
        else:
            if count:
                waiting[head + kept] = row
            kept += 1
            if meta[BLOCKING]:
                meta[SURE] = kept
                i += 1
                break
            if meta[OPEN] > 0 and left[lane[row]] > 0:
                left[lane[row]] -= 1
                meta[OPEN] -= 1
                meta[SURE] = kept
                low = _promised(now, estimate[row], need, available, cores, running, blocks, meta)
        i += 1
    if count:  # close the gap: what was kept moves up to what was not looked at
        meta[HEAD] = i - kept
        _moved(waiting, head, head + kept, meta[HEAD])
    meta[AVAILABLE], meta[FALLS] = available, low
    return count


@lean
def _next_able(first, tail, now, available, low, table, blocks):  # type: ignore[no-untyped-def]
    """The next place in the queue, from *first* on, of one that may start; *tail* where there is none.

    Places and rows are unsigned here and below: the compiler need not ask whether one counts from the end.
    """
    cores, estimate, waiting, when, least = table[CORES], table[ESTIMATE], table[QUEUE], blocks[2], blocks[3]
    i, last, one = np.uint64(first), np.uint64(tail), np.uint64(1)
    while i < last:
        row = np.uint64(waiting[i])
        if cores[row] <= available and fits_before(when, least, low, cores[row], now + estimate[row]):
            break
        i += one
    return np.int64(i)


@lean
def _moved(waiting, begin, end, place):  # type: ignore[no-untyped-def]
    """Let the places ``[begin, end)`` of the queue stand from another *place* on."""
    first, last, one, to = np.uint64(begin), np.uint64(end), np.uint64(1), np.uint64(place)
    if to < first:
        while first < last:
            waiting[to] = waiting[first]
            first, to = first + one, to + one
        return
    to += last - first
    while last > first:
        last, to = last - one, to - one
        waiting[to] = waiting[last]


@lean
def _promised(now, estimate, need, available, cores, running, blocks, meta):  # type: ignore[no-untyped-def]
    """Give a holder its earliest place; where the profile falls then, as `falls` writes it down."""
    times, free, when, least = blocks[0], blocks[1], blocks[2], blocks[3]
    if meta[BLOCKS] == 0 and meta[OPEN] == 0:  # the first promise and the last: what is free only rises until then
        i = 0
        while i < meta[RUNNING] and running[0, i] <= now:
            i += 1
        start, there = now, available
        while i < meta[RUNNING] and (there < need or running[0, i] == start):
            start = running[0, i]
            there += cores[running[1, i]]
            i += 1
        when[0], least[0] = start, there - need
        return int(there - need < available)
    if meta[BLOCKS] == 0:
        meta[BLOCKS] = running_profile(now, available, running, meta, cores, times, free)
    start = earliest(times, free, meta[BLOCKS], need, estimate)
    meta[BLOCKS] = reserve(times, free, meta[BLOCKS], start, start + estimate, need)
    return falls(times, free, meta[BLOCKS], available, when, least)


@lean
def _taken(now, estimate, need, available, low, blocks, meta):  # type: ignore[no-untyped-def]
    """Take cores for what starts in a pass; where the profile falls now: nowhere else, but not everywhere any more."""
    if meta[BLOCKS] and meta[OPEN]:
        meta[BLOCKS] = reserve(blocks[0], blocks[1], meta[BLOCKS], now, now + estimate, need)
    when, least = blocks[2], blocks[3]
    count, below = 0, available
    for k in range(low):
        amount = least[k] - need if when[k] < now + estimate else least[k]
        if amount < below:
            when[count], least[count] = when[k], amount
            below = amount
            count += 1
    return count


@lean
def backfill_by_rank(now, limit, ended, tail, table, running, moves, blocks, lanes, meta):  # type: ignore[no-untyped-def]
    """One pass as `backfill` makes it, but those behind the protected are looked at by their rank, ties by the queue.

    The queue's order decides until as many are blocked as may hold promises, or one where none may (specification of
    predictions, 4.2). Who is wider than what is free then cannot start, in whichever order.
    """
    i = begin_pass(now, False, ended, tail, table, running, moves, blocks, lanes, meta)
    cores, estimate, lane, waiting = table[CORES], table[ESTIMATE], table[LANE], table[QUEUE]
    when, least, left = blocks[2], blocks[3], lanes[1]
    available, blocked, low, count = meta[AVAILABLE], 0, 0, 0
    while i < tail and available > 0 and count < limit and (meta[OPEN] > 0 or blocked == 0):
        row = waiting[i]
        need = cores[row]
        if need <= available and fits_before(when, least, low, need, now + estimate[row]):
            low = _begin(now, i, low, available, count, table, running, moves, blocks, meta)
            available -= need
            count += 1
        else:
            blocked += 1
            if left[lane[row]] > 0:
                left[lane[row]] -= 1
                meta[OPEN] -= 1
                low = _promised(now, estimate[row], need, available, cores, running, blocks, meta)
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
            need = cores[waiting[able[best]]]
            low = _begin(now, able[best], low, available, count, table, running, moves, blocks, meta)
            available -= need
            count += 1
            few = kept - 1
            for k in range(best, few):
                able[k] = able[k + 1]
    if count:
        _close_gaps(waiting, meta)
    return count


@phase
def _begin(now, place, low, available, count, table, running, moves, blocks, meta):  # type: ignore[no-untyped-def]
    """Start the request at a place of the queue, while so many cores are free; where the profile falls then."""
    row = table[QUEUE, place]
    need, estimate = table[CORES, row], table[ESTIMATE, row]
    table[QUEUE, place] = GONE
    moves[0, count] = row
    begin_running(running, meta, row, now + estimate, need)
    return _taken(now, estimate, need, available - need, low, blocks, meta)


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
