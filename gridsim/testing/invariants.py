"""Invariants of schedules of any origin, checked on columns without simulation.

`violations` checks a record of gridsim, `violations_of` any `Schedule` with its workload. For properties of particular
policies (such as the order under FCFS) see `gridsim.testing.claims`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import CheckFailed, InputError
from gridsim.metrics.availability import runs_of, spent_in_runs
from gridsim.metrics.groups import called
from gridsim.model.allocations import Allocations
from gridsim.model.capacity import Capacity
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, IntArray, seconds, to_us
from gridsim.model.windows import PlannedWindow
from gridsim.model.workload import Workload
from gridsim.record import FAILURE, REASONS, SAVED, Record, Status
from gridsim.testing.allocation_checks import Failed, Runs, misplaced, on_failed_nodes, outside_reservations
from gridsim.testing.demand_checks import misplaced_tasks, of_sizes, over_pools, reasons
from gridsim.testing.violation import DEMAND_KINDS, KINDS, PIECE_KINDS, Violation, marked

__all__ = ["Schedule", "Violation", "assert_valid", "violations", "violations_of"]

Mask = npt.NDArray[np.bool_]
Overrun = Literal["kill", "extend"]

UNKNOWN_STATUS = -1
UNKNOWN_CORES = -1

_STOPPED = (Status.cancelled, Status.failed, Status.preempted)
"""Statuses of jobs that may have ended early."""


class Parts(NamedTuple):
    """Parts of runs, whole microseconds: restart, kept work and checkpoints; and whether the run saved and left."""

    restart: npt.NDArray[Any]
    kept: npt.NDArray[Any]
    checkpoint: npt.NDArray[Any]
    saved: npt.NDArray[Any]

    def select(self, rows: Any) -> Parts:
        """Return the parts of some runs; row -1 has none."""
        return Parts(*(np.append(column, column.dtype.type(0))[rows] for column in self))


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Rows of a schedule as in its source, in any order and possibly incomplete.

    Attributes
    ----------
    job : (n,) int64
        Job numbers.
    start, end : (n,) int64
        Whole microseconds; `NEVER` if missing in the source.
    submit, wait, granted : (n,) int64 or None
        Whole microseconds, `NEVER` if missing in the source; None if the source has no such column.
    logged_submit : (n,) int64 or None
        If users reacted: submit times of the workload, whole microseconds; `submit` has those of the schedule.
    cores : (n,) int64 or None
        Cores allocated to the job; -1 if unknown.
    status : (n,) int64 or None
        Values of `Status`; -1 for an unknown word of the source, for a job that must have run. None without statuses.
    cluster : (n,) int64 or None
        Index of the cluster.
    broken : (n,) bool or None
        Guarantees reported as broken because a job exceeded its estimate.
    broken_at : (n,) int64 or None
        Instants at which guarantees were broken in a run with failures, whole microseconds; `NEVER` for none.
    cut_job, cut_start, cut_end : (k,) int64 or None
        Runs before the last one, killed to free cores for another job, or pieces of a chain: number of the job, start
        and end, whole microseconds.
    first_start : (n,) int64 or None
        First starts of jobs that failures interrupted, at which their waits end; None: waits end at `start`.
    cut_piece : (k,) bool or None
        Which of these are pieces of chains; None: none.
    parts, cut_parts : Parts or None
        Parts of the last runs and of those before them, if jobs can save their work.
    limit : (n,) int64 or None
        Time limit of jobs that requested more, whole microseconds, `NEVER` for other jobs. Such jobs were killed at
        the limit, or split into a chain. None if there are none.
    pieces : (n,) int64 or None
        Stated number of runs in each job's chain.
    allocations : Allocations or None
        Allocations of jobs, with job numbers instead of rows.
    failed : Failed or None
        Failures of nodes.
    reserved : sequence of PlannedWindow
        Reservations of nodes.
    asleep : (3, s) int64 or None
        Suspensions: number of the job, begin and end, whole microseconds; None for none.
    source : str
        Name for messages.
    """

    job: IntArray
    start: IntArray
    end: IntArray
    submit: IntArray | None = None
    logged_submit: IntArray | None = None
    wait: IntArray | None = None
    granted: IntArray | None = None
    cores: IntArray | None = None
    status: IntArray | None = None
    cluster: IntArray | None = None
    broken: Mask | None = None
    broken_at: IntArray | None = None
    cut_job: IntArray | None = None
    cut_start: IntArray | None = None
    cut_end: IntArray | None = None
    cut_piece: Mask | None = None
    parts: Parts | None = None
    cut_parts: Parts | None = None
    first_start: IntArray | None = None
    limit: IntArray | None = None
    pieces: IntArray | None = None
    allocations: Allocations | None = None
    failed: Failed | None = None
    reserved: Sequence[PlannedWindow] = ()
    asleep: IntArray | None = None
    source: str = "schedule"

    def __len__(self) -> int:
        return len(self.job)

    @classmethod
    def of(cls, record: Record) -> Schedule:
        """Return the schedule of a record, with its guarantees; of DAG jobs that of the tasks, numbered by row."""
        promises, own = record.promises, record if record.tasks is None else record.tasks
        numbers = record.workload.job if record.tasks is None else np.arange(len(own.start_us))
        job, start, end = record.earlier_runs()
        beyond, guarantees = record.beyond, promises if record.tasks is None else None
        found = cls(
            job=numbers,
            start=own.start_us,
            end=own.end_us,
            status=own.status.astype(np.int64),
            cluster=own.cluster.astype(np.int64),
            cores=None if own.cores_used is None else own.cores_used,
            granted=None if guarantees is None else guarantees.granted_us,
            broken=None if guarantees is None else guarantees.broken,
            broken_at=None if guarantees is None else guarantees.broken_at_us,
            cut_job=numbers[job] if len(job) or promises is not None else None,
            cut_start=start if len(job) or promises is not None else None,
            cut_end=end if len(job) or promises is not None else None,
            cut_piece=None if beyond is None else np.arange(len(job)) >= len(job) - len(beyond.job),
            limit=None if beyond is None else beyond.limit_us,
            allocations=None if record.allocations is None else _numbered(record.allocations, numbers),
            failed=_failed(record),
            reserved=() if record.interruptions is None else record.interruptions.reserved,
            source="record",
        )
        if record.interruptions is None:
            return found
        if (asleep := record.interruptions.suspended) is not None:
            found = replace(found, asleep=np.stack([numbers[asleep[0]], asleep[2], asleep[3]]))
        row, start, end, reason, _ = runs_of(record)
        spent, saved = spent_in_runs(record), np.array(reason) == REASONS[SAVED]
        parts = Parts(spent.restart, spent.kept, spent.checkpoint, saved)
        saves = record.interruptions.kept is not None
        return found.with_runs(numbers[row], start, end, parts if saves else None, np.array(reason) == "piece")

    def with_runs(self, job: IntArray, start: IntArray, end: IntArray, parts: Parts | None, piece: Any) -> Schedule:
        """Return the schedule with all runs of jobs, of which it has the last ones; with *parts* if jobs can save.

        *piece*, (k,) bool, marks the pieces of split jobs.
        """
        place = {number: row for row, number in enumerate(self.job.tolist())}
        row = np.array([place.get(number, -1) for number in job.tolist()], dtype=np.int64)
        known, first = row >= 0, self.start.copy()
        np.minimum.at(first, row[known], start[known])
        last = np.flatnonzero(known & (start == self.start[row]))
        at: IntArray = np.full(len(self), -1, dtype=np.int64)
        at[row[last]] = last
        cut = np.delete(np.arange(len(job)), last)
        of_last, of_cut = (None, None) if parts is None else (parts.select(at), parts.select(cut))
        found = replace(self, cut_job=job[cut], cut_start=start[cut], cut_end=end[cut], first_start=first)
        return replace(found, cut_piece=piece[cut] if piece.any() else None, parts=of_last, cut_parts=of_cut)


