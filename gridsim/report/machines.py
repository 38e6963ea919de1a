"""Machines of the policies of a comparison, where they differ: how large each is, and by which nodes and licences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridsim.model.capacity import GPU, NodeGroup
from gridsim.report.whatif_parts import node_text
from gridsim.words import counted, listed, number

__all__ = ["caveats"]


def caveats(info: Mapping[str, Any]) -> list[str]:
    """That policies run on different machines, and how these differ from the machine of the first site.

    Examples
    --------
    >>> node = {"capacity": {"cores": 4}, "gpus": 0, "gpu_kind": None, "features": [], "partitions": ["batch"]}
    >>> bigger = {"cores": 40, "nodes": [{"more": 2, "node": node}], "pools": {}}
    >>> for line in caveats({"machines": {"now": {"cores": 32, "nodes": [], "pools": {}}, "bigger": bigger}}):
    ...     print(line)
    The policies run on different machines: now on 32 cores and bigger on 40 cores; utilisation is of each policy's own.
    Compared with now, the machine of bigger has 2 more nodes of 4 cores, in partition batch.
    """
    machines = info.get("machines", {})
    if not machines:
        return []
    sizes = listed([f"{label} on {counted(each['cores'], 'core')}" for label, each in machines.items()])
    told = [f"The policies run on different machines: {sizes}; utilisation is of each policy's own."]
    base = next(iter(machines))
    for label, each in machines.items():
        nodes = [(it["more"], node_text(_node(it["node"]))) for it in each["nodes"]]
        words = [f"{counted(abs(n), 'more node' if n > 0 else 'fewer node')} of {text}" for n, text in nodes]
        pools = [f"{number(abs(n))} {'more' if n > 0 else 'fewer'} {name}" for name, n in each["pools"].items()]
        if words or pools:
            told.append(f"Compared with {base}, the machine of {label} has {'; '.join([*words, *pools])}.")
    return told


def _node(it: Mapping[str, Any]) -> NodeGroup:
    return NodeGroup(
        group="",
        capacity=it["capacity"],
        gpus=it["gpus"],
        gpu_kind=it["gpu_kind"] or GPU,
        features=tuple(it["features"]),
        partitions=tuple(it["partitions"]),
    )
