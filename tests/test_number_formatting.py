"""Formatting of numbers."""

from __future__ import annotations

import pytest

from gridsim.number_formatting import duration, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (59.4, "59.4 s"),
        (59.9, "1 min"),
        (119.6, "2 min"),
        (3599.7, "1 h"),
        (86_399.0, "1 d"),
        (86_400 * 150.0, "150 d"),
        (-90.0, "-1 min 30 s"),
        (1e-5, "1e-05 s"),
    ],
)
def test_durations_have_two_units_at_most_and_carry_over(value: float, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(("share", "text"), [(1.0, "100 %"), (0.0949, "9.5 %"), (0.0999, "10 %"), (0.0004, "0.04 %")])
def test_shares_have_the_decimals_they_need(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("share", "text"), [(0.9951, "99.5 %"), (-0.9996, "-99.96 %"), (0.999999, "99.99 %")])
def test_less_than_all_is_not_rounded_to_all(share: float, text: str) -> None:
    """A mean wait of 3 min is not "100 % less" than one of 1 d."""
    assert percent(share) == text
