"""Core counts of moldable jobs: a formula over the queue limits the sizes that are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.model.time import NEVER, IntArray
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


_WEIGHTS = ("linear", "sqrt", "sqrt-parallel", "equal")
_SCOPES = ("system", "remaining", "queued")


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
        for name, known in (("weight", _WEIGHTS), ("scope", _SCOPES)):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name} is {value!r}; expected one of {', '.join(known)}")
        if not 0 < self.wf < float("inf"):
            raise ValueError(f"wf is {self.wf}; a weight factor above 0 is needed")
        if not 0 < self.gap <= 1:
            raise ValueError(f"gap is {self.gap}; a fraction of the machine above 0, at most 1, is needed")

    def limits(self, queue: Queue, now: float) -> IntArray:
        """Return the limits of `gridsim.policy.limits`, which compiled cycles use too."""
        requests, running = queue.requests, queue.state["running"]
        n, found = len(requests), self.columns(queue.requests)
        began, ends = np.zeros(n, dtype=np.int64), np.zeros(len(running), dtype=np.int64)
        if running.state:
            began[running.rows], ends[:] = (np.rint(running.state[name] * 1e6) for name in ("began", "expected"))
        counts = np.array([len(running), 0, queue.state["total"]])
        held = np.stack([ends, running.rows]), counts, requests.cores, began
        limits.allow(round(now * 1e6), queue.rows, held, np.ones(n, dtype=np.int64), np.full(n, NEVER), found)
        return found.allowed[: len(queue)]

    def columns(self, requests: Requests) -> Limits:
        """Return the same limits for compiled cycles (`gridsim.policy.limits`), equal to the last bit."""
        weight, scope = _WEIGHTS.index(self.weight), _SCOPES.index(self.scope)
        return limits.limits_of(requests, limits.SHARE, weight, scope, wf=self.wf, gap=self.gap)
