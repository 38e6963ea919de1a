"""Whole microseconds and seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.time import NEVER, seconds, to_us


@pytest.mark.parametrize(
    ("given_seconds", "microseconds"),
    [(0, 0), (3, 3_000_000), (1.5, 1_500_000), (0.000_000_5, 0), (0.000_001_5, 2), (0.1, 100_000)],
)
def test_seconds_are_rounded_to_whole_microseconds_half_to_even(given_seconds: float, microseconds: int) -> None:
    assert to_us(given_seconds) == microseconds


@pytest.mark.parametrize("unknown", [math.inf, -math.inf, math.nan])
def test_infinite_and_undefined_times_become_never(unknown: float) -> None:
    assert to_us(unknown) == NEVER
    assert to_us(np.array([1.0, unknown])).tolist() == [1_000_000, NEVER]


def test_whole_columns_stay_whole() -> None:
    column = to_us(np.array([0, 2**40], dtype=np.int64))
    assert column.dtype == np.int64
    assert column.tolist() == [0, 2**40 * 1_000_000]


def test_never_is_infinity_as_a_number_and_not_there_in_a_column() -> None:
    assert seconds(NEVER) == math.inf
    column = seconds(np.array([500_000, NEVER]))
    assert column[0] == 0.5
    assert np.isnan(column[1])


def test_an_empty_column_has_no_times() -> None:
    assert to_us(np.array([])).tolist() == []
    assert seconds(np.array([], dtype=np.int64)).tolist() == []


@given(st.integers(0, 10**15))
def test_microseconds_survive_the_way_through_seconds(instant: int) -> None:
    assert to_us(seconds(instant)) == instant


@pytest.mark.parametrize("value", [1e300, 2**70, 10**400, 2**62, np.uint64(2**63), float("nan"), float("inf")])
def test_an_instant_beyond_64_bits_is_never(value: Any) -> None:
    assert to_us(value) == NEVER
    assert to_us(np.array([0, value], dtype=object)).tolist() == [0, NEVER]


def test_a_time_long_before_the_origin_stays_before_it() -> None:
    assert to_us(-1e300) < 0
    assert to_us(-(2**62)) < 0
    assert to_us(np.array([-(2**70), -1], dtype=object)).tolist() == [-NEVER, -1_000_000]
