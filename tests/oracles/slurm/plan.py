"""Plan of a backfill cycle: whole nodes with the start and end of each planned period.

Sources: sinfo(1), state PLANNED; and the log of a real Slurm 22.05 (docs/background/slurm.md) for the division of time
into intervals and for the next examination of a job that does not fit.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from gridsim.model.time import NEVER

__all__ = ["Plan"]


class Plan:
    """Nodes planned from an instant to another, end excluded; whole microseconds."""

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._planned: list[tuple[int, int, set[int]]] = []

    def add(self, begin: int, end: int, nodes: Collection[int]) -> None:
        self._planned.append((begin, end, set(nodes)))

    def nodes(self, start: int, end: int) -> set[int]:
        """Return nodes that are planned at any time from *start* to *end*, inclusive."""
        return {node for begin, until, nodes in self._planned if begin <= end and until > start for node in nodes}

    def is_clear(self, start: int, end: int, nodes: Collection[int]) -> bool:
        """Return whether none of the nodes is planned from *start* to *end*, end excluded."""
        return not any(begin < end and until > start and taken & set(nodes) for begin, until, taken in self._planned)

    def _intervals(self) -> list[tuple[int, int, set[int]]]:
        """Return time in intervals in which the same nodes are planned."""
        cuts = sorted({self._begin, *(cut for begin, end, _ in self._planned for cut in (begin, end))})
        found: list[tuple[int, int, set[int]]] = []
        for begin, end in zip(cuts, [*cuts[1:], NEVER], strict=True):
            taken = {node for first, last, nodes in self._planned if first <= begin < last for node in nodes}
            if found and found[-1][2] == taken:
                begin = found.pop()[0]
            found.append((begin, end, taken))
        return found

    def next_opening(self, start: int, end: int, members: list[bool]) -> int:
        """Return when to examine a job again that does not fit from *start* to *end*; `NEVER`: the plan omits it.

        That is the first end of an interval that frees planned nodes of its partition. Of the intervals that begin
        after *end*, only the first one counts.
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
