"""The main scheduler cycle over the queue, after events.

A job that does not start blocks its partition: lower jobs of the partition are skipped, and the rest of the cycle may
not use its nodes. As in Slurm up to 21.08, a job does not block its partition in two cases:

- Fewer nodes are left in its partition than its minimum number of nodes: reason *Resources*.
- It fits on empty nodes of its partition, but not on the remaining ones, and none of these is closed to it: reason
  *ReqNodeNotAvail*. On sites without preemption a node is closed to a job if another job holds it exclusively, and to
  a job of whole nodes if any job runs on it.
  to a job of whole nodes where any job runs.

Sources: slurm.schedmd.com/sched_config.html ("jobs are evaluated in a strict priority order and once any job … in a
partition is left pending, no other jobs in that partition will be scheduled"); slurm.conf(5), ``SchedulerParameters``.
"""

from __future__ import annotations

from gridsim.machine.njit import njit_noalloc
from gridsim.machine.running_set import RUNNING
from gridsim.policy.slurm.cycle_workspace import CHOSEN
from gridsim.policy.slurm.entry_allocation import allowed, give_way, take
from gridsim.policy.slurm.nodes import ANY, select
from gridsim.policy.slurm.preemption import VICTIMS, find_victims, may_preempt
from gridsim.policy.slurm.reasons import LICENSES, NOT_AVAILABLE, RESERVATION, RESOURCES, behind, limit_of, note
from gridsim.policy.slurm.reservations import in_time, open_nodes


@njit_noalloc
def run_main_cycle(  # type: ignore[no-untyped-def]
    now, order, depth, partition_depth, stop_at_limit, parts, reserving, started, reasons, workspace
):
    """Start entries in order until one of their lane blocks it; return their number.

    *parts* are the demands, nodes, limits, allocations, reservations, and preemption rules. *reserving*, if not empty,
    marks the entries that may block others; *reasons* is set to the wait reasons of the others; *workspace* is a
    `gridsim.policy.slurm.cycle_workspace.Buffers`.
    """
    demands, machine, limits, held, reservations, rules = parts
    trial, shut, blocked, tested = workspace.trial, workspace.marks[0], workspace.blocked, workspace.tests.partitions
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
            if any_shut and _too_few_left(entry, now, shut, demands, machine, reservations):
                note(demands.request[entry], RESOURCES, reasons)
                continue
            open_nodes(
                entry, now, now, now + demands.limit[entry], demands, machine, reservations, trial.mask, trial.kept
            )
            _close(entry, shut, trial.mask, demands)
            used = select(entry, trial, demands, machine, machine.now)
            if used == 0 and may_preempt(entry, rules):
                used, many = find_victims(entry, now, trial, workspace.picked, workspace.states[CHOSEN], parts)
                if used and not give_way(demands.request[entry], workspace.picked[VICTIMS, :many], now, parts):
                    used = 0
        if used:
            take(entry, now + demands.limit[entry], trial.chosen[:used], trial.given[:used], parts)
            started[found] = entry
            found += 1
            continue
        blocks = True
        if not held_back:
            code, blocks = _why_not(entry, now, shut, any_shut, trial, parts)
            note(demands.request[entry], code, reasons)
        if blocks and (len(reserving) == 0 or reserving[entry]):
            blocked[lane] = 1
            if demands.reservation[entry] < 0:
                for node in range(len(shut)):
                    if machine.partitions[partition, node]:
                        shut[node], any_shut = 1, True
    return found


@njit_noalloc
def _too_few_left(entry, now, shut, demands, machine, reservations):  # type: ignore[no-untyped-def]
    """Return whether fewer nodes are left in an entry's partition than its minimum."""
    if not in_time(entry, now, demands, reservations):
        return False
    partition, left = demands.part[entry], 0
    for node in range(len(shut)):
        left += 1 if machine.partitions[partition, node] and not shut[node] else 0
    return left < max(demands.nodes[entry], 1)


@njit_noalloc
def _close(entry, shut, mask, demands):  # type: ignore[no-untyped-def]
    """Remove nodes of blocked partitions from those that an entry may use."""
    for node in range(demands.low[entry], demands.high[entry]):
        if shut[node]:
            mask[node] = 0


@njit_noalloc
def _why_not(entry, now, shut, any_shut, trial, parts):  # type: ignore[no-untyped-def]
    """Return the wait reason of an entry that no limit holds back, and whether it blocks its partition."""
    demands, machine, _, _, reservations, _ = parts
    if not in_time(entry, now, demands, reservations):
        return RESERVATION, True
    if any_shut and not _closed_to(entry, shut, parts):
        until = now + demands.limit[entry]
        open_nodes(entry, now, now, until, demands, machine, reservations, trial.mask, trial.kept)
        if select(entry, trial, demands, machine, machine.empty):
            _close(entry, shut, trial.mask, demands)
            if not select(entry, trial, demands, machine, machine.empty):
                return NOT_AVAILABLE, False
    if len(reservations.rows):
        member = machine.member[demands.group[entry]]
        for node in range(len(member)):
            trial.mask[node], trial.kept[node] = ANY if member[node] and not shut[node] else 0, 0
        if select(entry, trial, demands, machine, machine.now):
            return NOT_AVAILABLE, True
    return RESOURCES, True


@njit_noalloc
def _closed_to(entry, shut, parts):  # type: ignore[no-untyped-def]
    """Return whether a remaining node is closed to an entry: held exclusively, or busy if it needs whole nodes."""
    demands, machine, _, held, _, rules = parts
    if rules.how[3]:
        return False
    member = machine.member[demands.group[entry]]
    for place in range(held.counts[RUNNING]):
        other = held.running[1, place]
        if demands.exclusive[entry] or demands.exclusive[other]:
            for piece in range(held.first[other], held.first[other] + held.pieces[other]):
                if member[held.node[piece]] and not shut[held.node[piece]]:
                    return True
    return False
