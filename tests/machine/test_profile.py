"""The profile as people use it."""

from __future__ import annotations

from gridsim.machine.profile import Block, Profile
from gridsim.model.time import NEVER


def test_a_new_profile_is_one_block_without_end() -> None:
    assert Profile(4, now=7).blocks() == [Block(7, NEVER, 4)]


def test_a_reservation_takes_cores_for_a_while_and_its_release_gives_them_back() -> None:
    profile = Profile(4)
    profile.reserve(5, 15, 3)
    assert profile.blocks() == [Block(0, 5, 4), Block(5, 15, 1), Block(15, NEVER, 4)]
    profile.release(5, 15, 3)
    assert profile.blocks() == [Block(0, NEVER, 4)]


def test_a_job_is_placed_into_the_first_hole_that_it_fits() -> None:
    profile = Profile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(20, 30, 4)
    assert profile.earliest(4, 10) == 10
    assert profile.earliest(4, 11) == 30
    assert profile.earliest(1, 20) == 0
    assert profile.place(4, 10) == 10
    assert profile.earliest(1, 11) == 30


def test_cores_given_back_at_an_instant_can_be_used_at_it() -> None:
    profile = Profile(4)
    profile.reserve(0, 10, 4)
    assert profile.place(4, 5) == 10


def test_the_past_is_forgotten() -> None:
    profile = Profile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(10, 20, 2)
    profile.advance(12)
    assert profile.blocks() == [Block(12, 20, 2), Block(20, NEVER, 4)]
    profile.advance(20)
    assert profile.blocks() == [Block(20, NEVER, 4)]


def test_a_profile_grows_with_its_blocks() -> None:
    profile = Profile(4, room=2)
    for index in range(100):
        profile.reserve(10 * index, 10 * index + 5, 1)
    assert len(profile.blocks()) == 200
    assert profile.earliest(4, 6) == 995


def test_a_copy_is_independent() -> None:
    profile = Profile(4)
    twin = profile.copy()
    twin.reserve(0, 10, 4)
    assert profile.earliest(4, 1) == 0
    assert twin.earliest(4, 1) == 10
