"""Backfill: every job in order starts now, or reserves nodes from when it is expected to start.

Sources: slurm.schedmd.com/sched_config.html (backfill starts lower-priority jobs "if doing so does not delay the
expected start time of any higher priority jobs"); slurm.conf(5), ``SchedulerParameters``; sinfo(1), state PLANNED ("the
node is planned by the backfill scheduler for a higher priority job": whole nodes); preempt.html ("if during backfill
scheduling a job preempts one or more other jobs, the whole nodes for those preempted jobs are reserved for the
preemptor job"). That who preempts starts in a later pass is what a real Slurm 22.05 wrote into its log.
"""

from __future__ import annotations

import numpy as np

from gridsim.model.time import NEVER
from gridsim.policy.slurm.closed import in_time, next_change, open_nodes
from gridsim.policy.slurm.expected import first_fit, rounded, rounded_up
from gridsim.policy.slurm.holding import allowed, postpone, take
from gridsim.policy.slurm.nodes import FREE, select
from gridsim.policy.slurm.planned import empty_plan, is_clear, keep_clear, next_opening, reserve
from gridsim.policy.slurm.preemption import find_victims, may_preempt
from gridsim.policy.slurm.reasons import NONE, PRIORITY, RESERVATION, RESOURCES, is_limit, limit_of, note
from gridsim.profile.compiled import compiled

__all__ = ["backfill_pass"]


@compiled
def backfill_pass(now, order, look, parts, reserving, started, fits, planned, told):  # type: ignore[no-untyped-def]
    """Start every entry whose start delays no higher one; how many.

    *parts*, *reserving* and *told* are as in `main_pass`. Every entry that does not start, in order, reserves its
    nodes, whole, from its expected start for its time limit; reservations are made anew in each pass, and begin and end
    at whole multiples of the resolution. One that does not fit is looked at again at the instants of `next_opening`,
    and left out where there is none. An entry that preempts others reserves its nodes too, and starts in a later pass,
    without them. Behind the last entry that could still start now, for all that is free and not reserved, nothing is
    looked at, unless *planned*, one row an entry, is to be filled with expected starts.
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
        if fits[size] < 0:
            fits[size] = 0
            if asks.cores[entry] <= unused:
                open_nodes(entry, now, now, now + 1, asks, machine, closed, mask, kept)
                fits[size] = select(entry, mask, kept, asks, machine, machine.now, room, chosen, given)
        _say(entry, fits[size] > 0, asks, limits, told)
        if place > last and (fits[size] > 0 or may_preempt(entry, rules)) and allowed(entry, asks.cores[entry], limits):
            last = place
    if last < 0:
        return 0
    users, owners = np.zeros(machine.counts[2], np.int64), np.zeros(machine.counts[3], np.int64)
    tested, both = np.zeros(partitions, np.int64), np.zeros((machine.counts[2], partitions), np.int64)
    of_array, of_partition = np.zeros(machine.counts[4], np.int64), np.zeros(partitions, np.int64)
    booked = np.zeros(len(held.busy), np.uint8)
    plan = empty_plan(rounded(now, look), count)
    found = 0
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
        if not in_time(entry, now, asks, closed):
            note(asks.request[entry], RESERVATION, told)
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
        limit, member = asks.limit[entry], machine.member[asks.group[entry]]
        start, used, preempted = now, 0, 0
        strong = may_preempt(entry, rules)
        while start - now <= look.window:
            open_nodes(entry, now, start, start + limit, asks, machine, closed, mask, kept)
            keep_clear(start, start + limit, plan, mask)
            if start == now:
                used = select(entry, mask, kept, asks, machine, machine.now, room, chosen, given)
                if used == 0 and strong:
                    used, preempted = find_victims(
                        entry, now, mask, kept, asks, machine, held, rules, room, chosen, given, victims
                    )
                    if used:
                        postpone(asks.request[entry], victims, preempted, now, held, rules)
                if used:
                    break
            following = rounded_up(next_change(start, closed), look) if len(closed.rows) else NEVER
            following = min(following, next_opening(start, start + limit, member, plan))
            used, when = first_fit(
                entry, now, start, following, strong, look, mask, kept, asks, machine, held, rules, room, chosen, given
            )
            if used and (when <= start or is_clear(when, rounded(when + limit, look), used, chosen, plan)):
                start = max(when, start)
                break
            start = when if used else following
            used = 0
            if start >= NEVER:
                break
        if used and len(planned):
            planned[entry] = start if preempted == 0 else now + 1  # when they have gone
        if not used:
            continue
        if start == now and preempted == 0:
            take(entry, now + limit, used, chosen, given, *parts)
            started[found] = entry
            found += 1
            if look.starts > 0 and found >= look.starts:
                break
            continue
        if preempted == 0:
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
        for piece in range(used):
            promised[chosen[piece]] = min(promised[chosen[piece]], start)
        begin = rounded(start, look)
        plan = reserve(begin, max(rounded(start + limit, look), begin + look.resolution), used, chosen, plan)
    return found


@compiled
def _say(entry, fits, asks, limits, told):  # type: ignore[no-untyped-def]
    """Say why an entry waits that no quick pass has looked at yet, or not since a limit held it back.

    Other words of the quick pass stand.
    """
    request = asks.request[entry]
    limit = limit_of(entry, asks.cores[entry], limits)
    if limit > 0:
        note(request, limit, told)
    elif told.code[request] == NONE or is_limit(told.code[request]):
        note(request, PRIORITY if fits else RESOURCES, told)


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