def violations(
    record: Record,
    *,
    overrun: Overrun = "kill",
    platform: Platform | None = None,
    capacity: Capacity | None = None,
    granted: Any = None,
    tolerance: float = 0.0,
    limit: int = 5,
    tick: float = 1.0,
) -> list[Violation]:
    """Return the violations of a record; empty if it is a possible schedule of its workload.

    For DAG jobs the tasks are checked: capacity, kinds, run times, and starts after their predecessors.

    Parameters
    ----------
    overrun : {"kill", "extend"}
        Treatment of jobs that reached their estimates.
    platform : Platform, optional
        Clusters, if there are several, and network; by default one cluster of the record's cores.
    capacity : Capacity, optional
        Nodes, whose capacity must not be exceeded; by default those of the platform.
    granted : (n,) array_like, optional
        Guaranteed deadlines, s; NaN for none. By default those of the record.
    tolerance : float
        Tolerance of times, s; from 2**31 s on also the resolution of floats of seconds.
    limit : int
        Largest number of listed jobs of each kind.
    tick : float
        Unit to which delays between clusters were rounded up, s.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=9, cores=2), dict(submit=1, start=1, end=4, cores=1)])
    >>> print(*violations(record))
    oversubscribed: 1 (jobs 2): 3 of 2 cores in use; first at 1 s
    """
    capacity = only_capacity(platform) if capacity is None else capacity
    if record.tasks is not None:
        return [*_of_tasks(record, platform, overrun, to_us(tolerance), limit, to_us(tick), capacity)]
    schedule = Schedule.of(record)
    if granted is not None:
        schedule = replace(schedule, granted=to_us(np.asarray(granted, dtype=float)))
    capacities = [record.cores] if platform is None else [cluster.cores for cluster in platform.clusters()]
    rows = np.arange(len(record), dtype=np.int64)
    found = _check(schedule, record.workload, rows, capacities, overrun, to_us(tolerance), limit, capacity)
    return [*found, *_reactions(record, to_us(tolerance), limit)]


def violations_of(
    schedule: Schedule,
    workload: Workload,
    *,
    cores: int | Sequence[int],
    capacity: Capacity | None = None,
    overrun: Overrun = "kill",
    tolerance: float = 0.0,
    limit: int = 5,
) -> list[Violation]:
    """Return the violations of a schedule of a workload; parameters as in `violations`.

    Parameters
    ----------
    cores : int or sequence of int
        Cores of the machine, or of each cluster in the order of ``schedule.cluster``.
    """
    capacities = [cores] if isinstance(cores, int) else list(cores)
    rows = _rows(schedule.job, workload)
    return _check(schedule, workload, rows, capacities, overrun, to_us(tolerance), limit, capacity)


def assert_valid(record: Record, **options: Any) -> None:
    """Raise `CheckFailed` with every violation of a record; options as in `violations`."""
    found = violations(record, **options)
    if found:
        raise CheckFailed("; ".join(map(str, found)))


