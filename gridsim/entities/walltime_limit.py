"""Jobs above the time limit: clip the request, or split the job into a chain.

With ``clip``, a job requests the longest allowed time and is killed there. With ``split``, it runs as a chain of
shorter jobs. Each piece of a chain is submitted when the previous piece has ended, and continues the job without
overhead. The pieces are simulated; the record has one row per job again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.reactions import NONE, Reactions
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.record import Beyond, Interruptions, Promises, Reasons, Record, Refusal, Status

Limits = Literal["refuse", "clip", "split"]

CHAINED = "chained"
"""Label of a piece that continues the job of the previous row."""

MOST_PIECES = 10_000
"""Maximum number of pieces of a job; beyond it, the limit is considered an input error."""

_ONCE = ("begin", "withdrawn")
"""Labels relative to the first submission, which therefore apply to the first piece only."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitedJobs:
    """A workload in which no job requests more time than allowed, and the original jobs.

    Attributes
    ----------
    given, pieces : Workload
        The original jobs, and the jobs that replace them.
    first : (n,) int64
        Row in *pieces* of the first piece of each job.
    limit : (n,) int64
        Time limit of jobs that exceed it, whole microseconds; `NEVER` for all other jobs.
    how : {"clip", "split"}
        How jobs above the limit are changed.
    """

    given: Workload
    pieces: Workload
    first: IntArray
    limit: IntArray
    how: Literal["clip", "split"]

    def record(self, found: Record) -> Record:
        """Return the record of the original jobs, from the record of the jobs that replace them."""
        return self._clipped(found) if self.how == "clip" else self._chained(found)

    def _clipped(self, found: Record) -> Record:
        cut = (self.limit < self.given.runtime) & (found.status == Status.completed)
        status = np.where(cut, Status.killed_walltime, found.status).astype(np.int8)
        workload = replace(found.workload, runtime=self.given.runtime)
        return replace(found, workload=workload, status=status, beyond=Beyond("clip", self.limit))

    def _chained(self, found: Record) -> Record:
        first, n = self.first, len(self.given)
        row = np.repeat(np.arange(n), np.diff(np.append(first, len(self.pieces))))
        ran = found.start_us < NEVER
        last = np.maximum.reduceat(np.where(ran, np.arange(len(row)), -1), first)
        last = np.where(last < 0, first, last)
        earlier = np.flatnonzero(ran & (np.arange(len(row)) != last[row]))
        runs = (row[earlier], found.start_us[earlier], found.end_us[earlier])
        workload, logged = self.given, None
        if found.logged_submit_us is not None and workload.reactions is not None:
            logged = workload.submit
            submit, deadline = found.workload.submit[first], found.workload.deadline[first]
            workload = replace(workload, submit=submit, deadline=deadline, logged={})
        return Record(
            workload,
            found.start_us[last],
            found.end_us[last],
            self._status(found, ran[first]),
            found.cluster[last],
            found.cores,
            promises=None if found.promises is None else _folded(found.promises, first, row),
            logged_submit_us=logged,
            reasons=None if found.reasons is None else _job_reasons(found.reasons, first, row),
            beyond=Beyond("split", self.limit, *runs),
            interruptions=None if found.interruptions is None else _of_jobs(found.interruptions, first, row),
            predictions=None if found.predictions is None else found.predictions.select(first),
            allocations=None if found.allocations is None else found.allocations.of_jobs(row),
            capacity=found.capacity,
            requested=None if found.requested is None else found.requested.select(first),
        )

    def _status(self, found: Record, began: Any) -> Any:
        """Return the status of the first incomplete piece of each job; a chain that stopped later is cancelled."""
        bad = np.where(found.status != Status.completed, np.arange(len(found)), len(found))
        broken = np.minimum.reduceat(bad, self.first)
        status = np.append(found.status, Status.completed)[broken]
        refused = np.isin(status, (Status.rejected, Status.unadmitted))
        return np.where(refused & began, Status.cancelled, status).astype(np.int8)


def _folded(promises: Promises, first: IntArray, row: IntArray) -> Promises:
    """Convert guarantees and stopped runs of pieces to those of jobs."""
    over = np.minimum.reduceat(promises.cancelled_by, first)
    return Promises(
        *(promises.granted_us[first], promises.offer_us[first]),
        *(np.add.reduceat(promises.doublings, first), np.logical_or.reduceat(promises.broken, first)),
        *(row[promises.killed], promises.killed_start_us, promises.killed_end_us),
        guarantees=promises.guarantees,
        preempts_by=promises.preempts_by,
        killed_by=np.where(promises.killed_by >= 0, row[promises.killed_by], -1),
        cancelled_by=np.where((over >= 0) & (over < NEVER), row[np.where(over < NEVER, over, 0)], over),
    )


