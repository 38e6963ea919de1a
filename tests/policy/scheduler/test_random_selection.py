"""Random numbers of compiled loops are those of NumPy's generator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import MT19937, Generator

from gridsim.policy.scheduler.random_selection import draw_below, draw_order, drawing


@pytest.mark.filterwarnings("ignore:overflow encountered")  # the same loop uncompiled: only 64 bits count
@pytest.mark.parametrize("seed", range(6))
def test_the_same_stream_from_wherever_the_generator_stands(seed: int) -> None:
    ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
    for rng in (ours, theirs):
        rng.random(seed)
        if seed % 2:
            rng.integers(5)  # half of a step is stored
    draws = drawing(ours)
    assert draws is not None
    wide = (1, 2, 3, 7, 1000, 2**16 + 1, 2**31, 2**31 + 1, 3 * 2**30 + 5, 2**32 - 1)  # some reject one draw in two
    for most in np.random.default_rng(99).choice(wide, 2000).tolist():
        assert draw_below(draws, most) == theirs.integers(most)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@settings(deadline=None)
@given(st.permutations(range(9)), st.integers(0, 7), st.integers(0, 9))
def test_a_queue_is_drawn_one_after_the_other_from_those_left_in_job_order(
    rows: list[int], head: int, seed: int
) -> None:
    tail = head + len(rows)
    waiting = np.array([-1] * head + rows + [-2], dtype=np.int64)
    counts, keys = np.array([0, 0, 0, head, tail], dtype=np.int64), np.zeros(9, dtype=np.int64)
    draws = drawing(np.random.default_rng(seed))
    assert draws is not None
    draw_order(draws, waiting, counts, keys, np.zeros((2, 9), dtype=np.int64))
    rng, left = np.random.default_rng(seed), sorted(rows)
    expected = [left.pop(int(rng.integers(len(left)))) for _ in rows]
    assert waiting.tolist() == [-1] * head + expected + [-2]
    assert draw_below(draws, 1000) == rng.integers(1000)


def test_of_another_generator_nothing_is_known() -> None:
    assert drawing(Generator(MT19937(1))) is None