def only_capacity(platform: Platform | None) -> Capacity | None:
    """Return nodes and pools of a platform of one cluster."""
    clusters = [] if platform is None else list(platform.clusters())
    return clusters[0].capacity if len(clusters) == 1 else None


def _rows(job: IntArray, workload: Workload) -> IntArray:
    """Return the row of the workload for each job number; -1 for unknown ones."""
    order = np.argsort(workload.job, kind="stable")
    numbers = workload.job[order]
    if (numbers[1:] == numbers[:-1]).any():
        twice = int(numbers[1:][numbers[1:] == numbers[:-1]][0])
        raise InputError(f"the workload has job {twice} twice; jobs are matched by number", field="job")
    if not len(numbers):
        return np.full(len(job), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(numbers, job), len(numbers) - 1)
    return np.where(numbers[place] == job, order[place], -1)


def _rounding(schedule: Schedule) -> int:
    """Return the possible error of a difference of two instants, microseconds, due to floats of seconds in files."""
    latest = max((int(each[each < NEVER].max(initial=0)) for each in (schedule.start, schedule.end)), default=0)
    return round(2 * float(np.spacing(seconds(latest))) * MICROSECOND)


class _Checks:
    """Schedule and workload, restricted to known jobs, so that columns can be compared."""

    def __init__(
        self,
        schedule: Schedule,
        workload: Workload,
        rows: IntArray,
        capacities: Sequence[int],
        overrun: Overrun,
        tolerance: int,
        limit: int,
    ) -> None:
        self.schedule, self.workload, self.rows = schedule, workload, rows
        self.capacities, self.overrun, self.tolerance, self.limit = capacities, overrun, tolerance, limit
        self.known: Mask = rows >= 0
        self.owner = schedule.job  # for tasks their DAG jobs
        at = np.where(self.known, rows, 0)
        self.started: Mask = schedule.start < NEVER
        self.ended: Mask = schedule.end < NEVER
        self.ran: Mask = self.started & self.ended
        empty = len(workload) == 0
        self.given_submit = np.zeros(len(rows), dtype=np.int64) if empty else workload.submit[at]
        reacted = schedule.logged_submit is not None and schedule.submit is not None
        self.submit = schedule.submit if reacted and schedule.submit is not None else self.given_submit
        self.runtime = np.zeros(len(rows), dtype=np.int64) if empty else workload.runtime[at]
        self.estimate = np.zeros(len(rows), dtype=np.int64) if empty else workload.estimate[at]
        self.request = np.zeros(len(rows), dtype=np.int64) if empty else workload.cores[at]
        stated = schedule.cores
        self.cores = self.request if stated is None else np.where(stated > 0, stated, self.request)
        self.status = np.full(len(rows), UNKNOWN_STATUS, dtype=np.int64) if schedule.status is None else schedule.status
        self.paused = self._paused(schedule.job, schedule.start, schedule.end)
        self.held = np.where(self.ran, schedule.end - schedule.start - self.paused, 0)
        self._by_limits()
        # Moldable jobs have other run times on other numbers of cores, so the bounds depend on the allocation.
        self.least, self.most = self.request, self.request
        self.length, self.limit_of_length = self.runtime, self.estimate
        if workload.moldable is not None and not empty:
            moldable, requested = workload.moldable.select(at), workload.cores[at]
            self.least, self.most = moldable.minimum, moldable.maximum
            possible = np.clip(self.cores, 1, np.maximum(requested, moldable.maximum))
            as_asked = self.cores == requested  # may be zero cores, for which no other size exists
            self.length = np.where(as_asked, self.runtime, moldable.times_on(possible, self.runtime, requested))
            longest = moldable.times_on(possible, self.estimate, requested)
            self.limit_of_length = np.where(as_asked, self.estimate, longest)
        if schedule.parts is not None and schedule.cut_parts is not None:
            self._by_parts(schedule.parts, schedule.cut_parts)

    def _by_limits(self) -> None:
        """Return the limits for the last pieces of chains in the schedule.

        Other jobs above a limit are killed at it.
        """
        self.before = self._held_by_pieces()
        self.asked, self.worked = self.estimate, self.runtime
        self.most_at_once = np.full(len(self.rows), NEVER) if self.schedule.limit is None else self.schedule.limit
        self.runtime = self.runtime - self.before
        self.estimate = np.minimum(self.estimate - self.before, self.most_at_once)
        self.clipped: Mask = (self.most_at_once < NEVER) & (self.before == 0)

    def _by_parts(self, parts: Parts, cut: Parts) -> None:
        """Set the lengths and limits of last runs with checkpoints: restart, the work that is left, and checkpoints.

        A later run requests the estimate again, or what earlier runs left of it since the last save, and the restart.
        """
        row, end = self._rows_cut(np.ones(len(self.rows), dtype=np.bool_)), self.schedule.cut_end
        assert end is not None
        row, end, cut = row[row >= 0], end[row >= 0], cut.select(np.flatnonzero(row >= 0))
        before, spent, saved = (np.zeros(len(self.rows), dtype=np.int64) for _ in range(3))
        np.add.at(before, row, cut.kept)
        np.maximum.at(saved, row[cut.saved], end[cut.saved])
        since = end > saved[row]
        np.add.at(spent, row[since], (cut.kept + cut.checkpoint)[since])
        again: Mask = np.bincount(row[since], minlength=len(self.rows)) > 0
        left = self.limit_of_length - np.where(again, spent - parts.restart, 0)
        held = self.held
        killed = self.status == Status.killed_walltime
        # The duration of a killed run is the one of the two that it requested.
        most = np.where(killed & self.differ(held, left), self.limit_of_length, left)
        limit = np.where(killed, most, np.maximum(self.limit_of_length, left))
        need = parts.restart + self.length - before + parts.checkpoint
        # A checkpoint that was not complete when the run was stopped is no part of it.
        need = np.where(killed & (before + parts.kept < self.length), np.maximum(need, limit + 1), need)
        need = np.where(np.isin(self.status, _STOPPED), np.maximum(need, held), need)
        self.runtime, self.estimate, self.length, self.limit_of_length = need, limit, need, limit

    def _paused(self, job: IntArray, start: IntArray, end: IntArray) -> IntArray:
        """Return for how long each of these runs was suspended, whole microseconds."""
        paused: IntArray = np.zeros(len(job), dtype=np.int64)
        for number, since, until in [] if self.schedule.asleep is None else self.schedule.asleep.T.tolist():
            paused[(job == number) & (start <= since) & (until <= end)] += until - since
        return paused

    def stretches(self, held: Allocations) -> tuple[Allocations, Runs]:
        """Return all runs, or those between suspensions, and their pieces, without what suspended jobs kept."""
        runs = self.runs()[0]
        if self.schedule.asleep is None:
            return held, runs
        job, since, until = self.schedule.asleep
        owner = np.concatenate([runs.job, job])
        begin, end = np.concatenate([runs.start, until]), np.concatenate([runs.end, since])
        # Stretches of a job do not overlap, so they begin and end in the same order.
        first, last = np.lexsort((begin, owner)), np.lexsort((end, owner))
        cores = dict(zip(runs.job.tolist(), runs.cores.tolist(), strict=True))
        wide = np.array([cores.get(number, 0) for number in owner[first].tolist()], dtype=np.int64)
        found = np.flatnonzero(begin[first] < end[last])
        kept = set(zip(job[until > since].tolist(), since[until > since].tolist(), strict=True))
        pairs = zip(held.job.tolist(), held.start_us.tolist(), strict=True)
        awake = np.flatnonzero(np.array([pair not in kept for pair in pairs], dtype=np.bool_))
        columns = (owner[first], begin[first], end[last], wide)
        return replace(held, resumed=None).taken(awake), Runs(*(column[found] for column in columns))

    def _held_by_pieces(self) -> IntArray:
        """Return the time that the earlier pieces of each job's chain held its cores, whole microseconds."""
        before: IntArray = np.zeros(len(self.rows), dtype=np.int64)
        cut = self.schedule
        if cut.cut_piece is not None and cut.cut_start is not None and cut.cut_end is not None:
            row = self._rows_cut(np.ones(len(self.rows), dtype=np.bool_))
            there = cut.cut_piece & (row >= 0) & (cut.cut_start < NEVER) & (cut.cut_end < NEVER)
            np.add.at(before, row[there], (cut.cut_end - cut.cut_start)[there])
        return before

    def found(self, kind: str, bad: Mask, instants: IntArray | None = None, detail: Any = None) -> Iterator[Violation]:
        """Yield the violation of the rows in *bad*, if there are any; *detail* formats the numbers of a row."""
        return marked(kind, bad, self.schedule.job, instants, self.limit, detail)

    def differ(self, one: IntArray, other: IntArray) -> Mask:
        differs: Mask = np.abs(one - other) > self.tolerance
        return differs

    # -- which jobs --------------------------------------------------------------------------------------------------

    def jobs(self) -> Iterator[Violation]:
        job = self.schedule.job
        never = (self.status == Status.cancelled) & ~self.started & ~self.ended
        yield from self.found("unknown-job", ~self.known & ~never, None, self._unknown)
        order = np.argsort(job, kind="stable")
        again = np.zeros(len(job), dtype=bool)
        again[order[1:]] = job[order[1:]] == job[order[:-1]]
        yield from self.found("duplicate-job", again, self.schedule.start)
        absent = np.ones(len(self.workload), dtype=bool)
        absent[self.rows[self.known]] = False
        yield from marked("missing-job", absent, self.workload.job, None, self.limit)

    def outcomes(self) -> Iterator[Violation]:
        """Check that every job is completed, killed, rejected, unadmitted or cancelled, consistent with its times."""
        status, ran = self.status, self.ran
        outcome = np.isin(status, [int(value) for value in Status]) | ran
        half = self.started != self.ended
        yield from self.found("no-outcome", ~outcome | half, None, self._no_outcome)
        held = np.isin(status, [Status.completed, Status.killed_walltime])
        idle = np.isin(status, [Status.rejected, Status.unadmitted])
        late = self.runtime > self.estimate
        killed = status == Status.killed_walltime
        should = late & (self.clipped | (self.overrun == "kill"))
        contradiction = (held & ~ran & ~half) | (idle & (self.started | self.ended))
        contradiction |= self.known & ran & held & (killed != should)
        yield from self.found("wrong-status", contradiction, self.schedule.start, self._status)
        widest = max(self.capacities)
        # If every job started with its requested cores, wider jobs cannot run, whatever other sizes they allow.
        molds = bool((self.started & (self.cores != self.request)).any())
        needed = np.minimum(self.request, self.least) if molds else self.request
        fits = self.known & (status == Status.rejected) & (needed <= widest)
        if self.workload.demands is not None and len(self.workload):  # more than cores decides: see `demands`
            fits &= self.workload.demands.plain[np.where(self.known, self.rows, 0)] > 0
        fits &= ~self._names_reservation()
        yield from self.found(
            "rejected-fits", fits, self.submit, lambda row: f"{self.request[row]} of {widest} requested cores"
        )

    def _names_reservation(self) -> Mask:
        """Return the jobs that name a reservation, which may reject them."""
        named = self.workload.labels.get("reservation")
        if named is None or not len(self.workload):
            return np.zeros(len(self.rows), dtype=np.bool_)
        found: Mask = named[np.where(self.known, self.rows, 0)] >= 0
        return found

    def _unknown(self, row: int) -> str:
        return f"job {self.schedule.job[row]} is not in the workload, or was left out by a rule"

    def _no_outcome(self, row: int) -> str:
        if self.started[row] != self.ended[row]:
            return "a start without an end" if self.started[row] else "an end without a start"
        return "neither a start and an end nor a known status"

    def _status(self, row: int) -> str:
        word = Status(int(self.status[row])).name
        if not self.ran[row]:
            return f"{word}, but it did not run"
        held = seconds(int(self.held[row]))
        return (
            f"{word}, but it ran for {held:.15g} s; its runtime is {seconds(int(self.runtime[row])):.15g} s, "
            f"its estimate {seconds(int(self.estimate[row])):.15g} s"
        )

    # -- times -------------------------------------------------------------------------------------------------------

    def times(self) -> Iterator[Violation]:
        start, end = self.schedule.start, self.schedule.end
        yield from self.found("negative-time", (start < 0) | (end < 0), np.minimum(start, end))
        yield from self.found("ends-before-start", self.ran & (end < start), start, self._backwards)
        early = self.known & self.started & (start < self.submit - self.tolerance)
        yield from self.found("starts-before-submit", early, start, self._early)
        submit = self.schedule.submit
        stated = submit if self.schedule.logged_submit is None else self.schedule.logged_submit
        if stated is not None:
            wrong = self.known & (stated < NEVER) & self.differ(stated, self.given_submit)
            yield from self.found(
                "wrong-submit", wrong, stated, lambda row: self._instead(stated[row], self.given_submit[row])
            )
        wait = self.schedule.wait
        if wait is not None:
            first = start if self.schedule.first_start is None else self.schedule.first_start
            first = np.where(self.before > 0, start, first)  # the wait of a chain is that of all its pieces
            true = first - np.where(submit < NEVER, submit, self.submit) if submit is not None else first - self.submit
            true = true - self.before
            wrong = self.started & (wait < NEVER) & self.differ(wait, true)
            wrong &= self.known if submit is None else self.known | (submit < NEVER)
            yield from self.found("wrong-wait", wrong, start, lambda row: self._instead(wait[row], true[row]))
        goes_on = ~self.clipped & (self.overrun == "extend")
        held = np.where(goes_on, self.length, np.minimum(self.length, self.limit_of_length))
        cut = np.isin(self.status, _STOPPED)
        odd = np.where(cut, self.held > held + self.tolerance, self.differ(self.held, held))
        wrong = self.known & self.ran & odd
        due = start + held + self.paused
        yield from self.found("wrong-end", wrong, end, lambda row: self._instead(end[row], due[row]))
        yield from self._promises()
        yield from self._cut_runs()
        yield from self._chains()

    def _promises(self) -> Iterator[Violation]:
        granted, end = self.schedule.granted, self.schedule.end
        if granted is None:
            return
        excused = np.zeros(len(end), dtype=np.bool_)
        if self.overrun == "extend":  # by an own overrun, or with a reported broken guarantee
            excused = self.known & (self.runtime > self.estimate)
            excused |= False if self.schedule.broken is None else self.schedule.broken
        at = self.schedule.broken_at
        if at is not None:  # an absence, an overrun or the job itself broke it, while the job waited
            excused |= (at >= self.submit) & (at <= self.schedule.start)
        missed = self.ended & (granted < NEVER) & (end > granted + self.tolerance) & ~excused
        yield from self.found("deadline-missed", missed, end, lambda row: self._instead(end[row], granted[row]))
        idle = np.isin(self.status, [Status.rejected, Status.unadmitted]) & (granted < NEVER)
        yield from self.found("promised-yet-refused", idle, granted)

    def _cut_runs(self) -> Iterator[Violation]:
        """Check that killed runs begin after submission, and end before the last run and before their full time."""
        job, start, end = self.schedule.cut_job, self.schedule.cut_start, self.schedule.cut_end
        if job is None or start is None or end is None or not len(job) or not len(self.rows):
            return
        place = self._rows_cut(np.ones(len(self.rows), dtype=np.bool_))
        longest, parts = self._longest_runs(place), self.schedule.cut_parts
        held = end - start - self._paused(job, start, end)
        if parts is not None:  # a last checkpoint may exceed the estimate; without walltimes a run has no limit
            longest = longest + parts.restart + parts.checkpoint if self.overrun == "kill" else held
        odd = (place < 0) | (start < self.submit[place] - self.tolerance) | (end <= start)
        odd |= (end > self.schedule.start[place] + self.tolerance) | (held > longest + self.tolerance)
        if parts is not None:
            odd |= parts.restart + parts.kept + parts.checkpoint > held + self.tolerance
        again = np.lexsort((start, job))
        same = job[again][1:] == job[again][:-1]
        odd[again[1:]] |= same & (start[again][1:] < end[again][:-1] - self.tolerance)
        yield from marked("two-runs-at-once", odd, job, start, self.limit)

    def _longest_runs(self, place: IntArray) -> IntArray:
        """Return the longest possible time of each run before the last one.

        Only the last piece of a chain may exceed a limit.
        """
        # On fewer cores than requested it may take longer; a killed job keeps its size.
        longest = np.minimum(np.maximum(self.asked, self.limit_of_length), self.most_at_once)
        if self.overrun == "extend":
            longest = np.where(self.clipped, longest, np.maximum(longest, self.length))
        piece = self.schedule.cut_piece
        if piece is None:
            return longest[place]
        return np.where(piece, np.minimum(self.worked, self.most_at_once)[place], longest[place])

    def _chains(self) -> Iterator[Violation]:
        """Check that each job has the stated number of pieces."""
        stated, piece = self.schedule.pieces, self.schedule.cut_piece
        if stated is None:
            return
        counted = np.ones(len(self.rows), dtype=np.int64)
        if piece is not None:
            row = self._rows_cut(np.ones(len(self.rows), dtype=np.bool_))
            np.add.at(counted, row[piece & (row >= 0)], 1)
        wrong = self.ran & (stated > 0) & (counted != stated)
        yield from self.found(
            "two-runs-at-once", wrong, self.schedule.start, lambda row: f"{counted[row]} of {stated[row]} runs"
        )

    @staticmethod
    def _instead(found: Any, expected: Any) -> str:
        return f"{seconds(int(found)):.15g} s instead of {seconds(int(expected)):.15g} s"

    def _backwards(self, row: int) -> str:
        start, end = self.schedule.start[row], self.schedule.end[row]
        return f"starts at {seconds(int(start)):.15g} s, ends at {seconds(int(end)):.15g} s"

    def _early(self, row: int) -> str:
        start, submit = self.schedule.start[row], self.submit[row]
        return f"starts at {seconds(int(start)):.15g} s, submitted at {seconds(int(submit)):.15g} s"

    # -- cores -------------------------------------------------------------------------------------------------------

    def machine(self) -> Iterator[Violation]:
        stated = self.schedule.cores
        if stated is not None:
            wrong = self.known & (stated >= 0) & (stated != self.request) & self.started
            wrong &= (stated < self.least) | (stated > self.most)
            yield from self.found("wrong-cores", wrong, self.schedule.start, self._width)
        several = len(self.capacities) > 1 and self.schedule.cluster is not None
        cluster = self.schedule.cluster if several else None
        capacity = np.asarray(self.capacities) if cluster is None else np.asarray(self.capacities)[cluster]
        total = np.broadcast_to(capacity.sum() if cluster is None else capacity, self.cores.shape)
        yield from self.found(
            "too-wide",
            self.started & (self.cores > total),
            self.schedule.start,
            lambda row: f"{self.cores[row]} of {total[row]} cores",
        )
        if cluster is None:
            yield from self._oversubscribed(self.ran, sum(self.capacities), "")
            return
        for index, size in enumerate(self.capacities):
            yield from self._oversubscribed(self.ran & (cluster == index), size, f" of cluster {index}")

    def _width(self, row: int) -> str:
        allowed = f"{self.request[row]}"
        if self.least[row] != self.request[row] or self.most[row] != self.request[row]:
            allowed += f", or {self.least[row]} to {self.most[row]},"
        return (
            f"{self.cores[row] if self.schedule.cores is None else self.schedule.cores[row]} instead of {allowed} cores"
        )

    def _rows_cut(self, which: Mask) -> IntArray:
        """Return the row of the job of each killed run marked by *which*; -1 elsewhere."""
        job = self.schedule.cut_job
        if job is None or not len(job):
            return np.zeros(0, dtype=np.int64)
        place = {number: row for row, number in enumerate(self.schedule.job.tolist()) if which[row]}
        return np.array([place.get(number, -1) for number in job.tolist()], dtype=np.int64)

    def runs(self) -> tuple[Runs, IntArray]:
        """Return all runs of jobs in the schedule, including those before the last one, and the row of each job."""
        last = np.flatnonzero(self.started & (self.schedule.end > self.schedule.start))
        found = Runs(self.schedule.job[last], self.schedule.start[last], self.schedule.end[last], self.cores[last])
        row = self._rows_cut(np.ones(len(self.rows), dtype=np.bool_))
        job, start, end = self.schedule.cut_job, self.schedule.cut_start, self.schedule.cut_end
        if job is None or start is None or end is None or not len(row):
            return found, self.rows[last]
        cut = np.flatnonzero((row >= 0) & (end > start))
        more = Runs(job[cut], start[cut], end[cut], self.cores[row[cut]])
        runs = Runs(*(np.concatenate(columns) for columns in zip(found, more, strict=True)))
        return runs, np.concatenate([self.rows[last], self.rows[row[cut]]])

    def pieces(self, capacity: Capacity | None) -> Iterator[Violation]:
        """Check allocations, and requests for nodes and pools."""
        held, failed = self.schedule.allocations, self.schedule.failed
        if held is not None:
            awake, runs = self.stretches(held)
            yield from misplaced(held, runs, capacity, self.tolerance, self.limit, awake)
            if failed is not None:
                yield from on_failed_nodes(held, failed, self.tolerance, self.limit)
            if self.schedule.reserved and capacity is not None:
                named, limits = self.named_reservations(held), (self.tolerance, self.limit)
                windows, kill = self.schedule.reserved, self.overrun == "kill"
                yield from outside_reservations(held, named, windows, capacity, *limits, kill=kill)
            held = awake
        if capacity is not None and self.workload.demands is not None:
            of_pieces = np.zeros(0, dtype=np.int64) if held is None else _rows(held.job, self.workload)
            yield from self.demands(capacity, held, of_pieces)

    def named_reservations(self, held: Allocations) -> npt.NDArray[np.str_]:
        """Return the name of the reservation that the job of each piece names; empty for none."""
        label = self.workload.labels.get("reservation", np.full(len(self.workload), -1))
        numbers, place = np.unique(np.append(label, -1), return_inverse=True)
        names = np.array([called(self.workload, "reservation", number) if number >= 0 else "" for number in numbers])
        return names[place[_rows(held.job, self.workload)]]

    def demands(self, capacity: Capacity, held: Allocations | None, rows: IntArray) -> Iterator[Violation]:
        """Check requests for nodes and pools; *rows* has the row of the workload of each held piece."""
        demands = self.workload.demands
        if demands is None:
            return
        moldable_schedule = self.workload.moldable is not None
        if moldable_schedule:
            given = demands.cores.copy()
            given[self.rows[self.known]] = self.cores[self.known]
            demands = of_sizes(demands, given)
        runs, of_runs = self.runs()
        known = of_runs >= 0
        runs = Runs(*(column[known] for column in runs))
        yield from over_pools(demands, runs, of_runs[known], capacity, self.tolerance, self.limit)
        if held is not None:
            yield from misplaced_tasks(held, rows, demands, capacity, self.limit)
            at_no_core = self.ran & (demands.tasks[self.rows] > 0) & (demands.cores[self.rows] == 0)
            nowhere = at_no_core & self.known & ~np.isin(self.rows, rows) & bool(capacity.nodes)
            yield from self.found("missing-pieces", nowhere, self.schedule.start)
        why = np.full(len(self.rows), "", dtype=object)
        asked = np.flatnonzero(self.known & (self.started | (self.status == Status.rejected)))
        why[asked] = reasons(demands, self.rows[asked], capacity)
        impossible: Mask = why != ""
        # A DAG job is rejected because of a single task.
        never = np.isin(self.owner, self.owner[impossible])
        fits = self.known & (self.status == Status.rejected) & ~never & (demands.plain[self.rows] == 0)
        fits &= ~self._names_reservation()
        fits &= not moldable_schedule  # jobs rejected at their requested size may fit at other sizes
        yield from self.found("rejected-fits", fits, self.submit)
        yield from self.found("cannot-be-held", self.started & impossible, self.schedule.start, lambda row: why[row])

    def _oversubscribed(self, which: Mask, total: int, where: str) -> Iterator[Violation]:
        """Yield the periods with more cores in use than available; intervals are half open."""
        rows = np.flatnonzero(which & (self.schedule.end > self.schedule.start))
        begin, end = self.schedule.start[rows], self.schedule.end[rows]
        cut = self._rows_cut(which)
        if len(cut):
            assert self.schedule.cut_start is not None
            assert self.schedule.cut_end is not None
            kept = cut >= 0
            begin = np.concatenate([begin, self.schedule.cut_start[kept]])
            end = np.concatenate([end, self.schedule.cut_end[kept]])
            rows = np.concatenate([rows, cut[kept]])
        cores = self.cores[rows]
        if self.schedule.asleep is not None:  # suspended jobs give up their cores
            row = {number: row for row, number in enumerate(self.schedule.job.tolist()) if which[row]}
            gaps = [gap for gap in self.schedule.asleep.T.tolist() if gap[0] in row]
            mine = np.array([row[number] for number, *_ in gaps], dtype=np.int64)
            rows, cores = np.concatenate([rows, mine]), np.concatenate([cores, -self.cores[mine]])
            since, until = np.array(gaps, dtype=np.int64).reshape(-1, 3).T[1:]
            begin, end = np.concatenate([begin, since]), np.concatenate([end, until])
        start = begin + self.tolerance
        end = np.maximum(end, start)
        instants = np.concatenate([start, end])
        order = np.argsort(instants, kind="stable")
        instants, change = instants[order], np.concatenate([cores, -cores])[order]
        first = np.flatnonzero(np.r_[True, instants[1:] != instants[:-1]]) if len(instants) else order
        if not len(first):
            return
        used = np.cumsum(np.add.reduceat(change, first))
        over = used > total
        if not over.any():
            return
        when = instants[first]
        begins = over & ~np.r_[False, over[:-1]]
        length = np.diff(when, append=when[-1])
        share = float(length[over].sum() / max(int(when[-1] - when[0]), 1))
        stretches = when[begins]
        # Jobs that start at the begin of such a period.
        straws = rows[np.isin(start, stretches[: self.limit])][: self.limit]
        detail = f"{used[begins][0]:,} of {total:,} cores{where} in use"
        if int(begins.sum()) > 1:
            detail += f", at most {used.max():,}, {share:.2%} of the time"
        yield Violation(
            "oversubscribed",
            int(begins.sum()),
            tuple(self.schedule.job[straws].tolist()),
            tuple(seconds(int(instant) - self.tolerance) for instant in stretches[: self.limit]),
            detail,
        )


