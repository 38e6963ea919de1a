"""Agreement of simulated with logged start times and waits, job by job.

The error of a job is its simulated start minus its logged start. For a job that was preempted or lost its node, the
first start counts in both. Errors of jobs that wait at the same time are correlated, so the interval of the median is
a block bootstrap: blocks of consecutive jobs are drawn with replacement, and the median of their jobs is taken for
each draw. Jobs that ran in the log but are rejected in the simulation have no error; they are model failures.

References
----------
Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17(3), 1989.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.groups import LABELLED, by_label, length_classes, rows_by_group, size_classes
from gridsim.metrics.responsiveness import rank_correlation
from gridsim.model.job_id import JobIds
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds
from gridsim.record import Record, Status

RESAMPLES = 1000
"""Bootstrap samples."""

BLOCKS = 64
"""Number of blocks of consecutive jobs; halved until each block has `JOBS_A_BLOCK`."""

JOBS_A_BLOCK = 10
"""Least number of jobs in a block."""

NEAR = (5.0, 60.0, 300.0)
"""Thresholds of the shares of small start errors, s."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Errors of simulated starts, over the jobs that started in simulation and log; seconds.

    Attributes
    ----------
    jobs, only_logged, only_simulated : int
        Jobs that started in both, and in one of them only.
    median, mean, percentile_90 : float
        Statistics of the absolute error of a start.
    median_low, median_high : float
        Confidence interval of the median.
    bias : float
        Mean error; positive if simulated starts are late.
    within_5, within_60, within_300 : float
        Share of the jobs with a start error of at most 5, 60 and 300 s.
    spearman : float
        Rank correlation of simulated and logged waits; NaN if all waits are equal.
    wait, logged_wait : float
        Mean waits.
    """

    jobs: int
    only_logged: int
    only_simulated: int
    median: float
    median_low: float
    median_high: float
    mean: float
    percentile_90: float
    bias: float
    within_5: float
    within_60: float
    within_300: float
    spearman: float
    wait: float
    logged_wait: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Job with a large error: number, id and row; submit time, both start times and the error, s."""

    job: int
    id: str
    row: int
    submit: float
    start: float
    logged_start: float
    error: float


def agreement(
    record: Record, logged_start: IntArray | None = None, *, rows: Any = None, confidence: float = 0.95, seed: int = 1
) -> Agreement:
    """Return the agreement of a record with logged starts.

    Parameters
    ----------
    logged_start : (n,) int64, optional
        Logged starts, whole microseconds, `NEVER` for jobs that did not start; by default those of the workload.
    rows : mask, slice or indices, optional
        Jobs to compare.
    confidence : float
        Confidence level of the interval of the median.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    InputError
        If no logged starts are known.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=t, start=t + 4, end=t + 9) for t in range(100)])
    >>> found = agreement(record, record.start_us - 2_000_000)
    >>> found.median, found.bias, found.within_5
    (2.0, 2.0, 1.0)
    """
    if not 0 < confidence < 1:
        raise InputError(f"{confidence} is no confidence level; expected a value between 0 and 1", field="confidence")
    logged = _logged(record, logged_start)
    chosen = np.zeros(len(record), dtype=bool)
    chosen[slice(None) if rows is None else rows] = True
    start = record.first_start_us
    started, known = start < NEVER, logged < NEVER
    both = np.flatnonzero(chosen & started & known)
    error = seconds(start[both] - logged[both])
    size = np.abs(error)
    low, high = _median_interval(size, confidence, seed)
    wait = seconds(start[both] - record.workload.submit[both])
    logged_wait = seconds(logged[both] - record.workload.submit[both])
    return Agreement(
        jobs=len(both),
        only_logged=int((chosen & known & ~started).sum()),
        only_simulated=int((chosen & started & ~known).sum()),
        median=_of(np.median, size),
        median_low=low,
        median_high=high,
        mean=_of(np.mean, size),
        percentile_90=_of(lambda values: np.percentile(values, 90), size),
        bias=_of(np.mean, error),
        within_5=_of(np.mean, size <= NEAR[0]),
        within_60=_of(np.mean, size <= NEAR[1]),
        within_300=_of(np.mean, size <= NEAR[2]),
        spearman=rank_correlation(wait, logged_wait),
        wait=_of(np.mean, wait),
        logged_wait=_of(np.mean, logged_wait),
    )


def start_error(start: FloatArray, logged: FloatArray) -> tuple[float, float]:
    """Return the median and mean absolute error of starts, s; jobs that did not start (NaN) are excluded."""
    size = np.abs(start - logged)
    size = size[~np.isnan(size)]
    return _of(np.median, size), _of(np.mean, size)


def agreement_by_group(record: Record, logged_start: IntArray | None = None) -> dict[str, dict[str, Agreement]]:
    """Agreement for each group of jobs: by size, by length, and by user, account, partition and QOS if known."""
    labelled = [by_label(record, name) for name in LABELLED]
    groups = [size_classes(record), length_classes(record), *(each for each in labelled if len(each) > 1)]
    return {
        each.kind: {name: agreement(record, logged_start, rows=rows) for name, rows in rows_by_group(each).items()}
        for each in groups
    }


