"""Numbers of the figures over jobs and over time: what `figures` draws, and the same as rows of tidy CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridsim.metrics.deadlines import outcomes
from gridsim.metrics.fairness import FairnessOverTime, fairness_over_time
from gridsim.metrics.load_performance import Joint, joint, midnight
from gridsim.metrics.responsiveness import measure
from gridsim.metrics.utilisation import Steps, busy_cores, queue_length
from gridsim.model.time import FloatArray, seconds
from gridsim.record import Record
from gridsim.report import admission

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence


BINS = 120
"""Equal bins of time of the figures over time."""

DAYS = 20
"""Days below which load is not held against performance."""

PERIODS: Mapping[str, float] = {"day": 86_400.0, "week": 7 * 86_400.0}
"""Length of the periods by which utilisation is reported, s."""

_POINTS = 400


class Distribution(NamedTuple):
    """Share of jobs with at most so large a value."""

    value: FloatArray
    share: FloatArray


@dataclass(frozen=True, slots=True)
class DistributionRow:
    """A point of a distribution; the columns of ``distributions.csv``."""

    metric: str
    policy: str
    value: float
    share: float


@dataclass(frozen=True, slots=True)
class OverTimeRow:
    """A bin of time, s; the columns of ``over_time.csv``."""

    quantity: str
    policy: str
    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True)
class FairnessRow:
    """A period, s; the columns of ``fairness.csv``, as `FairnessOverTime` has them."""

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
    """A day; the columns of ``load.csv``: its first instant (s), offered load, mean bounded slowdown and jobs."""

    policy: str
    start: float
    load: float
    slowdown: float
    jobs: int


@dataclass(frozen=True, slots=True)
class DeadlineRow:
    """What became of how many deadlines; the columns of ``deadlines.csv``."""

    policy: str
    outcome: str
    jobs: int


FILES: Mapping[str, type] = {
    "distributions.csv": DistributionRow,
    "over_time.csv": OverTimeRow,
    "fairness.csv": FairnessRow,
    "load.csv": LoadRow,
    "deadlines.csv": DeadlineRow,
}
"""Files that there may be beside a page, with their rows."""


def distribution(values: FloatArray) -> Distribution:
    """Points of the distribution of the values that are finite, at most some hundred; none where there is no value."""
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return Distribution(known, known)
    chosen = np.unique(np.linspace(0, len(known) - 1, min(_POINTS, len(known))).astype(int))
    x = np.unique(known[chosen])
    return Distribution(x, np.searchsorted(known, x, side="right") / len(known))


def busy_share(records: Mapping[str, Record]) -> dict[str, Steps]:
    """Busy share of the cores by policy, means of equal bins from the first submission to the last end."""
    return _over_time(records, lambda record: _scaled(busy_cores(record), 1 / (record.cores or np.nan)))


def busy_share_by(period: str, records: Mapping[str, Record]) -> dict[str, Steps]:
    """Busy share of the cores by policy, means by ``day`` or ``week``; empty where there are fewer than two of them.

    Days begin at midnight of the log's clock and weeks on Monday, or both with the first submission where the log has
    no dates. The first and the last one are cut to the time from the first submission to the last end.
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
    """Waiting jobs (ready tasks of DAG jobs) by policy, in the same bins."""
    return _over_time(records, queue_length)


def _scaled(steps: Steps, factor: float) -> Steps:
    return Steps(steps.times_s, np.asarray(steps.values * factor, dtype=np.float64))


def _over_time(records: Mapping[str, Record], steps: Callable[[Record], Steps]) -> dict[str, Steps]:
    """Bins by policy, without those under which nothing happened."""
    binned = {label: steps(record).resample(BINS, *_window(records)) for label, record in records.items()}
    return {label: found for label, found in binned.items() if len(found.times_s)}


def _window(records: Mapping[str, Record]) -> tuple[float, float]:
    """From the first submission to the last end under any policy, s."""
    first = min(float(record.submit.min()) for record in records.values())
    last = max((float(np.nanmax(record.end)) for record in records.values() if record.ran.any()), default=first + 1)
    return first, last


def fairness(comparison: Evidence) -> dict[str, FairnessOverTime]:
    """Inequality between users over time by policy; empty where the log does not name enough of them, or DAG jobs."""
    if comparison.of_dags:
        return {}
    rows = None if comparison.kept.all() else comparison.kept
    found = {
        label: fairness_over_time(record, bound=comparison.bound, rows=rows)
        for label, record in comparison.records.items()
    }
    return {label: it for label, it in found.items() if it is not None and np.isfinite(it.gini).any()}


def joints(comparison: Evidence) -> dict[str, Joint]:
    """Load and slowdown of each day by policy; empty with fewer than `DAYS` of them, and of DAG or moldable jobs."""
    if comparison.of_dags or comparison.of_moldable:
        return {}
    kept = comparison.kept
    records = comparison.records.items()
    found = {
        label: joint(record if kept.all() else record.select(kept), bound=comparison.bound) for label, record in records
    }
    return found if all(len(it.load) >= DAYS for it in found.values()) else {}


def tables(comparison: Evidence) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Files of `FILES` that there are numbers for: name, columns and rows."""
    found: dict[str, Iterator[Any]] = {
        "distributions.csv": _distributions(comparison),
        "over_time.csv": _courses(comparison),
        "fairness.csv": _periods(comparison),
        "load.csv": _days(comparison),
        "deadlines.csv": _deadlines(comparison),
    }
    for name, rows in found.items():
        columns = [field.name for field in fields(FILES[name])]
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
