"""Which nodes and cores a job gets: Slurm's default selection, and what the nodes have left.

Sources: slurm.schedmd.com/topology.html ("consider the nodes as a one-dimensional array. Jobs are allocated resources
on a best-fit basis. For larger jobs, this minimizes the number of sets of consecutive nodes allocated to the job");
cons_tres.html (cores and memory as consumable resources); slurm.conf(5), ``Weight`` ("if a job allocation request can
not be satisfied using the nodes with the lowest weight, the set of nodes with the next lowest weight is added"),
``OverSubscribe``, ``SelectType``; cpu_management.html, step 2 and example 6 ("the default allocation method across
nodes is block allocation (allocate all available CPUs in a node before using another node)").

In particular: among the nodes of the least weight that suffices, the sets of consecutive nodes with something free are
looked at. The smallest set that holds the whole job is taken, the first of equal ones; where none does, the largest set
is used up and the rest of the job goes on in the same way. Inside a set a job goes on the node that holds it whole and
has the fewest cores free (best fit, the first of equal ones), else from the first node on. A job that asks for a number
of nodes gets all that the first of them has free, less one task for each of the others, and so on; where the nodes that
are found in this way have too few cores together, those with most cores free are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.profile.compiled import compiled, lean, phase

__all__ = [
    "ALL",
    "ANY",
    "FREE",
    "GPUS",
    "JOBS",
    "MEMORY",
    "WORD",
    "Demands",
    "NodeColumns",
    "Trial",
    "choose",
    "memory_on",
    "move",
    "need_of",
    "room_of",
    "rooms",
    "select",
    "trial_on",
]

Bytes = npt.NDArray[np.uint8]

ALL = -1
"""Memory of a node that a request asks for: all of it (sbatch(1), ``--mem``: "a memory size specification of zero is
treated as a special case and grants the job access to all of the memory on each node")."""
ANY = 1 << 40
"""Cores of a node that a request may use: as many as there are."""


FREE, JOBS, MEMORY, GPUS = range(4)
"""Rows of what nodes have left: cores, how many jobs run on them, MiB, GPUs. The last ones are left out where nobody
looks at them."""


WORD = 32
"""Nodes that are told by the bits of one number, so that many are looked at in one step."""


class NodeColumns(NamedTuple):
    """The nodes, in the order of the configuration.

    Attributes
    ----------
    cores, memory, gpus, weight : (n,) int64
        What a node has; weights as ranks, 0 for the lightest.
    now : (k, n) int64
        What nobody holds: rows `FREE`, `JOBS`, `MEMORY` and `GPUS`, or the first of them.
    member : (g, n) uint8
        Which nodes belong to which group: to a partition, with the features that a request wants.
    packed : (g, w) int64
        The same, `WORD` nodes a number: a bit for each of them.
    counts : (5,) int64
        How many lanes, partitions, users, associations and job arrays there are.
    """

    cores: IntArray
    memory: IntArray
    gpus: IntArray
    weight: IntArray
    now: IntArray
    member: Bytes
    packed: IntArray
    counts: IntArray


Demands = Any
"""What entries of the queue ask for, one row an entry: a request in one of the partitions that it asks for.

One of `gridsim.profile.compiled.records`.

cores, nodes, most_nodes
    Cores in all; fewest and most nodes, 0 for as many as it takes.
memory, core_memory, gpus
    MiB a node, 0 for none, `ALL` for all that a node has; MiB a core; GPUs a node.
unit, most
    Cores of a task, which cannot be split over nodes; most cores on a node, 0 for no limit.
exclusive
    Whether it takes whole nodes.
group, part, lane, limit
    Row of `NodeColumns.member`; partition; partition and reservation together, numbered: entries of a lane wait for one
    another; time limit in whole microseconds.
reservation, request
    Reservation that it asks for, -1 for none; the request.
kind, needs
    Entries that ask for the same have the same number; `kind` leaves the time limit and who may preempt out, `needs`
    all that is not asked of each single node.
user, association, array
    Numbers of who submitted it, and of the job array that it belongs to, 0 for none.
"""


class Need(NamedTuple):
    """What an entry needs of each of its nodes: of columns of `Demands`, which are slow to hand over for each node."""

    memory: int
    core_memory: int
    gpus: int
    exclusive: bool
    unit: int
    most: int


@phase
def need_of(entry, demands):  # type: ignore[no-untyped-def]
    """What an entry needs of a node."""
    memory, core_memory, gpus = demands.memory[entry], demands.core_memory[entry], demands.gpus[entry]
    return Need(memory, core_memory, gpus, demands.exclusive[entry] > 0, demands.unit[entry], demands.most[entry])


class Trial(NamedTuple):
    """Where an entry is tried, and what it would get there.

    Attributes
    ----------
    mask, kept : (n,) int64
        Most cores of each node that the entry may use; cores of each that are kept from it.
    clear : (w,) int64
        Nodes of the entry's group that are not planned for others, a bit each.
    room : (n,) int64
        Room to work in.
    chosen, given : (n,) int64
        Nodes that it would get, and cores of each of these.
    """

    mask: IntArray
    kept: IntArray
    room: IntArray
    chosen: IntArray
    given: IntArray
    clear: IntArray


@phase
def trial_on(nodes):  # type: ignore[no-untyped-def]
    """A trial on so many nodes."""
    mask, kept, room = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    chosen, given, clear = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(-(-nodes // WORD), np.int64)
    return Trial(mask, kept, room, chosen, given, clear)


@lean
def room_of(cores, whole_memory, free, memory, gpus, jobs, need):  # type: ignore[no-untyped-def]
    """Cores of a node that an entry could have, of those and what else is free there."""
    if gpus < need.gpus:
        return 0
    if need.memory < 0:
        if memory < whole_memory:
            return 0
    elif memory < need.memory:
        return 0
    if need.exclusive:
        if jobs > 0 or free < cores or need.core_memory * cores > memory:
            return 0
    elif need.core_memory > 0:
        free = min(free, memory // need.core_memory)
    if need.most > 0:
        free = min(free, need.most)
    if need.unit > 1:
        free -= free % need.unit
    return max(free, 0)


@compiled
def select(entry, trial, demands, machine, state):  # type: ignore[no-untyped-def]
    """Nodes and cores for an entry: how many nodes, 0 where it does not fit.

    *state* is what nodes have left, now or later; the trial is filled with nodes and cores.
    """
    need = need_of(entry, demands)
    total, nodes = rooms(need, trial, machine, state)
    if total < demands.cores[entry] or nodes < demands.nodes[entry]:
        return 0
    return choose(entry, need, trial, demands, machine)


@compiled
def choose(entry, each, trial, demands, machine):  # type: ignore[no-untyped-def]
    """The same where the trial has the room of each node, and there is enough of it in all.

    The room is used up where the entry fits, and stays as it was where it does not.
    """
    room, chosen, given = trial.room, trial.chosen, trial.given
    need, least, highest = demands.cores[entry], demands.nodes[entry], demands.most_nodes[entry]
    used = 0
    if least == 0:
        left = room.copy() if highest > 0 else room
        used = _as_few_nodes_as_it_takes(need, left, machine.weight, chosen, given)
        if highest > 0 and used > highest:
            used = _some_nodes(need, 1, highest, each.unit, room, machine.weight, chosen, given)
    else:
        used = _some_nodes(need, least, max(highest, least), each.unit, room, machine.weight, chosen, given)
    if each.exclusive:
        for place in range(used):
            given[place] = machine.cores[chosen[place]]
    return used


@lean
def rooms(need, trial, machine, state):  # type: ignore[no-untyped-def]
    """Fill the trial's room with what an entry could have of each node; the sum, and how many nodes have any."""
    mask, kept, room = trial.mask, trial.kept, trial.room
    total, nodes = 0, 0
    plain = need.memory == 0 and need.core_memory == 0 and need.gpus == 0
    plain = plain and not need.exclusive and need.unit <= 1 and need.most == 0
    free = state[FREE]
    for node in range(len(mask)):
        room[node] = 0
        if plain:
            room[node] = max(min(free[node] - kept[node], mask[node]), 0)
        elif mask[node] > 0:
            left = min(free[node] - kept[node], mask[node])
            room[node] = room_of(
                machine.cores[node],
                machine.memory[node],
                left,
                state[MEMORY, node] if len(state) > MEMORY else 0,
                state[GPUS, node] if len(state) > GPUS else 0,
                state[JOBS, node],
                need,
            )
        total += room[node]
        nodes += 1 if room[node] > 0 else 0
    return total, nodes


@compiled
def _as_few_nodes_as_it_takes(need, room, weight, chosen, given):  # type: ignore[no-untyped-def]
    """Nodes for so many cores, wherever they are; *room* suffices, and is used up."""
    used, wanted, level, sets = 0, need, 0, _sets(False, room, weight)
    while wanted > 0:
        begin, end = _best_set(wanted, level, sets)
        if begin < 0:
            level += 1
            continue
        best = -1
        for node in range(begin, end):  # the node that holds all of it and has least left
            if room[node] >= wanted and (best < 0 or room[node] < room[best]):
                best = node
        if best >= 0:
            begin, end = best, best + 1
        for node in range(begin, end):
            if wanted <= 0:
                break
            chosen[used], given[used] = node, min(wanted, room[node])
            wanted -= given[used]
            room[node] = 0
            used += 1
    return used


@compiled
def _some_nodes(need, least, highest, unit, room, weight, chosen, given):  # type: ignore[no-untyped-def]
    """As many nodes as there are of a range, and cores of each of them; 0 where they have too few cores."""
    available = 0
    for node in range(len(room)):
        if room[node] > 0:
            available += 1
    for nodes in range(min(highest, available, max(need // unit, least)), least - 1, -1):
        if _widest(nodes, room) >= need:
            return _so_many_nodes(need, nodes, unit, room, weight, chosen, given)
    return 0


@compiled
def _so_many_nodes(need, nodes, unit, room, weight, chosen, given):  # type: ignore[no-untyped-def]
    left = _light(room, weight, _level(need, nodes, room, weight))
    least = need - _widest(nodes - 1, left)  # less than this on one node is too little, whatever the others have
    for node in range(len(room)):
        if left[node] < least:
            left[node] = 0
    allowed = left.copy()
    used, sum_of, level, sets = 0, 0, 0, _sets(True, left, weight)
    while used < nodes:
        begin, end = _best_set(nodes - used, level, sets)
        if begin < 0:
            level += 1
            continue
        for node in range(begin, end):
            if used == nodes:
                break
            chosen[used] = node
            sum_of += room[node]
            left[node] = 0
            used += 1
    if sum_of < need:  # those with most room instead, in their own order
        _take_widest(nodes, allowed, chosen)
    wanted = need
    for place in range(nodes):
        others = (nodes - 1 - place) * unit
        given[place] = max(min(room[chosen[place]], wanted - others), min(unit, wanted))
        wanted -= given[place]
    return nodes


@compiled
def _sizes(room):  # type: ignore[no-untyped-def]
    """How many nodes have room for so many cores; sorting would take as long to compile as all the rest."""
    highest = 0
    for node in range(len(room)):
        highest = max(highest, room[node])
    sizes = np.zeros(highest + 1, np.int64)
    for node in range(len(room)):
        sizes[room[node]] += 1
    return sizes


@compiled
def _widest(nodes, room):  # type: ignore[no-untyped-def]
    """Cores of so many nodes with most room."""
    highest, many = 0, 0
    for node in range(len(room)):
        if room[node] > highest:
            highest, many = room[node], 1
        elif room[node] == highest:
            many += 1
    if many >= nodes:  # as where nodes are empty
        return nodes * highest
    sizes = _sizes(room)
    total, left = 0, nodes
    for size in range(len(sizes) - 1, 0, -1):
        here = min(sizes[size], left)
        total += here * size
        left -= here
    return total


@compiled
def _take_widest(nodes, room, chosen):  # type: ignore[no-untyped-def]
    """Choose so many nodes with most room, in their order; of equal ones the first."""
    sizes = _sizes(room)
    least, left = len(sizes) - 1, nodes
    while least > 1 and sizes[least] < left:
        left -= sizes[least]
        least -= 1
    used = 0
    for node in range(len(room)):
        if room[node] > least or (room[node] == least and left > 0):
            left -= 1 if room[node] == least else 0
            chosen[used] = node
            used += 1


@compiled
def _level(need, nodes, room, weight):  # type: ignore[no-untyped-def]
    """The least weight up to which so many nodes suffice."""
    count, heaviest = len(room), 0
    for node in range(count):
        if room[node] > 0:
            heaviest = max(heaviest, weight[node])
    level = 0
    while level < heaviest:
        total, found = 0, 0
        for node in range(count):
            if weight[node] <= level and room[node] > 0:
                total += room[node]
                found += 1
        if found >= nodes and total >= need:
            within = _light(room, weight, level)
            if _widest(nodes, within) >= need:
                break
        level += 1
    return level


@compiled
def _light(room, weight, level):  # type: ignore[no-untyped-def]
    """Room on the nodes of no more than a weight."""
    found = room.copy()
    for node in range(len(room)):
        if weight[node] > level:
            found[node] = 0
    return found


@compiled
def _sets(count_nodes, room, weight):  # type: ignore[no-untyped-def]
    """Sets of consecutive nodes of a weight that have room: begin, end, how many nodes, or cores, each has, weight."""
    count, found, node = len(room), 0, 0
    sets = np.empty((count + 1, 4), np.int64)
    while node < count:
        if room[node] <= 0:
            node += 1
            continue
        first, size, level = node, 0, weight[node]
        while node < count and room[node] > 0 and weight[node] == level:
            size += 1 if count_nodes else room[node]
            node += 1
        sets[found, 0], sets[found, 1], sets[found, 2], sets[found, 3] = first, node, size, level
        found += 1
    sets[found, 0] = -1
    return sets


@lean
def _best_set(wanted, level, sets):  # type: ignore[no-untyped-def]
    """The smallest set of a weight that holds what is wanted, or the largest, used up then; -1 for none."""
    best, found, place = -1, 0, 0
    while sets[place, 0] >= 0:
        size = sets[place, 2]
        better = size > found if found < wanted else wanted <= size < found
        if better and sets[place, 3] == level:
            best, found = place, size
        place += 1
    if best < 0:
        return -1, -1
    sets[best, 2] = 0
    return sets[best, 0], sets[best, 1]


@lean
def memory_on(entry, node, cores, demands, machine):  # type: ignore[no-untyped-def]
    """MiB of a node that an entry holds with so many cores of it."""
    if demands.memory[entry] < 0:
        return machine.memory[node]
    return demands.memory[entry] + demands.core_memory[entry] * cores


@lean
def move(entry, sign, nodes, cores, demands, machine, state):  # type: ignore[no-untyped-def]
    """Let an entry give back what it holds (*sign* 1), or take it (-1)."""
    for place in range(len(nodes)):
        node = nodes[place]
        state[FREE, node] += sign * cores[place]
        state[JOBS, node] -= sign
        if len(state) > MEMORY:
            state[MEMORY, node] += sign * memory_on(entry, node, cores[place], demands, machine)
        if len(state) > GPUS:
            state[GPUS, node] += sign * (machine.gpus[node] if demands.exclusive[entry] else demands.gpus[entry])
