"""SimPy alone, without a scheduler: a process that releases jobs, and a timeout per job; jobs start when submitted."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from joblist import Job, read_jobs
from simpy import Environment, Event


def release(env: Environment, jobs: list[Job]) -> Iterator[Event]:
    for job in jobs:
        yield env.timeout(job.submit - env.now)
        env.timeout(job.runtime)


if __name__ == "__main__":
    environment = Environment()
    environment.process(release(environment, read_jobs(sys.argv[1])[1]))  # type: ignore[arg-type]
    environment.run()
