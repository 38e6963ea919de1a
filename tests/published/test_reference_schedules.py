"""Published schedules, compared start by start, and those of a slow second implementation on generated jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.testing.oracle import schedule

Others = Callable[[str], Path]


def pyss(others: Others) -> gs.Workload:
    """SDSC SP2 with the waits of its jobs under EASY in pyss."""
    published = gs.read_workload(others("reference/SDSC-SP2-easy-pyss.swf.gz"), cores=128)
    # The file lists jobs by end time; their numbers are the order of arrival inside one second.
    return published.select(np.lexsort((published.job, published.submit)))


def drawn(jobs: int = 120, **more: Any) -> gs.Workload:
    """Jobs for 12 cores, half of them with exact estimates, some with the same submission second."""
    rng = np.random.default_rng(1)
    runtime = rng.integers(1, 40, jobs)
    estimate = np.where(rng.random(jobs) < 0.5, runtime, runtime * rng.integers(2, 6, jobs))
    submit, cores = np.sort(rng.integers(0, jobs * 15 // 2, jobs)), rng.integers(1, 9, jobs)
    return gs.Workload.from_columns(submit=submit, runtime=runtime, estimate=estimate, cores=cores, **more)


def slowly(policy: str, cores: int, jobs: int, **more: Any) -> gs.Workload:
    """Generated jobs with their waits in the slow second implementation."""
    return drawn(jobs, logged={"wait": schedule(drawn(jobs), cores, policy, **more).wait}, cores_stated=cores)


@pytest.mark.parametrize(
    ("source", "cores", "jobs", "batched", "mean"),
    [
        ("generated", 12, 400, 202, 122.6),
        pytest.param("pyss", 128, 54_006, 51_611, 20_570.9, marks=pytest.mark.others),
    ],
)
def test_per_event_easy_is_that_of_another_simulator_to_the_last_wait(
    others: Others, source: str, cores: int, jobs: int, batched: int, mean: float
) -> None:
    log = slowly("easy", cores, jobs, instant="per-event") if source == "generated" else pyss(others)
    platform = gs.Platform.single(cores)
    per_event = gs.simulate(log, platform=platform, policy="easy", instant="per-event").record
    assert int((per_event.wait == log.logged["wait"]).sum()) == len(log) == jobs
    at_once = gs.simulate(log, platform=platform, policy="easy").record
    assert int((at_once.wait == log.logged["wait"]).sum()) == batched
    assert round(float(at_once.wait.mean()), 1) == mean


@pytest.mark.parametrize(
    ("source", "jobs"),
    [
        ("generated", 400),
        pytest.param("industrial-grid/industrial-grid-5888.swf.gz", 36_855, marks=pytest.mark.others),
    ],
)
def test_strict_fifo_is_the_one_that_was_logged(others: Others, source: str, jobs: int) -> None:
    log = slowly("fcfs", 12, jobs) if source == "generated" else gs.read_workload(others(source))
    record = gs.simulate(log, policy="fcfs").record
    assert int((record.wait == log.logged["wait"]).sum()) == len(log) == jobs


EVERY = "conservative?compress=arrival&compress_at=every"
"""Conservative backfilling as in pyss: after each end, early or not, all waiting jobs are placed again by arrival."""


@pytest.mark.parametrize("source", ["generated", pytest.param("pyss", marks=pytest.mark.others)])
def test_conservative_that_compresses_at_every_end_is_that_of_the_slow_second_implementation(
    others: Others, source: str
) -> None:
    jobs, cores = (drawn(), 12) if source == "generated" else (pyss(others).select(slice(35_500, 35_800)), 128)
    slow = schedule(jobs, cores, "conservative", compress="arrival", compress_at="every", instant="per-event")
    platform = gs.Platform.single(cores)
    every = gs.simulate(jobs, platform=platform, policy=EVERY, instant="per-event").record
    assert every.start_us.tolist() == slow.start_us.tolist()
    early = gs.simulate(jobs, platform=platform, policy="conservative?compress=arrival", instant="per-event").record
    assert (early.start_us != every.start_us).any()
