"""How many cores may a moldable job get? A formula over the queue; which sizes are tried follows from its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.model.time import FloatArray, IntArray
from gridsim.policy import limits
from gridsim.policy.limits import Limits
from gridsim.policy.queue import Queue, Requests

Grid = Literal["geometric", "linear"]
"""How the sizes tried are spread over the range: by equal ratios, or evenly."""


def _check_choices(choices: Any) -> None:
    if choices != "all" and not (isinstance(choices, int) and choices >= 2):
        raise ValueError(
            f"choices is {choices!r}; a number of sizes from 2 (the least and the most), or all, is needed"
        )


def largest(limit: IntArray, minimum: IntArray, maximum: IntArray) -> IntArray:
    """Largest sizes that limits allow: a job's minimum always stands (spec of moldable jobs, 4.1)."""
    allowed: IntArray = np.minimum(maximum, np.maximum(limit, minimum))
    return allowed


@dataclass
class Asked:
    """Every job gets the cores that it asked for."""

    choices: ClassVar[int] = 1
    grid: ClassVar[Grid] = "geometric"
    fixed: ClassVar[bool] = True

    def limits(self, queue: Queue, now: float) -> IntArray:
        return queue.requests.cores[queue.rows]

    def columns(self, requests: Requests) -> Limits:
        """What compiled passes make the limits of: every request has one size."""
        return limits.limits_of(requests, limits.ANY)


@dataclass
class Greedy:
    """Any size of its range: the one by which the job ends first.

    Parameters
    ----------
    choices : int or "all"
        How many sizes of the range are tried.
    grid : {"geometric", "linear"}
        How they are spread.
    """

    source: ClassVar[str] = "Cirne, Berman 2000"
    choices: Any = 12
    grid: Grid = "geometric"

    def __post_init__(self) -> None:
        _check_choices(self.choices)

    def limits(self, queue: Queue, now: float) -> IntArray:
        return queue.requests.maximum[queue.rows]

    def columns(self, requests: Requests) -> Limits:
        """What compiled passes make the limits of: any size."""
        return limits.limits_of(requests, limits.ANY)


@dataclass
class ShareOfWork:
    """At most a share of the machine that follows the job's share of the work in the system.

    Parameters
    ----------
    wf : float
        Weight factor: times the share.
    gap : float
        Gap factor: no job gets more than this fraction of the machine; 1 for no such limit.
    weight : {"linear", "sqrt", "sqrt-parallel", "equal"}
        Shares by effective sequential runtime, by its square root, or by its square root among jobs that can run on
        more than one core; or the same share for every job (equi-partition).
    scope : {"system", "remaining", "queued"}
        Among all running and waiting jobs, running ones with what is left of them, or waiting ones only.
    choices : int or "all"
        How many sizes up to the limit are tried.
    grid : {"geometric", "linear"}
        How they are spread.

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
        """What compiled passes make the same limits of (`gridsim.policy.limits`), to the last bit."""
        weight = ("linear", "sqrt", "sqrt-parallel", "equal").index(self.weight)
        scope = ("system", "remaining", "queued").index(self.scope)
        return limits.limits_of(requests, limits.SHARE, weight, scope, wf=self.wf, gap=self.gap)

    def _weighed(self, weight: FloatArray) -> FloatArray:
        if self.weight == "equal":
            return np.ones_like(weight)
        return weight if self.weight == "linear" else np.sqrt(weight)

    def _counted(self, queue: Queue) -> FloatArray:
        """What each request adds to the sum."""
        weighed = self._weighed(queue.weight)
        if self.weight == "sqrt-parallel":
            weighed = np.where(queue.requests.maximum[queue.rows] > 1, weighed, 0.0)
        return weighed

    def _running(self, queue: Queue, now: float) -> float:
        """What the running requests add to the sum."""
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
