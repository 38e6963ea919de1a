"""Free cores over time: blocks that are reserved, released, searched and removed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import blocks
from gridsim.model.time import NEVER, IntArray


class Block(NamedTuple):
    """A maximal stretch of constant free cores, ``[start, end)`` in whole microseconds."""

    start: int
    end: int
    free: int


class Profile:
    """Free cores over time from the current time on, as in `gridsim.machine.blocks`."""

    def __init__(self, cores: int, now: int = 0, room: int = 256) -> None:
        self.times: IntArray = np.zeros(room, dtype=np.int64)
        self.free: IntArray = np.zeros(room, dtype=np.int64)
        self.times[0], self.free[0] = now, cores
        self.size = 1

    def advance(self, now: int) -> None:
        """Remove the part before *now*."""
        self.size = blocks.forget(self.times, self.free, self.size, now)

    def reserve(self, start: int, end: int, cores: int) -> None:
        """Reserve *cores* during ``[start, end)``."""
        self.size = blocks.reserve(self.times, self.free, self.size, start, end, cores)

    def release(self, start: int, end: int, cores: int) -> None:
        """Release *cores* during ``[start, end)``."""
        self.size = blocks.release(self.times, self.free, self.size, start, end, cores)

    def earliest(self, cores: int, duration: int) -> int:
        """Return the first instant from which *cores* are free for *duration* (spec of the deadline papers, 2.3)."""
        return int(blocks.earliest(self.times, self.free, self.size, cores, duration))

    def place(self, cores: int, duration: int) -> int:
        """Reserve at `earliest` and return the start."""
        start = self.earliest(cores, duration)
        self.reserve(start, start + duration, cores)
        return start

    def blocks(self) -> list[Block]:
        """Return all free-time blocks in order; the last one has no end."""
        ends = [*self.times[1 : self.size].tolist(), NEVER]
        starts, free = self.times[: self.size].tolist(), self.free[: self.size].tolist()
        return [Block(*block) for block in zip(starts, ends, free, strict=True)]


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


def test_cores_released_at_an_instant_can_be_used_at_it() -> None:
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


def test_a_profile_has_a_block_for_each_change() -> None:
    profile = Profile(4)
    for index in range(100):
        profile.reserve(10 * index, 10 * index + 5, 1)
    assert len(profile.blocks()) == 200
    assert profile.earliest(4, 6) == 995
