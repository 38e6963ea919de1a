"""A piece of a job: tasks that are routed down the tree together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gridsim.policy.queue import Requests


class Piece:
    """Tasks of one job, in task order.

    Attributes
    ----------
    requests : sequence of int
        Rows of the tasks.
    widest : dict of str to int
        Cores of the widest task of each kind, kinds in order of first appearance.
    """

    __slots__ = ("_delay", "_table", "requests", "widest")

    def __init__(self, requests: Sequence[int], table: Requests, delay: Callable[[Sequence[int], Any], int]) -> None:
        self.requests, self._table, self._delay = requests, table, delay
        kinds, cores_of = table.kinds_of, table.needed_of
        widest: dict[str, int] = {}
        for request in requests:
            kind, cores = kinds[request], cores_of[request]
            if cores > widest.get(kind, 0):
                widest[kind] = cores
        self.widest = widest

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the tasks, in order of first appearance."""
        return tuple(self.widest)

    @property
    def work(self) -> int:
        """Work of all tasks: cores times estimates, core-microseconds."""
        table = self._table
        return sum(table.cores_of[request] * int(table.estimate[request]) for request in self.requests)

    def delay_to(self, cluster: Any) -> int:
        """Return the summed data delays from predecessors that are already placed, whole microseconds."""
        return self._delay(self.requests, cluster)

    def of_kind(self, kind: str) -> Piece:
        """Return the tasks of one kind as a piece."""
        kinds = self._table.kinds_of
        return Piece([request for request in self.requests if kinds[request] == kind], self._table, self._delay)

    def alone(self, request: int) -> Piece:
        """Return one task as a piece."""
        return Piece((request,), self._table, self._delay)
