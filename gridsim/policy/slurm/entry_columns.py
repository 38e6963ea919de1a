"""Demands of queue entries as columns for the scheduling cycles, from labels and the site."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gridsim.machine.njit import records
from gridsim.model.site import Association, Site, SitePartition
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.factors import Factors, size_factor
from gridsim.policy.slurm.fair_tree import FairShares
from gridsim.policy.slurm.node_requests import NodeRequests, node_requests_of
from gridsim.policy.slurm.nodes import ALL, CAPS, WORD, Bytes, Demands, NodeColumns
from gridsim.policy.slurm.queue_entries import Entries, Owner, entries_of, label_of
from gridsim.policy.slurm.tres import tres_priority

SECOND = 1_000_000


def rows_of_numbers(requests: Requests) -> dict[int, int]:
    """Return the last known request of each job by its number in the source."""
    return {number: row for row, number in enumerate(requests.number[: requests.used].tolist())}


def shares_of(site: Site, owners: Sequence[Owner]) -> tuple[FairShares, IntArray]:
    """Return the tree of shares, with one share for each owner that is not in it, and the leaf of each request."""
    associations = list(site.associations)
    accounts = {each.account for each in associations if not each.user}
    users = {(each.account, each.user) for each in associations if each.user}
    for account, user in dict.fromkeys((owner.account, owner.user) for owner in owners):
        if account not in accounts and account != "root":
            associations.append(Association(account, parent="root"))
            accounts.add(account)
        if (account, user) not in users:
            associations.append(Association(account, user=user or "nobody"))
            users.add((account, user))
    order = site.priority
    half_life = order.half_life / SECOND
    shares = FairShares(associations, half_life=half_life, fair_tree=order.fair_tree, dampening=order.dampening)
    leaf = {pair: row for row, pair in enumerate(shares.users)}
    leaves = [leaf[owner.account, owner.user or "nobody"] for owner in owners]
    return shares, np.array(leaves, dtype=np.int64)


def demands_of(
    requests: Requests,
    site: Site,
    owners: Sequence[Owner],
    entries: Entries | None = None,
    requested: NodeRequests | None = None,
) -> Demands:
    """Return the demands of entries, from their labels and the settings of their partition."""
    entries = entries or entries_of(requests, site)
    requested = requested or node_requests_of(requests, site, entries)
    who, partition = entries.request, entries.partition

    def label(name: str) -> IntArray:
        return label_of(requests, name)[who]

    def of_partition(values: Sequence[int]) -> IntArray:
        return np.array(values, dtype=np.int64)[partition]

    alone = of_partition([each.exclusive or site.whole_nodes for each in site.partitions])
    exclusive = ((label("exclusive") > 0) | (alone > 0)).astype(np.int64)
    nodes, most_nodes, widens = _node_range(label, of_partition, site, requested)
    cores = np.maximum(requests.cores[who], nodes)
    unit = np.maximum(label("cores_per_task"), 1)
    unit = np.where(cores % unit == 0, unit, 1)
    most = np.maximum(label("tasks_per_node"), 0) * unit
    memory, core_memory = _memory(label, of_partition, site, requests.cores[who], nodes)
    gpus = np.maximum(label("gpus"), 0)
    group = requested.of
    spread = of_partition([each.least_loaded or site.least_loaded for each in site.partitions])
    cap = of_partition(_caps(site))
    users = {name: row for row, name in enumerate(dict.fromkeys(owner.user for owner in owners))}
    pairs = {pair: row for row, pair in enumerate(dict.fromkeys((owner.account, owner.user) for owner in owners))}
    user = np.array([users[owner.user] for owner in owners], dtype=np.int64)
    association = np.array([pairs[owner.account, owner.user] for owner in owners], dtype=np.int64)
    reservation = np.maximum(entries.reservation, -1)
    alike = [cores, nodes, most_nodes, memory, core_memory, gpus, unit, most, exclusive]
    alike += [group, partition, entries.reservation, widens]
    limit = requests.estimate[who]
    array = np.unique(np.maximum(label("array"), -1), return_inverse=True)[1].astype(np.int64)
    array = array + (label("array").min(initial=0) >= 0)
    low, high, widest = _spans(site, requested)
    kind = _kinds(alike)
    return records(
        cores=cores,
        nodes=nodes,
        most_nodes=most_nodes,
        widens=widens,
        memory=memory,
        core_memory=core_memory,
        gpus=gpus,
        unit=unit,
        most=most,
        exclusive=exclusive,
        cap=cap,
        spread=spread,
        group=group,
        low=low[group],
        high=high[group],
        widest=widest[group],
        part=partition,
        lane=_kinds([partition, reservation]),
        limit=limit,
        reservation=reservation,
        request=who,
        kind=kind,
        same=_kinds([kind, limit]),
        needs=_kinds([memory, core_memory, gpus, unit, most, exclusive, group]),
        user=user,
        association=association,
        array=array,
    )


def _spans(site: Site, requested: NodeRequests) -> tuple[IntArray, IntArray, IntArray]:
    """Return the first node of each group, the one behind its last, and the most cores of one of its nodes."""
    cores = np.array([node.cores for node in site.nodes], dtype=np.int64)
    found = [np.flatnonzero(each.member) for each in requested.all]
    rows = [(nodes[0], nodes[-1] + 1, cores[nodes].max()) if len(nodes) else (0, 0, 0) for nodes in found]
    low, high, widest = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    return low, high, widest


def _node_range(
    label: Callable[[str], IntArray], of_partition: Callable[[Sequence[int]], IntArray], site: Site, need: NodeRequests
) -> tuple[IntArray, IntArray, IntArray]:
    """Return minimum and maximum number of nodes, and whether more than the minimum are used only if needed.

    "The partition's node limits supersede those of the job" (sbatch(1), ``--nodes``). A job that requests hosts by
    name or counts of node kinds, but no number of nodes, gets these nodes, and more if needed.
    """
    asked, most = np.maximum(label("nodes"), 0), np.maximum(label("nodes_most"), 0)
    fewest = of_partition([each.least_nodes for each in site.partitions])
    nodes = np.maximum(asked, np.where(fewest > 1, fewest, 0))
    allowed = of_partition([each.most_nodes for each in site.partitions])
    named, exact = (
        np.array(column, dtype=np.int64)[need.of] if need.all else np.zeros(0, dtype=np.int64)
        for column in ([each.fewest for each in need.all], [each.exact for each in need.all])
    )
    open_end = (named > 0) & (asked == 0) & (most == 0)
    most = np.where(most > 0, most, asked)
    most = np.where(open_end & (exact > 0), np.maximum(named, nodes), most)
    nodes = np.maximum(nodes, named)
    most = np.where(most == 0, allowed, most)
    within = np.where(allowed > 0, np.minimum(most, allowed), most)
    return nodes, np.where(within > 0, np.maximum(within, nodes), 0), (open_end & (exact == 0)).astype(np.int64)


def _caps(site: Site) -> list[int]:
    """Return the row of the free capacity for each partition with ``MaxCPUsPerNode``; 0 for other partitions."""
    capped = [each.name for each in site.partitions if each.node_cores]
    return [CAPS + capped.index(each.name) if each.node_cores else 0 for each in site.partitions]


def _memory(
    label: Callable[[str], IntArray],
    of_partition: Callable[[Sequence[int]], IntArray],
    site: Site,
    cores: IntArray,
    nodes: IntArray,
) -> tuple[IntArray, IntArray]:
    """Return MiB per node and per core: requested, else the default of partition or site, else all memory of the node.

    A log does not contain whether memory was requested per node or per core. A value equal to the default per core
    times all cores counts as that default. If it exceeds every node of the partition, each node holds the amount
    recorded in the log.
    Sources: sbatch(1), ``--mem`` and ``--mem-per-cpu``; slurm.conf(5), ``DefMemPerNode``, ``DefMemPerCPU`` (the default
    of both is 0, which is "unlimited").
    """
    node, core = label("memory_mb"), label("memory_core_mb")
    if not site.memory:
        return np.zeros_like(node), np.zeros_like(node)
    defaults = [_default_memory(each, site) for each in site.partitions]
    default, default_core = (of_partition([each[place] for each in defaults]) for place in (0, 1))
    node = np.where((node > 0) & (node == -(-default_core * cores // np.maximum(nodes, 1))), UNKNOWN, node)
    of_name = {each.name: each.memory for each in site.nodes}
    largest = of_partition([max((of_name[name] for name in each.nodes), default=0) for each in site.partitions])
    granted = label("memory_granted_mb")
    node = np.where((granted > 0) & (node > largest), granted, node)
    core = np.where(node >= 0, 0, np.where(core > 0, core, default_core))
    node = np.where(node > 0, node, np.where(node == 0, ALL, np.where(core > 0, 0, default)))
    return np.where((node == 0) & (core == 0), ALL, node), core


def _default_memory(partition: SitePartition, site: Site) -> tuple[int, int]:
    """Return effective ``DefMemPerNode`` and ``DefMemPerCPU`` of a partition; at most one of them is above 0."""
    node, core = partition.default_memory, partition.default_core_memory
    if node is None and core is None:
        node, core = site.default_memory, site.default_core_memory
    return (0, core) if core else (node or 0, 0)


def _kinds(columns: Sequence[IntArray]) -> IntArray:
    """Return equal numbers for equal rows."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def machine_of(site: Site, requests: Requests, demands: Demands, requested: NodeRequests | None = None) -> NodeColumns:
    """Return empty nodes, and the nodes that each group of entries may use."""
    requested = requested or node_requests_of(requests, site, entries_of(requests, site))
    cores = np.array([node.cores for node in site.nodes], dtype=np.int64)
    memory = np.array([node.memory for node in site.nodes], dtype=np.int64)
    gpus = np.array([node.gpus for node in site.nodes], dtype=np.int64)
    weight = np.unique([node.weight for node in site.nodes], return_inverse=True)[1].astype(np.int64)
    now = empty_nodes(site)
    now = now[: len(now) if len(now) > CAPS else 4 if demands["gpus"].any() else 3 if site.memory else 2].copy()
    names = [node.name for node in site.nodes]
    partitions = np.array([np.isin(names, each.nodes) for each in site.partitions], dtype=np.uint8)
    numbered = (demands["lane"], demands["part"], demands["user"], demands["association"], demands["array"])
    counts = np.array([column.max(initial=0) + 1 for column in numbered], dtype=np.int64)
    no_nodes = np.zeros((1, len(cores)), dtype=np.uint8)
    member = np.stack([each.member for each in requested.all]) if requested.all else no_nodes
    nodes = (cores, memory, gpus, weight, now, now.copy(), partitions)
    return NodeColumns(*nodes, member, _packed(member), counts, *_kinds_of(requested, no_nodes))


