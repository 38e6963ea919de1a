"""Other loads from the same jobs, submitted faster or more slowly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.dates import UNDATED
from gridsim.model.decimal_numbers import exact, rounded
from gridsim.model.platform import machine_cores
from gridsim.model.time import NEVER, seconds
from gridsim.model.workload import Workload, recorded

_SMALLEST, _LARGEST = 0.0001, 100_000.0
"""Bounds of load factors, percent; bounds of offered loads as fractions."""


@dataclass(frozen=True)
class LoadFactor:
    """The same jobs at *percent* of the load: gaps between submissions are divided by *percent* / 100.

    Parameters
    ----------
    percent : float
        Above 0; 100 changes nothing.

    Notes
    -----
    Submit times are ``first + (submit - first) * 100 / percent``, rounded half up to whole microseconds. A deadline
    keeps its distance from the submit time. The logged schedule (``logged``) is dropped. Other transforms that change
    the load: ``expand``, ``duplicate``.

    References
    ----------
    Srinivasan, Krishnamoorthy, Sadayappan 2003; section 8.2 of the project's specification of moldable jobs.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 100, 250], runtime=[1, 2, 3], cores=[1, 1, 1])
    >>> LoadFactor(percent=125).apply(log).submit / 1e6
    array([  0.,  80., 200.])
    """

    percent: float = 100.0

    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"

    def __post_init__(self) -> None:
        check_parameters(self, percent=(_SMALLEST <= self.percent <= _LARGEST, f"{_SMALLEST} to {_LARGEST:.0f}"))

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with these submit times; *rng* is not used.

        Raises
        ------
        InputError
            For submit times beyond the largest time of gridsim.
        """
        return recorded(_stretched(workload, 100 / exact(self.percent, "percent"), "percent"), self)


@dataclass(frozen=True)
class OfferedLoad:
    """The same jobs at a given offered load: gaps between submissions are stretched or shrunk to reach it.

    Parameters
    ----------
    load : float
        Cores times run time of all jobs, divided by the cores of the machine times the time from the first to the last
        submission; a fraction above 0.
    cores : int or None
        Cores of the machine.

    References
    ----------
    Section 8.6 of the project's specification of moldable jobs ("base load").

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 10], runtime=[10, 10], cores=[4, 4])
    >>> OfferedLoad(load=0.5, cores=8).apply(log).submit / 1e6
    array([ 0., 20.])
    """

    load: float = 0.65
    cores: int | None = None

    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"

    def __post_init__(self) -> None:
        good = _SMALLEST / 100 <= self.load <= _LARGEST / 100
        check_parameters(self, load=(good, f"a fraction such as 0.65, up to {_LARGEST / 100:.0f}"))

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with these submit times; *rng* is not used.

        Raises
        ------
        InputError
            If all jobs are submitted at one time, and for submit times beyond the largest time of gridsim.
        """
        machine = machine_cores(workload, self.cores)[0]
        before = workload.offered_load(machine)
        if not np.isfinite(before):
            raise InputError("all jobs are submitted at once; an offered load needs time between them", field="submit")
        span = int(workload.submit[-1] - workload.submit[0])
        factor = Fraction(_area(workload), machine * span) / exact(self.load, "load")
        return recorded(_stretched(workload, factor, "load"), self, cores=machine, load_before=before)


def _area(workload: Workload) -> int:
    """Return the sum of cores times true run time, core-microseconds."""
    source = workload if workload.tasks is None else workload.tasks
    return sum(cores * time for cores, time in zip(source.cores.tolist(), source.runtime.tolist(), strict=True))


def _stretched(workload: Workload, factor: Fraction, field: str) -> Workload:
    """Return the same jobs with the gaps between submissions multiplied by *factor*."""
    if factor == 1 or not len(workload):
        return workload
    first = int(workload.submit[0])
    # Python integers, because the products can exceed 64 bits.
    submits = [first + rounded((time - first) * factor) for time in workload.submit.tolist()]
    if submits[-1] + int(workload.estimate.max()) >= NEVER:
        raise InputError(f"the last job is submitted after {seconds(NEVER - 1):g} s", field=field)
    moved = workload.submitted_at(np.array(submits, dtype=np.int64))
    return replace(moved, logged={}).with_provenance(**{UNDATED: True})
