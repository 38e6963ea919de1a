"""Reservation rules: who holds a promised start while others are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsim.policy.protocols import Lanes
from gridsim.policy.queue import Queue

__all__ = ["Depth", "Easy", "FirstFit", "Strict"]


def _one_lane(queue: Queue, capacity: int) -> Lanes:
    return Lanes(np.zeros(len(queue), dtype=np.int64), np.array([capacity], dtype=np.int64))


@dataclass
class Strict:
    """Nobody passes a blocked head: plain list scheduling, FCFS with a first-come order."""

    blocking: ClassVar[bool] = True

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, 0)


@dataclass
class FirstFit:
    """Whatever fits starts, nobody holds a promise: wide jobs can starve."""

    blocking: ClassVar[bool] = False
    aliases: ClassVar[tuple[str, ...]] = ("none",)

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, 0)


@dataclass
class Easy:
    """The head of the queue is protected: others start if they do not delay it (aggressive backfilling)."""

    blocking: ClassVar[bool] = False
    source: ClassVar[str] = "Lifka 1995"

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, 1)


@dataclass
class Depth:
    """The first *k* blocked requests are protected; ``k = 1`` is EASY."""

    k: int = 8
    blocking: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k is {self.k}; at least 0 is needed")

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, self.k)