def largest_disagreements(
    record: Record, logged_start: IntArray | None = None, *, count: int = 10
) -> list[Disagreement]:
    """Return the jobs with the largest errors, largest first; equal ones in job order."""
    logged = _logged(record, logged_start)
    start = record.first_start_us
    both = np.flatnonzero((start < NEVER) & (logged < NEVER))
    error = start[both] - logged[both]
    order = np.argsort(-np.abs(error), kind="stable")[:count]
    ids = JobIds.of(record.workload)
    return [
        Disagreement(
            job=int(record.workload.job[row]),
            id=ids.shown(int(row)),
            row=int(row),
            submit=float(record.submit[row]),
            start=float(seconds(int(start[row]))),
            logged_start=float(seconds(int(logged[row]))),
            error=float(seconds(int(difference))),
        )
        for row, difference in zip(both[order], error[order], strict=True)
    ]


def _logged(record: Record, logged_start: IntArray | None) -> IntArray:
    logged = record.workload.logged_start if logged_start is None else np.asarray(logged_start, dtype=np.int64)
    if logged is None:
        raise InputError("has no starts; expected waits or starts, or the argument logged_start", field="wait")
    if logged.shape != record.start_us.shape:
        raise InputError(f"{len(logged)} starts for {len(record)} jobs; expected one per job", field="logged_start")
    return logged


def _of(summary: Any, values: Any) -> float:
    return float(summary(values)) if len(values) else float("nan")


def _median_interval(size: FloatArray, confidence: float, seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of a median over blocks of consecutive jobs; NaN for fewer than two blocks."""
    n = len(size)
    blocks = BLOCKS
    while blocks > 1 and blocks * JOBS_A_BLOCK > n:
        blocks //= 2
    if blocks < 2:
        return float("nan"), float("nan")
    edges = np.arange(blocks + 1) * n // blocks
    parts = np.split(size, edges[1:-1])
    draws = stream(seed, "agreement").integers(0, blocks, size=(RESAMPLES, blocks))
    medians = _medians_drawn(parts, draws)
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(medians, [tail, 100.0 - tail])
    return float(low), float(high)


def _medians_drawn(parts: Sequence[FloatArray], draws: IntArray) -> FloatArray:
    """Return the median of each draw of parts, (draws,), by bisection over the sorted parts without joining them."""
    values, sorted_parts = np.sort(np.concatenate(parts)), [np.sort(part) for part in parts]
    times = np.zeros((len(draws), len(parts)), dtype=np.int64)
    np.add.at(times, (np.arange(len(draws))[:, None], draws), 1)
    total = times @ np.array([len(part) for part in parts])
    middle = np.stack([(total - 1) // 2, total // 2])
    low, high = np.zeros_like(middle), np.full_like(middle, len(values) - 1)
    while (low < high).any():
        half = (low + high) // 2
        reached = sum(
            many * np.searchsorted(part, values[half], side="right")
            for many, part in zip(times.T, sorted_parts, strict=True)
        )
        low, high = np.where(reached > middle, low, half + 1), np.where(reached > middle, half, high)
    return np.asarray(values[low].mean(axis=0), dtype=np.float64)


class ModelFailures(NamedTuple):
    """Number of model failures under a policy, and the number of jobs by reason of rejection."""

    jobs: int
    reasons: tuple[tuple[str, int], ...]


def failed_jobs(records: Mapping[str, Record], own: str | None = None) -> dict[str, npt.NDArray[np.bool_]]:
    """Return a mask of the model failures of each record: jobs that ran in the log but are rejected.

    These jobs do not fit on a machine of the site's size, or are rejected by the site's own policy (*own*). Rejections
    by the rules of other policies are not model failures.

    Examples
    --------
    >>> from dataclasses import replace
    >>> record = Record.from_rows([dict(submit=0, start=1, end=5), dict(submit=0, start=None, end=None, runtime=9)])
    >>> log = replace(record.workload, logged={"wait": np.array([1.0, 3.0])})
    >>> failed_jobs({"easy": replace(record, workload=log)})["easy"].tolist()
    [False, True]
    """
    own = own if own in records else None
    first = next(iter(records.values())) if own is None else records[own]
    logged = first.workload.logged_start
    if logged is None or not first.workload.has_recorded_schedule:
        return {label: np.zeros(len(record), dtype=bool) for label, record in records.items()}
    never_admitted = first.status == Status.unadmitted if own is not None else np.zeros(len(first), dtype=bool)
    return {
        label: (logged < NEVER)
        & (
            ((record.status == Status.rejected) & (record.cores >= first.cores))
            | ((record.status == Status.unadmitted) & never_admitted)
        )
        for label, record in records.items()
    }


def model_failures(
    records: Mapping[str, Record], own: str | None = None, kept: npt.NDArray[np.bool_] | None = None
) -> dict[str, ModelFailures]:
    """Return the model failures under each policy that has any, among the jobs in *kept* (default: all)."""
    found = {}
    for label, failed in failed_jobs(records, own).items():
        rows = np.flatnonzero(failed if kept is None else failed & kept)
        if len(rows):
            reasons = records[label].reasons
            refused = {} if reasons is None else reasons.refused
            counts = Counter(refused[row].reason for row in rows.tolist() if row in refused)
            found[label] = ModelFailures(len(rows), tuple(counts.most_common()))
    return found
