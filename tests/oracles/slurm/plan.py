"""What a backfill pass has planned so far: whole nodes, from when to when.

Source: sinfo(1), state PLANNED; that time is divided into intervals, and when a job that does not fit is looked at
again, is what a real Slurm 22.05 wrote into its log (docs/background/slurm.md).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from gridsim.model.time import NEVER

__all__ = ["Plan"]


class Plan:
    """Nodes planned from an instant until before another; whole microseconds."""

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._planned: list[tuple[int, int, set[int]]] = []

    def add(self, begin: int, end: int, nodes: Collection[int]) -> None:
        self._planned.append((begin, end, set(nodes)))

    def nodes(self, start: int, end: int) -> set[int]:
        """Nodes that are planned at any time from *start* to *end*, that included."""
        return {node for begin, until, nodes in self._planned if begin <= end and until > start for node in nodes}

    def is_clear(self, start: int, end: int, nodes: Collection[int]) -> bool:
        """Whether none of the nodes is planned from *start* to *end*, that not included."""
        return not any(begin < end and until > start and taken & set(nodes) for begin, until, taken in self._planned)

    def _intervals(self) -> list[tuple[int, int, set[int]]]:
        """Time in intervals in which the same nodes are planned."""
        cuts = sorted({self._begin, *(cut for begin, end, _ in self._planned for cut in (begin, end))})
        found: list[tuple[int, int, set[int]]] = []
        for begin, end in zip(cuts, [*cuts[1:], NEVER], strict=True):
            taken = {node for first, last, nodes in self._planned if first <= begin < last for node in nodes}
            if found and found[-1][2] == taken:
                begin = found.pop()[0]
            found.append((begin, end, taken))
        return found

    def next_opening(self, start: int, end: int, members: list[bool]) -> int:
        """When to look again at a job that does not fit from *start* to *end*; `NEVER`: it is left out of the plan.

        At the first end of an interval after which nodes of its partition are free that were planned within it. Of the
        intervals that begin after *end* only the first one is looked at.
        """
        intervals = self._intervals()
        for (begin, until, taken), (_, _, after) in pairwise(intervals):
            if until <= start:
                continue
            if any(members[node] for node in taken - after):
                return until
            if begin > end:
                return NEVER
        return NEVER
