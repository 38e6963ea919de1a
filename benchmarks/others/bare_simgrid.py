"""SimGrid alone, without a scheduler: an actor that releases jobs, and one per job that sleeps for its run time."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from joblist import Job, read_jobs
from simgrid import Actor, Engine, Host, this_actor

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="zone" routing="Full"><host id="machine" speed="1f"/></zone></platform>
"""


def release(jobs: list[Job]) -> None:
    machine = Host.by_name("machine")
    for job in jobs:
        this_actor.sleep_until(job.submit)
        Actor.create(str(job.number), machine, this_actor.sleep_for, float(job.runtime))


if __name__ == "__main__":
    engine = Engine(["bare", *sys.argv[4:]])
    with tempfile.TemporaryDirectory() as scratch:
        platform = Path(scratch) / "platform.xml"
        platform.write_text(PLATFORM, encoding="utf-8")
        engine.load_platform(str(platform))
    Actor.create("release", Host.by_name("machine"), release, read_jobs(sys.argv[1])[1])
    engine.run()
