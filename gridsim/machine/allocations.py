"""Who holds what of a machine of several resources, where and until when: the columns, and words to change them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gridsim.machine import node_profile as kernels
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.feasibility import first_place
from gridsim.machine.node_profile import SPARE, SPARES, NodeProfile, Workspace
from gridsim.machine.placing import Rule, lay
from gridsim.model.time import NEVER, IntArray


class Place(NamedTuple):
    """Where a request is laid down: nodes ascending, tasks on each, thousandths of each GPU there."""

    node: IntArray
    tasks: IntArray
    shares: IntArray


class Holdings:
    """What is free of a machine over time, who holds what of it, and where the next one would go.

    Parameters
    ----------
    asked : DemandClasses
        The machine, and what is asked of it.
    rule : Rule
        By which tasks are laid down.
    outside : callable, optional
        Lays a request down in the sketch of the holdings that it is given, for a rule that is not compiled.

    Attributes
    ----------
    floor, classes, sketch : tuple of arrays
        As compiled loops take them.
    """

    def __init__(
        self, asked: DemandClasses, rule: Rule, outside: Callable[[Holdings, int], None] | None = None
    ) -> None:
        self.asked, self.rule, self.outside = asked, tuple(rule), outside
        empty, totals = asked.empty, asked.totals
        nodes, width = empty.shape
        gpus = width - len(asked.columns.resources) - 1
        requests = len(asked.classes.of)
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
                meta=np.zeros(6, dtype=np.int64),
            )
        )
        self.classes = tuple(asked.classes)
        leaves = 1 << max(0, nodes - 1).bit_length()

        def column() -> IntArray:
            return np.zeros(nodes, dtype=np.int64)

        self.sketch = tuple(
            Workspace(
                low=np.zeros((nodes, width), dtype=np.int64),
                fits=column(),
                laid=column(),
                given=np.zeros((nodes, gpus), dtype=np.int64),
                scores=column(),
                sorted=column(),
                open=column(),
                tree=np.zeros(2 * leaves, dtype=np.int64),
                change=np.zeros((2, max(width, len(totals))), dtype=np.int64),
            )
        )
        self._laid, self._given, self._nodes = self.sketch[2], self.sketch[3], self.sketch[5]
        kernels.prepare(self.floor)

    def copy(self) -> Holdings:
        """The same of a machine of its own: what changes here changes nothing there.

        A rule that draws goes on drawing as if this were the only one.
        """
        twin = copy.copy(self)
        floor = NodeProfile(*self.floor)
        twin.floor = tuple(each if each is floor.capacity else each.copy() for each in floor)
        twin.sketch = tuple(each.copy() for each in self.sketch)
        twin._laid, twin._given, twin._nodes = twin.sketch[2], twin.sketch[3], twin.sketch[5]
        twin.outside = copy.deepcopy(self.outside)
        return twin

    def put(self, request: int, start: int, end: int, *, promise: bool = False) -> int:
        """Lay a request down where the last search has found that it can be, over ``[start, end)``; on how many nodes.

        Parameters
        ----------
        start, end : int
            Whole microseconds.
        promise : bool
            Whether it does not run yet.
        """
        if self.outside is None:
            lay(self.sketch, self.classes, self.rule, request)
        else:
            self.outside(self, request)
        while True:
            count = kernels.hold(self.floor, self.classes, self.sketch, request, start, end, int(promise))
            if count >= 0:
                return int(count)
            self.grow(-count)

    def put_at(self, request: int, place: Place, start: int, end: int, *, promise: bool = False) -> None:
        """Lay a request down where somebody else says, over ``[start, end)``, whole microseconds."""
        self._laid[:], self._given[:] = 0, 0
        self._laid[place.node], self._given[place.node] = place.tasks, place.shares
        while (count := kernels.hold(self.floor, self.classes, self.sketch, request, start, end, int(promise))) < 0:
            self.grow(-count)

    def learn(self) -> None:
        """Somebody asks for what nobody has asked for before (`DemandClasses.learn`)."""
        self.classes = tuple(self.asked.classes)

    def place(self, count: int) -> Place:
        """Where the last request was put, on so many nodes; a copy."""
        node = self._nodes[:count].copy()
        return Place(node, self._laid[node], self._given[node])

    def first_place(self, request: int, duration: int, begin: int, before: int = NEVER) -> int:
        """First instant from *begin* on, before *before*, at which a request can be placed for so long; -1 for none.

        Whole microseconds. `put` lays it down there.
        """
        return int(first_place(self.floor, self.classes, self.sketch, begin, request, duration, before, NEVER))

    def let_go(self, requests: IntArray, count: int, now: int) -> None:
        """The first *count* of some requests hold nothing from *now* on."""
        kernels.let_go(self.floor, self.classes, self.sketch, now, requests, count)

    def place_of(self, request: int) -> Place:
        """Where a request lies; a copy."""
        return self.place(int(kernels.where(self.floor, self.sketch, request)))

    def is_alike(self, other: Holdings, request: int) -> bool:
        """Whether a request lies at the same place from the same instant on as in other holdings."""
        return bool(kernels.is_alike(self.floor, other.floor, request))

    def until(self, request: int, end: int, now: int) -> None:
        """A request keeps its place until another end."""
        kernels.keep(self.floor, self.classes, self.sketch, now, request, end)

    def help(self, what: int, request: int) -> None:
        """Do what a compiled loop waits for: more room (1 to 3), or that a rule lays a request down in the sketch."""
        if what in (1, 2, 3):
            self.grow(what)
        else:
            assert self.outside is not None
            self.outside(self, request)

    def grow(self, what: int) -> None:
        """Twice the room of the totals and ends (1), of pieces (2), of the blocks of nodes (3)."""
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
