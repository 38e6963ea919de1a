"""Ranges of cores for rigid jobs, by one rule for all."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import exact
from gridsim.model.moldable import Moldable
from gridsim.model.platform import machine_cores
from gridsim.model.speedup import Downey, Speedup, fitted
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload, recorded
from gridsim.registry import name_of


@dataclass(frozen=True)
class MoldableJobs:
    """Jobs that may start on any number of cores around what they ask for, and take the longer the fewer they get.

    Parameters
    ----------
    range_factor : float
        1 or more. At 1 a job may have 1 core to the whole machine, at 2 half of its request to half-way from there to
        the machine, and so on; large ones make it rigid.
    sigma : float
        Variation of the parallelism in Downey's model; 0 is linear speedup.
    parallelism : float or None
        Average parallelism of all jobs in that model; the largest number of cores of each job where left out.
    sequential : {"stay", "by-formula"}
        Jobs that ask for one core stay sequential, or get a range like all others.
    speedup : Speedup or None
        Another law in place of Downey's: ``amdahl(serial=0.1)``, ``linear``, ``table(rows=[(4,100),(8,55)])``.
    cores : int or None
        Cores of the machine; of the widest cluster where it has several.

    Notes
    -----
    The range is from ``p + 1 - ceil(p / range_factor)`` to ``p + floor((N - p) / range_factor)`` of p cores asked for
    and N of the machine, in whole numbers; then no job may have more cores than make it faster. Runtime and estimate of
    the log are those on p cores. Of jobs of several tasks, each task has a range.

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
        if not 1 <= self.range_factor < np.inf:
            raise InputError(f"a range factor of {self.range_factor}; expected 1 or more", field="range_factor")
        law = Downey(self.parallelism, self.sigma)
        if self.speedup is not None and law != Downey():
            raise InputError("give either a speedup, or sigma and parallelism of Downey's", field="speedup")

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """The *workload* with ranges; nothing is drawn from *rng*.

        Raises
        ------
        InputError
            When it has ranges already, or a job asks for more cores than there are.
        """
        machine = rigid_within(workload, self.cores)
        requested, numbers = workload.asked
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
    """A law with its parameters, of a plain class its name."""
    return repr(speedup) if is_dataclass(speedup) else name_of(type(speedup))


def factor_range(cores: IntArray, range_factor: float, machine: int) -> tuple[IntArray, IntArray]:
    """Smallest and largest number of cores for requests of *cores*, by the plain formula.

    Parameters
    ----------
    machine : int
        Cores of the machine; no request is above.

    Examples
    --------
    >>> factor_range(np.array([4, 127]), 1.5, 128)
    (array([ 2, 43]), array([ 86, 127]))
    """
    factor = exact(range_factor, "range_factor")
    above, below = factor.numerator, factor.denominator
    return cores + 1 + (-cores * below) // above, cores + (machine - cores) * below // above


def rigid_within(workload: Workload, cores: int | None) -> int:
    """Cores of the machine that ranges are for.

    Parameters
    ----------
    cores : int or None
        As given; None for what the source of the workload states.

    Raises
    ------
    InputError
        When jobs have ranges already, when nobody says how large the machine is, and for a job wider than it.
    """
    if workload.moldable is not None:
        raise InputError("the jobs have ranges of cores already; give them once", field="moldable")
    machine = machine_cores(workload, cores)[0]
    requested, numbers = workload.asked
    if (requested > machine).any():
        row = int(np.argmax(requested > machine))
        raise InputError(
            f"job {numbers[row]} asks for {requested[row]} cores; expected at most the {machine} of the machine",
            field="cores",
        )
    return machine


def facts(made: Moldable, machine: int) -> dict[str, Any]:
    """What `run.json` tells of ranges."""
    return {"cores": machine, "moldable": int(np.count_nonzero(made.maximum > made.minimum)), "rows": len(made)}
