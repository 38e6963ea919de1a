"""Core counts of moldable jobs: a formula over the queue limits the sizes that are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.model.time import FloatArray, IntArray
from gridsim.policy import limits
from gridsim.policy.limits import Limits
from gridsim.policy.queue import Queue, Requests

Grid = Literal["geometric", "linear"]
"""Spacing of the sizes tried: by equal ratios, or evenly."""


def _check_choices(choices: Any) -> None:
    if choices != "all" and not (isinstance(choices, int) and choices >= 2):
        raise ValueError(
            f"choices is {choices!r}; a number of sizes from 2 (the least and the most), or all, is needed"
        )


def largest(limit: IntArray, minimum: IntArray, maximum: IntArray) -> IntArray:
    """Return the largest sizes within limits; a job's minimum is always allowed (spec of moldable jobs, 4.1)."""
    allowed: IntArray = np.minimum(maximum, np.maximum(limit, minimum))
    return allowed


class _AnySize:
    """Partition with all sizes of the range of a request, which for rigid ones is one size."""

    def columns(self, requests: Requests) -> Limits:
        """Return the limits for compiled cycles."""
        return limits.limits_of(requests, limits.ANY)


@dataclass
class Rigid(_AnySize):
    """Every job gets its requested cores."""

    choices: ClassVar[int] = 1
    grid: ClassVar[Grid] = "geometric"
    fixed: ClassVar[bool] = True

    def limits(self, queue: Queue, now: float) -> IntArray:
        return queue.requests.cores[queue.rows]


@dataclass
class Greedy(_AnySize):
    """The number of cores in the job's range with the earliest end.

    Parameters
    ----------
    choices : int or "all"
        Number of sizes of the range that are tried.
    grid : {"geometric", "linear"}
        Spacing of these sizes.
    """

    source: ClassVar[str] = "Cirne, Berman 2000"
    choices: Any = 12
    grid: Grid = "geometric"

    def __post_init__(self) -> None:
        _check_choices(self.choices)

    def limits(self, queue: Queue, now: float) -> IntArray:
        return queue.requests.maximum[queue.rows]


@dataclass
class ShareOfWork:
    """At most a share of the machine that depends on the job's share of the work in the system.

    Parameters
    ----------
    wf : float
        Weight factor, by which the share is multiplied.
    gap : float
        Gap factor: the maximum fraction of the machine for one job; 1 for no such limit.
    weight : {"linear", "sqrt", "sqrt-parallel", "equal"}
        Shares by effective sequential run time, by its square root, or by its square root among jobs that can run on
        more than one core; or the same share for every job (equi-partition).
    scope : {"system", "remaining", "queued"}
        Work that counts: all running and waiting jobs, the same with the remaining work of running jobs, or waiting
        jobs only.
    choices : int or "all"
        Number of sizes up to the limit that are tried.
    grid : {"geometric", "linear"}
        Spacing of these sizes.

    Notes
    -----
    limit = max(1, floor(min(wf * share, gap) * cores)): section 4 of the project's specification of moldable jobs.
    """

    name: ClassVar[str] = "fair-share"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"
    wf: float = 1.0
    gap: float = 0.9
    weight: Literal["linear", "sqrt", "sqrt-parallel", "equal"] = "linear"
    scope: Literal["system", "remaining", "queued"] = "system"
    choices: Any = 12
    grid: Grid = "geometric"

    def __post_init__(self) -> None:
        _check_choices(self.choices)
        if not 0 < self.wf < float("inf"):
            raise ValueError(f"wf is {self.wf}; a weight factor above 0 is needed")
        if not 0 < self.gap <= 1:
            raise ValueError(f"gap is {self.gap}; a fraction of the machine above 0, at most 1, is needed")

    def limits(self, queue: Queue, now: float) -> IntArray:
        total = queue.state["total"]
        waiting = self._counted(queue)
        share = np.zeros(len(queue))
        everything = waiting.sum() + self._running(queue, now)
        if everything > 0:
            np.divide(self._weighed(queue.weight), everything, out=share)
        most: IntArray = np.floor(np.minimum(self.wf * share, self.gap) * total + 1e-9).astype(np.int64)
        return np.maximum(most, 1)

    def columns(self, requests: Requests) -> Limits:
        """Return the same limits for compiled cycles (`gridsim.policy.limits`), equal to the last bit."""
        weight = ("linear", "sqrt", "sqrt-parallel", "equal").index(self.weight)
        scope = ("system", "remaining", "queued").index(self.scope)
        return limits.limits_of(requests, limits.SHARE, weight, scope, wf=self.wf, gap=self.gap)

    def _weighed(self, weight: FloatArray) -> FloatArray:
        if self.weight == "equal":
            return np.ones_like(weight)
        return weight if self.weight == "linear" else np.sqrt(weight)

    def _counted(self, queue: Queue) -> FloatArray:
        """Return the contribution of each request to the sum."""
        weighed = self._weighed(queue.weight)
        if self.weight == "sqrt-parallel":
            weighed = np.where(queue.requests.maximum[queue.rows] > 1, weighed, 0.0)
        return weighed

    def _running(self, queue: Queue, now: float) -> float:
        """Return the contribution of the running requests to the sum."""
        if self.scope == "queued":
            return 0.0
        running: Queue = queue.state["running"]
        weight = running.weight
        if self.scope == "remaining":
            began, expected = running.state["began"], running.state["expected"]
            weight = weight * np.maximum(0.0, expected - now) / (expected - began)
        weighed = self._weighed(weight)
        if self.weight == "sqrt-parallel":
            weighed = weighed[running.requests.maximum[running.rows] > 1]
        return float(weighed.sum())
