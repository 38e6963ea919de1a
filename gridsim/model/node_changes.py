"""By which nodes one machine differs from another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gridsim.model.capacity import NodeGroup

__all__ = ["NodeChange", "node_changes"]


class NodeChange(NamedTuple):
    """Nodes of one type that a machine has more or, below 0, fewer; *node* is one of them, without a name."""

    more: int
    node: NodeGroup

    def to_dict(self) -> dict[str, Any]:
        """The same in JSON's types."""
        it = self.node
        told = {"capacity": dict(it.capacity), "gpus": it.gpus, "gpu_kind": it.gpu_kind if it.gpus else None}
        return {"more": self.more, "node": told | {"features": list(it.features), "partitions": list(it.partitions)}}


def node_changes(before: Sequence[NodeGroup], after: Sequence[NodeGroup]) -> tuple[NodeChange, ...]:
    """Nodes by which two machines differ, by type: what a node has, its features and its partitions.

    Examples
    --------
    >>> thin = NodeGroup(group="thin", count=4, capacity={"cores": 8})
    >>> fat = NodeGroup(group="fat", count=2, capacity={"cores": 8}, gpus=2)
    >>> [(it.more, it.node.gpus) for it in node_changes([thin], [replace(thin, count=3, names=()), fat])]
    [(-1, 0), (2, 2)]
    """
    counts: Counter[NodeGroup] = Counter()
    for sign, groups in ((-1, before), (1, after)):
        for each in groups:
            counts[replace(each, group="", count=1, names=("",))] += sign * each.count
    return tuple(NodeChange(count, node) for node, count in counts.items() if count)
