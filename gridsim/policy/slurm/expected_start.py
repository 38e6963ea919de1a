"""Expected start of a waiting job, if running jobs end at their time limits.

Source: slurm.conf(5), ``bf_resolution``, ``bf_window`` and ``bf_window_linear`` ("the precision starts at 30 seconds
and that time interval doubles with each evaluation of currently executing jobs").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.running_set import RUNNING
from gridsim.model.site import Scheduling
from gridsim.model.time import MICROSECOND as SECOND
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.nodes import (
    ANY,
    CAPS,
    FREE,
    GPUS,
    JOBS,
    MEMORY,
    WORD,
    capped,
    choose,
    copy_state,
    move,
    need_of,
    usable_cores,
)
from gridsim.policy.slurm.preemption import leave, preemptable


class BackfillParameters(NamedTuple):
    """Parameters of a backfill cycle; whole microseconds and numbers of jobs, 0 for no limit.

    Attributes
    ----------
    resolution, origin, window : int
        ``bf_resolution``, the instant from which its steps count, and ``bf_window``.
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
    origin: int
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


def backfill_parameters(scheduling: Scheduling, epoch: float) -> BackfillParameters:
    """Return the parameters of a site, where second 0 is *epoch*, Unix time in s."""
    given, resolution = scheduling, max(scheduling.resolution, 1)
    limits = (given.tests, given.user_tests, given.partition_tests, given.association_tests, given.starts)
    more = (given.both_tests, given.linear, given.array_reserves, given.partition_reserves, given.once)
    return BackfillParameters(resolution, -round(epoch * SECOND) % resolution, given.window, *limits, *more)


@njit_noalloc
def rounded(time, parameters):  # type: ignore[no-untyped-def]
    """Return a time rounded down to ``bf_resolution``."""
    return _down(time, parameters.resolution, parameters)


@njit_noalloc
def _down(time, step, parameters):  # type: ignore[no-untyped-def]
    """Return a time rounded down to a whole number of steps."""
    return time - (time - parameters.origin) % step


@njit_noalloc
def rounded_up(time, parameters):  # type: ignore[no-untyped-def]
    """Return a time rounded up to ``bf_resolution``; `NEVER` stays."""
    return time if time >= NEVER else rounded(time + parameters.resolution - 1, parameters)


GRID = 30_000_000
"""Initial span of a group of running jobs whose ends are evaluated together, microseconds; the end after a group is
rounded down to a multiple of it."""


class Ends(NamedTuple):
    """Free capacity of nodes as running entries end, one after the other, at their time limits.

    Attributes
    ----------
    first : (k + 1,) int64
        First row of the running entry at each place of `gridsim.policy.slurm.entry_allocation.Held.running`.
    span : (k, 2) int64
        First and last node of each of them.
    node : (m,) int64
        A node that it holds.
    left : (k, m) int64
        Free capacity of that node after the end of this entry and all earlier ones; rows as in `NodeColumns.now`.
    """

    first: IntArray
    span: IntArray
    node: IntArray
    left: IntArray


def ends_for(running: int, pieces: int, rows: int) -> Ends:
    """Allocate arrays for running entries, their node allocations, and rows of free capacity."""
    first, span = np.zeros(running + 1, np.int64), np.zeros((running, 2), np.int64)
    return Ends(first, span, np.zeros(pieces, np.int64), np.zeros((max(rows, CAPS), pieces), np.int64))


@njit_noalloc
def find_ends(entry, now, strong, ends, state, later, parts):  # type: ignore[no-untyped-def]
    """Compute the free capacity without the entries that an entry may preempt (*strong*), and then as the others end.

    The first result is stored in *state*, which is used for preemption only, the second in *ends*.
    """
    demands, machine, _, held, _, rules = parts
    running, rows, first, span = held.counts[RUNNING], 0, ends.first, ends.span
    copy_state(machine.now, state)
    first[0] = 0
    for place in range(running):
        other = held.running[1, place]
        begin, end = held.first[other], held.first[other] + held.pieces[other]
        if strong and preemptable(entry, other, now, demands, rules):
            leave(other, 1, held.node[begin:end], held.cores[begin:end], demands, machine, rules, state)
        else:
            rows += end - begin
        first[place + 1] = rows
    copy_state(state, later)
    for place in range(running):
        row = first[place]
        if row == first[place + 1]:
            continue
        other = held.running[1, place]
        begin, end = held.first[other], held.first[other] + held.pieces[other]
        move(other, 1, held.node[begin:end], held.cores[begin:end], demands, machine, later)
        span[place, 0], span[place, 1] = held.node[begin], held.node[begin]
        for piece in range(begin, end):
            node = held.node[piece]
            span[place, 0], span[place, 1] = min(span[place, 0], node), max(span[place, 1], node)
            ends.node[row] = node
            for resource in range(len(later)):
                ends.left[resource, row] = later[resource, node]
            row += 1


