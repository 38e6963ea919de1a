"""Failures: availability of nodes, interrupted runs, and work that was useful or lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.responsiveness import mean
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds
from gridsim.record import BROKEN_BY, FAILURE, PREEMPTED, REASONS, Interruptions, Record, Status


def concerns_failures(record: Record) -> bool:
    """Return whether nodes could fail in a run."""
    return record.interruptions is not None


def useful_core_seconds(record: Record) -> FloatArray:
    """Return the run time times cores of each job (task of DAG jobs) that completed, 0 for others; core-seconds."""
    _, _, status, runtime = _last_runs(record)
    return np.where(status == Status.completed, record.given * seconds(runtime), 0.0)


def lost_core_seconds(record: Record) -> FloatArray:
    """Return the core-seconds that each job (task of DAG jobs) held in all its runs, and that were of no use.

    Checkpoints and restarts are not counted.
    """
    start, end, *_ = _last_runs(record)
    held = np.where((start < NEVER) & (end < NEVER), end - start, 0)
    job, began, ended = record.earlier_runs()
    np.add.at(held, job, ended - began)
    if record.interruptions is not None and (asleep := record.interruptions.suspended) is not None:
        over = (asleep[1] != start[asleep[0]]) | (end[asleep[0]] < NEVER)  # of runs that have ended
        np.subtract.at(held, asleep[0][over], (asleep[3] - asleep[2])[over])
    checkpoint, restart = overhead_core_seconds(record)
    return record.given * seconds(held) - useful_core_seconds(record) - checkpoint - restart


def _last_runs(record: Record) -> tuple[IntArray, IntArray, npt.NDArray[np.int8], IntArray]:
    """Return start, end, status and run time of the last run of each job or task."""
    if record.tasks is not None and record.workload.tasks is not None:
        return record.tasks.start_us, record.tasks.end_us, record.tasks.status, record.workload.tasks.runtime
    workload, runtime = record.workload, record.workload.runtime
    if workload.moldable is not None:
        runtime = workload.moldable.times_on(record.given, runtime, workload.cores)
    return record.start_us, record.end_us, record.status, runtime


def runs_of(record: Record) -> tuple[IntArray, IntArray, IntArray, list[str], IntArray]:
    """Return all runs by job (task of DAG jobs), then start: row, start and end (whole microseconds), reason, and by.

    *by* is the row of the job that a run was stopped for, -1 for none.
    The reason of a piece of a chain that is not the last one is ``piece``.
    """
    found = record.interruptions
    assert isinstance(found, Interruptions)
    start, end, status, _ = _last_runs(record)
    last = np.flatnonzero((start < NEVER) & (end < NEVER))
    job, *earlier = record.earlier_runs()
    rows = np.concatenate([job, last])
    began, ended = (np.concatenate(columns) for columns in zip(earlier, (start[last], end[last]), strict=True))
    pieces = 0 if record.beyond is None else len(record.beyond.job)
    words = [PREEMPTED] * (len(job) - len(found.job) - pieces)
    words += [REASONS[reason] for reason in found.reason.tolist()] + ["piece"] * pieces
    reasons = zip(status[last].tolist(), found.ended[last].tolist(), strict=True)
    words += [Status(value).name if reason < 0 else REASONS[reason] for value, reason in reasons]
    by: IntArray = np.full(len(rows), -1, dtype=np.int64)
    if (cut := record.promises) is not None:
        by[: len(cut.killed)] = cut.killed_by
        by[len(job) :] = np.where(status[last] == Status.preempted, cut.cancelled_by[last], -1)
    order = np.lexsort((began, rows))
    return rows[order], began[order], ended[order], [words[at] for at in order.tolist()], by[order]


class Spent(NamedTuple):
    """Parts of the runs of `runs_of`, whole microseconds, and the number of complete checkpoints of each."""

    restart: IntArray
    kept: IntArray
    checkpoints: IntArray
    checkpoint: IntArray
    suspended: IntArray
    lost: IntArray


def spent_in_runs(record: Record) -> Spent:
    """Return what all runs were spent on, in the order of `runs_of`."""
    row, start, end, reason, _ = runs_of(record)
    found = record.interruptions
    assert found is not None
    asleep = found.suspended_us(row, start)
    held = end - start - asleep
    if found.kept is None:
        done = np.array(reason) == Status.completed.name
        none: IntArray = np.zeros(len(row), dtype=np.int64)
        return Spent(none, np.where(done, held, 0), none, none, asleep, np.where(done, 0, held))
    kept = found.kept
    order = np.lexsort((kept.start_us, kept.job))
    columns = (kept.restart_us, kept.kept_us, kept.checkpoints, kept.checkpoint_us)
    restart, work, count, writing = (column[order] for column in columns)
    return Spent(restart, work, count, writing, asleep, held - restart - work - writing)


def overhead_core_seconds(record: Record) -> tuple[FloatArray, FloatArray]:
    """Return the core-seconds of checkpoints and of restarts of each job (task of DAG jobs)."""
    found = record.interruptions
    checkpoint: IntArray = np.zeros(len(record.given), dtype=np.int64)
    restart = checkpoint.copy()
    if found is not None and found.kept is not None:
        np.add.at(checkpoint, found.kept.job, found.kept.checkpoint_us)
        np.add.at(restart, found.kept.job, found.kept.restart_us)
    return record.given * seconds(checkpoint), record.given * seconds(restart)


def down_seconds(record: Record, until: int, *, gpus: bool = False) -> float:
    """Return the node-seconds (or GPU-seconds) of failures before an instant, whole microseconds."""
    found = record.interruptions
    assert found is not None
    of_kind = ((found.gpu >= 0) == gpus) & (found.kind == FAILURE)
    return float(seconds(np.minimum(found.up_us[of_kind], until) - np.minimum(found.down_us[of_kind], until)).sum())


def absent_seconds(record: Record, until: int) -> float:
    """Return the node-seconds of failures and windows before an instant, whole microseconds; overlaps count once."""
    found = record.interruptions
    assert found is not None
    rows = np.flatnonzero(found.gpu < 0)
    rows = rows[np.lexsort((found.down_us[rows], found.node[rows]))]
    total, last, reached = 0, -1, 0
    for node, down, up in np.array([found.node, found.down_us, found.up_us]).T[rows].tolist():
        reached = down if node != last else max(reached, down)
        total += max(0, min(up, until) - min(reached, until))
        last, reached = node, max(reached, up)
    return total / 1e6


def failure_metrics(record: Record) -> dict[str, float]:
    """Return `gridsim.metrics.summary.FAILURE_METRICS` from time 0 to the last end."""
    found = record.interruptions
    assert found is not None
    start, end, status, runtime = _last_runs(record)
    until = int(end[end < NEVER].max(initial=0))
    useful, lost = float(useful_core_seconds(record).sum()), float(lost_core_seconds(record).sum())
    nodes, gpus = found.nodes * until / 1e6, found.gpus * until / 1e6
    done = status == Status.completed
    first = start.copy()
    np.minimum.at(first, *record.earlier_runs()[:2])
    response = record.response[record.status == Status.completed]
    interrupted = len(found.job) + int(np.count_nonzero(status == Status.failed))
    up = nodes - down_seconds(record, until)
    windows = {}
    if (found.kind != FAILURE).any():
        windows["scheduled_availability"] = 1 - absent_seconds(record, until) / nodes if nodes else float("nan")
    numbers = {
        "failures": float(np.count_nonzero((found.down_us < until) & (found.kind == FAILURE))),
        "availability": up / nodes if nodes else float("nan"),
        **windows,
        "gpu_availability": 1 - down_seconds(record, until, gpus=True) / gpus if gpus else float("nan"),
        "interrupted_runs": float(interrupted),
        "failed": float(np.count_nonzero(record.status == Status.failed)),
        "useful_core_hours": useful / 3600,
        "lost_core_hours": lost / 3600,
        "goodput": useful / (record.cores * until / 1e6) if until else float("nan"),
        "goodput_of_available": useful * nodes / (record.cores * until / 1e6 * up) if until and up else float("nan"),
        "time_to_result_mean": mean(response),
        "effective_ratio_mean": mean(runtime[done] / (end - first)[done]),
        "core_seconds_to_interruption": (useful + lost) / interrupted if interrupted else float("nan"),
        **_moves(found),
        **_promises(record),
    }
    if record.by_class and not found.nodes:  # nodes could not fail
        return {name: numbers[name] for name in _OF_WORK}
    return numbers


def _moves(found: Interruptions) -> dict[str, float]:
    """Return how many planned starts became later, and by how much."""
    if found.moved is None:
        return {}
    later = found.moved[0] > 0
    return {"starts_moved": float(later.sum()), "start_moved_mean": mean(seconds(found.moved[1][later]))}


def _promises(record: Record) -> dict[str, float]:
    """Return the shares of guarantees that absences broke, and that were missed, for whatever reason.

    A guarantee is also missed if the job failed, or still waits at the end of the run.
    """
    promises = record.promises
    if promises is None or promises.broken_at_us is None or promises.broken_by is None:
        return {}
    made = promises.granted_us < NEVER
    by_machine = (promises.broken_at_us < NEVER) & (promises.broken_by == BROKEN_BY.index("machine"))
    until = NEVER if record.until_us is None else record.until_us
    late = (np.minimum(record.end_us, until) > promises.granted_us) | (record.status == Status.failed)
    return {
        "promises_broken_by_machine_share": mean(by_machine[made].astype(float)),
        "promises_missed_share": mean(late[made].astype(float)),
    }


_OF_WORK = ("useful_core_hours", "lost_core_hours", "goodput", "time_to_result_mean", "effective_ratio_mean")
"""Metrics of work, which also depend on preemption."""
