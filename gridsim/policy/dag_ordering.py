"""Orderings for tasks of DAG jobs: by upward rank, critical path of the job, and time of readiness.

A single rigid job is a DAG of one task: its rank and critical path are its estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.tasks import Tasks
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.protocols import Changes, Static
from gridsim.policy.queue import Queue

_SOURCE = "Burkimsher, Bate, Indrusiak"


def _tick(queue: Queue) -> float:
    """Return the length of a tick, s."""
    tick: float = queue.state.get("tick", 1.0)
    return tick


@dataclass
class FifoTask(Static):
    """First ready, first served; ties by job order."""

    source: ClassVar[str] = _SOURCE

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.ready


@dataclass
class _Remaining(Static):
    rank_of: Literal["inclusive", "exclusive"] = "inclusive"
    source: ClassVar[str] = _SOURCE

    def remaining(self, queue: Queue) -> FloatArray:
        if self.rank_of == "inclusive":
            return queue.rank
        requests, rows = queue.requests, queue.rows
        return (requests.rank[rows] - requests.estimate[rows]) / 1e6  # integers, so that equal ranks stay equal


@dataclass
class LongestRemaining(_Remaining):
    """Longest remaining time first (LRTF): largest upward rank; starves short jobs under overload.

    Parameters
    ----------
    rank_of : {"inclusive", "exclusive"}
        Whether the rank includes the task itself.
    """

    aliases: ClassVar[tuple[str, ...]] = ("lrtf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -self.remaining(queue)


@dataclass
class ShortestRemaining(_Remaining):
    """Shortest remaining time first (SRTF): smallest upward rank; starves long jobs under overload.

    Parameters
    ----------
    rank_of : {"inclusive", "exclusive"}
        Whether the rank includes the task itself.
    """

    aliases: ClassVar[tuple[str, ...]] = ("srtf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return self.remaining(queue)


@dataclass
class ProjectedSlr:
    """Largest projected schedule length ratio first: (now + rank + lateness - submit) / critical path.

    Parameters
    ----------
    lateness : int
        Ticks of lateness, which order jobs that arrive together by shorter critical path.

    Notes
    -----
    Compared exactly. Contrary to the paper, not free of starvation under sustained overload by shorter jobs: a job of
    critical path L never starts while jobs of length c < L (rho - 1) / rho keep arriving at load rho > 1 (grid spec,
    section 9).
    """

    lateness: int = 1
    name: ClassVar[str] = "p-slr"
    aliases: ClassVar[tuple[str, ...]] = ("projected-slr",)
    changes: ClassVar[Changes] = "linear"
    source: ClassVar[str] = _SOURCE

    def lines(self, queue: Queue, tick: int) -> tuple[IntArray, IntArray]:
        """Return integers (a, b) of every request: at instant t the largest (t + a) / b is first."""
        requests, rows = queue.requests, queue.rows
        ahead = requests.rank[rows] + self.lateness * tick - requests.submit[rows]
        return ahead, requests.critical_path[rows]

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the same ranks as floats, for callers that do not compare exactly."""
        return -(now + queue.rank + self.lateness * _tick(queue) - queue.submit) / queue.critical_path


@dataclass
class ProjectedSlrStarvationFree:
    """Projected SLR plus floor(wait / largest waiting critical path) squared: free of starvation.

    The square of the longer wait exceeds the linear term of every other task while critical paths are bounded.
    """

    lateness: int = 1
    name: ClassVar[str] = "p-slr-sf"
    changes: ClassVar[Changes] = "start"
    source: ClassVar[str] = _SOURCE

    def rank(self, queue: Queue, now: float) -> FloatArray:
        requests, rows = queue.requests, queue.rows
        waited = round(now * 1e6) - requests.submit[rows]  # integers: floor must change at the exact instant
        path = requests.critical_path[rows]
        turns = waited // path.max()
        projected: FloatArray = (waited + requests.rank[rows] + round(self.lateness * _tick(queue) * 1e6)) / path
        total: FloatArray = projected + turns**2
        return -total


# -- upward ranks: the longest remaining path of each task, itself and unavoidable transfers included; once per job ----


def upward_ranks(tasks: Tasks, platform: Platform, tick: int) -> IntArray:
    """Return the upward rank of every task, whole microseconds (grid spec, section 6).

    Parameters
    ----------
    tick : int
        Delays are rounded up to whole ticks; whole microseconds.

    Notes
    -----
    Execution times are the estimates, since policies do not know true run times. Delays that depend on the placement
    of tasks of the same kind are avoidable and not counted.
    """
    global _last  # cached, since the policies of a comparison have the same tasks
    if _last is None or _last[0] is not tasks or _last[1:3] != (platform, tick):
        _last = (tasks, platform, tick, tasks.chains(tasks.estimate, unavoidable_delays(tasks, platform, tick)))
    return _last[3].copy()


_last: tuple[Tasks, Platform, int, IntArray] | None = None


def unavoidable_delays(tasks: Tasks, platform: Platform, tick: int) -> IntArray:
    """Return the least delay of each edge over the clusters that can run its tasks; 0 if both have the same kind."""
    delays: IntArray = np.zeros(len(tasks.edge_to), dtype=np.int64)
    network = platform.network
    if network.free:
        return delays
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    crossing = np.flatnonzero(tasks.kind[source] != tasks.kind[tasks.edge_to])
    if not len(crossing):
        return delays
    levels = np.array(_least_levels(tasks, platform, source[crossing], tasks.edge_to[crossing]))
    runtime = tasks.estimate[source[crossing]]
    for height in np.unique(levels).tolist():
        here = levels == height
        sent = None if tasks.volume is None else tasks.volume[crossing[here]]
        delays[crossing[here]] = network.delays(runtime[here], height, tick, sent)
    return delays


def _least_levels(tasks: Tasks, platform: Platform, source: IntArray, target: IntArray) -> list[int]:
    """Return the fewest levels between a cluster that can run one task and one that can run the other."""
    if platform.network.delay_levels_power is None:
        return [1] * len(source)
    clusters, between = list(platform.clusters()), platform.levels()

    def able(row: int) -> list[ClusterSpec]:
        kind, cores = tasks.kinds[tasks.kind[row]], tasks.cores[row]
        return [cluster for cluster in clusters if cluster.kind == kind and cluster.cores >= cores]

    return [
        min(between[one.name, other.name] for one in able(row) for other in able(to))
        for row, to in zip(source.tolist(), target.tolist(), strict=True)
    ]
