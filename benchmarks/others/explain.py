"""Explain differences to gridsim: simulate the other simulator's rules, and count jobs with other starts.

    python explain.py accasim LOG.swf SCHEDULE.csv      # EASY of AccaSim 1.1.3
    python explain.py lapis LOG.swf SCHEDULE.csv        # Lapis 0.4.2 with one drone

LOG.swf and SCHEDULE.csv are output files of compare.py.
"""

from __future__ import annotations

import csv
import heapq
import sys
from pathlib import Path

from joblist import Job, read_jobs


class Machine:
    """Free cores, waiting and running jobs, and the start of each job by its number."""

    def __init__(self, jobs: list[Job], cores: int) -> None:
        self.coming, self.free = list(reversed(jobs)), cores
        self.waiting: list[Job] = []
        self.running: list[tuple[int, int, Job]] = []
        self.starts: dict[int, int] = {}

    def move(self, now: int, *, before: bool = False) -> None:
        """Process all ends, then all arrivals, up to *now*; with *before*, events at *now* itself remain."""
        last = now - before
        while self.running and self.running[0][0] <= last:
            self.free += heapq.heappop(self.running)[2].cores
        while self.coming and self.coming[-1].submit <= last:
            self.waiting.append(self.coming.pop())

    def begin(self, job: Job, now: int) -> None:
        self.waiting.remove(job)
        self.free -= job.cores
        self.starts[job.number] = now
        heapq.heappush(self.running, (now + job.runtime, job.number, job))

    def fill(self, jobs: list[Job], now: int) -> None:
        """Start the jobs that fit, in turn."""
        for job in jobs:
            if job.cores <= self.free:
                self.begin(job, now)


def accasim(jobs: list[Job], cores: int) -> dict[int, int]:
    """Simulate EASY whose reservation other jobs ignore and whose first job is not tried before its reserved time."""
    machine = Machine(jobs, cores)
    reserved: int | None = None
    while machine.coming or machine.running or machine.waiting:
        instants = [end for end, _, _ in machine.running[:1]] + [job.submit for job in machine.coming[-1:]]
        now = min(instants, default=reserved or 0)
        machine.move(now)
        waiting = machine.waiting
        if reserved is not None and reserved <= now and waiting[0].cores <= machine.free:
            machine.begin(waiting[0], now)
            reserved = None
        if reserved is None:
            while waiting and waiting[0].cores <= machine.free:
                machine.begin(waiting[0], now)
            reserved = earliest(machine) if waiting else None
        machine.fill(waiting[1:], now)
    return machine.starts


def earliest(machine: Machine) -> int:
    """Return when enough cores are free for the first waiting job, if all estimates are right."""
    free = machine.free
    for end, cores in sorted((machine.starts[job.number] + job.estimate, job.cores) for _, _, job in machine.running):
        free += cores
        if free >= machine.waiting[0].cores:
            return end
    raise AssertionError("a job is wider than the machine")


def lapis(jobs: list[Job], cores: int) -> dict[int, int]:
    """Simulate first-fit every 60 s from the first submission; a check misses events in its own second."""
    machine = Machine(jobs, cores)
    now = jobs[0].submit
    while machine.coming or machine.waiting:
        machine.move(now, before=True)
        machine.fill(list(machine.waiting), now)
        now += 60
    return machine.starts


def main() -> None:
    """Print how many jobs have other starts than under the rules."""
    name, log, schedule = sys.argv[1:]
    cores, jobs = read_jobs(log)
    expected = {"accasim": accasim, "lapis": lapis}[name](jobs, cores)
    with Path(schedule).open(encoding="utf-8") as file:
        found = {int(row["job"]): float(row["start"]) for row in csv.DictReader(file)}
    print(f"{sum(expected[number] != start for number, start in found.items())} of {len(found)} start otherwise")


if __name__ == "__main__":
    main()
