"""Event loop of the second Slurm implementation: the events of each instant until none is left.

This folder is a slow and simple implementation for tens of jobs on a few nodes. It follows docs/background/slurm.md
and Slurm's manual pages, with lists and dictionaries and a function for each rule. It does not import `gridsim.policy`.

It covers the scheduler ``slurm`` in the order ``batched``. It omits the reasons of waiting jobs (`Record.reasons`),
users who react, chains of jobs under a limit, dates (``epoch``), and the error for endless preemption.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from gridsim.model.site import Site
from gridsim.model.time import NEVER, has_second_resolution, to_us
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record, Status
from tests.oracles.slurm.entries import Job, jobs_of
from tests.oracles.slurm.nodes import Held
from tests.oracles.slurm.scheduler import SECOND, Scheduler

__all__ = ["Run", "Schedule", "schedule"]


class Run(NamedTuple):
    """A run of a job: its row, start and end (whole microseconds), its partition, cores by name of the node."""

    row: int
    start: int
    end: int
    partition: str
    cores: dict[str, int]


class Schedule(NamedTuple):
    """The record, and all runs in order of their starts, including runs cut short."""

    record: Record
    runs: list[Run]


@dataclass(eq=False)
class World:
    """Future jobs, running jobs, and the instants at which the scheduler requested a wake-up."""

    workload: Workload
    scheduler: Scheduler
    coming: list[Job]
    extend: bool
    tick: int
    cores: int
    running: list[Held] = field(default_factory=list)
    alarms: list[int] = field(default_factory=list)
    alarm: int = NEVER
    runs: list[Run] = field(default_factory=list)
    status: dict[Job, Status] = field(default_factory=dict)
    killed: list[tuple[int, int, int, int]] = field(default_factory=list)
    cancelled_by: dict[Job, int] = field(default_factory=dict)

    def play(self) -> None:
        while (now := self.next_instant()) < NEVER:
            if self.happens(now):
                self.decide(now)

    def ends(self, held: Held) -> int:
        """Return the natural end of a run."""
        job = held.entry.job
        return held.began + (job.runtime if self.extend else min(job.runtime, job.estimate))

    def overruns(self, held: Held) -> list[int]:
        """Schedule the checks of a job that exceeds its estimate: at the estimate, then after a tick, two, four, …"""
        job, late, found = held.entry.job, 0, list[int]()
        while self.extend and job.estimate + late < job.runtime:
            found.append(held.began + job.estimate + late)
            late = max(2 * late, self.tick)
        return found

    def next_instant(self) -> int:
        instants = [job.submit for job in self.coming[:1]] + self.alarms
        for held in self.running:
            instants += [self.ends(held), *(at for at in self.overruns(held) if at > held.seen)]
        return min(instants, default=NEVER)

    def happens(self, now: int) -> bool:
        """Process all ends, then all arrivals; return whether the scheduler must decide."""
        told = now in self.alarms
        self.alarms = [at for at in self.alarms if at != now]
        self.alarm = NEVER if self.alarm <= now else self.alarm
        for held in list(self.running):
            told |= now in self.overruns(held)
            held.seen = now
            if self.ends(held) == now:
                self.leave(held, now)
                job = held.entry.job
                late = not self.extend and job.runtime > job.estimate
                self.status[job] = Status.killed_walltime if late else Status.completed
                self.scheduler.ended(held, now)
                told = True
        while self.coming and self.coming[0].submit == now:
            job = self.coming.pop(0)
            if job.cores > self.cores:
                self.status[job] = Status.rejected
                told |= self.scheduler.over(job, now)
            elif self.scheduler.submit(job, now):
                told = True
            else:
                self.status[job] = Status.unadmitted
                told |= self.scheduler.over(job, now)
        return told

    def leave(self, held: Held, now: int) -> None:
        self.running.remove(held)
        nodes = self.scheduler.site.nodes
        cores = {nodes[node].name: count for node, count in held.pieces.items()}
        self.runs.append(Run(held.entry.job.row, held.began, now, held.entry.partition.name, cores))

    def decide(self, now: int) -> None:
        alone = not self.coming and not self.running and not self.alarms
        withdrawn, stops, starts = self.scheduler.decide(now, alone=alone)
        self.status.update(dict.fromkeys(withdrawn, Status.cancelled))
        for held, again, taker in stops:
            self.leave(held, now)
            job, by = held.entry.job, -1 if taker is None else taker.row
            if again:
                self.killed.append((job.row, held.began, now, by))
            else:
                self.status[job] = Status.cancelled
                self.cancelled_by[job] = by
        self.running += starts
        wake = self.scheduler.wake(now)
        if wake < self.alarm:
            self.alarm = wake
            self.alarms.append(wake)

    def record(self) -> Record:
        """Return the outcome of the jobs; the last run of each counts."""
        jobs, cut = self.scheduler.jobs, {(row, start) for row, start, *_ in self.killed}
        last = {run.row: run for run in self.runs if (run.row, run.start) not in cut}

        def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values, dtype=np.int64)

        none = column([NEVER] * len(jobs))
        killed = np.array(self.killed, dtype=np.int64).reshape(-1, 4).T
        promises = Promises(
            granted_us=none,
            offer_us=none,
            doublings=0 * none,
            broken=none < NEVER,
            killed=killed[0],
            killed_start_us=killed[1],
            killed_end_us=killed[2],
            guarantees=False,
            killed_by=killed[3],
            cancelled_by=column([self.cancelled_by.get(job, NEVER) for job in jobs]),
        )
        return Record(
            workload=self.workload,
            start_us=column([last[job.row].start if job.row in last else NEVER for job in jobs]),
            end_us=column([last[job.row].end if job.row in last else NEVER for job in jobs]),
            status=np.array([self.status[job] for job in jobs], dtype=np.int8),
            cluster=np.zeros(len(jobs), dtype=np.int16),
            cores=self.cores,
            promises=promises if self.scheduler.preempting else None,
        )


def schedule(
    workload: Workload,
    site: Site,
    *,
    boot: float | None = None,
    overrun: Literal["kill", "extend"] = "kill",
    tick: float = 1.0,
) -> Schedule:
    """Return the schedule of a small workload on a Slurm site by the second implementation.

    Parameters
    ----------
    workload : Workload
        Jobs, with the labels that the scheduler ``slurm`` uses.
    site : Site
        The site.
    boot : float, optional
        Instant from which the periods of the scheduler are counted, s; by default as in ``slurm``.
    tick : float
        First assumed overrun of a job that exceeds its estimate, s.

    Raises
    ------
    InputError
        For a partition that the site does not have.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[40, 10, 5], cores=[8, 8, 4])
    >>> schedule(jobs, Site.of(nodes=2, cores=4), boot=0).record.start.tolist()
    [0.0, 40.0, 50.0]
    """
    jobs = jobs_of(workload, site)
    half_a_second_before = -SECOND // 2 if has_second_resolution(workload.submit) else 0
    scheduler = Scheduler(jobs, site, half_a_second_before if boot is None else to_us(boot))
    world = World(workload, scheduler, list(jobs), overrun == "extend", to_us(tick), site.cores)
    world.play()
    assert not scheduler.inside, "every job starts"
    return Schedule(world.record(), sorted(world.runs, key=lambda run: (run.start, run.row)))
