"""How much later than asked users would accept their jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.workload.provenance import recorded

__all__ = ["Tolerance", "by_number", "tolerances"]

_LARGEST_NUMBER = 1 << 26


@dataclass(frozen=True)
class Tolerance:
    """Users who accept up to *factor* times the response that their deadline asks for.

    Parameters
    ----------
    factor : float
        1 or more; 1 is no tolerance.
    random : bool
        Each job has a factor of its own, uniform between 0 and twice *factor*; values below 1 count as 1.

    Notes
    -----
    The transform ``deadlines`` gives tolerances too. This one is for jobs that shall have their own although their
    deadlines are copies: ``deadlines``, ``duplicate?arrival=same``, ``tolerance``.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2004; section 7.2 of the project's specification of deadline admission.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    >>> Tolerance(factor=3).apply(log, np.random.default_rng(1)).tolerance
    array([3., 3.])
    """

    factor: float = 1.0
    random: bool = False

    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2004"

    def __post_init__(self) -> None:
        check_factor(self.factor, "factor")

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """The *workload* with these tolerances in place of any that it had."""
        return recorded(replace(workload, tolerance=tolerances(workload.job, self.factor, self.random, rng)), self)


def check_factor(factor: float, name: str) -> None:
    """Refuse a tolerance below 1 and one without end.

    Raises
    ------
    InputError
        Naming the parameter.
    """
    if not 1 <= factor < np.inf:
        raise InputError(f"a tolerance of {factor}; expected 1 (none) or more", field=name)


def tolerances(job: IntArray, factor: float, random: bool, rng: np.random.Generator) -> FloatArray:
    """Tolerance of each job: *factor*, or one of its own where *random*."""
    if not random:
        return np.full(len(job), float(factor))
    return np.maximum(1.0, 2.0 * factor * by_number(job, rng))


def by_number(job: IntArray, rng: np.random.Generator) -> FloatArray:
    """A uniform number in [0, 1) for each job, by its number: the same whatever other jobs there are.

    Raises
    ------
    InputError
        For numbers below 0 or too large to count up to.
    """
    for number in (int(job.min(initial=0)), int(job.max(initial=0))):
        if not 0 <= number < _LARGEST_NUMBER:
            raise InputError(f"job number {number}; expected 0 to {_LARGEST_NUMBER - 1} for drawing by it", field="job")
    return rng.random(int(job.max(initial=0)) + 1)[job]
