"""Record of a simulation, as columns; metrics, files and figures are computed from it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.model.windows import PlannedWindow
from gridsim.model.workload import PRIORITY, Workload
from gridsim.tables import rows_of, with_rows


class Status(IntEnum):
    """Outcome of a job; each submitted job has exactly one.

    ``waiting`` and ``running`` occur in stopped runs, and ``waiting`` if nodes that a job needs never return. A job is
    ``failed`` if an interruption by the machine ended it, and ``preempted`` if it was stopped for a job of a higher
    priority class and not queued again.
    """

    completed = 0
    killed_walltime = 1
    rejected = 2
    unadmitted = 3
    cancelled = 4
    waiting = 5
    running = 6
    failed = 7
    preempted = 8


REASONS = ("failure", "maintenance", "drain", "saved", "reservation", "suspended")
"""Why a run of a job was interrupted, and why a node was absent; ``saved`` is a run that saved its work and left.

``suspended`` occurs in `Record.in_stretches` only.
"""

BROKEN_BY = ("machine", "overrun", "own")
"""Causes of broken guarantees: an absence, another job above its estimate, or the job itself, which saved its work."""

FAILURE, SAVED, SUSPENDED = map(REASONS.index, ("failure", "saved", "suspended"))
PREEMPTED = "preempted"
"""Reason of a run that was stopped for another job, and not by the machine."""


def _names(status: npt.NDArray[np.int8]) -> npt.NDArray[np.str_]:
    return np.array([each.name for each in Status])[status]


@dataclass(frozen=True, slots=True, eq=False)
class TaskRecord:
    """Outcomes of tasks: one row per task, aligned with the tasks of the workload.

    Attributes
    ----------
    ready_us, start_us, end_us : (m,) int64
        Ready, start and end times, whole microseconds; `NEVER` if the task did not run.
    status : (m,) int8
        Values of `Status`.
    cluster : (m,) int16
        Index of the cluster that ran the task, in tree order.
    cores_used : (m,) int64 or None
        Cores allocated to moldable tasks; None: as requested.
    """

    ready_us: IntArray
    start_us: IntArray
    end_us: IntArray
    status: npt.NDArray[np.int8]
    cluster: npt.NDArray[np.int16]
    cores_used: IntArray | None = None

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """Name of each task's status."""
        return _names(self.status)

    def select(self, rows: Any) -> TaskRecord:
        """Return the record of some tasks (mask, slice or indices)."""
        return with_rows(self, rows, *(it.name for it in fields(self)))

    def __repr__(self) -> str:
        return f"<TaskRecord: {len(self.start_us):,} tasks, {np.count_nonzero(self.start_us < NEVER):,} of them ran>"


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """Guaranteed deadlines and their cost: one row per job of the workload; stopped runs of tasks for DAG jobs.

    Attributes
    ----------
    granted_us : (n,) int64
        Guaranteed latest end, whole microseconds; `NEVER` for jobs without a guarantee.
    offer_us : (n,) int64
        Later deadline offered instead of the requested one, whether accepted or not, whole microseconds; `NEVER` for
        none.
    doublings : (n,) int64
        Number of times that the artificial deadline of a job without a deadline was doubled before admission.
    broken : (n,) bool
        Guarantees that were broken because a job exceeded its estimate, or nodes were absent.
    killed, killed_start_us, killed_end_us : (k,) int64
        Runs that were killed to free cores for another job, in order of time: row of the job, start and end. The job
        was restarted later.
    guarantees : bool
        Whether the policy guarantees deadlines; a policy without guarantees may still kill runs (preemption).
    killed_by : (k,) int64
        Row of the job for which each run was killed, -1 if unknown.
    cancelled_by : (n,) int64
        Row of the job for which a job was killed without restart, -1 if unknown; `NEVER` for all other jobs. Rows of
        tasks for DAG jobs, as those of the stopped runs.
    preempts_by : str
        Label that defines which jobs may preempt others (``qos``, ``partition``); empty if the policy has none.
    broken_at_us, broken_by : (n,) int64 and (n,) int8, or None
        When the plan first did not keep the guarantee of each job, whole microseconds, `NEVER` for none, and an index
        in `BROKEN_BY`; None in a run without failures.
    """

    granted_us: IntArray
    offer_us: IntArray
    doublings: IntArray
    broken: npt.NDArray[np.bool_]
    killed: IntArray
    killed_start_us: IntArray
    killed_end_us: IntArray
    guarantees: bool = True
    killed_by: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cancelled_by: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    preempts_by: str = ""
    broken_at_us: IntArray | None = None
    broken_by: npt.NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        for name, count, none in (
            ("killed_by", len(self.killed), -1),
            ("cancelled_by", len(self.granted_us), NEVER),
        ):
            if not len(getattr(self, name)):  # by default no entry for any job
                object.__setattr__(self, name, np.full(count, none, dtype=np.int64))

    def __repr__(self) -> str:
        promised, cut = np.count_nonzero(self.granted_us < NEVER), len(self.killed)
        return (
            f"<Promises: {promised:,} of {len(self.granted_us):,} jobs, {self.broken.sum():,} broken, {cut:,} runs cut>"
        )

    def select(self, rows: Any, tasks: Any = None) -> Promises:
        """Return the promises of some jobs (mask, slice or indices), of DAG jobs with these tasks."""
        owners = rows if tasks is None else tasks
        place = _places(len(self.cancelled_by), owners)
        runs = place[self.killed] >= 0
        cut = with_rows(self, runs, "killed_start_us", "killed_end_us")
        by = np.where(self.killed_by >= 0, place[self.killed_by], -1)[runs]
        over = self.cancelled_by[owners]
        over = np.where((over >= 0) & (over < NEVER), place[np.where(over < NEVER, over, 0)], over)
        columns = ("granted_us", "offer_us", "doublings", "broken", "broken_at_us", "broken_by")
        return with_rows(cut, rows, *columns, killed=place[self.killed][runs], killed_by=by, cancelled_by=over)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predicted run times of jobs: one row per job of the workload.

    Attributes
    ----------
    prediction_us : (n,) int64
        Run time predicted at submission, whole microseconds; `NEVER` for jobs that were not admitted.
    corrections : (n,) int64
        Number of times that the job exceeded its predicted run time.
    promised_us : (n,) int64 or None
        First planned start, for schedulers with a plan; `NEVER` for none.
    moved : (n,) int64 or None
        Number of times that the planned start became later.
    oracle : bool
        Whether the predictions are the true run times, which are unknown in practice.
    """

    prediction_us: IntArray
    corrections: IntArray
    promised_us: IntArray | None = None
    moved: IntArray | None = None
    oracle: bool = False

    def select(self, rows: Any) -> Predictions:
        """Return the promises of some jobs (mask, slice or indices)."""
        return with_rows(self, rows, "prediction_us", "corrections", "promised_us", "moved")


@dataclass(frozen=True, slots=True, eq=False)
class Requested:
    """Requested resources, as a policy read them from labels: one row per job of the workload.

    Attributes
    ----------
    tasks : (n,) int64
        Number of tasks.
    exclusive : (n,) bool
        Whether the job has exclusive nodes.
    amounts : mapping of str to (n,) int64
        Total of each job by resource of nodes or pool; ``gpu`` in thousandths.
    """

    tasks: IntArray
    exclusive: npt.NDArray[np.bool_]
    amounts: Mapping[str, IntArray]

    def total(self, resource: str) -> IntArray | None:
        """Return the total of each job; None if the requests are unknown."""
        return self.amounts.get(resource)

    def select(self, rows: Any) -> Requested:
        """Return the promises of some jobs (mask, slice or indices)."""
        return with_rows(self, rows, "tasks", "exclusive", "amounts")


class Refusal(NamedTuple):
    """Reason for the rejection of a job: keyword, requested amount, largest allowed amount, and the rule.

    ``requested`` and ``most`` are numbers in *unit*, or ``requested`` is a description and ``most`` is None.
    """

    reason: str
    requested: float | str
    most: float | None
    unit: str
    rule: str


@dataclass(frozen=True, slots=True, eq=False)
class Reasons:
    """Reasons for waiting, as reported by the scheduler: one row per job, reason and interval.

    Attributes
    ----------
    words : tuple of str
        Reasons of the scheduler; for Slurm its reason codes.
    job, word : (k,) int64
        Rows of the workload and of *words*, by job, then in order of time.
    since_us, until_us : (k,) int64
        Interval, whole microseconds; `NEVER` for a reason that lasted to the end.
    eligible, free : (n,) int64
        Cores of the nodes that are eligible for each job, and how many of them were free when it was submitted; -1 if
        unknown.
    pool : (n,) int64
        Pool of eligible nodes of each job; different pools have no node in common.
    refused : mapping of int to Refusal
        Rejected jobs, by row of the workload.
    """

    words: tuple[str, ...]
    job: IntArray
    word: IntArray
    since_us: IntArray
    until_us: IntArray
    eligible: IntArray
    free: IntArray
    pool: IntArray
    refused: Mapping[int, Refusal] = field(default_factory=dict)

    def select(self, rows: Any) -> Reasons:
        """Return the promises of some jobs (mask, slice or indices)."""
        place = _places(len(self.eligible), rows)
        chosen = np.flatnonzero(place[self.job] >= 0)
        chosen = chosen[np.argsort(place[self.job[chosen]], kind="stable")]
        refused = {int(place[job]): why for job, why in self.refused.items() if place[job] >= 0}
        found = with_rows(self, rows, "eligible", "free", "pool", refused=refused)
        return with_rows(found, chosen, "word", "since_us", "until_us", job=place[self.job[chosen]])


def _places(count: int, rows: Any) -> IntArray:
    """Place of each of so many rows among those selected; -1 for the others."""
    place: IntArray = np.full(count, -1, dtype=np.int64)
    kept = np.arange(count)[rows]
    place[kept] = np.arange(len(kept))
    return place


def _no_runs() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Beyond:
    """Jobs that requested more time than their limit and were clipped or split instead of rejected.

    Attributes
    ----------
    how : {"clip", "split"}
        Whether the requests were clipped to the limit (jobs are killed there), or split into a chain of jobs no longer
        than it.
    limit_us : (n,) int64
        Limit of each job that exceeded it, whole microseconds; `NEVER` for all others.
    job, start_us, end_us : (k,) int64
        All pieces of chains except the last of each, in job order: row of the job, start and end.
    """

    how: Literal["clip", "split"]
    limit_us: IntArray
    job: IntArray = field(default_factory=_no_runs)
    start_us: IntArray = field(default_factory=_no_runs)
    end_us: IntArray = field(default_factory=_no_runs)

    @property
    def held_us(self) -> IntArray:
        """Time that the earlier pieces of each job held their cores, whole microseconds."""
        held: IntArray = np.zeros(len(self.limit_us), dtype=np.int64)
        np.add.at(held, self.job, self.end_us - self.start_us)
        return held

    @property
    def pieces(self) -> IntArray:
        """Number of pieces of each job before the last one."""
        return np.bincount(self.job, minlength=len(self.limit_us))

    def select(self, rows: Any) -> Beyond:
        """Return the promises of some jobs (mask, slice or indices)."""
        place = _places(len(self.limit_us), rows)
        there = place[self.job] >= 0
        return with_rows(self, there, "start_us", "end_us", job=place[self.job][there], limit_us=self.limit_us[rows])


@dataclass(frozen=True, slots=True, eq=False)
class KeptWork:
    """Restarts, kept work and checkpoints of runs of jobs (tasks of DAG jobs), in order of their ends.

    Attributes
    ----------
    job : (k,) int64
        Row of the job.
    start_us : (k,) int64
        Start of the run, whole microseconds.
    restart_us, kept_us : (k,) int64
        Time for the restart, and work that was saved or, in the run in which a job completes, finished.
    checkpoints, checkpoint_us : (k,) int64
        Number of complete checkpoints, and the time to write them; the rest of the run is lost.
    """

    job: IntArray
    start_us: IntArray
    restart_us: IntArray
    kept_us: IntArray
    checkpoints: IntArray
    checkpoint_us: IntArray

    def select(self, place: IntArray) -> KeptWork:
        """Return the runs of some jobs, whose new rows are in *place*; -1 for all others."""
        there = place[self.job] >= 0
        names = ("start_us", "restart_us", "kept_us", "checkpoints", "checkpoint_us")
        return with_rows(self, there, *names, job=place[self.job][there])


@dataclass(frozen=True, slots=True, eq=False)
class Interruptions:
    """Runs of jobs (tasks of DAG jobs) that the machine interrupted, and absences of nodes, in order of time.

    Attributes
    ----------
    job : (k,) int64
        Row of the job; it was queued again.
    start_us, end_us : (k,) int64
        Interval in which it held its cores, whole microseconds.
    reason : (k,) int8
        Indices in `REASONS`.
    ended : (n,) int8
        For each job of the record that an interruption ended, the index in `REASONS`; -1 for all others.
    names : tuple of str
        Names of the nodes of all clusters, of several as ``cluster/node``.
    gpus : int
        Number of GPUs of the machine.
    node, gpu : (f,) int64
        Absences in order of time: index in *names*, and number of the GPU, -1 for the whole node.
    kind : (f,) int64
        Reasons of the absences: indices in `REASONS`.
    down_us, up_us : (f,) int64
        Interval of each absence, whole microseconds; `NEVER` if the node did not return.
    kept : KeptWork or None
        All runs, if jobs write checkpoints; without, the work of every interrupted run is lost.
    suspended : (5, s) int64 or None
        Suspensions: row of the job, start of the run, begin, end (whole microseconds), and the row of the job that they
        were for; None for none. The end of the run of the simulation ends them, too.
    moved : (2, n) int64 or None
        How often the planned start of each job became later, and by how much in total, whole microseconds; None for
        policies without planned starts.
    reserved : tuple of PlannedWindow
        Reservations of nodes.
    """

    job: IntArray
    start_us: IntArray
    end_us: IntArray
    reason: npt.NDArray[np.int8]
    ended: npt.NDArray[np.int8]
    names: tuple[str, ...]
    gpus: int
    node: IntArray
    gpu: IntArray
    kind: IntArray
    down_us: IntArray
    up_us: IntArray
    kept: KeptWork | None = None
    suspended: IntArray | None = None
    moved: IntArray | None = None
    reserved: tuple[PlannedWindow, ...] = ()

    @property
    def nodes(self) -> int:
        """Number of nodes of the machine."""
        return len(self.names)

    @property
    def restarts(self) -> IntArray:
        """Number of times that each job was interrupted by the machine and queued again."""
        return np.bincount(self.job[self.reason != SAVED], minlength=len(self.ended))

    def select(self, rows: Any) -> Interruptions:
        """Return the runs of some jobs (mask, slice or indices)."""
        place = _places(len(self.ended), rows)
        there = place[self.job] >= 0
        kept = None if self.kept is None else self.kept.select(place)
        moved = None if self.moved is None else self.moved[:, rows]
        asleep = self.suspended
        if asleep is not None:
            asleep = np.stack([place[asleep[0]], *asleep[1:4], np.where(asleep[4] < 0, -1, place[asleep[4]])])
            asleep = asleep[:, asleep[0] >= 0]
        changed: Any = {"ended": self.ended[rows], "kept": kept, "suspended": asleep, "moved": moved}
        return with_rows(self, there, "start_us", "end_us", "reason", job=place[self.job][there], **changed)

    def suspended_us(self, job: IntArray, start: IntArray) -> IntArray:
        """Return for how long each of these runs was suspended, whole microseconds."""
        found: IntArray = np.zeros(len(job), dtype=np.int64)
        times: dict[tuple[int, int], int] = {}
        for row, began, since, until, _ in [] if self.suspended is None else self.suspended.T.tolist():
            times[row, began] = times.get((row, began), 0) + until - since
        if times:
            runs = zip(job.tolist(), start.tolist(), strict=True)
            found[:] = [times.get(run, 0) for run in runs]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Record of a simulation: one row per job, aligned with the rows of its workload.

    Attributes
    ----------
    workload : Workload
        The jobs as they were simulated.
    start_us, end_us : (n,) int64
        Interval ``[start, end)`` in which the job held its cores, whole microseconds; `NEVER` for jobs that did not
        run or have not ended. For a chain the interval of the last piece.
    status : (n,) int8
        Values of `Status`.
    cluster : (n,) int16
        Index of the cluster that ran the job, in tree order.
    cores : int
        Cores of the platform.
    tasks : TaskRecord or None
        Tasks of DAG jobs; a job starts with its first task and ends with its last.
    critical_path : (n,) int64 or None
        Critical path of DAG jobs, unavoidable transfers included, whole microseconds.
    rank : (m,) int64 or None
        Upward ranks of the tasks, whole microseconds.
    promises : Promises or None
        Guarantees, for policies that guarantee deadlines.
    cores_used : (n,) int64 or None
        Cores allocated to each moldable job of one task, or the requested cores if it did not run; None: as requested.
    logged_submit_us : (n,) int64 or None
        If users reacted: submit times of the given workload, whole microseconds, which define the order of rows.
        `workload` then has the submit times of this run, which may be unsorted. None: the submit times did not change.
    reasons : Reasons or None
        Reasons for waiting, for policies that report them.
    beyond : Beyond or None
        Jobs above a time limit, if they were clipped or split.
    until_us : int or None
        Instant at which a stopped run ends, whole microseconds.
    allocations : Allocations or None
        Nodes of each run of a job (of each task of DAG jobs), on machines of nodes.
    capacity : Capacity or None
        Nodes and pools of the machine, for a platform of one cluster that has any.
    predictions : Predictions or None
        Predicted run times, for schedulers that predict; None for DAG jobs.
    requested : Requested or None
        Resources that jobs requested, of policies that read them from labels (``slurm``) instead of demands.
    interruptions : Interruptions or None
        Interrupted runs, if nodes could fail; of tasks for DAG jobs. `start_us` and `end_us` are those of the last run.
    reason : (n,) str or None
        For rejected jobs the resource that the machine lacks, on machines of nodes or several pools: ``pool:NAME``,
        ``features``, ``gpu-kind``, ``task``, ``tasks`` or ``nodes``; empty for all other jobs.
    """

    workload: Workload
    start_us: IntArray
    end_us: IntArray
    status: npt.NDArray[np.int8]
    cluster: npt.NDArray[np.int16]
    cores: int
    tasks: TaskRecord | None = None
    critical_path: IntArray | None = None
    rank: IntArray | None = None
    promises: Promises | None = None
    cores_used: IntArray | None = None
    logged_submit_us: IntArray | None = None
    reasons: Reasons | None = None
    beyond: Beyond | None = None
    until_us: int | None = None
    allocations: Allocations | None = None
    capacity: Capacity | None = None
    predictions: Predictions | None = None
    requested: Requested | None = None
    reason: npt.NDArray[np.str_] | None = None
    interruptions: Interruptions | None = None

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], *, cores: int | None = None) -> Record:
        """Return a record of a few jobs, times in seconds.

        Parameters
        ----------
        rows : sequence of mapping
            ``submit``, ``start``, ``end``, ``cores``; optional ``job``, ``runtime`` (end - start),
            ``estimate`` (runtime), ``user``, ``status``. A job with start None did not run.
        cores : int, optional
            Size of the machine; by default the size of the widest job.

        Examples
        --------
        >>> record = Record.from_rows([dict(submit=0, start=30, end=35, cores=1)])
        >>> float(record.wait[0]), float(record.response[0])
        (30.0, 35.0)
        """
        rows = sorted(rows, key=lambda row: row["submit"])

        def column(name: str, default: Any) -> list[Any]:
            return [row[name] if name in row else default(row) for row in rows]

        runtime = column("runtime", lambda row: row["end"] - row["start"])
        users = column("user", lambda row: -1)
        workload = Workload.from_columns(
            submit=column("submit", None),
            runtime=runtime,
            cores=column("cores", lambda row: 1),
            estimate=[row.get("estimate", known) for row, known in zip(rows, runtime, strict=True)],
            job=[row.get("job", index + 1) for index, row in enumerate(rows)],
            labels={"user": users} if any(user != -1 for user in users) else {},
        )
        ran = [row["start"] is not None for row in rows]
        status = [
            row.get("status", Status.completed if done else Status.rejected)
            for row, done in zip(rows, ran, strict=True)
        ]
        return cls(
            workload=workload,
            start_us=to_us(np.array([row["start"] if done else np.inf for row, done in zip(rows, ran, strict=True)])),
            end_us=to_us(np.array([row["end"] if done else np.inf for row, done in zip(rows, ran, strict=True)])),
            status=np.array(status, dtype=np.int8),
            cluster=np.zeros(len(rows), dtype=np.int16),
            cores=cores or int(workload.cores.max()),
        )

    def __len__(self) -> int:
        return len(self.start_us)

    def __repr__(self) -> str:
        return f"<Record: {len(self):,} jobs on {self.cores:,} cores, {np.count_nonzero(self.ran):,} of them ran>"

    @property
    def ran(self) -> npt.NDArray[np.bool_]:
        """Mask of the jobs that held cores and ended."""
        return self.end_us < NEVER

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """Name of each job's status."""
        return _names(self.status)

    @property
    def workload_given(self) -> Workload:
        """Workload that was simulated, with the submit times and deadlines as given if users reacted.

        If users reacted, it does not have the recorded schedule of the source (``logged``).
        """
        if self.logged_submit_us is None:
            return self.workload
        return self.workload.submitted_at(self.logged_submit_us)

    @property
    def as_given(self) -> Record:
        """Record with `workload_given` as its workload."""
        return self if self.logged_submit_us is None else replace(self, workload=self.workload_given)

    @property
    def submit(self) -> FloatArray:
        """Submit times, s."""
        return seconds(self.workload.submit)

    @property
    def start(self) -> FloatArray:
        """Start times, s; NaN for jobs that did not run."""
        return seconds(self.start_us)

    @property
    def end(self) -> FloatArray:
        """End times, s; NaN for jobs that did not run."""
        return seconds(self.end_us)

    @property
    def first_start_us(self) -> IntArray:
        """Time at which each job first held its cores, whole microseconds; `NEVER` for none.

        Killed runs and earlier pieces of a chain count. A log's start time is compared with this one: both belong to
        the
        first submission.
        """
        first = self.start_us.copy()
        if self.promises is not None and self.tasks is None:
            np.minimum.at(first, self.promises.killed, self.promises.killed_start_us)
        if self.beyond is not None:
            np.minimum.at(first, self.beyond.job, self.beyond.start_us)
        if self.interruptions is not None and self.tasks is None:
            np.minimum.at(first, self.interruptions.job, self.interruptions.start_us)
        return first

    @property
    def held(self) -> FloatArray:
        """Time that each job held its cores, s; less than its true run time if it was killed; NaN if it did not run.

        For a chain the sum over all its pieces.
        """
        return np.where(self.ran, seconds(self.end_us - self.start_us + self._before - self._asleep), np.nan)

    @property
    def _before(self) -> IntArray | int:
        """Time that earlier pieces of a chain held cores, whole microseconds."""
        return 0 if self.beyond is None else self.beyond.held_us

    @property
    def _asleep(self) -> IntArray | int:
        """Time for which the last run of each job was suspended, whole microseconds."""
        found = self.interruptions
        if found is None or found.suspended is None or self.tasks is not None:
            return 0
        return found.suspended_us(np.arange(len(self)), self.start_us)

    @property
    def wait(self) -> FloatArray:
        """Start minus submit, s; NaN for jobs that did not run. For a chain the sum of the waits of all pieces.

        For an interrupted job the start of its first run.
        """
        start = self.start_us if self.interruptions is None else self.first_start_us
        start = start if self.beyond is None else np.where(self.beyond.pieces > 0, self.start_us, start)
        return np.where(self.ran, seconds(start - self.workload.submit - self._before), np.nan)

    @property
    def response(self) -> FloatArray:
        """End minus submit, s; NaN for jobs that did not run."""
        return np.where(self.ran, seconds(self.end_us - self.workload.submit), np.nan)

    @property
    def given(self) -> IntArray:
        """Cores allocated to each job (each task of DAG jobs); the requested cores if it did not run."""
        if self.tasks is not None and self.workload.tasks is not None:
            return self.workload.tasks.cores if self.tasks.cores_used is None else self.tasks.cores_used
        return self.workload.cores if self.cores_used is None else self.cores_used

    @property
    def area(self) -> FloatArray:
        """Cores times held time, summed over all tasks of a job, core-seconds; NaN for jobs that did not run."""
        if self.tasks is not None and self.workload.tasks is not None and len(self):
            tasks, ran = self.workload.tasks, self.tasks.end_us < NEVER
            held = np.where(ran, seconds(self.tasks.end_us) - seconds(self.tasks.start_us), 0.0)
            return np.where(self.ran, np.add.reduceat(self.given * held, tasks.first[:-1]), np.nan)
        return self.given * self.held

    @property
    def logged(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the log, one row per job: start and wait, s, and the recorded reason, if any.

        A wait ends with the first start of a job. Empty if the log has no starts, or if jobs were changed.
        """
        workload, start = self.workload, self.workload.logged_start
        if start is None or not workload.has_recorded_schedule or self.logged_submit_us is not None:
            return {}
        reason, names = workload.logged.get("reason"), np.array(workload.names.get("logged_reason", ("",)))
        return {
            "job": workload.job,
            "start": seconds(start),
            "wait": np.where(start < NEVER, seconds(start - workload.submit), np.nan),
            **({} if reason is None else {"reason": names[np.maximum(reason, 0)]}),
        }

    def holds(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return start, end and cores of each job that ran (of each task of DAG jobs).

        Runs that were killed to free cores for another job, and earlier pieces of chains, follow the others.

        Returns
        -------
        start, end : (k,) int64
            Whole microseconds.
        cores : (k,) int64
            Cores held.
        """
        if (found := self.in_stretches) is not self:
            return found.holds()
        if self.tasks is not None and self.workload.tasks is not None:
            start, end = self.tasks.start_us, self.tasks.end_us
        else:
            start, end = self.start_us, self.end_us
        ran, cores = start < NEVER, self.given
        if not ran.all():  # usually all jobs ran, and no copy is needed
            start, end, cores = start[ran], end[ran], cores[ran]
        if self.until_us is not None:
            end = np.minimum(end, self.until_us)
        job, began, ended = self.earlier_runs()
        if not len(job):
            return start, end, cores
        return np.concatenate([start, began]), np.concatenate([end, ended]), np.concatenate([cores, self.given[job]])

    def earlier_runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the runs of jobs before their last one: row of the job, start and end, whole microseconds.

        Killed runs first, then interrupted ones, then pieces of chains.

        Returns
        -------
        job : (k,) int64
            Rows of the jobs.
        start, end : (k,) int64
            Whole microseconds.
        """
        found = []
        if self.promises is not None:
            found.append((self.promises.killed, self.promises.killed_start_us, self.promises.killed_end_us))
        if self.interruptions is not None:
            found.append((self.interruptions.job, self.interruptions.start_us, self.interruptions.end_us))
        if self.beyond is not None:
            found.append((self.beyond.job, self.beyond.start_us, self.beyond.end_us))
        if not found:
            return _no_runs(), _no_runs(), _no_runs()
        job, start, end = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return job, start, end

    @property
    def kills(self) -> IntArray:
        """Number of times that each job (task of DAG jobs) was killed and restarted later."""
        killed = np.zeros(0, dtype=np.int64) if self.promises is None else self.promises.killed
        return np.bincount(killed, minlength=len(self.given))

    @property
    def by_class(self) -> bool:
        """Return whether jobs of a higher priority class could preempt others."""
        return self.promises is not None and self.promises.preempts_by == PRIORITY

    @property
    def preemptions(self) -> IntArray:
        """Number of times that each job (task of DAG jobs) was stopped or suspended for another one."""
        status = self.status if self.tasks is None else self.tasks.status
        found, stopped = self.interruptions, self.kills + (status == Status.preempted)
        if found is not None and found.suspended is not None:
            np.add.at(stopped, found.suspended[0], 1)
        return np.asarray(stopped, dtype=np.int64)

    @property
    def in_stretches(self) -> Record:
        """The record with each stretch between suspensions as a separate run; the earlier ones are interrupted."""
        found = self.interruptions
        if found is None or found.suspended is None:
            return self
        job, began, since, until = found.suspended[:4, np.lexsort((found.suspended[2], found.suspended[0]))]
        again = np.flatnonzero((job[1:] == job[:-1]) & (began[1:] == began[:-1])) + 1
        first = began.copy()
        first[again] = until[again - 1]
        resumed = dict(zip(zip(job.tolist(), began.tolist(), strict=True), until.tolist(), strict=True))

        def last(rows: IntArray, start: IntArray) -> IntArray:
            """Begins of the last stretches of runs."""
            runs = zip(rows.tolist(), start.tolist(), strict=True)
            return np.array([resumed.get(run, run[1]) for run in runs], dtype=np.int64)

        reason = np.concatenate([found.reason, np.full(len(job), SUSPENDED, dtype=np.int8)])
        start, end = np.concatenate([last(found.job, found.start_us), first]), np.concatenate([found.end_us, since])
        runs: Any = {"job": np.concatenate([found.job, job]), "start_us": start, "end_us": end, "reason": reason}
        parts: dict[str, Any] = {"interruptions": replace(found, **runs, suspended=None)}
        if (cut := self.promises) is not None:
            parts["promises"] = replace(cut, killed_start_us=last(cut.killed, cut.killed_start_us))
        own = self if self.tasks is None else self.tasks
        start = last(np.arange(len(own.start_us)), own.start_us)
        start = np.where(own.status == Status.waiting, NEVER, start)  # still suspended
        if self.tasks is None:
            return replace(self, start_us=start, **parts)
        return replace(self, tasks=replace(self.tasks, start_us=start), **parts)

    @property
    def lost(self) -> FloatArray:
        """Work of each job lost by such kills, core-seconds."""
        if self.promises is None:
            return np.zeros(len(self))
        cut = self.promises
        held = seconds(cut.killed_end_us - cut.killed_start_us)
        times = np.zeros(len(self.given))
        np.add.at(times, cut.killed, held)
        return self.given * times

    def select(self, rows: Any) -> Record:
        """Return the record of some rows (mask, slice or indices).

        Parameters
        ----------
        rows : (k,) array or slice
            The rows.

        Returns
        -------
        Record
            Record of these rows.
        """
        tasks = self.workload.tasks
        requests, count = (rows, len(self)) if tasks is None else (tasks.rows_of(rows), len(tasks))
        of_requests = {name: rows_of(getattr(self, name), requests) for name in ("tasks", "rank", "interruptions")}
        allocations = None if self.allocations is None else self.allocations.select(requests, count)
        promises = None if self.promises is None else self.promises.select(rows, None if tasks is None else requests)
        return with_rows(self, rows, *_OF_JOBS, **of_requests, promises=promises, allocations=allocations)


_OF_JOBS = (
    *("workload", "start_us", "end_us", "status", "cluster", "reasons", "beyond", "predictions"),
    *("requested", "reason", "cores_used", "logged_submit_us", "critical_path"),
)
