"""List policies with predictions and backfill orders on machines of nodes: the cycles of `tests.oracles.backfilling`."""

from __future__ import annotations

from typing import Any

from gridsim import Platform
from gridsim.model.time import NEVER, whole
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as scheduler_of
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.planned import Planned
from gridsim.policy.prediction import Requested
from gridsim.record import Record
from tests.oracles.backfilling import Cycles
from tests.oracles.machine import schedule as plain
from tests.oracles.machine.compared import told
from tests.oracles.machine.parts import Hold, Place
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import Job
from tests.oracles.machine.translated import jobs_of, machine_of, schedule_of
from tests.oracles.translated import of_list

__all__ = ["MOST", "compared"]

MOST = 30
"""Jobs, above which the oracle is slow."""


class _List(Cycles, plain._Run):
    """A machine of nodes under a list policy."""

    def leave(self, job: Job, now: int) -> int:  # type: ignore[override]
        return plain._Run.leave(self, job)

    def arrive(self, job: Job, now: int) -> None:
        plain._Run.arrive(self, job, now)

    def soonest(self, job: Job, reserved: list[Hold], now: int) -> tuple[int, Hold]:
        duration = self.predicted(job)
        start, places = plain.earliest(self.machine, self.rule_of_places, job.demand, duration, [*self.held(), *reserved], now)
        return start, Hold(job.demand, places, start, start + duration)

    def starts_on(self, job: Job, now: int, held: Hold) -> None:
        self.begin(job, now, list(held.places))

    rule_of_places: Rule


def compared(
    record: Record, workload: Workload, platform: Platform, policy: Any, rule: Rule | None = None, **options: Any
) -> bool:
    """Compare a record, nodes and GPUs included, with the oracle of its policy; whether one covers the run.

    Parameters
    ----------
    rule : Rule, optional
        The placement rule of the policy; the lowest number first where left out.
    """
    scheduler = scheduler_of(policy)
    if len(workload) > MOST:
        return False
    machine, jobs = machine_of(platform), jobs_of(workload)
    tick, overrun, instant = whole(options.get("tick", 1.0)), options.get("overrun", "kill"), options.get("instant")
    if type(scheduler) is Planned and isinstance(scheduler.predict, Requested):
        if instant == "per-event" or scheduler.ordering is not None or scheduler.compress_at != "early":
            return False
        slow = plain.schedule(
            machine, jobs, "conservative", rule, compress=scheduler.compress, overrun=overrun, tick=tick
        )
    elif type(scheduler) is Backfilling:
        given = of_list(scheduler, workload, options)
        if given is None:
            return False
        run = _List(machine, "easy", rule or Rule(), k=1, compress="none", extend=overrun == "extend")
        run.rule_of_places, run.tick = rule or Rule(), tick
        vars(run).update(given)
        slow = sorted(jobs, key=lambda job: (job.submit, job.number))
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
