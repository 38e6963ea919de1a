"""Deadlines from a reference schedule, for workloads without deadlines, and tolerances of users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.decimal_numbers import exact
from gridsim.model.time import NEVER, FloatArray, IntArray, to_us
from gridsim.model.workload import Workload, recorded
from gridsim.record import Record
from gridsim.registry import Spec


@dataclass(frozen=True)
class Deadlines:
    """Deadlines derived from the response time of each job in a reference schedule of the same workload.

    Parameters
    ----------
    stringency : float
        0 sets the deadline to the end in the reference schedule, 1 to the end after a start without any wait.
    fraction : float
        Share of jobs that have a deadline.
    tolerance : float
        Factor by which users accept a longer response time than requested, at least 1; 1 means no tolerance.
    random_tolerance : bool
        Draw a tolerance for each job, uniform between 0 and twice *tolerance*; values below 1 count as 1.
    reference : str or Spec
        Policy of the reference schedule. The scenario (scenario file, ``--transform``) simulates it on its own
        machine, with the workload as it is before this transform.

    Notes
    -----
    A deadline is submit + max(runtime, ceil((1 - stringency) * response)). Where the estimate is longer, the deadline
    is submit + estimate, because no scheduler can guarantee an earlier end. A job that did not run in the reference
    schedule (too wide for the machine, or rejected) has no deadline.

    The job number determines whether a job has a deadline, and its tolerance. The jobs of a smaller *fraction* are
    therefore a subset of those of a larger one, and a job keeps its draws when other jobs are added.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2003 and 2004; sections 7.2, 8.2 and 8.3 of the project's specification of deadline
    admission.

    Examples
    --------
    >>> reference = Record.from_rows([dict(submit=0, start=0, end=20), dict(submit=2, start=20, end=30)])
    >>> Deadlines(stringency=0.2).apply(reference.workload, np.random.default_rng(1), reference).deadline // 1_000_000
    array([20, 25])
    """

    stringency: float = 0.2
    fraction: float = 1.0
    tolerance: float = 1.0
    random_tolerance: bool = False
    reference: str | Spec = "easy"

    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, 2004"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            stringency=(0 <= self.stringency <= 1, "0 to 1"),
            fraction=(0 <= self.fraction <= 1, "0 to 1"),
            tolerance=_tolerable(self.tolerance),
        )

    def apply(self, workload: Workload, rng: np.random.Generator, reference: Record) -> Workload:
        """Return the *workload* with deadlines.

        Raises
        ------
        InputError
            If the workload has deadlines already, or the *reference* is a record of other jobs.
        """
        if (workload.deadline < NEVER).any():
            raise InputError("the workload has deadlines already", field="deadline")
        _check_same(workload, reference.workload)
        flags, factors = rng.spawn(2)
        asked = (by_number(workload.job, flags) < self.fraction) & reference.ran
        response = np.where(asked, reference.end_us - workload.submit, 0)
        tick = float(workload.provenance.get("tick", 1.0))
        deadline = requested_deadlines(workload.submit, workload.runtime, response, self.stringency, tick=tick)
        with_deadlines = replace(
            workload,
            deadline=np.where(asked, np.maximum(deadline, workload.submit + workload.estimate), NEVER),
            tolerance=workload.tolerance
            if self.tolerance == 1 and not self.random_tolerance
            else tolerances(workload.job, self.tolerance, self.random_tolerance, factors),
        )
        return recorded(
            with_deadlines,
            self,
            reference=str(self.reference),
            reference_cores=reference.cores,
            with_deadline=int(np.count_nonzero(asked)),
            did_not_run=int(np.count_nonzero(~reference.ran)),
        )


def _check_same(workload: Workload, other: Workload) -> None:
    """Raise unless the reference schedule has the same job numbers, submit times, run times and core counts.

    Raises
    ------
    InputError
        For the first difference.
    """
    if len(workload) != len(other):
        raise InputError(
            f"the reference record is of another log: it has {len(other)} jobs, but the workload has {len(workload)}",
            field="reference",
        )
    for name in ("job", "submit", "runtime", "cores"):
        column, others = getattr(workload, name), getattr(other, name)
        if (column != others).any():
            row = int(np.argmax(column != others))
            raise InputError(
                f"the reference record is of another log: job {workload.job[row]} differs in {name}",
                field="reference",
            )


def requested_deadlines(
    submit: IntArray, runtime: IntArray, response: IntArray, stringency: float, *, tick: float = 1.0
) -> IntArray:
    """Return requested deadlines: submit + max(runtime, ceil((1 - stringency) * response)).

    Parameters
    ----------
    submit, runtime : (n,) int64
        Whole microseconds.
    response : (n,) int64
        End minus submit of each job in a reference schedule (EASY), whole microseconds.
    stringency : float
        0 sets the deadline to the end in the reference schedule, 1 to the end after a start without any wait.
    tick : float
        Unit to which the ceiling rounds, s.

    Returns
    -------
    (n,) int64
        Deadlines, whole microseconds.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2003 and 2004; section 8.2 of the project's specification of deadline admission
    gives the exact rule.

    Examples
    --------
    >>> rounded_seconds = 1_000_000
    >>> columns = [np.array([value]) * rounded_seconds for value in (2, 10, 28)]
    >>> int(requested_deadlines(*columns, 0.2)[0]) // rounded_seconds
    25
    """
    share = 1 - exact(stringency, "stringency")
    if share < 0:
        raise InputError(f"stringency {stringency} is above 1", field="stringency")
    unit = to_us(tick) * share.denominator
    # Whole ticks and the remainder are separate, so that the product with the numerator fits into 64 bits.
    ticks, rest = response // unit, response % unit
    shortened = ticks * share.numerator * to_us(tick) + -(-(rest * share.numerator) // unit) * to_us(tick)
    deadlines: IntArray = submit + np.maximum(runtime, shortened)
    return deadlines


_LARGEST_NUMBER = 1 << 26


@dataclass(frozen=True)
class Tolerance:
    """Users who accept up to *factor* times the response time that their deadline requests.

    Parameters
    ----------
    factor : float
        1 or more; 1 is no tolerance.
    random : bool
        Draw a factor for each job, uniform between 0 and twice *factor*; values below 1 count as 1.

    Notes
    -----
    The transform ``deadlines`` sets tolerances as well. Use this one to give jobs separate tolerances although their
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
        check_parameters(self, factor=_tolerable(self.factor))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with these tolerances, which replace existing ones."""
        return recorded(replace(workload, tolerance=tolerances(workload.job, self.factor, self.random, rng)), self)


def _tolerable(factor: float) -> tuple[bool, str]:
    return 1 <= factor < np.inf, "1 (none) or more"


def tolerances(job: IntArray, factor: float, random: bool, rng: np.random.Generator) -> FloatArray:
    """Return the tolerance of each job: *factor*, or a random one per job if *random*."""
    if not random:
        return np.full(len(job), float(factor))
    return np.maximum(1.0, 2.0 * factor * by_number(job, rng))


def by_number(job: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return a uniform number in [0, 1) for each job, determined by its number and independent of the other jobs.

    Raises
    ------
    InputError
        For job numbers below 0 or above the largest number that can be drawn.
    """
    for number in (int(job.min(initial=0)), int(job.max(initial=0))):
        if not 0 <= number < _LARGEST_NUMBER:
            raise InputError(f"job number {number}; expected 0 to {_LARGEST_NUMBER - 1} for random draws", field="job")
    return rng.random(int(job.max(initial=0)) + 1)[job]