def _check(
    schedule: Schedule,
    workload: Workload,
    rows: IntArray,
    capacities: Sequence[int],
    overrun: Overrun,
    tolerance: int,
    limit: int,
    capacity: Capacity | None,
) -> list[Violation]:
    tolerance = max(tolerance, _rounding(schedule))
    checks = _Checks(schedule, workload, rows, capacities, overrun, tolerance, limit)
    found = [*checks.jobs(), *checks.outcomes(), *checks.times(), *checks.machine(), *checks.pieces(capacity)]
    place = {kind: index for index, kind in enumerate((*KINDS, *PIECE_KINDS, *DEMAND_KINDS))}
    return sorted(found, key=lambda violation: place[violation.kind])


def _failed(record: Record) -> Failed | None:
    found = record.interruptions
    if found is None:
        return None
    rows = np.flatnonzero((found.gpu < 0) & (found.kind == FAILURE))
    return Failed(tuple(found.names[node] for node in found.node[rows]), found.down_us[rows], found.up_us[rows])


def _numbered(held: Allocations, job: IntArray) -> Allocations:
    """Return the pieces with job numbers instead of rows."""
    return replace(held, job=job[held.job])


def _reactions(record: Record, tolerance: int, limit: int) -> Iterator[Violation]:
    """Yield jobs that were not submitted when users should have reacted.

    Cancellation times of waiting jobs are unknown.
    """
    reactions, workload = record.workload.reactions, record.workload
    if reactions is None or record.logged_submit_us is None:
        return
    over = np.where(record.ran, record.end_us, np.where(record.status == Status.cancelled, NEVER, workload.submit))
    due = reactions.submits(workload.labels.get("user"), record.logged_submit_us, over)
    wrong = (np.abs(workload.submit - due) > tolerance) & (due < NEVER)
    yield from marked("wrong-reaction", wrong, workload.job, workload.submit, limit)


