"""What the nodes of a machine have left: cores, memory and whatever else can be counted, and each GPU by its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine.allocating import carry
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.time import IntArray
from gridsim.policy.protocols import Placement


class Held(NamedTuple):
    """What somebody holds of nodes, as columns.

    Attributes
    ----------
    node : (u,) int64
        Numbers of the nodes.
    amounts : (r, u) int64
        How much of each resource.
    shares : (s, 3) int64
        Place in *node*, number of the GPU and thousandths of each share of a GPU.
    """

    node: IntArray
    amounts: IntArray
    shares: IntArray


_NO_SHARES: IntArray = np.zeros((0, 3), dtype=np.int64)


class NodesLeft:
    """What nobody holds of each node.

    Parameters
    ----------
    capacity : Capacity
        What they have when nobody holds anything.

    Attributes
    ----------
    left : (r, n) int64
        By resource and node; below 0 while it is lent within an instant.
    gpus : (n, g) int64
        Thousandths of each GPU of each node; 0 for those that it does not have.
    absent : (n,) uint8
        Which are not there now.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.names, self.resources = capacity.nodes, tuple(capacity.amounts)
        count = len(self.names)
        self._rows = {name: row for row, name in enumerate(self.resources)}
        columns = list(capacity.amounts.values())
        self.left: IntArray = np.array(columns, dtype=np.int64).reshape(len(columns), count)
        self._counts: IntArray = capacity.gpus.astype(np.int64)
        most = int(self._counts.max(initial=0))
        self.gpus: IntArray = np.where(np.arange(most) < self._counts[:, None], WHOLE_GPU, 0).astype(np.int64)
        self._all: IntArray = self.left.copy()
        self.absent: npt.NDArray[np.uint8] = np.zeros(count, dtype=np.uint8)

    def read(self, placement: Placement, cores: int, *, whole: bool = False) -> Held | str:
        """A placement of so many cores as columns; in words why it is none.

        Parameters
        ----------
        whole : bool
            Whether it takes all that its nodes have.
        """
        for name, column in (("node", placement.node), *placement.amounts.items()):
            if len(column) and np.asarray(column).dtype.kind not in "iu":
                return f"its {name} are {list(column)}; whole numbers are needed"
        node: IntArray = np.array(placement.node, dtype=np.int64)
        amounts: IntArray = np.zeros((len(self.resources), len(node)), dtype=np.int64)
        for name, given in placement.amounts.items():
            row = self._rows.get(name)
            if row is None:
                return f"nodes have no {name}; they have {', '.join(self.resources)}"
            if len(given) != len(node):
                return f"its {name} are {list(given)}; one number from 0 for each of {len(node)} nodes is needed"
            amounts[row] = given
        placed = int(amounts[self._rows["cores"]].sum()) if "cores" in self._rows else 0
        if placed < cores:
            return f"it is placed on {placed} of them"
        if len(placement.gpus) not in (0, len(node)):
            return f"it has GPUs on {len(placement.gpus)} of {len(node)} nodes; an entry for each is needed"
        if not whole:
            shares = _shares(placement) if len(placement.gpus) else _NO_SHARES
            if shares.dtype.kind != "i":
                return f"its GPUs are {list(placement.gpus)}; whole numbers are needed"
            return Held(node, amounts, shares)
        if not ((node >= 0) & (node < len(self.names))).all():
            return self.wrong(placement)
        held = [(u, gpu, WHOLE_GPU) for u, n in enumerate(node.tolist()) for gpu in range(self._counts[n])]
        return Held(node, self._all[:, node], np.array(held, dtype=np.int64).reshape(-1, 3))

    def take(self, held: Held) -> int:
        """Take it; whether all was free (`gridsim.machine.allocating`)."""
        return int(carry(self.left, self.gpus, self._counts, self.absent, *held, -1))

    def give_back(self, held: Held) -> None:
        """Give it back."""
        carry(self.left, self.gpus, self._counts, self.absent, *held, 1)

    def wrong(self, placement: Placement) -> str:
        """Why a placement is none on these nodes, in words."""
        node, count = [int(each) for each in placement.node], len(self.names)
        if len(set(node)) < len(node):
            return "it is placed on a node twice"
        if not 0 <= min(node) <= max(node) < count:
            return f"it is placed on node {min(node) if min(node) < 0 else max(node)}; there are {count}, from 0"
        for each in node:
            if self.absent[each]:
                return f"node {self.names[each]} is absent"
        for name, amounts in placement.amounts.items():
            if min(amounts) < 0:
                return f"its {name} are {list(amounts)}; one number from 0 for each of {len(node)} nodes is needed"
        for each, held in zip(node, placement.gpus, strict=True):
            for gpu, share in held:
                if not 0 <= gpu < self._counts[each]:
                    return f"node {self.names[each]} has no GPU {gpu}; it has {self._counts[each]}, from 0"
                if not 0 < share <= WHOLE_GPU:
                    return f"{share} thousandths of a GPU cannot be held; 1 to {WHOLE_GPU} can"
        return ""

    def short(self, held: Held) -> str:
        """What was not free of what has been taken, in words."""
        over = np.argwhere((self.left[:, held.node] < 0) & (held.amounts > 0))
        if len(over):
            row, u = over[0]
            left = self.left[row, held.node[u]] + held.amounts[row, u]
            return f"only {left} {_unit(self.resources[row])} of node {self.names[held.node[u]]} are free"
        for u, gpu, share in held.shares.tolist():
            node = held.node[u]
            if self.gpus[node, gpu] < 0:
                left = self.gpus[node, gpu] + share
                return f"only {left} thousandths of GPU {gpu} of node {self.names[node]} are free"
        return ""

    def first(self, cores: int) -> Placement | None:
        """So many cores of the first nodes that have any; None where they have too few together."""
        if "cores" not in self._rows:
            return None
        node: list[int] = []
        given: list[int] = []
        for place, left in enumerate(self.left[self._rows["cores"]].tolist()):
            if cores and left > 0 and not self.absent[place]:
                node.append(place)
                given.append(min(cores, left))
                cores -= given[-1]
        return None if cores else Placement(node, {"cores": given}, tasks=given)

    def idle(self, wanted: int | Sequence[int]) -> Placement | None:
        """Whole nodes of which nobody holds anything, so many of the first or just those; None where there are none."""
        able = (self.left == self._all).all(axis=0) & ~self._shared() & (self.absent == 0)
        node = np.flatnonzero(able)[:wanted] if isinstance(wanted, int) else np.array(wanted, dtype=np.int64)
        if (isinstance(wanted, int) and len(node) < wanted) or not able[node].all():
            return None
        gpus = [[(gpu, WHOLE_GPU) for gpu in range(count)] for count in self._counts[node].tolist()]
        amounts = {name: self._all[row, node] for name, row in self._rows.items()}
        return Placement(node.tolist(), amounts, gpus, [1] * len(node))

    def _shared(self) -> npt.NDArray[np.bool_]:
        """Of which nodes somebody holds a GPU, or a part of one."""
        there = np.where(np.arange(self.gpus.shape[1]) < self._counts[:, None], WHOLE_GPU, 0)
        found: npt.NDArray[np.bool_] = (self.gpus != there).any(axis=1)
        return found

    def over(self) -> str:
        """What more is held than there is, in words; empty for nothing."""
        for row, node in np.argwhere(self.left < 0)[:1]:
            return f"{-self.left[row, node]} {_unit(self.resources[row])} more of node {self.names[node]}"
        for node, gpu in np.argwhere(self.gpus < 0)[:1]:
            return f"{-self.gpus[node, gpu]} thousandths more of GPU {gpu} of node {self.names[node]}"
        return ""


def _shares(placement: Placement) -> IntArray:
    held = [(u, gpu, share) for u, given in enumerate(placement.gpus) for gpu, share in given]
    return np.array(held).reshape(-1, 3) if held else _NO_SHARES


def _unit(name: str) -> str:
    return "MiB of memory" if name == "memory" else name
