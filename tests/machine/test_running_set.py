"""The running set compared with a plain list, and free capacity next to it, in one dimension and in several."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.machine.blocks import block_at
from gridsim.machine.running_set import (
    HELD,
    OWN,
    RUNNING,
    TOTAL,
    available_now,
    begin_running,
    end_running,
    expect_end,
    most_running,
    only_running,
    running_profile,
)

REQUESTS, HORIZON, TOTAL_CORES = 8, 12, 40
CORES = np.array([3, 1, 4, 1, 5, 9, 2, 6])
STEPS = st.lists(st.tuples(st.integers(0, REQUESTS - 1), st.integers(0, HORIZON), st.booleans()), max_size=40)


def ran(steps: list[tuple[int, int, bool]]) -> tuple[Any, Any, list[tuple[int, int]]]:
    """Draw columns and counts after starts, corrections and ends, and the same as a list of ends and requests."""
    running, counts = np.zeros((2, REQUESTS + 1), dtype=np.int64), np.zeros(OWN, dtype=np.int64)
    counts[TOTAL] = TOTAL_CORES
    plain: list[tuple[int, int]] = []
    for row, end, stays in steps:
        before = [each for each in plain if each[1] == row]
        if not before:
            begin_running(running, counts, row, end, CORES[row])
        elif stays:
            expect_end(running, counts, row, end)
        else:
            assert end_running(running, counts, row, CORES[row]) == before[0][0]
        plain = [each for each in plain if each[1] != row]
        if not before or stays:
            plain.append((end, row))
            plain.sort(key=lambda each: each[0])  # equal ends in order of starts
    return running, counts, plain


@settings(deadline=None)
@given(STEPS)
def test_running_requests_are_by_expected_end_and_equal_ends_in_order_of_starting(steps: Any) -> None:
    running, counts, plain = ran(steps)
    assert list(zip(*running[:, : counts[RUNNING]].tolist(), strict=True)) == plain
    assert counts[HELD] == sum(int(CORES[row]) for _, row in plain)


@settings(deadline=None)
@given(STEPS, st.integers(0, HORIZON))
def test_the_free_band_has_the_cores_that_no_job_holds(steps: Any, now: int) -> None:
    running, counts, plain = ran(steps)
    times, free = np.zeros(REQUESTS + 1, dtype=np.int64), np.zeros(REQUESTS + 1, dtype=np.int64)
    size = only_running(now, running, counts, CORES, times, free)
    assert free[0] == available_now(now, running, counts, CORES)
    assert times[0] == now
    assert (np.diff(times[:size]) > 0).all()
    for instant in range(now, HORIZON + 2):
        held = sum(int(CORES[row]) for end, row in plain if end > instant)
        assert free[block_at(times, size, instant)] == TOTAL_CORES - held


@settings(deadline=None)
@given(STEPS, st.integers(0, HORIZON))
def test_each_column_of_what_is_free_is_as_if_there_were_no_other(steps: Any, now: int) -> None:
    running, counts, plain = ran(steps)
    held = np.stack([CORES, CORES[::-1].copy()], axis=1)
    available = np.array([100, 200]) - sum((held[row] for end, row in plain if end > now), np.zeros(2, dtype=np.int64))
    times, free = np.zeros(REQUESTS + 1, dtype=np.int64), np.zeros((REQUESTS + 1, 2), dtype=np.int64)
    size = running_profile(now, available, running, counts, held, times, free)
    for column in range(2):
        alone = np.zeros(REQUESTS + 1, dtype=np.int64), np.zeros(REQUESTS + 1, dtype=np.int64)
        own = running_profile(now, available[column], running, counts, held[:, column].copy(), *alone)
        assert own == size
        assert alone[1][:size].tolist() == free[:size, column].tolist()


def test_as_many_run_at_once_as_cores_are_released_within_an_instant() -> None:
    assert (most_running(4, 100), most_running(4, 3)) == (8, 3)
