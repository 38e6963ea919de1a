"""Properties of schedules of particular policies, checked on records of small workloads in tests.

Times are whole microseconds. For properties of every schedule see `gridsim.testing.invariants`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gridsim.model.time import NEVER
from gridsim.record import Record


def work(record: Record) -> int:
    """Return cores times held time, summed over all jobs, core-microseconds."""
    ran = record.ran
    return int((record.workload.cores[ran] * (record.end_us - record.start_us)[ran]).sum())


def fcfs_order_kept(record: Record) -> bool:
    """Return whether no job starts before an earlier one: FCFS, without backfilling."""
    start = record.start_us[record.ran]
    return bool((start >= np.maximum.accumulate(start)).all()) if len(start) else True


def _instants(record: Record) -> list[int]:
    """Return every instant at which a job arrives, starts or ends."""
    ran = record.ran
    times = [record.workload.submit[ran], record.start_us[ran], record.end_us[ran]]
    return [int(instant) for instant in np.unique(np.concatenate(times))]


def _held(record: Record, now: int) -> list[tuple[int, int]]:
    """Return expected end and cores of each job that runs just after *now*."""
    workload, expected = record.workload, record.start_us + record.workload.estimate
    running = (record.start_us <= now) & (record.end_us > now)
    return [(int(expected[row]), int(workload.cores[row])) for row in np.flatnonzero(running)]


def _first_waiting(record: Record, now: int) -> int | None:
    """Return the row of the first job that still waits after the decisions of *now*."""
    waiting = record.ran & (record.workload.submit <= now) & (record.start_us > now)
    return int(np.argmax(waiting)) if waiting.any() else None


def heads_kept_waiting(record: Record) -> list[tuple[int, int]]:
    """Return instants (microseconds) after which the first job of an FCFS queue waits despite free cores.

    The result is empty for FCFS, and for backfilling with one or more reservations in FCFS order.
    """
    found = []
    for now in _instants(record):
        head = _first_waiting(record, now)
        if head is not None:
            free = record.cores - sum(cores for _, cores in _held(record, now))
            if record.workload.cores[head] <= free:
                found.append((now, int(record.workload.job[head])))
    return found


def shadow_times(record: Record) -> Iterator[tuple[int, int, int]]:
    """Return instant, row of the first job in the queue, and its shadow time by estimates."""
    for now in _instants(record):
        head = _first_waiting(record, now)
        if head is None:
            continue
        held = sorted(_held(record, now))
        free = record.cores - sum(cores for _, cores in held)
        shadow = now
        for end, cores in held:
            if free >= record.workload.cores[head]:
                break
            free, shadow = free + cores, end
        yield now, head, shadow


@dataclass(frozen=True, slots=True)
class Promise:
    """Promised start (*planned*) that was not kept (*start*), microseconds."""

    job: int
    planned: int
    start: int


def heads_delayed(record: Record) -> list[Promise]:
    """Return first jobs that started after their earliest shadow time; empty for EASY without overruns."""
    best: dict[int, int] = {}
    for _, head, shadow in shadow_times(record):
        best[head] = min(shadow, best.get(head, NEVER))
    numbers, start = record.workload.job, record.start_us
    return [Promise(int(numbers[row]), shadow, int(start[row])) for row, shadow in best.items() if start[row] > shadow]


def promises_broken(record: Record, planned: Mapping[int, int]) -> list[Promise]:
    """Return the jobs that started later than in *planned*, starts (microseconds) by job number."""
    starts = dict(zip(record.workload.job.tolist(), record.start_us.tolist(), strict=True))
    return [Promise(job, promised, starts[job]) for job, promised in planned.items() if starts[job] > promised]
