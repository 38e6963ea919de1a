"""Run Lapis: one "drone" has all cores; every 60 s, the scheduler starts the jobs that fit, in turn."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from joblist import Job, read_jobs, write_schedule
from lapis.drone import Drone
from lapis.job import Job as LapisJob
from lapis.pool import StaticPool
from lapis.scheduler import CondorJobScheduler
from lapis.simulator import Simulator


class Quiet(Simulator):
    """The simulator without its statistics, which it logs at every change."""

    def enable_monitoring(self) -> None:
        super().enable_monitoring()
        self.monitoring._statistics.clear()


def simulated(jobs: list[Job], cores: int) -> list[float]:
    """Return the start of each job, s; Lapis counts from the first submission."""
    made: list[LapisJob] = []

    def read(lines: Iterable[Job]) -> Iterator[LapisJob]:
        for job in lines:
            asked = {"cores": job.cores, "walltime": job.estimate}
            made.append(LapisJob(asked, {"cores": job.cores, "walltime": job.runtime}, queue_date=job.submit))
            yield made[-1]

    def pools(iterable: object, pool_type: type, make_drone: object) -> Iterator[StaticPool]:
        yield pool_type(capacity=1, make_drone=lambda _=None: Drone(simulator.job_scheduler, {"cores": cores}, 0))

    simulator = Quiet()
    simulator.create_job_generator(jobs, read)
    simulator.create_scheduler(CondorJobScheduler)
    simulator.create_pools(None, pools, StaticPool)
    simulator.run()
    return [jobs[0].submit + job.in_queue_until for job in made]


if __name__ == "__main__":
    log, _, output = sys.argv[1:]
    size, listed = read_jobs(log)
    write_schedule(output, listed, simulated(listed, size))
