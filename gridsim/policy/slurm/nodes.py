"""Selection of nodes and cores for a job, as in Slurm by default, and the free capacity of the nodes.

Sources: slurm.schedmd.com/topology.html ("consider the nodes as a one-dimensional array. Jobs are allocated resources
on a best-fit basis. For larger jobs, this minimizes the number of sets of consecutive nodes allocated to the job");
cons_tres.html (cores and memory as consumable resources); slurm.conf(5), ``Weight`` ("if a job allocation request can
not be satisfied using the nodes with the lowest weight, the set of nodes with the next lowest weight is added"),
``OverSubscribe``, ``SelectType``; cpu_management.html, step 2 and example 6 ("the default allocation method across
nodes is block allocation (allocate all available CPUs in a node before using another node)").

Selection among the nodes of the lowest weight that suffices, by sets of consecutive nodes with free cores:

- The smallest set that holds the whole job is used, the first of equal ones. Otherwise the largest set is used up, and
  the selection continues for the rest of the job.
- Within a set, the job gets the node with the fewest free cores that holds it entirely (best fit, the first of equal
  ones), else nodes from the first one on.
- A job that requests a number of nodes gets all free cores of the first node, except one task for each other node, and
  so on. If the nodes found in this way have too few cores together, those with the most free cores are used.

In partitions with ``LLN``, and with ``CR_LLN`` in all of them, the node with the most idle cores is first instead, the
first of equal ones; "node Weight takes precedence over how many idle resources are on each node" (slurm.conf(5)). If a
job requests hosts by name, or a number of nodes of a kind (sbatch(1), ``--nodelist`` and ``--constraint``), the
selection applies to each kind in turn. It prefers nodes that no later kind requests, and then adds the remaining
nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.model.time import IntArray

Bytes = npt.NDArray[np.uint8]

ALL = -1
"""Requested memory of a node: all of it (sbatch(1), ``--mem``: "a memory size specification of zero is treated as a
special case and grants the job access to all of the memory on each node")."""
ANY = 1 << 40
"""Cores of a node that a request may use: no limit."""


FREE, JOBS, MEMORY, GPUS, CAPS = range(5)
"""Rows of the free capacity of nodes: cores, running jobs, MiB, GPUs, and from `CAPS` on cores for partitions with a
limit per node (``MaxCPUsPerNode``). Unused rows at the end are omitted."""


WORD = 32
"""Nodes per integer in bit masks, so that many are examined in one step."""


class NodeColumns(NamedTuple):
    """The nodes, in the order of the configuration.

    The free capacity is kept here in addition to the machine (`gridsim.entities.resource`), which checks each start
    and end with its own columns. A scheduling cycle allocates and releases many times before it reports decisions to
    the machine, and trial starts there would be unchecked. Both are equal at the end of each instant.

    Attributes
    ----------
    cores, memory, gpus, weight : (n,) int64
        Total amounts of a node; weights as ranks, 0 for the lowest.
    now : (k, n) int64
        Free capacity: rows `FREE`, `JOBS`, `MEMORY`, `GPUS` and those from `CAPS` on, or the first of them.
    empty : (k, n) int64
        The same without running jobs.
    partitions : (p, n) uint8
        Nodes of each partition.
    member : (g, n) uint8
        Nodes of each group: in a partition, with the requested features.
    packed : (g, w) int64
        The same as bit masks, `WORD` nodes per integer.
    counts : (5,) int64
        Number of lanes, partitions, users, associations and job arrays.
    first : (g + 1,) int64
        First row of *wanted* and *among* of each group; no rows if any of its nodes can be used.
    wanted : (k,) int64
        0 in the row that begins an alternative, of which an entry uses one; in its other rows, the number of nodes
        required from that row's nodes.
    among : (k, n) uint8
        Nodes of each row.
    """

    cores: IntArray
    memory: IntArray
    gpus: IntArray
    weight: IntArray
    now: IntArray
    empty: IntArray
    partitions: Bytes
    member: Bytes
    packed: IntArray
    counts: IntArray
    first: IntArray
    wanted: IntArray
    among: Bytes


Demands = Any
"""Demands of the queue entries, one row per entry: a request in one of its partitions.

Made by `gridsim.machine.njit.records`.

cores, nodes, most_nodes
    Total cores; minimum and maximum number of nodes, 0 for as many as needed.
widens
    Whether it gets more than the minimum number of nodes only if these do not suffice.
memory, core_memory, gpus
    MiB per node, 0 for none, `ALL` for all of a node; MiB per core; GPUs per node.
unit, most
    Cores of a task, which cannot be split over nodes; maximum cores on a node, 0 for no limit.
exclusive
    Whether it gets whole nodes.
cap, spread
    Row of the free capacity for its partition, 0 if only `FREE` applies; whether the least loaded nodes are used
    first.
low, high, widest
    Of the nodes of its group: the first, the one behind the last, and the most cores of one.
group, part, lane, limit
    Row of `NodeColumns.member`; partition; number of the pair of partition and reservation: entries of a lane wait for
    each other; time limit in whole microseconds.
reservation, request
    Requested reservation, -1 for none; the request.
same, kind, needs
    Entries with equal demands have the same number `same`, whatever they may preempt; `kind` ignores the time limit
    too, and `needs` everything that does not apply to single nodes.
user, association, array
    Numbers of the user, the association and the job array, 0 for none.
"""


class Need(NamedTuple):
    """Demands of an entry for each of its nodes, copied from `Demands`, whose columns are slow to pass for each node.

    Loops examine only nodes from *low* on and before *high*; other nodes have no valid values in a `Trial`.
    """

    memory: int
    core_memory: int
    gpus: int
    exclusive: bool
    unit: int
    most: int
    cap: int
    spread: bool
    low: int
    high: int


@inline
def need_of(entry, demands):  # type: ignore[no-untyped-def]
    """Return the demands of an entry for a node."""
    memory, core_memory, gpus = demands.memory[entry], demands.core_memory[entry], demands.gpus[entry]
    alone, spread = demands.exclusive[entry] > 0, demands.spread[entry] > 0
    unit, most, cap = demands.unit[entry], demands.most[entry], demands.cap[entry]
    return Need(memory, core_memory, gpus, alone, unit, most, cap, spread, demands.low[entry], demands.high[entry])


class Trial(NamedTuple):
    """Workspace of the node selection for an entry, and its result.

    Attributes
    ----------
    mask, kept : (n,) int64
        Maximum cores of each node that the entry may use; cores of each that are reserved for others.
    clear : (w,) int64
        Nodes of the entry's group that are not planned for others, one bit each.
    usable : (n,) int64
        Available cores of each node.
    idle : (n,) int64
        Idle cores of each node, set for entries that use the least loaded nodes first.
    chosen, given : (n,) int64
        Selected nodes, and cores of each of them.
    spare, sets, sizes : (4, n), (n + 1, 4), (c + 1,) int64
        Workspace for nodes, for sets of nodes, and by number of cores, at most c per node.
    """

    mask: IntArray
    kept: IntArray
    usable: IntArray
    chosen: IntArray
    given: IntArray
    clear: IntArray
    idle: IntArray
    spare: IntArray
    sets: IntArray
    sizes: IntArray


_AMONG, _LEFT, _INSIDE, _OTHERS = range(4)
"""Rows of `Trial.spare`: available cores on nodes of one kind; the remaining ones; those on some or other nodes."""


def trial_on(cores: IntArray) -> Trial:
    """Return a workspace for nodes with these *cores*, (n,).

    It is made once, since loops that create arrays take twice as long to compile.
    """
    n = len(cores)
    mask, kept, usable, chosen, given, idle = np.zeros((6, n), np.int64)
    clear, sets = np.zeros(-(-n // WORD), np.int64), np.zeros((n + 1, 4), np.int64)
    sizes = np.zeros(int(cores.max(initial=0)) + 1, np.int64)
    return Trial(mask, kept, usable, chosen, given, clear, idle, np.zeros((4, n), np.int64), sets, sizes)


@njit_noalloc
def usable_cores(cores, whole_memory, free, memory, gpus, jobs, capped, need):  # type: ignore[no-untyped-def]
    """Return the cores of a node that an entry could get, given its free capacity.

    At most *capped*, the free cores for its partition; this also limits entries with exclusive nodes.
    """
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
    free = min(free, capped)
    if need.most > 0:
        free = min(free, need.most)
    if need.unit > 1:
        free -= free % need.unit
    return max(free, 0)


@njit_noalloc
def select(entry, trial, demands, machine, state):  # type: ignore[no-untyped-def]
    """Select nodes and cores for an entry; return the number of nodes, 0 if it does not fit.

    *state* is the free capacity of the nodes, now or later; the result is in the trial.
    """
    need = need_of(entry, demands)
    total, nodes = usable_by_node(need, trial, machine, state)
    if total < demands.cores[entry] or nodes < demands.nodes[entry]:
        return 0
    return choose(entry, need, trial, demands, machine)


def spread(
    entry: int, wanted: int, trial: Trial, demands: Demands, machine: NodeColumns, most: IntArray | int = ANY
) -> int:
    """Select any nodes with *wanted* free cores, those of the entry's partition first; return their number, 0 if none.

    A log does not contain the nodes of its jobs, so other jobs may hold the nodes of a recorded start. Where the nodes
    are known, *most* are the cores of each.
    """
    trial.mask[:], trial.kept[:] = most, 0
    open_to_others = {"unit": 1, "most": 0, "cap": 0, "exclusive": False}
    need = need_of(entry, demands)._replace(**open_to_others, low=0, high=len(trial.mask))
    if usable_by_node(need, trial, machine, machine.now)[0] < wanted:
        return 0
    demands["exclusive"][entry] = 0
    nodes = np.argsort(machine.member[demands["group"][entry]] == 0, kind="stable")
    usable = trial.usable[nodes]
    given = np.minimum(usable, np.maximum(wanted - np.cumsum(usable) + usable, 0))
    used = int(np.count_nonzero(given))
    trial.chosen[:used], trial.given[:used] = nodes[given > 0], given[given > 0]
    return used


@njit_noalloc
def capped(node, state, need):  # type: ignore[no-untyped-def]
    """Return the free cores of a node for an entry's partition, `ANY` without such a limit."""
    return state[need.cap, node] if need.cap > 0 else ANY


@njit_noalloc
def choose(entry, each, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Select nodes like `select`, where the trial has the available cores of each node and their sum suffices.

    If the entry fits, the available cores are used up; otherwise they are unchanged.
    """
    group = demands.group[entry]
    begin, end, used = machine.first[group], machine.first[group + 1], 0
    if begin == end:
        used = _of_any(entry, each, trial.usable, trial, demands, machine)
    while begin < end and used == 0:  # alternatives, of which the entry uses one
        last = begin + 1
        while last < end and machine.wanted[last] > 0:
            last += 1
        usable = trial.spare[_AMONG]
        total, nodes = _among(trial.usable, machine.among[begin], usable)
        if total >= demands.cores[entry] and nodes >= demands.nodes[entry]:
            if last == begin + 1:
                used = _of_any(entry, each, usable, trial, demands, machine)
            else:
                used = _of_each(entry, each, begin + 1, last, usable, trial, demands, machine)
        begin = last
    if each.exclusive:
        for place in range(used):
            trial.given[place] = machine.cores[trial.chosen[place]]
    return used


@njit_noalloc
def _among(usable, member, found):  # type: ignore[no-untyped-def]
    """Copy the available cores of some nodes into *found*; return their sum, and the number of nodes with any."""
    total, nodes = 0, 0
    for node in range(len(usable)):
        found[node] = usable[node] if member[node] else 0
        total += found[node]
        nodes += 1 if found[node] > 0 else 0
    return total, nodes


@njit_noalloc
def _of_any(entry, each, usable, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Select nodes and cores if any nodes with available cores can be used."""
    need, least, highest = demands.cores[entry], demands.nodes[entry], demands.most_nodes[entry]
    low, high = each.low, each.high
    usable, idle, weight = usable[low:high], trial.idle[low:high], machine.weight[low:high]
    used = 0
    if least == 0:
        left = usable
        if highest > 0:
            left = trial.spare[_LEFT][: high - low]
            _copy(usable, left)
        if each.spread:
            used = _least_loaded(need, left, idle, weight, trial.chosen, trial.given)
        else:
            used = _as_few_nodes_as_it_takes(need, left, weight, trial)
    if least > 0 or 0 < highest < used:
        used = _some_nodes(need, max(least, 1), max(highest, least), each, usable, idle, weight, trial)
    for place in range(used):
        trial.chosen[place] += low
    return used


@njit_noalloc
def _copy(usable, found):  # type: ignore[no-untyped-def]
    for node in range(len(usable)):
        found[node] = usable[node]


@njit_noalloc
def _of_each(entry, each, begin, end, usable, trial, demands, machine):  # type: ignore[no-untyped-def]
    """Select the required number of nodes of each kind, and others; as `_some_nodes` if a range is requested.

    Without a requested number, the fewest that suffice.
    """
    need, least, highest = (
        demands.cores[entry],
        demands.nodes[entry],
        max(demands.most_nodes[entry], demands.nodes[entry]),
    )
    if demands.widens[entry]:
        highest = demands.most_nodes[entry] if demands.most_nodes[entry] > 0 else len(usable)
    available = 0
    for node in range(len(usable)):
        available += 1 if usable[node] > 0 else 0
    highest = min(highest, available, max(need // each.unit, least))
    for step in range(highest - least + 1):
        nodes = least + step if demands.widens[entry] else highest - step
        if _widest(nodes, usable, trial.sizes) >= need:
            for widest in range(2):
                if _so_many_of_each(need, nodes, begin, end, widest > 0, each, usable, trial, machine):
                    _share_out(need, nodes, each.unit, usable, trial.chosen, trial.given)
                    return nodes
    return 0


@njit_noalloc
def _so_many_of_each(need, nodes, begin, end, widest, each, usable, trial, machine):  # type: ignore[no-untyped-def]
    """Select this number of nodes, first those required of each kind; return whether they hold the entry.

    Selects the first ones, or with *widest* those with the most available cores.
    """
    left, inside, chosen, used = trial.spare[_LEFT], trial.spare[_INSIDE], trial.chosen, 0
    _copy(usable, left)
    for row in range(begin, end + 1):
        wanted = machine.wanted[row] if row < end else nodes - used
        for common in range(2):
            some = min(wanted, _left_for(row, end, common > 0, left, inside, machine))
            if some > 0 and widest:
                _take_widest(some, used, inside, trial.sizes, chosen)
            elif some > 0:
                _pick(some, used, each.spread, inside, trial.idle, machine.weight, trial)
            for place in range(used, used + some):
                left[chosen[place]] = 0
            used += some
            wanted -= some
        if wanted > 0:
            return False
    total = 0
    for place in range(used):
        total += usable[chosen[place]]
    return total >= need


@njit_noalloc
def _left_for(row, end, common, left, inside, machine):  # type: ignore[no-untyped-def]
    """Copy the remaining cores on nodes of a kind into *inside*; return the number of these nodes.

    Unless *common*, only nodes that no later kind requests.
    """
    found = 0
    for node in range(len(left)):
        inside[node] = left[node]
        if row < end and not machine.among[row, node]:
            inside[node] = 0
        for later in range(row + 1, end):
            if not common and machine.among[later, node]:
                inside[node] = 0
        found += 1 if inside[node] > 0 else 0
    return found


@njit_noalloc
def _share_out(need, nodes, unit, usable, chosen, given):  # type: ignore[no-untyped-def]
    """Allocate all cores of the first node, except a task for each of the others, and so on."""
    wanted = need
    for place in range(nodes):
        others = (nodes - 1 - place) * unit
        given[place] = max(min(usable[chosen[place]], wanted - others), min(unit, wanted))
        wanted -= given[place]


@njit_noalloc
def usable_by_node(need, trial, machine, state):  # type: ignore[no-untyped-def]
    """Set the available cores of each node for an entry; return their sum, and the number of nodes with any."""
    mask, kept, usable = trial.mask, trial.kept, trial.usable
    total, nodes = 0, 0
    if need.spread:
        for node in range(need.low, need.high):
            trial.idle[node] = state[FREE, node]
    plain = need.memory == 0 and need.core_memory == 0 and need.gpus == 0
    plain = plain and not need.exclusive and need.unit <= 1 and need.most == 0 and need.cap == 0
    free = state[FREE]
    for node in range(need.low, need.high):
        usable[node] = 0
        if plain:
            usable[node] = max(min(free[node] - kept[node], mask[node]), 0)
        elif mask[node] > 0:
            left = min(free[node] - kept[node], mask[node])
            usable[node] = usable_cores(
                machine.cores[node],
                machine.memory[node],
                left,
                state[MEMORY, node] if len(state) > MEMORY else 0,
                state[GPUS, node] if len(state) > GPUS else 0,
                state[JOBS, node],
                capped(node, state, need),
                need,
            )
        total += usable[node]
        nodes += 1 if usable[node] > 0 else 0
    return total, nodes


@njit_noalloc
def _as_few_nodes_as_it_takes(need, usable, weight, trial):  # type: ignore[no-untyped-def]
    """Select nodes for *need* cores in total; `usable` suffices, and is used up."""
    chosen, given, sets = trial.chosen, trial.given, trial.sets
    used, wanted, level = 0, need, 0
    _find_sets(False, usable, weight, sets)
    while wanted > 0:
        begin, end = _best_set(wanted, level, sets)
        if begin < 0:
            level += 1
            continue
        best = -1
        for node in range(begin, end):  # the node that holds all of it and has the fewest cores
            if usable[node] >= wanted and (best < 0 or usable[node] < usable[best]):
                best = node
        if best >= 0:
            begin, end = best, best + 1
        for node in range(begin, end):
            if wanted <= 0:
                break
            chosen[used], given[used] = node, min(wanted, usable[node])
            wanted -= given[used]
            usable[node] = 0
            used += 1
    return used


@njit_noalloc
def _some_nodes(need, least, highest, each, usable, idle, weight, trial):  # type: ignore[no-untyped-def]
    """Select the largest feasible number of nodes in a range, and cores of each; 0 if they have too few cores."""
    available = 0
    for node in range(len(usable)):
        if usable[node] > 0:
            available += 1
    for nodes in range(min(highest, available, max(need // each.unit, least)), least - 1, -1):
        if _widest(nodes, usable, trial.sizes) >= need:
            return _so_many_nodes(need, nodes, each, usable, idle, weight, trial)
    return 0


@njit_noalloc
def _so_many_nodes(need, nodes, each, usable, idle, weight, trial):  # type: ignore[no-untyped-def]
    count, chosen, sizes = len(usable), trial.chosen, trial.sizes
    left, allowed = trial.spare[_LEFT][:count], trial.spare[_OTHERS][:count]
    _keep_light(usable, weight, _level(need, nodes, usable, weight, left, sizes), left)
    least = need - _widest(nodes - 1, left, sizes)  # a node with fewer cores cannot be part of a solution
    for node in range(count):
        if left[node] < least:
            left[node] = 0
        allowed[node] = left[node]
    _pick(nodes, 0, each.spread, left, idle, weight, trial)
    sum_of = 0
    for place in range(nodes):
        sum_of += usable[chosen[place]]
    if sum_of < need:  # use those with the most available cores, in node order
        _take_widest(nodes, 0, allowed, sizes, chosen)
    _share_out(need, nodes, each.unit, usable, chosen, trial.given)
    return nodes


@njit_noalloc
def _pick(nodes, at, spread, left, idle, weight, trial):  # type: ignore[no-untyped-def]
    """Select nodes into *chosen* from a place on: the best sets of a weight, or the least loaded.

    Enough nodes have available cores; *left* is used up.
    """
    chosen, sets, used, level = trial.chosen, trial.sets, at, 0
    _find_sets(True, left, weight, sets)
    while used < at + nodes:
        if spread:
            chosen[used] = _idlest(left, idle, weight)
            left[chosen[used]] = 0
            used += 1
            continue
        begin, end = _best_set(at + nodes - used, level, sets)
        if begin < 0:
            level += 1
            continue
        for node in range(begin, end):
            if used == at + nodes:
                break
            chosen[used] = node
            left[node] = 0
            used += 1


@njit_noalloc
def _idlest(usable, idle, weight):  # type: ignore[no-untyped-def]
    """Return the node with available cores and the lowest weight that has the most idle cores, the first if equal."""
    best = -1
    for node in range(len(usable)):
        if usable[node] > 0 and (
            best < 0 or weight[node] < weight[best] or (weight[node] == weight[best] and idle[node] > idle[best])
        ):
            best = node
    return best


@njit_noalloc
def _least_loaded(need, usable, idle, weight, chosen, given):  # type: ignore[no-untyped-def]
    """Select nodes for *need* cores, the least loaded first; `usable` suffices, and is used up."""
    used, wanted = 0, need
    while wanted > 0:
        node = _idlest(usable, idle, weight)
        chosen[used], given[used] = node, min(wanted, usable[node])
        wanted -= given[used]
        usable[node] = 0
        used += 1
    return used


@njit_noalloc
def _count_sizes(usable, sizes):  # type: ignore[no-untyped-def]
    """Count the nodes by available cores; return the most cores of one.

    Sorting would take as long to compile as everything else.
    """
    highest = 0
    for node in range(len(usable)):
        highest = max(highest, usable[node])
    for size in range(highest + 1):
        sizes[size] = 0
    for node in range(len(usable)):
        sizes[usable[node]] += 1
    return highest


@njit_noalloc
def _widest(nodes, usable, sizes):  # type: ignore[no-untyped-def]
    """Return the sum of the cores of the *nodes* nodes with the most available cores."""
    highest, many = 0, 0
    for node in range(len(usable)):
        if usable[node] > highest:
            highest, many = usable[node], 1
        elif usable[node] == highest:
            many += 1
    if many >= nodes:  # common on empty nodes
        return nodes * highest
    _count_sizes(usable, sizes)
    total, left = 0, nodes
    for size in range(highest, 0, -1):
        here = min(sizes[size], left)
        total += here * size
        left -= here
    return total


@njit_noalloc
def _take_widest(nodes, at, usable, sizes, chosen):  # type: ignore[no-untyped-def]
    """Select the nodes with the most available cores, in node order, from a place on; of equal ones the first."""
    least, left = _count_sizes(usable, sizes), nodes
    while least > 1 and sizes[least] < left:
        left -= sizes[least]
        least -= 1
    used = at
    for node in range(len(usable)):
        if usable[node] > least or (usable[node] == least and left > 0):
            left -= 1 if usable[node] == least else 0
            chosen[used] = node
            used += 1


@njit_noalloc
def _level(need, nodes, usable, weight, within, sizes):  # type: ignore[no-untyped-def]
    """Return the lowest weight up to which this number of nodes suffices."""
    count, heaviest = len(usable), 0
    for node in range(count):
        if usable[node] > 0:
            heaviest = max(heaviest, weight[node])
    level = 0
    while level < heaviest:
        total, found = 0, 0
        for node in range(count):
            if weight[node] <= level and usable[node] > 0:
                total += usable[node]
                found += 1
        if found >= nodes and total >= need:
            _keep_light(usable, weight, level, within)
            if _widest(nodes, within, sizes) >= need:
                break
        level += 1
    return level


@njit_noalloc
def _keep_light(usable, weight, level, found):  # type: ignore[no-untyped-def]
    """Copy the available cores of nodes up to a weight into *found*."""
    for node in range(len(usable)):
        found[node] = usable[node] if weight[node] <= level else 0


@njit_noalloc
def _find_sets(count_nodes, usable, weight, sets):  # type: ignore[no-untyped-def]
    """Find sets of consecutive available nodes of equal weight: begin, end, number of nodes or cores, weight."""
    count, found, node = len(usable), 0, 0
    while node < count:
        if usable[node] <= 0:
            node += 1
            continue
        first, size, level = node, 0, weight[node]
        while node < count and usable[node] > 0 and weight[node] == level:
            size += 1 if count_nodes else usable[node]
            node += 1
        sets[found, 0], sets[found, 1], sets[found, 2], sets[found, 3] = first, node, size, level
        found += 1
    sets[found, 0] = -1


@njit_noalloc
def _best_set(wanted, level, sets):  # type: ignore[no-untyped-def]
    """Return the smallest set of a weight that holds *wanted*, or else the largest, and mark it used; -1 for none."""
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


@njit_noalloc
def memory_on(entry, node, cores, demands, machine):  # type: ignore[no-untyped-def]
    """Return the MiB of a node that an entry holds with this number of cores."""
    if demands.memory[entry] < 0:
        return machine.memory[node]
    return demands.memory[entry] + demands.core_memory[entry] * cores


@njit_noalloc
def copy_state(state, into):  # type: ignore[no-untyped-def]
    """Copy the free capacity of nodes into another array."""
    for row in range(state.shape[0]):
        for node in range(state.shape[1]):
            into[row, node] = state[row, node]


@njit_noalloc
def move(entry, sign, nodes, cores, demands, machine, state):  # type: ignore[no-untyped-def]
    """Release the resources of an entry (*sign* 1), or allocate them (-1)."""
    for place in range(len(nodes)):
        node = nodes[place]
        state[FREE, node] += sign * cores[place]
        state[JOBS, node] -= sign
        if len(state) > MEMORY:
            state[MEMORY, node] += sign * memory_on(entry, node, cores[place], demands, machine)
        if len(state) > GPUS:
            state[GPUS, node] += sign * (machine.gpus[node] if demands.exclusive[entry] else demands.gpus[entry])
        if demands.cap[entry] > 0:
            state[demands.cap[entry], node] += sign * cores[place]
