"""Data of the figures over jobs and over time, for `figures` and for tidy CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.availability import lost_core_seconds
from gridsim.metrics.deadlines import outcomes
from gridsim.metrics.fairness import FairnessOverTime, fairness_over_time
from gridsim.metrics.groups import by_label
from gridsim.metrics.load_performance import Joint, joint, midnight
from gridsim.metrics.responsiveness import measure
from gridsim.metrics.utilisation import Steps, busy_cores, queue_length
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.time import FloatArray, IntArray, seconds
from gridsim.model.workload import UNKNOWN
from gridsim.questions.replay import LOG, recorded_schedule
from gridsim.record import Record
from gridsim.report import admission

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence


BINS = 120
"""Number of equal time bins of the figures over time."""

DAYS = 20
"""Number of days below which there is no figure of load and performance."""

PERIODS: Mapping[str, float] = {"day": 86_400.0, "week": 7 * 86_400.0}
"""Length of the periods of reported utilisation, s."""

_POINTS = 400


class Distribution(NamedTuple):
    """Cumulative distribution: share of jobs with at most a given value."""

    value: FloatArray
    share: FloatArray


@dataclass(frozen=True, slots=True)
class DistributionRow:
    """Point of a distribution; a row of ``distributions.csv``."""

    metric: str
    policy: str
    value: float
    share: float


@dataclass(frozen=True, slots=True)
class OverTimeRow:
    """Time bin, s; a row of ``over_time.csv``."""

    quantity: str
    policy: str
    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True)
class FairnessRow:
    """Period, s; a row of ``fairness.csv``, with the fields of `FairnessOverTime`."""

    policy: str
    start: float
    end: float
    users: int
    jobs: int
    slowdown: float
    gini: float
    largest_share: float


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Day, a row of ``load.csv``: its first instant (s), offered load, mean bounded slowdown and jobs."""

    policy: str
    start: float
    load: float
    slowdown: float
    jobs: int


@dataclass(frozen=True, slots=True)
class DeadlineRow:
    """Number of deadlines by outcome; a row of ``deadlines.csv``."""

    policy: str
    outcome: str
    jobs: int


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Jobs of a user or account; a row of ``usage.csv``. The policy ``recorded log`` is the log's own schedule.

    Hours are those of the last runs; lost ones of all runs, without the completed ones, NaN where no node could fail.
    ``wait_mean`` is in seconds.
    """

    kind: str
    group: str
    policy: str
    jobs: int
    core_hours: float
    gpu_hours: float
    wait_mean: float
    lost_core_hours: float


FILES: Mapping[str, type] = {
    "distributions.csv": DistributionRow,
    "over_time.csv": OverTimeRow,
    "fairness.csv": FairnessRow,
    "load.csv": LoadRow,
    "deadlines.csv": DeadlineRow,
    "usage.csv": UsageRow,
}
"""Files that may exist next to a page, with their row types."""


def distribution(values: FloatArray) -> Distribution:
    """Return points of the distribution of the finite values, at most some hundred; empty without values."""
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return Distribution(known, known)
    chosen = np.unique(np.linspace(0, len(known) - 1, min(_POINTS, len(known))).astype(int))
    x = np.unique(known[chosen])
    return Distribution(x, np.searchsorted(known, x, side="right") / len(known))


def busy_share(records: Mapping[str, Record]) -> dict[str, Steps]:
    """Return the busy share of the cores by policy, as means of equal bins of the makespan."""
    return _over_time(records, lambda record: _scaled(busy_cores(record), 1 / (record.cores or np.nan)))


def busy_share_by(period: str, records: Mapping[str, Record]) -> dict[str, Steps]:
    """Return the mean busy share of the cores by policy for each ``day`` or ``week``.

    Empty for fewer than two periods.

    Days begin at midnight of the log's clock and weeks on Monday; without dates, both begin at the first submission.
    The first and the last period are limited to the time from the first submission to the last end.
    """
    record = next(iter(records.values()))
    first, last = _window(records)
    begin = seconds(midnight(record, weeks=period == "week"))
    length = PERIODS[period]
    if last - first < 2 * length:
        return {}
    inner = np.arange(begin + length, last, length)
    edges = np.concatenate([[first], inner, [last]])
    return {label: _scaled(busy_cores(it), 1 / it.cores).over(edges) for label, it in records.items() if it.ran.any()}


def waiting(records: Mapping[str, Record]) -> dict[str, Steps]:
    """Return the waiting jobs (ready tasks of DAG jobs) by policy, in the same bins."""
    return _over_time(records, queue_length)


def _scaled(steps: Steps, factor: float) -> Steps:
    return Steps(steps.times_s, np.asarray(steps.values * factor, dtype=np.float64))


def _over_time(records: Mapping[str, Record], steps: Callable[[Record], Steps]) -> dict[str, Steps]:
    """Return bins by policy, without policies under which nothing happened."""
    binned = {label: steps(record).resample(BINS, *_window(records)) for label, record in records.items()}
    return {label: found for label, found in binned.items() if len(found.times_s)}


def _window(records: Mapping[str, Record]) -> tuple[float, float]:
    """Return the time from the first submission to the last end under any policy, s."""
    first = min(float(record.submit.min()) for record in records.values())
    last = max((float(np.nanmax(record.end)) for record in records.values() if record.ran.any()), default=first + 1)
    return first, last


def fairness(comparison: Evidence) -> dict[str, FairnessOverTime]:
    """Return the inequality between users over time by policy; empty for too few users, and for DAG jobs."""
    if comparison.of_dags:
        return {}
    rows = None if comparison.kept.all() else comparison.kept
    found = {
        label: fairness_over_time(record, bound=comparison.bound, rows=rows)
        for label, record in comparison.records.items()
    }
    return {label: it for label, it in found.items() if it is not None and np.isfinite(it.gini).any()}


def joints(comparison: Evidence) -> dict[str, Joint]:
    """Return load and slowdown of each day by policy.

    Empty for fewer than `DAYS` days, and for DAG or moldable jobs.
    """
    if comparison.of_dags or comparison.of_moldable:
        return {}
    kept = comparison.kept
    records = comparison.records.items()
    found = {
        label: joint(record if kept.all() else record.select(kept), bound=comparison.bound) for label, record in records
    }
    return found if all(len(it.load) >= DAYS for it in found.values()) else {}


def tables(comparison: Evidence) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Return the files of `FILES` with data: name, columns and rows."""
    found: dict[str, Iterator[Any]] = {
        "distributions.csv": _distributions(comparison),
        "over_time.csv": _courses(comparison),
        "fairness.csv": _periods(comparison),
        "load.csv": _days(comparison),
        "deadlines.csv": _deadlines(comparison),
        "usage.csv": usage(comparison),
    }
    for name, rows in found.items():
        columns = [
            field.name for field in fields(FILES[name]) if field.name != "lost_core_hours" or failing(comparison)
        ]
        if written := [tuple(getattr(row, column) for column in columns) for row in rows]:
            yield name, columns, written


