"""Invariants of allocations with respect to requests for nodes and pools, checked on columns without simulation.

They apply to any scheduler. `gridsim.testing.allocation_checks` checks that
resources are not held twice, and that pieces of a run have exactly its start and end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.demand import NO_LIMIT, Demand, Demands, WordSets
from gridsim.model.time import IntArray
from gridsim.testing.allocation_checks import Runs, oversubscribed, undisturbed
from gridsim.testing.violation import Violation, marked

Mask = npt.NDArray[np.bool_]


def reasons(demands: Demands, rows: IntArray, capacity: Capacity) -> npt.NDArray[np.object_]:
    """Return why the empty machine cannot hold the demands of some rows, empty if it can (section 4.5)."""
    asked = demands.select(rows)
    counts = (asked.plain, asked.tasks, asked.gpu, asked.min_nodes, asked.max_nodes, asked.tasks_per_node)
    words = (asked.features.of, asked.partitions.of, asked.gpu_kinds.of, asked.exclusive)
    columns = np.stack([*counts, *words, *asked.each.values(), *asked.pools.values()], axis=1)
    _, first, same = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    found = np.array([_reason(asked[row], capacity) for row in first.tolist()], dtype=object)
    return found[same.reshape(-1)]


def _reason(demand: Demand, capacity: Capacity) -> str:
    """Return the first reason why the empty machine cannot hold a demand (section 4.5); empty if it can."""
    tasks, each, pools, count = demand.tasks, demand.each, dict(demand.pools), len(capacity.nodes)
    if demand.cores and count:
        tasks, each = demand.cores, {"cores": 1}
    elif demand.cores:
        pools["cores"] = pools.get("cores", 0) + demand.cores
    for name in sorted(pools):
        if pools[name] > capacity.pools.get(name, 0):
            return f"pool:{name}"
    if tasks == 0:
        return ""
    wanted, parts, gpus = set(demand.features), set(demand.partitions), capacity.gpus
    features, partitions = (words or ((),) * count for words in (capacity.features, capacity.partitions))
    hosts: Mask = np.array([wanted <= set(has) for has in features], dtype=np.bool_)
    hosts &= [not parts or not parts.isdisjoint(has) for has in partitions]
    if not hosts.any():
        return "features"
    most: IntArray = np.full(count, tasks)
    if demand.gpu:
        kinds = capacity.gpu_kind or (GPU,) * count
        hosts &= (gpus > 0) & [not demand.gpu_kinds or kind in demand.gpu_kinds for kind in kinds]
        on_gpus = gpus // (demand.gpu // WHOLE_GPU) if demand.gpu >= WHOLE_GPU else gpus * (WHOLE_GPU // demand.gpu)
        most = np.minimum(most, on_gpus)
    if not hosts.any():
        return "gpu-kind"
    for name, amount in each.items():
        if amount:
            most = np.minimum(most, capacity.amounts[name] // amount if name in capacity.amounts else 0)
    most = np.where(hosts, most, 0)
    if not most.any():
        return "task"
    if most.sum() < tasks:
        return "tasks"
    most = np.sort(np.minimum(most, demand.tasks_per_node or tasks))[::-1]
    fits = most[: demand.max_nodes or tasks].sum() >= tasks and np.count_nonzero(most) >= demand.min_nodes
    return "" if fits else "nodes"


def of_sizes(demands: Demands, cores: IntArray) -> Demands:
    """Return the demands of jobs with other sizes than requested: as many tasks as cores (section 4.6).

    Parameters
    ----------
    cores : (n,) int64
        Cores allocated to each job.
    """
    none = np.zeros(len(demands), dtype=np.int64)
    each, pooled = demands.each.get("cores", none), demands.pools.get("cores", none)
    other = (cores != demands.cores) & (each > 0) & (pooled == 0)
    tasks: IntArray = np.where(other, cores // np.maximum(each, 1), demands.tasks)
    return replace(demands, tasks=tasks, plain=np.where(demands.plain > 0, cores, 0))


def over_pools(
    demands: Demands, runs: Runs, rows: IntArray, capacity: Capacity, tolerance: int, limit: int
) -> Iterator[Violation]:
    """Yield violations of pools with larger use than capacity.

    Parameters
    ----------
    rows : (k,) int64
        Row of *demands* of each run.
    """
    names = sorted(capacity.pools)
    if not names:
        return
    amounts = [demands.pools.get(name, np.zeros(len(demands), dtype=np.int64))[rows] for name in names]
    if not capacity.nodes and "cores" in capacity.pools:
        amounts[names.index("cores")] = amounts[names.index("cores")] + demands.plain[rows]
    job, start, end = (np.tile(column, len(names)) for column in (runs.job, runs.start, runs.end))
    key = np.repeat(np.arange(len(names)), len(rows))
    sizes = np.array([capacity.pools[name] for name in names], dtype=np.int64)
    held = (job, start, end)
    yield from oversubscribed("pool-oversubscribed", held, key, np.concatenate(amounts), sizes, names, tolerance, limit)


def misplaced_tasks(
    held: Allocations, rows: IntArray, demands: Demands, capacity: Capacity, limit: int
) -> Iterator[Violation]:
    """Yield violations of tasks on ineligible nodes, or with other amounts than requested.

    Parameters
    ----------
    held : Allocations
        Pieces, with job numbers instead of rows.
    rows : (k,) int64
        Row of *demands* of each piece; -1 for those of unknown jobs.
    demands : Demands
        Requests of jobs.
    capacity : Capacity
        Nodes of the machine.
    limit : int
        Largest number of listed jobs of each kind.
    """
    checks = _Checks(held, rows, demands, capacity, limit)
    yield from checks.counts()
    yield from checks.hosts()
    yield from checks.amounts()
    yield from checks.gpus()
    yield from checks.alone()


class _Checks:
    """Pieces of known jobs on existing nodes as columns; several pieces of a run on a node are combined."""

    def __init__(self, held: Allocations, rows: IntArray, demands: Demands, capacity: Capacity, limit: int) -> None:
        self.held, self.demands, self.capacity, self.limit = held, demands, capacity, limit
        place = {name: number for number, name in enumerate(capacity.nodes)}
        where: IntArray = np.array([*(place.get(name, -1) for name in held.nodes), -1], dtype=np.int64)
        node = where[held.node]
        kept = np.flatnonzero((node >= 0) & (rows >= 0))
        runs = np.stack([rows[kept], held.run[kept]], axis=1).reshape(-1, 2)
        _, run = np.unique(runs, axis=0, return_inverse=True)
        _, first, merged = np.unique(
            np.stack([run.reshape(-1), node[kept]], axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.piece: IntArray = np.full(len(held), -1, dtype=np.int64)
        self.piece[kept] = merged.reshape(-1)
        at = kept[first]
        self.count = len(at)
        self.row, self.run, self.node = rows[at], run.reshape(-1)[first], node[at]
        self.job, self.start, self.end = held.job[at], held.start_us[at], held.end_us[at]
        self.tasks = self.total(held.tasks)
        self.told: Mask = self.total((held.tasks < 0).astype(np.int64)) == 0

    def total(self, column: IntArray) -> IntArray:
        """Return the sum of a column over combined pieces."""
        found: IntArray = np.zeros(self.count, dtype=np.int64)
        known = self.piece >= 0
        np.add.at(found, self.piece[known], column[known])
        return found

    @cached_property
    def undisturbed(self) -> Mask:
        """Which pieces have their node exclusively from start to end."""
        return undisturbed(self.node, self.start, self.end)

    def found(self, kind: str, bad: Mask, detail: Callable[[int], str] | None = None) -> Iterator[Violation]:
        """Yield the violation of the pieces in *bad*, if there are any."""
        return marked(kind, bad, self.job, self.start, self.limit, detail)

    def counts(self) -> Iterator[Violation]:
        """Check that tasks of each run add up, on an allowed number of nodes, with the allowed number per node."""
        demands, row = self.demands, self.row
        wanted = np.where(demands.tasks > 0, demands.tasks, demands.plain)
        runs = int(self.run.max(initial=-1)) + 1
        nodes = np.bincount(self.run, minlength=runs)
        tasks: IntArray = np.zeros(runs, dtype=np.int64)
        np.add.at(tasks, self.run, self.tasks)
        told = np.bincount(self.run[~self.told], minlength=runs) == 0
        most = np.where(demands.max_nodes == NO_LIMIT, wanted, np.minimum(demands.max_nodes, wanted))[row]
        each = np.where(demands.tasks_per_node == NO_LIMIT, wanted, demands.tasks_per_node)[row]
        few = told[self.run] & (tasks[self.run] != wanted[row])
        apart = (nodes[self.run] < demands.min_nodes[row]) | (nodes[self.run] > most)
        crowded = self.told & ((self.tasks > each) | (self.tasks < 1))

        def detail(at: int) -> str:
            run, of = int(self.run[at]), int(row[at])
            if few[at]:
                return f"{tasks[run]} of {wanted[of]} tasks"
            if apart[at]:
                return f"on {nodes[run]} nodes instead of {demands.min_nodes[of]} to {most[at]}"
            return f"{self.tasks[at]} tasks on node {self.capacity.nodes[self.node[at]]} instead of at most {each[at]}"

        yield from self.found("wrong-tasks", few | apart | crowded, detail)

    def hosts(self) -> Iterator[Violation]:
        """Check that nodes have the requested features, partition and type of GPU."""
        capacity, demands = self.capacity, self.demands
        kinds = tuple((kind,) for kind in capacity.gpu_kind)
        featured = self._matches(demands.features, capacity.features, lambda wanted, has: wanted <= has)
        parted = self._matches(demands.partitions, capacity.partitions, _meet)
        kind = self._matches(demands.gpu_kinds, kinds, _meet) | (demands.gpu[self.row] == 0)

        def detail(at: int) -> str:
            row, node = int(self.row[at]), int(self.node[at])
            asked: tuple[str, ...] = demands.gpu_kinds[row]
            has: tuple[str, ...] = kinds[node] if kinds else ()
            word = "GPUs"
            if not featured[at]:
                asked, has, word = demands.features[row], capacity.features[node], "features"
            elif not parted[at]:
                asked, has, word = demands.partitions[row], capacity.partitions[node], "partitions"
            return f"requested {word} {', '.join(asked)}; node {capacity.nodes[node]} has {', '.join(has) or 'none'}"

        yield from self.found("wrong-node", ~(featured & parted & kind), detail)

    def _matches(
        self,
        words: WordSets,
        nodes: tuple[tuple[str, ...], ...],
        agree: Callable[[frozenset[str], frozenset[str]], bool],
    ) -> Mask:
        """Return whether requirement and node agree for each piece; always true if the nodes have no such data."""
        if not nodes:
            return np.ones(self.count, dtype=np.bool_)
        kinds = {has: number for number, has in enumerate(dict.fromkeys(nodes))}
        table = np.array(
            [[not asked or agree(frozenset(asked), frozenset(has)) for has in kinds] for asked in words.sets]
        )
        of_node = np.array([kinds[has] for has in nodes], dtype=np.int64)
        found: Mask = table[words.of[self.row], of_node[self.node]].astype(np.bool_)
        return found

    def amounts(self) -> Iterator[Violation]:
        """Check that held amounts on a node are those that its tasks request; exclusive jobs may hold more."""
        demands, none = self.demands, np.zeros(len(self.demands), dtype=np.int64)
        bad: Mask = np.zeros(self.count, dtype=np.bool_)
        told: dict[int, str] = {}
        for name, column in self.held.amounts.items():
            each = demands.each.get(name, none)
            each = np.where((demands.tasks == 0) & (demands.plain > 0), 1, each) if name == "cores" else each
            found, wanted = self.total(column), self.tasks * each[self.row]
            wrong = self.told & ((found < wanted) | ((found > wanted) & ~self.undisturbed))
            for at in np.flatnonzero(wrong)[:1].tolist():
                node = self.capacity.nodes[self.node[at]]
                told[at] = f"{found[at]} {name} of node {node} allocated instead of {wanted[at]}"
            bad |= wrong
        yield from self.found("wrong-amounts", bad, lambda at: told[at])

    def gpus(self) -> Iterator[Violation]:
        """Check that a share is on one GPU, whole GPUs are held whole, and the total on a node is that of its tasks."""
        held, asked = self.held, self.demands.gpu
        at = self.piece[held.gpu_row]
        at, share = at[at >= 0], held.gpu_share[at >= 0]
        found: IntArray = np.zeros(self.count, dtype=np.int64)
        np.add.at(found, at, share)
        wanted = self.tasks * asked[self.row]
        part = np.maximum(np.minimum(asked, WHOLE_GPU)[self.row[at]], 1)
        broken = np.bincount(at[share % part != 0], minlength=self.count) > 0
        whole = self.demands.exclusive[self.row] & (found == WHOLE_GPU * self.capacity.gpus[self.node])
        wrong = self.told & (((found != wanted) & ~whole) | broken)

        def detail(row: int) -> str:
            node = self.capacity.nodes[self.node[row]]
            if found[row] != wanted[row]:
                return f"{found[row]} thousandths of GPU of node {node} allocated instead of {wanted[row]}"
            shares = ", ".join(map(str, share[at == row]))
            return f"shares of {shares} thousandths on node {node}; tasks request {asked[self.row[row]]} each"

        yield from self.found("wrong-gpus", wrong, detail)

    def alone(self) -> Iterator[Violation]:
        """Check that nodes of an exclusive job hold no other job from its start to its end."""
        yield from self.found("not-alone", self.demands.exclusive[self.row] & ~self.undisturbed)


def _meet(wanted: frozenset[str], has: frozenset[str]) -> bool:
    return bool(wanted & has)
