"""Charges of jobs: for work done, and for the tightness of a guaranteed deadline.

The module also defines the classes of run time and cores that are the reference for tightness.

References
----------
Islam, Balaji, Sadayappan, Panda, "Towards provision of quality of service guarantees in job scheduling", CLUSTER
2004; the exact rules in sections 7.5 and 7.6 of the project's specification of deadline admission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.groups import Groups
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.record import Record

CLASSES = 16
"""Default number of classes of run time, and of cores."""

TIME_BOUNDS = tuple(2**k for k in range(CLASSES))
"""Least run time of each class, s; the last one is open."""


def time_class(runtime_us: IntArray, bounds: Sequence[float] = TIME_BOUNDS) -> IntArray:
    """Return the class of each true run time (whole microseconds): ``min(15, floor(log2 s))`` of its whole seconds.

    Parameters
    ----------
    bounds : sequence of float
        Least run time of each class, ascending, s. Shorter run times are also in class 0; a run time of 0 counts as 1
        s.

    Examples
    --------
    >>> time_class(to_us(np.array([0, 1, 2, 3, 100, 32768, 65536]))).tolist()
    [0, 0, 1, 1, 6, 15, 15]
    """
    return _class_of(runtime_us, to_us(_ascending(bounds, "time_bounds")))


def core_class(cores: IntArray, machine: int, bounds: Sequence[int] | None = None) -> IntArray:
    """Return the class of each number of *cores*: largest ``k <= 15`` with ``machine**k <= cores**16``, in integers.

    The classes are sixteen steps of equal ratio from one core to the whole machine; some are empty on a small machine.

    Parameters
    ----------
    machine : int
        Cores of the machine.
    bounds : sequence of int, optional
        Least cores of each class, ascending, instead of the rule.

    Examples
    --------
    >>> core_class(np.array([1, 2, 3, 8, 128]), 128).tolist()
    [0, 2, 3, 6, 15]
    """
    if bounds is not None:
        return _class_of(cores, _ascending(bounds, "core_bounds"))
    if machine < 1:
        raise InputError(f"a machine of {machine} cores has no classes; expected at least 1", field="machine")
    powers = [machine**k for k in range(CLASSES)]
    distinct, position = np.unique(cores, return_inverse=True)
    found = [sum(power <= width**CLASSES for power in powers) - 1 for width in distinct.tolist()]
    return np.array(found, dtype=np.int64)[position]


def core_class_bounds(machine: int) -> list[int | None]:
    """Return the least cores of each class on a machine of *machine* cores; None for an empty class.

    Examples
    --------
    >>> core_class_bounds(128)[:6]
    [1, None, 2, 3, 4, 5]
    """
    found = core_class(np.arange(1, machine + 1), machine).tolist()
    return [found.index(k) + 1 if k in found else None for k in range(CLASSES)]


def _class_of(values: IntArray, bounds: npt.NDArray[np.int64]) -> IntArray:
    return np.maximum(np.searchsorted(bounds, values, side="right") - 1, 0).astype(np.int64)


def _ascending(bounds: Sequence[float], field: str) -> npt.NDArray[np.int64]:
    """Return the bounds as an array.

    Raises
    ------
    InputError
        If there are no bounds, or they do not ascend.
    """
    if not len(bounds):
        raise InputError("no bounds are given; expected the least value of each class", field=field)
    for low, high in pairwise(bounds):
        if not low < high:
            raise InputError(f"{high} follows {low}; expected ascending bounds", field=field)
    return np.asarray(bounds)


@dataclass(frozen=True, slots=True)
class Classes:
    """Bounds of the classes of run time and cores: the 16 x 16 classes of the paper, or custom ones.

    Attributes
    ----------
    time_bounds : tuple of float
        Bounds for `time_class`, s.
    core_bounds : tuple of int or None
        Bounds for `core_class`; None: sixteen steps of equal ratio up to the machine.
    """

    time_bounds: tuple[float, ...] = TIME_BOUNDS
    core_bounds: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of classes of run time, and of cores."""
        return len(self.time_bounds), CLASSES if self.core_bounds is None else len(self.core_bounds)

    def of(self, record: Record) -> tuple[IntArray, IntArray]:
        """Return the class of run time and the class of cores of each job."""
        workload = record.workload
        return (
            time_class(workload.runtime, self.time_bounds),
            core_class(workload.cores, record.cores, self.core_bounds),
        )


def categories(record: Record, classes: Classes | None = None) -> Groups:
    """Return groups by class of run time and class of cores, run times first.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=100, cores=8)], cores=128)
    >>> groups = categories(record)
    >>> groups.names[groups.index[0]]
    'time class 6, core class 6'
    """
    classes = classes or Classes()
    lengths, widths = classes.shape
    time, core = classes.of(record)
    names = (f"time class {row}, core class {column}" for row in range(lengths) for column in range(widths))
    return Groups("category", tuple(names), time * widths + core)


@dataclass(frozen=True, slots=True, eq=False)
class CategorySlowdowns:
    """Mean slowdown of each category in a schedule without guarantees.

    Attributes
    ----------
    mean : (t, c) float64
        Mean slowdown by class of run time and class of cores; `overall` if `jobs` is 0.
    jobs : (t, c) int64
        Number of jobs in each mean.
    overall : float
        Mean slowdown of all jobs.
    classes : Classes
        Bounds of the classes.
    """

    mean: FloatArray
    jobs: IntArray
    overall: float
    classes: Classes

    def of(self, record: Record) -> FloatArray:
        """Return the slowdown of the category of each job."""
        return self.mean[self.classes.of(record)]


