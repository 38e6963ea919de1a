"""Usage in a tree of shares: its decay, the usage of each node, and the order of the leaves by usage.

References
----------
slurm.schedmd.com: fair_tree.html (level fair share, ties) and slurm.conf(5) for ``PriorityDecayHalfLife``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gridsim.model.time import FloatArray, IntArray

Number = TypeVar("Number", bound=np.generic)


def kept(elapsed: float, half_life: float) -> float:
    """Return the fraction of usage left after *elapsed* seconds; with a *half_life* of 0 s usage does not decay.

    Examples
    --------
    >>> kept(200.0, half_life=100.0), kept(200.0, half_life=0.0)
    (0.25, 1.0)
    """
    return 2.0 ** (-elapsed / half_life) if half_life else 1.0


def weighted(begin: Any, end: Any, half_life: float) -> Any:
    """Return seconds from *begin* to *end*, weighted relative to instant 0: earlier ones weigh less, later ones more.

    Examples
    --------
    >>> round(float(weighted(-1e6, 0.0, half_life=100.0) * np.log(2)), 9), weighted(0.0, 5.0, half_life=0.0)
    (100.0, 5.0)
    """
    if not half_life:
        return end - begin
    rate = np.log(2.0) / half_life
    return (np.exp(rate * end) - np.exp(rate * begin)) / rate


class UsageTree:
    """Nodes of a tree of shares as columns.

    Parameters
    ----------
    ways : sequence of sequence of int
        For each leaf, the path from below the root to the leaf itself.
    parent : sequence of int
        Parent of each node; -1 for the root.
    part : (nodes,) float64
        Shares of each node as a fraction of those of it and its siblings.
    counted : (nodes,) bool, optional
        Nodes that are siblings of others; all if omitted.
    """

    def __init__(
        self,
        ways: Sequence[Sequence[int]],
        parent: Sequence[int],
        part: FloatArray,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.nodes = len(parent)
        # A leaf above the deepest level precedes nodes tied with it: its path is padded with one extra node.
        self.ways: IntArray = np.full((len(ways), max(map(len, ways), default=0)), self.nodes, dtype=np.int64)
        for row, way in enumerate(ways):
            self.ways[row, : len(way)] = way
        self.parent: IntArray = np.array(parent, dtype=np.int64)
        self.part = part
        self._counted = np.ones(self.nodes, dtype=np.bool_) if counted is None else counted

    def usage(self, used: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the usage of each node from that of the leaves: the sum at or below it."""
        total = np.zeros(self.nodes + 1, dtype=used.dtype)
        for column in self.ways.T:
            np.add.at(total, column, used)
        return total[:-1]

    def level_shares(self, used: FloatArray) -> FloatArray:
        """Return the level fair share of each node: fraction of shares over fraction of usage among siblings."""
        total = self.usage(used)
        above = np.zeros(self.nodes + 1)
        np.add.at(above, self.parent[self._counted], total[self._counted])
        with np.errstate(divide="ignore", invalid="ignore"):
            level: FloatArray = np.where(total > 0, self.part / (total / above[self.parent]), np.inf)
        return np.where(self.part > 0, level, 0.0)

    def places(self, used: FloatArray) -> IntArray:
        """Return the rank of each leaf, from 0, in a traversal of the tree by level fair share.

        Children of tied accounts are merged, and tied leaves have the same rank: leaves are compared by their complete
        paths, level by level.
        """
        levels = np.append(self.level_shares(used), np.inf)[self.ways]
        order = np.lexsort(tuple(-column for column in levels.T[::-1]))
        in_order = levels[order]
        new = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        return places
