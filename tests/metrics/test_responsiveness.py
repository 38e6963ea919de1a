"""What jobs felt, worked by hand on three jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.responsiveness import (
    SUMMARY,
    bounded_slowdown,
    measure,
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
