"""Demands as columns for compiled searches: distinct demands, each with its eligible nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine.feasibility import refusals
from gridsim.machine.moldable_demands import SizeClasses, class_on, classes_of_sizes, fill, sizes_on_nodes
from gridsim.machine.node_profile import ANY_NUMBER, EXCLUSIVE, GPU, HOSTS, TASK, TASKS, Classes
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.demand import NO_LIMIT, Demands
from gridsim.model.time import IntArray


class Columns(NamedTuple):
    """Columns of a machine and of the demands on it, and the machine's amounts.

    Attributes
    ----------
    resources, pools : tuple of str
        Node resources and pools, sorted by name; the machine has 0 of those that only jobs name.
    nodes : (n, r) int64
        Resources of each node.
    gpus : (n,) int64
        Number of GPUs of each node.
    amounts : (p,) int64
        Amount of each pool.
    """

    resources: tuple[str, ...]
    pools: tuple[str, ...]
    nodes: IntArray
    gpus: IntArray
    amounts: IntArray

    @classmethod
    def of(cls, capacity: Capacity, demands: Demands) -> Columns:
        """Return the columns of a machine and of the demands of jobs."""
        named = {name for name, column in demands.each.items() if column.any()}
        asked = {name for name, column in demands.pools.items() if column.any()}
        plain = {"cores"} if demands.plain.any() else set()
        resources = sorted({*capacity.amounts, *named, *(plain if capacity.nodes else ())})
        pools = sorted({*capacity.pools, *asked, *(() if capacity.nodes else plain)})
        count = len(capacity.nodes)
        nodes = [capacity.amounts.get(name, np.zeros(count, dtype=np.int64)) for name in resources]
        return cls(
            tuple(resources),
            tuple(pools),
            np.stack(nodes, axis=1) if nodes else np.zeros((count, 0), dtype=np.int64),
            capacity.gpus,
            np.array([capacity.pools.get(name, 0) for name in pools], dtype=np.int64),
        )


class DemandClasses:
    """Demands of a run's requests on one machine, with the demands that it can never satisfy.

    Parameters
    ----------
    capacity : Capacity
        The machine.
    demands : Demands
        One demand per request.
    known : int, optional
        Number of requests known from the beginning, the first rows; default all. `learn` adds the others.
    sizes : tuple, optional
        For moldable requests: their sizes as arguments of `classes_of_sizes`.

    Attributes
    ----------
    demands : Demands
        Demands known from the beginning.
    columns : Columns
        Resources and amounts of the machine.
    classes : Classes
        Distinct demands.
    reasons : tuple of str
        Why the empty machine cannot hold a demand of each class (spec of machines, 4.5); empty if it can.
    sized : SizeClasses or None
        Classes of other sizes; None if every request has the requested size.
    """

    def __init__(
        self,
        capacity: Capacity,
        demands: Demands,
        known: int | None = None,
        sizes: tuple[Any, ...] | None = None,
    ) -> None:
        self.capacity, self.demands = capacity, demands if known is None else demands.select(slice(known))
        self.sized: SizeClasses | None
        self.sized, others = (None, None) if sizes is None else classes_of_sizes(demands, *sizes)
        every = demands if others is None else demands.joined(others)
        self.columns = Columns.of(capacity, every)
        self.classes, lacks = _classes(every, capacity, self.columns)
        self.reasons: tuple[str, ...] = tuple(self._reasons(lacks))
        self._spare_classes = 0
        self._suspended: dict[int, int] = {}  # classes of the whole demands of suspended requests
        self._made: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}  # their classes by class and place
        if self.sized is not None:
            of = self.classes.of
            self.classes = self.classes._replace(of=of[: len(demands)].copy())
            fill(self.sized, of[: len(demands)], of[len(demands) :], self.reasons)

    def keep_spares(self, spares: IntArray) -> None:
        """Keep nodes free of all requests except those that `allow_spares` names later; before any is placed."""
        (_, each, whole, shape, all_hosts), reasons = self.classes, self.reasons
        hosts, shape = all_hosts.copy(), shape.copy()
        hosts[:, spares] = 0
        shape[:, HOSTS] += len(hosts)
        self.classes = self.classes._replace(hosts=hosts)
        without = self._reasons([""] * len(hosts))
        self.reasons = tuple(why or ("spares" if other else "") for why, other in zip(reasons, without, strict=True))
        self._add((each, whole, shape, all_hosts), *reasons)
        self._spare_classes = len(reasons)

    def allow_spares(self, request: int, allowed: bool = True) -> None:
        """Let a request use the spare nodes from now on, or no longer; it holds nothing."""
        if self._spare_classes:
            self.classes.of[request] = self.classes.of[request] % self._spare_classes + allowed * self._spare_classes

    def allow_suspension(self) -> None:
        """Add a row for what each request keeps while it is suspended: ``n + request``; before any is placed."""
        of = self.classes.of
        self.classes = self.classes._replace(of=np.concatenate((of, of)))

    def can_suspend(self, request: int) -> bool:
        """Return whether a request has cores on nodes, and not the whole nodes."""
        c = self.classes.of[request]
        return bool(self._cores >= 0 and self.classes.each[c, self._cores] and not self.classes.shape[c, EXCLUSIVE])

    def rest(self, request: int, node: IntArray, tasks: IntArray) -> int:
        """Return the row of what a running request keeps at its place while it is suspended: all but its cores."""
        row = len(self.classes.of) // 2 + request
        self.classes.of[row] = self._parts(request, node, tasks)[1]
        return row

    def suspend(self, request: int, node: IntArray, tasks: IntArray) -> None:
        """Let a request need only its cores, and exactly at this place, until `resume`."""
        only = self._parts(request, node, tasks)[0]
        self._suspended[request] = int(self.classes.of[request])
        self.classes.of[request] = only

    def resume(self, request: int) -> None:
        """Let a suspended request need all that it requested."""
        self.classes.of[request] = self._suspended.pop(request)

    @cached_property
    def _cores(self) -> int:
        """Column of the cores; -1 if nodes have none."""
        names = self.columns.resources
        return names.index("cores") if "cores" in names else -1

    def _parts(self, request: int, node: IntArray, tasks: IntArray) -> tuple[int, int]:
        """Return the classes of the cores of a request at a place, and of all else there."""
        c = int(self.classes.of[request])
        key = c, node.tobytes(), tasks.tobytes()
        if key not in self._made:
            classes = self.classes
            hosts, count = np.zeros((1, classes.hosts.shape[1]), dtype=np.int64), len(classes.shape)
            hosts[0, node] = tasks
            each, whole, shape = (np.repeat(part[c : c + 1], 2, axis=0) for part in classes[1:4])
            only = np.arange(each.shape[1]) == self._cores
            each[0, ~only], each[1, only] = 0, 0
            whole[0, : len(only)][~only], whole[0, len(only) :], whole[1, : len(only)][only] = 0, 0, 0
            shape[0, GPU], shape[:, HOSTS] = 0, len(classes.hosts)
            shape[:, TASK] = classes.shape[:, TASK].max() + 1 + np.arange(2)
            self._add((each, whole, shape, hosts), "", "")
            self._made[key] = count, count + 1
        return self._made[key]

    def _add(self, parts: Sequence[IntArray], *reasons: str) -> None:
        """Add classes, given as the columns of `Classes` after the first one."""
        before = self.classes
        self.classes = Classes(before.of, *map(np.concatenate, zip(before[1:], parts, strict=True)))
        self.reasons += reasons
        self.__dict__.pop("_drawn", None)

    def resize(self, request: int, cores: int) -> None:
        """Change the size of a request that holds nothing, if it is moldable."""
        if self.sized is not None:
            self.classes.of[request] = class_on(self.sized, request, cores)

    def never(self) -> npt.NDArray[np.bool_]:
        """Return whether the empty machine can hold none of the sizes of each request; (n,)."""
        if self.sized is not None:
            return np.array([sizes_on_nodes(self.sized, row) == 0 for row in range(len(self.classes.of))])
        return np.array([bool(reason) for reason in self.reasons], dtype=np.bool_)[self.classes.of]

    def learn(self, request: int, demands: Demands) -> None:
        """Add the demand of a request that was submitted during the run; *demands* contains only this one.

        A new demand adds a class, so that `classes` is replaced.
        """
        alone = DemandClasses(self.capacity, demands)  # its features may differ from those in the columns
        made, _ = _classes(demands, self.capacity, self.columns)
        classes, reason = self.classes, alone.reasons[0]
        same = (classes.each == made.each).all(axis=1) & (classes.whole == made.whole).all(axis=1)
        same &= (classes.shape[:, :HOSTS] == made.shape[:, :HOSTS]).all(axis=1)
        same &= (classes.hosts[classes.shape[:, HOSTS]] == made.hosts).all(axis=1)
        same &= np.array([each == reason for each in self.reasons])
        if same.any():
            classes.of[request] = int(np.argmax(same))
            return
        made.shape[0, HOSTS], made.shape[0, TASK] = len(classes.hosts), classes.shape[:, TASK].max(initial=-1) + 1
        classes.of[request] = len(self.reasons)
        self._add(made[1:], reason)

    def _reasons(self, lacks: Sequence[str]) -> Iterator[str]:
        resources, pools = len(self.columns.resources) + 1, self.classes.whole.shape[1]
        short = self.classes.whole[:, resources:pools] > self.columns.amounts
        codes = refusals(tuple(self.classes), self.empty).tolist() if len(self.classes.shape) else []
        for pool, shape, code in zip(short, self.classes.shape.tolist(), codes, strict=True):
            if pool.any():
                yield f"pool:{self.columns.pools[int(np.argmax(pool))]}"
            elif shape[TASKS] and lacks[shape[HOSTS]]:
                yield lacks[shape[HOSTS]]
            else:
                yield _WORDS[code]

    @property
    def empty(self) -> IntArray:
        """Amounts of each empty node: resources, thousandths of each GPU, and 0 holds; (n, k)."""
        columns = self.columns
        most = int(columns.gpus.max(initial=0))
        gpus = np.where(np.arange(most) < columns.gpus[:, None], WHOLE_GPU, 0)
        return np.column_stack([columns.nodes, gpus, np.zeros(len(gpus), dtype=np.int64)]).astype(np.int64)

    @property
    def totals(self) -> IntArray:
        """Totals of the machine: node resources, GPU thousandths and pools; (c,)."""
        columns = self.columns
        gpus = int(columns.gpus.sum()) * WHOLE_GPU
        return np.concatenate([columns.nodes.sum(axis=0), [gpus], columns.amounts]).astype(np.int64)

    @cached_property
    def _drawn(self) -> list[list[tuple[int, int]]]:
        """Indices and amounts of the pools that each class requests."""
        pools = self.classes.whole[:, len(self.columns.resources) + 1 :].tolist()
        return [[(pool, amount) for pool, amount in enumerate(row) if amount] for row in pools]

    def of_pools(self, request: int) -> list[tuple[int, int]]:
        """Return indices and amounts of the pools that a request needs."""
        return self._drawn[self._suspended.get(request, self.classes.of[request])]

    def reason(self, request: int) -> str:
        """Return why the empty machine cannot hold a request; empty if it can."""
        return self.reasons[int(self.classes.of[request])]


_WORDS = ("", "task", "tasks", "nodes")


def _classes(demands: Demands, capacity: Capacity, columns: Columns) -> tuple[Classes, list[str]]:
    """Return the distinct demands with the class of each job, and texts on features that no node has.

    Plain cores are tasks of one core on a machine with nodes, and an amount of the pool ``cores`` otherwise.
    """
    n = len(demands)
    none = np.zeros(n, dtype=np.int64)
    on_nodes = len(capacity.nodes) > 0
    plain = demands.plain
    tasks = np.where(plain > 0, plain, demands.tasks) if on_nodes else demands.tasks
    each = [demands.each.get(name, none) for name in columns.resources]
    pools = [demands.pools.get(name, none) for name in columns.pools]
    if plain.any():
        place = (columns.resources if on_nodes else columns.pools).index("cores")
        if on_nodes:
            each[place] = np.where(plain > 0, 1, each[place])
        else:
            pools[place] = pools[place] + plain
    least = np.where(demands.min_nodes < 1, 1, demands.min_nodes)
    most = np.where(demands.max_nodes == NO_LIMIT, tasks, np.minimum(demands.max_nodes, tasks))
    per_node = np.where(demands.tasks_per_node == NO_LIMIT, tasks, np.minimum(demands.tasks_per_node, tasks))
    words = (demands.gpu_kinds.of, demands.features.of, demands.partitions.of)
    table = np.stack([tasks, demands.gpu, least, most, per_node, demands.exclusive, *words, *each, *pools], axis=1)
    distinct, of = _distinct(table.astype(np.int64))
    hosts, host, lacks = _hosts(distinct[:, [1, 6, 7, 8]], demands, capacity)
    many, resources = distinct[:, 9:], len(columns.resources)
    _, task = _distinct(np.column_stack([many[:, :resources], distinct[:, 1], distinct[:, 6]]))
    k = distinct[:, :1]
    classes = Classes(
        of=of,
        each=np.ascontiguousarray(many[:, :resources]),
        whole=np.column_stack([k * many[:, :resources], k * distinct[:, 1:2], many[:, resources:]]),
        shape=np.column_stack([distinct[:, :6], host, task]),
        hosts=hosts,
    )
    return classes, lacks


def _distinct(table: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows in order, and the index of each row among them."""
    if not len(table):
        return table, np.zeros(0, dtype=np.int64)
    order = np.lexsort(table.T[::-1])
    new = np.r_[True, (table[order][1:] != table[order][:-1]).any(axis=1)]
    of: IntArray = np.empty(len(table), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    return np.ascontiguousarray(table[order][new]), of


def _hosts(wanted: IntArray, demands: Demands, capacity: Capacity) -> tuple[IntArray, IntArray, list[str]]:
    """Return the eligible nodes of distinct sets of features, the set of each row, and texts on missing features."""
    keys = wanted.copy()
    keys[:, 0] = keys[:, 0] > 0
    distinct, of = _distinct(keys)
    hosts = np.zeros((len(distinct), len(capacity.nodes)), dtype=np.int64)
    lacks = []
    for at, (gpu, kinds, features, partitions) in enumerate(distinct.tolist()):
        words = _with_labels(capacity, demands.features.sets[features], demands.partitions.sets[partitions])
        hosts[at] = ANY_NUMBER * (words & _with_gpus(capacity, demands.gpu_kinds.sets[kinds]) if gpu else words)
        lacks.append("features" if not words.any() else "" if hosts[at].any() else "gpu-kind")
    return hosts, of, lacks


def _with_labels(capacity: Capacity, features: tuple[str, ...], partitions: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return the nodes that have all features and are in one of the partitions, if any are named."""
    none = ((),) * len(capacity.nodes)
    return np.array(
        [
            all(word in has for word in features) and (not partitions or any(word in lies for word in partitions))
            for has, lies in zip(capacity.features or none, capacity.partitions or none, strict=True)
        ],
        dtype=np.bool_,
    )


def _with_gpus(capacity: Capacity, kinds: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return the nodes with GPUs, of one of the given types if any are named."""
    named = capacity.gpu_kind or ("",) * len(capacity.nodes)
    accepted = np.array([not kinds or kind in kinds for kind in named], dtype=np.bool_)
    return accepted & (capacity.gpus > 0)
