"""Nodes of a machine as columns with one entry per node, its pools, and differences between two machines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError, require_known
from gridsim.model.time import IntArray

WHOLE_GPU = 1000
"""Number of thousandths in a GPU."""

GPU = "gpu"
"""Name of GPUs, reserved for them; also the GPU type if none is given."""


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Group of equal nodes.

    Parameters
    ----------
    group : str
        Name of the group.
    count : int
        Number of nodes.
    capacity : mapping of str to int
        Capacity of one node by resource: ``cores``; ``memory`` in MiB; others in their units.
    gpus : int
        Number of GPUs of one node.
    gpu_kind : str
        GPU type.
    features : tuple of str
        Features that jobs can request.
    partitions : tuple of str
        Partitions that these nodes belong to.
    weight : int
        Weight for the placement rule ``weight``, which fills nodes with low weights first.
    names : tuple of str
        Names of the nodes; by default the name of the group, with a number from 0 if there are several nodes.

    Raises
    ------
    InputError
        If the values do not form a group of nodes.

    Examples
    --------
    >>> NodeGroup(group="gpu", count=2, capacity={"cores": 64, "memory": 262144}, gpus=4).names
    ('gpu-0', 'gpu-1')
    """

    group: str
    count: int = 1
    capacity: Mapping[str, int] = field(hash=False)
    gpus: int = 0
    gpu_kind: str = GPU
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    weight: int = 1
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"group '{self.group}' has {self.count} nodes; at least 1 is needed", field="count")
        for name, amount in self.capacity.items():
            if name == GPU:
                raise InputError(f"group '{self.group}' has '{GPU}' in its resources; use gpus", field="capacity")
            if amount < 0:
                message = f"group '{self.group}' has {amount} of {name}; an amount from 0 is needed"
                raise InputError(message, field=f"capacity.{name}")
        if self.gpus < 0:
            raise InputError(
                f"group '{self.group}' has {self.gpus} GPUs a node; a number from 0 is needed", field="gpus"
            )
        if not self.names:
            numbered = tuple(f"{self.group}-{number}" for number in range(self.count))
            object.__setattr__(self, "names", numbered if self.count > 1 else (self.group,))
        if len(self.names) != self.count:
            message = f"group '{self.group}' has {self.count} nodes and {len(self.names)} names"
            raise InputError(message, field="names")


