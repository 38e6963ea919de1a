"""Placements of requests on machines with nodes, recorded at starts and ends."""

from __future__ import annotations

from array import array

import numpy as np

from gridsim.model.allocations import UNKNOWN_TASKS, Allocations
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.protocols import Pieces, Placement


class PlacementRecorder:
    """Growing columns with one row per run and one row per piece of a run, from which the record is built."""

    def __init__(self) -> None:
        self._clusters: list[tuple[str, Capacity]] = []
        self._request, self._start, self._end, self._count = (array("q") for _ in range(4))
        self._node, self._tasks = array("q"), array("q")
        self._amounts: dict[str, array[int]] = {}
        self._gpus: list[tuple[int, int, int]] = []
        self._running: dict[int, int] = {}
        self._resumed: set[int] = set()  # rows that continue a run

    def add(self, cluster: str, capacity: Capacity) -> int:
        """Add the nodes of another cluster before anything runs; return the index of its first node."""
        first = sum(len(each.nodes) for _, each in self._clusters)
        self._clusters.append((cluster, capacity))
        for name in capacity.amounts:
            self._amounts.setdefault(name, array("q"))
        return first

    def begin(self, request: int, placement: Placement, first: int, now: int, how: str = "") -> None:
        """Record that a request starts at a placement on a cluster whose first node is number *first*.

        *how* is ``suspended`` for a run that keeps all but its cores, and ``resumed`` after that.
        """
        self.end(request, now)
        self._running[request] = len(self._request)
        if how:
            self._resumed.add(len(self._request))
        node, tasks, row = placement.node, placement.tasks, len(self._node)
        count = len(node)
        self._request.append(request)
        self._start.append(now)
        self._end.append(NEVER)
        self._count.append(count)
        self._node.extend([first + each for each in node] if first else node)
        self._tasks.extend(tasks if len(tasks) else [UNKNOWN_TASKS] * count)
        for name, column in self._amounts.items():
            none = how == "suspended" and name == "cores"
            column.extend([0] * count if none else placement.amounts.get(name, [0] * count))
        for held in placement.gpus:
            self._gpus.extend((row, gpu, share) for gpu, share in held)
            row += 1

    def end(self, request: int, now: int) -> None:
        """Record that a running request releases its resources."""
        row = self._running.pop(request, None)
        if row is not None:
            self._end[row] = now

    def fill(self, pieces: Pieces, start: IntArray, end: IntArray) -> None:
        """Record all runs of a single cluster at once, each request from its start to its end."""
        request = pieces.request
        columns = [self._request, self._start, self._end, self._count, self._node, self._tasks, *self._amounts.values()]
        none = np.zeros_like(request)
        values = [request, start[request], end[request], np.ones_like(request), pieces.node, pieces.tasks]
        values += [pieces.amounts.get(name, none) for name in self._amounts]
        for column, added in zip(columns, values, strict=True):
            column.frombytes(added.astype(np.int64, copy=False).tobytes())  # "extend" makes an object per number
        self._gpus.extend(map(tuple, pieces.gpus.tolist()))

    def allocations(self) -> Allocations | None:
        """Return all runs except those of length 0; None if no cluster has nodes."""
        if not self._clusters:
            return None
        count = _column(self._count)
        request, start, end = (np.repeat(_column(each), count) for each in (self._request, self._start, self._end))
        gpus: IntArray = np.array(self._gpus, dtype=np.int64).reshape(-1, 3)
        found = Allocations(
            nodes=self._names(),
            job=request,
            run=np.zeros(len(request), dtype=np.int64),
            node=_column(self._node),
            tasks=_column(self._tasks),
            amounts={name: _column(column) for name, column in self._amounts.items()},
            start_us=start,
            end_us=end,
            gpu_row=gpus[:, 0],
            gpu=gpus[:, 1],
            gpu_share=gpus[:, 2],
            resumed=np.repeat(np.isin(np.arange(len(count)), list(self._resumed)), count) if self._resumed else None,
        )
        return found.taken(np.flatnonzero(end > start))

    def _names(self) -> tuple[str, ...]:
        if len(self._clusters) == 1:
            return self._clusters[0][1].nodes
        return tuple(f"{name}/{node}" for name, each in self._clusters for node in each.nodes)


def _column(values: array[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