class CoreCache(NamedTuple):
    """Available cores of nodes for entries with equal demands per node, computed once per cycle until an entry starts.

    Attributes
    ----------
    of : (k,) int64
        Number of the demands of each row; -1 for none.
    cores : (k, n) int64
        Cores of each node that such an entry could get, ignoring plans and reservations.
    """

    of: IntArray
    cores: IntArray


def cache_for(nodes: int) -> CoreCache:
    """Return an empty cache of available cores for this number of nodes."""
    return CoreCache(np.full(16, -1), np.empty((16, nodes), np.int64))


@njit_noalloc
def forget_cores(known):  # type: ignore[no-untyped-def]
    """Clear the cache."""
    for row in range(len(known.of)):
        known.of[row] = -1


@njit_noalloc
def _cores_now(entry, known, demands, machine):  # type: ignore[no-untyped-def]
    """Return the row of `CoreCache` with available cores per node for an entry now, ignoring plans and reservations."""
    number = demands.needs[entry]
    row, now = number % len(known.of), machine.now
    if known.of[row] == number:
        return row
    known.of[row], found = number, known.cores[row]
    need, member = need_of(entry, demands), machine.member[demands.group[entry]]
    for node in range(need.low, need.high):
        found[node] = 0
        if member[node]:
            found[node] = usable_cores(
                machine.cores[node],
                machine.memory[node],
                now[FREE, node],
                now[MEMORY, node] if len(now) > MEMORY else 0,
                now[GPUS, node] if len(now) > GPUS else 0,
                now[JOBS, node],
                capped(node, now, need),
                need,
            )
    return row


