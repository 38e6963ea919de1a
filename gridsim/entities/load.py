"""What is placed on a cluster and has not ended, as balancers see it."""

from __future__ import annotations

import numpy as np

from gridsim.entities.outcome import WAITING
from gridsim.policy.queue import Requests


class Load:
    """Work of the requests placed on a cluster, kept on trees of several clusters and for DAG jobs.

    What counts is what was asked for, whatever size a moldable request gets.

    Parameters
    ----------
    requests : Requests
        All requests of the run.
    state : bytearray
        Of each request, as `gridsim.entities.outcome.Outcome` has it.

    Attributes
    ----------
    unfinished, queued : int
        Work that has not ended, or not started: cores times estimates, core-microseconds.
    """

    def __init__(self, requests: Requests, state: bytearray) -> None:
        self._requests, self._state = requests, state
        self._asked, self._estimate = requests.cores.data, requests.estimate.data
        self._here = bytearray(len(requests))
        self.unfinished = self.queued = 0

    def __contains__(self, request: int) -> bool:
        return bool(self._here[request])

    def add(self, request: int) -> None:
        """A request is placed here, and waits or will."""
        self._here[request] = 1
        work = self._asked[request] * self._estimate[request]
        self.unfinished += work
        self.queued += work

    def dequeue(self, request: int) -> None:
        """A request waits no longer."""
        self.queued -= self._asked[request] * self._estimate[request]

    def enqueue(self, request: int) -> None:
        """A request that ran waits again."""
        self.queued += self._asked[request] * self._estimate[request]

    def remove(self, request: int) -> None:
        """A request that does not wait is no load any more."""
        self._here[request] = 0
        self.unfinished -= self._asked[request] * self._estimate[request]

    def waiting(self) -> list[int]:
        """The requests that wait here, in job order."""
        rows = np.flatnonzero(np.frombuffer(self._here, dtype=np.uint8))
        if self._requests.moves:
            rows = rows[self._requests.in_order(rows)]
        return [request for request in rows.tolist() if self._state[request] == WAITING]
