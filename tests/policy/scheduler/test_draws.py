"""Numbers that compiled loops draw are those of NumPy's generator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import MT19937, Generator

from gridsim.policy.scheduler.draws import draw_below, drawing


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of the same loop uncompiled: 64 bits are all that count
@pytest.mark.parametrize("seed", range(6))
def test_the_same_stream_from_wherever_the_generator_stands(seed: int) -> None:
    ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
    for rng in (ours, theirs):
        rng.random(seed)
        if seed % 2:
            rng.integers(5)  # half of a step is kept
    draws = drawing(ours)
    assert draws is not None
    wide = (1, 2, 3, 7, 1000, 2**16 + 1, 2**31, 2**31 + 1, 3 * 2**30 + 5, 2**32 - 1)  # some refuse a draw in two
    for most in np.random.default_rng(99).choice(wide, 2000).tolist():
        assert draw_below(draws, most) == theirs.integers(most)


def test_of_another_generator_nothing_is_known() -> None:
    assert drawing(Generator(MT19937(1))) is None
