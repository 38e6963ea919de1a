"""The machine: clusters of equal cores below a tree of routers, and the number of cores stated by a workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from gridsim.errors import InputError
from gridsim.model.capacity import Capacity, NodeGroup
from gridsim.model.decimal_numbers import MOST_CORES, shown
from gridsim.model.network import Network
from gridsim.model.shares import ShareTree

if TYPE_CHECKING:
    from gridsim.model.workload import Workload


_SHOWN = 4
"""Number of clusters in the text of a platform."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Leaf of the tree: a machine of *cores* cores of one *kind*.

    Parameters
    ----------
    name : str
        Name of the cluster.
    cores : int
        Number of cores: a single pool, or the total over all nodes.
    kind : str
        Architecture that tasks can request.
    rate : float
        Price of a core-second.
    nodes : tuple of NodeGroup
        Groups of nodes; empty for a single pool of cores.
    pools : mapping of str to int
        Further resources that jobs use as a whole: licences, memory of a machine without nodes …
    """

    name: str
    cores: int
    kind: str = "any"
    rate: float = 1.0
    nodes: tuple[NodeGroup, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def capacity(self) -> Capacity | None:
        """Return the capacity as columns; None for a single pool of cores without further resources.

        Returns
        -------
        Capacity or None
            Without nodes, the cores are the pool ``cores``.
        """
        if not self.nodes:
            return Capacity.of((), {"cores": self.cores, **self.pools}) if self.pools else None
        return Capacity.of(self.nodes, self.pools)

    def __post_init__(self) -> None:
        if (capacity := self.capacity) is not None and capacity.cores != self.cores:
            message = f"cluster '{self.name}' has {self.cores} cores, but its nodes have {capacity.cores}"
            raise InputError(message, field="cores")
        if self.cores < 1 and (capacity is None or not any(map(capacity.total, capacity.resources))):
            raise InputError(f"cluster '{self.name}' has {self.cores} cores; at least 1 is needed", field="cores")
        if self.cores > MOST_CORES:
            message = f"cluster '{self.name}' has {shown(self.cores)} cores; expected at most {MOST_CORES:,}"
            raise InputError(message, field="cores")
        if not 0 <= self.rate < math.inf:
            message = f"cluster '{self.name}' has a rate of {self.rate:g}; a price per core-second from 0 is needed"
            raise InputError(message, field="rate")


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """Inner node of the tree; *children* are in the order in which ties are broken."""

    name: str
    children: tuple[RouterSpec | ClusterSpec, ...]

    def __post_init__(self) -> None:
        if not self.children:
            raise InputError(f"router '{self.name}' has no children; give it a cluster", field="children")


@dataclass(frozen=True, slots=True)
class Platform:
    """Tree of routers and clusters.

    Parameters
    ----------
    root : RouterSpec
        Root of the tree, where every job arrives.
    origin : str
        Origin of the size: ``given``, or the name of a log's header field.
    network : Network
        Network between the clusters.
    shares : ShareTree or None
        Shares of users or groups in the machine; equal shares by default.
    by : str or None
        Label of the jobs (``partition``, ``cluster``) that determines the cluster of each job; the clusters have the
        names of its values. None: any cluster with sufficient capacity, selected by a balancer.
    default : str or None
        Cluster of jobs without that label.
    pooled : str
        Reason why the partitions named by the jobs are one pool of cores, if they name any.

    Examples
    --------
    >>> Platform.single(128).cores
    128
    """

    root: RouterSpec
    origin: str = "given"
    network: Network = field(default_factory=Network)
    shares: ShareTree | None = None
    by: str | None = None
    default: str | None = None
    pooled: str = ""

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"'{twice}' is the name of two nodes; names must differ", field="platform")

    def __repr__(self) -> str:
        clusters = list(self.clusters())
        if len(clusters) == 1:
            return f"<Platform: {self.cores:,} cores ({self.origin})>"
        shown = ", ".join(f"{it.name} {it.cores:,}" for it in clusters[:_SHOWN])
        return (
            f"<Platform: {self.cores:,} cores in {len(clusters):,} clusters: {shown}{', …' * (len(clusters) > _SHOWN)}>"
        )

    @classmethod
    def single(cls, cores: int, *, name: str = "cluster", origin: str = "given") -> Platform:
        """Return a platform with one cluster of *cores* cores below one router.

        Parameters
        ----------
        cores : int
            Number of cores of the cluster.
        name : str
            Name of the cluster.
        origin : str
            Origin of the size of the machine.

        Returns
        -------
        Platform
            The machine.
        """
        return cls(RouterSpec("root", (ClusterSpec(name, int(cores)),)), origin)

    @classmethod
    def of_nodes(
        cls, nodes: Sequence[NodeGroup], pools: Mapping[str, int] | None = None, *, name: str = "cluster"
    ) -> Platform:
        """Return a platform with one cluster of nodes below one router.

        Parameters
        ----------
        nodes : sequence of NodeGroup
            Nodes; empty for a machine of pools, one of which is ``cores``.
        pools : mapping of str to int, optional
            Further resources that jobs use as a whole.
        name : str
            Name of the cluster.

        Returns
        -------
        Platform
            The machine.

        Raises
        ------
        InputError
            If the machine has no resource, or two resources have the same name.

        Examples
        --------
        >>> thin = NodeGroup(group="thin", count=3, capacity={"cores": 8, "memory": 16384})
        >>> Platform.of_nodes([thin], {"licence": 2})
        <Platform: 24 cores (given)>
        """
        more = dict(pools or {})
        cores = Capacity.of(nodes, more).cores
        if not nodes:
            more.pop("cores", None)
        return cls(RouterSpec("root", (ClusterSpec(name, cores, nodes=tuple(nodes), pools=more),)))

    @classmethod
    def apart(cls, sizes: Mapping[str, int], by: str, *, default: str | None = None, origin: str = "given") -> Platform:
        """Return clusters of these *sizes* below one router; the label *by* of a job determines its cluster.

        Parameters
        ----------
        sizes : mapping of str to int
            Number of cores of each cluster by name.
        by : str
            Label of the jobs.
        default : str, optional
            Cluster of jobs without the label.
        origin : str
            Origin of the sizes of the machine.

        Returns
        -------
        Platform
            The machine.

        Examples
        --------
        >>> Platform.apart({"batch": 60, "gpu": 4}, "partition").cores
        64
        """
        # The name of the router cannot be the name of a partition.
        root = RouterSpec("(all)", tuple(ClusterSpec(name, int(cores)) for name, cores in sizes.items()))
        return cls(root, origin, by=by, default=default)

    def nodes(self) -> Iterator[RouterSpec | ClusterSpec]:
        """Yield all nodes of the tree, parents before children, from left to right.

        Yields
        ------
        RouterSpec or ClusterSpec
            A node.
        """
        pending: list[RouterSpec | ClusterSpec] = [self.root]
        while pending:
            node = pending.pop()
            yield node
            if isinstance(node, RouterSpec):
                pending.extend(reversed(node.children))

    def clusters(self) -> Iterator[ClusterSpec]:
        """Return the leaves from left to right, which is the order of scheduling decisions at one instant.

        Returns
        -------
        iterator of ClusterSpec
            The clusters.
        """
        return (node for node in self.nodes() if isinstance(node, ClusterSpec))

    def levels(self) -> dict[tuple[str, str], int]:
        """Return the tree levels between each pair of clusters, from the deeper one to their lowest common router.

        Returns
        -------
        dict of (str, str) to int
            Levels by the names of two clusters.
        """
        above = dict(self._paths(self.root, ()))
        return {
            (one, other): max(len(path), len(way)) - _common(path, way) + 1 if one != other else 0
            for one, path in above.items()
            for other, way in above.items()
        }

    def _paths(self, node: RouterSpec | ClusterSpec, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the routers above each cluster, from the root down."""
        if isinstance(node, ClusterSpec):
            yield node.name, path
        else:
            for child in node.children:
                yield from self._paths(child, (*path, node.name))

    @property
    def cores(self) -> int:
        """Number of cores of all clusters."""
        return sum(cluster.cores for cluster in self.clusters())

    @property
    def widest(self) -> int:
        """Number of cores of the largest cluster, the upper limit for rigid jobs."""
        return max(cluster.cores for cluster in self.clusters())


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of routers that two paths share from the root on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def machine_cores(workload: Workload, cores: int | None = None) -> tuple[int, str]:
    """Return the cores of the machine and the origin of the number: ``given``, or the name of the source's field.

    Raises
    ------
    InputError
        If neither the caller nor the source gives the size of the machine.

    Examples
    --------
    >>> from gridsim.model.workload import Workload
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], provenance={"cores_from": "MaxProcs"})
    >>> machine_cores(log, 4)
    (4, 'given')
    """
    check_cores(cores)
    if cores is not None:
        return cores, "given"
    provenance = workload.provenance
    if workload.cores_stated is None:
        header = ": no MaxProcs and no MaxNodes in the header" if provenance.get("format") == "swf" else ""
        raise InputError(
            f"does not state the size of its machine{header}; give --machine, or a platform",
            path=provenance.get("source", "the workload"),
            field="MaxProcs" if header else "cores",
        )
    return workload.cores_stated, provenance.get("cores_from") or "the workload"


def check_cores(cores: int | None) -> None:
    """Raise for a machine without cores; None is an unknown size.

    Raises
    ------
    InputError
        For less than one core, or more than `MOST_CORES`.
    """
    if cores is not None and cores < 1:
        raise InputError(f"the machine has {cores} cores; expected at least 1 (--machine)", field="cores")
    if cores is not None and cores > MOST_CORES:
        message = f"the machine has {shown(cores)} cores; expected at most {MOST_CORES:,} (--machine)"
        raise InputError(message, field="cores")
