"""Transforms that replace the walltime estimates of jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gridsim.errors import check_parameters
from gridsim.model.tasks import Tasks
from gridsim.model.time import IntArray, to_us
from gridsim.model.workload import Workload, recorded
from gridsim.workload.transform.deadlines import by_number

_WIDEST = 5.0
"""Largest spread: at this value, one job in a thousand is misestimated by a factor of five million."""
_BEST = 1e6
"""Largest improvement factor: at this value, an overestimate of a year shrinks to half a minute."""
_LEAST_ESTIMATE = 1_000_000
"""A second, in whole microseconds."""


def with_estimates(workload: Workload, estimate: IntArray, tasks: Tasks | None = None) -> tuple[Workload, int]:
    """Return the workload with other estimates, and the number of deadlines moved to the earliest end they allow.

    Parameters
    ----------
    estimate : (n,) int64
        Estimate of each job, whole microseconds.
    tasks : Tasks, optional
        Tasks of DAG jobs with their new estimates.
    """
    least = workload.submit + estimate
    moved = workload.deadline < least
    found = replace(workload, estimate=estimate, tasks=tasks, deadline=np.where(moved, least, workload.deadline))
    found.check()
    return found, int(np.count_nonzero(moved))


@dataclass(frozen=True)
class ExactEstimates:
    """Estimates equal to the true run times, per task for workflows.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[100], estimate=[3600], cores=[1])
    >>> ExactEstimates().apply(log).estimate // 1_000_000
    array([100])
    """

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with exact estimates; *rng* is not used.

        Raises
        ------
        InputError
            If a job that exceeded its estimate cannot meet its deadline with an exact one.
        """
        tasks = None if workload.tasks is None else replace(workload.tasks, estimate=workload.tasks.runtime)
        changed = int(np.count_nonzero(workload.estimate != workload.runtime))
        exact = replace(workload, estimate=workload.runtime.copy(), tasks=tasks)
        exact.check()
        return recorded(exact, self, changed=changed)


@dataclass(frozen=True)
class BetterEstimates:
    """Estimates with a smaller overestimate of the true run time, per task for workflows.

    Parameters
    ----------
    factor : float
        Improvement factor: 2 halves the overestimate, 1 changes nothing. Underestimates stay.

    Notes
    -----
    The estimate is runtime + (estimate - runtime) / factor, in whole microseconds, rounded half up.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0], runtime=[100, 100], estimate=[3700, 50], cores=[1, 1])
    >>> BetterEstimates(factor=2).apply(log).estimate // 1_000_000
    array([1900,   50])
    """

    factor: float = 2.0

    def __post_init__(self) -> None:
        check_parameters(self, factor=(1 <= self.factor <= _BEST, f"1 to {_BEST:g} times better"))

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with these estimates; *rng* is not used."""
        tasks = workload.tasks
        if tasks is not None:
            tasks = replace(tasks, estimate=self._nearer(tasks.estimate, tasks.runtime))
        estimate = self._nearer(workload.estimate, workload.runtime)
        changed = int(np.count_nonzero(estimate != workload.estimate))
        better = replace(workload, estimate=estimate, tasks=tasks)
        better.check()
        return recorded(better, self, changed=changed)

    def _nearer(self, estimate: IntArray, runtime: IntArray) -> IntArray:
        spare = np.maximum(estimate - runtime, 0)
        nearer: IntArray = estimate - spare + np.floor(spare / self.factor + 0.5).astype(np.int64)
        return nearer


@dataclass(frozen=True)
class NoisyEstimates:
    """Estimates with a random error factor of median 1: half of them are too short, half too long.

    Parameters
    ----------
    spread : float
        Standard deviation of the logarithm of the error; 0 means exact. Two of three jobs are estimated within a
        factor of exp(spread) of their run times.

    Notes
    -----
    The estimate of a job is max(1 s, floor(runtime * exp(spread * z) + 1/2)), rounded in whole ticks. The standard
    normal number z is drawn by the job number. It does not change with the spread or when other jobs are added. A
    deadline before submit + estimate moves to submit + estimate, the earliest end that can be guaranteed.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0], runtime=[100, 100], cores=[1, 1])
    >>> NoisyEstimates(spread=0.5).apply(log, np.random.default_rng(1)).estimate // 1_000_000
    array([ 78, 102])
    """

    spread: float = 0.5

    def __post_init__(self) -> None:
        check_parameters(self, spread=(0 <= self.spread <= _WIDEST, f"0 (exact) to {_WIDEST:g}"))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with these estimates, which replace the existing ones.

        Raises
        ------
        InputError
            For workflows.
        """
        workload.require_rigid("only estimates of rigid jobs can be generated")
        estimate = self._estimates(workload, rng)
        noisy, moved = with_estimates(workload, estimate)
        short = int(np.count_nonzero(estimate < workload.runtime))
        return recorded(noisy, self, too_short=short, deadlines_moved=moved)

    def _estimates(self, workload: Workload, rng: np.random.Generator) -> IntArray:
        tick = to_us(float(workload.provenance.get("tick", 1.0)))
        radius, angle = (by_number(workload.job, part) for part in rng.spawn(2))
        normal = np.sqrt(-2 * np.log(1 - radius)) * np.cos(2 * np.pi * angle)  # Box, Muller 1958
        ticks = np.floor(workload.runtime / tick * np.exp(self.spread * normal) + 0.5).astype(np.int64)
        estimates: IntArray = np.maximum(ticks * tick, _LEAST_ESTIMATE)
        return estimates