def _of_tasks(
    record: Record,
    platform: Platform | None,
    overrun: Overrun,
    tolerance: int,
    limit: int,
    tick: int,
    capacity: Capacity | None,
) -> Iterator[Violation]:
    """Return the violations of the tasks of DAG jobs: each is checked as a separate job, then together."""
    tasks, times = record.workload.tasks, record.tasks
    assert tasks is not None
    assert times is not None
    job = tasks.job_rows()
    numbers, schedule = record.workload.job[job], Schedule.of(record)
    each = Workload(
        job=schedule.job,
        submit=record.workload.submit[job],
        runtime=tasks.runtime,
        estimate=tasks.estimate,
        cores=tasks.cores,
        deadline=record.workload.deadline[job],
        moldable=record.workload.moldable,
        demands=record.workload.demands,
    )
    cluster = times.cluster.astype(np.int64)
    clusters = [] if platform is None else list(platform.clusters())
    capacities = [cluster.cores for cluster in clusters] or [record.cores]
    checks = _Checks(schedule, each, np.arange(len(tasks)), capacities, overrun, tolerance, limit)
    checks.owner = job
    found = [*checks.outcomes(), *checks.times(), *checks.machine(), *checks.pieces(capacity)]
    if clusters:
        kinds = np.array([cluster.kind for cluster in clusters])
        found += checks.found("wrong-kind", checks.started & (kinds[cluster] != np.array(tasks.kinds)[tasks.kind]))
    due = np.maximum(_due(record, platform, tick), times.ready_us)
    first = times.start_us if checks.schedule.first_start is None else checks.schedule.first_start
    found += checks.found("starts-before-ready", checks.started & (first < due - tolerance), first)
    yield from (replace(it, jobs=tuple(numbers[list(it.jobs)].tolist())) for it in found)
    if record.critical_path is not None and times.cores_used is None:  # on more cores a path may take less
        took = np.where(record.ran, record.end_us - record.workload.submit, NEVER)
        short = (took < record.critical_path - tolerance) & ~np.isin(record.status, _STOPPED)
        yield from marked("below-critical-path", short, record.workload.job, None, limit)