def category_slowdowns(*references: Record, classes: Classes | None = None) -> CategorySlowdowns:
    """Return the mean slowdown of each category in a reference schedule: EASY, on the same workload at the same load.

    Parameters
    ----------
    *references : Record
        Reference schedules; the jobs of several are pooled.
    classes : Classes, optional
        Classes; by default the 16 x 16 classes of the paper.

    Notes
    -----
    Slowdown is the response time over the held time, of at least 1 s. Jobs that did not run are excluded.
    """
    classes = classes or Classes()
    total, jobs = np.zeros(classes.shape), np.zeros(classes.shape, dtype=np.int64)
    for record in references:
        time, core = (column[record.ran] for column in classes.of(record))
        slowdown = (record.response / np.maximum(record.held, 1.0))[record.ran]
        np.add.at(total, (time, core), slowdown)
        np.add.at(jobs, (time, core), 1)
    count = int(jobs.sum())
    overall = float(total.sum()) / count if count else float("nan")
    mean = np.where(jobs > 0, total / np.maximum(jobs, 1), overall)
    return CategorySlowdowns(mean, jobs, overall, classes)


def resource_charge(record: Record) -> FloatArray:
    """Return cores times held time of each job, core-seconds; 0 for jobs that did not run.

    Notes
    -----
    Only the last run of a job is charged, not work lost when it was killed to free cores for another job. A job that
    was killed at its walltime is charged for its held cores.

    Examples
    --------
    >>> resource_charge(Record.from_rows([dict(submit=0, start=3, end=8, cores=4)]))
    array([20.])
    """
    return np.nan_to_num(record.area, nan=0.0)


def requested_slowdown(record: Record) -> FloatArray:
    """Return the time from submission to the granted deadline over the true run time.

    NaN without a requested and granted one.

    Notes
    -----
    The granted deadline counts, not the requested one, so jobs that accept a later one are charged less. A run time
    below 1 s counts as 1 s.
    """
    workload, promises = record.workload, record.promises
    if promises is None:
        return np.full(len(record), np.nan)
    asked = (workload.deadline < NEVER) & (promises.granted_us < NEVER)
    runtime = seconds(np.maximum(workload.runtime, MICROSECOND))
    return np.where(asked, seconds(np.where(asked, promises.granted_us - workload.submit, 0)) / runtime, np.nan)


def queued_work(record: Record) -> FloatArray:
    """Return the requested core-seconds (cores times estimate) waiting when each job is submitted.

    Notes
    -----
    They are those of jobs submitted at an earlier instant that start at this instant or later; for a killed job its
    last start counts. Jobs that never run are excluded.

    Examples
    --------
    >>> rows = [dict(submit=0, start=0, end=10, cores=4), dict(submit=1, start=10, end=15, cores=2)]
    >>> queued_work(Record.from_rows([*rows, dict(submit=5, start=15, end=16, cores=1)], cores=4))
    array([ 0.,  0., 10.])
    """
    work = np.where(record.ran, record.workload.cores * seconds(record.workload.estimate), 0.0)

    def before(instants: IntArray) -> FloatArray:
        order = np.argsort(instants, kind="stable")
        done = np.concatenate([[0.0], np.cumsum(work[order])])
        return done[np.searchsorted(instants[order], record.workload.submit)]

    return np.maximum(before(record.workload.submit) - before(record.start_us), 0.0)


def qos_charge(record: Record, slowdowns: CategorySlowdowns, *, load: float = 0.0) -> FloatArray:
    """Return the charge of each job for its guarantee: slowdown of its category over the requested slowdown.

    0 without one.

    Parameters
    ----------
    slowdowns : CategorySlowdowns
        From `category_slowdowns` of an EASY schedule of the same workload.
    load : float
        Weight of the load: the slowdown of the category is multiplied by 1 + *load* times `queued_work` over the
        core-seconds of the machine in an hour. 0: independent of the load.

    Raises
    ------
    InputError
        If *load* is below 0 or not finite.

    Notes
    -----
    The charge is 1 for a deadline equal to the average response under EASY of jobs of this category, and more for a
    tighter one. Jobs without a deadline and refused jobs are not charged. The operator decides how to combine the two
    charges.

    Section 3 of the paper names the load, in addition to the slowdown of the category, as a part of the difficulty of
    a request, without a formula. The factor for *load* is defined by gridsim.

    Examples
    --------
    >>> from gridsim.record import Promises
    >>> easy = Record.from_rows([dict(submit=0, start=50, end=150, cores=8)])
    >>> easy.workload.deadline[:] = to_us(120)
    >>> none, no_rows = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    >>> granted = Promises(easy.workload.deadline, none + NEVER, none, none > 0, no_rows, no_rows, no_rows)
    >>> record = Record(easy.workload, none, to_us(np.array([100])), easy.status, easy.cluster, 8, promises=granted)
    >>> qos_charge(record, category_slowdowns(easy))
    array([1.25])
    """
    if not 0 <= load < np.inf:
        raise InputError(f"is {load}; expected a number of at least 0", field="load")
    difficulty = slowdowns.of(record)
    if load:
        difficulty = difficulty * (1 + load * queued_work(record) / (3600 * record.cores))
    return np.nan_to_num(difficulty / requested_slowdown(record), nan=0.0)


@dataclass(frozen=True)
class CoreHours:
    """Core-hours held by a job, times *price*; work lost by preemption is not charged.

    Parameters
    ----------
    price : float
        Price of one core-hour.

    Examples
    --------
    >>> CoreHours(price=0.5).charge(Record.from_rows([dict(submit=0, start=0, end=7200, cores=4)]))
    array([4.])
    """

    price: float = 1.0

    def charge(self, record: Record) -> FloatArray:
        return resource_charge(record) / 3600 * self.price
