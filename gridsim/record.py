"""What happened, as columns: the one thing that leaves a simulation. Metrics, files and pictures read only this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds, whole
from gridsim.model.workload import Workload


class Status(IntEnum):
    """What became of a job; submitted is the sum of all. Some wait or run where a run stands still."""

    completed = 0
    killed_walltime = 1
    rejected = 2
    unadmitted = 3
    cancelled = 4
    waiting = 5
    running = 6


def _names(status: npt.NDArray[np.int8]) -> npt.NDArray[np.str_]:
    return np.array([each.name for each in Status])[status]


@dataclass(frozen=True, slots=True, eq=False)
class TaskRecord:
    """One row a task, aligned with the tasks of the workload.

    Attributes
    ----------
    ready_us, start_us, end_us : (m,) int64
        When the task could run, and when it held its cores, whole microseconds; `NEVER` where it did not.
    status : (m,) int8
        Values of `Status`.
    cluster : (m,) int16
        Index of the cluster that ran it, in tree order.
    cores_used : (m,) int64 or None
        Cores that the task got, of moldable tasks; None: as asked for.
    """

    ready_us: IntArray
    start_us: IntArray
    end_us: IntArray
    status: npt.NDArray[np.int8]
    cluster: npt.NDArray[np.int16]
    cores_used: IntArray | None = None

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """What became of each task, in a word."""
        return _names(self.status)

    def __repr__(self) -> str:
        return f"<TaskRecord: {len(self.start_us):,} tasks, {np.count_nonzero(self.start_us < NEVER):,} of them ran>"


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """What a policy that guarantees deadlines promised, and what that took: one row a job of the workload.

    Attributes
    ----------
    granted_us : (n,) int64
        Latest end that was promised, whole microseconds; `NEVER` for jobs without a promise.
    offer_us : (n,) int64
        Later deadline that was offered instead of the one asked for, taken or not; `NEVER` for none.
    doublings : (n,) int64
        How often the artificial deadline of a job that asked for none was doubled until the job could be taken.
    broken : (n,) bool
        Promises that could not be kept because a job outlived its estimate.
    killed, killed_start_us, killed_end_us : (k,) int64
        Runs cut short to make room for another job, in order of time: row of the job, and when it held its cores. The
        job began anew later.
    guarantees : bool
        Whether the policy promises deadlines at all; one that does not may still cut runs short (preemption).
    killed_by : (k,) int64
        Row of the job that each of these runs made room for, -1 where that is not known.
    cancelled_by : (n,) int64
        The same for jobs whose run was cut short for good, -1 for an unknown one; `NEVER` for all other jobs.
    preempts_by : str
        Label that decides which jobs preempt which (``qos``, ``partition``); empty where the policy names none.
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

    def __post_init__(self) -> None:
        for name, count, nobody in (
            ("killed_by", len(self.killed), -1),
            ("cancelled_by", len(self.granted_us), NEVER),
        ):
            if len(getattr(self, name)) != count:  # left out
                object.__setattr__(self, name, np.full(count, nobody, dtype=np.int64))

    def __repr__(self) -> str:
        promised, cut = np.count_nonzero(self.granted_us < NEVER), len(self.killed)
        return (
            f"<Promises: {promised:,} of {len(self.granted_us):,} jobs, {self.broken.sum():,} broken, {cut:,} runs cut>"
        )

    def select(self, rows: Any) -> Promises:
        """Those of some jobs (mask, slice or indices)."""
        place = _places(len(self.granted_us), rows)
        runs = place[self.killed] >= 0
        columns = (self.granted_us, self.offer_us, self.doublings, self.broken)
        cut = (place[self.killed], self.killed_start_us, self.killed_end_us)
        by = np.where(self.killed_by >= 0, place[self.killed_by], -1)[runs]
        over = self.cancelled_by[rows]
        found = Promises(*(column[rows] for column in columns), *(column[runs] for column in cut))
        over = np.where((over >= 0) & (over < NEVER), place[np.where(over < NEVER, over, 0)], over)
        more: dict[str, Any] = {"guarantees": self.guarantees, "preempts_by": self.preempts_by}
        return replace(found, **more, killed_by=by, cancelled_by=over)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What a scheduler believed that jobs would run, one row a job of the workload.

    Attributes
    ----------
    prediction_us : (n,) int64
        When the job came, whole microseconds; `NEVER` for jobs that were not taken in.
    corrections : (n,) int64
        How often the job outlived what was believed of it.
    promised_us : (n,) int64 or None
        First planned start, of schedulers with a plan; `NEVER` for none.
    moved : (n,) int64 or None
        How often the planned start became later.
    oracle : bool
        Whether these are true run times, which no scheduler knows.
    """

    prediction_us: IntArray
    corrections: IntArray
    promised_us: IntArray | None = None
    moved: IntArray | None = None
    oracle: bool = False

    def select(self, rows: Any) -> Predictions:
        """Those of some jobs (mask, slice or indices)."""
        promised = None if self.promised_us is None else self.promised_us[rows]
        moved = None if self.moved is None else self.moved[rows]
        return Predictions(self.prediction_us[rows], self.corrections[rows], promised, moved, self.oracle)


@dataclass(frozen=True, slots=True, eq=False)
class Requested:
    """Resources that jobs requested, as a policy read them from labels: one row a job of the workload.

    Attributes
    ----------
    tasks : (n,) int64
        Number of tasks.
    exclusive : (n,) bool
        Whether the nodes of the job hold no other job.
    amounts : mapping of str to (n,) int64
        Total of the job by resource of nodes or pool; of ``gpu`` thousandths.
    """

    tasks: IntArray
    exclusive: npt.NDArray[np.bool_]
    amounts: Mapping[str, IntArray]

    def total(self, resource: str) -> IntArray | None:
        """Total of each job; None where the request is not known."""
        return self.amounts.get(resource)

    def select(self, rows: Any) -> Requested:
        """Those of some jobs (mask, slice or indices)."""
        amounts = {name: column[rows] for name, column in self.amounts.items()}
        return Requested(self.tasks[rows], self.exclusive[rows], amounts)


class Refusal(NamedTuple):
    """Why a job was turned away: a word for it, what it asked for, the most that is allowed, and whose rule that is.

    ``asked`` and ``most`` are numbers of *unit*, or ``asked`` says in words what is not allowed and ``most`` is None.
    """

    reason: str
    asked: float | str
    most: float | None
    unit: str
    rule: str


@dataclass(frozen=True, slots=True, eq=False)
class Reasons:
    """Why jobs waited, as their scheduler says: words in columns, one row for each time that one held.

    Attributes
    ----------
    words : tuple of str
        Those of the scheduler; of Slurm its reason codes.
    job, word : (k,) int64
        Rows of the workload and of *words*, by job, then in order of time.
    since_us, until_us : (k,) int64
        Whole microseconds; `NEVER` where it held to the end.
    reach, free : (n,) int64
        Cores of the nodes that each job could have, and how many of these cores it could have had when it came; -1
        where that is not known.
    pool : (n,) int64
        Jobs of different pools could have no node in common.
    refused : mapping of int to Refusal
        By row of the workload.
    """

    words: tuple[str, ...]
    job: IntArray
    word: IntArray
    since_us: IntArray
    until_us: IntArray
    reach: IntArray
    free: IntArray
    pool: IntArray
    refused: Mapping[int, Refusal] = field(default_factory=dict)

    def select(self, rows: Any) -> Reasons:
        """Those of some jobs (mask, slice or indices)."""
        place = _places(len(self.reach), rows)
        chosen = np.flatnonzero(place[self.job] >= 0)
        chosen = chosen[np.argsort(place[self.job[chosen]], kind="stable")]
        refused = {int(place[job]): why for job, why in self.refused.items() if place[job] >= 0}
        columns: dict[str, Any] = {name: getattr(self, name)[chosen] for name in ("word", "since_us", "until_us")}
        columns |= {name: getattr(self, name)[rows] for name in ("reach", "free", "pool")}
        return replace(self, job=place[self.job[chosen]], refused=refused, **columns)


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
    """What became of jobs that asked for more time than they may have, and were not turned away.

    Attributes
    ----------
    how : {"clip", "split"}
        Whether they were lowered to the limit and killed there, or went on in a chain of pieces no longer than it.
    limit_us : (n,) int64
        The limit of each job that was above it, whole microseconds; `NEVER` for all others.
    job, start_us, end_us : (k,) int64
        Runs of the pieces of chains but the last one of each, in job order: row of the job, and when it held its cores.
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
        """How many runs before its last one each job had, as pieces of a chain."""
        return np.bincount(self.job, minlength=len(self.limit_us))

    def select(self, rows: Any) -> Beyond:
        """Those of some jobs (mask, slice or indices)."""
        place = _places(len(self.limit_us), rows)
        there = place[self.job] >= 0
        runs = (place[self.job][there], self.start_us[there], self.end_us[there])
        return Beyond(self.how, self.limit_us[rows], *runs)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One row a job, aligned with the rows of its workload.

    Attributes
    ----------
    workload : Workload
        The jobs as they were simulated.
    start_us, end_us : (n,) int64
        When the job held its cores, ``[start, end)``, whole microseconds; `NEVER` for jobs that did not run, and for
        an end that has not come. The last piece of a chain.
    status : (n,) int8
        Values of `Status`.
    cluster : (n,) int16
        Index of the cluster that ran the job, in tree order.
    cores : int
        Cores of the platform.
    tasks : TaskRecord or None
        Of DAG jobs; a job then starts with its first task and ends with its last.
    critical_path : (n,) int64 or None
        Of DAG jobs, unavoidable transfers included, whole microseconds.
    rank : (m,) int64 or None
        Upward ranks of the tasks, whole microseconds.
    promises : Promises or None
        Of policies that guarantee deadlines.
    cores_used : (n,) int64 or None
        Cores that each job got, of moldable jobs of one task; None: as asked for. Those asked for where it did not run.
    logged_submit_us : (n,) int64 or None
        Where users reacted: submit times of the workload that was given, whole microseconds, in whose order the rows
        stay. Those of `workload` are then the ones of this run, and not in order. None: they are the same.
    reasons : Reasons or None
        Why jobs waited, of policies that say so.
    beyond : Beyond or None
        Where jobs above a limit of time were lowered to it, or split.
    until_us : int or None
        Of a run that stands still: until when it is told, whole microseconds.
    allocations : Allocations or None
        Where each run of a job was, on machines of nodes; of DAG jobs each task.
    capacity : Capacity or None
        Nodes and pools of the machine, of a platform of one cluster that has any.
    predictions : Predictions or None
        What was believed that jobs would run, of schedulers that predict; None of DAG jobs.
    requested : Requested or None
        Resources that jobs requested, of policies that read them from labels (``slurm``) instead of demands.
    reason : (n,) str or None
        Of rejected jobs what the machine can never give them, on machines of nodes or several pools: ``pool:NAME``,
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

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], *, cores: int | None = None) -> Record:
        """Record of a few jobs written by hand, times in seconds.

        Parameters
        ----------
        rows : sequence of mapping
            ``submit``, ``start``, ``end``, ``cores``; optional ``job``, ``runtime`` (end - start),
            ``estimate`` (runtime), ``user``, ``status``. A job with start None did not run.
        cores : int, optional
            Size of the machine; the widest job where left out.

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
            start_us=whole(np.array([row["start"] if done else np.inf for row, done in zip(rows, ran, strict=True)])),
            end_us=whole(np.array([row["end"] if done else np.inf for row, done in zip(rows, ran, strict=True)])),
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
        """Which jobs held cores, to an end."""
        return self.end_us < NEVER

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """What became of each job, in a word."""
        return _names(self.status)

    @property
    def workload_given(self) -> Workload:
        """The workload that was simulated: where users reacted, with the submit times and deadlines that it came with.

        What the source says of the schedule (``logged``) is not there where users reacted.
        """
        if self.logged_submit_us is None:
            return self.workload
        deadline, later = self.workload.deadline, self.workload.submit - self.logged_submit_us
        deadline = np.where(deadline < NEVER, deadline - later, NEVER)
        return replace(self.workload, submit=self.logged_submit_us, deadline=deadline)

    @property
    def as_given(self) -> Record:
        """The record with `workload_given` for its workload."""
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
        """When each job first held its cores, before any run that was cut short, of a chain with its first piece.

        Whole microseconds; `NEVER` for none.

        This is what a log's start is compared with: both belong to the first submit.
        """
        first = self.start_us.copy()
        if self.promises is not None:
            np.minimum.at(first, self.promises.killed, self.promises.killed_start_us)
        if self.beyond is not None:
            np.minimum.at(first, self.beyond.job, self.beyond.start_us)
        return first

    @property
    def held(self) -> FloatArray:
        """Time each job held its cores, s, less than its true runtime where it was killed; NaN where it did not run.

        All pieces of a chain together.
        """
        return np.where(self.ran, seconds(self.end_us - self.start_us + self._before), np.nan)

    @property
    def _before(self) -> IntArray | int:
        """Time that earlier pieces of a chain held cores, whole microseconds."""
        return 0 if self.beyond is None else self.beyond.held_us

    @property
    def wait(self) -> FloatArray:
        """Start minus submit, s; NaN for jobs that did not run. Of a chain the waits of all its pieces together."""
        return np.where(self.ran, seconds(self.start_us - self.workload.submit - self._before), np.nan)

    @property
    def response(self) -> FloatArray:
        """End minus submit, s; NaN for jobs that did not run."""
        return np.where(self.ran, seconds(self.end_us - self.workload.submit), np.nan)

    @property
    def given(self) -> IntArray:
        """Cores that each job got, of DAG jobs each task; those asked for where it did not run."""
        if self.tasks is not None and self.workload.tasks is not None:
            return self.workload.tasks.cores if self.tasks.cores_used is None else self.tasks.cores_used
        return self.workload.cores if self.cores_used is None else self.cores_used

    @property
    def area(self) -> FloatArray:
        """Cores times the time held, over all tasks of a job; core-seconds, NaN for jobs that did not run."""
        if self.tasks is not None and self.workload.tasks is not None and len(self):
            tasks, ran = self.workload.tasks, self.tasks.end_us < NEVER
            held = np.where(ran, seconds(self.tasks.end_us) - seconds(self.tasks.start_us), 0.0)
            return np.where(self.ran, np.add.reduceat(self.given * held, tasks.first[:-1]), np.nan)
        return self.given * self.held

    @property
    def logged(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row a job: start and wait in the log, s, and the reason that it recorded, where it has any.

        A wait ends with the first start of a job. Empty where the log has no starts, and where jobs were changed.
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
        """Who held cores when: start and end of each job that ran (of each task where jobs have several), and cores.

        Whole microseconds. Runs that were cut short to make room for another job, and earlier pieces of chains, come
        behind the others.

        Returns
        -------
        start, end : (k,) int64
            Whole microseconds.
        cores : (k,) int64
            Cores held.
        """
        if self.tasks is not None and self.workload.tasks is not None:
            start, end = self.tasks.start_us, self.tasks.end_us
        else:
            start, end = self.start_us, self.end_us
        ran, cores = start < NEVER, self.given
        if not ran.all():  # mostly all did, and then there is nothing to copy
            start, end, cores = start[ran], end[ran], cores[ran]
        if self.until_us is not None:
            end = np.minimum(end, self.until_us)
        job, began, ended = self.earlier_runs()
        if not len(job):
            return start, end, cores
        return np.concatenate([start, began]), np.concatenate([end, ended]), np.concatenate([cores, self.given[job]])

    def earlier_runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Runs of jobs before their last one: row of the job, start and end, whole microseconds.

        Those that were cut short to make room, then pieces of chains.

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
        if self.beyond is not None:
            found.append((self.beyond.job, self.beyond.start_us, self.beyond.end_us))
        if not found:
            return _no_runs(), _no_runs(), _no_runs()
        job, start, end = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return job, start, end

    @property
    def kills(self) -> IntArray:
        """How often each job was killed to make room for another one, to begin anew later."""
        killed = np.zeros(0, dtype=np.int64) if self.promises is None else self.promises.killed
        return np.bincount(killed, minlength=len(self))

    @property
    def lost(self) -> FloatArray:
        """Work of each job that such kills threw away, core-seconds."""
        if self.promises is None:
            return np.zeros(len(self))
        cut = self.promises
        held = seconds(cut.killed_end_us - cut.killed_start_us)
        times = np.zeros(len(self))
        np.add.at(times, cut.killed, held)
        return self.given * times

    def select(self, rows: Any) -> Record:
        """Record of some rows (mask, slice or indices).

        Parameters
        ----------
        rows : (k,) array or slice
            Which rows.

        Returns
        -------
        Record
            Of these rows alone.
        """
        return Record(
            self.workload.select(rows),
            self.start_us[rows],
            self.end_us[rows],
            self.status[rows],
            self.cluster[rows],
            self.cores,
            **self._parts(rows),
        )

    def _parts(self, rows: Any) -> dict[str, Any]:
        """What is there of DAG jobs and of promises, for the jobs in *rows*."""
        parts: dict[str, Any] = {"until_us": self.until_us, "capacity": self.capacity}
        for name in ("promises", "reasons", "beyond", "predictions", "requested"):
            if (part := getattr(self, name)) is not None:
                parts[name] = part.select(rows)
        for name in ("reason", "cores_used", "logged_submit_us", "critical_path"):
            if (column := getattr(self, name)) is not None:
                parts[name] = column[rows]
        if self.workload.tasks is not None and self.tasks is not None:
            kept = self.workload.tasks.rows_of(rows)
            task = self.tasks
            names = ("ready_us", "start_us", "end_us", "status", "cluster")
            columns: dict[str, Any] = {name: getattr(task, name)[kept] for name in names}
            used = None if task.cores_used is None else task.cores_used[kept]
            parts["tasks"] = replace(task, **columns, cores_used=used)
            parts["rank"] = None if self.rank is None else self.rank[kept]
        if self.allocations is not None:
            several = "tasks" in parts
            owners = len(self.workload.tasks or ()) if several else len(self)
            parts["allocations"] = self.allocations.select(kept if several else rows, owners)
        return parts
