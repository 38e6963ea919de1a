"""Reservation rules: which blocked requests hold a reservation while others are backfilled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.moldable import weight_bounds, weight_category
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.policy.capabilities import blocks
from gridsim.policy.protocols import Lanes, lanes_of
from gridsim.policy.queue import Queue


class _OneLane:
    """Rule under which the first blocked requests hold a reservation."""

    blocking: ClassVar[bool] = False
    _most: ClassVar[int] = 0

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, self._most)


def _one_lane(queue: Queue, capacity: int) -> Lanes:
    return Lanes(np.zeros(len(queue), dtype=np.int64), np.array([capacity], dtype=np.int64))


@dataclass
class Strict(_OneLane):
    """No backfilling: plain list scheduling; FCFS with a first-come order."""

    blocking: ClassVar[bool] = True


@dataclass
class FirstFit(_OneLane):
    """Every request that fits starts, and no request holds a reservation: wide jobs can starve."""

    aliases: ClassVar[tuple[str, ...]] = ("none",)


@dataclass
class Easy(_OneLane):
    """The first job in the queue holds a reservation; others start if they do not delay it (aggressive backfill)."""

    source: ClassVar[str] = "Lifka 1995"
    _most: ClassVar[int] = 1


@dataclass
class Depth:
    """The first *k* blocked requests hold a reservation; ``k = 1`` is EASY."""

    k: int = 8
    blocking: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k is {self.k}; at least 0 is needed")

    def lanes(self, queue: Queue) -> Lanes:
        return _one_lane(queue, self.k)


@dataclass
class Category:
    """One reservation per weight category: the oldest blocked request of the category holds it until it starts.

    Parameters
    ----------
    count : int
        Number of categories.
    first, ratio : float
        Largest weight of the first category, core-seconds, and the ratio of the largest weights of consecutive
        categories; the last category is unbounded.
    key : {"weight", "estimate"}
        Categories by effective sequential runtime (cores times estimate for rigid jobs), or by walltime estimate.
    """

    count: int = 10
    first: float = 100.0
    ratio: float = 3.0
    key: str = "weight"
    blocking: ClassVar[bool] = False
    holders: ClassVar[str] = "acquired"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003; Lawson, Smirni 2002"

    def __post_init__(self) -> None:
        weight_bounds(self.count, self.first, self.ratio)
        if self.key not in ("weight", "estimate"):
            raise ValueError(f"key is {self.key!r}; weight or estimate is needed")

    def lanes(self, queue: Queue) -> Lanes:
        weight = queue.weight if self.key == "weight" else queue.estimate
        lane = weight_category(weight, weight_bounds(self.count, self.first, self.ratio)) - 1
        return Lanes(lane, np.ones(self.count, dtype=np.int64))


@dataclass
class Selective:
    """Reservations for requests whose expansion factor, (waited + weight) / weight, is above *k*.

    Parameters
    ----------
    k : float
        The threshold, above 1.
    others : ReservationRule
        Rule for the reservations of the other requests.
    """

    k: float = 4.0
    others: Any = field(default_factory=Easy)
    name: ClassVar[str] = "xfactor"
    renamed: ClassVar[Mapping[str, str]] = {"besides": "others"}
    blocking: ClassVar[bool] = False
    holders: ClassVar[str] = "acquired"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003; Srinivasan et al. 2002"

    def __post_init__(self) -> None:
        if not 1 < self.k < float("inf"):
            raise ValueError(f"k is {self.k}; a threshold above 1 is needed")
        if blocks(self.others):
            raise InputError("a rule without backfilling needs no reservations", field="others")

    def lanes(self, queue: Queue) -> Lanes:
        lanes = lanes_of(self.others, queue)
        # Rounded down to whole microseconds: a whole instant is later than the exact one if it is later than this.
        waited = np.minimum(np.floor((self.k - 1) * queue.weight * MICROSECOND + 1e-3), float(NEVER)).astype(np.int64)
        return lanes._replace(due=np.minimum(queue.requests.submit[queue.rows] + waited, NEVER))
