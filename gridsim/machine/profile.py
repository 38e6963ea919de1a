"""The profile of one cluster as people use it; compiled passes work on its blocks directly."""

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
    """Free cores over time, from the present on.

    Parameters
    ----------
    cores : int
        Free cores, for good, before anything is reserved.
    now : int
        The present, whole microseconds.

    Examples
    --------
    >>> profile = Profile(4)
    >>> profile.reserve(0, 10, 3)
    >>> profile.earliest(2, 5), profile.earliest(1, 5)
    (10, 0)
    >>> profile.blocks()
    [Block(start=0, end=10, free=1), Block(start=10, end=2305843009213693952, free=4)]
    """

    __slots__ = ("free", "size", "times")

    def __init__(self, cores: int, now: int = 0, *, room: int = 64) -> None:
        self.times: IntArray = np.zeros(room, dtype=np.int64)
        self.free: IntArray = np.zeros(room, dtype=np.int64)
        self.times[0], self.free[0] = now, cores
        self.size = 1

    def _ensure(self, blocks: int) -> None:
        """Make room for *blocks* blocks; doubles, so that growing is linear in the end."""
        if blocks > len(self.times):
            room = max(blocks, 2 * len(self.times))
            self.times = np.concatenate([self.times, np.zeros(room - len(self.times), dtype=np.int64)])
            self.free = np.concatenate([self.free, np.zeros(room - len(self.free), dtype=np.int64)])

    def advance(self, now: int) -> None:
        """Forget what lies before *now*."""
        self.size = blocks.forget(self.times, self.free, self.size, now)

    def reserve(self, start: int, end: int, cores: int) -> None:
        """Take *cores* during ``[start, end)``."""
        self._ensure(self.size + 2)
        self.size = blocks.reserve(self.times, self.free, self.size, start, end, cores)

    def release(self, start: int, end: int, cores: int) -> None:
        """Give *cores* back during ``[start, end)``."""
        self._ensure(self.size + 2)
        self.size = blocks.release(self.times, self.free, self.size, start, end, cores)

    def earliest(self, cores: int, duration: int) -> int:
        """First instant from which *cores* are free for *duration* (spec of the deadline papers, 2.3)."""
        return int(blocks.earliest(self.times, self.free, self.size, cores, duration))

    def place(self, cores: int, duration: int) -> int:
        """Reserve at `earliest` and say where."""
        start = self.earliest(cores, duration)
        self.reserve(start, start + duration, cores)
        return start

    def blocks(self) -> list[Block]:
        """All free-time blocks in order; the last one ends never."""
        ends = [*self.times[1 : self.size].tolist(), NEVER]
        starts, free = self.times[: self.size].tolist(), self.free[: self.size].tolist()
        return [Block(*block) for block in zip(starts, ends, free, strict=True)]

    def copy(self) -> Profile:
        """An independent profile with the same blocks."""
        twin = Profile.__new__(Profile)
        twin.times, twin.free, twin.size = self.times.copy(), self.free.copy(), self.size
        return twin
