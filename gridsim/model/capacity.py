"""What the nodes of a machine have: columns, one entry a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gridsim.model.time import IntArray

__all__ = ["WHOLE_GPU", "Capacity"]

WHOLE_GPU = 1000
"""Thousandths of a GPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Nodes in the order of their machine, by which placements number them.

    Attributes
    ----------
    nodes : tuple of str
        Their names.
    amounts : mapping of str to (n,) int64
        What each has of every resource: ``cores``; ``memory`` in MiB; others in units of their own.
    gpus : (n,) int64
        GPUs of each, numbered from 0.
    """

    nodes: tuple[str, ...]
    amounts: Mapping[str, IntArray]
    gpus: IntArray

    @property
    def cores(self) -> int:
        """Cores of all nodes together."""
        return int(self.amounts["cores"].sum())

    def __repr__(self) -> str:
        return f"<Capacity: {len(self.nodes):,} nodes, {self.cores:,} cores>"
