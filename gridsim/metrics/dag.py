"""Metrics of a schedule of DAG jobs in float64: utilisation, responsiveness and fairness.

Notes
-----
*Response* is finish minus arrival and is used by stretch, speedup and SLR. Section 2.2.1 of the paper defines it as
finish minus start, but the paper's tables use arrival. The metrics ``*_from_start`` follow the definition literally.

*Clock.* Times are relative to the first arrival, or to the origin of the schedule with ``origin="absolute"``; bases
and intervals use the same clock.

*Sums* are float64, since the cumulative completion of a large campaign may exceed 64-bit integers.

References
----------
Burkimsher, Bate and Indrusiak, "A survey of scheduling metrics and an improved ordering policy for list schedulers
operating on workloads with dependencies and a wide variation in execution times", Future Generation Computer Systems
29(8), 2013: equations 1 to 9, Table 1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.fairness import SPREADS, standard_deviation
from gridsim.metrics.schedule import Origin, Schedule
from gridsim.model.time import FloatArray, IntArray

NAN = float("nan")

Class = Literal["utilisation", "responsiveness", "fairness"]


class DagMetric(NamedTuple):
    """Description of a metric: *unit*, direction of *better* values, *classes* of the paper's Table 1."""

    unit: str
    better: Literal["lower", "higher"] | None
    classes: tuple[Class, ...]
    description: str


MEASURES = {
    "wait": ("ticks", "lower", "start minus arrival"),
    "response": ("ticks", "lower", "finish minus arrival"),
    "response_from_start": ("ticks", "lower", "finish minus start"),
    "stretch": ("", "lower", "response over core-ticks of execution"),
    "speedup": ("", "higher", "core-ticks of execution over response"),
    "slr": ("", "lower", "response over critical path, at least 1"),
    "slr_from_start": ("", "lower", "finish minus start over critical path"),
}
"""Values per job, as returned by `job_columns`: unit, direction of better values, description."""

_SPREAD_TEXT: dict[str, tuple[Literal["lower", "higher"], str]] = {
    "gini": ("lower", "Gini coefficient of the SLR over jobs"),
    "jain": ("higher", "Jain's index of the SLR over jobs"),
    "p99": ("lower", "99th percentile of the SLR over jobs"),
    "max_over_median": ("lower", "worst over median SLR"),
}


def _describe() -> dict[str, DagMetric]:
    """Return `DAG_METRICS`, in the order of `dag_metrics`."""
    busy: tuple[Class, ...] = ("utilisation",)
    felt: tuple[Class, ...] = ("responsiveness",)
    fair: tuple[Class, ...] = ("fairness",)
    table = {
        "makespan": DagMetric("ticks", "lower", busy, "latest finish (eq. 1)"),
        "flow": DagMetric("jobs/tick", "higher", busy, "jobs finished per tick (eq. 2; of an interval eq. 3)"),
        "utilisation": DagMetric("", "higher", busy, "busy share of the core-ticks up to the makespan (eq. 4)"),
        "utilisation_arrivals": DagMetric("", "higher", busy, "the same, between first and last arrival"),
        "peak_in_flight": DagMetric("jobs", "lower", busy, "largest number of jobs in progress at once (eq. 5)"),
        "cumulative_completion": DagMetric(
            "core-ticks x ticks",
            "higher",
            ("utilisation", "responsiveness"),
            "work times the ticks from its completion to the base (eq. 6)",
        ),
        "cumulative_completion_base": DagMetric("ticks", None, (), "base of eq. 6"),
    }
    for name, (unit, better, text) in MEASURES.items():
        way: Literal["lower", "higher"] = "higher" if better == "higher" else "lower"
        table[f"mean_{name}"] = DagMetric(unit, way, felt, f"{text}: mean over jobs")
        table[f"worst_{name}"] = DagMetric(unit, way, felt, f"{text}: worst job")
        table[f"sd_{name}"] = DagMetric(unit, "lower", fair, f"{text}: standard deviation of the sample of jobs")
    table |= {f"{name}_slr": DagMetric("", way, fair, text) for name, (way, text) in _SPREAD_TEXT.items()}
    return table | {
        "jobs": DagMetric("jobs", None, (), "jobs included in the metrics over jobs"),
        "jobs_cut": DagMetric("jobs", None, (), "jobs excluded by the warm-up and cool-down cuts"),
        "unfinished": DagMetric(
            "jobs", "lower", (), "jobs that arrived in the interval and had not finished at its end"
        ),
    }


DAG_METRICS: dict[str, DagMetric] = _describe()
"""All metrics returned by `dag_metrics`, by name."""


