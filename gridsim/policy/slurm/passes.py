"""The two passes over the queue: the quick one after events, and backfill with reservations of nodes.

Sources: slurm.schedmd.com/sched_config.html ("jobs are evaluated in a strict priority order and once any job … in a
partition is left pending, no other jobs in that partition will be scheduled"; backfill starts lower-priority jobs "if
doing so does not delay the expected start time of any higher priority jobs"); slurm.conf(5), ``SchedulerParameters``;
sinfo(1), state PLANNED ("the node is planned by the backfill scheduler for a higher priority job": whole nodes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.nodes import begin, finish, room_of, select
from gridsim.profile.compiled import compiled

__all__ = ["Held", "Look", "backfill_pass", "main_pass", "release", "take"]


class Held(NamedTuple):
    """What requests hold, and when they should give it back.

    Attributes
    ----------
    end, row : (r,) int64
        Running requests by expected end, whole microseconds; the first ``counts[0]``.
    counts : (2,) int64
        How many run; how many pieces are written.
    node, cores : (m,) int64
        Pieces: nodes and cores of every request that ever started.
    first, pieces : (n,) int64
        Where the pieces of a request begin, and how many there are.
    """

    end: IntArray
    row: IntArray
    counts: IntArray
    node: IntArray
    cores: IntArray
    first: IntArray
    pieces: IntArray


class Look(NamedTuple):
    """How far a backfill pass looks; whole microseconds and numbers of jobs, 0 for no limit."""

    resolution: int
    window: int
    tests: int
    user_tests: int
    partition_tests: int
    association_tests: int
    starts: int
    linear: int


@compiled
def _allowed(request, cores, limits):  # type: ignore[no-untyped-def]
    """Whether no limit holds a request back."""
    for place in range(limits.first[request], limits.first[request + 1]):
        counter = limits.counter[place]
        if limits.jobs_used[counter] + 1 > limits.jobs[counter]:
            return False
        if limits.cores_used[counter] + cores > limits.cores[counter]:
            return False
    return True


@compiled
def _count(request, cores, sign, limits):  # type: ignore[no-untyped-def]
    for place in range(limits.first[request], limits.first[request + 1]):
        counter = limits.counter[place]
        limits.jobs_used[counter] += sign
        limits.cores_used[counter] += sign * cores


@compiled
def take(request, end, used, chosen, given, asks, machine, limits, held):  # type: ignore[no-untyped-def]
    """Start a request on what was selected for it."""
    begin(request, used, chosen, given, asks, machine)
    at = held.counts[1]
    held.first[request], held.pieces[request] = at, used
    cores = 0
    for place in range(used):
        held.node[at + place], held.cores[at + place] = chosen[place], given[place]
        cores += given[place]
    held.counts[1] = at + used
    _count(request, cores, 1, limits)
    place = held.counts[0]
    while place > 0 and held.end[place - 1] > end:
        held.end[place], held.row[place] = held.end[place - 1], held.row[place - 1]
        place -= 1
    held.end[place], held.row[place] = end, request
    held.counts[0] += 1


@compiled
def release(request, asks, machine, limits, held):  # type: ignore[no-untyped-def]
    """A request gives back what it holds."""
    first, pieces = held.first[request], held.pieces[request]
    nodes, cores = held.node[first : first + pieces], held.cores[first : first + pieces]
    finish(request, nodes, cores, asks, machine.free, machine.free_memory, machine.jobs)
    _count(request, cores.sum(), -1, limits)
    count = held.counts[0]
    place = 0
    while held.row[place] != request:
        place += 1
    for later in range(place + 1, count):
        held.end[later - 1], held.row[later - 1] = held.end[later], held.row[later]
    held.counts[0] = count - 1


@compiled
def _mask(start, end, partition, machine, closed, mask):  # type: ignore[no-untyped-def]
    """Nodes of a partition that no reservation of the site closes in an interval."""
    member = machine.member[partition]
    for node in range(len(mask)):
        mask[node] = member[node]
    for row in range(closed.shape[0]):
        if closed[row, 1] < end and closed[row, 2] > start:
            mask[closed[row, 0]] = 0


@compiled
def main_pass(  # type: ignore[no-untyped-def]
    now, order, depth, partition_depth, stop_at_limit, asks, machine, limits, held, closed, started
):
    """Start requests in order until one of their partition does not fit; how many, and how many were looked at.

    Nodes of a partition that is blocked are kept free from lower jobs of other partitions too.
    """
    count = len(machine.cores)
    partitions = machine.member.shape[0]
    mask, kept = np.zeros(count, dtype=np.uint8), np.ones(count, dtype=np.uint8)
    blocked, tested = np.zeros(partitions, dtype=np.uint8), np.zeros(partitions, dtype=np.int64)
    room, chosen, given = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    open_partitions, found, looked = partitions, 0, 0
    for place in range(len(order)):
        if (depth > 0 and looked >= depth) or open_partitions == 0:
            break
        request = order[place]
        partition = asks.partition[request]
        if blocked[partition]:
            continue
        looked += 1
        tested[partition] += 1
        if partition_depth > 0 and tested[partition] > partition_depth:
            continue
        held_back = not _allowed(request, asks.cores[request], limits)
        if held_back and not stop_at_limit:
            continue
        used = 0
        if not held_back:
            _mask(now, now + asks.limit[request], partition, machine, closed, mask)
            for node in range(count):
                mask[node] &= kept[node]
            used = select(
                request, mask, asks, machine, machine.free, machine.free_memory, machine.jobs, room, chosen, given
            )
        if used:
            take(request, now + asks.limit[request], used, chosen, given, asks, machine, limits, held)
            started[found] = request
            found += 1
        else:
            blocked[partition] = 1
            open_partitions -= 1
            for node in range(count):
                if machine.member[partition, node]:
                    kept[node] = 0
    return found


@compiled
def _later(time, resolution):  # type: ignore[no-untyped-def]
    return time // resolution * resolution


FIRST_SPAN = 30_000_000
"""Running jobs that end within so many microseconds of the next one are taken together, at first."""


@compiled
def backfill_pass(  # type: ignore[no-untyped-def]
    now, order, look, asks, machine, limits, held, closed, started, fits, soonest, planned
):
    """Start every request whose start delays no higher one; how many.

    Every request that does not start, in order, reserves its nodes, whole, from its expected start for its time limit;
    reservations are made anew in each pass. Expected ends are rounded up to the resolution. When a request could start
    is looked at after the next running one has ended and all that end within 30 s of it, then within 60 s, 120 s and so
    on, or as ``bf_window_linear`` says (slurm.conf(5)). Requests that ask for the
    same as one before cannot start before it (*soonest*, by shape). Behind the last request that could still start now,
    for all that is free and not reserved, nothing is looked at, unless *planned*, one row a request, is to be
    filled with expected starts.
    """
    count = len(machine.cores)
    partitions = machine.member.shape[0]
    mask = np.zeros(count, dtype=np.uint8)
    room, chosen, given = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    waiting = len(order)
    if look.tests > 0:
        waiting = min(waiting, look.tests)
    last = waiting - 1 if len(planned) else -1
    for place in range(waiting):
        fits[asks.size[order[place]]] = -1
    unused = machine.free.sum()
    for place in range(waiting):
        request = order[place]
        size = asks.size[request]
        soonest[asks.shape[request]] = now
        if fits[size] < 0:
            fits[size] = 0
            if asks.cores[request] <= unused:
                _mask(now, now + 1, asks.partition[request], machine, closed, mask)
                fits[size] = select(
                    request, mask, asks, machine, machine.free, machine.free_memory, machine.jobs, room, chosen, given
                )
        if fits[size] > 0 and place > last and _allowed(request, asks.cores[request], limits):
            last = place
    if last < 0:
        return 0
    times, free, memory, jobs = _futures(now, look, asks, machine, held)
    users, owners = np.zeros(asks.user.max() + 2, np.int64), np.zeros(asks.association.max() + 2, np.int64)
    tested = np.zeros(partitions, np.int64)
    reserved = np.zeros((last + 2, 4), np.int64)  # start, end, first piece, pieces
    pieces = np.zeros(max(1024, 4 * count), np.int64)
    reservations, written, found = 0, 0, 0
    by_start, by_end = np.zeros(last + 2, np.int64), np.zeros(last + 2, np.int64)
    within, cover, rooms = np.zeros(last + 2, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64)
    promised = np.full(count, NEVER)  # first reservation of each node
    for place in range(last + 1):
        if not len(planned):
            while last >= place and not _could_start(now, order[last], fits, asks, machine, limits, promised):
                last -= 1
            if place > last:
                break
        request = order[place]
        if not _allowed(request, asks.cores[request], limits):
            continue
        user, owner, partition = asks.user[request], asks.association[request], asks.partition[request]
        users[user] += 1
        owners[owner] += 1
        tested[partition] += 1
        if look.user_tests > 0 and users[user] > look.user_tests:
            continue
        if look.association_tests > 0 and owners[owner] > look.association_tests:
            continue
        if look.partition_tests > 0 and tested[partition] > look.partition_tests:
            continue
        shape, limit = asks.shape[request], asks.limit[request]
        start, state, used = now, 0, 0
        wanted = asks.nodes[request] if asks.nodes[request] > 0 else asks.cores[request]
        cover[:], within[:reservations] = 0, 0
        entering, leaving = 0, 0
        open_now = _rooms(request, state, cover, asks, machine, free, memory, jobs, rooms)
        while start - now <= look.window:
            until = start + limit
            while leaving < reservations and reserved[by_end[leaving], 1] <= start:
                other = by_end[leaving]
                if within[other]:
                    open_now += _cover(-1, reserved[other, 2], reserved[other, 3], pieces, cover, rooms)
                    within[other] = 0
                leaving += 1
            while entering < reservations and reserved[by_start[entering], 0] < until:
                other = by_start[entering]
                if reserved[other, 1] > start:
                    open_now += _cover(1, reserved[other, 2], reserved[other, 3], pieces, cover, rooms)
                    within[other] = 1
                entering += 1
            if open_now >= wanted and start >= soonest[shape]:
                _mask(start, until, partition, machine, closed, mask)
                for node in range(count):
                    if cover[node] > 0:
                        mask[node] = 0
                used = select(
                    request, mask, asks, machine, free[state], memory[state], jobs[state], room, chosen, given
                )
                if used:
                    break
            following = NEVER
            if leaving < reservations:
                following = reserved[by_end[leaving], 1]
            for row in range(closed.shape[0]):
                if start < closed[row, 2] < following:
                    following = closed[row, 2]
            if state + 1 < len(times) and times[state + 1] <= following:
                state += 1
                following = max(times[state], start + 1)
                open_now = _rooms(request, state, cover, asks, machine, free, memory, jobs, rooms)
            if following >= NEVER:
                break
            start = following
        if used and len(planned):
            planned[request] = start
        if not used:
            soonest[shape] = now + look.window + 1
            continue
        if start == now:
            take(request, now + limit, used, chosen, given, asks, machine, limits, held)
            started[found] = request
            found += 1
            if look.starts > 0 and found >= look.starts:
                break
            times, free, memory, jobs = _futures(now, look, asks, machine, held)
            continue
        soonest[shape] = start
        if written + used > len(pieces):
            grown = np.zeros(2 * len(pieces) + used, np.int64)
            grown[:written] = pieces[:written]
            pieces = grown
        reserved[reservations, 0], reserved[reservations, 1] = start, start + limit
        reserved[reservations, 2], reserved[reservations, 3] = written, used
        pieces[written : written + used] = chosen[:used]
        for piece in range(used):
            promised[chosen[piece]] = min(promised[chosen[piece]], start)
        written += used
        _insert(reservations, by_start, reserved[:, 0])
        _insert(reservations, by_end, reserved[:, 1])
        reservations += 1
    return found


@compiled
def _insert(count, order, values):  # type: ignore[no-untyped-def]
    """Put number *count* into an order by values."""
    place = count
    while place > 0 and values[order[place - 1]] > values[count]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = count


@compiled
def _rooms(request, state, cover, asks, machine, free, memory, jobs, rooms):  # type: ignore[no-untyped-def]
    """Fill *rooms* with what each node of its partition has for a request; their sum over nodes that nobody reserved.

    Cores, or nodes where the request names a number of them.
    """
    total, nodes = 0, asks.nodes[request]
    least_memory, exclusive = asks.memory[request], asks.exclusive[request] > 0
    each = -(-asks.cores[request] // nodes) if nodes > 0 else 0
    cores, member = machine.cores, machine.member[asks.partition[request]]
    left, left_memory, running = free[state], memory[state], jobs[state]
    for node in range(len(cover)):
        rooms[node] = 0
        if member[node]:
            found = room_of(cores[node], left[node], left_memory[node], running[node], least_memory, exclusive, each)
            rooms[node] = min(found, 1) if nodes > 0 else found
            if cover[node] == 0:
                total += rooms[node]
    return total


@compiled
def _cover(sign, first, many, pieces, cover, rooms):  # type: ignore[no-untyped-def]
    """A reservation comes into an interval or goes out of it; how much more room that leaves."""
    gained = 0
    for piece in range(first, first + many):
        node = pieces[piece]
        if sign > 0 and cover[node] == 0:
            gained -= rooms[node]
        cover[node] += sign
        if sign < 0 and cover[node] == 0:
            gained += rooms[node]
    return gained


@compiled
def _could_start(now, request, fits, asks, machine, limits, promised):  # type: ignore[no-untyped-def]
    """Whether enough is free now on nodes that are not reserved within the limit of a request; if not, it cannot."""
    if fits[asks.size[request]] <= 0 or not _allowed(request, asks.cores[request], limits):
        return False
    until, need = now + asks.limit[request], asks.cores[request]
    member, free = machine.member[asks.partition[request]], machine.free
    total = 0
    for node in range(len(promised)):
        if promised[node] >= until and member[node]:
            total += free[node]
            if total >= need:
                return True
    return False


@compiled
def _futures(now, look, asks, machine, held):  # type: ignore[no-untyped-def]
    """What nodes have left now and after each group of running requests has ended: times and columns."""
    running, count = held.counts[0], len(machine.cores)
    times = np.zeros(running + 1, np.int64)
    last = np.zeros(running + 1, np.int64)  # how many have ended
    times[0] = now
    groups, gone, span = 1, 0, FIRST_SPAN
    while gone < running and times[groups - 1] - now <= look.window:
        latest = _ending(held.end[gone], now, look.resolution) + span
        span = span + look.linear if look.linear > 0 else 2 * span
        while gone < running and _ending(held.end[gone], now, look.resolution) <= latest:
            times[groups] = _ending(held.end[gone], now, look.resolution)
            gone += 1
        last[groups] = gone
        groups += 1
    free, memory = np.zeros((groups, count), np.int64), np.zeros((groups, count), np.int64)
    jobs = np.zeros((groups, count), np.int64)
    free[0], memory[0], jobs[0] = machine.free, machine.free_memory, machine.jobs
    for group in range(1, groups):
        free[group], memory[group], jobs[group] = free[group - 1], memory[group - 1], jobs[group - 1]
        for place in range(last[group - 1], last[group]):
            other = held.row[place]
            first, many = held.first[other], held.pieces[other]
            nodes, cores = held.node[first : first + many], held.cores[first : first + many]
            finish(other, nodes, cores, asks, free[group], memory[group], jobs[group])
    return times[:groups], free, memory, jobs


@compiled
def _ending(end, now, resolution):  # type: ignore[no-untyped-def]
    """When a running request is expected to end; one that is late, next."""
    return max(_later(end, resolution), now + 1)
