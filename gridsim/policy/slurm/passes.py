"""The two passes over the queue: the quick one after events, and backfill with reservations of nodes.

Sources: slurm.schedmd.com/sched_config.html ("jobs are evaluated in a strict priority order and once any job … in a
partition is left pending, no other jobs in that partition will be scheduled"; backfill starts lower-priority jobs "if
doing so does not delay the expected start time of any higher priority jobs"); slurm.conf(5), ``SchedulerParameters``;
sinfo(1), state PLANNED ("the node is planned by the backfill scheduler for a higher priority job": whole nodes);
preempt.html ("if during backfill scheduling a job preempts one or more other jobs, the whole nodes for those preempted
jobs are reserved for the preemptor job").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import NEVER
from gridsim.policy.slurm.closed import next_change, open_nodes
from gridsim.policy.slurm.holding import allowed, give_way, take
from gridsim.policy.slurm.nodes import FREE, GPUS, JOBS, MEMORY, move, room_of, select
from gridsim.policy.slurm.preemption import find_victims, may_preempt
from gridsim.profile.compiled import compiled

__all__ = ["Look", "backfill_pass", "main_pass"]


class Look(NamedTuple):
    """How far a backfill pass looks; whole microseconds and numbers of jobs, 0 for no limit.

    Attributes
    ----------
    resolution, window : int
        ``bf_resolution`` and ``bf_window``.
    tests, user_tests, partition_tests, association_tests, starts, both_tests : int
        ``bf_max_job_test``, ``bf_max_job_user``, ``bf_max_job_part``, ``bf_max_job_assoc``, ``bf_max_job_start`` and
        ``bf_max_job_user_part``.
    linear : int
        ``bf_window_linear``.
    array_reserves, partition_reserves : int
        ``bf_max_job_array_resv`` and ``bf_job_part_count_reserve``.
    once : bool
        ``bf_one_resv_per_job``.
    """

    resolution: int
    window: int
    tests: int
    user_tests: int
    partition_tests: int
    association_tests: int
    starts: int
    both_tests: int
    linear: int
    array_reserves: int
    partition_reserves: int
    once: bool


@compiled
def main_pass(  # type: ignore[no-untyped-def]
    now, order, depth, partition_depth, stop_at_limit, parts, reserving, started
):
    """Start entries in order until one of their lane does not fit; how many.

    *parts* are what entries ask for, the nodes, limits, what is held, what is reserved, and the rules of preemption.
    Nodes of a partition that is blocked are kept free from lower jobs of other partitions too. *reserving*, where it is
    not empty, says which entries may hold others back.
    """
    asks, machine, limits, held, closed, rules = parts
    count = len(machine.cores)
    lanes, partitions = machine.counts[0], machine.counts[1]
    mask, kept, shut = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.uint8)
    blocked, tested = np.zeros(lanes, dtype=np.uint8), np.zeros(partitions, dtype=np.int64)
    room, chosen, given = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    victims = np.zeros(held.counts[0] + 1, np.int64)
    open_lanes, found, looked = lanes, 0, 0
    for place in range(len(order)):
        if (depth > 0 and looked >= depth) or open_lanes == 0:
            break
        entry = order[place]
        lane, partition = asks.lane[entry], asks.part[entry]
        if blocked[lane] or held.busy[asks.request[entry]]:
            continue
        looked += 1
        tested[partition] += 1
        if partition_depth > 0 and tested[partition] > partition_depth:
            continue
        held_back = not allowed(entry, asks.cores[entry], limits)
        if held_back and not stop_at_limit:
            continue
        used = 0
        if not held_back:
            open_nodes(entry, now, now, now + asks.limit[entry], asks, machine, closed, mask, kept)
            for node in range(count):
                if shut[node]:
                    mask[node] = 0
            used = select(entry, mask, kept, asks, machine, machine.now, room, chosen, given)
            if used == 0 and may_preempt(entry, rules):
                if len(victims) <= held.counts[0]:
                    victims = np.zeros(held.counts[0] + 1, np.int64)
                used, many = find_victims(
                    entry, now, mask, kept, asks, machine, held, rules, room, chosen, given, victims
                )
                if used and not give_way(victims, many, now, asks, machine, limits, held, closed, rules):
                    used = 0
        if used:
            take(entry, now + asks.limit[entry], used, chosen, given, *parts)
            started[found] = entry
            found += 1
        elif len(reserving) == 0 or reserving[entry]:
            blocked[lane] = 1
            open_lanes -= 1
            if asks.reservation[entry] < 0:
                member = machine.member[asks.group[entry]]
                for node in range(count):
                    if member[node]:
                        shut[node] = 1
    return found


@compiled
def _later(time, resolution):  # type: ignore[no-untyped-def]
    return time // resolution * resolution


FIRST_SPAN = 30_000_000
"""Running jobs that end within so many microseconds of the next one are taken together, at first."""


@compiled
def backfill_pass(now, order, look, parts, reserving, started, fits, soonest, planned):  # type: ignore[no-untyped-def]
    """Start every entry whose start delays no higher one; how many.

    *parts* and *reserving* are as in `main_pass`. Every entry that does not start, in order, reserves its nodes, whole,
    from its expected start for its time limit; reservations are made anew in each pass. Expected ends are rounded down
    to the resolution. When an entry could start
    is looked at after the next running one has ended and all that end within 30 s of it, then within 60 s, 120 s and so
    on, or as ``bf_window_linear`` says (slurm.conf(5)). Entries that ask for the
    same as one before cannot start before it (*soonest*, by shape). Behind the last entry that could still start now,
    for all that is free and not reserved, nothing is looked at, unless *planned*, one row an entry, is to be
    filled with expected starts.
    """
    asks, machine, limits, held, closed, rules = parts
    count = len(machine.cores)
    partitions = machine.counts[1]
    mask, kept = np.zeros(count, np.int64), np.zeros(count, np.int64)
    room, chosen, given = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    waiting = len(order)
    if look.tests > 0:
        waiting = min(waiting, look.tests)
    last = waiting - 1 if len(planned) else -1
    for place in range(waiting):
        fits[asks.kind[order[place]]] = -1
    unused = machine.now[FREE].sum()
    for place in range(waiting):
        entry = order[place]
        size = asks.kind[entry]
        soonest[asks.form[entry]] = now
        if fits[size] < 0:
            fits[size] = 0
            if asks.cores[entry] <= unused:
                open_nodes(entry, now, now, now + 1, asks, machine, closed, mask, kept)
                fits[size] = select(entry, mask, kept, asks, machine, machine.now, room, chosen, given)
        if place > last and (fits[size] > 0 or may_preempt(entry, rules)) and allowed(entry, asks.cores[entry], limits):
            last = place
    if last < 0:
        return 0
    times, states = _futures(now, look, asks, machine, held)
    users, owners = np.zeros(machine.counts[2], np.int64), np.zeros(machine.counts[3], np.int64)
    tested, both = np.zeros(partitions, np.int64), np.zeros((machine.counts[2], partitions), np.int64)
    of_array, of_partition = np.zeros(machine.counts[4], np.int64), np.zeros(partitions, np.int64)
    booked = np.zeros(len(held.busy), np.uint8)
    reserved = np.zeros((last + 2, 4), np.int64)  # start, end, first piece, pieces
    pieces = np.zeros(max(1024, 4 * count), np.int64)
    reservations, written, found = 0, 0, 0
    by_start, by_end = np.zeros(last + 2, np.int64), np.zeros(last + 2, np.int64)
    within, cover, rooms = np.zeros(last + 2, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64)
    promised = np.full(count, NEVER)  # first reservation of each node
    victims = np.zeros(held.counts[0] + waiting + 1, np.int64)
    for place in range(last + 1):
        if not len(planned):
            while last >= place and not _could_start(now, order[last], fits, asks, machine, limits, rules, promised):
                last -= 1
            if place > last:
                break
        entry = order[place]
        if held.busy[asks.request[entry]] or not allowed(entry, asks.cores[entry], limits):
            continue
        user, owner, partition = asks.user[entry], asks.association[entry], asks.part[entry]
        users[user] += 1
        owners[owner] += 1
        tested[partition] += 1
        both[user, partition] += 1
        if look.user_tests > 0 and users[user] > look.user_tests:
            continue
        if look.association_tests > 0 and owners[owner] > look.association_tests:
            continue
        if look.partition_tests > 0 and tested[partition] > look.partition_tests:
            continue
        if look.both_tests > 0 and both[user, partition] > look.both_tests:
            continue
        shape, limit = asks.form[entry], asks.limit[entry]
        start, state, used = now, 0, 0
        preempted = 0
        wanted = asks.nodes[entry] if asks.nodes[entry] > 0 else asks.cores[entry]
        cover[:], within[:reservations] = 0, 0
        entering, leaving = 0, 0
        open_now = _rooms(entry, state, cover, asks, machine, states, rooms)
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
            preempts = start == now and soonest[shape] <= now and may_preempt(entry, rules)
            if (open_now >= wanted or preempts) and start >= soonest[shape]:
                open_nodes(entry, now, start, until, asks, machine, closed, mask, kept)
                for node in range(count):
                    if cover[node] > 0:
                        mask[node] = 0
                used = select(entry, mask, kept, asks, machine, states[state], room, chosen, given)
                if used == 0 and preempts:
                    used, preempted = find_victims(
                        entry, now, mask, kept, asks, machine, held, rules, room, chosen, given, victims
                    )
                    if used and not give_way(victims, preempted, now, asks, machine, limits, held, closed, rules):
                        used = preempted = 0
                        times, states = _futures(now, look, asks, machine, held)
                        open_now = _rooms(entry, state, cover, asks, machine, states, rooms)
                if used:
                    break
            following = next_change(start, closed) if len(closed.rows) else NEVER
            if leaving < reservations:
                following = min(following, reserved[by_end[leaving], 1])
            if state + 1 < len(times) and times[state + 1] <= following:
                state += 1
                following = max(times[state], start + 1)
                open_now = _rooms(entry, state, cover, asks, machine, states, rooms)
            if following >= NEVER:
                break
            start = following
        if used and len(planned):
            planned[entry] = start
        if not used:
            soonest[shape] = now + look.window + 1
            continue
        if start == now:
            take(entry, now + limit, used, chosen, given, *parts)
            started[found] = entry
            found += 1
            if look.starts > 0 and found >= look.starts:
                break
            times, states = _futures(now, look, asks, machine, held)
            if preempted == 0:
                continue
            used = _nodes_of(victims, preempted, held, chosen)
        else:
            soonest[shape] = start
            array = asks.array[entry]
            if len(reserving) and not reserving[entry]:
                continue
            if look.once and booked[asks.request[entry]]:
                continue
            if array > 0 and of_array[array] >= look.array_reserves:
                continue
            if look.partition_reserves > 0 and of_partition[partition] >= look.partition_reserves:
                continue
            booked[asks.request[entry]] = 1
            of_array[array] += 1
            of_partition[partition] += 1
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
def _nodes_of(victims, many, held, chosen):  # type: ignore[no-untyped-def]
    """Fill *chosen* with the nodes that preempted entries held, each once; how many."""
    found = 0
    for place in range(many):
        first = held.first[victims[place]]
        for piece in range(first, first + held.pieces[victims[place]]):
            known = False
            for other in range(found):
                known = known or chosen[other] == held.node[piece]
            if not known:
                chosen[found] = held.node[piece]
                found += 1
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
def _rooms(entry, state, cover, asks, machine, states, rooms):  # type: ignore[no-untyped-def]
    """Fill *rooms* with what each node of its partition has for an entry; their sum over nodes that nobody reserved.

    Cores, or nodes where the entry names a number of them.
    """
    total, nodes = 0, asks.nodes[entry]
    least_memory, core_memory, least_gpus = asks.memory[entry], asks.core_memory[entry], asks.gpus[entry]
    exclusive, unit, most = asks.exclusive[entry] > 0, asks.unit[entry], asks.most[entry]
    cores, whole_memory, member = machine.cores, machine.memory, machine.member[asks.group[entry]]
    left = states[state]
    if least_memory == 0 and core_memory == 0 and least_gpus == 0 and not exclusive and unit <= 1 and most == 0:
        free = left[FREE]
        for node in range(len(cover)):
            here = free[node] if member[node] else 0
            rooms[node] = here if nodes == 0 else min(here, 1)
            total += rooms[node] if cover[node] == 0 else 0
        return total
    for node in range(len(cover)):
        rooms[node] = 0
        if member[node]:
            found = room_of(
                cores[node],
                whole_memory[node],
                left[FREE, node],
                left[MEMORY, node] if len(left) > MEMORY else 0,
                left[GPUS, node] if len(left) > GPUS else 0,
                left[JOBS, node],
                least_memory,
                core_memory,
                least_gpus,
                exclusive,
                unit,
                most,
            )
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
def _could_start(now, entry, fits, asks, machine, limits, rules, promised):  # type: ignore[no-untyped-def]
    """Whether enough is free now on nodes that are not reserved within the limit of an entry; if not, it cannot."""
    preempts = may_preempt(entry, rules)
    if (fits[asks.kind[entry]] <= 0 and not preempts) or not allowed(entry, asks.cores[entry], limits):
        return False
    if preempts:
        return True
    until, need = now + asks.limit[entry], asks.cores[entry]
    member, free = machine.member[asks.group[entry]], machine.now[FREE]
    total = 0
    for node in range(len(promised)):
        if promised[node] >= until and member[node]:
            total += free[node]
            if total >= need:
                return True
    return False


@compiled
def _futures(now, look, asks, machine, held):  # type: ignore[no-untyped-def]
    """What nodes have left now and after each group of running entries has ended: times and columns."""
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
    states = np.zeros((groups, len(machine.now), count), np.int64)
    states[0] = machine.now
    for group in range(1, groups):
        for row in range(len(machine.now)):
            states[group, row] = states[group - 1, row]
        for place in range(last[group - 1], last[group]):
            other = held.row[place]
            first, many = held.first[other], held.pieces[other]
            if len(machine.now) <= MEMORY:  # cores alone, as `move` does it
                for piece in range(first, first + many):
                    states[group, FREE, held.node[piece]] += held.cores[piece]
                    states[group, JOBS, held.node[piece]] -= 1
                continue
            nodes, cores = held.node[first : first + many], held.cores[first : first + many]
            move(other, 1, nodes, cores, asks, machine, states[group])
    return times[:groups], states


@compiled
def _ending(end, now, resolution):  # type: ignore[no-untyped-def]
    """When a running entry is expected to end; one that is late, next."""
    return max(_later(end, resolution), now + 1)
