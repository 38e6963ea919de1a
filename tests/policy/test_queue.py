"""The view of requests that a policy receives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gridsim.model.moldable import Moldable
from gridsim.model.platform import Platform
from gridsim.model.speedup import Linear
from gridsim.model.workload import Workload
from gridsim.policy.queue import Queue, Requests
from gridsim.simulation import simulate

JOBS = Workload.from_columns(
    submit=[0, 1, 2],
    runtime=[7, 8, 9],
    estimate=[10, 20, 30],
    cores=[1, 2, 3],
    deadline=[math.nan, 50, 60],
    labels={"user": [4, 5, 6]},
    logged={"wait": [0.0, 1.0, 2.0]},
)


def test_a_request_has_no_true_runtime_and_nothing_of_what_was_logged() -> None:
    requests = Requests(JOBS)
    held = [value for value in vars(requests).values() if isinstance(value, np.ndarray)]
    assert not any(np.array_equal(column, JOBS.runtime) for column in held)
    assert {"runtime", "logged", "workload"}.isdisjoint(dir(requests))


def test_a_queue_gives_the_columns_of_its_rows_in_seconds_and_cores() -> None:
    queue = Queue(Requests(JOBS), np.array([0, 2]))
    assert len(queue) == 2
    assert queue.cores.tolist() == [1.0, 3.0]
    assert queue.estimate.tolist() == [10.0, 30.0]
    assert queue.submit.tolist() == [0.0, 2.0]
    assert queue.area.tolist() == [10.0, 90.0]
    assert queue.deadline.tolist() == [math.inf, 60.0]


def test_a_label_that_the_source_does_not_have_is_unknown() -> None:
    queue = Queue(Requests(JOBS), np.array([0, 2]))
    assert queue.label("user").tolist() == [4, 6]
    assert queue.label("group").tolist() == [-1, -1]


def test_columns_of_a_queue_may_be_written_without_harm() -> None:
    requests = Requests(JOBS)
    queue = Queue(requests, np.array([0, 1, 2]))
    estimate = queue.estimate
    estimate[:] = 0
    assert queue.estimate.tolist() == [10.0, 20.0, 30.0]


def test_a_job_of_named_sizes_needs_a_machine_for_the_smallest_of_them() -> None:
    jobs = replace(JOBS, moldable=Moldable.of(JOBS.cores, 1, 8, [Linear()], sizes=[[6, 8], [], [2]]))
    assert Requests(jobs).needed.tolist() == [6, 1, 2]
    for policy in ("moldable-base", "moldable-submit"):
        record = simulate(jobs, platform=Platform.single(5), policy=policy).record
        assert record.status_names.tolist() == ["rejected", "completed", "completed"]
