"""Arrivals without completions that fill a machine, to measure how much can be allocated before no job fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import Workload, recorded

ENDLESS = 10**9
"""Run time and estimate of the jobs, s: 31 years, longer than every run of this kind."""


@dataclass(frozen=True)
class Inflate:
    """All jobs in random order, then further random draws of them, until they request *demand* machines.

    Parameters
    ----------
    demand : float
        Total requested amount relative to the capacity of the machine.
    resource : str
        Resource that is counted: ``gpu`` (thousandths), ``cores``, ``memory`` …
    capacity : int, optional
        Capacity of the machine for this resource; by default that of the platform.
    interval : float
        Time between two arrivals, s.

    Notes
    -----
    Jobs last 10⁹ s, so no job ends. Give the run an end (``until`` of its options); jobs without a start then have the
    status ``waiting``. Jobs are drawn with replacement until the next one would exceed the requested total. In this
    check, the GPU request of the next job counts as at most one GPU, as in the published program.

    References
    ----------
    Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent*, USENIX
    ATC 2023.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 50], runtime=[1, 2], cores=[3, 3])
    >>> Inflate(demand=2, resource="cores", capacity=6).apply(log, np.random.default_rng(1)).submit / 1e6
    array([0., 1., 2., 3.])
    """

    demand: float = 1.3
    resource: str = GPU
    capacity: int | None = None
    interval: float = 1.0

    source: ClassVar[str] = "Weng et al. 2023"

    def __post_init__(self) -> None:
        demand = (0 < self.demand <= 1000, "a number of machines above 0, up to 1,000")
        check_parameters(self, demand=demand, interval=(1e-6 <= self.interval <= 1e6, "seconds from 1e-06 to 1e6"))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the jobs in an order drawn from *rng*.

        Raises
        ------
        InputError
            For workflows, for a machine or jobs without the resource, and for too many arrivals.
        """
        workload.require_rigid("only rigid jobs can be resampled")
        if not self.capacity:
            raise InputError(f"is unknown for '{self.resource}'; expected the machine's amount", field="capacity")
        asked = workload.cores if workload.demands is None else workload.demands.total(self.resource)
        if not asked.any() or (workload.demands is None and self.resource != "cores"):
            raise InputError(f"no job requests '{self.resource}'", field="resource")
        rows = np.concatenate([rng.permutation(len(workload)), self._more(asked, self.demand * self.capacity, rng)])
        step, endless = round(self.interval * MICROSECOND), ENDLESS * MICROSECOND
        if len(rows) * step >= endless:
            raise InputError(f"is {self.interval}; {len(rows):,} arrivals exceed the largest time", field="interval")
        drawn = replace(workload, reactions=None).select(rows)
        times: IntArray = np.full(len(rows), endless, dtype=np.int64)
        made = replace(
            drawn,
            job=np.arange(1, len(rows) + 1),
            submit=np.arange(len(rows)) * step,
            runtime=times,
            estimate=times.copy(),
            deadline=np.full(len(rows), NEVER),
            logged={},
        )
        return recorded(made, self, jobs=len(made), drawn_again=len(made) - len(workload))

    def _more(self, asked: IntArray, wanted: float, rng: np.random.Generator) -> IntArray:
        """Return rows that are drawn until the next one would exceed the total."""
        once = np.minimum(asked, WHOLE_GPU) if self.resource == GPU else asked
        total, found = int(asked.sum()), list[int]()
        while total <= wanted:
            row = int(rng.integers(len(asked)))
            if total + once[row] > wanted:
                break
            found.append(row)
            total += int(asked[row])
        return np.array(found, dtype=np.int64)