def job_columns(schedule: Schedule) -> dict[str, FloatArray]:
    """Return the `MEASURES` of every job.

    Examples
    --------
    >>> two = Schedule.from_tasks(
    ...     arrival=[0, 1], critical_path=[3, 2], task_job=[0, 1], task_start=[0, 3], task_finish=[3, 5], cores=1
    ... )
    >>> job_columns(two)["slr"].tolist(), job_columns(two)["slr_from_start"].tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """
    response = (schedule.finish - schedule.arrival).astype(np.float64)
    held = (schedule.finish - schedule.start).astype(np.float64)
    return {
        "wait": (schedule.start - schedule.arrival).astype(np.float64),
        "response": response,
        "response_from_start": held,
        "stretch": response / schedule.work,
        "speedup": schedule.work / response,
        "slr": response / schedule.critical_path,
        "slr_from_start": held / schedule.critical_path,
    }


def dag_metrics(
    schedule: Schedule, *, base: int | None = None, origin: Origin = "first-arrival", warmup: int = 0, cooldown: int = 0
) -> dict[str, float]:
    """Return all `DAG_METRICS` of a whole run; NaN if undefined.

    Parameters
    ----------
    base : int, optional
        End of the interval of cumulative completion, ticks; by default the makespan. To compare schedules of one
        workload, give the longest of their makespans.
    origin : {"first-arrival", "absolute"}
        Origin of the clock.
    warmup, cooldown : int
        Ticks after the first and before the last arrival to exclude. Metrics of jobs include the jobs that arrived in
        the remaining interval, both ends included, until their finish. Flow, utilisation and peak in-flight are those
        of the remaining interval, with all jobs. The makespan is that of the whole run.

    Raises
    ------
    InputError
        If a job finishes after the base, or the remaining interval is empty.

    Examples
    --------
    >>> two = Schedule.from_tasks(
    ...     arrival=[0, 1], critical_path=[3, 2], task_job=[0, 1], task_start=[0, 3], task_finish=[3, 5], cores=1
    ... )
    >>> numbers = dag_metrics(two)
    >>> numbers["flow"], numbers["mean_slr"], numbers["worst_slr"], numbers["cumulative_completion"]
    (0.4, 1.5, 2.0, 11.0)
    """
    schedule = schedule.from_origin(origin)
    makespan = schedule.makespan
    base = makespan if base is None else base
    first, last = (int(schedule.arrival[0]), int(schedule.arrival[-1])) if len(schedule) else (0, 0)
    low, high, counted = 0, makespan, schedule
    if warmup or cooldown:
        low, high = _window(first, last, warmup, cooldown)
        counted = schedule.select((schedule.arrival >= low) & (schedule.arrival <= high))
        first, last = low, high
    numbers = {
        "makespan": float(makespan),
        "utilisation_arrivals": utilisation(schedule, first, last),
        "jobs_cut": float(len(schedule) - len(counted)),
        "unfinished": 0.0,
        **_within(schedule, counted, low, high, base),
    }
    return {name: numbers[name] for name in DAG_METRICS}


def interval_metrics(schedule: Schedule, start: int, end: int, *, origin: Origin = "first-arrival") -> dict[str, float]:
    """Return the metrics of the interval from *start* to *end*, ticks, without information from after its end.

    Notes
    -----
    Flow counts finishes in ``(start, end]``; utilisation clips tasks to ``[start, end)``; peak in-flight is that of
    ``[start, end)``. Metrics of jobs are over those that arrived in ``[start, end)`` and finished by *end*.
    ``unfinished`` is the number of jobs that did not finish; since these tend to be slow, the means are too
    favourable. `dag_metrics` with ``warmup`` and ``cooldown`` includes all jobs until their finish. Cumulative
    completion counts the same jobs up to the end of the interval.

    Raises
    ------
    InputError
        For an empty interval.
    """
    if end <= start:
        raise InputError(f"{start} to {end} is not an interval; expected an end after the start", field="end")
    schedule = schedule.from_origin(origin)
    arrived = (schedule.arrival >= start) & (schedule.arrival < end)
    known = arrived & (schedule.finish <= end)
    counted = schedule.select(known)
    unfinished = float(np.count_nonzero(arrived) - len(counted))
    numbers = _within(schedule, counted, start, end, end) | {"unfinished": unfinished}
    return {name: numbers[name] for name in DAG_METRICS if name in numbers}


def _within(schedule: Schedule, counted: Schedule, start: int, end: int, base: int) -> dict[str, float]:
    """Return the metrics of an interval, with those of jobs over the counted ones."""
    return {
        "flow": _flow(schedule, start, end),
        "utilisation": utilisation(schedule, start, end),
        "peak_in_flight": float(peak_in_flight(schedule, start, end)),
        "cumulative_completion": cumulative_completion(counted, base),
        "cumulative_completion_base": float(base),
        "jobs": float(len(counted)),
        **_about_jobs(counted),
    }


