"""Backfill cycle: every job in order starts now, or reserves nodes at its expected start.

Sources: slurm.schedmd.com/sched_config.html (backfill starts lower-priority jobs "if doing so does not delay the
expected start time of any higher priority jobs"); slurm.conf(5), ``SchedulerParameters``; sinfo(1), state PLANNED ("the
node is planned by the backfill scheduler for a higher priority job": whole nodes); preempt.html ("if during backfill
scheduling a job preempts one or more other jobs, the whole nodes for those preempted jobs are reserved for the
preemptor job"). That a preempting job starts in a later cycle is taken from the log of a real Slurm 22.05.
"""

from __future__ import annotations

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.model.time import NEVER
from gridsim.policy.slurm.backfill_map import clear_nodes, clear_plan, is_clear, keep_clear, next_opening, reserve
from gridsim.policy.slurm.cycle_workspace import CHOSEN, LATER, STRONG
from gridsim.policy.slurm.entry_allocation import allowed, give_way, postpone, take
from gridsim.policy.slurm.expected_start import (
    earliest,
    find_ends,
    first_fit,
    forget_cores,
    mask_length,
    rounded,
    rounded_up,
    usable_cores_now,
)
from gridsim.policy.slurm.nodes import FREE, WORD, choose, need_of, select, usable_by_node
from gridsim.policy.slurm.preemption import SUSPEND, VICTIMS, find_victims, may_preempt
from gridsim.policy.slurm.reasons import NONE, PRIORITY, RESERVATION, RESOURCES, is_limit, limit_of, note
from gridsim.policy.slurm.reservations import in_time, next_change, open_nodes

FITS, LEAST, TRIED, START, COULD, NUMBERS = range(6)
"""Rows of intermediate results of a cycle by number of demands. By `kind`: the nodes on which the free capacity would
hold an entry (-1: unknown), and a lower bound of its start (-1: unknown). By `same`: the number of changes of plan and
free capacity at the last trial, the expected start then, and the number of changes up to which the entry could still
start now (-1: unknown, `NEVER`: not in this cycle)."""


@njit_noalloc
def run_backfill_cycle(now, order, parameters, parts, reserving, started, numbers, planned, reasons, workspace):  # type: ignore[no-untyped-def]
    """Start every entry whose start delays no higher one; return their number.

    *parts*, *reserving*, *reasons* and *workspace* are as in `run_main_cycle`. In queue order, every entry that does
    not start reserves its nodes, whole, from its expected start for its time limit. Reservations are made again in each
    cycle, and begin and end at multiples of the resolution. An entry that does not fit is tried again at the instants
    of `next_opening`, and skipped if there are none. An entry that preempts others reserves its nodes too, and starts
    in a later cycle.

    The cycle stops behind the last entry that could still start now with the free and unreserved capacity, unless
    *planned*, one row per entry, is to be filled with expected starts. Intermediate results are stored in *numbers*.
    """
    demands, _, _, _, _, rules = parts
    trial, plan, known, promised = workspace.trial, workspace.plan, workspace.known, workspace.marks[0]
    waiting = len(order) if parameters.tests <= 0 else min(len(order), parameters.tests)
    everything = len(planned) > 0
    last = _last_that_fits(now, order[:waiting], numbers, trial, reasons, parts)
    if everything:
        last = waiting - 1
    if last < 0:
        return 0
    _count_nothing(order[: last + 1], workspace.tests, workspace.booked, demands)
    clear_plan(rounded(now, parameters), plan)
    promised[:] = NEVER  # first reservation of each node
    found, changes = 0, 0
    _find_all_ends(now, workspace, parts)
    forget_cores(known)
    for place in range(last + 1):
        while last >= place and not (
            everything or _could_start(now, order[last], numbers, changes, promised, known, plan, trial, parts)
        ):
            last -= 1
        if place > last:
            break
        entry = order[place]
        if not _is_looked_at(entry, now, parameters, workspace.tests, reasons, parts):
            continue
        same, strong = demands.same[entry], may_preempt(entry, rules)
        if numbers[TRIED, same] == changes and not strong:  # the plan has not changed since
            if everything:
                planned[entry] = numbers[START, same]
            if numbers[START, same] >= NEVER:
                continue
            if not _may_reserve(entry, parameters, reserving, demands, workspace.booked, False):
                continue
        start, used, preempted = _first_place(entry, now, parameters, numbers, workspace, parts)
        if not strong:
            numbers[TRIED, same], numbers[START, same] = changes, start if used else NEVER
        if not used:
            continue
        if preempted != 0:  # they end earlier
            _find_all_ends(now, workspace, parts)
            for other in order[:waiting]:
                numbers[LEAST, demands.kind[other]] = -1
        if everything:
            planned[entry] = start if preempted <= 0 else now + 1  # after the preempted entries have ended
        if start == now and preempted <= 0:
            take(entry, now + demands.limit[entry], trial.chosen[:used], trial.given[:used], parts)
            started[found] = entry
            found, changes = found + 1, changes + 1
            _find_all_ends(now, workspace, parts)
            forget_cores(known)
            if parameters.starts > 0 and found >= parameters.starts:
                break
        elif preempted > 0 or _may_reserve(entry, parameters, reserving, demands, workspace.booked, True):
            changes += 1
            for node in trial.chosen[:used]:
                promised[node] = min(promised[node], start)
            begin = rounded(start, parameters)
            end = max(rounded(start + demands.limit[entry], parameters), begin + parameters.resolution)
            reserve(begin, end, used, trial.chosen, plan)
    return found


