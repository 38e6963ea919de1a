"""Slurm sites: nodes, partitions, permissions, and the parameters of priority and backfill scheduling.

This module defines the site as a whole; submodules define its parts. Names and defaults are those of Slurm's manual
pages (slurm.conf, sacctmgr, version 22.05).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gridsim.errors import InputError
from gridsim.model.capacity import Capacity, NodeGroup, with_more
from gridsim.model.platform import Platform
from gridsim.model.site.parameters import (
    PARENT,
    Allowed,
    Association,
    Node,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    SitePartition,
    TresLimits,
)
from gridsim.model.site.vocabulary import LABELS, Notice, notices

__all__ = [
    "LABELS",
    "NO_PARTITION",
    "ORIGIN",
    "PARENT",
    "Allowed",
    "Association",
    "Node",
    "Notice",
    "Preemption",
    "Priority",
    "Qos",
    "Reservation",
    "Scheduling",
    "Site",
    "SitePartition",
    "TresLimits",
]


ORIGIN = "slurm.conf"
"""Origin of a platform that is the machine of a site."""

NO_PARTITION = "(no partition)"
"""Pool of the nodes without a partition."""


@dataclass(frozen=True)
class Site:
    """A Slurm cluster, as described by its configuration and its accounting database.

    Attributes
    ----------
    nodes, partitions : tuple
        In the order of the configuration.
    default_partition : str
        Partition of jobs that name none: the one with ``Default=YES``, else the first.
    associations, qos, reservations : tuple
        Empty if unknown: all users then have equal shares and no limits.
    memory : bool
        Whether memory is a consumable resource (``CR_..._Memory``).
    whole_nodes : bool
        Whether every job is allocated whole nodes (``select/linear``).
    default_memory, default_core_memory : int
        ``DefMemPerNode`` and ``DefMemPerCPU``, MiB; 0 for neither, which means all memory of a node.
    most_memory : int
        ``MaxMemPerNode``, MiB; 0 for no limit.
    preemption : Preemption
        Preemption parameters.
    enforce : bool
        Whether limits are enforced (``AccountingStorageEnforce`` with ``limits``).
    associations_only : bool
        Whether only users with an association can submit jobs (``AccountingStorageEnforce`` with ``associations``).
    safe : bool
        Whether a job starts only if its usage limits suffice until its time limit (``…Enforce`` with ``safe``).
    least_loaded : bool
        Whether jobs of all partitions use the nodes with most idle cores first (``CR_LLN``).
    members : mapping of str to set of str, or None
        Users in each group of the system; None if unknown, and all groups then admit all users.
    licences : mapping of str to int
        Number of licences by name (``Licenses``).
    ignored : mapping of str to int
        Number of occurrences of words in its files that the simulation does not model; `notices` describes them.
    without_effect : tuple of str
        Changed keywords and fields that the simulation does not model.

    Examples
    --------
    >>> site = Site.of(nodes=4, cores=8)
    >>> site.cores, site.partitions[0].nodes
    (32, ('n1', 'n2', 'n3', 'n4'))
    """

    nodes: tuple[Node, ...]
    partitions: tuple[SitePartition, ...]
    default_partition: str
    scheduling: Scheduling = field(default_factory=Scheduling)
    priority: Priority = field(default_factory=Priority)
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    memory: bool = False
    whole_nodes: bool = False
    default_memory: int = 0
    default_core_memory: int = 0
    most_memory: int = 0
    preemption: Preemption = field(default_factory=Preemption)
    enforce: bool = True
    associations_only: bool = False
    safe: bool = False
    licences: Mapping[str, int] = field(default_factory=dict)
    least_loaded: bool = False
    members: Mapping[str, frozenset[str]] | None = None
    ignored: Mapping[str, int] = field(default_factory=dict)
    without_effect: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError("has no node; expected at least one NodeName", field="nodes")
        known = {node.name for node in self.nodes}
        if len(known) < len(self.nodes):
            raise InputError("lists a node twice", field="nodes")
        names = [partition.name for partition in self.partitions]
        if self.default_partition not in names:
            raise InputError(
                f"'{self.default_partition}' is not a partition; known: {', '.join(names)}", field="partition"
            )
        groups = [(each.name, each.nodes) for each in self.partitions]
        for name, members in [*groups, *((each.name, each.nodes) for each in self.reservations)]:
            missing = next((node for node in members if node not in known), None)
            if missing is not None:
                raise InputError(f"'{name}' lists a node '{missing}' that does not exist", field="nodes")

    @classmethod
    def of(cls, *, nodes: int, cores: int, memory: int = 1, **parts: object) -> Site:
        """Return a site of *nodes* equal nodes ``n1`` … in one partition ``batch``; *parts* are further arguments."""
        made = tuple(Node(f"n{number}", cores, memory) for number in range(1, nodes + 1))
        given: dict[str, object] = {
            "partitions": (SitePartition("batch", tuple(node.name for node in made)),),
            "default_partition": "batch",
        }
        return cls(nodes=made, **(given | parts))  # type: ignore[arg-type]

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Contents of its files that the simulation does not model: unknown words first, then by relevance."""
        return (*(Notice(text, changed=True) for text in self.without_effect), *notices(self.ignored))

    @property
    def cores(self) -> int:
        """Number of cores of all nodes."""
        return sum(node.cores for node in self.nodes)

    @property
    def usual_node(self) -> Node:
        """First node of the most frequent type in the default partition."""
        return self._usual()[0]

    def _usual(self, partition: str = "") -> list[Node]:
        """Return the nodes of the most frequent type in a partition; ties go to the type that is first.

        An empty name means the default partition.
        """
        inside = set(self.partition(partition or self.default_partition).nodes)
        members = [node for node in self.nodes if node.name in inside] or list(self.nodes)
        common = Counter(map(_type, members)).most_common(1)[0][0]
        return [node for node in members if _type(node) == common]

    def nodes_to(self, cores: float) -> int:
        """Return the number of usual nodes to add to have about this number of cores, negative to remove nodes.

        It is not 0 if the site has another number of cores.

        Examples
        --------
        >>> site = Site.of(nodes=4, cores=8)
        >>> site.nodes_to(33), site.nodes_to(45), site.nodes_to(16), site.nodes_to(32)
        (1, 2, -2, 0)
        """
        missing = (cores - self.cores) / self.usual_node.cores
        return math.floor(missing + 0.5) or (missing > 0) - (missing < 0)

    def with_nodes(self, more: int, partition: str = "") -> Site:
        """Return the site with more nodes of the most frequent type of a partition, or, if negative, with fewer.

        New nodes are added to every partition and every reservation that contains all nodes of this type in this
        partition. The last nodes are removed first.

        Parameters
        ----------
        more : int
            Number of nodes to add.
        partition : str
            Name of the partition; by default the default partition.

        Raises
        ------
        InputError
            If the partition does not exist, has too few nodes to remove, or a partition would have no node left.

        Examples
        --------
        >>> site = Site.of(nodes=2, cores=8).with_nodes(2)
        >>> site.cores, site.partitions[0].nodes
        (32, ('n1', 'n2', 'more1', 'more2'))
        >>> site.with_nodes(-2) == Site.of(nodes=2, cores=8)
        True
        """
        return self._grown(more, partition) if more > 0 else self._shrunk(-more, partition) if more else self

    def changed(self, nodes: str) -> Site:
        """Return the site with nodes added or removed: ``+10``, ``gpu:+10``, several separated by semicolons.

        Raises
        ------
        InputError
            For an invalid number of nodes, and as in `with_nodes`.

        Examples
        --------
        >>> Site.of(nodes=2, cores=8).changed("+2;batch:-1").cores
        24
        """
        site = self
        for text in nodes.split(";"):
            partition, _, count = text.strip().rpartition(":")
            try:
                more = int(count)
            except ValueError as error:
                message = f"'{text}' is not a number of nodes; expected +10, or gpu:+10 for a partition"
                raise InputError(message, field="nodes") from error
            site = site.with_nodes(more, partition)
        return site

    def with_licences(self, text: str) -> Site:
        """Return the site with more or fewer licences: ``matlab:4``, ``matlab:-2``, several separated by semicolons.

        Raises
        ------
        InputError
            For a licence that the site does not have, and for an invalid number.

        Examples
        --------
        >>> dict(Site.of(nodes=1, cores=4, licences={"matlab": 10}).with_licences("matlab:4").licences)
        {'matlab': 14}
        """
        return replace(self, licences=with_more(self.licences, text))

    def _grown(self, more: int, partition: str) -> Site:
        usual, known = self._usual(partition), {node.name for node in self.nodes}
        free = (name for number in itertools.count(1) if (name := f"more{number}") not in known)
        names = tuple(itertools.islice(free, more))
        all_of = {node.name for node in usual}
        return replace(
            self,
            nodes=(*self.nodes, *(replace(usual[0], name=name) for name in names)),
            partitions=tuple(
                replace(each, nodes=(*each.nodes, *names)) if all_of <= set(each.nodes) else each
                for each in self.partitions
            ),
            reservations=tuple(
                replace(each, nodes=(*each.nodes, *names)) if all_of <= set(each.nodes) else each
                for each in self.reservations
            ),
        )

    def _shrunk(self, fewer: int, partition: str) -> Site:
        usual = self._usual(partition)
        if fewer > len(usual):
            whose = f"partition '{partition}'" if partition else "the default partition"
            raise InputError(f"{fewer} nodes fewer; {whose} has {len(usual)} of {usual[0].cores} cores", field="nodes")
        gone = {node.name for node in usual[len(usual) - fewer :]}
        partitions = tuple(
            replace(each, nodes=tuple(node for node in each.nodes if node not in gone)) for each in self.partitions
        )
        for before, after in zip(self.partitions, partitions, strict=True):
            if before.nodes and not after.nodes:
                raise InputError(f"{fewer} nodes fewer; partition '{after.name}' would be empty", field="nodes")
        reservations = (
            replace(
                each,
                nodes=tuple(node for node in each.nodes if node not in gone),
                cores=tuple((node, cores) for node, cores in each.cores if node not in gone),
            )
            for each in self.reservations
        )
        return replace(
            self,
            nodes=tuple(node for node in self.nodes if node.name not in gone),
            partitions=partitions,
            reservations=tuple(each for each in reservations if each.nodes),
        )

    def platform(self) -> Platform:
        """Return the machine as one cluster; only the Slurm policy has the assignment of cores to nodes."""
        return Platform.single(self.cores, origin=ORIGIN)

    def on_nodes(self) -> Platform:
        """Return the machine of nodes and licences, for policies with nodes; jobs without a partition use the default.

        Examples
        --------
        >>> Site.of(nodes=2, cores=8).on_nodes()
        <Platform: 16 cores (slurm.conf)>
        """
        found = Platform.of_nodes(self.groups(), self.licences)
        return replace(found, origin=ORIGIN, default=self.default_partition)

    def groups(self) -> tuple[NodeGroup, ...]:
        """Return the nodes in order, with consecutive equal nodes as a group.

        Groups have cores, memory if it is a consumable resource, GPUs and other generic resources, features, a weight,
        and their partitions.

        Examples
        --------
        >>> [(it.group, it.count, it.partitions) for it in Site.of(nodes=2, cores=8).groups()]
        [('n1', 2, ('batch',))]
        """
        inside = {node.name: list[str]() for node in self.nodes}
        for partition in self.partitions:
            for name in partition.nodes:
                inside[name].append(partition.name)
        found = []
        for _, alike in itertools.groupby(self.nodes, key=lambda node: (_type(node), inside[node.name])):
            members = list(alike)
            first = members[0]
            memory = {"memory": first.memory} if self.memory else {}
            found.append(
                NodeGroup(
                    group=first.name,
                    count=len(members),
                    capacity={"cores": first.cores, **memory, **dict(first.other)},
                    gpus=first.gpus,
                    gpu_kind=first.gpu_kind,
                    features=first.features,
                    partitions=tuple(inside[first.name]),
                    weight=first.weight,
                    names=tuple(node.name for node in members),
                )
            )
        return tuple(found)

    def capacity(self) -> Capacity:
        """Capacity of the nodes, with the licences as pools.

        Examples
        --------
        >>> Site.of(nodes=2, cores=8).capacity()
        <Capacity: 2 nodes, 16 cores>
        """
        return self._capacity

    @cached_property
    def _capacity(self) -> Capacity:
        return Capacity.of(self.groups(), self.licences)

    def __deepcopy__(self, memo: dict[int, Any]) -> Site:
        """Return the same object: it is immutable, and every copy of a policy refers to it."""
        return self

    def pools(self, named: Iterable[str]) -> Platform:
        """Return a platform with one pool per partition: the *named* ones, and others that share no node with any.

        Nodes in none of these form a pool that no job names, so that the size of the machine does not change.

        Raises
        ------
        InputError
            For an unknown partition, and if two partitions share a node.

        Examples
        --------
        >>> site = Site.of(nodes=2, cores=8)
        >>> [(cluster.name, cluster.cores) for cluster in site.pools(["batch"]).clusters()]
        [('batch', 16)]
        """
        members = {name: set(self.partition(name).nodes) for name in dict.fromkeys(named)}
        for one, other in itertools.combinations(members, 2):
            if shared := members[one] & members[other]:
                first = next(node.name for node in self.nodes if node.name in shared)
                raise InputError(f"{one} and {other} share nodes ({first})", field="partition")
        default = self.partition(self.default_partition)
        for each in (default, *self.partitions):
            if (
                each.nodes
                and each.name not in members
                and not any(set(each.nodes) & nodes for nodes in members.values())
            ):
                members[each.name] = set(each.nodes)
        cores = {node.name: node.cores for node in self.nodes}
        sizes = {
            each.name: sum(cores[node] for node in members[each.name])
            for each in self.partitions
            if each.name in members
        }
        left = self.cores - sum(sizes.values())
        sizes |= {NO_PARTITION: left} if left else {}
        known = default.name if default.name in members else None
        return Platform.apart(sizes, "partition", default=known, origin=ORIGIN)

    def partition(self, name: str) -> SitePartition:
        """Return the partition with this name.

        Raises
        ------
        InputError
            If it does not exist.
        """
        for partition in self.partitions:
            if partition.name == name:
                return partition
        known = ", ".join(partition.name for partition in self.partitions)
        raise InputError(f"'{name}' is not a partition; known: {known}", field="partition")

    def lets_in(self, user: str, partition: SitePartition) -> bool:
        """Return whether a partition accepts jobs of a user by the user's groups (``AllowGroups``).

        "Jobs executed as user root … will be allowed to use any partition" (slurm.conf(5)).

        Examples
        --------
        >>> site = Site.of(nodes=1, cores=4, members={"phys": frozenset(["ann"])})
        >>> [site.lets_in(user, SitePartition("p", (), groups=("phys",))) for user in ("ann", "bob", "root")]
        [True, False, True]
        """
        if not partition.groups or self.members is None or user == "root":
            return True
        return any(user in self.members.get(group, ()) for group in partition.groups)

    def is_associated(self, account: str, user: str) -> bool:
        """Return whether a user can submit jobs in an account, by an association if these are enforced and known.

        Jobs of root and of unknown users can always be submitted.

        Examples
        --------
        >>> site = Site.of(nodes=1, cores=4, associations_only=True, associations=(Association("phys", "ann"),))
        >>> [site.is_associated(*pair) for pair in (("phys", "ann"), ("bio", "ann"), ("phys", "bob"), ("root", "root"))]
        [True, False, False, True]
        """
        if not self.associations_only or user in ("", "root") or not self._associated:
            return True
        return (account, user) in self._associated

    @cached_property
    def _associated(self) -> frozenset[tuple[str, str]]:
        return frozenset((each.account, each.user) for each in self.associations if each.user)

    def names(self, label: str) -> tuple[str, ...]:
        """Return the names that jobs can have in a label: ``user``, ``account``, ``partition`` or ``qos``.

        Examples
        --------
        >>> Site.of(nodes=1, cores=4).names("partition")
        ('batch',)
        """
        known = {
            "user": (each.user for each in self.associations),
            "account": (each.account for each in self.associations),
            "partition": (each.name for each in self.partitions),
            "qos": (each.name for each in self.qos),
        }[label]
        return tuple(dict.fromkeys(filter(None, known)))

    def accounts(self) -> Iterator[Association]:
        """Yield the associations that are accounts."""
        return (association for association in self.associations if not association.user)


def _type(node: Node) -> Node:
    """Return the attributes that nodes of one type have in common."""
    return replace(node, name="")
