"""Results that the clusters of a run write, one row per request, with data that policies cannot see."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from gridsim.entities.placement_recorder import PlacementRecorder
from gridsim.model.moldable import Moldable
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.policy.queue import Requests
from gridsim.record import Status

NEW, WAITING, RUNNING, DONE = range(4)
"""States of a request."""


class Outcome:
    """Columns that the clusters of a run fill in, one row per request.

    Parameters
    ----------
    requests : Requests
        The requests of the run.
    runtime : (n,) int64
        True run times, whole microseconds; policies cannot see them.
    several : bool
        Whether a job can have runs of different duration.
    tolerance : (n,) float64, optional
        Acceptable response time of a user as a multiple of the requested one; default 1.

    Attributes
    ----------
    cores : (n,) int64
        Allocated cores of each request; the requested ones unless it is moldable.
    granted, offer : (n,) int64
        Guaranteed deadlines, and offered deadlines later than requested, accepted or not; `NEVER` for none.
    doublings : (n,) int64
        Number of doublings of artificial deadlines.
    broken : (n,) bool
        Guarantees that were missed because another job exceeded its estimate.
    cut : list of tuple
        Stopped runs: request, start, end, and the request that they were stopped for.
    suspended : list of tuple
        Suspensions that are over: request, start of the run, begin, end, and the request they were for.
    asleep : dict of int to tuple
        Suspended requests: since when, and for which request.
    interrupted : list of tuple or None
        Runs stopped by the machine, after which the request was queued again: request, start, end, and the reason, a
        number of `gridsim.record.REASONS`; None in a run without failures.
    kept : list of tuple or None
        What ended runs were spent on: request, start, and a `gridsim.model.checkpoints.Kept`; None in a run without
        checkpoints.
    ended : (n,) int8
        Reason of the interruption that ended a request; -1 for all others.
    submitted : dict of int to int
        First submit times of requests that were queued again as if submitted then, whole microseconds.
    placed : PlacementRecorder
        Placements of requests on machines with nodes.
    refused : dict of int to str
        Why a machine with nodes or pools can never hold a rejected request.
    """

    def __init__(
        self, requests: Requests, runtime: IntArray, tolerance: FloatArray | None = None, *, several: bool = False
    ) -> None:
        n = len(requests)
        self.start: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.end: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.status = np.full(n, Status.rejected, dtype=np.int8)
        self.cluster = np.zeros(n, dtype=np.int16)
        self.state = bytearray(n)
        self.runtime = np.require(runtime, dtype=np.int64, requirements=["C"])
        self.tolerance = tolerance
        self._requests = requests
        self._requested_time, self._asked = self.runtime, requests.cores
        self.cores = requests.cores
        if several or self.moldable is not None:
            self.runtime, self.cores = self.runtime.copy(), requests.cores.copy()
        self.granted: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.offer: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.doublings: IntArray = np.zeros(n, dtype=np.int64)
        self.broken = np.zeros(n, dtype=np.bool_)
        self.cut: list[tuple[int, int, int, int]] = []
        self.suspended: list[tuple[int, int, int, int, int]] = []
        self.asleep: dict[int, tuple[int, int]] = {}
        self.interrupted: list[tuple[int, int, int, int]] | None = None
        self.kept: list[tuple[int, ...]] | None = [] if several else None
        self.ended: npt.NDArray[np.int8] = np.full(n, -1, dtype=np.int8)
        self.submitted: dict[int, int] = {}
        self.placed = PlacementRecorder()
        self.refused: dict[int, str] = {}
        self.cancelled_by: IntArray = np.full(n, NEVER, dtype=np.int64)

    @property
    def moldable(self) -> Moldable | None:
        """Ranges and relative run times; None if every request has a fixed number of cores."""
        return self._requests.moldable

    def learn(self, request: int) -> None:
        """Read the run time of a job that was written to a free row."""
        if self.runtime is not self._requested_time:
            self.runtime[request], self.cores[request] = self._requested_time[request], self._asked[request]

    def resize(self, request: int, cores: int) -> None:
        """Set the number of cores of a moldable request from its start on."""
        self.cores[request] = cores
        self.runtime[request] = self.full(request)

    def full(self, request: int) -> int:
        """Return the run time of all the work of a request on its cores."""
        runtime, asked = int(self._requested_time[request]), int(self._asked[request])
        if self.moldable is None:
            return runtime
        return self.moldable.time_on(request, int(self.cores[request]), runtime, asked)

    def latest_taken(self, request: int, submit: int, asked: int) -> int:
        """Return the latest deadline that the user accepts (spec of the deadline papers, 7.2); at most `NEVER`."""
        tolerance = 1.0 if self.tolerance is None else float(self.tolerance[request])
        if not np.isfinite(tolerance):
            return NEVER
        return min(submit + math.floor(Fraction(str(tolerance)) * (asked - submit)), NEVER)

    def unfinished(self) -> IntArray:
        """Return the requests that have neither ended nor been rejected."""
        return np.flatnonzero(np.frombuffer(self.state, dtype=np.uint8) != DONE)
