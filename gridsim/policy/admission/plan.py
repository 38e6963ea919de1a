"""The plan of one cluster: a promised start for every waiting request, beside what runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import kernels
from gridsim.policy.admission.kernels import HEAD, TAIL
from gridsim.policy.queue import Requests

__all__ = ["Plan"]


class Plan:
    """Running requests until their expected ends and a reservation for every waiting one.

    Parameters
    ----------
    requests : Requests
        Columns of all requests; a request is a row of them.
    cores : int
        Cores of the cluster.

    Notes
    -----
    All instants are whole microseconds. A request is planned with its estimate; true runtimes are not known here.
    """

    __slots__ = ("cores", "expected", "free", "meta", "planned", "requests", "running", "started", "times", "waiting")

    def __init__(self, requests: Requests, cores: int) -> None:
        n = len(requests)
        self.requests, self.cores = requests, cores
        self.times: IntArray = np.zeros(64, dtype=np.int64)
        self.free: IntArray = np.zeros(64, dtype=np.int64)
        self.free[0] = cores
        self.meta: IntArray = np.array([0, 0, 1], dtype=np.int64)
        self.waiting: IntArray = np.zeros(n, dtype=np.int64)
        self.planned: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.expected: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.started: IntArray = np.zeros(min(n, 2 * cores) + 1, dtype=np.int64)
        self.running: set[int] = set()

    def _ensure(self, more_requests: int) -> None:
        """Room for the most blocks there can be: two bounds a request, and four while one is being moved."""
        blocks = 2 * (len(self) + len(self.running) + more_requests) + 8
        if blocks > len(self.times):
            more = np.zeros(max(blocks, 2 * len(self.times)) - len(self.times), dtype=np.int64)
            self.times, self.free = np.concatenate([self.times, more]), np.concatenate([self.free, more])

    def __len__(self) -> int:
        return int(self.meta[TAIL] - self.meta[HEAD])

    def order(self) -> IntArray:
        """Waiting requests by planned start, then job order; a view."""
        return self.waiting[self.meta[HEAD] : self.meta[TAIL]]

    def starts(self) -> dict[int, int]:
        """Planned start of every waiting request."""
        rows = self.order()
        return dict(zip(rows.tolist(), self.planned[rows].tolist(), strict=True))

    def earliest(self, request: int, now: int) -> int:
        """Earliest place of a request from *now* on, holes used, everyone else staying where they are."""
        cores, estimate = self.requests.cores, self.requests.estimate
        found = kernels.earliest_start(self.times, self.free, self.meta, now, cores[request], estimate[request])
        return int(found)

    def reserve(self, request: int, start: int) -> None:
        """Promise *start* to a request that joins the waiting ones."""
        self._ensure(1)
        cores, estimate = self.requests.cores, self.requests.estimate
        kernels.enter(
            self.times,
            self.free,
            self.meta,
            self.waiting,
            self.planned,
            request,
            start,
            cores[request],
            estimate[request],
        )

    def ended(self, request: int, now: int) -> int:
        """Give back what a running request would have held; returns its expected end."""
        self.running.discard(request)
        until = int(self.expected[request])
        if until > now:
            kernels.release(self.times, self.free, self.meta, now, until, self.requests.cores[request])
        return until

    def compress(self, order: IntArray, now: int, frontier: int = NEVER) -> None:
        """Move the requests of *order*, one after the other, to their earliest places; none moves later."""
        kernels.shift_left(
            self.times,
            self.free,
            self.meta,
            self.waiting,
            self.planned,
            self.requests.cores,
            self.requests.estimate,
            now,
            order,
            frontier,
        )

    def replan(self, now: int) -> None:
        """Place all waiting requests again in planned order, after a running one outlived its estimate."""
        kernels.replan(
            self.times,
            self.free,
            self.meta,
            self.waiting,
            self.planned,
            self.requests.cores,
            self.requests.estimate,
            now,
            np.array(sorted(self.running), dtype=np.int64),
            self.expected,
            self.cores,
        )

    def due(self, now: int) -> Sequence[int]:
        """Requests planned for *now*: they run from here on."""
        count = kernels.due(
            self.meta, self.waiting, self.planned, self.requests.estimate, self.expected, now, self.started
        )
        if not count:
            return ()
        started: list[int] = self.started[:count].tolist()
        self.running.update(started)
        return started

    def next_start(self) -> int:
        """Planned start of the first waiting request; `NEVER` when none waits."""
        head = int(self.meta[HEAD])
        return int(self.planned[self.waiting[head]]) if head < self.meta[TAIL] else NEVER