def empty_nodes(site: Site) -> IntArray:
    """Return the free capacity of empty nodes, all rows of `NodeColumns.now`."""
    sizes = [[getattr(node, name) for node in site.nodes] for name in ("cores", "memory", "gpus")]
    cores, memory, gpus = np.array(sizes, dtype=np.int64)
    capped = [np.full(len(cores), each.node_cores, dtype=np.int64) for each in site.partitions if each.node_cores]
    return np.stack([cores, np.zeros_like(cores), memory, gpus, *capped])


def _kinds_of(requested: NodeRequests, no_nodes: Bytes) -> tuple[IntArray, IntArray, Bytes]:
    """Return the rows of the kinds of nodes of each group (`NodeColumns.first`, `wanted`, `among`)."""
    first, wanted, among = [0], list[int](), list[Bytes]()
    for node_request in requested.all:
        for kind in node_request.kinds:
            rows = ((kind.member, 0), *kind.counts)
            among += [nodes for nodes, _ in rows]
            wanted += [many for _, many in rows]
        first.append(len(wanted))
    rows_of = np.stack(among) if among else no_nodes[:0]
    return np.array([*first, first[-1]], dtype=np.int64), np.array(wanted, dtype=np.int64), rows_of


def _packed(member: Bytes) -> IntArray:
    """Return the groups as bit masks, `WORD` nodes per integer."""
    groups, nodes = member.shape
    padded = np.pad(member.astype(np.int64), ((0, 0), (0, -nodes % WORD)))
    found: IntArray = (padded.reshape(groups, -1, WORD) << np.arange(WORD)).sum(axis=2)
    return found


