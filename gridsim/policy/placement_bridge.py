"""Bridge between a scheduler and the allocations over time: placement rules, and placements as objects."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.errors import call, policy_error
from gridsim.machine import verbs
from gridsim.machine.allocations_over_time import Holdings, Place
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.node_profile import EXCLUSIVE, GPU, Classes, NodeProfile, Workspace
from gridsim.machine.nodes import FULL, LOGGED, PLACES, RISES, ROW, Log
from gridsim.machine.nodes import Nodes as Machine
from gridsim.machine.placing import OUTSIDE, Rule, ready, take
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.capabilities import begin, picks_gpus, scores_in_columns
from gridsim.policy.placement import First
from gridsim.policy.protocols import Absence, CapacityChange, Nodes, Pieces, Placement
from gridsim.policy.queue import ClusterView


def holdings_of(cluster: ClusterView, rule: Any, rng: Generator) -> Holdings:
    """Return empty allocations of a cluster, with a placement rule."""
    asked = cluster.demands
    assert asked is not None
    begin(rule, rng)
    if scores_in_columns(rule):
        return Holdings(asked, rule.columns(asked))
    columns = First().columns(asked)
    columns.what[0] = OUTSIDE
    return Holdings(asked, columns, _UserRule(rule, asked))


def placement_at(holdings: Holdings, request: int, place: Place) -> Placement:
    """Return the allocation of a request on its nodes as a `Placement`."""
    classes = Classes(*holdings.classes)
    at = classes.of[request]
    exclusive, gpu = classes.shape[at, EXCLUSIVE], classes.shape[at, GPU]
    names, each, tasks = holdings.demands.columns.resources, classes.each[at], place.tasks
    if exclusive:
        whole = holdings.demands.columns.nodes[place.node]
        amounts = {name: whole[:, r] for r, name in enumerate(names)}
    else:
        amounts = {name: tasks * asked for name, asked in zip(names, each.tolist(), strict=True) if asked}
    if not gpu:
        return Placement(place.node, amounts, (), tasks)
    gpus = [[(number, share) for number, share in enumerate(node) if share] for node in place.shares.tolist()]
    return Placement(place.node, amounts, gpus, tasks)


def pieces_of(holdings: Holdings, request: IntArray, place: Place) -> Pieces:
    """Return the allocations of many requests, one row per request and node."""
    classes, columns = Classes(*holdings.classes), holdings.demands.columns
    at = classes.of[request]
    amounts = np.where(
        classes.shape[at, EXCLUSIVE, None] > 0, columns.nodes[place.node], place.tasks[:, None] * classes.each[at]
    )
    row, gpu = np.nonzero(place.shares * (classes.shape[at, GPU, None] > 0))
    return Pieces(
        request,
        place.node,
        place.tasks,
        dict(zip(columns.resources, amounts.T, strict=True)),
        np.stack([row, gpu, place.shares[row, gpu]], axis=1),
    )


def place_of(holdings: Holdings, placement: Placement) -> Place:
    """Return a placement as columns: tasks on each node, thousandths of each GPU on it."""
    node: IntArray = np.array(placement.node, dtype=np.int64)
    tasks: IntArray = np.array(placement.tasks, dtype=np.int64)
    most = int(holdings.demands.columns.gpus.max(initial=0))
    shares: IntArray = np.zeros((len(node), most), dtype=np.int64)
    for at, held in enumerate(placement.gpus):
        for gpu, share in held:
            shares[at, gpu] = share
    return Place(node, tasks, shares)


class PlacementLog:
    """Placements of requests started by compiled loops, and requests of the loops to Python.

    Parameters
    ----------
    holdings : Holdings
        Allocations over time.

    Attributes
    ----------
    log, blocked, fresh, state
        As in `gridsim.machine.nodes.Nodes`, the log as a plain tuple.
    """

    def __init__(self, holdings: Holdings) -> None:
        nodes, gpus = Workspace(*holdings.sketch).given.shape
        size = 256 + 2 * nodes
        self.holdings = holdings
        self.state: IntArray = np.zeros(PLACES, dtype=np.int64)
        self.state[RISES] = 1
        self.blocked: IntArray = np.zeros(len(holdings.demands.classes.shape), dtype=np.int64)
        self.fresh: IntArray = np.zeros((2, 2, nodes), dtype=np.int64)
        self.fresh[:] = [[NEVER], [-1]]  # no capacity was released: the first instant after the last
        self.log = tuple(Log(np.zeros((3, size), dtype=np.int64), np.zeros((size, gpus), dtype=np.int64)))
        self._taken: list[tuple[IntArray, Place]] = []
        self._placements: dict[int, Placement] = {}

    def copy(self) -> PlacementLog:
        """Return an independent copy."""
        self.note()  # the log is not copied
        twin = PlacementLog(self.holdings.copy())
        twin.state, twin.fresh = self.state.copy(), self.fresh.copy()
        twin._placements = self._placements.copy()
        return twin

    @property
    def columns(self) -> tuple[Any, ...]:
        """The arrays of `gridsim.machine.nodes.Nodes` as they are now, as plain tuples."""
        held = self.holdings
        return held.floor, held.classes, held.sketch, held.rule, self.log, self.blocked, self.fresh, self.state

    def learn(self) -> None:
        """Add a demand that was unknown when the run began (`Holdings.learn`)."""
        self.holdings.learn()
        classes = len(self.holdings.demands.classes.shape)
        if classes > len(self.blocked):
            self.state[RISES] += 1  # no class is known to be blocked
            self.blocked = np.zeros(2 * classes, dtype=np.int64)

    def change(self, change: CapacityChange, now: int) -> None:
        """Remove the capacity of absent nodes and GPUs, and restore that of returned ones."""
        for absence in change.restored:
            verbs.restore(self._machine(absence), now, *absence[:-1])
        for absence in (*change.lost, *change.held):
            while code := verbs.remove(self._machine(absence), now, *absence[:-1]):
                self.holdings.grow(code)

    def _machine(self, absence: Absence) -> Machine:
        """Return the machine, with the absent amounts as the capacity of the node if only these are absent."""
        held, own = self.holdings, (self.blocked, self.fresh, self.state)
        rule: Any = held.rule
        floor = NodeProfile(*held.floor)
        if absence.amounts is not None:
            floor = floor._replace(capacity=np.zeros_like(floor.capacity))
            floor.capacity[absence.node, :-1] = absence.amounts
        profile = floor, Classes(*held.classes), Workspace(*held.sketch), Rule(*rule)
        return Machine(*profile, Log(*self.log), *own, running=self.log[0], counts=self.state)  # both are not used

    def take(self) -> tuple[IntArray, Place]:
        """Return the requests started since the last call and their placements, one row per request and node."""
        count, self.state[LOGGED] = int(self.state[LOGGED]), 0
        request, node, tasks = self.log[0][:, :count].copy()
        return request, Place(node, tasks, self.log[1][:count].copy())

    def note(self) -> None:
        """Store the placements of requests that have started."""
        request, place = self.take()
        rows = request.tolist()
        first = 0
        for last in range(1, len(rows) + 1):
            if last == len(rows) or rows[last] != rows[first]:
                part = Place(*(column[first:last] for column in place))
                self._placements[rows[first]] = placement_at(self.holdings, rows[first], part)
                first = last

    def placement(self, request: int) -> Placement:
        """Return the placement of a request that has started; empty if it has no tasks."""
        if self.state[LOGGED]:
            self.note()
        return self._placements.pop(request, _NOWHERE)

    def freed(self, now: int) -> None:
        """Note that resources may have become free on any node."""
        self.state[RISES] += 1
        self.fresh[0] = [[now], [NEVER]]

    def serve(self, stopped: int) -> None:
        """Serve a compiled function that has *stopped* with this code, for single decisions."""
        if stopped == FULL:
            self.note()
        else:
            self.help(stopped)

    def help(self, stopped: int) -> None:
        """Serve a compiled loop that has *stopped* with this code."""
        if stopped == FULL:
            self._taken.append(self.take())
        else:
            self.holdings.help(stopped, int(self.state[ROW]))

    def pieces(self) -> Pieces:
        """Return all placements since the last call."""
        taken, self._taken = [*self._taken, self.take()], []
        request = np.concatenate([each for each, _ in taken])
        place = Place(*(np.concatenate(parts) for parts in zip(*(place for _, place in taken), strict=True)))
        return pieces_of(self.holdings, request, place)


_NOWHERE = Placement((), {}, (), ())


class _UserRule:
    """Bridge to a user-defined rule, whose scores are computed for each task.

    Parameters
    ----------
    rule : PlacementRule
        The rule.
    asked : DemandClasses
        Machine and demands.
    """

    def __init__(self, rule: Any, asked: DemandClasses) -> None:
        self._rule, self._picks = rule, picks_gpus(rule)
        self._names = asked.columns.resources
        self._capacity = {name: asked.columns.nodes[:, r] for r, name in enumerate(self._names)}
        self._weight = np.array(asked.capacity.weight or [1] * len(asked.columns.nodes), dtype=np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> _UserRule:
        twin = copy.copy(self)
        twin._rule = copy.deepcopy(self._rule, memo)
        return twin

    def __call__(self, holdings: Holdings, request: int) -> None:
        """Place a request in the workspace of the allocations."""
        classes, sketch = Classes(*holdings.classes), Workspace(*holdings.sketch)
        at = int(classes.of[request])
        task = dict(zip(self._names, classes.each[at].tolist(), strict=True)) | {"gpu": int(classes.shape[at, GPU])}
        step: IntArray = np.array([-1, 0, 0], dtype=np.int64)
        able = np.zeros(len(sketch.fits), dtype=np.bool_)
        while ready(holdings.sketch, holdings.classes, at, step, able):
            node = self._node(task, sketch, able)
            gpu = -1
            if 0 < task["gpu"] < WHOLE_GPU and self._picks:
                gpu = self._gpu(sketch.low[node, len(self._names) : -1], task["gpu"])
            take(holdings.sketch, holdings.classes, holdings.rule, at, step, node, gpu)

    def _node(self, task: dict[str, int], sketch: Workspace, able: Any) -> int:
        free = {name: sketch.low[:, r].copy() for r, name in enumerate(self._names)}
        gpus = sketch.low[:, len(self._names) : -1].copy()
        nodes = Nodes(free, gpus, self._capacity, self._weight, sketch.placed.copy(), able.copy())
        answer = call(self._rule, "scores", task, nodes)
        try:
            scores = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise policy_error(self._rule, f"scores {len(able)} nodes with non-numbers: {error}") from error
        if scores.shape != able.shape or np.isnan(scores[able]).any():
            what = f"shape {scores.shape}" if scores.shape != able.shape else "NaN"
            raise policy_error(self._rule, f"scores {len(able)} nodes with {what}; one number each is needed")
        where = np.flatnonzero(able)
        return int(where[np.argmin(scores[where])])

    def _gpu(self, free: IntArray, share: int) -> int:
        gpu = call(self._rule, "gpu", free.copy(), share)
        if not isinstance(gpu, int | np.integer) or not 0 <= gpu < len(free) or free[gpu] < share:
            raise policy_error(self._rule, f"picked GPU {gpu!r}, with fewer than {share} thousandths free")
        return int(gpu)
