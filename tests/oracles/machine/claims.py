"""Properties of schedules of particular policies on machines of nodes, checked on a record (section 5.2).

Times are whole microseconds. Each job must run once, and the queue order must be first-come. Properties of every
schedule are in `gridsim.testing.demand_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.record import Record
from gridsim.testing.claims import Promise
from tests.oracles.machine.free_capacity import can_be_placed, free_over
from tests.oracles.machine.parts import Hold, Machine
from tests.oracles.machine.placing import earliest
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import Job
from tests.oracles.machine.translated import machine_of, schedule_of

__all__ = ["heads_delayed", "left_waiting"]


def _instants(jobs: list[Job]) -> Iterator[tuple[int, list[Job], list[Hold]]]:
    """Yield each instant of an event, the jobs that wait after it in order, and the allocations of running jobs."""
    ran = [job for job in jobs if job.start < NEVER]
    for now in sorted({instant for job in ran for instant in (job.submit, job.start, job.end)}):
        waiting = [job for job in ran if job.submit <= now < job.start]
        running = [job for job in ran if job.start <= now < job.end]
        yield now, waiting, [Hold(job.demand, job.places, job.start, job.expected) for job in running]


def heads_delayed(record: Record, platform: Platform) -> list[Promise]:
    """Return first jobs of the queue that started after the shadow time of the instant at which they became first.

    EASY and depth-k have none under any placement rule. The shadow time is the first instant at which the whole demand
    fits, given only the running jobs.
    """
    machine, shadows = machine_of(platform), dict[int, int]()
    jobs = schedule_of(record, platform)
    for now, waiting, holds in _instants(jobs):
        if waiting and waiting[0].number not in shadows:
            head = waiting[0]
            shadows[head.number] = earliest(machine, Rule(), head.demand, head.estimate, holds, now)[0]
    numbers = record.workload.job
    late = [(jobs[row], shadow) for row, shadow in shadows.items() if jobs[row].start > shadow]
    return [Promise(int(numbers[job.number]), shadow, job.start) for job, shadow in late]


def left_waiting(record: Record, platform: Platform) -> list[tuple[int, int]]:
    """Return instants after which a waiting job would fit with the running jobs, and the number of the job.

    First-fit has none. Under all other policies the first job in the queue must not be among them.
    """
    machine, numbers, found = machine_of(platform), record.workload.job, list[tuple[int, int]]()
    for now, waiting, holds in _instants(schedule_of(record, platform)):
        found += [(now, int(numbers[job.number])) for job in waiting if _able(machine, job, holds, now)]
    return found


def _able(machine: Machine, job: Job, holds: list[Hold], now: int) -> bool:
    return can_be_placed(machine, job.demand, free_over(machine, holds, now, now + job.estimate))
