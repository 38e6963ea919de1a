"""Exact decimal numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import exact, rounded, rounded_seconds
from gridsim.model.time import MICROSECOND, NEVER


@pytest.mark.parametrize(("value", "told"), [(0.1, Fraction(1, 10)), (1.6, Fraction(8, 5)), (2, Fraction(2))])
def test_a_decimal_is_the_fraction_that_it_is_written_as(value: float, told: Fraction) -> None:
    assert exact(value, "load") == told


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_negative_numbers_and_texts_are_refused_by_name(value: float) -> None:
    with pytest.raises(InputError, match="field 'load'"):
        exact(value, "load")


def test_halves_are_rounded_up() -> None:
    assert [rounded(Fraction(value, 2)) for value in (0, 1, 2, 3, 5)] == [0, 1, 1, 2, 3]


def test_times_are_whole_seconds_from_one_on_without_rounding_twice() -> None:
    column = np.array([0.4, 1.4999, 2.5, 100]) * MICROSECOND
    assert (rounded_seconds(column.astype(np.int64), Fraction(1)) // MICROSECOND).tolist() == [1, 1, 3, 100]


def test_times_of_three_centuries_do_not_overflow() -> None:
    factor = Fraction(1_234_567, MICROSECOND)
    found = int(rounded_seconds(np.array([NEVER // 4]), factor)[0])
    assert found == rounded(NEVER // 4 * factor / MICROSECOND) * MICROSECOND