def with_more(pools: Mapping[str, int], text: str) -> dict[str, int]:
    """Return pools with more or fewer units: ``matlab:4``, ``matlab:-2``, several separated by semicolons.

    Raises
    ------
    InputError
        For an unknown pool, and for an invalid number of units.

    Examples
    --------
    >>> with_more({"matlab": 10, "ansys": 2}, "matlab:4;ansys:-1")
    {'matlab': 14, 'ansys': 1}
    """
    found = dict(pools)
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, _, count = part.rpartition(":")
        if not re.fullmatch(r"[+-]?[0-9]+", count) or not name:
            raise InputError(f"'{part}' is not a number of pool units; expected NAME:N (matlab:4)", field="add-pool")
        require_known("pool or licence", found, name)
        found[name] += int(count)
        if found[name] < 0:
            raise InputError(f"{-int(count)} fewer of {name}; the machine has {pools[name]}", field="add-pool")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Nodes in the order of their machine, which defines their numbers in placements, and its pools.

    Attributes
    ----------
    nodes : tuple of str
        Names of the nodes; empty if the machine has only pools.
    amounts : mapping of str to (n,) int64
        Capacity of each node by resource: ``cores``; ``memory`` in MiB; others in their units.
    gpus : (n,) int64
        Number of GPUs of each node, numbered from 0.
    gpu_kind : tuple of str
        GPU type of each node; empty if unknown.
    features, partitions : tuple of tuple of str
        Features and partitions of each node; empty if unknown.
    weight : tuple of int
        Weight of each node; empty if unknown.
    pools : mapping of str to int
        Capacity of each pool.
    """

    nodes: tuple[str, ...]
    amounts: Mapping[str, IntArray]
    gpus: IntArray
    gpu_kind: tuple[str, ...] = ()
    features: tuple[tuple[str, ...], ...] = ()
    partitions: tuple[tuple[str, ...], ...] = ()
    weight: tuple[int, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Sequence[NodeGroup], pools: Mapping[str, int] | None = None) -> Capacity:
        """Return the capacity of groups of nodes, in their order, and of pools.

        Parameters
        ----------
        groups : sequence of NodeGroup
            The nodes; empty for a machine of pools.
        pools : mapping of str to int, optional
            Capacity of each pool.

        Returns
        -------
        Capacity
            Columns of the nodes.

        Raises
        ------
        InputError
            If a node resource and a pool have the same name, a pool is below 0 or has the name ``gpu``, or two nodes
            have the same name.

        Examples
        --------
        >>> Capacity.of([NodeGroup(group="thin", count=3, capacity={"cores": 8})], {"licence": 2})
        <Capacity: 3 nodes, 24 cores, 2 licence>
        """
        pools = dict(pools or {})
        resources = list(dict.fromkeys(name for group in groups for name in group.capacity))
        for name, amount in pools.items():
            if name in resources or name == GPU:
                raise InputError(
                    f"'{name}' is both a resource of nodes and a pool; names must differ", field=f"pools.{name}"
                )
            if amount < 0:
                raise InputError(f"has {amount}; an amount from 0 is needed", field=f"pools.{name}")
        names = tuple(name for group in groups for name in group.names)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"'{twice}' is the name of two nodes; names must differ", field="nodes")
        counts = [group.count for group in groups]

        def column(values: Sequence[int]) -> IntArray:
            return np.repeat(np.array(values, dtype=np.int64), counts)

        def each(name: str) -> tuple[object, ...]:
            return tuple(getattr(group, name) for group in groups for _ in range(group.count))

        return cls(
            nodes=names,
            amounts={name: column([group.capacity.get(name, 0) for group in groups]) for name in resources},
            gpus=column([group.gpus for group in groups]),
            gpu_kind=each("gpu_kind"),  # type: ignore[arg-type]
            features=each("features"),  # type: ignore[arg-type]
            partitions=each("partitions"),  # type: ignore[arg-type]
            weight=each("weight"),  # type: ignore[arg-type]
            pools=pools,
        )

    @property
    def cores(self) -> int:
        """Number of cores of all nodes and of the pool ``cores``."""
        of_nodes = int(self.amounts["cores"].sum()) if "cores" in self.amounts else 0
        return of_nodes + self.pools.get("cores", 0)

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of all resources that jobs can request: those of nodes, GPUs if any, and pools."""
        return (*self.amounts, *((GPU,) if self.gpus.any() else ()), *self.pools)

    def total(self, resource: str) -> int:
        """Return the total capacity of a resource; thousandths for ``gpu``.

        Parameters
        ----------
        resource : str
            Name of a resource or pool, or ``gpu``.

        Returns
        -------
        int
            0 if the machine does not have it.
        """
        if resource == GPU:
            return int(self.gpus.sum()) * WHOLE_GPU
        if resource in self.amounts:
            return int(self.amounts[resource].sum())
        return self.pools.get(resource, 0)

    def __repr__(self) -> str:
        nodes = f"{len(self.nodes):,} nodes, " if self.nodes else ""
        more = "".join(f", {amount:,} {name}" for name, amount in self.pools.items() if name != "cores")
        return f"<Capacity: {nodes}{self.cores:,} cores{more}>"


class NodeChange(NamedTuple):
    """Difference in the number of nodes of one type, negative for fewer; *node* is one of them, without a name."""

    more: int
    node: NodeGroup

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON types."""
        it = self.node
        told = {"capacity": dict(it.capacity), "gpus": it.gpus, "gpu_kind": it.gpu_kind if it.gpus else None}
        return {"more": self.more, "node": told | {"features": list(it.features), "partitions": list(it.partitions)}}


def node_changes(before: Sequence[NodeGroup], after: Sequence[NodeGroup]) -> tuple[NodeChange, ...]:
    """Return the nodes by which two machines differ, by capacity, features and partitions.

    Examples
    --------
    >>> thin = NodeGroup(group="thin", count=4, capacity={"cores": 8})
    >>> fat = NodeGroup(group="fat", count=2, capacity={"cores": 8}, gpus=2)
    >>> [(it.more, it.node.gpus) for it in node_changes([thin], [replace(thin, count=3, names=()), fat])]
    [(-1, 0), (2, 2)]
    """
    counts: Counter[NodeGroup] = Counter()
    for sign, groups in ((-1, before), (1, after)):
        for each in groups:
            counts[replace(each, group="", count=1, names=("",))] += sign * each.count
    return tuple(NodeChange(count, node) for node, count in counts.items() if count)