@njit_noalloc
def mask_length(node):  # type: ignore[no-untyped-def]
    """Return the number of words of bit masks for the nodes before this one."""
    return -(-node // WORD)


@njit_noalloc
def usable_cores_now(entry, known, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Like `usable_by_node` for the present free capacity, with cached values for nodes without reserved cores."""
    mask, kept, usable, clear, now, total = trial.mask, trial.kept, trial.usable, trial.clear, machine.now, 0
    need, whole = need_of(entry, demands), known.cores[_cores_now(entry, known, demands, machine)]
    cores, memory = machine.cores, machine.memory
    if need.spread:
        for node in range(need.low, need.high):
            trial.idle[node] = now[FREE, node]
    for word in range(need.low // WORD, mask_length(need.high)):
        bits = clear[word]
        for node in range(word * WORD, min((word + 1) * WORD, len(mask))):
            usable[node] = 0
            if not bits >> (node % WORD) & 1:
                continue
            if mask[node] >= ANY and kept[node] == 0:
                usable[node] = whole[node]
            elif mask[node] > 0:
                usable[node] = usable_cores(
                    cores[node],
                    memory[node],
                    min(now[FREE, node] - kept[node], mask[node]),
                    now[MEMORY, node] if len(now) > MEMORY else 0,
                    now[GPUS, node] if len(now) > GPUS else 0,
                    now[JOBS, node],
                    capped(node, now, need),
                    need,
                )
            total += usable[node]
    return total


@njit_noalloc
def first_fit(entry, now, bound, until, parameters, ends, total, trial, parts):  # type: ignore[no-untyped-def]
    """Return the number of nodes of an entry and its start, as running entries end; 0 and `NEVER` if it does not fit.

    The nodes of the mask, whose available cores (*total*) are set, are tried after each group of ends from *bound*,
    the earliest possible start, up to *until*. *ends* exclude the entries that it may preempt.

    A group is an end and all further ones within 30 s, three times, then within 60 s, 120 s and so on, or as
    ``bf_window_linear`` defines. The end after a group is rounded down to 30 s. A group is skipped if that end is on
    other nodes. The documentation does not contain the last two rules or the number of short groups; they fit the
    plans of a real Slurm 22.05 best.
    """
    demands, machine, _, held, _, _ = parts
    need, cores, memory = need_of(entry, demands), machine.cores, machine.memory
    mask, kept, usable = trial.mask, trial.kept, trial.usable
    first, of_nodes, nodes, later = ends
    span, groups, opened, time = GRID, 0, NEVER, now
    running, end = held.counts[RUNNING], held.running[0]
    for place in range(running):
        if of_nodes[place, 1] < need.low or of_nodes[place, 0] >= need.high:
            continue
        expected, touched = _limit_end(end[place], now), False
        late = expected > until or expected - now > parameters.window
        for row in range(first[place], first[place + 1]):
            node = nodes[row]
            if node < need.low or node >= need.high:
                continue
            if need.spread:
                trial.idle[node] = later[FREE, row]
            if mask[node] > 0:
                if late:
                    return 0, NEVER
                touched, left = True, min(later[FREE, row] - kept[node], mask[node])
                more = _usable_later(cores[node], memory[node], left, row, later, need)
                total += more - usable[node]
                usable[node] = more
        if not touched:
            continue
        time, opened = expected, min(opened, expected)
        if place + 1 < running:
            following = _down(_limit_end(end[place + 1], now), GRID, parameters)
            if following - opened <= span:
                continue
        used = _chosen(entry, need, total, trial, demands, machine) if time >= bound else 0
        if used:
            return used, time
        opened, groups = NEVER, groups + 1
        if groups > 2:
            span = span + parameters.linear if parameters.linear > 0 else 2 * span
    used = _chosen(entry, need, total, trial, demands, machine) if opened < NEVER and time >= bound else 0
    return used, time if used else NEVER


@njit_noalloc
def _usable_later(cores, whole_memory, free, row, later, need):  # type: ignore[no-untyped-def]
    """Return `usable_cores` a node at a row of `Ends`."""
    memory, gpus, jobs = later[MEMORY, row], later[GPUS, row], later[JOBS, row]
    return usable_cores(cores, whole_memory, free, memory, gpus, jobs, capped(row, later, need), need)


@inline
def _chosen(entry, need, total, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Return the number of nodes that an entry gets from the available cores, *total*."""
    return choose(entry, need, trial, demands, machine) if total >= demands.cores[entry] else 0


@njit_noalloc
def earliest(entry, now, ends, known, trial, parts):  # type: ignore[no-untyped-def]
    """Return a lower bound of an entry's start, ignoring plans and reservations: when its nodes have enough capacity.

    Uses the trial's `usable` as workspace.
    """
    demands, machine, _, held, _, _ = parts
    need, usable, cores, memory = need_of(entry, demands), trial.usable, machine.cores, machine.memory
    member = machine.member[demands.group[entry]]
    whole = known.cores[_cores_now(entry, known, demands, machine)]
    first, span, nodes, later = ends
    total = 0
    for node in range(need.low, need.high):
        usable[node] = whole[node]
        total += usable[node]
    plain = machine.first[demands.group[entry]] == machine.first[demands.group[entry] + 1]
    if _suffices(entry, need, total, plain, trial, demands, machine):
        return now
    for place in range(held.counts[RUNNING]):
        if span[place, 1] < need.low or span[place, 0] >= need.high:
            continue
        before = total
        for row in range(first[place], first[place + 1]):
            node = nodes[row]
            if member[node]:
                more = _usable_later(cores[node], memory[node], later[FREE, row], row, later, need)
                total += more - usable[node]
                usable[node] = more
        if total > before and _suffices(entry, need, total, plain, trial, demands, machine):
            return _limit_end(held.running[0, place], now)
    return NEVER


@inline
def _suffices(entry, need, total, plain, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Return whether an entry could fit the available cores, *total*; for several kinds of nodes an upper bound."""
    return total >= demands.cores[entry] and (not plain or choose(entry, need, trial, demands, machine) > 0)


@njit_noalloc
def _limit_end(end, now):  # type: ignore[no-untyped-def]
    """Return when a running job reaches its limit, as in Slurm: in whole seconds, and after now."""
    return max(end // SECOND * SECOND, now + 1)
