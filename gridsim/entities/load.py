"""Load of a cluster as balancers see it: work that is placed on it and has not ended."""

from __future__ import annotations

import numpy as np

from gridsim.entities.outcome import WAITING
from gridsim.policy.queue import Requests


class Load:
    """Work of the requests that are placed on a cluster; used on trees of several clusters and for DAG jobs.

    The work is that of the requested cores, whatever number of cores a moldable request gets.

    Parameters
    ----------
    requests : Requests
        All requests of the run.
    state : bytearray
        State of each request, as in `gridsim.entities.outcome.Outcome`.

    Attributes
    ----------
    unfinished, queued : int
        Work that has not ended, or not started: cores times estimates, core-microseconds.
    """

    def __init__(self, requests: Requests, state: bytearray) -> None:
        self._requests, self._state = requests, state
        self._requested, self._estimate = requests.cores.data, requests.estimate.data
        self._here = bytearray(len(requests))
        self.unfinished = self.queued = 0

    def __contains__(self, request: int) -> bool:
        return bool(self._here[request])

    def add(self, request: int) -> None:
        """Add a request that is placed here; it is queued."""
        self._here[request] = 1
        work = self._requested[request] * self._estimate[request]
        self.unfinished += work
        self.queued += work

    def dequeue(self, request: int) -> None:
        """Subtract a request from the queued work when it starts."""
        self.queued -= self._requested[request] * self._estimate[request]

    def enqueue(self, request: int) -> None:
        """Add a request to the queued work again after its run was stopped."""
        self.queued += self._requested[request] * self._estimate[request]

    def remove(self, request: int) -> None:
        """Remove a request that is not queued from the unfinished work."""
        self._here[request] = 0
        self.unfinished -= self._requested[request] * self._estimate[request]

    def waiting(self) -> list[int]:
        """Return the requests that wait on this cluster, in job order."""
        rows = np.flatnonzero(np.frombuffer(self._here, dtype=np.uint8))
        if self._requests.moves:
            rows = rows[self._requests.in_order(rows)]
        return [request for request in rows.tolist() if self._state[request] == WAITING]
