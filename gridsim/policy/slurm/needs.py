"""What requests ask for, and whose they are: from labels and a site to the columns that the passes work on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.site import Association, Site
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.fair_tree import FairShares
from gridsim.policy.slurm.limits import Owner
from gridsim.policy.slurm.nodes import Asks, Machine
from gridsim.policy.slurm.priority import Factors, size_factor

__all__ = [
    "asks_of",
    "closed_of",
    "fixed_factors",
    "label_of",
    "machine_of",
    "owners_of",
    "rows_of_numbers",
    "shares_of",
    "use_factors",
]

SECOND = 1_000_000


def label_of(requests: Requests, name: str) -> IntArray:
    """A label column; `UNKNOWN` where the workload has none."""
    column = requests.labels.get(name)
    return np.full(len(requests), UNKNOWN, dtype=np.int64) if column is None else column


def _named(requests: Requests, label: str) -> list[str]:
    """Names of a label, empty where unknown; numbers where the source has no names."""
    names = requests.names.get(label)
    found = {
        code: ("" if code < 0 else names[code] if names is not None else str(code))
        for code in np.unique(label_of(requests, label)).tolist()
    }
    return [found[code] for code in label_of(requests, label).tolist()]


def rows_of_numbers(requests: Requests) -> dict[int, int]:
    """Last request of each job by its number in the source."""
    return {number: row for row, number in enumerate(requests.number.tolist())}


def owners_of(requests: Requests, site: Site) -> list[Owner]:
    """Whose each request is, with the site's defaults where it does not say."""
    first: dict[str, Association] = {}
    own: dict[tuple[str, str], Association] = {}
    for each in site.associations:
        if each.user:
            first.setdefault(each.user, each)
            own[each.account, each.user] = each
    partition_qos = {partition.name: partition.qos for partition in site.partitions}
    normal = "normal" if any(qos.name == "normal" for qos in site.qos) else ""
    made: dict[tuple[Any, ...], Owner] = {}
    columns = (
        _named(requests, "account"),
        _named(requests, "user"),
        _named(requests, "qos"),
        _partition_names(requests, site),
        label_of(requests, "array").tolist(),
        label_of(requests, "array_limit").tolist(),
    )
    owners = []
    for key in zip(*columns, strict=True):
        if key not in made:
            account, user, qos, partition, array, limit = key
            if not account and user in first:
                account = first[user].account
            if not qos:
                known = own.get((account, user))
                qos = (known.default_qos if known is not None else "") or normal
            made[key] = Owner(account or "root", user, qos, partition_qos[partition], array, limit)
        owners.append(made[key])
    return owners


def _partition_names(requests: Requests, site: Site) -> list[str]:
    """Partition of each request: of several that it asks for, the first.

    Raises
    ------
    InputError
        For a partition that the site does not have.
    """
    known = {partition.name for partition in site.partitions}
    names = [name.partition(",")[0] or site.default_partition for name in _named(requests, "partition")]
    unknown = Counter(name for name in names if name not in known)
    if unknown:
        name, count = unknown.most_common(1)[0]
        told = f"'{name}' of {count} jobs is no partition of the site; known: {', '.join(sorted(known))}"
        raise InputError(told, field="partition")
    return names


def shares_of(site: Site, owners: Sequence[Owner]) -> tuple[FairShares, IntArray]:
    """The tree of shares, with everybody who is not in it added with one share, and the leaf of each request."""
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


def asks_of(requests: Requests, site: Site, owners: Sequence[Owner]) -> Asks:
    """What requests ask for, by their labels and by what their partition says."""
    number = {partition.name: row for row, partition in enumerate(site.partitions)}
    partition = np.array([number[name] for name in _partition_names(requests, site)], dtype=np.int64)
    alone = np.array([each.exclusive or site.whole_nodes for each in site.partitions])
    exclusive = ((label_of(requests, "exclusive") > 0) | alone[partition]).astype(np.uint8)
    nodes = np.maximum(label_of(requests, "nodes"), 0)
    memory = np.maximum(label_of(requests, "memory_mb"), 0) if site.memory else np.zeros_like(nodes)
    cores = np.maximum(requests.cores, nodes)
    users = {name: row for row, name in enumerate(dict.fromkeys(owner.user for owner in owners))}
    pairs = {pair: row for row, pair in enumerate(dict.fromkeys((owner.account, owner.user) for owner in owners))}
    user = np.array([users[owner.user] for owner in owners], dtype=np.int64)
    association = np.array([pairs[owner.account, owner.user] for owner in owners], dtype=np.int64)
    columns = [cores, nodes, memory, exclusive.astype(np.int64), partition]
    size, shape = _kinds(columns), _kinds([*columns, requests.estimate])
    return Asks(cores, nodes, memory, exclusive, partition, requests.estimate, shape, size, user, association)


def _kinds(columns: Sequence[IntArray]) -> IntArray:
    """Equal numbers for equal rows."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def machine_of(site: Site) -> Machine:
    """Empty nodes."""
    cores = np.array([node.cores for node in site.nodes], dtype=np.int64)
    memory = np.array([node.memory for node in site.nodes], dtype=np.int64)
    weight = np.unique([node.weight for node in site.nodes], return_inverse=True)[1].astype(np.int64)
    member = np.array(
        [[node.name in names for node in site.nodes] for names in (set(each.nodes) for each in site.partitions)]
    )
    jobs = np.zeros(len(cores), dtype=np.int64)
    return Machine(cores, memory, weight, cores.copy(), memory.copy(), jobs, member.astype(np.uint8))


def closed_of(site: Site) -> IntArray:
    """Node, start and end of each node of each reservation."""
    number = {node.name: row for row, node in enumerate(site.nodes)}
    rows = [(number[name], each.start, each.end) for each in site.reservations for name in each.nodes]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def fixed_factors(requests: Requests, site: Site, owners: Sequence[Owner], asks: Asks) -> tuple[Factors, IntArray]:
    """Factors that do not change, and the tier of each request."""
    most = max(max(each.job_factor for each in site.partitions), 1)
    of_partition = np.array([each.job_factor / most for each in site.partitions])
    tier = np.array([each.tier for each in site.partitions], dtype=np.int64)
    levels = {each.name: each.priority for each in site.qos}
    highest = max([*levels.values(), 1])
    qos = np.array([max(levels.get(owner.qos, 0), 0) / highest for owner in owners])
    # Whole nodes count as such, as sprio shows.
    whole = np.array([min(node.cores for node in site.nodes if node.name in each.nodes) for each in site.partitions])
    counted = np.where(asks.exclusive > 0, np.maximum(asks.nodes, 1) * whole[asks.partition], 0)
    size = size_factor(
        np.maximum(asks.cores, counted),
        asks.nodes,
        asks.limit,
        all_cores=site.cores,
        all_nodes=len(site.nodes),
        priority=site.priority,
    )
    nice = label_of(requests, "priority_nice")
    nice = np.where(nice == UNKNOWN, 0, nice)
    zeros = np.zeros(len(owners))
    fixed = Factors(zeros, zeros, size, of_partition[asks.partition], qos, nice)
    return fixed, tier[asks.partition]


def use_factors(site: Site, owners: Sequence[Owner]) -> list[float]:
    """How much of its use counts for each request."""
    factors = {each.name: each.usage_factor for each in site.qos}
    return [factors.get(owner.qos, 1.0) for owner in owners]
