"""Partition of a machine into the clusters or partitions that jobs request, and the machine as each policy sees it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from gridsim.errors import InputError, not_modelled
from gridsim.model.capacity import with_more
from gridsim.model.partitions import CLUSTER, PARTITION, Partitions, names_of, partitions_named
from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.site import NO_PARTITION
from gridsim.model.tasks import ANY_KIND
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.site_policy import SiteChange, own_machine

UNSIZED = "the number of cores of each is unknown (give --platform slurm.conf)"
POOLED_ON_REQUEST = "because of --partitions pooled"


def in_pools(
    workload: Workload, platform: Platform, policies: Iterable[Any] = (), asked: Partitions | None = None
) -> Platform:
    """Return the machine with its partitions as separate pools if possible, else with the reason why not.

    Parameters
    ----------
    policies : iterable of object
        A policy with a site (`Capabilities.site`) defines the partitions, or the reason why there are none.
    asked : {"apart", "pooled"}, optional
        Requested treatment of partitions. By default they are separate if their sizes are known and they share no
        nodes.

    Raises
    ------
    InputError
        If separate partitions are requested but not possible, and for any other value of *asked*.
        Where they are to be apart and cannot be, and for *asked* that is neither.
    """
    if asked is not None and asked not in get_args(Partitions):
        raise InputError(f"'{asked}' is neither apart nor pooled", field="partitions")
    if platform.by is not None or platform.pooled:
        return platform
    if any(group.partitions for cluster in platform.clusters() for group in cluster.nodes):
        # Jobs are restricted to the nodes of their partitions, which may share nodes.
        return (
            replace(Platform.single(platform.cores, origin=platform.origin), pooled=POOLED_ON_REQUEST)
            if asked == "pooled"
            else platform
        )
    if len(names_of(workload, CLUSTER)) > 1:
        return _clusters(workload, platform)
    named = partitions_named(workload)
    if asked == "pooled":
        return replace(platform, pooled=POOLED_ON_REQUEST) if len(named) > 1 else platform
    try:
        return _partitions(workload, platform, policies, named)
    except InputError as error:
        if asked == "apart":
            raise InputError(f"partitions cannot be separate: {error.message}", field="partitions") from error
        return replace(platform, pooled=error.message) if len(named) > 1 else platform


def _clusters(workload: Workload, platform: Platform) -> Platform:
    """Return the clusters of the log, with sizes from the platform, else the most cores that each had in use."""
    clusters = workload.provenance.get("clusters", ())
    names = {name for names in names_of(workload, CLUSTER).values() for name in names}
    if names <= {cluster.name for cluster in platform.clusters()}:
        return replace(platform, by=CLUSTER)
    sizes = {it["name"]: it["cores"] for it in clusters if it["cores"]}
    if platform.origin == "given" or not names <= set(sizes):
        raise InputError(
            f"the jobs belong to the clusters {', '.join(sorted(names))}; give a --platform with clusters of these "
            f"names, or choose one (--cluster)",
            field="cluster",
        )
    return Platform.apart(sizes, CLUSTER, origin=platform.origin)


def _partitions(workload: Workload, platform: Platform, policies: Iterable[Any], named: Sequence[str]) -> Platform:
    """Return the machine by partitions.

    Raises
    ------
    InputError
        With the reason why it cannot be partitioned.
    """
    if not named:
        raise InputError("the jobs have none")
    if workload.tasks is not None:
        raise InputError("the jobs are workflows (DAG jobs)")
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        missing = next((name for name in named if name not in {cluster.name for cluster in clusters}), None)
        if missing is not None:
            raise InputError(f"partition '{missing}' is not a cluster of the platform")
        kinds = next((cluster for cluster in clusters if cluster.kind != ANY_KIND), None)
        if kinds is not None:
            raise InputError(f"cluster '{kinds.name}' has the kind '{kinds.kind}', but jobs of a log have none")
        found = replace(platform, by=PARTITION)
    else:
        knowing = next((policy for policy in policies if capabilities_of(policy).site), None)
        if knowing is None:
            raise InputError(UNSIZED)
        found = knowing.pools(named)
        if found.cores != platform.cores:
            raise InputError(f"they have {found.cores:,} cores together, but the machine has {platform.cores:,}")
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
    """Return the machine as a policy sees it: a site policy models partitions itself, on one cluster of all cores.

    A policy of another site than that of the platform schedules its own machine (`own_machine`).

    Raises
    ------
    InputError
        If the policy has one site and the machine consists of several clusters.
    """
    if not capabilities_of(policy).site:
        return platform
    if platform.by == CLUSTER:
        names = ", ".join(cluster.name for cluster in platform.clusters())
        raise InputError(
            f"the policy has one site, the jobs are of several ({names}); choose one (--cluster)", field="cluster"
        )
    single = platform.by is None
    whole = replace(platform, pooled="") if single else Platform.single(platform.cores, origin=platform.origin)
    return own_machine(policy, whole)


def resized(platform: Platform, cores: int, policies: Iterable[Any] = ()) -> Platform:
    """Return the machine with *cores* cores; partitions grow by the nodes that a site policy adds, else evenly.

    A machine of nodes gets whole nodes like those of its largest group, so its size is approximate.

    Raises
    ------
    InputError
        For a machine of several clusters without a cluster per job, and if a partition would have no core left.

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
        raise InputError(not_modelled("more cores for a machine of several clusters"))
    knowing = next((policy for policy in policies if capabilities_of(policy).site), None)
    if knowing is not None and platform.by == PARTITION:
        named = [cluster.name for cluster in clusters if cluster.name != NO_PARTITION]
        found: Platform = knowing.sized(cores).pools(named)
        if found.cores == cores:
            return found
    # Largest remainders first, ties in tree order, so that the sum is exact.
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
    """Return the machine with more or fewer nodes in its largest group.

    Raises
    ------
    InputError
        If the nodes of that group have no cores, or no node would be left.
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
    """Return the index of the largest group of nodes, the first of equal ones."""
    return max(range(len(cluster.nodes)), key=lambda place: (cluster.nodes[place].count, -place))


def _with_more(platform: Platform, cluster: ClusterSpec, place: int, more: int, field: str) -> Platform:
    """Return the machine with more or fewer nodes in a group."""
    group = cluster.nodes[place]
    if group.count + more < 1:
        raise InputError(f"{-more} nodes fewer; group '{group.group}' has {group.count}", field=field)
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
    """Return the machine with nodes and units of pools added or removed.

    Raises
    ------
    InputError
        For limits, which only a site has, and for nodes and pools that the machine does not have.
    """
    if change.set_limit:
        raise InputError("sets a limit of a Slurm site; give --site FILE and the policy site", field="set-limit")
    for text in filter(None, change.add_nodes.split(";")):
        platform = with_nodes_of(platform, text)
    if not change.add_pool:
        return platform
    clusters = list(platform.clusters())
    if len(clusters) != 1:
        raise InputError("changes the pools of a machine of one cluster", field="add-pool")
    grown = replace(clusters[0], pools=with_more(clusters[0].pools, change.add_pool))
    return replace(platform, root=replace(platform.root, children=(grown,)))


def with_nodes_of(platform: Platform, text: str) -> Platform:
    """Return the machine with nodes added or removed: ``+10``, ``gpu:+10``; in the largest group if none is named.

    Raises
    ------
    InputError
        If the machine is not one cluster of nodes, and for invalid numbers or unknown groups.

    Examples
    --------
    >>> from gridsim.model.capacity import NodeGroup
    >>> with_nodes_of(Platform.of_nodes([NodeGroup(group="thin", count=3, capacity={"cores": 8})]), "thin:+2").cores
    40
    """
    clusters = list(platform.clusters())
    if len(clusters) != 1 or not clusters[0].nodes:
        raise InputError(
            "are added to a machine without nodes, under a policy without nodes; give a --platform of nodes, or "
            "slurm?conf=…",
            field="nodes",
        )
    name, _, count = text.strip().rpartition(":")
    groups = [group.group for group in clusters[0].nodes]
    if name and name not in groups:
        raise InputError(f"'{name}' is not a group of nodes; expected one of {', '.join(groups)}", field="nodes")
    if not re.fullmatch(r"[+-]?[0-9]+", count):
        raise InputError(f"'{text}' is not a number of nodes; expected +10 or {groups[0]}:+10", field="nodes")
    return _with_more(
        platform, clusters[0], groups.index(name) if name else _usual(clusters[0]), int(count), field="nodes"
    )
