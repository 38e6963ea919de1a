"""Allocations of queue entries: allocation, release and preemption."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.machine.running_set import OWN, begin_running, end_running
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.nodes import Bytes, Demands, move
from gridsim.policy.slurm.preemption import SUSPEND, leave
from gridsim.policy.slurm.reservations import count_inside
from gridsim.policy.slurm.tres import begin_tres, count_tres, over_limit

STOPPED = OWN
"""Index in `Held.counts`: number of entries preempted at this instant."""


class Held(NamedTuple):
    """Allocations of entries, and their expected ends.

    Attributes
    ----------
    running : (2, r) int64
        Running entries by expected end, whole microseconds, as in `gridsim.machine.running_set`.
    counts : (4,) int64
        Counts of running entries, and `STOPPED`.
    node, cores : (m,) int64
        Nodes and cores that each entry holds, or held last.
    first, pieces : (n,) int64
        First index of an entry in these columns, and its number of nodes.
    stopped : (n,) int64
        Entries preempted at this instant.
    busy : (m,) uint8
        Whether a request runs, in any partition.
    """

    running: IntArray
    counts: IntArray
    node: IntArray
    cores: IntArray
    first: IntArray
    pieces: IntArray
    stopped: IntArray
    busy: Bytes


def held_by(demands: Demands, nodes: int) -> Held:
    """Return empty allocations, with enough space for the maximum number of nodes of each entry."""
    n = len(demands["cores"])
    usable: IntArray = np.minimum(np.maximum(demands["cores"], 1), nodes)

    def zeros(size: int) -> IntArray:
        return np.zeros(size, dtype=np.int64)

    return Held(
        running=np.zeros((2, n + 1), dtype=np.int64),
        counts=zeros(OWN + 1),
        node=zeros(int(usable.sum()) + 1),
        cores=zeros(int(usable.sum()) + 1),
        first=np.cumsum(usable) - usable,
        pieces=zeros(n),
        stopped=zeros(n + 1),
        busy=np.zeros(int(demands["request"].max(initial=0)) + 1, dtype=np.uint8),
    )


@njit_noalloc
def allowed(entry, cores, limits):  # type: ignore[no-untyped-def]
    """Return whether no limit holds an entry back."""
    for place in range(limits.first[entry], limits.first[entry + 1]):
        counter = limits.counter[place]
        if limits.jobs_used[counter] + 1 > limits.jobs[counter]:
            return False
        if limits.cores_used[counter] + cores > limits.cores[counter]:
            return False
        if len(limits.tres.resource) and over_limit(entry, counter, limits.tres) >= 0:
            return False
    return True


@njit_noalloc
def _count(entry, cores, sign, limits):  # type: ignore[no-untyped-def]
    for place in range(limits.first[entry], limits.first[entry + 1]):
        counter = limits.counter[place]
        limits.jobs_used[counter] += sign
        limits.cores_used[counter] += sign * cores
    if len(limits.tres.resource):
        count_tres(entry, sign, limits.first[entry], limits.first[entry + 1], limits.counter, limits.tres)


@njit_noalloc
def take(entry, end, nodes, given, parts):  # type: ignore[no-untyped-def]
    """Start an entry on nodes, with the given cores of each."""
    demands, machine, limits, held, reservations, rules = parts
    move(entry, -1, nodes, given, demands, machine, machine.now)
    at = held.first[entry]
    held.pieces[entry] = len(nodes)
    cores = 0
    for place in range(len(nodes)):
        held.node[at + place], held.cores[at + place] = nodes[place], given[place]
        cores += given[place]
    if len(limits.tres.resource):
        begin_tres(entry, nodes, given, demands, machine, limits.tres)
    _count(entry, cores, 1, limits)
    if len(reservations.rows.node):
        count_inside(entry, 1, nodes, given, demands, reservations)
    held.busy[demands.request[entry]] = 1
    rules.running[rules.own.kind[entry]] += 1
    rules.own.leaves[entry] = NEVER
    begin_running(held.running, held.counts, entry, end, cores)


@njit_noalloc
def release(entry, demands, machine, limits, held, reservations, rules):  # type: ignore[no-untyped-def]
    """Release the allocation of an entry."""
    first, pieces = held.first[entry], held.pieces[entry]
    nodes, cores = held.node[first : first + pieces], held.cores[first : first + pieces]
    move(entry, 1, nodes, cores, demands, machine, machine.now)
    total = cores.sum()
    _count(entry, total, -1, limits)
    if len(reservations.rows.node):
        count_inside(entry, -1, nodes, cores, demands, reservations)
    held.busy[demands.request[entry]] = 0
    rules.running[rules.own.kind[entry]] -= 1
    rules.own.leaves[entry] = NEVER
    end_running(held.running, held.counts, entry, total)


@njit_noalloc
def stop(entry, demands, machine, limits, held, reservations, rules):  # type: ignore[no-untyped-def]
    """Release what a preempted entry gives up; a suspended one keeps all but its cores, and counts in limits."""
    if rules.own.mode[entry] != SUSPEND:
        release(entry, demands, machine, limits, held, reservations, rules)
        return
    _switch(entry, 1, demands, machine, held, reservations, rules)
    rules.own.leaves[entry] = NEVER
    end_running(held.running, held.counts, entry, 0)


@njit_noalloc
def resume(entry, end, demands, machine, limits, held, reservations, rules):  # type: ignore[no-untyped-def]
    """Allocate the cores of a suspended entry again; *end* is its new expected end."""
    _switch(entry, -1, demands, machine, held, reservations, rules)
    begin_running(held.running, held.counts, entry, end, 0)


@njit_noalloc
def _switch(entry, sign, demands, machine, held, reservations, rules):  # type: ignore[no-untyped-def]
    first, last = held.first[entry], held.first[entry] + held.pieces[entry]
    nodes, cores = held.node[first:last], held.cores[first:last]
    leave(entry, sign, nodes, cores, demands, machine, rules, machine.now)
    if len(reservations.rows.node):
        count_inside(entry, -sign, nodes, cores, demands, reservations)
    rules.running[rules.own.kind[entry]] -= sign


@njit_noalloc
def _leave_by(entry, end, held):  # type: ignore[no-untyped-def]
    """Limit the expected end of a running entry to an instant."""
    expected = end_running(held.running, held.counts, entry, 0)
    begin_running(held.running, held.counts, entry, min(expected, end), 0)


@njit_noalloc
def give_way(taker, victims, now, parts):  # type: ignore[no-untyped-def]
    """Preempt entries for the request *taker*, at once or after their grace time; return whether all have ended.

    preempt.html: "once a job has been selected for preemption, its end time is set to the current time plus
    GraceTime".
    """
    _, _, _, held, _, rules = parts
    gone = True
    for victim in victims:
        if rules.own.leaves[victim] < NEVER:
            gone = False
            continue
        rules.own.taker[victim] = taker
        if rules.own.grace[victim] > 0:
            gone = False
            rules.own.leaves[victim] = now + rules.own.grace[victim]
            _leave_by(victim, now + rules.own.grace[victim], held)
            continue
        stop(victim, *parts)
        held.stopped[held.counts[STOPPED]] = victim
        held.counts[STOPPED] += 1
    return gone


@njit_noalloc
def postpone(taker, victims, now, held, rules):  # type: ignore[no-untyped-def]
    """Mark entries for preemption by the request *taker* after this cycle, or after their grace time."""
    for victim in victims:
        if rules.own.leaves[victim] >= NEVER:
            rules.own.taker[victim] = taker
            rules.own.leaves[victim] = now + rules.own.grace[victim]
            _leave_by(victim, now + rules.own.grace[victim], held)
