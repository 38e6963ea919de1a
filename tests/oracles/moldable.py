"""Moldable jobs under any ordering, compression, number of reservations and partition; slow reference.

The strategies are those of `gridsim.testing.moldable_oracle`; the order of events within an instant of the strategies
that choose at the start is that of `tests.oracles.backfilling`. The module imports nothing from the core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from numpy.random import Generator

from gridsim.model.workload import Workload
from gridsim.testing import moldable_oracle
from gridsim.testing.moldable_oracle import Claim, Lane, Rules, largest, shapes_of
from gridsim.testing.oracle import Job, Machine, jobs_of
from tests.oracles.backfilling import DRAWN, KEYS, Cycles, Key, Predictions

__all__ = ["AtStart", "AtSubmit"]

Limit = Callable[[int, Sequence[int], int], int]
"""Limit of a partition, from a job's maximum, the rows of the running jobs, and the instant."""


class AtSubmit(moldable_oracle.AtSubmit):
    """Sizes chosen on arrival, with any compression: the attributes of `gridsim.testing.oracle.Machine`."""

    def squeeze(self, now: int) -> None:
        if self.compress == "planned" and self.compress_by is None:
            super().squeeze(now)
        else:
            Machine.squeeze(self, now)


class AtStart(Cycles, moldable_oracle.AtStart):
    """Sizes chosen at the start (specification of moldable jobs, 3.4), in any order of the queue.

    Parameters
    ----------
    by : callable
        Key of the queue, for the requested cores and times of jobs.
    depth : int
        Number of holders in a lane other than those by expansion factor.
    limit : callable, optional
        Limit of a user-defined partition, instead of the fair share.
    """

    def __init__(
        self,
        workload: Workload,
        jobs: list[Job],
        cores: int,
        rules: Rules,
        *,
        by: Key = KEYS["fifo"],
        depth: int = 1,
        limit: Limit | None = None,
        draws: Generator | None = None,
    ) -> None:
        super().__init__(jobs, shapes_of(workload, cores), cores, rules)
        self.requested = dict(zip(jobs, jobs_of(workload), strict=True))
        self.depth, self.limit, self.draws = depth, limit, draws
        self.by = by if by is DRAWN else lambda job, now, state: by(self.requested[job], now, self.as_requested())
        self.predictions = Predictions([-1] * len(jobs))
        self.maximum = workload.cores if workload.moldable is None else workload.moldable.maximum
        self.in_order: list[Job] = []

    def as_requested(self) -> Any:
        """Return the state for keys, in which jobs have their requested cores."""
        waiting, running = ([self.requested[job] for job in jobs] for jobs in (self.waiting, self.running))
        return SimpleNamespace(waiting=waiting, running=running, tick=self.tick, predicted=lambda job: job.estimate)

    def leave(self, job: Job, now: int) -> bool:
        return Machine.leave(self, job, now)

    def arrive(self, job: Job, now: int) -> None:
        moldable_oracle.AtStart.arrive(self, job, now)

    def starts(self, now: int) -> None:
        """Run one scheduling cycle in the order of the queue."""
        self.now = now
        self.in_order = self.ordered(self.in_job_order(), self.by, now)
        moldable_oracle.AtStart.starts(self, now)

    def allowed(self, job: Job, claims: list[Claim]) -> int:
        if self.limit is None:
            return super().allowed(job, claims)
        share = self.limit(int(self.maximum[job.row]), [other.row for other in self.running], self.now)
        return largest(self.claim(job), share)

    def ranked(self) -> list[Job]:
        in_queue = [job for job in self.in_order if job in self.holders]
        return list(self.holders) if self.rules.promise_order == "acquired" else in_queue

    def others(self) -> list[Job]:
        return [job for job in self.in_order if job not in self.holders and job in self.waiting]

    def promise(self, job: Job, lane: Lane | None) -> bool:
        if lane is None or list(self.holders.values()).count(lane) >= (1 if lane[0] == "xfactor" else self.depth):
            return False
        self.holders[job] = lane
        return True
