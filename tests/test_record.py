"""Records as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim.model.time import NEVER
from gridsim.record import Record, Status

ROWS: list[dict[str, Any]] = [
    {"submit": 5, "start": 20, "end": 30, "cores": 2, "user": 8, "job": 12},
    {"submit": 0, "start": 0, "end": 10, "cores": 4, "runtime": 25, "estimate": 10, "status": Status.killed_walltime},
    {"submit": 6, "start": None, "end": None, "cores": 9, "runtime": 7},
]


def test_rows_are_sorted_by_submit_time_and_filled_in() -> None:
    record = Record.from_rows(ROWS, cores=4)
    assert record.workload.job.tolist() == [1, 12, 3]
    assert record.workload.labels["user"].tolist() == [-1, 8, -1]
    assert record.status.tolist() == [Status.killed_walltime, Status.completed, Status.rejected]
    assert record.workload.estimate.tolist() == [10_000_000, 10_000_000, 7_000_000]
    assert len(record) == 3


def test_times_are_seconds_and_not_there_for_a_job_that_did_not_run() -> None:
    record = Record.from_rows(ROWS, cores=4)
    assert record.ran.tolist() == [True, True, False]
    for column, expected in (
        (record.submit, [0, 5, 6]),
        (record.start, [0, 20, np.nan]),
        (record.end, [10, 30, np.nan]),
        (record.wait, [0, 15, np.nan]),
        (record.response, [10, 25, np.nan]),
        (record.held, [10, 10, np.nan]),  # the time held: the first was killed, its true runtime is 25 s
        (record.area, [40, 20, np.nan]),
    ):
        np.testing.assert_array_equal(column, expected)
    assert record.start_us[2] == NEVER


def test_the_machine_is_as_wide_as_the_widest_job_unless_it_is_given() -> None:
    assert Record.from_rows(ROWS).cores == 9
    assert Record.from_rows(ROWS, cores=4).cores == 4


@pytest.mark.parametrize("rows", [np.array([True, False, True]), [0, 2], slice(0, 3, 2)])
def test_some_rows_are_a_record_too(rows: object) -> None:
    part = Record.from_rows(ROWS, cores=4).select(rows)
    assert part.workload.job.tolist() == [1, 3]
    assert part.ran.tolist() == [True, False]
    assert part.cores == 4


def test_status_has_the_words_of_the_glossary() -> None:
    assert [status.name for status in Status][:5] == [
        "completed",
        "killed_walltime",
        "rejected",
        "unadmitted",
        "cancelled",
    ]
    assert [status.name for status in Status][5:7] == ["waiting", "running"]  # when a run cannot continue
    assert [status.name for status in Status][7:] == ["failed", "preempted"]  # ended by a node, or for another job
