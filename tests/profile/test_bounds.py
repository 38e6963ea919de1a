"""Searches that begin where others ended, against searches from the present."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.profile.blocks import earliest, earliest_from, reserve
from gridsim.profile.bounds import SLOTS, bound_of, forget_bounds, no_bounds, remember, slot_of

CORES = 6
MINUTE = 60_000_000


def test_what_was_found_holds_for_its_kind_and_until_the_next_series() -> None:
    bounds = no_bounds()
    forget_bounds(bounds)
    slot = slot_of(4, MINUTE)
    assert bound_of(bounds, slot, 4, MINUTE, 7) == 7, "nothing is known"
    remember(bounds, slot, 4, MINUTE, 99)
    assert bound_of(bounds, slot, 4, MINUTE, 7) == 99
    assert bound_of(bounds, slot, 3, MINUTE, 7) == bound_of(bounds, slot, 4, MINUTE + 1, 7) == 7, "another kind"
    forget_bounds(bounds)
    assert bound_of(bounds, slot, 4, MINUTE, 7) == 7


def test_kinds_spread_over_the_slots() -> None:
    hours = [MINUTE * minutes for minutes in (10, 30, 60, 240, 720, 1440, 4320)]
    slots = [slot_of(cores, length) for cores in (1, 2, 4, 8, 16, 32, 64, 128, 256) for length in hours]
    assert all(0 <= slot < SLOTS for slot in slots)
    assert len(set(slots)) > 0.8 * len(slots)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, CORES), st.integers(1, 4)), min_size=1, max_size=40))
def test_jobs_placed_one_after_the_other_find_what_a_search_from_the_present_finds(jobs: list[tuple[int, int]]) -> None:
    times, free, size = np.zeros(100, dtype=np.int64), np.full(100, CORES), 1
    bounds = no_bounds()
    forget_bounds(bounds)
    for cores, length in jobs:
        slot = slot_of(cores, length)
        begin = bound_of(bounds, slot, cores, length, 0)
        start = earliest_from(times, free, size, cores, length, begin)
        assert start == earliest(times, free, size, cores, length)
        remember(bounds, slot, cores, length, start)
        size = reserve(times, free, size, start, start + length, cores)