def _of_jobs(found: Interruptions, first: IntArray, row: IntArray) -> Interruptions:
    """Convert interrupted runs and kept work of pieces to those of jobs."""
    kept = None if found.kept is None else replace(found.kept, job=row[found.kept.job])
    return replace(found, job=row[found.job], ended=np.maximum.reduceat(found.ended, first), kept=kept)


def _job_reasons(reasons: Reasons, first: IntArray, row: IntArray) -> Reasons:
    """Convert the wait reasons of pieces to those of jobs; a broken chain has the reason of its first rejection."""
    refused: dict[int, Refusal] = {}
    for piece, why in sorted(reasons.refused.items()):
        refused.setdefault(int(row[piece]), why)
    of_first = {name: getattr(reasons, name)[first] for name in ("eligible", "free", "pool")}
    return replace(reasons, job=row[reasons.job], refused=refused, **of_first)


def limited_jobs(workload: Workload, longest: IntArray, how: Literal["clip", "split"]) -> LimitedJobs | None:
    """Replace jobs above their time limit; return None if no job exceeds it.

    Parameters
    ----------
    longest : (n,) int64
        Time limit of each job, whole microseconds; `NEVER` for no limit.

    Raises
    ------
    InputError
        If a limit is 0, or a chain would have more than `MOST_PIECES` pieces.
    """
    limit = np.where(workload.estimate > longest, longest, NEVER)
    above = limit < NEVER
    if not above.any():
        return None
    if (limit < 1).any():
        raise InputError("is 0; jobs above it can be neither clipped nor split", field="MaxTime")
    if how == "clip":
        shorter = replace(
            workload, estimate=np.minimum(workload.estimate, limit), runtime=np.minimum(workload.runtime, limit)
        )
        return LimitedJobs(workload, shorter, np.arange(len(workload)), limit, how)
    work = np.minimum(workload.runtime, workload.estimate)
    pieces = np.where(above, np.maximum(-(-work // limit), 1), 1)
    most = int(pieces.argmax())
    if pieces[most] > MOST_PIECES:
        message = f"is {limit[most] / MICROSECOND:g} s for job {workload.job[most]}, which needs {pieces[most]} pieces"
        raise InputError(f"{message}; expected at most {MOST_PIECES}", field="MaxTime")
    row = np.repeat(np.arange(len(workload)), pieces)
    first = np.cumsum(pieces) - pieces
    number = np.arange(len(row)) - first[row]
    done = np.where(number > 0, number * np.where(above, limit, 0)[row], 0)
    chain = workload.select(row)
    last = number == pieces[row] - 1
    estimate = np.minimum(chain.estimate - done, limit[row])
    left = chain.runtime - done
    runtime = np.where(last, left, np.minimum(left, limit[row]))
    labels = {
        name: np.where(number > 0, UNKNOWN, column) if name in _ONCE else column
        for name, column in chain.labels.items()
    }
    labels[CHAINED] = (number > 0).astype(np.int64)
    chain = replace(
        chain, estimate=estimate, runtime=runtime, labels=labels, logged={}, reactions=_chain(chain, number, last)
    )
    return LimitedJobs(workload, chain, first, limit, how)


def _chain(pieces: Workload, number: IntArray, last: Any) -> Reactions:
    """Submit each piece after the end of the previous one; jobs that wait for a job wait for its last piece."""
    n, known = len(pieces), pieces.reactions
    none: IntArray = np.full(n, NONE, dtype=np.int64)
    if known is None:
        known = Reactions(none, none, np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_))
    columns = [known.batch, known.before, *([] if known.then is None else [known.then])]
    free = max(int(column.max(initial=-1)) for column in columns) + 1
    later = np.flatnonzero(number > 0)
    batch, before = known.batch.copy(), np.where(last, known.before, NONE)
    batch[later] = free + np.arange(len(later))
    before[later - 1] = batch[later]
    return replace(
        known,
        batch=batch,
        before=before,
        delay=np.where(number > 0, 0, known.delay),
        opens=known.opens & (number == 0),
        then=None if known.then is None else np.where(last, known.then, NONE),
        stated_from=min(known.stated_from, free),
    )
