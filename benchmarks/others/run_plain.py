"""FCFS and EASY as a short script without libraries: plain Python, lists and a heap."""

from __future__ import annotations

import heapq
import sys

from joblist import Job, read_jobs, write_schedule

Running = tuple[int, int, int]
"""Expected end, number and cores of a running job."""


def schedule(jobs: list[Job], cores: int, *, backfill: bool) -> dict[int, int]:
    """Return the start of each job by its number."""
    starts: dict[int, int] = {}
    ends: list[tuple[int, int]] = []
    running: dict[int, Running] = {}
    waiting: list[Job] = []
    free, coming = cores, 0
    while coming < len(jobs) or ends:
        now = min(ends[0][0] if ends else sys.maxsize, jobs[coming].submit if coming < len(jobs) else sys.maxsize)
        while ends and ends[0][0] == now:
            free += running.pop(heapq.heappop(ends)[1])[2]
        while coming < len(jobs) and jobs[coming].submit == now:
            waiting.append(jobs[coming])
            coming += 1
        for job in chosen(waiting, list(running.values()), free, now, backfill=backfill):
            waiting.remove(job)
            starts[job.number] = now
            running[job.number] = (now + job.estimate, job.number, job.cores)
            heapq.heappush(ends, (now + job.runtime, job.number))
            free -= job.cores
    return starts


def chosen(waiting: list[Job], running: list[Running], free: int, now: int, *, backfill: bool) -> list[Job]:
    """Return the jobs that start now: the first jobs that fit, then those that do not delay the first waiting job."""
    started: list[Job] = []
    for job in waiting:
        if job.cores > free:
            break
        started.append(job)
        free -= job.cores
    rest = waiting[len(started) :]
    if not backfill or not free or len(rest) < 2:
        return started
    shadow, extra = place(rest[0], running + [(now + job.estimate, 0, job.cores) for job in started], free)
    for job in rest[1:]:
        if job.cores <= free and (now + job.estimate <= shadow or job.cores <= extra):
            started.append(job)
            free -= job.cores
            extra -= job.cores if now + job.estimate > shadow else 0
    return started


def place(head: Job, running: list[Running], free: int) -> tuple[int, int]:
    """Return when enough cores are free for the first job, if all estimates are right, and the cores left over then."""
    shadow = 0
    for end, _, cores in sorted(running):
        if free >= head.cores and end > shadow:
            break
        shadow = end
        free += cores
    return shadow, free - head.cores


if __name__ == "__main__":
    log, policy, output = sys.argv[1:]
    machine, listed = read_jobs(log)
    found = schedule(listed, machine, backfill=policy == "easy")
    write_schedule(output, listed, (found[job.number] for job in listed))
