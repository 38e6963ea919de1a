"""Deadlines from a reference schedule."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND
from gridsim.workload.transform.deadlines import artificial_responses, requested_deadlines

SUBMIT, RUNTIME, RESPONSE = (np.array(values) * MICROSECOND for values in ([0, 2, 4], [20, 10, 6], [20, 28, 32]))


@pytest.mark.parametrize(
    ("stringency", "deadlines"), [(0, [20, 30, 36]), (0.2, [20, 25, 30]), (0.5, [20, 16, 20]), (1, [20, 12, 10])]
)
def test_stringency_shortens_the_response_of_the_reference(stringency: float, deadlines: list[int]) -> None:
    found = requested_deadlines(SUBMIT, RUNTIME, RESPONSE, stringency)
    assert (found // MICROSECOND).tolist() == deadlines


def test_decimal_stringencies_are_exact() -> None:
    # In floats (1 - 0.9) * 10 is above 0.9999999999999998 and 1 - 0.7 above 0.30000000000000004.
    response = np.array([10, 100]) * MICROSECOND
    runtime = np.full(2, MICROSECOND)
    assert (requested_deadlines(runtime * 0, runtime, response, 0.7) // MICROSECOND).tolist() == [3, 30]


def test_times_of_three_centuries_do_not_overflow() -> None:
    response = np.array([285 * 365 * 86400]) * MICROSECOND
    found = requested_deadlines(response * 0, response * 0, response, 0.123456)
    assert int(found[0]) // MICROSECOND == -(-(10**6 - 123456) * 285 * 365 * 86400 // 10**6)


def test_the_ceiling_is_in_ticks() -> None:
    response = np.array([MICROSECOND])
    assert requested_deadlines(response * 0, response * 0, response, 0.3, tick=0.25).tolist() == [750_000]


def test_artificial_responses_have_a_floor() -> None:
    found = artificial_responses(np.array([60, 43200, 64800]) * MICROSECOND, 2)
    assert (found // MICROSECOND).tolist() == [86400, 86400, 129600]
    assert artificial_responses(np.array([MICROSECOND]), 2.5, floor=0).tolist() == [2_500_000]


@pytest.mark.parametrize("stringency", [-0.1, 1.5, float("nan")])
def test_stringencies_beyond_0_and_1_are_refused(stringency: float) -> None:
    with pytest.raises(InputError, match="stringency"):
        requested_deadlines(SUBMIT, RUNTIME, RESPONSE, stringency)