def _due(record: Record, platform: Platform | None, tick: int) -> IntArray:
    """Return the earliest possible start of each task: predecessors done, and data transferred if delays are fixed."""
    tasks, times = record.workload.tasks, record.tasks
    assert tasks is not None
    assert times is not None
    due: IntArray = np.zeros(len(tasks), dtype=np.int64)
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    end = times.end_us[source]
    delay = np.zeros(len(source), dtype=np.int64)
    if platform is not None and platform.network.kind == "ccr":
        names, levels = [cluster.name for cluster in platform.clusters()], platform.levels()
        for edge in np.flatnonzero(times.cluster[source] != times.cluster[tasks.edge_to]).tolist():
            pair = names[times.cluster[source[edge]]], names[times.cluster[tasks.edge_to[edge]]]
            sent = None if tasks.volume is None else float(tasks.volume[edge])
            delay[edge] = platform.network.delay(int(tasks.runtime[source[edge]]), levels[pair], tick, sent)
    if platform is not None and platform.network.transfer_start == "all":
        longest: IntArray = np.zeros(len(tasks), dtype=np.int64)
        np.maximum.at(due, tasks.edge_to, end)
        np.maximum.at(longest, tasks.edge_to, delay)
        return due + longest
    np.maximum.at(due, tasks.edge_to, end + delay)
    return due
