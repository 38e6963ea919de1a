"""All metrics of one record as a flat mapping, the content of ``metrics.json``; other modules compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.availability import concerns_failures, failure_metrics
from gridsim.metrics.charges import CategorySlowdowns
from gridsim.metrics.dag import DAG_METRICS, dag_metrics
from gridsim.metrics.deadlines import concerns_deadlines, deadline_metrics
from gridsim.metrics.measures import Measure, measures
from gridsim.metrics.measures import Metric as Metric
from gridsim.metrics.prediction import PREDICTION_METRICS, PROMISE_METRICS, concerns_predictions, prediction_metrics
from gridsim.metrics.preemption import concerns_preemption, preemption_metrics
from gridsim.metrics.resources import concerns_resources
from gridsim.metrics.responsiveness import BOUND, MEASURES, SUMMARY, backfilled_share, measure, summarise
from gridsim.metrics.schedule import Schedule
from gridsim.metrics.stranding import resource_metrics
from gridsim.metrics.utilisation import (
    Interval,
    arrival_window,
    longest_queue,
    makespan,
    makespan_window,
    mean_queue_length,
    offered_load,
    throughput,
    useful_utilisation,
    utilisation,
    waiting_area,
)
from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.record import Record, Status

_WHAT = {
    "wait": ("s", "start minus submit"),
    "response": ("s", "end minus submit"),
    "slowdown": ("", "response over held time"),
    "bounded_slowdown": ("", "response over held time (at least the bound), never below 1"),
}
_PART = {"mean": "mean", "median": "median", "p95": "95th percentile", "p99": "99th percentile", "max": "largest"}


def _describe() -> dict[str, Metric]:
    """Return `METRICS`, in the order of `metrics`."""
    table: dict[str, Metric] = {}
    for name, (unit, text) in _WHAT.items():
        for part in SUMMARY:
            table[f"{name}_{part}"] = Metric(unit, "lower", f"{text}: {_PART[part]} over jobs")
        for part in SUMMARY[:-1]:  # the maximum does not depend on weights
            table[f"{name}_{part}_by_area"] = Metric(
                unit, "lower", f"{text}: {_PART[part]}, jobs weighted by core-seconds"
            )
    return table | {
        "utilisation": Metric("", "higher", "busy share of the core-seconds of the interval"),
        "utilisation_arrivals": Metric("", "higher", "busy share from first to last submit, or between the cuts"),
        "makespan": Metric("s", "lower", "first submit to last end of the whole record, cuts or not"),
        "throughput": Metric("jobs/h", "higher", "jobs that ended in the interval, per hour"),
        "queue_length_mean": Metric("jobs", "lower", "waiting jobs, mean over the interval"),
        "queue_length_max": Metric("jobs", "lower", "most jobs that waited at once in the interval"),
        "busy_cores_mean": Metric("cores", "higher", "cores held, mean over the interval"),
        "waiting_area": Metric("core-seconds", "lower", "cores times wait, sum over jobs"),
        "offered_load": Metric("", None, "true work submitted over capacity, interval of `utilisation_arrivals`"),
        "backfilled_share": Metric(
            "", None, "share of the jobs that started before an earlier, waiting job of the same cluster"
        ),
        "backfilled_share_by_area": Metric("", None, "share of the core-seconds held by backfilled jobs"),
        "submitted": Metric("jobs", None, "jobs submitted, after the cuts: the sum over all outcomes"),
        "completed": Metric("jobs", "higher", "jobs that ran to their end"),
        "killed_walltime": Metric("jobs", "lower", "jobs killed at their requested walltime"),
        "rejected": Metric("jobs", "lower", "jobs that the machine can never run"),
        "unadmitted": Metric("jobs", "lower", "jobs rejected by admission"),
        "cancelled": Metric("jobs", None, "jobs withdrawn before they started"),
        "jobs_cut": Metric("jobs", None, "jobs excluded by the warm-up and cool-down cuts"),
        "interval_start": Metric("s", None, "first submit, or end of the warm-up"),
        "interval_end": Metric("s", None, "last end, or start of the cool-down before the last submit"),
    }


METRICS: dict[str, Metric] = _describe()
"""All metrics returned by `metrics`, by name."""

UNFINISHED_METRICS = {
    "waiting": Metric("jobs", None, "jobs that waited when the run was stopped, before its end"),
    "running": Metric("jobs", None, "jobs that ran when the run was stopped, before its end"),
}
"""Additional metrics of a run that stops before its end."""

_UNITS = {"flow": "jobs/h", "cumulative_completion": "core-seconds x s"}

_OF_DAGS = (
    *(f"{part}_{name}" for name in ("slr", "stretch", "speedup") for part in ("mean", "worst", "sd")),
    *("gini_slr", "jain_slr", "p99_slr", "max_over_median_slr"),
    *("flow", "peak_in_flight", "cumulative_completion"),
)

GRID_METRICS: dict[str, Metric] = {
    name: Metric(_UNITS.get(name, DAG_METRICS[name].unit), DAG_METRICS[name].better, DAG_METRICS[name].description)
    for name in _OF_DAGS
}
"""Additional metrics of DAG jobs, with the names of `gridsim.metrics.dag.DAG_METRICS`, in seconds."""


def _describe_deadlines() -> dict[str, Metric]:
    """Return `DEADLINE_METRICS`, in the order of `deadline_metrics`."""
    table = {
        "deadline_jobs": Metric("jobs", None, "jobs submitted that request a deadline"),
        "deadline_area": Metric("core-seconds", None, "true work of the jobs that request a deadline"),
    }
    better: Literal["lower", "higher"]
    for name, better, text in (
        ("unadmitted", "lower", "jobs that requested a deadline and were rejected by a policy that gives guarantees"),
        ("guaranteed", "higher", "jobs with a guarantee for their requested deadline, or for a later one"),
        ("met", "higher", "jobs that ended by their requested deadline, guaranteed or not"),
    ):
        table |= {
            f"deadline_{name}": Metric("jobs", better, text),
            f"deadline_{name}_share": Metric("", better, f"{text}; share of all that request one"),
            f"deadline_{name}_area": Metric("core-seconds", better, f"true work of {text}"),
            f"deadline_{name}_area_share": Metric("", better, f"true work of {text}; share of all that request one"),
        }
    return table | {
        "deadline_missed": Metric("jobs", "lower", "jobs that ran and ended after their requested deadline"),
        "deadline_missed_share": Metric("", "lower", "share of missed deadlines, of jobs that ran"),
        "promises_made": Metric("jobs", None, "jobs with a guaranteed end, by their deadline or one of the policy"),
        "promises_broken": Metric("jobs", "lower", "jobs that ended later than guaranteed"),
        "offers_made": Metric("jobs", None, "jobs that were offered a later deadline than requested"),
        "offers_taken": Metric("jobs", "higher", "jobs that accepted an offered later deadline"),
        "doublings": Metric("", "lower", "times that a policy doubled its deadline of a job without a requested one"),
        "kills": Metric("", "lower", "runs killed to free cores for another job, and restarted later"),
        "lost_area": Metric("core-seconds", "lower", "work lost by runs killed for other jobs"),
        "non_deadline_jobs": Metric("jobs", None, "jobs submitted that request no deadline"),
        "non_deadline_response_mean": Metric("s", "lower", "end minus submit, mean of jobs without a deadline"),
        "non_deadline_slowdown_mean": Metric("", "lower", "response over held time, mean of jobs without a deadline"),
        "non_deadline_bounded_slowdown_mean": Metric("", "lower", "bounded slowdown, mean of jobs without a deadline"),
        "resource_charge": Metric("core-seconds", "higher", "charged work of all jobs, without lost work"),
        "qos_charge": Metric(
            "", "higher", "sum over jobs of the slowdown of their category under EASY over the granted slowdown"
        ),
        "useful_utilisation": Metric("", "higher", "busy share without lost work, interval of `utilisation`"),
        "useful_utilisation_arrivals": Metric("", "higher", "busy share without lost work, from first to last submit"),
    }


DEADLINE_METRICS: dict[str, Metric] = _describe_deadlines()
"""Additional metrics if jobs request deadlines or a policy gives guarantees."""


PREEMPTION_METRICS: dict[str, Metric] = {
    "preempted_runs": Metric("", "lower", "runs preempted to free resources for another job, whether restarted or not"),
    "preempted_jobs": Metric("jobs", "lower", "jobs with preempted runs"),
    "preempted_core_hours": Metric("core-hours", "lower", "work lost by preempted runs"),
}
"""Additional metrics if the policy preempts running jobs without guarantees."""

CLASS_METRICS: dict[str, Metric] = {
    "preempted": Metric("jobs", "lower", "jobs that were stopped for good for a job of a higher class"),
    "suspensions": Metric("", "lower", "times that jobs were suspended for a job of a higher class"),
    "suspended_hours": Metric("hours", "lower", "time for which jobs were suspended, sum over jobs"),
}
"""Further metrics if jobs of a higher priority class preempt others; with those of work in `FAILURE_METRICS`."""

FAILURE_METRICS: dict[str, Metric] = {
    "failures": Metric("", None, "absences of nodes and GPUs by failure, before the last end"),
    "availability": Metric("", "higher", "node-seconds without failure over all, from time 0 to the last end"),
    "scheduled_availability": Metric("", "higher", "the same without maintenance windows and drains too"),
    "gpu_availability": Metric("", "higher", "availability of single GPUs, without failures of their nodes"),
    "interrupted_runs": Metric("", "lower", "runs that a failure or a window stopped"),
    "failed": Metric("jobs", "lower", "jobs that a failure or a window ended"),
    "useful_core_hours": Metric("core-hours", "higher", "run time times cores of completed jobs"),
    "lost_core_hours": Metric("core-hours", "lower", "held core-hours without the useful ones"),
    "goodput": Metric("", "higher", "useful core-seconds over those of the machine, from time 0 to the last end"),
    "goodput_of_available": Metric("", "higher", "the same over the core-seconds without failures"),
    "time_to_result_mean": Metric("s", "lower", "end minus submit, mean over completed jobs"),
    "effective_ratio_mean": Metric("", "higher", "run time over last end minus first start, mean over completed jobs"),
    "core_seconds_to_interruption": Metric("core-seconds", "higher", "held core-seconds per interrupted run"),
    "starts_moved": Metric("jobs", "lower", "jobs whose planned start became later when all were planned again"),
    "start_moved_mean": Metric("s", "lower", "total by which it became later, mean over these jobs"),
    "promises_broken_by_machine_share": Metric("", "lower", "guarantees that absences broke; share of all given"),
    "promises_missed_share": Metric("", "lower", "guarantees that were not kept, for whatever reason; share of all"),
}
"""Additional metrics if nodes can fail."""

RESOURCE_METRICS: dict[str, Metric] = {
    "resource_utilisation": Metric("", "higher", "allocated share of a resource; exclusive jobs have whole nodes"),
    "resource_used": Metric("", "higher", "share requested by running tasks; the rest is lost to exclusive use"),
    "stranded": Metric("", "lower", "share that is free on nodes where no task of a waiting job fits"),
    "fragmentation": Metric("", "lower", "idle GPUs that typical tasks of the workload cannot use, over all GPUs"),
    "fragmentation_of_idle": Metric("", "lower", "idle GPUs that typical tasks cannot use, over all idle GPUs"),
    "waits_short_of": Metric("", None, "share of waiting time by the resource that jobs lacked at its beginning"),
    "waits_by_reason": Metric("", None, "share of waiting time by the reason reported by the scheduler (Slurm)"),
}
"""Additional metrics of machines of nodes and pools, by resource in brackets (``stranded[memory]``).

