"""Allocations on a machine with several resources over time: columns, and operations on them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gridsim.machine import node_profile as kernels
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.feasibility import first_place
from gridsim.machine.node_profile import SPARE, SPARES, NodeProfile, Workspace
from gridsim.machine.placing import Rule, place_tasks
from gridsim.model.time import NEVER, IntArray


class Place(NamedTuple):
    """Placement of a request: nodes in ascending order, tasks on each, thousandths of each GPU there."""

    node: IntArray
    tasks: IntArray
    shares: IntArray


class Holdings:
    """Free capacity of a machine over time, its allocations, and the placement of the next request.

    Parameters
    ----------
    demands : DemandClasses
        The machine, and the requested resources.
    rule : Rule
        Placement rule for tasks.
    outside : callable, optional
        For a placement rule that is not compiled: places a request in the workspace of the given holdings.

    Attributes
    ----------
    floor, classes, sketch : tuple of arrays
        Node profile, demand classes and workspace, as arguments of compiled loops.
    """

    def __init__(
        self, demands: DemandClasses, rule: Rule, outside: Callable[[Holdings, int], None] | None = None
    ) -> None:
        self.demands, self.rule, self.outside = demands, tuple(rule), outside
        empty, totals = demands.empty, demands.totals
        nodes, width = empty.shape
        gpus = width - len(demands.columns.resources) - 1
        requests = len(demands.classes.of)
        self.floor: tuple[IntArray, ...] = tuple(
            NodeProfile(
                times=np.zeros(64, dtype=np.int64),
                totals=np.tile(totals, (64, 1)),
                ends=np.zeros(64, dtype=np.int64),
                node_times=np.zeros((nodes, 8), dtype=np.int64),
                node_free=np.zeros((nodes, 8, width), dtype=np.int64),
                nodes=np.zeros((3, nodes), dtype=np.int64),
                pieces=np.zeros((3, 64 + nodes), dtype=np.int64),
                shares=np.zeros((64 + nodes, gpus), dtype=np.int64),
                holds=np.zeros((4, requests), dtype=np.int64),
                capacity=empty,
                meta=np.zeros(7, dtype=np.int64),
            )
        )
        self.classes = tuple(demands.classes)
        leaves = 1 << max(0, nodes - 1).bit_length()

        def column() -> IntArray:
            return np.zeros(nodes, dtype=np.int64)

        self.sketch = tuple(
            Workspace(
                low=np.zeros((nodes, width), dtype=np.int64),
                fits=column(),
                placed=column(),
                given=np.zeros((nodes, gpus), dtype=np.int64),
                scores=column(),
                sorted=column(),
                open=column(),
                tree=np.zeros(2 * leaves, dtype=np.int64),
                change=np.zeros((2, max(width, len(totals))), dtype=np.int64),
            )
        )
        self._placed, self._given, self._nodes = self.sketch[2], self.sketch[3], self.sketch[5]
        kernels.prepare(self.floor)

    def copy(self) -> Holdings:
        """Return an independent copy.

        The copy of a random placement rule continues from the current state of its random stream.
        """
        twin = copy.copy(self)
        floor = NodeProfile(*self.floor)
        twin.floor = tuple(each if each is floor.capacity else each.copy() for each in floor)
        twin.sketch = tuple(each.copy() for each in self.sketch)
        twin._placed, twin._given, twin._nodes = twin.sketch[2], twin.sketch[3], twin.sketch[5]
        twin.outside = copy.deepcopy(self.outside)
        return twin

    def put(self, request: int, start: int, end: int, *, promise: bool = False) -> int:
        """Place a request where the last search found it feasible, over ``[start, end)``; return the number of nodes.

        Parameters
        ----------
        start, end : int
            Whole microseconds.
        promise : bool
            Whether this is a reservation, not a running request.
        """
        if self.outside is None:
            place_tasks(self.sketch, self.classes, self.rule, request)
        else:
            self.outside(self, request)
        return self._hold(request, start, end, promise)

    def put_at(self, request: int, place: Place, start: int, end: int, *, promise: bool = False) -> None:
        """Place a request at a given place over ``[start, end)``, whole microseconds."""
        self._placed[:], self._given[:] = 0, 0
        self._placed[place.node], self._given[place.node] = place.tasks, place.shares
        self._hold(request, start, end, promise)

    def _hold(self, request: int, start: int, end: int, promise: bool) -> int:
        """Allocate the placement in the workspace; return the number of nodes."""
        while (count := kernels.hold(self.floor, self.classes, self.sketch, request, start, end, int(promise))) < 0:
            self.grow(-count)
        return int(count)

    def learn(self) -> None:
        """Use the current demand classes after a request with a new demand was added (`DemandClasses.learn`)."""
        self.classes = tuple(self.demands.classes)

    def place(self, count: int) -> Place:
        """Return a copy of the last placement, which has *count* nodes."""
        node = self._nodes[:count].copy()
        return Place(node, self._placed[node], self._given[node])

    def first_place(self, request: int, duration: int, begin: int, before: int = NEVER) -> int:
        """Return the first time in ``[begin, before)`` at which a request can be placed for *duration*; -1 for none.

        Times are whole microseconds. `put` places the request there.
        """
        return int(first_place(self.floor, self.classes, self.sketch, begin, request, duration, before, NEVER))

    def release_many(self, requests: IntArray, count: int, now: int) -> None:
        """Release the resources of the first *count* requests from *now* on."""
        kernels.release_many(self.floor, self.classes, self.sketch, now, requests, count)

    def place_of(self, request: int) -> Place:
        """Return a copy of the placement of a request."""
        return self.place(int(kernels.where(self.floor, self.sketch, request)))

    def is_same_hold(self, other: Holdings, request: int) -> bool:
        """Return whether a request has the same placement and start in other holdings."""
        return bool(kernels.is_same_hold(self.floor, other.floor, request))

    def until(self, request: int, end: int, now: int) -> None:
        """Change the end of a request and keep its placement."""
        kernels.keep(self.floor, self.classes, self.sketch, now, request, end)

    def help(self, what: int, request: int) -> None:
        """Do what a compiled loop requires: grow arrays (codes 1 to 3), or place a request in the workspace."""
        if what in (1, 2, 3):
            self.grow(what)
        else:
            assert self.outside is not None
            self.outside(self, request)

    def grow(self, what: int) -> None:
        """Double the arrays of totals and ends (1), of pieces (2), or of the blocks of nodes (3)."""
        floor = NodeProfile(*self.floor)
        if what == 1:
            floor = floor._replace(times=_twice(floor.times), totals=_twice(floor.totals), ends=_twice(floor.ends))
        elif what == 2:
            before = floor.pieces.shape[1]
            pieces = np.concatenate([floor.pieces, np.zeros_like(floor.pieces)], axis=1)
            pieces[0, before:] = np.arange(before + 1, 2 * before + 1)
            pieces[0, -1] = floor.meta[SPARE]
            floor.meta[SPARE] = before
            floor.meta[SPARES] += before
            floor = floor._replace(pieces=pieces, shares=_twice(floor.shares))
        else:
            times = np.concatenate([floor.node_times, np.zeros_like(floor.node_times)], axis=1)
            free = np.concatenate([floor.node_free, np.zeros_like(floor.node_free)], axis=1)
            floor = floor._replace(node_times=times, node_free=free)
        self.floor = tuple(floor)


def _twice(column: IntArray) -> IntArray:
    return np.concatenate([column, np.zeros_like(column)])
