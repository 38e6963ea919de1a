"""The quick pass over the queue, after events.

Sources: slurm.schedmd.com/sched_config.html ("jobs are evaluated in a strict priority order and once any job … in a
partition is left pending, no other jobs in that partition will be scheduled"); slurm.conf(5), ``SchedulerParameters``.
"""

from __future__ import annotations

import numpy as np

from gridsim.policy.slurm.closed import open_nodes
from gridsim.policy.slurm.holding import allowed, give_way, take
from gridsim.policy.slurm.nodes import select
from gridsim.policy.slurm.preemption import find_victims, may_preempt
from gridsim.profile.compiled import compiled

__all__ = ["main_pass"]


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
