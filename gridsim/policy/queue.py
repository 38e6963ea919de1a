"""What a policy may know: requests as columns, the waiting ones among them, the running ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.model.workload import Workload

__all__ = ["ClusterView", "Queue", "Requests"]


def _writable(column: IntArray) -> IntArray:
    """Column as the kernels want it: contiguous and writable, so that they are compiled once."""
    return np.require(column, dtype=np.int64, requirements=["C", "W"])


class Requests:
    """Every request of a run as columns, numbered in job order; true runtimes are not among them.

    Attributes
    ----------
    cores : (n,) int64
        Cores asked for.
    estimate, submit, deadline : (n,) int64
        Whole microseconds; `NEVER` for no deadline.
    labels : mapping of str to (n,) int64
        User, group, queue …, as far as the source tells.
    """

    def __init__(self, workload: Workload) -> None:
        self.cores = _writable(workload.cores)
        self.estimate = _writable(workload.estimate)
        self.submit = _writable(workload.submit)
        self.deadline = _writable(workload.deadline)
        self.labels: Mapping[str, IntArray] = workload.labels

    def __len__(self) -> int:
        return len(self.cores)

    @cached_property
    def cores_float(self) -> FloatArray:
        """Cores as floats, for orderings."""
        return self.cores.astype(np.float64)

    @cached_property
    def estimate_seconds(self) -> FloatArray:
        """Estimates, s."""
        return self.estimate / 1e6

    @cached_property
    def submit_seconds(self) -> FloatArray:
        """Submit times, s."""
        return self.submit / 1e6

    @cached_property
    def deadline_seconds(self) -> FloatArray:
        """Deadlines, s; infinity for none."""
        return np.where(self.deadline >= NEVER, np.inf, self.deadline / 1e6)


@dataclass(slots=True)
class ClusterView:
    """What a scheduler gets in `setup`: its cluster's size, all requests that may come, the tick (microseconds)."""

    cores: int
    requests: Requests
    tick: int = 1_000_000
    index: int = 0


@dataclass(slots=True)
class Queue:
    """Waiting requests as columns in job order, for orderings and rules: seconds and cores as floats.

    Attributes
    ----------
    rows : (n,) int64
        Numbers of the requests.
    state : mapping
        ``free`` and ``total`` cores of the cluster.
    """

    requests: Requests
    rows: IntArray
    state: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def cores(self) -> FloatArray:
        """Cores asked for."""
        return self.requests.cores_float[self.rows]

    @property
    def estimate(self) -> FloatArray:
        """Walltime estimates, s."""
        return self.requests.estimate_seconds[self.rows]

    @property
    def area(self) -> FloatArray:
        """Cores times estimate, core-seconds."""
        return self.cores * self.estimate

    @property
    def submit(self) -> FloatArray:
        """Submit times, s."""
        return self.requests.submit_seconds[self.rows]

    @property
    def deadline(self) -> FloatArray:
        """Deadlines, s; infinity for none."""
        return self.requests.deadline_seconds[self.rows]

    def label(self, name: str) -> IntArray:
        """A label column, such as ``user``; -1 where unknown."""
        column = self.requests.labels.get(name)
        return np.full(len(self.rows), -1) if column is None else column[self.rows]
