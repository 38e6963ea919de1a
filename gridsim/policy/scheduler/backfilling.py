"""Backfilling: one scheduler for FCFS, first-fit, EASY and reservations of any depth, under any ordering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.errors import PolicyError
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.ordering import Fifo
from gridsim.policy.protocols import Lanes, Quote, changes_of, ranks_of
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler import kernels
from gridsim.policy.scheduler.kernels import CORES, HEAD, HELD, RUNNING, TAIL, TOTAL

__all__ = ["Backfilling"]

_EVERYONE = 1 << 60


@dataclass
class Backfilling:
    """Requests in the order of *ordering*; whom *reserve* protects is not delayed by those that pass.

    Parameters
    ----------
    ordering : Ordering
        Which waiting request comes first.
    reserve : ReservationRule
        ``strict`` (nobody passes), ``first-fit``, ``easy``, ``depth(k=…)``.

    Notes
    -----
    Promises do not outlive a pass: the head is whatever the order says now, and its place is found afresh
    (spec of the deadline papers, 3.2). FCFS is ``strict`` in first-come order.
    """

    ordering: Any = field(default_factory=Fifo)
    reserve: Any = field(default_factory=Easy)
    source: ClassVar[str] = "Lifka 1995; Mu'alem, Feitelson 2001"

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: empty queue, nothing running."""
        requests = cluster.requests
        n = len(requests)
        self._requests = requests
        if hasattr(self.ordering, "setup"):
            self.ordering.setup(rng)
        self._picks = hasattr(self.ordering, "pick")
        self._changes = changes_of(self.ordering)
        lanes: Lanes = self.reserve.lanes(Queue(requests, np.arange(n)))
        # A pass between two events of an instant may start a request on cores that another gives back within it.
        busy = min(2 * cluster.cores, n) + 1
        promises = int(min(n, lanes.capacity.sum()))
        self._meta: IntArray = np.array([0, 0, 0, 0, cluster.cores], dtype=np.int64)
        self._running: IntArray = np.zeros((2, busy), dtype=np.int64)
        self._moves: IntArray = np.zeros((2, busy), dtype=np.int64)
        self._table: IntArray = np.empty((5, n), dtype=np.int64)
        self._table[:4] = requests.cores, requests.estimate, self._places(n), lanes.lane
        self._arrays = (
            self._table,
            self._running,
            self._moves,
            np.zeros((2, 2 * (busy + promises) + 8), dtype=np.int64),
            np.stack([lanes.capacity, lanes.capacity]),
            self._meta,
        )
        self._waiting, self._gone = self._table[4].data, self._moves[1].data
        self._tail = self._ended = 0
        # In first-come order nobody passes a head that is blocked until something ends.
        self._head_decides = self.reserve.blocking and type(self.ordering) is Fifo
        self._blocked = False

    def _places(self, n: int) -> IntArray:
        """Position of each request in the order of the whole run, job order for orderings that change."""
        rows = np.arange(n)
        if self._changes != "static" or type(self.ordering) is Fifo:
            return rows
        order = np.argsort(ranks_of(self.ordering, self._queue(rows), 0.0), kind="stable")
        places: IntArray = np.empty(n, dtype=np.int64)
        places[order] = rows
        return places

    def _queue(self, rows: IntArray) -> Queue:
        total, held = int(self._meta[TOTAL]), int(self._meta[HELD])
        return Queue(self._requests, rows, {"free": total - held, "total": total})

    def quote(self, request: int, now: int) -> Quote:
        """Every request is taken."""
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> None:
        """The request joins the queue; the next pass finds its place in it."""
        self._waiting[self._tail] = quote.request
        self._tail += 1

    def ended(self, request: int, now: int) -> None:
        """The request left the machine."""
        self._gone[self._ended] = request
        self._ended += 1
        self._blocked = False

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._take_in()
        cores = self._requests.cores[request]
        kernels.end_running(self._running, self._meta, request, cores)
        kernels.begin_running(self._running, self._meta, request, expected_end, cores)

    def settled(self, now: int) -> None:
        """Nothing to do: no promise outlives a pass."""

    def wake(self, now: int) -> int:
        """Nothing starts without an event."""
        return NEVER

    def dispatch(self, now: int) -> Sequence[int]:
        """One pass over the queue."""
        if self._changes == "static":
            if self._blocked and self._head_decides:
                return ()
            return self._pass(now)
        self._take_in()
        if self._meta[TAIL] == self._meta[HEAD]:
            return ()
        if self._picks and self.reserve.blocking:
            return self._dispatch_picks(now)
        if self._changes == "pass":
            if not self._picks and self._full(now):
                return ()
            self._sort(now)
            return self._pass(now)
        return self._dispatch_one_by_one(now)

    def _pass(self, now: int, limit: int = _EVERYONE) -> Sequence[int]:
        """Rows that a compiled pass starts, at most *limit* of them."""
        count = kernels.backfill(now, limit, self.reserve.blocking, self._ended, self._tail, *self._arrays)
        self._ended = 0
        self._blocked = self._tail > self._meta[HEAD]
        return self._moves[0, :count].tolist() if count else ()

    def _take_in(self) -> None:
        """Tell the arrays what ended and arrived since the last pass."""
        kernels.take_in(self._table, self._running, self._moves, self._meta, self._ended, self._tail)
        self._ended = 0

    def _rows(self) -> IntArray:
        """Waiting requests, a view that may be written."""
        return self._table[4, self._meta[HEAD] : self._meta[TAIL]]

    def _full(self, now: int) -> bool:
        """Whether the narrowest waiting request is wider than the free cores, so that no order lets anything start."""
        if self._meta[RUNNING] and self._running[0, 0] <= now:
            return False
        return bool(self._requests.cores[self._rows()].min() > self._meta[TOTAL] - self._meta[HELD])

    def _available(self, now: int) -> int:
        """Free cores as a pass counts them."""
        return int(kernels.available_now(now, self._running, self._meta, self._table[CORES]))

    def _sort(self, now: int) -> None:
        """Put the queue into the order of this instant; equal ranks by job order."""
        rows = self._rows()
        rows.sort()
        rows[:] = rows[np.argsort(ranks_of(self.ordering, self._queue(rows), now / 1e6), kind="stable")]

    def _dispatch_one_by_one(self, now: int) -> list[int]:
        """A pass for orderings that change with every start: begun again after each."""
        started: list[int] = []
        while self._meta[TAIL] > self._meta[HEAD]:
            self._sort(now)
            more = self._pass(now, 1)
            if not more:
                break
            started.extend(more)
        return started

    def _dispatch_picks(self, now: int) -> list[int]:
        """A strict pass for orderings that name the next request, until one does not fit or no core is free."""
        started: list[int] = []
        self.ordering.reset()
        while self._meta[TAIL] > self._meta[HEAD] and self._available(now):
            rows = self._rows()
            rows.sort()
            index = self.ordering.pick(self._queue(rows), now / 1e6)
            if not 0 <= index < len(rows):
                raise PolicyError(f"{self.ordering!r} picked number {index} of {len(rows)} requests")
            rows[: index + 1] = np.roll(rows[: index + 1], 1)
            more = self._pass(now, 1)
            if not more:
                break
            started.extend(more)
        return started
