"""Schedules that others published, start for start. The data README says what each is and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gridsim as gs


def test_per_event_easy_is_the_published_easy_of_sdsc_sp2_to_the_last_wait(shared: Path) -> None:
    published = gs.read_workload(shared / "data/reference/SDSC-SP2-easy-pyss.swf.gz", cores=128)
    # The file lists jobs as they ended; their numbers are the order of arrival inside one second.
    jobs = published.select(np.lexsort((published.job, published.submit)))
    platform = gs.Platform.single(128)
    per_event = gs.simulate(jobs, platform=platform, policy="easy", instant="per-event").record
    assert int((per_event.wait == jobs.logged["wait"]).sum()) == len(jobs) == 54_006
    batched = gs.simulate(jobs, platform=platform, policy="easy").record
    assert int((batched.wait == jobs.logged["wait"]).sum()) == 51_611
    assert round(float(batched.wait.mean()), 1) == 20_570.9


def test_strict_fifo_is_the_published_fifo_of_the_industrial_grid(shared: Path) -> None:
    jobs = gs.read_workload(shared / "data/industrial-grid/industrial-grid-5888.swf.gz")
    record = gs.simulate(jobs, policy="fcfs").record
    assert int((record.wait == jobs.logged["wait"]).sum()) == len(jobs) == 36_855
