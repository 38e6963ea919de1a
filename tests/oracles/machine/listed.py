"""Oracles for the engines: list policies with predictions on machines of nodes, and plans event by event."""

from __future__ import annotations

from typing import Any

from gridsim import Platform
from gridsim.model.time import NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.policy.prediction import Requested
from gridsim.policy.presets import policy as scheduler_of
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.record import Record
from gridsim.registry import name_of
from gridsim.testing.oracle import ORDERS
from tests.oracles.backfilling import Cycles
from tests.oracles.machine import schedule as plain
from tests.oracles.machine.compared import told
from tests.oracles.machine.parts import Hold
from tests.oracles.machine.placing import earliest
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import Job
from tests.oracles.machine.translated import jobs_of, machine_of, schedule_of
from tests.oracles.translated import of_list

__all__ = ["MOST", "compared"]

MOST = 30
"""Number of jobs above which the oracle is slow."""


class _List(Cycles, plain._Run):  # type: ignore[misc]  # the cycles define the rule and the next instant
    """A machine of nodes under a list policy."""

    def leave(self, job: Job, now: int) -> int:  # type: ignore[override]
        return plain._Run.leave(self, job)

    def arrive(self, job: Job, now: int) -> None:
        plain._Run.arrive(self, job, now)

    def soonest(self, job: Job, reserved: list[Hold], now: int) -> tuple[int, Hold]:
        duration = self.predicted(job)
        start, places = earliest(
            self.machine, self.rule_of_places, job.demand, duration, [*self.held(), *reserved], now
        )
        return start, Hold(job.demand, places, start, start + duration)

    def starts_on(self, job: Job, now: int, held: Hold) -> None:
        self.begin(job, now, list(held.places))

    rule_of_places: Rule


class _Plan(plain._Run):
    """Conservative backfilling event by event, with any order of compression; compress after all ends if *every*."""

    every = False
    key: Any = None
    coming: list[Job]

    def squeeze(self, now: int) -> None:
        if self.key is None:
            super().squeeze(now)
        else:
            self.squeezed(sorted(self.waiting, key=lambda job: (self.key(job, now), job.submit, job.number)), now)

    def batched(self, now: int) -> None:
        ends = [job for job in self.running if job.end == now]
        if self.every:
            for job in ends:
                job.expected = NEVER  # every end is early
        arrivals = [job for job in self.coming if job.submit == now]
        del self.coming[: len(arrivals)]
        self.step(now, arrivals)

    def per_event(self, now: int) -> None:
        self.overruns(now)
        while self.coming and self.coming[0].submit == now:
            self.arrive(self.coming.pop(0), now)
            self.planned_starts(now)
        for job in [job for job in self.running if job.end == now]:
            if self.leave(job) < job.expected or self.every:
                self.squeeze(now)
            self.planned_starts(now)
        self.planned_starts(now)

    def overruns(self, now: int) -> None:
        """Set new expected ends of jobs that exceed their estimate and continue."""
        late = [job for job in self.running if job.expected == now < job.end]
        for job in late:
            job.expected = job.start + job.estimate + max(2 * (now - job.start - job.estimate), self.tick)
        if late:
            self.replan(now)

    def planned_starts(self, now: int) -> None:
        for job in [job for job in self.waiting if job.planned == now]:
            self.begin(job, now, job.places)


def compared(
    record: Record, workload: Workload, platform: Platform, policy: Any, rule: Rule | None = None, **options: Any
) -> bool:
    """Compare a record, nodes and GPUs included, with the oracle of its policy; return whether one covers the run.

    Parameters
    ----------
    rule : Rule, optional
        The placement rule of the policy; by default the node with the lowest number is first.
    """
    scheduler = scheduler_of(policy)
    if len(workload) > MOST:
        return False
    machine, jobs = machine_of(platform), sorted(jobs_of(workload), key=lambda job: (job.submit, job.number))
    tick, extend, instant = to_us(options.get("tick", 1.0)), options.get("overrun") == "extend", options.get("instant")
    if type(scheduler) is Planned and isinstance(scheduler.predict, Requested):
        plan = _Plan(machine, "conservative", rule or Rule(), k=0, compress=scheduler.compress, extend=extend)
        plan.tick, plan.every = tick, scheduler.compress_at == "every"
        if scheduler.ordering is not None:
            names = (name_of(type(scheduler.ordering)), *getattr(scheduler.ordering, "aliases", ()))
            plan.key = next(ORDERS[name] for name in names if name in ORDERS)
        slow, plan.coming = jobs, list(jobs)
        step = plan.per_event if instant == "per-event" else plan.batched
        while (now := plan.next_instant(plan.coming)) < NEVER:
            step(now)
    elif type(scheduler) is Backfilling:
        given = of_list(scheduler, workload, options)
        if given is None:
            return False
        run = _List(machine, "easy", rule or Rule(), k=1, compress="none", extend=extend)
        run.rule_of_places, run.tick = rule or Rule(), tick
        vars(run).update(given)
        slow = jobs
        for row, job in enumerate(slow):
            job.row = row  # type: ignore[attr-defined]
        run.coming = list(slow)
        step = run.per_event if instant == "per-event" else run.batched
        while (now := run.next_instant()) < NEVER:
            step(now)
    else:
        return False
    fast = schedule_of(record, platform)
    for one, other in zip(slow, fast, strict=True):
        assert told(one) == told(other), "engines and oracle differ"
    return True
