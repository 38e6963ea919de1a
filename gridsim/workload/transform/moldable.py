"""Ranges of cores for rigid jobs, by one rule for all jobs."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.decimal_numbers import exact
from gridsim.model.moldable import Moldable
from gridsim.model.platform import machine_cores
from gridsim.model.speedup import Downey, Speedup, fitted
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload, recorded
from gridsim.registry import name_of


@dataclass(frozen=True)
class MoldableJobs:
    """Jobs that may start on a range of cores around their request and run longer on fewer cores.

    Parameters
    ----------
    range_factor : float
        At least 1. At 1, a job can use 1 core up to the whole machine. At 2, it can use half of its request up to
        half-way between its request and the machine, and so on. Large factors make jobs rigid.
    sigma : float
        Variation of the parallelism in Downey's model; 0 means linear speedup.
    parallelism : float or None
        Average parallelism of all jobs in that model; by default the largest number of cores of each job.
    sequential : {"stay", "by-formula"}
        Jobs that request one core stay sequential, or have a range like all others.
    speedup : Speedup or None
        Another law instead of Downey's: ``amdahl(serial=0.1)``, ``linear``, ``table(rows=[(4,100),(8,55)])``.
    cores : int or None
        Cores of the machine; on several clusters, the cores of the widest one.

    Notes
    -----
    The range is ``p + 1 - ceil(p / range_factor)`` to ``p + floor((N - p) / range_factor)`` for p requested cores and
    N cores of the machine, in whole numbers. Core counts that do not make a job faster are then dropped. Run time and
    estimate of the log apply to p cores. In workflows, each task has a range.

    References
    ----------
    Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
    CLUSTER 2003; sections 2.2 and 2.3 of the project's specification of moldable jobs.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[60, 60], cores=[16, 1])
    >>> ranges = MoldableJobs(range_factor=2, cores=128).apply(log).moldable
    >>> ranges.minimum, ranges.maximum
    (array([9, 1]), array([72,  1]))
    """

    range_factor: float = 2.0
    sigma: float = 1.0
    parallelism: float | None = None
    sequential: Literal["stay", "by-formula"] = "stay"
    speedup: Speedup | None = None
    cores: int | None = None

    name: ClassVar[str] = "moldable"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"
    machine: ClassVar[str] = "widest"

    def __post_init__(self) -> None:
        check_parameters(self, range_factor=(1 <= self.range_factor < np.inf, "1 or more"))
        law = Downey(self.parallelism, self.sigma)
        if self.speedup is not None and law != Downey():
            raise InputError("give either a speedup, or sigma and parallelism of Downey's model", field="speedup")

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with ranges; *rng* is not used.

        Raises
        ------
        InputError
            If the workload has ranges already, or a job requests more cores than the machine has.
        """
        machine = rigid_within(workload, self.cores)
        requested, numbers = workload.requested
        minimum, maximum = factor_range(requested, self.range_factor, machine)
        if self.sequential == "stay":
            maximum = np.where(requested == 1, 1, maximum)
        widths, curve = np.unique(maximum, return_inverse=True)
        law = self.speedup or Downey(self.parallelism, self.sigma)
        laws = [fitted(law, width) for width in widths.tolist()]
        made = Moldable.of(requested, minimum, maximum, laws, curve, names=numbers)
        entry = {} if self.speedup is None else {"speedup": _spec_of(self.speedup)}
        return recorded(replace(workload, moldable=made), self, **entry, **facts(made, machine))


def _spec_of(speedup: Speedup) -> str:
    """Return the law with its parameters, or the name of a plain class."""
    return repr(speedup) if is_dataclass(speedup) else name_of(type(speedup))


def factor_range(cores: IntArray, range_factor: float, machine: int) -> tuple[IntArray, IntArray]:
    """Return the smallest and largest number of cores for requests of *cores*, by the plain formula.

    Parameters
    ----------
    machine : int
        Cores of the machine, at least the largest request.

    Examples
    --------
    >>> factor_range(np.array([4, 127]), 1.5, 128)
    (array([ 2, 43]), array([ 86, 127]))
    """
    factor = exact(range_factor, "range_factor")
    above, below = factor.numerator, factor.denominator
    return cores + 1 + (-cores * below) // above, cores + (machine - cores) * below // above


def rigid_within(workload: Workload, cores: int | None) -> int:
    """Return the number of cores of the machine that limits the ranges.

    Parameters
    ----------
    cores : int or None
        The given number; None for the number that the source of the workload states.

    Raises
    ------
    InputError
        If jobs have ranges already, if the size of the machine is unknown, and for a job wider than the machine.
    """
    if workload.moldable is not None:
        raise InputError("the jobs already have ranges of cores; give ranges once", field="moldable")
    machine = machine_cores(workload, cores)[0]
    requested, numbers = workload.requested
    if (requested > machine).any():
        row = int(np.argmax(requested > machine))
        raise InputError(
            f"job {numbers[row]} requests {requested[row]} cores; expected at most the {machine} cores of the machine",
            field="cores",
        )
    return machine


def facts(made: Moldable, machine: int) -> dict[str, Any]:
    """Return the facts on ranges for `run.json`."""
    return {"cores": machine, "moldable": int(np.count_nonzero(made.maximum > made.minimum)), "rows": len(made)}