@inline
def _find_all_ends(now, workspace, parts):  # type: ignore[no-untyped-def]
    """Compute the free capacity as all running entries end."""
    find_ends(0, now, False, workspace.ends, workspace.states[LATER], workspace.states[LATER], parts)


@inline
def _last_that_fits(now, order, numbers, trial, reasons, parts):  # type: ignore[no-untyped-def]
    """Return the place of the last entry that could start now, -1 if none could; reset *numbers*, set wait *reasons*.

    An entry could start if the free capacity suffices, or if it may preempt others.
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


@njit_noalloc
def _count_nothing(order, tests, booked, demands):  # type: ignore[no-untyped-def]
    """Reset the counters of tested entries and of reservations."""
    for entry in order:
        user, partition = demands.user[entry], demands.part[entry]
        tests.users[user], tests.owners[demands.association[entry]], tests.partitions[partition] = 0, 0, 0
        tests.both[user, partition], booked.partitions[partition] = 0, 0
        booked.requests[demands.request[entry]], booked.arrays[demands.array[entry]] = 0, 0


@inline
def _is_looked_at(entry, now, parameters, tests, reasons, parts):  # type: ignore[no-untyped-def]
    """Return whether the cycle tests an entry: it waits, no limit holds it back, and ``bf_max_job_*`` permit it."""
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


@njit_noalloc
def _within(count, most):  # type: ignore[no-untyped-def]
    """Return whether a count is within a limit, where 0 means no limit."""
    return most <= 0 or count <= most


@njit_noalloc
def _first_place(entry, now, parameters, numbers, workspace, parts):  # type: ignore[no-untyped-def]
    """Return the expected start of an entry, its number of nodes (0: none found), and the number of preempted entries.

    The number is negative if they have left, so that the entry can start now: suspended ones leave at once.
    It starts now if that delays no reservation, else as running entries end, at the instants of `next_opening`. Cached
    results stay valid for some time: the free capacity after ends, and lower bounds of starts by number, until an
    entry starts or has to end earlier; the present free capacity until an entry starts.
    """
    demands, machine, _, held, reservations, rules = parts
    trial, plan, known, ends = workspace.trial, workspace.plan, workspace.known, workspace.ends
    limit, need, kind = demands.limit[entry], need_of(entry, demands), demands.kind[entry]
    start, strong, bound = now, may_preempt(entry, rules), now
    member, low, high = machine.packed[demands.group[entry]], need.low // WORD, mask_length(need.high)
    if strong:
        ends = workspace.others
        find_ends(entry, now, strong, ends, workspace.states[STRONG], workspace.states[LATER], parts)
    else:
        if numbers[LEAST, kind] < 0:
            numbers[LEAST, kind] = earliest(entry, now, ends, known, trial, parts)
        bound = numbers[LEAST, kind]
    while start - now <= parameters.window and start < NEVER and bound - now <= parameters.window:
        following = rounded_up(next_change(start, reservations), parameters) if len(reservations.rows) else NEVER
        following = min(following, next_opening(start, start + limit, low, high, member, plan))
        clear = 0 if following < bound else clear_nodes(start, start + limit, low, high, member, plan, trial.clear)
        if clear < demands.nodes[entry] or clear * demands.widest[entry] < demands.cores[entry]:
            start = following  # too few nodes, even if all were idle
            continue
        open_nodes(entry, now, start, start + limit, demands, machine, reservations, trial.mask, trial.kept)
        keep_clear(low, high, member, trial.mask, trial.clear)
        if strong and start == now:
            used, preempted = select(entry, trial, demands, machine, machine.now), 0
            if used == 0:
                used, preempted = find_victims(entry, now, trial, workspace.picked, workspace.states[CHOSEN], parts)
                victims = workspace.picked[VICTIMS, :preempted]
                if used and preempted > 0 and rules.own.mode[victims[0]] == SUSPEND:
                    if give_way(demands.request[entry], victims, now, parts):
                        preempted = -preempted
                elif used:
                    postpone(demands.request[entry], victims, now, held, rules)
            if used:
                return start, used, preempted
        if strong:
            total, _ = usable_by_node(need, trial, machine, workspace.states[STRONG])
        else:
            total = usable_cores_now(entry, known, trial, demands, machine)
        if total >= demands.cores[entry] and bound <= now and not (strong and start == now):
            used = choose(entry, need, trial, demands, machine)
            if used:
                return start, used, 0
        used, when = first_fit(entry, now, bound, following, parameters, ends, total, trial, parts)
        if used and (when <= start or is_clear(when, rounded(when + limit, parameters), used, trial.chosen, plan)):
            return max(when, start), used, 0
        start = when if used else following
    return NEVER, 0, 0


@inline
def _may_reserve(entry, parameters, reserving, demands, booked, counts):  # type: ignore[no-untyped-def]
    """Return whether a waiting entry may reserve nodes; if *counts*, count its reservation."""
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


@njit_noalloc
def _say(entry, fits, demands, limits, reasons):  # type: ignore[no-untyped-def]
    """Set the wait reason of an entry that no main cycle has tested, or not since a limit held it back.

    Other reasons of the main cycle are kept.
    """
    request = demands.request[entry]
    limit = limit_of(entry, demands.cores[entry], limits)
    if limit > 0:
        note(request, limit, reasons)
    elif reasons.code[request] == NONE or is_limit(reasons.code[request]):
        note(request, PRIORITY if fits else RESOURCES, reasons)


@njit_noalloc
def _could_start(now, entry, numbers, changes, promised, known, plan, trial, parts):  # type: ignore[no-untyped-def]
    """Return whether enough capacity for an entry is free now on nodes without plans within its time limit.

    Within a cycle the result never changes from false to true: plans only grow, and free capacity only shrinks.
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
    if len(reservations.rows.node):  # entries up to here also get the wait reason of a reservation
        total, member, usable = 0, machine.member[demands.group[entry]], machine.now[FREE]
        for node in range(need.low, need.high):
            if promised[node] >= until and member[node] and usable[node] > 0:
                total += usable[node]
        could = total >= demands.cores[entry]
    else:
        group = demands.group[entry]
        low, high, member = need.low // WORD, mask_length(need.high), machine.packed[group]
        clear = clear_nodes(now, until, low, high, member, plan, trial.clear)
        if clear < demands.nodes[entry] or clear * demands.widest[entry] < demands.cores[entry]:
            return False
        open_nodes(entry, now, now, until, demands, machine, reservations, trial.mask, trial.kept)
        keep_clear(low, high, member, trial.mask, trial.clear)
        could = usable_cores_now(entry, known, trial, demands, machine) >= demands.cores[entry]
        if could and machine.first[group] == machine.first[group + 1]:  # not monotonic with kinds
            could = choose(entry, need, trial, demands, machine) > 0
    if could:
        numbers[COULD, same] = changes
    return could
