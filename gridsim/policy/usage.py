"""Usage in a tree of shares: how it loses weight, what every node used, and which leaf comes first by that.

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
    """Part of usage that counts after *elapsed* seconds; a *half_life* of 0 s lets nothing be forgotten.

    Examples
    --------
    >>> kept(200.0, half_life=100.0), kept(200.0, half_life=0.0)
    (0.25, 1.0)
    """
    return 2.0 ** (-elapsed / half_life) if half_life else 1.0


def weighted(begin: Any, end: Any, half_life: float) -> Any:
    """Seconds from *begin* to *end*, in the weight of instant 0: those before it weigh less, those after it more.

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
        For each leaf the nodes from below the root down, itself the last.
    parent : sequence of int
        Of each node; -1 for the root.
    part : (nodes,) float64
        Shares of each node over those of it and its siblings.
    counted : (nodes,) bool, optional
        Which nodes are siblings of others; all where left out.
    """

    def __init__(
        self,
        ways: Sequence[Sequence[int]],
        parent: Sequence[int],
        part: FloatArray,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.nodes = len(parent)
        # Below its own level a leaf stands before whatever is tied with it: one node more fills the rest of its way.
        self.ways: IntArray = np.full((len(ways), max(map(len, ways), default=0)), self.nodes, dtype=np.int64)
        for row, way in enumerate(ways):
            self.ways[row, : len(way)] = way
        self.parent: IntArray = np.array(parent, dtype=np.int64)
        self.part = part
        self._counted = np.ones(self.nodes, dtype=np.bool_) if counted is None else counted

    def usage(self, used: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Usage of each node, from that of the leaves: the sum of those at or below it."""
        total = np.zeros(self.nodes + 1, dtype=used.dtype)
        for column in self.ways.T:
            np.add.at(total, column, used)
        return total[:-1]

    def level_shares(self, used: FloatArray) -> FloatArray:
        """Level fair share of each node: its part of the shares over its part of the usage among its siblings."""
        total = self.usage(used)
        above = np.zeros(self.nodes + 1)
        np.add.at(above, self.parent[self._counted], total[self._counted])
        with np.errstate(divide="ignore", invalid="ignore"):
            level: FloatArray = np.where(total > 0, self.part / (total / above[self.parent]), np.inf)
        return np.where(self.part > 0, level, 0.0)

    def places(self, used: FloatArray) -> IntArray:
        """Place of each leaf, from 0: how many come before it in a walk down the tree by level fair share.

        Children of tied accounts are merged, tied leaves have the same place: that is the order of the leaves by their
        whole ways down, level by level.
        """
        levels = np.append(self.level_shares(used), np.inf)[self.ways]
        order = np.lexsort(tuple(-column for column in levels.T[::-1]))
        in_order = levels[order]
        new = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        return places
