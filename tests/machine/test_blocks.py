"""Compiled profile operations compared with a profile as a simple list with the free cores of each instant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.machine import blocks
from gridsim.model.time import NEVER

CORES = 6
HORIZON = 24  # afterwards all cores are free


class Plain:
    """Free cores of each instant in ``[0, HORIZON)``."""

    def __init__(self) -> None:
        self.now = 0
        self.free = [CORES] * HORIZON

    def at(self, instant: int) -> int:
        return self.free[instant] if instant < HORIZON else CORES

    def change(self, start: int, end: int, cores: int) -> None:
        for instant in range(max(start, self.now), end):
            self.free[instant] += cores

    def fits(self, start: int, cores: int, duration: int) -> bool:
        return all(self.at(instant) >= cores for instant in range(start, start + duration))

    def earliest(self, cores: int, duration: int) -> int:
        return next(start for start in range(self.now, HORIZON + 1) if self.fits(start, cores, duration))


class Compiled:
    """The same operations by the kernels, with large enough arrays."""

    def __init__(self) -> None:
        self.times, self.free = np.zeros(200, dtype=np.int64), np.zeros(200, dtype=np.int64)
        self.free[0] = CORES
        self.size = 1

    def change(self, start: int, end: int, cores: int) -> None:
        self.size = blocks.change(self.times, self.free, self.size, start, end, cores, 1)

    def advance(self, now: int) -> None:
        self.size = blocks.forget(self.times, self.free, self.size, now)

    def levels(self, now: int) -> list[int]:
        places = [blocks.block_at(self.times, self.size, instant) for instant in range(now, HORIZON)]
        return list(self.free[places])


@st.composite
def profiles(draw: st.DrawFn) -> tuple[Plain, Compiled, list[tuple[int, int, int]]]:
    """Draw a plain and a compiled profile after equal reservations, releases and advances of time; and allocations."""
    plain, compiled = Plain(), Compiled()
    held: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        what = draw(st.sampled_from(["reserve", "reserve", "reserve", "release", "advance"]))
        if what == "advance":
            plain.now = draw(st.integers(plain.now, min(plain.now + 6, HORIZON - 1)))
            compiled.advance(plain.now)
        elif what == "release" and held:
            start, end, cores = held.pop(draw(st.integers(0, len(held) - 1)))
            if end > plain.now:
                plain.change(start, end, cores)
                compiled.change(max(start, plain.now), end, cores)
        else:
            start = draw(st.integers(plain.now, HORIZON - 1))
            end = draw(st.integers(start, HORIZON))
            room = min((plain.at(instant) for instant in range(start, end)), default=CORES)
            cores = draw(st.integers(0, room))
            plain.change(start, end, -cores)
            compiled.change(start, end, -cores)
            if cores and end > start:
                held.append((start, end, cores))
    return plain, compiled, held


@settings(deadline=None)
@given(profiles())
def test_a_profile_holds_what_a_list_of_free_cores_holds(made: tuple[Plain, Compiled, object]) -> None:
    plain, compiled, _ = made
    assert compiled.levels(plain.now) == plain.free[plain.now :]
    assert compiled.free[compiled.size - 1] == CORES


@settings(deadline=None)
@given(profiles())
def test_blocks_are_maximal_and_begin_now(made: tuple[Plain, Compiled, object]) -> None:
    plain, compiled, _ = made
    times, free = compiled.times[: compiled.size], compiled.free[: compiled.size]
    assert times[0] == plain.now
    assert (np.diff(times) > 0).all()
    assert (np.diff(free) != 0).all()


@settings(deadline=None)
@given(profiles(), st.integers(1, CORES), st.integers(1, HORIZON))
def test_the_earliest_place_is_the_first_that_fits(
    made: tuple[Plain, Compiled, object], cores: int, duration: int
) -> None:
    plain, compiled, _ = made
    found = blocks.earliest(compiled.times, compiled.free, compiled.size, cores, duration)
    assert found == plain.earliest(cores, duration)


@settings(deadline=None)
@given(profiles(), st.integers(1, CORES), st.integers(1, HORIZON), st.integers(0, 2 * HORIZON))
def test_the_latest_place_is_the_last_that_fits(
    made: tuple[Plain, Compiled, object], cores: int, duration: int, last: int
) -> None:
    plain, compiled, _ = made
    found = blocks.latest(compiled.times, compiled.free, compiled.size, cores, duration, last)
    able = (start for start in range(last, plain.now - 1, -1) if plain.fits(start, cores, duration))
    assert found == next(able, -1)


@settings(deadline=None)
@given(profiles(), st.integers(1, CORES), st.integers(0, HORIZON), st.integers(1, HORIZON))
def test_the_least_free_amount_within_a_time_has_the_missing_resource(
    made: tuple[Plain, Compiled, object], cores: int, start: int, duration: int
) -> None:
    plain, compiled, _ = made
    start = max(start, plain.now)
    arrays = compiled.times, compiled.free, compiled.size
    least = min(map(plain.at, range(start, start + duration)))
    assert blocks.lowest(*arrays, start, start + duration) == least
    assert blocks.short_within(*arrays, cores, start, start + duration) == (least < cores)


@settings(deadline=None)
@given(profiles(), st.integers(1, CORES), st.integers(1, HORIZON))
def test_a_job_fits_now_when_its_cores_are_free_throughout(
    made: tuple[Plain, Compiled, object], cores: int, duration: int
) -> None:
    plain, compiled, _ = made
    found = blocks.fits(compiled.times, compiled.free, compiled.size, cores, duration)
    assert found == plain.fits(plain.now, cores, duration)


@settings(deadline=None)
@given(profiles(), st.integers(1, CORES), st.integers(1, HORIZON))
def test_where_a_profile_falls_says_the_same_of_what_is_free_now(
    made: tuple[Plain, Compiled, object], cores: int, duration: int
) -> None:
    plain, compiled, _ = made
    cores = min(cores, plain.at(plain.now))
    when, least = np.zeros_like(compiled.times), np.zeros_like(compiled.times)
    count = blocks.falls(compiled.times, compiled.free, compiled.size, plain.at(plain.now), when, least)
    assert [int(at) for at in when[:count]] == [
        at for at in range(plain.now + 1, HORIZON + 1) if plain.at(at) < min(map(plain.at, range(plain.now, at)))
    ]
    found = blocks.fits_before(when, least, count, cores, plain.now + duration)
    assert found == plain.fits(plain.now, cores, duration)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(profiles(), st.data())
def test_a_planned_job_moves_to_the_earliest_place_among_all_others(
    made: tuple[Plain, Compiled, list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    plain, compiled, held = made
    ahead = [place for place in held if place[0] >= plain.now]
    if not ahead:
        return
    start, end, cores = data.draw(st.sampled_from(ahead))
    found = blocks.earlier(compiled.times, compiled.free, compiled.size, cores, end - start, start, NEVER, plain.now)
    plain.change(start, end, cores)
    assert found == plain.earliest(cores, end - start)
    assert found <= start


def test_a_change_of_no_time_changes_nothing() -> None:
    compiled = Compiled()
    compiled.change(5, 5, -3)
    assert compiled.size == 1


def test_the_block_of_an_instant_begins_at_or_before_it() -> None:
    times = np.array([0, 10, 20])
    assert [blocks.block_at(times, 3, instant) for instant in (0, 9, 10, 19, 20, 99)] == [0, 0, 1, 1, 2, 2]


def test_a_job_planned_beyond_all_that_was_released_is_not_looked_for() -> None:
    """Cores are free now, but not by the released blocks: the plan was left-shifted, so the job cannot move."""
    compiled = Compiled()
    compiled.change(0, 10, -CORES)
    compiled.change(10, 15, -CORES)
    compiled.change(2, 4, CORES)  # free cores that the released blocks do not contain
    assert blocks.earlier(compiled.times, compiled.free, compiled.size, CORES, 2, 10, NEVER, 0) == 2
    assert blocks.earlier(compiled.times, compiled.free, compiled.size, CORES, 2, 10, 1, 0) == 10


AMOUNTS = st.tuples(st.integers(0, 2), st.integers(0, 2))
CHANGES = st.lists(
    st.tuples(st.integers(0, HORIZON - 1), st.integers(0, HORIZON), AMOUNTS, st.booleans(), st.integers(0, 3)),
    max_size=20,
)


@pytest.mark.long
@settings(deadline=None)
@given(CHANGES, st.integers(1, HORIZON), AMOUNTS)
def test_blocks_of_several_columns_are_those_of_each_column_laid_over_one_another(
    changes: list[tuple[int, int, tuple[int, int], bool, int]], duration: int, need: tuple[int, int]
) -> None:
    wide = np.zeros(100, dtype=np.int64), np.zeros((100, 2), dtype=np.int64)
    wide[1][0] = 100
    plain, size, now = np.full((HORIZON + 1, 2), 100), 1, 0
    for start, end, drawn, take, passed in changes:
        now = min(now + passed, HORIZON - 1)
        size = blocks.forget(*wide, size, now)
        start, amount = max(start, now), np.array(drawn)
        change = blocks.reserve if take else blocks.release
        size = change(*wide, size, start, end, amount)
        plain[start:end] += -amount if take else amount
    times, free = wide[0][:size], wide[1][:size]
    assert times[0] == now
    assert (np.diff(times) > 0).all()
    assert (np.diff(free, axis=0) != 0).any(axis=1).all(), "neighbours differ"
    for instant in range(now, HORIZON + 1):
        assert free[blocks.block_at(times, size, instant)].tolist() == plain[instant].tolist()
    low = np.array(need) + 98
    enough = [(plain[instant : instant + duration] >= low).all() for instant in range(HORIZON + 1)]
    assert blocks.fits(*wide, size, low, duration) == enough[now]
    if enough[HORIZON]:
        found = next(start for start in range(now, HORIZON + 1) if enough[start])
        assert blocks.earliest(*wide, size, low, duration) == found


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(profiles(), st.data())
def test_a_job_that_moves_to_the_front_leaves_what_it_would_by_going_and_coming(
    made: tuple[Plain, Compiled, list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    plain, compiled, held = made
    ahead = [place for place in held if place[0] > plain.now]
    if not ahead:
        return
    old, end, cores = data.draw(st.sampled_from(ahead))
    plain.change(old, end, cores)
    new = plain.earliest(cores, end - old)
    if new == old:
        return
    compiled.size = blocks.move(compiled.times, compiled.free, compiled.size, old, new, end - old, cores)
    plain.change(new, new + end - old, -cores)
    assert compiled.levels(plain.now) == plain.free[plain.now :]
    assert (np.diff(compiled.times[: compiled.size]) > 0).all()
    assert (np.diff(compiled.free[: compiled.size]) != 0).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_blocks_of_two_resources_hold_what_each_of_them_does(changes: list[tuple[int, int, int, int]]) -> None:
    wide, size = (np.zeros(60, dtype=np.int64), np.full((60, 2), 40)), 1
    alone = [Compiled(), Compiled()]
    for start, end, *amounts in changes:
        size = blocks.reserve(*wide, size, start, end, np.array(amounts))
        for one, amount in zip(alone, amounts, strict=True):
            one.change(start, end, -amount)
    times, free = wide[0][:size], wide[1][:size]
    assert (np.diff(times) > 0).all()
    assert (np.diff(free, axis=0) != 0).any(axis=1).all(), "neighbours differ"
    for k, one in enumerate(alone):
        found = [free[blocks.block_at(wide[0], size, instant), k] - 40 for instant in range(HORIZON)]
        assert found == [level - CORES for level in one.levels(0)]
