"""Responsiveness metrics, computed by hand on three jobs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.responsiveness import (
    SUMMARY,
    backfilled_share,
    bounded_slowdown,
    measure,
    overtook,
    response,
    slowdown,
    summarise,
    wait,
    weighted_quantiles,
)
from gridsim.record import Record


@pytest.fixture
def record() -> Record:
    """Two jobs that ran and one that was rejected."""
    return Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 2, "cores": 1},
            {"submit": 10, "start": 30, "end": 50, "cores": 2},
            {"submit": 20, "start": None, "end": None, "cores": 9, "runtime": 5},
        ]
    )


def test_columns_are_those_worked_by_hand_and_nan_for_jobs_that_never_ran(record: Record) -> None:
    np.testing.assert_equal(wait(record), [0, 20, np.nan])
    np.testing.assert_equal(response(record), [2, 40, np.nan])
    np.testing.assert_equal(slowdown(record), [1, 2, np.nan])
    np.testing.assert_equal(bounded_slowdown(record), [1, 2, np.nan])
    np.testing.assert_equal(bounded_slowdown(record, bound=40), [1, 1, np.nan])


def test_the_bound_replaces_short_runtimes_only() -> None:
    record = Record.from_rows([{"submit": 0, "start": 30, "end": 35}, {"submit": 0, "start": 30, "end": 60}])
    assert bounded_slowdown(record).tolist() == [3.5, 2.0]
    assert bounded_slowdown(record, bound=1).tolist() == [7.0, 2.0]


def test_a_killed_job_counts_the_time_it_held() -> None:
    record = Record.from_rows([{"submit": 0, "start": 20, "end": 40, "runtime": 100, "estimate": 20, "status": 1}])
    assert slowdown(record).tolist() == [2.0]


def test_a_job_that_held_its_cores_for_no_time_has_no_slowdown() -> None:
    record = Record.from_rows([{"submit": 0, "start": 20, "end": 20, "runtime": 1}])
    assert math.isnan(slowdown(record)[0])
    assert bounded_slowdown(record).tolist() == [2.0]


def test_measures_are_found_by_name_and_bad_ones_refused(record: Record) -> None:
    np.testing.assert_equal(measure(record, "bounded_slowdown", 1.0), bounded_slowdown(record, 1.0))
    with pytest.raises(UnknownNameError, match="did you mean 'wait'"):
        measure(record, "waits")
    with pytest.raises(InputError, match="bound"):
        bounded_slowdown(record, 0)


def test_summary_by_hand() -> None:
    assert summarise(np.array([4.0, 0.0, np.nan, 2.0])) == pytest.approx(
        {"mean": 2, "median": 2, "p95": 3.8, "p99": 3.96, "max": 4}
    )


def test_weighted_summary_by_hand() -> None:
    summary = summarise(np.array([4.0, 0.0, np.nan, 2.0]), weights=[1, 1, 9, 8])
    assert summary == {"mean": 2.0, "median": 2.0, "p95": 4.0, "p99": 4.0, "max": 4.0}


def test_values_of_no_weight_count_for_nothing() -> None:
    assert summarise(np.array([1.0, 100.0]), weights=[1, 0]) == dict.fromkeys(SUMMARY, 1.0)


def test_nothing_sums_up_to_nan() -> None:
    assert all(math.isnan(value) for value in summarise(np.array([np.nan])).values())
    assert all(math.isnan(value) for value in summarise(np.array([1.0]), weights=[0]).values())


def test_a_weighted_quantile_is_the_first_value_that_carries_the_share() -> None:
    values, weights = np.array([30.0, 10.0, 20.0]), np.array([1.0, 2.0, 1.0])
    assert weighted_quantiles(values, weights, [0.0, 0.5, 0.51, 0.75, 0.76, 1.0]).tolist() == [10, 10, 20, 20, 30, 30]


def test_weighted_quantiles_agree_with_numpy_and_do_not_change_when_a_job_is_split() -> None:
    rng = np.random.default_rng(3)
    values, weights = rng.integers(0, 50, 200).astype(float), rng.integers(1, 9, 200)
    shares = [0.1, 0.5, 0.95, 0.99]
    ours = weighted_quantiles(values, weights.astype(float), shares)
    np.testing.assert_equal(ours, np.quantile(values, shares, weights=weights, method="inverted_cdf"))
    np.testing.assert_equal(ours, weighted_quantiles(np.repeat(values, weights), np.ones(weights.sum()), shares))


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


def test_no_job_overtakes_jobs_in_the_queue_of_another_cluster() -> None:
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
