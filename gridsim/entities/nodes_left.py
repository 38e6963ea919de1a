"""What the nodes of a machine have left: cores, memory and whatever else can be counted, and each GPU by its number."""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.policy.protocols import Placement

__all__ = ["NodesLeft"]


class NodesLeft:
    """What nobody holds of each node.

    Parameters
    ----------
    capacity : Capacity
        What they have when nobody holds anything.

    Attributes
    ----------
    left : dict of str to list of int
        By resource, one entry a node; below 0 while it is lent within an instant.
    gpus : list of list of int
        Thousandths of each GPU of each node.
    absent : bytearray
        Which are not there now.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.names = capacity.nodes
        self.left = {name: column.tolist() for name, column in capacity.amounts.items()}
        self.gpus = [[WHOLE_GPU] * count for count in capacity.gpus.tolist()]
        self.absent = bytearray(len(self.names))

    def wrong(self, placement: Placement, cores: int) -> str:
        """Why a placement of so many cores is none at all on these nodes, in words; empty where it is one."""
        node, count = placement.node, len(self.names)
        if not len(node) or len(set(node)) < len(node):
            return "it is placed on a node twice" if len(node) else "it is placed on no node"
        if not 0 <= min(node) <= max(node) < count:
            return f"it is placed on node {min(node) if min(node) < 0 else max(node)}; there are {count}, from 0"
        if any(self.absent) and any(self.absent[each] for each in node):
            return f"node {self.names[next(each for each in node if self.absent[each])]} is absent"
        for name, amounts in placement.amounts.items():
            if name not in self.left:
                return f"nodes have no {name}; they have {', '.join(self.left)}"
            if len(amounts) != len(node) or min(amounts) < 0:
                return f"its {name} are {list(amounts)}; one number from 0 for each of {len(node)} nodes is needed"
        placed = sum(placement.amounts.get("cores", ()))
        if placed < cores:
            return f"it is placed on {placed} of them"
        return self._no_gpus(placement) if len(placement.gpus) else ""

    def _no_gpus(self, placement: Placement) -> str:
        if len(placement.gpus) != len(placement.node):
            return f"it has GPUs on {len(placement.gpus)} of {len(placement.node)} nodes; an entry for each is needed"
        for node, held in zip(placement.node, placement.gpus, strict=True):
            for gpu, share in held:
                if not 0 <= gpu < len(self.gpus[node]):
                    return f"node {self.names[node]} has no GPU {gpu}; it has {len(self.gpus[node])}, from 0"
                if not 0 < share <= WHOLE_GPU:
                    return f"{share} thousandths of a GPU cannot be held; 1 to {WHOLE_GPU} can"
        return ""

    def take(self, placement: Placement) -> str:
        """Take what a placement says; what is not free of it, in words."""
        short = ""
        for name, amounts in placement.amounts.items():
            left = self.left[name]
            for node, amount in zip(placement.node, amounts, strict=True):
                left[node] -= amount
                if left[node] < 0:
                    short = short or f"only {left[node] + amount} {_unit(name)} of node {self.names[node]} are free"
        for node, held in zip(placement.node, placement.gpus, strict=False):
            gpus = self.gpus[node]
            for gpu, share in held:
                gpus[gpu] -= share
                if gpus[gpu] < 0:
                    only = f"only {gpus[gpu] + share} thousandths of GPU {gpu} of node {self.names[node]} are free"
                    short = short or only
        return short

    def give_back(self, placement: Placement) -> None:
        """Give back what a placement says."""
        for name, amounts in placement.amounts.items():
            left = self.left[name]
            for node, amount in zip(placement.node, amounts, strict=True):
                left[node] += amount
        for node, held in zip(placement.node, placement.gpus, strict=False):
            for gpu, share in held:
                self.gpus[node][gpu] += share

    def first(self, cores: int) -> Placement | None:
        """So many cores of the first nodes that have any; None where they have too few together."""
        node: list[int] = []
        given: list[int] = []
        for place, left in enumerate(self.left["cores"]):
            if cores and left > 0 and not self.absent[place]:
                node.append(place)
                given.append(min(cores, left))
                cores -= given[-1]
        return None if cores else Placement(node, {"cores": given}, tasks=given)

    def over(self) -> str:
        """What more is held than there is, in words; empty for nothing."""
        for name, left in self.left.items():
            if (least := min(left)) < 0:
                return f"{-least} {_unit(name)} more of node {self.names[left.index(least)]}"
        for node, gpus in enumerate(self.gpus):
            if (least := _least(gpus)) < 0:
                return f"{-least} thousandths more of GPU {gpus.index(least)} of node {self.names[node]}"
        return ""


def _unit(name: str) -> str:
    return "MiB of memory" if name == "memory" else name


def _least(values: Sequence[int]) -> int:
    return min(values, default=0)
