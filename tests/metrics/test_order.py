"""Who overtook whom."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridsim.metrics.order import backfilled_share, overtook
from gridsim.record import Record


def test_a_job_that_starts_before_a_waiting_earlier_one_overtook_it() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 10, "cores": 1},
            {"submit": 1, "start": 10, "end": 14, "cores": 2},
            {"submit": 2, "start": 2, "end": 8, "cores": 1},
        ],
    )
    assert overtook(record).tolist() == [False, False, True]
    assert backfilled_share(record) == 1 / 3
    assert backfilled_share(record, by_area=True) == 6 / (10 + 8 + 6)
    assert backfilled_share(record, np.array([False, True, True])) == 1 / 2


def test_starting_in_the_same_instant_is_not_overtaking() -> None:
    record = Record.from_rows([{"submit": 0, "start": 5, "end": 6}, {"submit": 0, "start": 5, "end": 6}])
    assert not overtook(record).any()


def test_nobody_overtakes_who_stands_in_the_queue_of_another_cluster() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 10},
            {"submit": 1, "start": 10, "end": 14},
            {"submit": 2, "start": 2, "end": 8},
            {"submit": 3, "start": 4, "end": 8},
        ],
    )
    apart = replace(record, cluster=np.array([0, 0, 1, 0], dtype=np.int16))
    assert overtook(apart).tolist() == [False, False, False, True]


def test_jobs_that_never_ran_are_not_overtaken() -> None:
    record = Record.from_rows(
        [{"submit": 0, "start": None, "end": None, "runtime": 1}, {"submit": 1, "start": 1, "end": 2}]
    )
    assert not overtook(record).any()
    assert math.isnan(backfilled_share(record.select(slice(0, 1))))
    assert math.isnan(backfilled_share(record.select(slice(0, 0))))


@given(st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 9))), min_size=1, max_size=12))
def test_overtaking_agrees_with_its_definition(jobs: list[tuple[int, int | None]]) -> None:
    jobs = sorted(jobs, key=lambda job: job[0])
    rows = [
        {
            "submit": submit,
            "start": None if wait is None else submit + wait,
            "runtime": 1,
            "end": submit + (wait or 0) + 1,
        }
        for submit, wait in jobs
    ]
    starts = [row["start"] for row in rows]
    expected = [
        start is not None and any(earlier is not None and earlier > start for earlier in starts[:row])
        for row, start in enumerate(starts)
    ]
    assert overtook(Record.from_rows(rows)).tolist() == expected