They are means over time; for a run that stops before any job has ended, values at the last arrival.
"""

COMPARISON_METRICS = {
    "model_failures": Metric("jobs", "lower", "jobs that ran in the log but that the simulation rejects")
}
"""Additional metrics of a comparison with a log that has such jobs, which `rejected` and `unadmitted` exclude."""

ALL_METRICS = {
    **METRICS,
    **COMPARISON_METRICS,
    **UNFINISHED_METRICS,
    **GRID_METRICS,
    **DEADLINE_METRICS,
    **PREEMPTION_METRICS,
    **CLASS_METRICS,
    **FAILURE_METRICS,
    **RESOURCE_METRICS,
    **PREDICTION_METRICS,
    **PROMISE_METRICS,
}
"""All metrics by name."""


def described(name: str, measures: Mapping[str, Metric] | None = None) -> Metric:
    """Return the description of a metric by name, also of a group (``preempted_runs[QOS high]``) and of *measures*.

    Examples
    --------
    >>> described("wait_mean").unit, described("preempted_core_hours[QOS high]").unit
    ('s', 'core-hours')
    """
    return (measures or {}).get(name) or ALL_METRICS[name.partition("[")[0]]


def requested_measures(metrics: Iterable[Any] = (), charges: Iterable[Any] = ()) -> list[Measure]:
    """Return metrics and charges as in `gridsim.metrics.measures.measures`; a metric may be one of `ALL_METRICS`."""
    return measures(metrics, charges, ALL_METRICS)


def window(record: Record, warmup: float = 0.0, cooldown: float = 0.0) -> Interval:
    """Return the interval from first submit plus *warmup* to last submit minus *cooldown*, s.

    Raises
    ------
    InputError
        If a cut is negative or not a number, or the interval is empty.
    """
    for name, value in (("warmup", warmup), ("cooldown", cooldown)):
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"the cut is {value} s; expected 0 s or more", field=name)
    first, last = arrival_window(record)
    if (warmup or cooldown) and warmup + cooldown >= last - first:
        raise InputError(
            f"a warm-up of {warmup:g} s and a cool-down of {cooldown:g} s exclude all jobs, which are submitted "
            f"over {last - first:g} s; expected less",
            field="warmup" if warmup else "cooldown",
        )
    return Interval(first + warmup, last - cooldown)


def cut(record: Record, warmup: float = 0.0, cooldown: float = 0.0) -> npt.NDArray[np.bool_]:
    """Return a mask of the jobs submitted in the `window`, both ends included, which metrics of jobs count.

    If users reacted, the submit times of the log are used, so that the same jobs count under every policy.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=t, start=t, end=t + 1, cores=1) for t in (0, 10, 20, 30)])
    >>> cut(record, warmup=5, cooldown=10).tolist()
    [False, True, True, False]
    """
    if not (warmup or cooldown) or not len(record):
        return np.ones(len(record), dtype=np.bool_)
    given = record.as_given
    submit = given.workload.submit
    start, end = window(given, warmup, cooldown)
    return (submit >= to_us(start)) & (submit <= to_us(end))


def metrics(
    record: Record,
    *,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    until: int | None = None,
    deadlines: bool | None = None,
    preemption: bool | None = None,
    predictions: bool | None = None,
    slowdowns: CategorySlowdowns | None = None,
    measures: Sequence[Measure] = (),
) -> dict[str, float]:
    """Return all `METRICS` of one record; NaN if undefined.

    Include `GRID_METRICS` for DAG jobs, and `DEADLINE_METRICS` if there are deadlines or guarantees.

    Parameters
    ----------
    bound : float
        Bound of the bounded slowdown, s.
    warmup, cooldown : float
        Seconds after the first and before the last submission to exclude. Metrics of jobs count the jobs submitted in
        the remaining interval (`cut`); metrics over time use the remaining interval with all jobs clipped to it. The
        makespan is that of the whole record. ``jobs_cut``, ``interval_start`` and ``interval_end`` describe the cut.
    until : int, optional
        End of the interval of the cumulative completion of DAG jobs, whole microseconds: the latest end of all
        compared records. By default that of the record.
    deadlines : bool, optional
        Whether to include `DEADLINE_METRICS`; by default if the workload has deadlines or the record has guarantees.
    preemption : bool, optional
        Whether to include `PREEMPTION_METRICS`; by default if the policy preempts.
    predictions : bool, optional
        Whether to include `gridsim.metrics.prediction.PREDICTION_METRICS`; by default if the policy predicts.
    slowdowns : CategorySlowdowns, optional
        Slowdowns of an EASY schedule of the same workload, for the QoS charge.
    measures : sequence of Measure
        Additional metrics and charges (`gridsim.metrics.measures`).

    Notes
    -----
    For DAG jobs, utilisation, busy cores, queue and waiting area are those of the tasks. Waits and responses are those
    of jobs, and no job is backfilled.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=30, end=35, cores=1)])
    >>> metrics(record)["wait_mean"], metrics(record)["utilisation"]
    (30.0, 0.14285714285714285)
    """
    kept = cut(record, warmup, cooldown)
    counted: Any = slice(None) if kept.all() else kept
    numbers = _about_jobs(record, counted, bound)
    numbers |= _about_time(record, window(record, warmup, cooldown) if warmup or cooldown else None)
    chosen = record if counted is not kept else record.select(kept)
    numbers["waiting_area"] = waiting_area(chosen)
    numbers["backfilled_share"] = backfilled_share(record, counted)
    numbers["backfilled_share_by_area"] = backfilled_share(record, counted, by_area=True)
    status = np.bincount(chosen.status, minlength=len(Status))
    numbers |= {"submitted": float(status.sum())} | {kind.name: float(status[kind]) for kind in Status}
    numbers["jobs_cut"] = float(len(kept) - np.count_nonzero(kept))
    if record.tasks is not None:
        numbers["backfilled_share"] = numbers["backfilled_share_by_area"] = float("nan")
    found = {name: numbers[name] for name in METRICS}
    if record.until_us is not None:
        found |= {name: numbers[name] for name in UNFINISHED_METRICS}
    if record.tasks is not None:
        found |= _about_dags(record, warmup, cooldown, until)
    if concerns_deadlines(record) if deadlines is None else deadlines:
        found |= deadline_metrics(chosen, bound=bound, slowdowns=slowdowns)
        found |= _useful(record, window(record, warmup, cooldown) if warmup or cooldown else None)
    if concerns_preemption(record) if preemption is None else preemption:
        found |= preemption_metrics(record, kept)
    if concerns_failures(record):
        found |= failure_metrics(record)
    if record.tasks is None and (concerns_predictions(record) if predictions is None else predictions):
        found |= prediction_metrics(chosen)
    if concerns_resources(record):
        found |= resource_metrics(record, kept, window(record, warmup, cooldown) if warmup or cooldown else None)
    return found | {it.name: it.number(chosen) for it in measures if it.part is not None}


def _about_dags(record: Record, warmup: float, cooldown: float, until: int | None) -> dict[str, float]:
    """Return `GRID_METRICS`, from whole ticks: the coarsest of s, ms and us that divides all times."""
    tick, seconds_a_tick = _tick(record, warmup, cooldown)
    schedule = Schedule.from_record(record, tick=tick)
    if not len(schedule):
        return dict.fromkeys(GRID_METRICS, float("nan"))
    base = None if until is None else (until - int(record.workload.submit[record.ran][0])) // tick
    found = dag_metrics(schedule, base=base, warmup=to_us(warmup) // tick, cooldown=to_us(cooldown) // tick)
    found["flow"] *= 3600 / seconds_a_tick
    found["cumulative_completion"] *= seconds_a_tick**2
    return {name: found[name] for name in GRID_METRICS}


def _tick(record: Record, warmup: float, cooldown: float) -> tuple[int, float]:
    """Return the length of a tick in microseconds and in seconds."""
    columns = [record.workload.submit, record.start_us, record.end_us, np.array([to_us(warmup), to_us(cooldown)])]
    if record.tasks is not None:
        columns += [record.tasks.start_us, record.tasks.end_us]
    if record.critical_path is not None:
        columns.append(record.critical_path)
    for tick in (MICROSECOND, MICROSECOND // 1000):
        if not any((column[column < NEVER] % tick).any() for column in columns):
            return tick, tick / MICROSECOND
    return 1, 1 / MICROSECOND


def _about_jobs(record: Record, rows: Any, bound: float) -> dict[str, float]:
    numbers: dict[str, float] = {}
    area = record.area[rows]
    for name in MEASURES:
        values = measure(record, name, bound)[rows]
        numbers |= {f"{name}_{part}": value for part, value in summarise(values).items()}
        numbers |= {f"{name}_{part}_by_area": value for part, value in summarise(values, area).items()}
        del values  # 80 MB for ten million jobs; freed before the next column is made
    return numbers


def _useful(record: Record, interval: Interval | None) -> dict[str, float]:
    return {
        "useful_utilisation": useful_utilisation(record, *(interval or makespan_window(record))),
        "useful_utilisation_arrivals": useful_utilisation(record, *(interval or arrival_window(record))),
    }


def _about_time(record: Record, interval: Interval | None) -> dict[str, float]:
    whole_run = interval or makespan_window(record)
    arrivals = interval or arrival_window(record)
    busy = utilisation(record, *whole_run)
    return {
        "utilisation": busy,
        "utilisation_arrivals": utilisation(record, *arrivals),
        "makespan": makespan(record),
        "throughput": throughput(record, *whole_run),
        "queue_length_mean": mean_queue_length(record, *whole_run),
        "queue_length_max": longest_queue(record, *whole_run),
        "busy_cores_mean": busy * record.cores,
        "offered_load": offered_load(record, *arrivals),
        "interval_start": whole_run.start,
        "interval_end": whole_run.end,
    }
