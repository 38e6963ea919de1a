"""Free capacity of nodes: cores, memory and other countable resources, and each GPU by its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine.njit import njit
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.time import IntArray
from gridsim.policy.protocols import Placement

FREE, SHORT, NO_PLACE = range(3)
"""All resources were free; some were not free, but are taken; the placement is invalid, and nothing is taken."""


class Held(NamedTuple):
    """Held resources of nodes, as columns.

    Attributes
    ----------
    node : (u,) int64
        Numbers of the nodes.
    amounts : (r, u) int64
        Held amounts of each resource.
    shares : (s, 3) int64
        Index in *node*, GPU number and thousandths of each GPU share.
    """

    node: IntArray
    amounts: IntArray
    shares: IntArray


_NO_SHARES: IntArray = np.zeros((0, 3), dtype=np.int64)


class NodeCapacity:
    """Free capacity of each node.

    Parameters
    ----------
    capacity : Capacity
        Total capacity of the nodes.

    Attributes
    ----------
    left : (r, n) int64
        Free amounts by resource and node; negative while overcommitted within an instant.
    gpus : (n, g) int64
        Free thousandths of each GPU of each node; 0 for GPUs that the node does not have.
    absent : (n,) uint8
        Nodes that are currently unavailable.
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
        self._failed: set[tuple[int, int]] = set()  # nodes and numbers of absent GPUs
        self.absent: npt.NDArray[np.uint8] = np.zeros(count, dtype=np.uint8)

    def read(self, placement: Placement, cores: int, *, whole: bool = False) -> Held | str:
        """Return a placement on *cores* cores as columns, or a text with the reason why it is invalid.

        Parameters
        ----------
        whole : bool
            Whether the placement takes all resources of its nodes.
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
        gpus = ((u, n, gpu) for u, n in enumerate(node.tolist()) for gpu in range(self._counts[n]))
        held = [(u, gpu, WHOLE_GPU) for u, n, gpu in gpus if (n, gpu) not in self._failed]
        return Held(node, self._all[:, node], np.array(held, dtype=np.int64).reshape(-1, 3))

    def take(self, held: Held) -> int:
        """Take resources; return whether they were free (`FREE`, `SHORT` or `NO_PLACE`)."""
        return int(change_allocation(self.left, self.gpus, self._counts, self.absent, *held, -1))

    def give_back(self, held: Held) -> None:
        """Release resources."""
        change_allocation(self.left, self.gpus, self._counts, self.absent, *held, 1)

    def split(self, held: Held) -> tuple[Held, Held]:
        """Return the cores of an allocation, and all else."""
        cores, rest = np.zeros_like(held.amounts), held.amounts.copy()
        if "cores" in self._rows:
            row = self._rows["cores"]
            cores[row], rest[row] = held.amounts[row], 0
        return Held(held.node, cores, _NO_SHARES), Held(held.node, rest, held.shares)

    def change(self, node: int, gpu: int, sign: int) -> int:
        """Remove (-1) or restore (1) a node, or one of its GPUs (-1: none); return the change of the free cores.

        Requests that hold resources of an absent node keep them.
        """
        if gpu >= 0:
            self.gpus[node, gpu] += sign * WHOLE_GPU
            (self._failed.add if sign < 0 else self._failed.remove)((node, gpu))
            return 0
        self.absent[node] = sign < 0
        return sign * self.cores_left(node)

    def cores_left(self, node: int) -> int:
        """Return the number of free cores of a node, if it is present."""
        return int(self.left[self._rows["cores"], node]) if "cores" in self._rows else 0

    def cores_of(self, held: Held) -> list[tuple[int, int]]:
        """Return the nodes of an allocation with the number of cores on each."""
        if "cores" not in self._rows:
            return []
        return list(zip(held.node.tolist(), held.amounts[self._rows["cores"]].tolist(), strict=True))

    def placement_of(self, held: Held) -> Placement:
        """Return what is held as a placement."""
        gpus: list[list[tuple[int, int]]] = [[] for _ in held.node]
        for u, gpu, share in held.shares.tolist():
            gpus[u].append((gpu, share))
        return Placement(held.node, dict(zip(self.resources, held.amounts, strict=True)), gpus)

    def wrong(self, placement: Placement) -> str:
        """Return a text that explains why a placement is invalid on these nodes."""
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
        """Return a text with the taken resources that were not free."""
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
        """Place cores on the first nodes with free ones; None if too few cores are free."""
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
        """Return a placement on whole idle nodes, the first ones or the given ones; None if they are not idle."""
        able = (self.left == self._all).all(axis=0) & ~self._shared() & (self.absent == 0)
        node = np.flatnonzero(able)[:wanted] if isinstance(wanted, int) else np.array(wanted, dtype=np.int64)
        if (isinstance(wanted, int) and len(node) < wanted) or not able[node].all():
            return None
        gpus = [[(gpu, WHOLE_GPU) for gpu in range(count)] for count in self._counts[node].tolist()]
        amounts = {name: self._all[row, node] for name, row in self._rows.items()}
        return Placement(node.tolist(), amounts, gpus, [1] * len(node))

    def _shared(self) -> npt.NDArray[np.bool_]:
        """Return the nodes with a GPU that is held, entirely or in part."""
        there = np.where(np.arange(self.gpus.shape[1]) < self._counts[:, None], WHOLE_GPU, 0)
        found: npt.NDArray[np.bool_] = (self.gpus != there).any(axis=1)
        return found

    def over(self) -> str:
        """Return a text with the overcommitted resources; empty if there are none."""
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


# The docstrings contain the types of compiled functions, since the decorators hide them from a type checker.


@njit
def change_allocation(left, gpus, counts, absent, node, amounts, shares, sign):  # type: ignore[no-untyped-def]
    """Take resources of nodes (-1) or release them (1).

    Parameters
    ----------
    left : (r, n) int64
        Free amounts by resource and node.
    gpus : (n, g) int64
        Free thousandths of each GPU.
    counts : (n,) int64
        Number of GPUs of each node.
    absent : (n,) uint8
        Whether each node is unavailable.
    node : (u,) int64
        Distinct node numbers.
    amounts : (r, u) int64
        Amounts of each resource.
    shares : (s, 3) int64
        Index in *node*, GPU number and thousandths of each GPU share.
    sign : int
        -1 or 1.

    Returns
    -------
    int
        `FREE`, `SHORT` or `NO_PLACE`.
    """
    if sign < 0 and not _is_place(left, counts, absent, node, amounts, shares):
        return NO_PLACE
    short = False
    for u in range(node.shape[0]):
        for r in range(left.shape[0]):
            left[r, node[u]] += sign * amounts[r, u]
            short = short or left[r, node[u]] < 0
    for s in range(shares.shape[0]):
        n, gpu = node[shares[s, 0]], shares[s, 1]
        gpus[n, gpu] += sign * shares[s, 2]
        short = short or gpus[n, gpu] < 0
    return SHORT if short else FREE


@njit
def _is_place(left, counts, absent, node, amounts, shares):  # type: ignore[no-untyped-def]
    """Return whether all nodes are available and distinct, and the amounts and shares are valid."""
    for u in range(node.shape[0]):
        if node[u] < 0 or node[u] >= left.shape[1] or absent[node[u]]:
            return False
        if u > 0 and node[u] <= node[u - 1]:  # unsorted nodes are rare and few
            for other in range(u):
                if node[other] == node[u]:
                    return False
        for r in range(left.shape[0]):
            if amounts[r, u] < 0:
                return False
    for s in range(shares.shape[0]):
        n, gpu = node[shares[s, 0]], shares[s, 1]
        if gpu < 0 or gpu >= counts[n] or not 0 < shares[s, 2] <= WHOLE_GPU:
            return False
    return True
