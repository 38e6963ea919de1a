"""Backfill: every job in order starts now, or reserves nodes from when it is expected to start.

Sources: slurm.schedmd.com/sched_config.html (backfill starts lower-priority jobs "if doing so does not delay the
expected start time of any higher priority jobs"); slurm.conf(5), ``SchedulerParameters``; sinfo(1), state PLANNED ("the
node is planned by the backfill scheduler for a higher priority job": whole nodes); preempt.html ("if during backfill
scheduling a job preempts one or more other jobs, the whole nodes for those preempted jobs are reserved for the
preemptor job"). That who preempts starts in a later pass is what a real Slurm 22.05 wrote into its log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.expected import (
    Ends,
    Rooms,
    earliest,
    ends_of,
    first_fit,
    forget_rooms,
    no_rooms,
    rooms_of,
    rounded,
    rounded_up,
    words_to,
)
from gridsim.policy.slurm.holding import allowed, postpone, take
from gridsim.policy.slurm.nodes import FREE, WORD, Bytes, choose, need_of, rooms, select, trial_on
from gridsim.policy.slurm.planned import clear_nodes, empty_plan, is_clear, keep_clear, next_opening, reserve
from gridsim.policy.slurm.preemption import find_victims, may_preempt
from gridsim.policy.slurm.reasons import NONE, PRIORITY, RESERVATION, RESOURCES, is_limit, limit_of, note
from gridsim.policy.slurm.reservations import in_time, next_change, open_nodes
from gridsim.profile.compiled import compiled, lean, phase
from gridsim.profile.running import RUNNING

__all__ = ["NUMBERS", "backfill_pass"]

FITS, LEAST, TRIED, START, COULD, NUMBERS = range(6)
"""What a pass finds of all entries with one number: by kind, on how many nodes what is free now would hold them (-1:
unknown), and before when they cannot start (-1: unknown); of those that ask for the same, after how many changes of
what is planned and free they were tried last, and when they would have started; and after how many they could still
start now (-1: unknown, `NEVER`: not in this pass)."""


@compiled
def backfill_pass(now, order, parameters, parts, reserving, started, numbers, planned, reasons):  # type: ignore[no-untyped-def]
    """Start every entry whose start delays no higher one; how many.

    *parts*, *reserving* and *reasons* are as in `main_pass`. Every entry that does not start, in order, reserves its
    nodes, whole, from its expected start for its time limit; reservations are made anew in each pass, and begin and end
    at whole multiples of the resolution. One that does not fit is looked at again at the instants of `next_opening`,
    and left out where there is none. An entry that preempts others reserves its nodes too, and starts in a later pass,
    without them. Behind the last entry that could still start now, for all that is free and not reserved, nothing is
    looked at, unless *planned*, one row an entry, is to be filled with expected starts. What is found of *numbers* of
    demands is kept there: rows as below, to work in.
    """
    demands, machine, _, held, _, rules = parts
    waiting = len(order) if parameters.tests <= 0 else min(len(order), parameters.tests)
    trial, everything = trial_on(len(machine.cores)), len(planned) > 0
    last = _last_that_fits(now, order[:waiting], numbers, trial, reasons, parts)
    if everything:
        last = waiting - 1
    if last < 0:
        return 0
    tests, booked = _no_tests(machine), _nothing_booked(machine, held)
    plan = empty_plan(rounded(now, parameters), len(machine.cores))
    promised = np.full(len(machine.cores), NEVER)  # first reservation of each node
    victims = np.zeros(held.counts[RUNNING] + waiting + 1, np.int64)
    found, changes = 0, 0
    ends, known = ends_of(0, now, False, parts)[0], no_rooms(len(machine.cores))
    for place in range(last + 1):
        while last >= place and not (
            everything or _could_start(now, order[last], numbers, changes, promised, known, plan, trial, parts)
        ):
            last -= 1
        if place > last:
            break
        entry = order[place]
        if not _is_looked_at(entry, now, parameters, tests, reasons, parts):
            continue
        same, strong = demands.same[entry], may_preempt(entry, rules)
        if numbers[TRIED, same] == changes and not strong:  # nothing has been planned since
            if everything:
                planned[entry] = numbers[START, same]
            if numbers[START, same] >= NEVER or not _may_reserve(entry, parameters, reserving, demands, booked, False):
                continue
        start, used, preempted = _first_place(
            entry, now, parameters, plan, Learnt(ends, known, numbers), victims, trial, parts
        )
        if not strong:
            numbers[TRIED, same], numbers[START, same] = changes, start if used else NEVER
        if not used:
            continue
        if preempted > 0:  # they end earlier
            ends = ends_of(0, now, False, parts)[0]
            for other in order[:waiting]:
                numbers[LEAST, demands.kind[other]] = -1
        if everything:
            planned[entry] = start if preempted == 0 else now + 1  # when they have gone
        if start == now and preempted == 0:
            take(entry, now + demands.limit[entry], trial.chosen[:used], trial.given[:used], parts)
            started[found] = entry
            found, changes = found + 1, changes + 1
            ends = ends_of(0, now, False, parts)[0]
            forget_rooms(known)
            if parameters.starts > 0 and found >= parameters.starts:
                break
        elif preempted > 0 or _may_reserve(entry, parameters, reserving, demands, booked, True):
            changes += 1
            for node in trial.chosen[:used]:
                promised[node] = min(promised[node], start)
            begin = rounded(start, parameters)
            end = max(rounded(start + demands.limit[entry], parameters), begin + parameters.resolution)
            plan = reserve(begin, end, used, trial.chosen, plan)
    return found


@phase
def _last_that_fits(now, order, numbers, trial, reasons, parts):  # type: ignore[no-untyped-def]
    """Place of the last entry that could start now, -1 where none could.

    *numbers* begin anew, and *reasons* of each wait are told. What is free suffices for it, or what it may preempt may
    do.
    """
    demands, machine, limits, _, reservations, rules = parts
    last, fits = -1, numbers[FITS]
    for entry in order:
        kind, same = demands.kind[entry], demands.same[entry]
        fits[kind], numbers[LEAST, kind], numbers[TRIED, same], numbers[COULD, same] = -1, -1, -1, -1
    unused = 0
    for node in range(len(machine.cores)):
        unused += machine.now[FREE, node]
    for place in range(len(order)):
        entry = order[place]
        kind = demands.kind[entry]
        if fits[kind] < 0:
            fits[kind] = 0
            if demands.cores[entry] <= unused:
                open_nodes(entry, now, now, now + 1, demands, machine, reservations, trial.mask, trial.kept)
                fits[kind] = select(entry, trial, demands, machine, machine.now)
        _say(entry, fits[kind] > 0, demands, limits, reasons)
        if (fits[kind] > 0 or may_preempt(entry, rules)) and allowed(entry, demands.cores[entry], limits):
            last = place
    return last


class Tests(NamedTuple):
    """How many entries a pass has looked at: of each user, association and partition, and of users by partition."""

    users: IntArray
    owners: IntArray
    partitions: IntArray
    both: IntArray


@phase
def _no_tests(machine):  # type: ignore[no-untyped-def]
    _, partitions, users, owners, _ = machine.counts
    both = np.zeros((users, partitions), np.int64)
    return Tests(np.zeros(users, np.int64), np.zeros(owners, np.int64), np.zeros(partitions, np.int64), both)


@phase
def _is_looked_at(entry, now, parameters, tests, reasons, parts):  # type: ignore[no-untyped-def]
    """Whether the pass looks at an entry: it waits, nothing holds it back, and ``bf_max_job_*`` leave it in."""
    demands, _, limits, held, reservations, _ = parts
    if held.busy[demands.request[entry]] or not allowed(entry, demands.cores[entry], limits):
        return False
    if not in_time(entry, now, demands, reservations):
        note(demands.request[entry], RESERVATION, reasons)
        return False
    user, owner, partition = demands.user[entry], demands.association[entry], demands.part[entry]
    tests.users[user] += 1
    tests.owners[owner] += 1
    tests.partitions[partition] += 1
    tests.both[user, partition] += 1
    return (
        _within(tests.users[user], parameters.user_tests)
        and _within(tests.owners[owner], parameters.association_tests)
        and _within(tests.partitions[partition], parameters.partition_tests)
        and _within(tests.both[user, partition], parameters.both_tests)
    )


@lean
def _within(count, most):  # type: ignore[no-untyped-def]
    """Whether a count keeps a limit, where 0 stands for none."""
    return most <= 0 or count <= most


class Learnt(NamedTuple):
    """What a pass has learnt, as long as it stays true.

    Attributes
    ----------
    ends : Ends
        What nodes will have left; until an entry starts, or has to end earlier.
    known : Rooms
        What they have left now; until an entry starts.
    numbers : (NUMBERS, k) int64
        Of entries with one number; before when they cannot start, until an entry has to end earlier.
    """

    ends: Ends
    known: Rooms
    numbers: IntArray


@compiled
def _first_place(entry, now, parameters, plan, learnt, victims, trial, parts):  # type: ignore[no-untyped-def]
    """When an entry is expected to start, on how many nodes (0 for no place), and whom it preempts for that.

    Now, where that delays no reservation; else as running entries end, at the instants of `next_opening`.
    """
    demands, machine, _, held, reservations, rules = parts
    limit, need, kind = demands.limit[entry], need_of(entry, demands), demands.kind[entry]
    ends, known, numbers = learnt
    start, strong, state, bound = now, may_preempt(entry, rules), machine.now, now
    member, low, high = machine.packed[demands.group[entry]], need.low // WORD, words_to(need.high)
    if strong:
        ends, state = ends_of(entry, now, strong, parts)
    else:
        if numbers[LEAST, kind] < 0:
            numbers[LEAST, kind] = earliest(entry, now, ends, known, trial, parts)
        bound = numbers[LEAST, kind]
    while start - now <= parameters.window and start < NEVER and bound - now <= parameters.window:
        following = rounded_up(next_change(start, reservations), parameters) if len(reservations.rows) else NEVER
        following = min(following, next_opening(start, start + limit, low, high, member, plan))
        clear = 0 if following < bound else clear_nodes(start, start + limit, low, high, member, plan, trial.clear)
        if clear < demands.nodes[entry] or clear * demands.widest[entry] < demands.cores[entry]:
            start = following  # too few, were they all idle
            continue
        open_nodes(entry, now, start, start + limit, demands, machine, reservations, trial.mask, trial.kept)
        keep_clear(low, high, member, trial.mask, trial.clear)
        if strong and start == now:
            used, preempted = select(entry, trial, demands, machine, machine.now), 0
            if used == 0:
                used, preempted = find_victims(entry, now, victims, trial, parts)
                if used:
                    postpone(demands.request[entry], victims[:preempted], now, held, rules)
            if used:
                return start, used, preempted
        if strong:
            total, _ = rooms(need, trial, machine, state)
        else:
            total = rooms_of(entry, known, trial, demands, machine)
        if total >= demands.cores[entry] and bound <= now and not (strong and start == now):
            used = choose(entry, need, trial, demands, machine)
            if used:
                return start, used, 0
        used, when = first_fit(entry, now, bound, following, parameters, ends, total, trial, parts)
        if used and (when <= start or is_clear(when, rounded(when + limit, parameters), used, trial.chosen, plan)):
            return max(when, start), used, 0
        start = when if used else following
    return NEVER, 0, 0


class Booked(NamedTuple):
    """What a pass has reserved: for which requests, how often for each job array and each partition."""

    requests: Bytes
    arrays: IntArray
    partitions: IntArray


@phase
def _nothing_booked(machine, held):  # type: ignore[no-untyped-def]
    arrays, partitions = np.zeros(machine.counts[4], np.int64), np.zeros(machine.counts[1], np.int64)
    return Booked(np.zeros(len(held.busy), np.uint8), arrays, partitions)


@phase
def _may_reserve(entry, parameters, reserving, demands, booked, counts):  # type: ignore[no-untyped-def]
    """Whether an entry that has to wait may reserve nodes; where that *counts*, as having done so then."""
    request, array, partition = demands.request[entry], demands.array[entry], demands.part[entry]
    if len(reserving) and not reserving[entry]:
        return False
    if parameters.once and booked.requests[request]:
        return False
    if array > 0 and booked.arrays[array] >= parameters.array_reserves:
        return False
    if parameters.partition_reserves > 0 and booked.partitions[partition] >= parameters.partition_reserves:
        return False
    if counts:
        booked.requests[request] = 1
        booked.arrays[array] += 1
        booked.partitions[partition] += 1
    return True


@lean
def _say(entry, fits, demands, limits, reasons):  # type: ignore[no-untyped-def]
    """Say why an entry waits that no quick pass has looked at yet, or not since a limit held it back.

    Other words of the quick pass stand.
    """
    request = demands.request[entry]
    limit = limit_of(entry, demands.cores[entry], limits)
    if limit > 0:
        note(request, limit, reasons)
    elif reasons.code[request] == NONE or is_limit(reasons.code[request]):
        note(request, PRIORITY if fits else RESOURCES, reasons)


@compiled
def _could_start(now, entry, numbers, changes, promised, known, plan, trial, parts):  # type: ignore[no-untyped-def]
    """Whether enough is free now on nodes that are not planned within the limit of an entry; if not, it cannot start.

    Who does not find enough in one moment of a pass never does in it: only more is planned, and less is free.
    """
    demands, machine, limits, _, reservations, rules = parts
    preempts, same = may_preempt(entry, rules), demands.same[entry]
    if (numbers[FITS, demands.kind[entry]] <= 0 and not preempts) or not allowed(entry, demands.cores[entry], limits):
        return False
    if preempts or numbers[COULD, same] == changes:
        return True
    if numbers[COULD, same] == NEVER:
        return False
    until, need = now + demands.limit[entry], need_of(entry, demands)
    numbers[COULD, same] = NEVER
    if len(reservations.rows.node):  # a pass says of all that it looks at that they wait for the begin of theirs
        total, member, room = 0, machine.member[demands.group[entry]], machine.now[FREE]
        for node in range(need.low, need.high):
            if promised[node] >= until and member[node] and room[node] > 0:
                total += room[node]
        could = total >= demands.cores[entry]
    else:
        group = demands.group[entry]
        low, high, member = need.low // WORD, words_to(need.high), machine.packed[group]
        clear = clear_nodes(now, until, low, high, member, plan, trial.clear)
        if clear < demands.nodes[entry] or clear * demands.widest[entry] < demands.cores[entry]:
            return False
        open_nodes(entry, now, now, until, demands, machine, reservations, trial.mask, trial.kept)
        keep_clear(low, high, member, trial.mask, trial.clear)
        could = rooms_of(entry, known, trial, demands, machine) >= demands.cores[entry]
        if could and machine.first[group] == machine.first[group + 1]:  # of several kinds of nodes more can be less
            could = choose(entry, need, trial, demands, machine) > 0
    if could:
        numbers[COULD, same] = changes
    return could
