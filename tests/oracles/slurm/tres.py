"""Trackable resources (TRES): requests, allocations, billing, and priority factors of an entry.

Sources: tres.html; priority_multifactor.html, "TRES Factors"; slurm.conf(5), ``TRESBillingWeights``, ``MAX_TRES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.site.parameters import licences_requested
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import WHOLE, Entry
from tests.oracles.slurm.nodes import Held

__all__ = ["Used", "asked", "billed", "held_of", "seconds", "tres_term"]

SECOND = 1_000_000


def asked(entry: Entry, name: str, site: Site) -> int:
    """Return the requested amount of a resource: the minimum, until the nodes are known."""
    nodes = max(entry.nodes, 1)
    if name == "billing":
        amounts = {each: asked(entry, each, site) for each in _weights(entry.partition)}
        return math.floor(_bill(amounts, entry.partition, site) + 1e-9)
    if name == "mem":
        return _memory(entry, site, nodes)
    if name.startswith("license/"):
        return licences_requested(entry.job.words.get("licenses", "")).get(name.removeprefix("license/"), 0)
    if name.startswith("gres/gpu:"):
        return entry.gpus * nodes if name == f"gres/gpu:{entry.job.words.get('gpu_type', '')}" else 0
    return {"cpu": entry.cores, "node": nodes, "gres/gpu": entry.gpus * nodes}[name]


def _memory(entry: Entry, site: Site, nodes: int) -> int:
    if not site.memory:
        node, core = (entry.job.numbers.get(label, -1) for label in ("memory_mb", "memory_core_mb"))
        return node * nodes if node >= 0 else max(core, 0) * entry.cores
    own = [node.memory for node in site.nodes if node.name in entry.partition.nodes]
    node = min(own, default=0) if entry.node_memory == WHOLE else entry.node_memory
    return node * nodes + entry.core_memory * entry.cores


def held_of(held: Held, name: str, site: Site) -> int:
    """Return the allocated amount of a resource of a running entry."""
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
    """Return the billing of a running entry."""
    partition = held.entry.partition
    return _bill({name: held_of(held, name, site) for name in _weights(partition)}, partition, site)


def _weights(partition: SitePartition) -> dict[str, float]:
    return {name: weight for name, weight in partition.billing or (("cpu", 1.0),) if name != "billing"}


def _bill(amounts: dict[str, int], partition: SitePartition, site: Site) -> float:
    """Return the sum, or the largest value of node resources plus the sum of the others."""
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


def _factor(entry: Entry, site: Site) -> float:
    """Return the usage factor: that of the job's QOS, not of its partition's (sacctmgr(1), ``UsageFactor``)."""
    return {each.name: each.usage_factor for each in site.qos}.get(entry.qos, 1.0)


def seconds(time: int, entry: Entry, site: Site) -> int:
    """Return a time in whole seconds, as it counts for the use of an entry."""
    return math.floor(time // SECOND * _factor(entry, site) + 1e-9)


@dataclass
class Used:
    """Use up to the last calculation of priorities, and use of entries that ended after it.

    `runs` are current and past allocations, each with its start and, if it is over, its end.
    """

    site: Site
    runs: list[tuple[Held, int, int]] = field(default_factory=list)
    first: int = 0
    at: int = 0

    def of(self, name: str, counts: Callable[[Entry], bool], brought: float, *, forgotten: bool) -> int:
        """Return whole unit-seconds of a resource in counted use, halved for each half-life if use decays."""
        half_life = self.site.priority.half_life if forgotten else 0
        billed = any(each.billing for each in self.site.partitions)
        spent = brought if name == "billing" or (name == "cpu" and not billed) else 0.0
        spent *= 2.0 ** (-(self.at - self.first) / half_life) if half_life else 1.0
        for held, begin, end in self.runs:
            if counts(held.entry):
                time = weight(begin, end if end < NEVER else self.at, self.at, half_life)
                spent += held_of(held, name, self.site) * _factor(held.entry, self.site) * time
        return math.floor(spent + 1e-6)

    def left(self, held: Held) -> int:
        """Return the seconds for which a running entry may still count, as of the last calculation."""
        return seconds(max(held.began + held.entry.limit - max(self.at, held.began), 0), held.entry, self.site)


def weight(begin: int, end: int, at: int, half_life: int) -> float:
    """Return the seconds from *begin* to *end*, each halved for each half-life of its age."""
    if end <= begin:
        return 0.0
    if not half_life:
        return (end - begin) / SECOND
    scale = half_life / SECOND / math.log(2.0)
    return scale * (math.exp2(-(at - end) / half_life) - math.exp2(-(at - begin) / half_life))


def _there(name: str, partition: SitePartition, site: Site) -> int:
    """Return the amount of a resource of a partition, or of the site for a site resource."""
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
    """Return ``PriorityWeightTRES``: the weighted requested shares of the available resources."""
    total = 0.0
    for name, weight in site.priority.tres:
        there = _there(name, entry.partition, site)
        total += weight * min(asked(entry, name, site) / there, 1.0) if there else 0.0
    return total
