"""Reference implementation of FCFS, EASY, conservative, first-fit and depth-k: simple and slow.

Data are Python integers (whole microseconds) or lists of intervals ``(begin, end, cores)``, and placement tries every
candidate start. No code is shared with the schedulers of `gridsim.policy`: no profile, no kernel, no event loop of
SimPy. The module is intended for tens of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record, Status

Interval = tuple[int, int, int]
"""Cores held from an instant (included) to another (excluded): ``(begin, end, cores)``."""

Watcher = Callable[[int, Mapping[int, int]], None]
"""Called with an instant (microseconds) and the planned start of every waiting job after it, by job number."""

Policy = Literal["fcfs", "easy", "conservative", "first-fit", "depth"]


@dataclass(eq=False)
class Job:
    """Job and its state; the last five attributes are guarantees of `gridsim.testing.admission_oracle`."""

    row: int
    number: int
    submit: int
    cores: int
    estimate: int
    runtime: int
    deadline: int
    planned: int = NEVER
    start: int = NEVER
    end: int = NEVER
    expected: int = NEVER
    turn: int = field(default=-1)
    tolerance: Fraction = Fraction(1)
    restartable: bool = True
    granted: int = NEVER
    offer: int = NEVER
    doublings: int = 0
    broken: bool = False


def jobs_of(workload: Workload) -> list[Job]:
    """Return the jobs of a workload in the initial state, in job order."""
    columns = (workload.job, workload.submit, workload.cores, workload.estimate, workload.runtime, workload.deadline)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    jobs = [Job(row, *known) for row, known in enumerate(rows)]
    for job in jobs:
        if workload.tolerance is not None:
            job.tolerance = decimal(workload.tolerance[job.row])
        if workload.restartable is not None:
            job.restartable = bool(workload.restartable[job.row])
    return jobs


def decimal(number: float) -> Fraction:
    """Return the number as written in decimal: 1.3 is exactly 13/10."""
    return Fraction(str(float(number)))


# -- orders: a key of a waiting job, lower first, ties by job order --------------------------------------------------


def _log2(cores: int) -> float:
    return math.log2(max(cores, 2))


ORDERS: dict[str, Callable[[Job, int], Fraction | float | int]] = {
    "fifo": lambda job, now: 0,
    "sjf": lambda job, now: job.estimate,
    "ljf": lambda job, now: -job.estimate,
    "smallest-cores": lambda job, now: job.cores,
    "largest-cores": lambda job, now: -job.cores,
    "smallest-area": lambda job, now: job.cores * job.estimate,
    "largest-area": lambda job, now: -job.cores * job.estimate,
    "edf": lambda job, now: job.deadline,
    "llf": lambda job, now: math.inf if job.deadline >= NEVER else job.deadline - job.estimate,
    "xfactor": lambda job, now: -Fraction(now - job.submit, job.estimate),
    "wfp3": lambda job, now: -(Fraction(now - job.submit, job.estimate) ** 3) * job.cores,
    "unicef": lambda job, now: -(now - job.submit) / (_log2(job.cores) * job.estimate),
}
"""Sort keys of waiting jobs by name of the order, exact if the formula is rational."""


# -- one machine and lists of intervals ------------------------------------------------------------------------------


def in_use(intervals: Iterable[Interval], instant: int) -> int:
    return sum(cores for begin, end, cores in intervals if begin <= instant < end)


def fits(intervals: list[Interval], total: int, cores: int, begin: int, end: int) -> bool:
    """Return whether *cores* more fit within *total* throughout ``[begin, end)``.

    Use rises only at begins of intervals.
    """
    rises = [begin, *(other for other, _, _ in intervals if begin < other < end)]
    return all(in_use(intervals, instant) + cores <= total for instant in rises)


def earliest(intervals: list[Interval], total: int, cores: int, duration: int, now: int) -> int:
    """Return the earliest start from *now*; only now and the ends of intervals are candidates."""
    candidates = sorted({now, *(end for _, end, _ in intervals if end > now)})
    return next(start for start in candidates if fits(intervals, total, cores, start, start + duration))


# -- the simulation --------------------------------------------------------------------------------------------------


class Machine:
    """State of a run: future, waiting and running jobs, and the processing of each instant."""

    def __init__(
        self,
        jobs: list[Job],
        cores: int,
        policy: str,
        *,
        compress: str,
        overrun: str,
        tick: int,
        compress_at: str = "early",
        k: int = 1,
        order: Callable[[Job, int], Fraction | float | int] = ORDERS["fifo"],
        compress_by: Callable[[Job, int], Fraction | float | int] | None = None,
    ) -> None:
        self.coming, self.cores, self.policy = jobs, cores, policy
        self.k, self.compress, self.extend, self.tick = k, compress, overrun == "extend", tick
        self.at_every_end = compress_at == "every"
        self.order, self.compress_by = order, compress_by
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.turn = 0

    @property
    def planned(self) -> bool:
        return self.policy == "conservative"

    def next_instant(self) -> int:
        """Return the next instant with an event."""
        instants = [job.submit for job in self.coming[:1]]
        instants += [job.end for job in self.running]
        instants += [job.expected for job in self.running if self.extend]
        instants += [job.planned for job in self.waiting if self.planned]
        return min(instants, default=NEVER)

    def batched(self, now: int) -> None:
        """Process ends, overruns, compression, arrivals, then starts (specification of deadlines, section 2.4)."""
        gave_back = [self.leave(job, now) for job in list(self.running) if job.end == now]
        self.overruns(now)
        if any(gave_back) and self.planned:
            self.squeeze(now)
        while self.coming and self.coming[0].submit == now:
            self.arrive(self.coming.pop(0), now)
        self.starts(now)

    def per_event(self, now: int) -> None:
        """Process each submission, then each end in the order of starts, with a scheduling cycle after each event.

        Overruns are processed first, since an overrunning job still holds its cores.
        """
        self.overruns(now)
        while self.coming and self.coming[0].submit == now:
            self.arrive(self.coming.pop(0), now)
            self.starts(now)
        for job in sorted(self.running, key=lambda job: job.turn):
            if job.end == now:
                if self.leave(job, now) and self.planned:
                    self.squeeze(now)
                self.starts(now)
        self.starts(now)

    # -- events ------------------------------------------------------------------------------------------------------

    def arrive(self, job: Job, now: int) -> None:
        if job.cores > self.cores:
            return
        if self.planned:
            job.planned = self.place(job, now)
        self.waiting.append(job)

    def leave(self, job: Job, now: int) -> bool:
        """Release the cores of the job; return whether the plan is compressed, as after an early end."""
        self.running.remove(job)
        return job.expected > now or self.at_every_end

    def overruns(self, now: int) -> None:
        """Extend jobs that reach their expected end: the assumed overrun is one tick, two, four, …"""
        late = [job for job in self.running if job.expected == now and job.end > now]
        for job in late:
            beyond = now - job.start - job.estimate
            job.expected = job.start + job.estimate + max(2 * beyond, self.tick)
        if late and self.planned:
            self.replan(now)

    def begin(self, job: Job, now: int) -> None:
        self.waiting.remove(job)
        self.running.append(job)
        self.turn += 1
        job.turn, job.start = self.turn, now
        job.expected = now + job.estimate
        job.end = now + (job.runtime if self.extend else min(job.runtime, job.estimate))

    # -- plans -------------------------------------------------------------------------------------------------------

    def held(self) -> list[Interval]:
        return [(job.start, job.expected, job.cores) for job in self.running]

    def reserved(self, jobs: Iterable[Job]) -> list[Interval]:
        return [(job.planned, job.planned + job.estimate, job.cores) for job in jobs]

    def place(self, job: Job, now: int) -> int:
        """Return the earliest place of a job beyond running jobs and the reservations of all other waiting ones."""
        others = self.reserved(other for other in self.waiting if other is not job)
        return earliest(self.held() + others, self.cores, job.cores, job.estimate, now)

    def by_plan(self) -> list[Job]:
        return sorted(self.waiting, key=lambda job: (job.planned, job.row))

    def squeeze(self, now: int) -> None:
        """Compress (section 3.4): move each waiting job in turn to its earliest place, with the others fixed."""
        if self.compress == "none":
            return
        by = self.compress_by
        if by is not None:
            turns = sorted(self.waiting, key=lambda job: (by(job, now), job.row))
        elif self.compress == "arrival":
            turns = sorted(self.waiting, key=lambda job: job.row)
        else:
            turns = self.by_plan()
        for job in turns:
            before = job.planned
            job.planned = self.place(job, now)
            assert job.planned <= before, "compression delays no job"

    def replan(self, now: int) -> None:
        """Place all waiting jobs again in the order of their planned starts (section 6.3)."""
        placed: list[Job] = []
        for job in self.by_plan():
            intervals = self.held() + self.reserved(placed)
            job.planned = earliest(intervals, self.cores, job.cores, job.estimate, now)
            placed.append(job)

    # -- scheduling cycles -------------------------------------------------------------------------------------------

    def free(self, now: int) -> int:
        """Return the cores that no running job is expected to hold from now on."""
        return self.cores - sum(job.cores for job in self.running if job.expected > now)

    def queue(self, now: int) -> list[Job]:
        return sorted(self.waiting, key=lambda job: (self.order(job, now), job.row))

    def starts(self, now: int) -> None:
        passes = {
            "fcfs": self.pass_fcfs,
            "easy": self.pass_easy,
            "first-fit": self.pass_first_fit,
            "depth": self.pass_depth,
            "conservative": self.pass_planned,
        }
        passes[self.policy](now)

    def pass_planned(self, now: int) -> None:
        for job in self.by_plan():
            if job.planned == now:
                self.begin(job, now)

    def pass_fcfs(self, now: int) -> None:
        """Start the first jobs of the queue as long as they fit (section 3.1)."""
        for job in self.queue(now):
            if job.cores > self.free(now):
                break
            self.begin(job, now)

    def pass_first_fit(self, now: int) -> None:
        for job in self.queue(now):
            if job.cores <= self.free(now):
                self.begin(job, now)

    def pass_easy(self, now: int) -> None:
        """Start first jobs, compute shadow time and extra cores, backfill jobs that cause no delay (section 3.2)."""
        self.pass_fcfs(now)
        queue = self.queue(now)
        if not queue:
            return
        head, *others = queue
        shadow = earliest(self.held(), self.cores, head.cores, head.estimate, now)
        extra = self.cores - in_use(self.held(), shadow) - head.cores
        for job in others:
            if job.cores > self.free(now):
                continue
            if now + job.estimate <= shadow:
                self.begin(job, now)
            elif job.cores <= extra:
                extra -= job.cores
                self.begin(job, now)

    def pass_depth(self, now: int) -> None:
        """Give the first k blocked jobs their earliest places; start other jobs that overlap none of them."""
        promised: list[Interval] = []
        for job in self.queue(now):
            held = [interval for interval in self.held() if interval[1] > now] + promised
            if fits(held, self.cores, job.cores, now, now + job.estimate):
                self.begin(job, now)
            elif len(promised) < self.k:
                start = earliest(held, self.cores, job.cores, job.estimate, now)
                promised.append((start, start + job.estimate, job.cores))


def schedule(
    workload: Workload,
    cores: int,
    policy: Policy = "easy",
    *,
    k: int = 1,
    compress: Literal["planned", "arrival", "none"] = "planned",
    compress_at: Literal["early", "every"] = "early",
    overrun: Literal["kill", "extend"] = "kill",
    instant: Literal["batched", "per-event"] = "batched",
    tick: float = 1.0,
    order: str = "fifo",
    watch: Watcher | None = None,
) -> Record:
    """Return the schedule of a small workload by the reference implementation.

    Parameters
    ----------
    cores : int
        Size of the machine; wider jobs are rejected.
    k : int
        Number of reservations of ``depth``; 1 is EASY.
    compress : {"planned", "arrival", "none"}
        Order of compression of ``conservative``.
    compress_at : {"early", "every"}
        Ends after which ``conservative`` compresses: early ends, or all.
    tick : float
        First assumed overrun of a job that exceeds its estimate, s.
    order : str
        A name of `ORDERS`: the order of the queue; for ``conservative`` the order of compression, unless ``fifo``.
    watch : callable, optional
        Called with the plan after each instant (``conservative`` only).

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[3, 3, 1])
    >>> schedule(jobs, 4, "easy").start.tolist()
    [0.0, 10.0, 2.0]
    """
    if order not in ORDERS:
        raise InputError(f"the oracle has no order '{order}'; known: {', '.join(ORDERS)}", field="order")
    jobs = jobs_of(workload)
    machine = Machine(
        list(jobs),
        cores,
        policy,
        k=k,
        compress=compress,
        compress_at=compress_at,
        overrun=overrun,
        tick=to_us(tick),
        order=ORDERS[order],
        compress_by=None if order == "fifo" else ORDERS[order],
    )
    play(machine, instant, watch)
    return record_of(workload, jobs, machine)


def play(machine: Machine, instant: str, watch: Watcher | None) -> None:
    """Process all events, instant by instant."""
    step = machine.batched if instant == "batched" else machine.per_event
    while (now := machine.next_instant()) < NEVER:
        step(now)
        if watch is not None:
            watch(now, {job.number: job.planned for job in machine.by_plan()})
    assert not machine.waiting, "every job starts"


def record_of(workload: Workload, jobs: list[Job], machine: Machine, promises: Promises | None = None) -> Record:
    """Return the record of a finished run."""
    cores, extend = machine.cores, machine.extend

    def status(job: Job) -> Status:
        if job.start >= NEVER:
            return Status.rejected if job.cores > cores else Status.unadmitted
        return Status.killed_walltime if job.runtime > job.estimate and not extend else Status.completed

    return Record(
        workload=workload,
        start_us=np.array([job.start for job in jobs], dtype=np.int64),
        end_us=np.array([job.end for job in jobs], dtype=np.int64),
        status=np.array([status(job) for job in jobs], dtype=np.int8),
        cluster=np.zeros(len(jobs), dtype=np.int16),
        cores=cores,
        promises=promises,
    )
