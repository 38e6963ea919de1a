"""Machines of list schedulers: arrays of a `Pool` or of `Nodes` in addition to the queue, and cycles for Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.nodes import on_nodes
from gridsim.machine.pool import CAPACITY, Pool
from gridsim.model.time import IntArray
from gridsim.policy.placement_bridge import PlacementLog, holdings_of, place_of
from gridsim.policy.protocols import LoopState, Placement, Start, starts_of
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler.list_cycle import CORES, COUNT, STOPPED, ListQueue, catch_up, run_cycle, take_in

Arrays = tuple[IntArray, ...]


@inline
def in_pool(queue, pool):  # type: ignore[no-untyped-def]
    """Return the machine of a queue: `Pool` with the running requests of the queue."""
    needs, idle, blocks, free = pool
    return Pool(needs, idle, blocks, free, queue.running, queue.meta)


@njit_noalloc
def cycle_in_pool(now, limit, ended, tail, queue, pool):  # type: ignore[no-untyped-def]
    """Call `run_cycle` from Python, where calls with plain tuples are faster; return the number of starts."""
    queue = ListQueue(*queue)
    run_cycle(now, limit, False, ended, tail, queue, in_pool(queue, pool))
    return queue.meta[COUNT]


@njit_noalloc
def cycle_on_nodes(now, limit, ended, tail, queue, nodes):  # type: ignore[no-untyped-def]
    """Call `run_cycle` from Python; return 0 or the code of a verb."""
    queue = ListQueue(*queue)
    return run_cycle(now, limit, False, ended, tail, queue, on_nodes(queue, nodes))


@njit_noalloc
def catch_up_on_nodes(now, ended, tail, queue, nodes):  # type: ignore[no-untyped-def]
    """`catch_up` for Python."""
    queue = ListQueue(*queue)
    catch_up(now, ended, tail, queue, on_nodes(queue, nodes))


class PoolMachine:
    """A machine of one amount, the cores of a cluster, or of several pools.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    queue : tuple of arrays
        `gridsim.policy.scheduler.list_cycle.ListQueue`.
    rows : int
        Maximum number of blocks of a profile.
    """

    def __init__(self, cluster: ClusterView, queue: Arrays, rows: int) -> None:
        self._queue, self._demand_classes = queue, cluster.demands
        self.is_one_amount = self._demand_classes is None
        need = queue[0][CORES] if self._demand_classes is None else np.ascontiguousarray(self._of_pools(slice(None)))
        self._need, width = need, need.shape[1:]
        idle: IntArray = np.zeros((2, *width), dtype=np.int64)
        if self._demand_classes is not None:
            idle[CAPACITY] = self._demand_classes.columns.amounts
        profile = np.zeros((3, rows), dtype=np.int64), np.zeros((rows, *width), dtype=np.int64)
        self.columns: Arrays = (need, idle, *profile)

    def _of_pools(self, requests: slice | int) -> IntArray:
        """Return the amounts of pools that requests need."""
        assert self._demand_classes is not None
        classes = self._demand_classes.classes
        found: IntArray = classes.whole[classes.of[requests], ..., 1 + len(self._demand_classes.columns.resources) :]
        return found

    def passes(self, order: tuple[Any, ...], ask: Callable[[int], None] | None) -> LoopState:
        """Return the cycles of a whole run for the compiled loop; *ask* is called before each."""
        return LoopState("list_in_pool", (self._queue, self.columns, order), ask)

    def learn(self, request: int) -> None:
        """Add a request that was unknown at the start of the run."""
        if not self.is_one_amount:
            self._need[request] = self._of_pools(request)

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """Do nothing: the running requests contain the allocation."""

    def postpone(self, request: int, until: int, now: int) -> None:
        """Do nothing: the running requests contain the expected end."""

    def cycle(self, now: int, limit: int, ended: int, tail: int) -> int:
        """Run a cycle; return the number of starts."""
        count: int = cycle_in_pool(now, limit, ended, tail, self._queue, self.columns)
        return count

    def release(self, request: int, now: int) -> None:
        """Do nothing: the running requests contain the allocation."""

    def catch_up(self, now: int, ended: int, tail: int) -> None:
        """Take in ended requests and arrivals."""
        table, running, moves, _, meta = self._queue
        take_in(table, running, moves, meta, ended, tail)

    def starts(self, started: Sequence[int], cores: Sequence[int] | None = None) -> list[Start]:
        """Return the decisions to start requests, on the given cores, if any."""
        return starts_of(started) if cores is None else list(map(Start, started, cores))


class NodesMachine:
    """A machine of nodes, possibly with pools.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    queue : tuple of arrays
        `gridsim.policy.scheduler.list_cycle.ListQueue`.
    placement : PlacementRule
        Placement of tasks.
    rng : Generator
        For random rules.
    """

    is_one_amount = False

    def __init__(self, cluster: ClusterView, queue: Arrays, placement: Any, rng: Generator | None) -> None:
        assert rng is not None
        self._queue, self.holdings = queue, holdings_of(cluster, placement, rng)
        self.log = PlacementLog(self.holdings)

    @property
    def columns(self) -> tuple[Any, ...]:
        """The arrays of `gridsim.machine.nodes.Nodes` as they are now."""
        return self.log.columns

    def passes(self, order: tuple[Any, ...], ask: Callable[[int], None] | None) -> LoopState:
        """The cycles of a whole run for the compiled loop; *ask* is called before each."""
        meta = self._queue[-1]

        def columns() -> tuple[Any, ...]:
            return self._queue, self.columns, order

        def callback(now: int) -> tuple[Any, ...]:
            if stopped := int(meta[STOPPED]):
                self.log.help(stopped)
            elif ask is not None:
                ask(now)
            return columns()

        return LoopState("list_on_nodes", columns(), callback, self.log.pieces)

    def learn(self, request: int) -> None:
        """Add a request that was unknown at the start of the run."""
        self.log.learn()

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """Allocate its placement to a request that never waited."""
        assert placement is not None
        self.holdings.put_at(request, place_of(self.holdings, placement), now, until)

    def postpone(self, request: int, until: int, now: int) -> None:
        """Set the expected end of a running request."""
        self.holdings.until(request, until, now)

    def cycle(self, now: int, limit: int, ended: int, tail: int) -> int:
        """Run a cycle; return the number of starts."""
        self.complete(lambda columns: cycle_on_nodes(now, limit, ended, tail, self._queue, columns))
        return int(self._queue[-1][COUNT])

    def complete(self, cycle: Callable[[tuple[Any, ...]], int]) -> None:
        """Run a cycle over the columns; handle each request of the cycle for help."""
        while stopped := cycle(self.columns):
            self.log.serve(stopped)

    def release(self, request: int, now: int) -> None:
        """Release the allocation of a request."""
        self.holdings.release_many(np.array([request], dtype=np.int64), 1, now)

    def catch_up(self, now: int, ended: int, tail: int) -> None:
        """Take in ended requests and arrivals."""
        catch_up_on_nodes(now, ended, tail, self._queue, self.columns)

    def starts(self, started: Sequence[int], cores: Sequence[int] | None = None) -> list[Start]:
        """Return the decisions to start requests, each at its placement, on the given cores, if any."""
        sizes = cores or [0] * len(started)
        return [Start(row, size, self.log.placement(row)) for row, size in zip(started, sizes, strict=True)]
