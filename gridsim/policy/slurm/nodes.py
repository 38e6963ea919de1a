"""Which nodes and cores a job gets: Slurm's default selection, and what the nodes have left.

Sources: slurm.schedmd.com/topology.html ("consider the nodes as a one-dimensional array. Jobs are allocated resources
on a best-fit basis. For larger jobs, this minimizes the number of sets of consecutive nodes allocated to the job");
cons_tres.html (cores and memory as consumable resources); slurm.conf(5), ``Weight`` (the lightest nodes that will do),
``OverSubscribe``, ``SelectType``.

In particular: among the nodes of the least weight that suffices, the sets of consecutive nodes with something free are
looked at. The smallest set that holds the whole job is taken, the first of equal ones; where none does, the largest set
is used up and the rest of the job goes on in the same way. Inside a set a job goes on the node that holds it whole and
has the fewest cores free (best fit, the first of equal ones), else from the first node on. A job that asks for a number
of nodes gets the same number of cores on each of them, or one more on the first ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.profile.compiled import compiled

__all__ = ["Asks", "Machine", "begin", "finish", "room_of", "select"]

Bytes = npt.NDArray[np.uint8]


class Machine(NamedTuple):
    """Columns of the nodes, in the order of the configuration.

    Attributes
    ----------
    cores, memory, weight : (n,) int64
        What a node has; weights as ranks, 0 for the lightest.
    free, free_memory, jobs : (n,) int64
        Cores and MiB that nobody holds, and how many jobs run on it.
    member : (p, n) uint8
        Which nodes belong to which partition.
    """

    cores: IntArray
    memory: IntArray
    weight: IntArray
    free: IntArray
    free_memory: IntArray
    jobs: IntArray
    member: Bytes


class Asks(NamedTuple):
    """What requests ask for, one row a request.

    Attributes
    ----------
    cores, nodes, memory : (n,) int64
        Cores in all; nodes, 0 for as many as it takes; MiB a node, 0 for none.
    exclusive : (n,) uint8
        Whether it takes whole nodes.
    partition, limit : (n,) int64
        Partition, and time limit in whole microseconds.
    shape, size : (n,) int64
        Requests that ask for the same have the same number; `size` leaves the time limit out.
    user, association : (n,) int64
        Numbers of who submitted it.
    """

    cores: IntArray
    nodes: IntArray
    memory: IntArray
    exclusive: Bytes
    partition: IntArray
    limit: IntArray
    shape: IntArray
    size: IntArray
    user: IntArray
    association: IntArray


@compiled
def room_of(cores, free, memory, jobs, least_memory, exclusive, each):  # type: ignore[no-untyped-def]
    """Cores of a node that a request could have; plain numbers, since columns are slow to hand over for each node."""
    if memory < least_memory:
        return 0
    if exclusive:
        free = cores if jobs == 0 else 0
    if each > 0:
        return each if free >= each else 0
    return free


@compiled
def select(request, mask, asks, machine, free, memory, jobs, room, chosen, given):  # type: ignore[no-untyped-def]
    """Nodes and cores for a request: how many nodes, 0 where it does not fit.

    *free*, *memory* and *jobs* are what nodes have left, now or later; *room* is room to work in; *chosen* and *given*
    are filled with nodes and cores.
    """
    count = len(mask)
    need, nodes = asks.cores[request], asks.nodes[request]
    least_memory, exclusive = asks.memory[request], asks.exclusive[request] > 0
    each = -(-need // nodes) if nodes > 0 else 0
    cores, weight = machine.cores, machine.weight
    total, heaviest = 0, 0
    for node in range(count):
        room[node] = 0
        if mask[node]:
            room[node] = room_of(cores[node], free[node], memory[node], jobs[node], least_memory, exclusive, each)
            if room[node] > 0:
                total += 1 if nodes > 0 else room[node]
                heaviest = max(heaviest, weight[node])
    wanted = nodes if nodes > 0 else need
    if total < wanted:
        return 0
    level = 0
    while level < heaviest:  # the least weight that suffices
        total = 0
        for node in range(count):
            if weight[node] <= level and room[node] > 0:
                total += 1 if nodes > 0 else room[node]
        if total >= wanted:
            break
        level += 1
    used = 0
    while wanted > 0:
        begin, end, found = -1, -1, 0
        node = 0
        while node < count:  # sets of consecutive nodes
            if room[node] <= 0 or weight[node] > level:
                node += 1
                continue
            first, size = node, 0
            while node < count and room[node] > 0 and weight[node] <= level:
                size += 1 if nodes > 0 else room[node]
                node += 1
            if found < wanted:
                better = size > found
            else:
                better = wanted <= size < found
            if better:
                begin, end, found = first, node, size
        if nodes == 0:
            best = -1
            for node in range(begin, end):  # the node that holds all of it and has least left
                if room[node] >= wanted and (best < 0 or room[node] < room[best]):
                    best = node
            if best >= 0:
                begin, end = best, best + 1
        for node in range(begin, end):
            if wanted <= 0:
                break
            chosen[used] = node
            if nodes > 0:
                given[used] = need // nodes + (1 if used < need % nodes else 0)
                wanted -= 1
            else:
                given[used] = min(wanted, room[node])
                wanted -= given[used]
            room[node] = 0
            used += 1
    if asks.exclusive[request]:
        for place in range(used):
            given[place] = cores[chosen[place]]
    return used


@compiled
def begin(request, used, chosen, given, asks, machine):  # type: ignore[no-untyped-def]
    """Let a request hold what was selected for it."""
    for place in range(used):
        node = chosen[place]
        machine.free[node] -= given[place]
        machine.free_memory[node] -= asks.memory[request]
        machine.jobs[node] += 1


@compiled
def finish(request, nodes, cores, asks, free, memory, jobs):  # type: ignore[no-untyped-def]
    """Let a request give back what it held."""
    for place in range(len(nodes)):
        node = nodes[place]
        free[node] += cores[place]
        memory[node] += asks.memory[request]
        jobs[node] -= 1
