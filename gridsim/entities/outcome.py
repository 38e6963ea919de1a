"""What the clusters of a run fill in, one row a request, and what the world knows that policies do not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gridsim.entities.placed import Placed
from gridsim.model.moldable import Moldable
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.policy.queue import Requests
from gridsim.record import Status

NEW, WAITING, RUNNING, DONE = range(4)
"""States of a request."""


class Outcome:
    """Columns that the clusters of a run fill in, one row a request.

    Parameters
    ----------
    requests : Requests
        The requests of the run.
    runtime : (n,) int64
        True runtimes, whole microseconds: the world knows them, policies do not.
    tolerance : (n,) float64, optional
        How many times the response asked for a user would accept; 1 where left out.

    Attributes
    ----------
    cores : (n,) int64
        Cores that each request got; those asked for unless it is moldable.
    granted, offer : (n,) int64
        Deadlines promised, and later ones than asked for that were offered, taken or not; `NEVER` for none.
    doublings : (n,) int64
        Of artificial deadlines.
    broken : (n,) bool
        Promises that fell to a job which outlived its estimate.
    cut : list of tuple
        Runs cut short to make room: request, start, end, for which request.
    placed : Placed
        Where requests run, on machines of nodes.
    refused : dict of int to str
        Why requests were rejected that a machine of nodes or pools can never hold.
    """

    def __init__(self, requests: Requests, runtime: IntArray, tolerance: FloatArray | None = None) -> None:
        n = len(requests)
        self.start: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.end: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.status = np.full(n, Status.rejected, dtype=np.int8)
        self.cluster = np.zeros(n, dtype=np.int16)
        self.state = bytearray(n)
        self.runtime = np.require(runtime, dtype=np.int64, requirements=["C"])
        self.tolerance = tolerance
        self._requests = requests
        self._runtime_asked, self._asked = self.runtime, requests.cores
        self.cores = requests.cores
        if self.moldable is not None:
            self.runtime, self.cores = self.runtime.copy(), requests.cores.copy()
        self.granted: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.offer: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.doublings: IntArray = np.zeros(n, dtype=np.int64)
        self.broken = np.zeros(n, dtype=np.bool_)
        self.cut: list[tuple[int, int, int, int]] = []
        self.placed = Placed()
        self.refused: dict[int, str] = {}
        self.cancelled_by: IntArray = np.full(n, NEVER, dtype=np.int64)

    @property
    def moldable(self) -> Moldable | None:
        """Ranges and relative runtimes; None where every request has the size that it asks for."""
        return self._requests.moldable

    def learn(self, request: int) -> None:
        """A row that was kept free is a job, whose true runtime has been taken down."""
        if self.moldable is not None:
            self.runtime[request], self.cores[request] = self._runtime_asked[request], self._asked[request]

    def resize(self, request: int, cores: int) -> None:
        """Let a moldable request run on a number of cores, from its start on."""
        assert self.moldable is not None
        runtime, asked = int(self._runtime_asked[request]), int(self._asked[request])
        self.cores[request] = cores
        self.runtime[request] = self.moldable.time_on(request, cores, runtime, asked)

    def accepts(self, request: int, submit: int, asked: int, offered: int) -> bool:
        """Whether the user takes a later deadline than the one asked for (spec of the deadline papers, 7.2)."""
        return offered <= self.latest_taken(request, submit, asked)

    def latest_taken(self, request: int, submit: int, asked: int) -> int:
        """The latest deadline that the user takes; at most `NEVER`."""
        tolerance = 1.0 if self.tolerance is None else float(self.tolerance[request])
        if not np.isfinite(tolerance):
            return NEVER
        return min(submit + math.floor(Fraction(str(tolerance)) * (asked - submit)), NEVER)

    def unfinished(self) -> IntArray:
        """Requests that have neither ended nor been refused."""
        return np.flatnonzero(np.frombuffer(self.state, dtype=np.uint8) != DONE)
