"""Trackable resources (TRES): what an entry asks for, what it holds, what it is billed, what that makes of priorities.

Sources: tres.html; priority_multifactor.html, "TRES Factors"; slurm.conf(5), ``TRESBillingWeights``, ``MAX_TRES``.
"""

from __future__ import annotations

import math

from gridsim.model.site import Node, Site, SitePartition
from gridsim.testing.slurm.entries import WHOLE, Entry
from gridsim.testing.slurm.nodes import Held

__all__ = ["asked", "billed", "held_of", "tres_term"]


def asked(entry: Entry, name: str, site: Site) -> int:
    """How much of a resource an entry asks for: at least, until it is known where it runs."""
    nodes = max(entry.nodes, 1)
    if name == "billing":
        amounts = {each: asked(entry, each, site) for each in _weights(entry.partition)}
        return math.floor(_bill(amounts, entry.partition, site) + 1e-9)
    if name == "mem":
        return _memory(entry, site, nodes)
    return {"cpu": entry.cores, "node": nodes, "gres/gpu": entry.gpus * nodes}.get(name, 0)


def _memory(entry: Entry, site: Site, nodes: int) -> int:
    if not site.memory:
        node, core = (entry.job.numbers.get(label, -1) for label in ("memory_mb", "memory_core_mb"))
        return node * nodes if node >= 0 else max(core, 0) * entry.cores
    own = [node.memory for node in site.nodes if node.name in entry.partition.nodes]
    node = min(own, default=0) if entry.node_memory == WHOLE else entry.node_memory
    return node * nodes + entry.core_memory * entry.cores


def held_of(held: Held, name: str, site: Site) -> int:
    """How much of a resource a running entry has."""
    entry = held.entry
    if name == "billing":
        return math.floor(billed(held, site) + 1e-9)
    if name == "cpu":
        return sum(held.pieces.values())
    if name == "node":
        return len(held.pieces)
    if name == "mem" and site.memory:
        return sum(entry.memory_on(site.nodes[node].memory, cores) for node, cores in held.pieces.items())
    if name.startswith("gres/gpu"):
        there = [site.nodes[node] for node in held.pieces if _has(site.nodes[node], name)]
        return sum(node.gpus if entry.exclusive else entry.gpus for node in there)
    return asked(entry, name, site)


def _has(node: Node, name: str) -> bool:
    return name in ("gres/gpu", f"gres/gpu:{node.gpu_kind}")


def billed(held: Held, site: Site) -> float:
    """What a running entry is billed for."""
    partition = held.entry.partition
    return _bill({name: held_of(held, name, site) for name in _weights(partition)}, partition, site)


def _weights(partition: SitePartition) -> dict[str, float]:
    return {name: weight for name, weight in partition.billing or (("cpu", 1.0),) if name != "billing"}


def _bill(amounts: dict[str, int], partition: SitePartition, site: Site) -> float:
    """The sum, or the greatest of those of nodes and the sum of the others."""
    parts = {name: weight * amounts[name] for name, weight in _weights(partition).items()}
    mode = site.priority.billed
    added = [
        part
        for name, part in parts.items()
        if mode == "sum" or name.startswith("license/") or (mode == "max gres" and name.startswith("gres/"))
    ]
    greatest = (
        []
        if mode == "sum"
        else [
            part
            for name, part in parts.items()
            if not name.startswith("license/") and not (mode == "max gres" and name.startswith("gres/"))
        ]
    )
    return max(sum(added) + max([0.0, *greatest]), 0.0)


def _there(name: str, partition: SitePartition, site: Site) -> int:
    """How much a partition has of a resource, or the site where it is of the site."""
    nodes = [node for node in site.nodes if node.name in partition.nodes]
    if name.startswith("license/"):
        return site.licences.get(name.removeprefix("license/"), 0)
    if name == "billing":
        whole = {each: _there(each, partition, site) for each in _weights(partition)}
        return math.floor(_bill(whole, partition, site) + 1e-9)
    if name.startswith("gres/gpu"):
        return sum(node.gpus for node in nodes if _has(node, name))
    return sum({"cpu": node.cores, "mem": node.memory, "node": 1}[name] for node in nodes)


def tres_term(entry: Entry, site: Site) -> float:
    """``PriorityWeightTRES``: weighted parts of what there is that it asks for."""
    total = 0.0
    for name, weight in site.priority.tres:
        there = _there(name, entry.partition, site)
        total += weight * min(asked(entry, name, site) / there, 1.0) if there else 0.0
    return total
