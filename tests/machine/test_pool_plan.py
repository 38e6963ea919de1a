"""Searches that start from cached results, compared with searches from the current time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.machine.blocks import earliest, earliest_from, reserve
from gridsim.machine.pool_plan import BOUND, KINDS, forget_bounds, kind_of, no_bounds

CORES = 6
MINUTE = 60_000_000


def test_bounds_hold_for_their_kind_and_larger_demands_until_the_next_series() -> None:
    bounds = no_bounds()

    def bound_of(cores: int, length: int) -> int:
        return int(bounds[BOUND, kind_of(bounds, cores, length, 7)])

    forget_bounds(bounds)
    assert bound_of(4, MINUTE) == 7, "nothing is known"
    bounds[BOUND, kind_of(bounds, 4, MINUTE, 7)] = 99
    assert bound_of(4, MINUTE) == bound_of(5, MINUTE) == bound_of(4, MINUTE + 1) == 99
    assert bound_of(3, MINUTE + 1) == bound_of(5, MINUTE - 1) == 7, "less of one of them"
    forget_bounds(bounds)
    assert bound_of(4, MINUTE) == 7


def test_of_many_kinds_the_last_ones_are_known() -> None:
    bounds = no_bounds()
    forget_bounds(bounds)
    kinds = [(1 + k, (1000 - k) * MINUTE) for k in range(3 * KINDS)]  # none is as wide and long as another
    for k, (cores, length) in enumerate(kinds):
        bounds[BOUND, kind_of(bounds, cores, length, 0)] = k
    last = [k for k in range(2 * KINDS, 3 * KINDS) if bounds[BOUND, kind_of(bounds, *kinds[k], 0)] == k]
    assert len(last) > KINDS // 4, "slots are shared"
    assert all(bounds[BOUND, kind_of(bounds, *kinds[k], 0)] in (0, k) for k in range(3 * KINDS))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, CORES), st.integers(1, 4)), min_size=1, max_size=40))
def test_jobs_placed_one_after_the_other_find_what_a_search_from_the_present_finds(jobs: list[tuple[int, int]]) -> None:
    times, free, size = np.zeros(100, dtype=np.int64), np.full(100, CORES), 1
    bounds = no_bounds()
    forget_bounds(bounds)
    for cores, length in jobs:
        kind = kind_of(bounds, cores, length, 0)
        start = earliest_from(times, free, size, cores, length, bounds[BOUND, kind])
        assert start == earliest(times, free, size, cores, length)
        bounds[BOUND, kind] = start
        size = reserve(times, free, size, start, start + length, cores)
