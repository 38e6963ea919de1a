"""Schedules that others published, start for start. The data README says what each is and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gridsim as gs
from gridsim.testing.oracle import schedule


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


EVERY = "conservative?compress=arrival&compress_at=every"
"""Conservative backfilling as pyss has it: after each end, early or not, all that wait are placed anew as they came."""


def assert_as_pyss_compresses(jobs: gs.Workload, cores: int) -> None:
    """The slow second implementation makes the schedule of `EVERY`; compression at early ends alone makes another."""
    slow = schedule(jobs, cores, "conservative", compress="arrival", compress_at="every", instant="per-event")
    platform = gs.Platform.single(cores)
    every = gs.simulate(jobs, platform=platform, policy=EVERY, instant="per-event").record
    assert every.start_us.tolist() == slow.start_us.tolist()
    early = gs.simulate(jobs, platform=platform, policy="conservative?compress=arrival", instant="per-event").record
    assert (early.start_us != every.start_us).any()


def test_conservative_that_compresses_at_every_end_on_a_stretch_of_sdsc_sp2(shared: Path) -> None:
    published = gs.read_workload(shared / "data/reference/SDSC-SP2-easy-pyss.swf.gz", cores=128)
    jobs = published.select(np.lexsort((published.job, published.submit))[35_500:35_800])
    assert_as_pyss_compresses(jobs, 128)


def test_conservative_that_compresses_at_every_end_where_half_the_estimates_are_exact() -> None:
    rng = np.random.default_rng(1)
    runtime = rng.integers(1, 40, 120)
    estimate = np.where(rng.random(120) < 0.5, runtime, runtime * rng.integers(2, 6, 120))
    jobs = gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, 900, 120)),
        runtime=runtime,
        estimate=estimate,
        cores=rng.integers(1, 9, 120),
    )
    assert_as_pyss_compresses(jobs, 12)