def fixed_factors(
    requests: Requests, site: Site, owners: Sequence[Owner], demands: Demands
) -> tuple[Factors, IntArray]:
    """Return the constant priority factors, and the tier of each request."""
    most = max(max(each.job_factor for each in site.partitions), 1)
    of_partition = np.array([each.job_factor / most for each in site.partitions])
    tier = np.array([each.tier for each in site.partitions], dtype=np.int64)
    levels = {each.name: each.priority for each in site.qos}
    highest = max([*levels.values(), 1])
    qos = np.array([max(levels.get(owner.qos, 0), 0) / highest for owner in owners])
    counted = np.where(demands["exclusive"] > 0, np.maximum(demands["nodes"], 1) * _is_exclusive(site, demands), 0)
    size = size_factor(
        np.maximum(demands["cores"], counted),
        demands["nodes"],
        demands["limit"],
        all_cores=site.cores,
        all_nodes=len(site.nodes),
        priority=site.priority,
    )
    nice = label_of(requests, "priority_nice")[demands["request"]]
    nice = np.where(nice == UNKNOWN, 0, nice)
    zeros = np.zeros(len(owners))
    fixed = Factors(
        zeros, zeros, size, of_partition[demands["part"]], qos, nice, tres_priority(requests, site, demands)
    )
    return fixed, tier[demands["part"]]


def _is_exclusive(site: Site, demands: Demands) -> IntArray:
    """Return the cores of the smallest node in the partition that can hold a node's part of each whole-node entry.

    Whole nodes count with all their cores, as in ``sprio``. Later changes by Slurm, when it plans such a job on larger
    nodes, are not modelled.
    """
    on_node: IntArray = -(-demands["cores"] // np.maximum(demands["nodes"], 1))
    whole = np.flatnonzero(demands["exclusive"] > 0)
    _, first, alike = np.unique(demands["kind"][whole], return_index=True, return_inverse=True)
    smallest_first = sorted(site.nodes, key=lambda node: node.cores)
    sizes = []
    for entry in whole[first].tolist():
        names = set(site.partitions[demands["part"][entry]].nodes)
        need, memory = on_node[entry], demands["memory"][entry]
        fitting = (n.cores for n in smallest_first if n.cores >= need and n.memory >= memory and n.name in names)
        sizes.append(next(fitting, need))
    found = on_node.copy()
    found[whole] = np.array(sizes, dtype=np.int64)[alike.reshape(-1)]
    return found


def use_factors(site: Site, owners: Sequence[Owner]) -> list[float]:
    """Return the usage factor of each request."""
    factors = {each.name: each.usage_factor for each in site.qos}
    return [factors.get(owner.qos, 1.0) for owner in owners]
