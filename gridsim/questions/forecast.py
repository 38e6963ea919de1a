"""Expected start of one more job, with the errors of such expectations on the log so far.

For policies without guarantees, the expected start assumes that all jobs run as long as estimated and no other jobs
are submitted, as in ``squeue --start``. Most jobs end before their walltime, so most start earlier. Some start later
because later arrivals are ranked first. The errors are measured on earlier jobs of the log: their expected start at
submission is compared with their start in a simulation. This is no guarantee; if the queue grows, the next wait is
longer than earlier ones.

For short expected waits, errors are differences in seconds; for longer ones, ratios of the wait to the expected wait.
Ratios to an expected wait near 0 are not meaningful.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.charges import core_class, time_class
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.admission.quoting import keeps_starts
from gridsim.policy.capabilities import capabilities_of
from gridsim.questions.quotation import Forecast
from gridsim.record import Record
from gridsim.simulation import Moment, run

FEWEST = 20
"""Number of waiting jobs below which no errors are reported."""

SMALL = 600.0
"""Expected wait, s, below which errors are in seconds instead of ratios."""

ASKED = 100
"""Largest number of evaluated jobs, selected at equal distances."""

QUANTILES = (0.25, 0.5, 0.75, 0.9)


class Setup(NamedTuple):
    """Machine, policy and options of runs."""

    platform: Platform
    scheduler: Any
    options: Run

    def run(self, workload: Workload) -> Record:
        """Return the record of a workload."""
        return run(workload, *self)


def snapshot(workload: Workload) -> tuple[Workload, float]:
    """Return the log with its running jobs unfinished, and the instant at which it was written, s of its clock.

    The instant is known if jobs were running; else it is the last submission. Run times of running jobs are replaced
    by their estimates.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 5], runtime=[3, 1], cores=[1, 1])
    >>> snapshot(log)[1]
    5.0
    """
    if not len(workload):
        raise InputError("has no jobs, so there is no state to start from", path=workload.provenance.get("source"))
    last = int(workload.submit.max())
    start, end = workload.logged_start, workload.logged_end
    if start is None or end is None:
        return workload, float(seconds(last))
    if "before_eligible" in workload.logged:  # for jobs held until a later begin time
        early = np.where(start < NEVER, 0, to_us(workload.logged["before_eligible"]))
        last = int((workload.submit - early).max())
    running = (start < NEVER) & (end >= NEVER)
    if not running.any():
        return workload, float(seconds(last))
    written = max(last, int((start + workload.runtime)[running].max()))
    runtime = np.where(running, np.maximum(workload.estimate, workload.runtime), workload.runtime)
    return replace(workload, runtime=runtime), float(seconds(written))


def expected_start(moment: Moment, setup: Setup) -> int:
    """Return the start of a moment's job if all jobs run as estimated and no others are submitted, whole microseconds.

    The scheduler's own expectation is used if it has one (``expected_starts``, or a plan); `NEVER` if it rejects the
    job.
    """
    own: Any = moment.cluster.scheduler
    expected_by = _expectation(own)
    if expected_by is not None:
        quote = own.quote(moment.job, moment.now)
        if quote is None:
            return NEVER
        own.commit(quote, moment.now)
        found = expected_by(own, moment.job, moment.now)
        if found < NEVER:
            return max(found, moment.now)
    known = setup._replace(options=replace(setup.options, failures=moment.known))
    return int(known.run(moment.as_estimated()).first_start_us[moment.job])


def _expectation(scheduler: Any) -> Callable[[Any, int, int], int] | None:
    """Return a function for the expected start of an admitted request; None if the scheduler has none."""
    if capabilities_of(scheduler).expected_starts:
        return lambda own, request, now: int(own.expected_starts(now).get(request, NEVER))
    if keeps_starts(scheduler):
        return lambda own, request, now: int(own.plan.starts().get(request, NEVER))
    return None


def forecast(label: str, workload: Workload, moment: Moment, start: float, setup: Setup) -> Forecast:
    """Return the expected start of a moment's job, and the errors of such expectations on the log so far.

    Parameters
    ----------
    label : str
        Label of the policy.
    workload : Workload
        The log; later jobs are ignored.
    start : float
        The expected start, seconds of the log's clock; NaN if the policy has none.
    """
    known = Forecast(label, start)
    if not start > seconds(moment.now) or moment.known is not None:  # a state with failures is not made again
        return known
    estimate, cores = moment.workload.estimate[moment.job :], moment.workload.cores[moment.job :]
    come = workload.select(workload.submit <= moment.now)
    if not len(come) or come.moldable is not None:
        return known
    record, machine = setup.run(come), setup.platform.cores
    waited = np.flatnonzero((record.start_us > come.submit) & record.ran)
    similar = waited[_class(come, waited, machine) == _class_of(cores, estimate, machine)[0]]
    enough = len(similar) >= FEWEST
    chosen = similar if enough else waited
    if len(chosen) < FEWEST:
        return replace(known, jobs=len(chosen))
    chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, min(ASKED, len(chosen))).astype(int))]
    expected = _expected_on_arrival(record, chosen, moment, setup)
    until = np.minimum(record.start_us[chosen], moment.now)
    asked = (expected < NEVER) & (expected > come.submit[chosen])
    small = start - seconds(moment.now) < SMALL
    asked &= (expected - come.submit[chosen] < to_us(SMALL)) == small
    if asked.sum() < FEWEST:
        return replace(known, jobs=int(asked.sum()))
    later, hoped = (until - expected)[asked], (expected - come.submit[chosen])[asked]
    turned_out = seconds(later) if small else 1 + later / hoped
    early, middle, late, latest = quantiles(turned_out, (record.start_us[chosen] <= moment.now)[asked])
    return replace(
        known,
        jobs=int(asked.sum()),
        similar=enough,
        scale="seconds" if small else "share",
        early=early,
        middle=middle,
        late=late,
        latest=latest,
    )


def quantiles(values: FloatArray, ended: npt.NDArray[np.bool_]) -> list[float]:
    """Return the quartiles and the 90th percentile of right-censored values.

    Quantiles that cannot be estimated are NaN.

    Notes
    -----
    Jobs that are still waiting are censored; without them, every expectation would seem too long. Therefore these are
    quantiles of the Kaplan-Meier estimate.

    References
    ----------
    Kaplan and Meier, "Nonparametric estimation from incomplete observations", Journal of the American Statistical
    Association 53, 1958.

    Examples
    --------
    >>> quantiles(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, True, True]))
    [1.0, 2.0, 3.0, 4.0]
    >>> quantiles(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False]))
    [1.0, 3.0, nan, nan]
    """
    order = np.lexsort((~ended, values))
    values, ended = values[order], ended[order]
    over = 1 - np.cumprod(1 - ended / np.arange(len(values), 0, -1)) if len(values) else np.zeros(0)
    found = []
    for level in QUANTILES:
        there = np.flatnonzero((over >= level - 1e-12) & ended)
        found.append(float(values[there[0]]) if len(there) else float("nan"))
    return found


def _class(workload: Workload, rows: IntArray, machine: int) -> IntArray:
    return _class_of(workload.cores[rows], workload.estimate[rows], machine)


def _class_of(cores: IntArray, estimate: IntArray, machine: int) -> IntArray:
    """Return the class of size and requested time, as one number."""
    found: IntArray = 16 * core_class(cores, machine) + time_class(estimate)
    return found


def _expected_on_arrival(record: Record, rows: IntArray, moment: Moment, setup: Setup) -> IntArray:
    """Return the expected starts of jobs at their submission, whole microseconds; `NEVER` if unknown."""
    if _expectation(moment.cluster.scheduler) is not None:
        return _expected_by_replay(record.workload, rows, setup)
    if moment.cluster.demands is not None:
        return np.array([_expected_on_nodes(record, int(row), moment.tick, setup) for row in rows], dtype=np.int64)
    return np.array([_expected_by_state(record, int(row), setup) for row in rows], dtype=np.int64)


class _Listening:
    """Wrapper of a scheduler that records the expected start of some requests at their admission.

    The results are in *found*, which copies share, since a run copies its scheduler.
    """

    def __init__(self, inner: Any, found: dict[int, int], rows: frozenset[int]) -> None:
        self._inner, self._found, self._rows = inner, found, rows

    def __copy__(self) -> _Listening:
        return _Listening(copy.copy(self._inner), self._found, self._rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Listening:
        return _Listening(copy.deepcopy(self._inner, memo), self._found, self._rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._inner, name, value)

    def commit(self, quote: Any, now: int) -> Any:
        """Admit a request, and record its expected start."""
        stops = self._inner.commit(quote, now)
        request = quote.request
        if request in self._rows:
            expected_by = _expectation(self._inner)
            self._found[request] = NEVER if expected_by is None else max(expected_by(self._inner, request, now), now)
        return stops


def _expected_by_replay(workload: Workload, rows: IntArray, setup: Setup) -> IntArray:
    found: dict[int, int] = {}
    setup._replace(scheduler=_Listening(setup.scheduler, found, frozenset(rows.tolist()))).run(workload)
    return np.array([found.get(row, NEVER) for row in rows.tolist()], dtype=np.int64)


def _expected_on_nodes(record: Record, row: int, tick: int, setup: Setup) -> int:
    """Return the expected start of a job from a simulation of all earlier jobs, since placement affects free nodes.

    Jobs that ended before the machine was last idle are ignored.
    """
    workload, now = record.workload, int(record.workload.submit[row])
    come = slice(0, row + 1)
    start, end = record.start_us[come], record.end_us[come]
    over = np.maximum.accumulate(np.concatenate([[0], np.where(start < NEVER, end, 0)[:-1]]))
    idle = np.flatnonzero(over <= workload.submit[come])  # all earlier jobs had ended at these submissions
    first = int(idle[-1]) if len(idle) else 0
    runtime = workload.runtime[come].copy()
    left = (start < NEVER) & (end > now)
    runtime[left] = workload.estimate[come][left]
    runs = left & (start < now)
    runtime[runs] = np.maximum(runtime[runs], now - start[runs] + tick)
    small = replace(workload.select(come), runtime=runtime).select(slice(first, row + 1))
    return int(setup.run(small).start_us[-1])


def _expected_by_state(record: Record, row: int, setup: Setup) -> int:
    """Return the expected start of a job from a separate run of the jobs running and waiting at its submission."""
    workload, now = record.workload, int(record.workload.submit[row])
    before = np.arange(row + 1)
    start, end = record.start_us[: row + 1], record.end_us[: row + 1]
    ran = start < NEVER
    running, waiting = before[ran & (start < now) & (end > now)], before[ran & (start >= now)]
    left = np.maximum(start[running] + workload.estimate[running], now + MICROSECOND)
    return _start_of_last(workload, now, running, left, record.given[running], waiting, setup)


def _start_of_last(
    workload: Workload, now: int, running: IntArray, ends: IntArray, held: IntArray, waiting: IntArray, setup: Setup
) -> int:
    """Return the start of the last waiting job, if running jobs end at *ends* and the others run as estimated.

    A small workload leads to the same decisions from that moment on. Until then, the running jobs and one additional
    job with all other cores fill the machine. Waiting jobs therefore have their true submit times, and none starts
    earlier. Other state of the policy, such as past usage, is not included.
    """
    begin = int(workload.submit[waiting].min()) - MICROSECOND
    free = setup.platform.cores - int(held.sum())
    filler = waiting[: min(free, 1)]
    small, many = workload.select(np.concatenate([running, filler, waiting])), len(running) + len(filler)
    times, cores, submit = small.estimate.copy(), small.cores.copy(), small.submit - begin
    submit[:many] = 0
    times[:many] = np.concatenate([ends - begin, np.full(len(filler), now - begin)])
    cores[:many] = np.concatenate([held, np.full(len(filler), free)])
    world = replace(
        small,
        job=np.arange(1, len(small) + 1),
        submit=submit,
        runtime=times,
        estimate=times,
        cores=cores,
        deadline=np.full(len(small), NEVER),
        logged={},
    )
    found = int(setup.run(world).start_us[-1])
    return NEVER if found >= NEVER else found + begin
