"""Selection of nodes and cores for an entry.

Sources: topology.html (best fit on sets of consecutive nodes), cons_tres.html, cpu_management.html (block allocation),
slurm.conf(5), ``Weight``, ``OverSubscribe``, ``MaxCPUsPerNode``, ``LLN``; sbatch(1), ``--constraint``, ``--nodelist``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gridsim.model.site import Site
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import WHOLE, Entry, Job
from tests.oracles.slurm.node_requests import Kind

__all__ = ["Held", "Pieces", "left_by", "select"]

Pieces = dict[int, int]
"""Cores by index of the node, in order of selection."""


@dataclass(eq=False)
class Held:
    """A running entry with its start, its end by the limit, and its allocation.

    `leaves` is the instant of its preemption, or `NEVER`; `taker` is the job that last preempted it; `seen` is the last
    instant of any event while it ran.
    """

    entry: Entry
    began: int
    expected: int
    pieces: Pieces
    leaves: int = NEVER
    taker: Job | None = None
    seen: int = 0

    @property
    def nodes(self) -> set[int]:
        return set(self.pieces)


@dataclass
class Left:
    """Free capacity of a node and the entries that run on it."""

    cores: int
    memory: int
    gpus: int
    holders: list[Held] = field(default_factory=list)


def left_by(site: Site, running: Iterable[Held]) -> list[Left]:
    """Return the free capacity of the nodes, given the running entries."""
    left = [Left(node.cores, node.memory, node.gpus) for node in site.nodes]
    for held in running:
        for node, cores in held.pieces.items():
            whole, entry = site.nodes[node], held.entry
            left[node].cores -= cores
            left[node].memory -= entry.memory_on(whole.memory, cores)
            left[node].gpus -= whole.gpus if entry.exclusive else entry.gpus
            left[node].holders.append(held)
    return left


def _room(entry: Entry, site: Site, node: int, left: Left, most: int, kept: int) -> int:
    """Return the cores of a node for an entry, where *kept* are reserved and *most* is its limit."""
    whole, cores = site.nodes[node], min(left.cores - kept, most)
    memory = whole.memory if entry.node_memory == WHOLE else entry.node_memory
    if most <= 0 or left.gpus < entry.gpus or left.memory < memory:
        return 0
    if entry.exclusive:
        if left.holders or cores < whole.cores or left.memory < entry.core_memory * whole.cores:
            return 0
    elif entry.core_memory:
        cores = min(cores, left.memory // entry.core_memory)
    if entry.partition.node_cores:
        alike = [held for held in left.holders if held.entry.partition.name == entry.partition.name]
        cores = min(cores, entry.partition.node_cores - sum(held.pieces[node] for held in alike))
    if entry.most_on_node:
        cores = min(cores, entry.most_on_node)
    return max(cores - cores % entry.task, 0)


def select(entry: Entry, site: Site, left: list[Left], most: list[int], kept: list[int]) -> Pieces | None:
    """Return nodes and cores for an entry, or None if it does not fit.

    *most* are the cores of each node that the entry may use; *kept* are cores reserved for others.
    """
    room = {
        node: cores
        for node in range(len(site.nodes))
        if (cores := _room(entry, site, node, left[node], most[node], kept[node])) > 0
    }
    idle = {node: left[node].cores for node in room} if entry.spread else {}
    for kind in entry.kinds:
        inside = {node: cores for node, cores in room.items() if node in kind.nodes}
        if sum(inside.values()) < entry.cores or len(inside) < entry.nodes:
            continue
        pieces = _of_each(entry, site, inside, idle, kind) if kind.counts else _of_any(entry, site, inside, idle)
        if pieces is not None:
            return {node: site.nodes[node].cores for node in pieces} if entry.exclusive else pieces
    return None


def _of_any(entry: Entry, site: Site, room: Pieces, idle: Pieces) -> Pieces | None:
    """Return nodes and cores for an entry without counted kinds of nodes."""
    if entry.nodes:
        return _some_nodes(entry, site, room, idle, entry.nodes, max(entry.most_nodes, entry.nodes))
    if entry.spread:
        pieces, wanted = {}, entry.cores
        for node in _least_loaded(room, site, idle):
            if wanted:
                pieces[node] = min(wanted, room[node])
                wanted -= pieces[node]
    else:
        pieces = _as_few_as_it_takes(entry.cores, site, room)
    if entry.most_nodes and len(pieces) > entry.most_nodes:
        return _some_nodes(entry, site, room, idle, 1, entry.most_nodes)
    return pieces


def _of_each(entry: Entry, site: Site, room: Pieces, idle: Pieces, kind: Kind) -> Pieces | None:
    """Return the requested nodes of each kind and others: as many as allowed, or as few as needed if it widens."""
    most = max(entry.most_nodes, entry.nodes)
    if entry.widens:
        most = entry.most_nodes or len(site.nodes)
    counts = range(entry.nodes, min(most, len(room), max(entry.cores // entry.task, entry.nodes)) + 1)
    for count in counts if entry.widens else reversed(counts):
        for widest in (False, True):
            chosen: list[int] = []
            for row, (nodes, many) in enumerate([*kind.counts, (kind.nodes, count - kind.fewest)]):
                later = set[int]().union(*(others for others, _ in kind.counts[row + 1 :]))
                left = {node: cores for node, cores in room.items() if node in nodes and node not in chosen}
                if len(left) < many:
                    break
                for some in ({node: left[node] for node in left if node not in later}, left):
                    free = {node: cores for node, cores in some.items() if node not in chosen}
                    take = min(many, len(free))
                    chosen += _widest_nodes(take, free) if widest else _first_nodes(take, free, site, idle, entry)
                    many -= take
            else:
                if sum(room[node] for node in chosen) >= entry.cores:
                    return _shared_out(entry, room, chosen)
    return None


def _least_loaded(room: Pieces, site: Site, idle: Pieces) -> list[int]:
    """Return nodes sorted by lowest weight, then by most idle cores."""
    return sorted(room, key=lambda node: (site.nodes[node].weight, -idle[node], node))


def _widest_nodes(count: int, room: Pieces) -> list[int]:
    """Return the nodes with most free cores, in node order."""
    return sorted(sorted(room, key=lambda node: (-room[node], node))[:count])


def _first_nodes(count: int, room: Pieces, site: Site, idle: Pieces, entry: Entry) -> list[int]:
    """Return the best sets of nodes by number of nodes, lowest weight first; or the least loaded nodes."""
    if entry.spread:
        return _least_loaded(room, site, idle)[:count]
    chosen: list[int] = []
    for weight in _weights(room, site):
        while len(chosen) < count:
            sets = _sets({node: room[node] for node in room if node not in chosen}, site, weight)
            if not sets:
                break
            best = _best(sets, [len(each) for each in sets], count - len(chosen))
            chosen += best[: count - len(chosen)]
    return chosen


def _shared_out(entry: Entry, room: Pieces, chosen: list[int]) -> Pieces:
    """Return all cores of the first node, less one task for each of the others, and so on."""
    pieces, wanted = {}, entry.cores
    for place, node in enumerate(chosen):
        for_others = (len(chosen) - 1 - place) * entry.task
        pieces[node] = max(min(room[node], wanted - for_others), min(entry.task, wanted))
        wanted -= pieces[node]
    return pieces


def _sets(room: Pieces, site: Site, weight: int) -> list[list[int]]:
    """Return sets of consecutive nodes of a weight with free cores."""
    sets: list[list[int]] = []
    for node in sorted(room):
        if site.nodes[node].weight == weight:
            if sets and sets[-1][-1] == node - 1:
                sets[-1].append(node)
            else:
                sets.append([node])
    return sets


def _best(sets: list[list[int]], sizes: list[int], wanted: int) -> list[int]:
    """Return the smallest sufficient set, else the largest; the first of equal ones."""
    enough = [size for size in sizes if size >= wanted]
    return sets[sizes.index(min(enough) if enough else max(sizes))]


def _weights(room: Pieces, site: Site) -> list[int]:
    return sorted({site.nodes[node].weight for node in room})


def _as_few_as_it_takes(wanted: int, site: Site, room: Pieces) -> Pieces:
    """Return nodes by lowest weight; in the best set, the smallest node that suffices, else the first ones."""
    room, pieces = dict(room), {}
    for weight in _weights(room, site):
        while wanted and (sets := _sets(room, site, weight)):
            best = _best(sets, [sum(room[node] for node in each) for each in sets], wanted)
            alone = [node for node in best if room[node] >= wanted]
            for node in [min(alone, key=lambda node: room[node])] if alone else best:
                if wanted:
                    pieces[node] = min(wanted, room.pop(node))
                    wanted -= pieces[node]
    return pieces


def _widest(count: int, room: Pieces) -> int:
    """Return the cores of this number of nodes with most free cores."""
    return sum(sorted(room.values(), reverse=True)[:count])


def _some_nodes(entry: Entry, site: Site, room: Pieces, idle: Pieces, fewest: int, most: int) -> Pieces | None:
    """Return as many nodes of a range as possible, with at least one task on each."""
    for count in range(min(most, len(room), max(entry.cores // entry.task, fewest)), fewest - 1, -1):
        if _widest(count, room) >= entry.cores:
            return _so_many_nodes(entry, site, room, idle, count)
    return None


def _so_many_nodes(entry: Entry, site: Site, room: Pieces, idle: Pieces, count: int) -> Pieces:
    """Return the first nodes, or those with most free cores if the first have too few."""
    need = entry.cores
    for weight in _weights(room, site):  # the lowest weights that suffice
        light = {node: cores for node, cores in room.items() if site.nodes[node].weight <= weight}
        if len(light) >= count and _widest(count, light) >= need:
            break
    least = need - _widest(count - 1, light)  # smallest number of cores on a node, whatever the others provide
    light = {node: cores for node, cores in light.items() if cores >= least}
    chosen = _first_nodes(count, light, site, idle, entry)
    if sum(room[node] for node in chosen) < need:
        chosen = _widest_nodes(count, light)
    return _shared_out(entry, room, chosen)
