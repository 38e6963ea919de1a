"""A machine in the parts that jobs name, where they can be kept apart, and as each policy has it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from gridsim.errors import InputError
from gridsim.model.capacity import with_more
from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.pools import CLUSTER, PARTITION, Partitions, names_of, partitions_named
from gridsim.model.site import NO_PARTITION
from gridsim.model.tasks import ANY_KIND
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.site_policy import SiteChange, own_machine

UNSIZED = "how many cores each has is not known (a slurm.conf says it, --platform slurm.conf)"
ASKED = "as --partitions pooled asks for"


def in_pools(
    workload: Workload, platform: Platform, policies: Iterable[Any] = (), asked: Partitions | None = None
) -> Platform:
    """The machine with the parts that the jobs name kept apart, where that can be; else one that says why not.

    Parameters
    ----------
    policies : iterable of object
        One that knows its site (`Capabilities.pools`) says which parts it has, or why there are none.
    asked : {"apart", "pooled"}, optional
        What somebody wants of partitions; apart where their sizes are known and none shares a node, where left out.

    Raises
    ------
    InputError
        Where they are to be apart and cannot be, and for *asked* that is neither.
    """
    if asked is not None and asked not in get_args(Partitions):
        raise InputError(f"'{asked}' is neither apart nor pooled", field="partitions")
    if platform.by is not None or platform.pooled:
        return platform
    if any(group.partitions for cluster in platform.clusters() for group in cluster.nodes):
        # Jobs keep to the nodes of their partitions, which may share nodes.
        return (
            replace(Platform.single(platform.cores, origin=platform.origin), pooled=ASKED)
            if asked == "pooled"
            else platform
        )
    if len(names_of(workload, CLUSTER)) > 1:
        return _clusters(workload, platform)
    named = partitions_named(workload)
    if asked == "pooled":
        return replace(platform, pooled=ASKED) if len(named) > 1 else platform
    try:
        return _partitions(workload, platform, policies, named)
    except InputError as error:
        if asked == "apart":
            raise InputError(f"partitions cannot be simulated apart: {error.message}", field="partitions") from error
        return replace(platform, pooled=error.message) if len(named) > 1 else platform


def _clusters(workload: Workload, platform: Platform) -> Platform:
    """The clusters of the log, of the sizes that a platform gives, else of the most cores that each had in use."""
    clusters = workload.provenance.get("clusters", ())
    names = {name for names in names_of(workload, CLUSTER).values() for name in names}
    if names <= {cluster.name for cluster in platform.clusters()}:
        return replace(platform, by=CLUSTER)
    sizes = {it["name"]: it["cores"] for it in clusters if it["cores"]}
    if platform.origin == "given" or not names <= set(sizes):
        raise InputError(
            f"the jobs are of the clusters {', '.join(sorted(names))}; give a --platform with clusters of these names, "
            "or choose one (--cluster)",
            field="cluster",
        )
    return Platform.apart(sizes, CLUSTER, origin=platform.origin)


def _partitions(workload: Workload, platform: Platform, policies: Iterable[Any], named: Sequence[str]) -> Platform:
    """The machine by partitions.

    Raises
    ------
    InputError
        Why there is none.
    """
    if not named:
        raise InputError("the jobs name none")
    if workload.tasks is not None:
        raise InputError("jobs are DAGs of several tasks")
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        missing = next((name for name in named if name not in {cluster.name for cluster in clusters}), None)
        if missing is not None:
            raise InputError(f"partition '{missing}' is none of the clusters of the platform")
        kinds = next((cluster for cluster in clusters if cluster.kind != ANY_KIND), None)
        if kinds is not None:
            raise InputError(f"cluster '{kinds.name}' has the kind '{kinds.kind}', and jobs of a log name none")
        found = replace(platform, by=PARTITION)
    else:
        knowing = next((policy for policy in policies if capabilities_of(policy).site), None)
        if knowing is None:
            raise InputError(UNSIZED)
        found = knowing.pools(named)
        if found.cores != platform.cores:
            raise InputError(f"they have {found.cores:,} cores together, and the machine has {platform.cores:,}")
    if found.default is None and (without := _without(workload)):
        raise InputError(f"{without:,} job{' names' if without == 1 else 's name'} none")
    return found


def _without(workload: Workload) -> int:
    return sum(
        int(np.count_nonzero(workload.labels[PARTITION] == code))
        for code, names in names_of(workload, PARTITION).items()
        if not names
    )


def seen_by(policy: Any, platform: Platform) -> Platform:
    """The machine as a policy has it: one that knows its site keeps partitions itself, on one cluster of all cores.

    A policy of another site than the one that gave the platform decides for its own (`own_machine`).

    Raises
    ------
    InputError
        Where it knows one site and the machine is several.
    """
    if not capabilities_of(policy).site:
        return platform
    if platform.by == CLUSTER:
        names = ", ".join(cluster.name for cluster in platform.clusters())
        raise InputError(
            f"the policy knows one site, and the jobs are of several ({names}); choose one (--cluster)", field="cluster"
        )
    single = platform.by is None
    whole = replace(platform, pooled="") if single else Platform.single(platform.cores, origin=platform.origin)
    return own_machine(policy, whole)


def resized(platform: Platform, cores: int, policies: Iterable[Any] = ()) -> Platform:
    """The machine with so many cores; one in parts grows where a policy that knows the site adds nodes, else evenly.

    One of nodes gets whole nodes like those of its largest group, for about so many cores.

    Raises
    ------
    InputError
        For a machine of several clusters on which jobs do not say where they run, and where a part has no core left.

    Examples
    --------
    >>> grown = resized(Platform.apart({"a": 10, "b": 5}, "partition"), 18)
    >>> [(cluster.name, cluster.cores) for cluster in grown.clusters()]
    [('a', 12), ('b', 6)]
    """
    clusters = list(platform.clusters())
    if len(clusters) == 1 and clusters[0].nodes:
        return _with_nodes_to(platform, clusters[0], cores)
    if len(clusters) == 1 and platform.by is None:
        return replace(Platform.single(cores, origin=platform.origin), pooled=platform.pooled)
    if platform.by is None:
        raise InputError("only a machine of one cluster can be made larger here; give another --platform")
    knowing = next((policy for policy in policies if capabilities_of(policy).site), None)
    if knowing is not None and platform.by == PARTITION:
        named = [cluster.name for cluster in clusters if cluster.name != NO_PARTITION]
        found: Platform = knowing.sized(cores).pools(named)
        if found.cores == cores:
            return found
    # Largest fractions first, in tree order between equal ones: the sum is right to the core.
    exact = [cluster.cores * cores for cluster in clusters]
    sizes = [part // platform.cores for part in exact]
    most = sorted(range(len(clusters)), key=lambda place: -(exact[place] % platform.cores))
    for place in most[: cores - sum(sizes)]:
        sizes[place] += 1
    names = [cluster.name for cluster in clusters]
    return Platform.apart(
        dict(zip(names, sizes, strict=True)), platform.by, default=platform.default, origin=platform.origin
    )


def _with_nodes_to(platform: Platform, cluster: ClusterSpec, cores: int) -> Platform:
    """The machine with more or fewer nodes of its largest group.

    Raises
    ------
    InputError
        Where that group has no cores, or would have no node left.
    """
    place = _usual(cluster)
    usual = cluster.nodes[place]
    each = usual.capacity.get("cores", 0)
    if not each:
        raise InputError(f"nodes like those of '{usual.group}' have no cores; give another --platform", field="cores")
    missing = (cores - platform.cores) / each
    more = math.floor(missing + 0.5) or (missing > 0) - (missing < 0)
    return _with_more(platform, cluster, place, more, "cores")


def _usual(cluster: ClusterSpec) -> int:
    """Place of the largest group of nodes, the first of several."""
    return max(range(len(cluster.nodes)), key=lambda place: (cluster.nodes[place].count, -place))


def _with_more(platform: Platform, cluster: ClusterSpec, place: int, more: int, field: str) -> Platform:
    """The machine with more or fewer nodes of a group."""
    group = cluster.nodes[place]
    if group.count + more < 1:
        raise InputError(f"{-more} nodes fewer; there are {group.count} like those of '{group.group}'", field=field)
    known = {name for each in cluster.nodes for name in each.names}
    new = itertools.islice(
        (name for number in itertools.count(1) if (name := f"more{number}") not in known), max(more, 0)
    )
    names = (*group.names, *new)[: group.count + more]
    groups = list(cluster.nodes)
    groups[place] = replace(group, count=len(names), names=names)
    grown = replace(cluster, cores=cluster.cores + more * group.capacity.get("cores", 0), nodes=tuple(groups))
    return replace(platform, root=replace(platform.root, children=(grown,)))


def changed_platform(platform: Platform, change: SiteChange) -> Platform:
    """The machine with nodes of its groups and units of its pools added or taken away.

    Raises
    ------
    InputError
        For limits, which only a site has, and for nodes and pools that the machine does not have.
    """
    if change.set_limit:
        raise InputError("sets a limit of a Slurm site; give --policy slurm?conf=…", field="set-limit")
    for text in filter(None, change.nodes.split(";")):
        platform = with_nodes_of(platform, text)
    if not change.add_pool:
        return platform
    clusters = list(platform.clusters())
    if len(clusters) != 1:
        raise InputError("adds to the pools of a machine of one cluster", field="add-pool")
    grown = replace(clusters[0], pools=with_more(clusters[0].pools, change.add_pool))
    return replace(platform, root=replace(platform.root, children=(grown,)))


def with_nodes_of(platform: Platform, text: str) -> Platform:
    """The machine with nodes added to a group, or taken away: ``+10``, ``gpu:+10``; of the largest where none is named.

    Raises
    ------
    InputError
        Where it is no one cluster of nodes, and for what is no number of nodes of a group that is there.

    Examples
    --------
    >>> from gridsim.model.capacity import NodeGroup
    >>> with_nodes_of(Platform.of_nodes([NodeGroup(group="thin", count=3, capacity={"cores": 8})]), "thin:+2").cores
    40
    """
    clusters = list(platform.clusters())
    if len(clusters) != 1 or not clusters[0].nodes:
        raise InputError(
            "are asked of a machine without nodes, under a policy that knows none; give a --platform of nodes, or "
            "slurm?conf=…",
            field="nodes",
        )
    name, _, count = text.strip().rpartition(":")
    groups = [group.group for group in clusters[0].nodes]
    if name and name not in groups:
        raise InputError(f"'{name}' is no group of nodes; expected one of {', '.join(groups)}", field="nodes")
    if not re.fullmatch(r"[+-]?[0-9]+", count):
        raise InputError(f"'{text}' is no number of nodes; expected such as +10 or {groups[0]}:+10", field="nodes")
    return _with_more(
        platform, clusters[0], groups.index(name) if name else _usual(clusters[0]), int(count), field="nodes"
    )