def _distributions(comparison: Evidence) -> Iterator[DistributionRow]:
    rows: Any = slice(None) if comparison.kept.all() else comparison.kept
    for metric in dict.fromkeys((*comparison.compared, "wait")):
        for label, record in comparison.records.items():
            points = distribution(measure(record, metric, comparison.bound)[rows])
            for value, share in zip(points.value.tolist(), points.share.tolist(), strict=True):
                yield DistributionRow(metric, label, value, share)


def _courses(comparison: Evidence) -> Iterator[OverTimeRow]:
    records = comparison.records
    courses = {"busy_share": busy_share(records), "waiting": waiting(records)}
    courses |= {f"busy_share_{period}": busy_share_by(period, records) for period in PERIODS}
    for quantity, found in courses.items():
        for label, steps in found.items():
            edges = steps.times_s.tolist()
            for start, end, value in zip(edges[:-1], edges[1:], steps.values[:-1].tolist(), strict=True):
                yield OverTimeRow(quantity, label, start, end, value)


def _periods(comparison: Evidence) -> Iterator[FairnessRow]:
    for label, it in fairness(comparison).items():
        columns = (it.edges_s[:-1], it.edges_s[1:], it.users, it.jobs, it.slowdown, it.gini, it.share)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            yield FairnessRow(label, *row)


def _days(comparison: Evidence) -> Iterator[LoadRow]:
    for label, it in joints(comparison).items():
        columns = (it.start, it.load, it.slowdown, it.jobs)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            yield LoadRow(label, *row)


def _deadlines(comparison: Evidence) -> Iterator[DeadlineRow]:
    if not admission.of_deadlines(comparison):
        return
    rows: Any = slice(None) if comparison.kept.all() else comparison.kept
    for label, record in comparison.records.items():
        for outcome, jobs in outcomes(record, rows).items():
            yield DeadlineRow(label, outcome, int(jobs))


def usage(comparison: Evidence) -> Iterator[UsageRow]:
    """Yield jobs, core-hours, GPU-hours and mean wait of each account and user under each policy and in the log."""
    record = comparison.records[comparison.baseline]
    if comparison.of_dags:
        return
    log = recorded_schedule(record)
    schedules = {**comparison.records, **({LOG: log} if log is not None else {})}
    gpus = _gpus(record)
    for label in ("account", "user"):
        column = record.workload.labels.get(label)
        if column is None or len(np.unique(column[column != UNKNOWN])) < 2:
            continue
        found = by_label(record, label)
        of = np.where(comparison.kept, found.index, len(found))  # jobs that are not counted are a group at the end
        totals = {policy: _totals(each, of, len(found), gpus) for policy, each in schedules.items()}
        for place, name in enumerate(found.names):
            if (of == place).any():
                for policy, (jobs, core_hours, gpu_hours, wait, lost) in totals.items():
                    mean = float(wait[place] / jobs[place]) if jobs[place] else np.nan
                    hours = float(core_hours[place]), float(gpu_hours[place])
                    yield UsageRow(label, name, policy, int(jobs[place]), *hours, mean, float(lost[place]))


def _totals(record: Record, of: IntArray, groups: int, gpus: FloatArray) -> tuple[npt.NDArray[Any], ...]:
    """Return jobs that ran, core-hours, GPU-hours, total wait and lost core-hours by group."""
    ran = record.ran
    columns = (np.ones(int(ran.sum())), record.area[ran] / 3600, gpus[ran] * record.held[ran] / 3600, record.wait[ran])
    lost = np.full(len(record), np.nan) if record.interruptions is None else lost_core_seconds(record) / 3600
    totals = [np.bincount(of[ran], weights=it, minlength=groups) for it in columns]
    return (*totals, np.bincount(of, weights=lost, minlength=groups))


def failing(comparison: Evidence) -> bool:
    """Return whether nodes could fail under any policy."""
    return any(record.interruptions is not None for record in comparison.records.values())


def _gpus(record: Record) -> FloatArray:
    """Return the requested GPUs of each job."""
    asked: Any = record.requested or record.workload.demands
    total = None if asked is None else asked.total(GPU)
    if total is not None:
        return np.asarray(total / WHOLE_GPU, dtype=np.float64)
    label = record.workload.labels.get("gpus")
    return np.zeros(len(record)) if label is None else np.maximum(label, 0).astype(np.float64)
