"""The quick pass over the queue, after events.

Sources: slurm.schedmd.com/sched_config.html ("jobs are evaluated in a strict priority order and once any job … in a
partition is left pending, no other jobs in that partition will be scheduled"); slurm.conf(5), ``SchedulerParameters``.
"""

from __future__ import annotations

from gridsim.policy.slurm.holding import allowed, give_way, take
from gridsim.policy.slurm.nodes import ANY, select
from gridsim.policy.slurm.preemption import VICTIMS, find_victims, may_preempt
from gridsim.policy.slurm.reasons import (
    LICENSES,
    NOT_AVAILABLE,
    PRIORITY,
    RESERVATION,
    RESOURCES,
    behind,
    limit_of,
    note,
)
from gridsim.policy.slurm.reservations import in_time, open_nodes
from gridsim.policy.slurm.space import CHOSEN
from gridsim.profile.compiled import lean

__all__ = ["main_pass"]


@lean
def main_pass(  # type: ignore[no-untyped-def]
    now, order, depth, partition_depth, stop_at_limit, parts, reserving, started, reasons, space
):
    """Start entries in order until one of their lane does not fit; how many.

    *parts* are what entries ask for, the nodes, limits, what is held, what is reserved, and the rules of preemption.
    Nodes of a partition that is blocked are kept free from lower jobs of other partitions too. *reserving*, where it is
    not empty, says which entries may hold others back; *reasons* is filled with why the others wait; *space* is
    `gridsim.policy.slurm.space.Space`.
    """
    demands, machine, limits, held, reservations, rules = parts
    trial, shut, blocked, tested = space.trial, space.marks[0], space.blocked, space.tests.partitions
    shut[:], blocked[:], tested[:] = 0, 0, 0
    any_shut, found, looked = False, 0, 0
    for place in range(len(order)):
        if depth > 0 and looked >= depth:
            break
        entry = order[place]
        lane, partition = demands.lane[entry], demands.part[entry]
        if held.busy[demands.request[entry]]:
            continue
        if blocked[lane]:
            behind(entry, demands, limits, reasons)
            continue
        looked += 1
        tested[partition] += 1
        if partition_depth > 0 and tested[partition] > partition_depth:
            continue
        held_back = not allowed(entry, demands.cores[entry], limits)
        if held_back:
            code = limit_of(entry, demands.cores[entry], limits)
            note(demands.request[entry], code, reasons)
            if not stop_at_limit or code == LICENSES:
                continue
        used = 0
        if not held_back:
            open_nodes(
                entry, now, now, now + demands.limit[entry], demands, machine, reservations, trial.mask, trial.kept
            )
            for node in range(demands.low[entry], demands.high[entry]):
                if shut[node]:
                    trial.mask[node] = 0
            used = select(entry, trial, demands, machine, machine.now)
            if used == 0 and may_preempt(entry, rules):
                used, many = find_victims(entry, now, trial, space.picked, space.states[CHOSEN], parts)
                if used and not give_way(demands.request[entry], space.picked[VICTIMS, :many], now, parts):
                    used = 0
        if used:
            take(entry, now + demands.limit[entry], trial.chosen[:used], trial.given[:used], parts)
            started[found] = entry
            found += 1
            continue
        if not held_back:
            code = _why_not(entry, now, any_shut, trial, demands, machine, reservations)
            note(demands.request[entry], code, reasons)
        if len(reserving) == 0 or reserving[entry]:
            blocked[lane] = 1
            if demands.reservation[entry] < 0:
                member = machine.member[demands.group[entry]]
                for node in range(len(member)):
                    if member[node]:
                        shut[node], any_shut = 1, True
    return found


@lean
def _why_not(entry, now, any_shut, trial, demands, machine, reservations):  # type: ignore[no-untyped-def]
    """Why an entry does not start that no limit holds back: what would have to be otherwise."""
    if not in_time(entry, now, demands, reservations):
        return RESERVATION
    if any_shut:
        open_nodes(entry, now, now, now + demands.limit[entry], demands, machine, reservations, trial.mask, trial.kept)
        if select(entry, trial, demands, machine, machine.now):
            return PRIORITY
    if len(reservations.rows):
        member = machine.member[demands.group[entry]]
        for node in range(len(member)):
            trial.mask[node], trial.kept[node] = ANY if member[node] else 0, 0
        if select(entry, trial, demands, machine, machine.now):
            return NOT_AVAILABLE
    return RESOURCES