def utilisation(schedule: Schedule, start: int, end: int) -> float:
    """Return the core-ticks held in ``[start, end)`` over the available core-ticks; NaN for an empty interval."""
    if end <= start:
        return NAN
    held = np.minimum(schedule.task_finish, end) - np.maximum(schedule.task_start, start)
    held = np.maximum(held, 0) * schedule.task_cores
    return float(held.sum(dtype=np.float64) / (end - start) / schedule.cores)


def peak_in_flight(schedule: Schedule, start: int, end: int) -> int:
    """Return the largest number of jobs in flight at once in ``[start, end)``.

    A finish precedes a start at the same tick.

    A job is in flight from its first task's start to its last task's finish, gaps included.
    """
    begins = np.sort(schedule.start)
    ends = np.sort(schedule.finish)
    instants = np.append(start, begins[(begins >= start) & (begins < end)])
    level = np.searchsorted(begins, instants, side="right") - np.searchsorted(ends, instants, side="right")
    return int(level.max()) if end > start else 0


def cumulative_completion(schedule: Schedule, base: int) -> float:
    """Return the sum over jobs of the ticks from finish to *base* times their work; core-ticks x ticks.

    Raises
    ------
    InputError
        If a job finishes after the base.
    """
    if len(schedule) and schedule.makespan > base:
        raise InputError(
            f"a job finishes at {schedule.makespan}, after the base {base}; expected the longest makespan of all "
            "schedules compared",
            field="base",
        )
    return float((1.0 + base - schedule.finish) @ schedule.work.astype(np.float64))


class Deciles(NamedTuple):
    """SLR by parts of the jobs, smallest work first; NaN for a part without jobs.

    Attributes
    ----------
    jobs : (k,) int64
        Number of jobs in each part.
    work : (k,) float64
        Median work, core-ticks.
    mean, worst : (k,) float64
        Mean and largest SLR.
    """

    jobs: IntArray
    work: FloatArray
    mean: FloatArray
    worst: FloatArray


def slr_by_decile(schedule: Schedule, parts: int = 10) -> Deciles:
    """Return mean and worst SLR by decile of work, ties in job order, split as in `numpy.array_split`.

    Examples
    --------
    >>> two = Schedule.from_tasks(
    ...     arrival=[0, 1], critical_path=[3, 2], task_job=[0, 1], task_start=[0, 3], task_finish=[3, 5], cores=1
    ... )
    >>> slr_by_decile(two, parts=2).mean.tolist()
    [2.0, 1.0]
    """
    order = np.argsort(schedule.work, kind="stable")
    slr = (schedule.finish - schedule.arrival) / schedule.critical_path
    columns = np.array_split(order, parts)
    return Deciles(
        jobs=np.array([len(rows) for rows in columns], dtype=np.int64),
        work=np.array([np.median(schedule.work[rows]) if len(rows) else NAN for rows in columns]),
        mean=np.array([slr[rows].mean() if len(rows) else NAN for rows in columns]),
        worst=np.array([slr[rows].max() if len(rows) else NAN for rows in columns]),
    )


def _about_jobs(schedule: Schedule) -> dict[str, float]:
    columns = job_columns(schedule)
    numbers: dict[str, float] = {}
    for name, values in columns.items():
        worst = values.min if MEASURES[name][1] == "higher" else values.max
        numbers[f"mean_{name}"] = float(values.mean()) if len(values) else NAN
        numbers[f"worst_{name}"] = float(worst()) if len(values) else NAN
        numbers[f"sd_{name}"] = standard_deviation(values)
    return numbers | {f"{name}_slr": spread(columns["slr"]) for name, spread in SPREADS.items()}


def _flow(schedule: Schedule, start: int, end: int) -> float:
    """Return the number of jobs finished in ``(start, end]`` per tick; NaN for an empty interval."""
    if end <= start:
        return NAN
    return float(np.count_nonzero((schedule.finish > start) & (schedule.finish <= end)) / (end - start))


def _window(first: int, last: int, warmup: int, cooldown: int) -> tuple[int, int]:
    if warmup < 0 or cooldown < 0 or warmup + cooldown >= last - first:
        raise InputError(
            f"a warm-up of {warmup} and a cool-down of {cooldown} ticks exclude all jobs, which arrive over "
            f"{last - first} ticks; expected less, at least 0",
            field="warmup" if warmup else "cooldown",
        )
    return first + warmup, last - cooldown
