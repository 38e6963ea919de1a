"""Maintenance windows and drains during a run: plans keep jobs out of them, and running jobs are stopped or wait."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.metrics.availability import absent_seconds, runs_of
from gridsim.model.failures import Failures
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.record import Record

FOUR = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 2})])
POLICIES = ("fcfs", "easy", "conservative")


def _run(jobs: gs.Workload, policy: Any, windows: list[Window], **failures: Any) -> Record:
    options = Run(failures=Failures(windows=windows, **failures))
    return gs.simulate(jobs, platform=FOUR, policy=policy, options=options).record


def _runs(record: Record) -> list[tuple[int, float, float, str]]:
    row, start, end, reason, _ = runs_of(record)
    return [*zip(row.tolist(), (start / 1e6).tolist(), (end / 1e6).tolist(), reason, strict=True)]


def _jobs(**columns: Any) -> gs.Workload:
    return gs.Workload.from_columns(**columns)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("at_begin", ["requeue", "wait"])
def test_an_announced_window_stops_no_job_that_ends_by_its_estimate(policy: str, at_begin: Any) -> None:
    jobs = _jobs(submit=[0, 1, 1], runtime=[50, 49, 50], cores=[8, 4, 4])
    window = Window(["ALL"], 50, 60, announced=0, at_begin=at_begin)
    assert _runs(_run(jobs, policy, [window])) == [
        (0, 0, 50, "completed"),
        (1, 60, 109, "completed"),
        (2, 60, 110, "completed"),
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_drain_lets_jobs_end_and_starts_none(policy: str) -> None:
    jobs = _jobs(submit=[0, 0, 12, 13], runtime=[30, 5, 10, 1], cores=[2, 2, 4, 4])
    record = _run(jobs, policy, [Window(["n-[0-1]"], 10, 40, kind="drain")])
    assert _runs(record) == [
        (0, 0, 30, "completed"),
        (1, 0, 5, "completed"),
        (2, 12, 22, "completed"),
        (3, 22, 23, "completed"),
    ]


def test_a_node_that_a_job_still_uses_is_not_given_to_another_at_the_end_of_a_drain() -> None:
    jobs = _jobs(submit=[0, 1, 1], runtime=[30, 10, 10], cores=[2, 8, 6])
    for policy in POLICIES:
        record = _run(jobs, policy, [Window(["n-0"], 10, 20, kind="drain")])
        starts = (record.start_us / 1e6).tolist()
        assert starts[0] == 0
        assert starts[1] >= 30


def test_a_deleted_window_ends_early_or_never_begins() -> None:
    jobs = _jobs(submit=[0, 30], runtime=[10, 10], cores=[8, 8])
    for policy in POLICIES:
        early = _run(jobs, policy, [Window(["n-0"], 10, 100, announced=0, deleted=50)])
        assert (early.start_us / 1e6).tolist() == [0, 50]
        never = _run(jobs, policy, [Window(["n-0"], 35, 100, announced=0, deleted=32)])
        assert (never.start_us / 1e6).tolist() == [0, 32]
        assert never.interruptions is not None
        assert len(never.interruptions.node) == 0


def test_interruptions_by_windows_count_as_restarts() -> None:
    jobs = _jobs(submit=[0], runtime=[30], cores=[2], labels={"max_restarts": [1]})
    windows = [Window(["ALL"], 10, 15), Window(["ALL"], 20, 25, kind="drain", at_begin="requeue")]
    record = _run(jobs, "easy", windows)
    assert _runs(record) == [(0, 0, 10, "maintenance"), (0, 15, 20, "drain")]
    assert record.status_names.tolist() == ["failed"]
    result = gs.simulate(jobs, platform=FOUR, policy="easy", options=Run(failures=Failures(windows=windows)))
    assert result.runs["reason"].tolist() == ["maintenance", "drain"]
    assert result.failures == {}


def test_an_interruption_by_a_window_ends_the_use_of_spares() -> None:
    jobs = _jobs(submit=[0], runtime=[30], cores=[6])
    trace, window = [(["n-0"], 5, 100)], Window(["n-1"], 10, 20)
    record = _run(jobs, "easy", [window], trace=trace, spares=1)
    assert _runs(record) == [(0, 0, 5, "failure"), (0, 5, 10, "maintenance"), (0, 100, 130, "completed")]


def test_a_node_in_a_window_and_failed_is_absent_until_both_are_over() -> None:
    jobs = _jobs(submit=[10], runtime=[10], cores=[8])
    for policy in POLICIES:
        for down, up, start in ((8, 15, 30), (8, 40, 40), (25, 35, 35)):
            record = _run(jobs, policy, [Window(["n-0"], 5, 30)], trace=[(["n-0"], down, up)])
            assert (record.start_us / 1e6).tolist() == [start]
            assert absent_seconds(record, 100_000_000) == start - 5


def test_scheduled_availability_counts_windows_too() -> None:
    jobs = _jobs(submit=[0, 0], runtime=[100, 100], cores=[2, 2])
    options = Run(failures=Failures([(["n-2"], 0, 10)], windows=[Window(["n-2", "n-3"], 5, 25)]))
    numbers = gs.simulate(jobs, platform=FOUR, policy="easy", options=options).metrics()
    assert numbers["availability"] == pytest.approx(1 - 10 / 400)
    assert numbers["scheduled_availability"] == pytest.approx(1 - 45 / 400)


def test_a_window_without_end_leaves_jobs_waiting() -> None:
    jobs = _jobs(submit=[0, 1], runtime=[10, 10], cores=[8, 2])
    record = _run(jobs, "easy", [Window(["n-0"], 0, math.inf, kind="drain")])
    assert record.status_names.tolist() == ["waiting", "completed"]


@pytest.mark.parametrize("policy", POLICIES)
def test_windows_after_the_last_end_change_nothing(policy: str) -> None:
    jobs = _jobs(submit=np.arange(40) * 7, runtime=[50] * 40, cores=[1, 2, 3, 8] * 10)
    without = _run(jobs, policy, [])
    late = _run(jobs, policy, [Window(["ALL"], 10**6, 2 * 10**6)])
    assert (late.start_us == without.start_us).all()
    assert late.interruptions is not None
    assert len(late.interruptions.node) == 0


def test_a_process_announces_a_window() -> None:
    jobs = _jobs(submit=[0, 25], runtime=[20, 10], cores=[2, 8])
    world = gs.World(jobs, platform=FOUR, policy="conservative")
    world.run(until=5)
    with pytest.raises(InputError, match="expected a time from 5"):
        world.window(["n-3"], 1, 9)
    with pytest.raises(InputError, match="no node of the machine is named 'm-3'"):
        world.window("m-3", 10, 40)
    world.window("n-3", 30, 60)
    world.window("n-[0-1]", 5, 10)
    world.run()
    record = world.record()
    assert _runs(record) == [(0, 0, 5, "maintenance"), (0, 5, 25, "completed"), (1, 60, 70, "completed")]
