"""Nodes, pools, demands and holds of the second implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["WHOLE", "Demand", "Hold", "Machine", "Node", "Place"]

WHOLE = 1000
"""Thousandths of a GPU."""

Place = tuple[int, tuple[int, ...]]
"""Place of a task: its node and its GPUs there."""


@dataclass(frozen=True)
class Node:
    """One node; a missing resource counts 0."""

    capacity: Mapping[str, int]
    gpus: int = 0
    gpu_kind: str = "gpu"
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    weight: int = 1


@dataclass(frozen=True)
class Machine:
    """Nodes, numbered from 0, and the pools outside nodes."""

    nodes: Sequence[Node] = ()
    pools: Mapping[str, int] = field(default_factory=dict)

    @property
    def resources(self) -> list[str]:
        """Names of countable node resources without GPUs, in alphabetical order."""
        return sorted({name for node in self.nodes for name in node.capacity})

    def largest(self, resource: str) -> int:
        """Return the largest amount of a resource on one node; GPUs in thousandths."""
        if resource == "gpu":
            return max((WHOLE * node.gpus for node in self.nodes), default=0)
        return max((node.capacity.get(resource, 0) for node in self.nodes), default=0)


@dataclass(frozen=True)
class Demand:
    """Demand of a job; None for no limit and any GPU kind, and an empty set for any partition."""

    cores: int = 0
    tasks: int = 0
    each: Mapping[str, int] = field(default_factory=dict)
    gpu: int = 0
    gpu_kinds: frozenset[str] | None = None
    min_nodes: int = 1
    max_nodes: int | None = None
    tasks_per_node: int | None = None
    exclusive: bool = False
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    pools: Mapping[str, int] = field(default_factory=dict)

    def on(self, machine: Machine) -> Demand:
        """Return the demand on a machine: plain cores become tasks of one core, or an amount of the core pool [R2]."""
        if not self.cores:
            return self
        if machine.nodes:
            return replace(self, cores=0, tasks=self.cores, each={"cores": 1})
        return replace(self, cores=0, pools={**self.pools, "cores": self.pools.get("cores", 0) + self.cores})

    @property
    def most_nodes(self) -> int:
        """Largest number of nodes of the job; at most the number of tasks."""
        return self.tasks if self.max_nodes is None else min(self.max_nodes, self.tasks)

    @property
    def most_on_a_node(self) -> int:
        """Largest number of tasks on one node."""
        return self.tasks if self.tasks_per_node is None else min(self.tasks_per_node, self.tasks)

    @property
    def total_cores(self) -> int:
        """Cores of all tasks and of the pool."""
        return self.cores + self.tasks * self.each.get("cores", 0) + self.pools.get("cores", 0)


@dataclass(frozen=True)
class Hold:
    """A demand at places during ``[start, end)``: a running job or a reservation. A pooled demand has no places."""

    demand: Demand
    places: Sequence[Place]
    start: int
    end: int

    def nodes(self) -> set[int]:
        """Nodes with tasks of the hold."""
        return {node for node, _ in self.places}
