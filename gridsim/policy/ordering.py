"""Orderings: formulas over the waiting requests' columns; lower ranks first, ties by arrival."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.model.time import FloatArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import Queue

__all__ = [
    "EarliestDeadline",
    "Fifo",
    "LargestArea",
    "LargestCores",
    "LeastLaxity",
    "LongestEstimate",
    "Random",
    "ShortestEstimate",
    "SmallestArea",
    "SmallestCores",
    "Unicef",
    "Wfp3",
    "Xfactor",
]


@dataclass
class Fifo:
    """First come, first served: by submit time, then job order."""

    aliases: ClassVar[tuple[str, ...]] = ("fifo-job", "fcfs")
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return np.zeros(len(queue))


@dataclass
class ShortestEstimate:
    """Shortest walltime estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("sjf", "spf")
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.estimate


@dataclass
class LongestEstimate:
    """Longest walltime estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("ljf", "lpf")
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.estimate


@dataclass
class SmallestCores:
    """Fewest cores first."""

    aliases: ClassVar[tuple[str, ...]] = ("narrowest",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.cores


@dataclass
class LargestCores:
    """Most cores first."""

    aliases: ClassVar[tuple[str, ...]] = ("widest",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.cores


@dataclass
class SmallestArea:
    """Least cores times estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("saf",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.area


@dataclass
class LargestArea:
    """Most cores times estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("laf",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.area


@dataclass
class EarliestDeadline:
    """Earliest deadline first; jobs without one last, by arrival."""

    aliases: ClassVar[tuple[str, ...]] = ("edf",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.deadline


@dataclass
class LeastLaxity:
    """Least laxity first, which is earliest latest start: deadline minus estimate; jobs without deadline last.

    The present is common to all, so the order does not change with time.
    """

    aliases: ClassVar[tuple[str, ...]] = ("llf",)
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.deadline - queue.estimate


class Ageing:
    """Orderings by a power of the wait in units of a request's own, times a weight; compiled passes work it out too.

    Whole powers are products, so that the last bits are the same wherever it is computed.
    """

    power: ClassVar[int] = 1

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        """The units, s, and the weights of requests: numbers above 0 that never change."""
        raise NotImplementedError

    def rank(self, queue: Queue, now: float) -> FloatArray:
        unit, weight = self.terms(queue)
        waited = (now - queue.submit) / unit
        grown = waited
        for _ in range(self.power - 1):
            grown = grown * waited
        return -grown * weight


@dataclass
class Wfp3(Ageing):
    """Largest (wait / estimate)^3 * cores first: favours old, short and wide jobs."""

    power: ClassVar[int] = 3
    changes: ClassVar[Changes] = "pass"
    source: ClassVar[str] = "Tang, Lan, Desai, Buettner 2009"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return queue.estimate, queue.cores


@dataclass
class Unicef(Ageing):
    """Largest wait / (log2(cores) * estimate) first: quick turnaround for small jobs.

    Notes
    -----
    The formula divides by zero for one core. Sizes below two count as two, so serial jobs rank as the two-core ones do.
    """

    changes: ClassVar[Changes] = "pass"
    source: ClassVar[str] = "Tang, Lan, Desai, Buettner 2009"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return np.log2(np.maximum(queue.cores, 2.0)) * queue.estimate, np.ones(len(queue))


@dataclass
class Xfactor(Ageing):
    """Largest expansion factor first: (wait + estimate) / estimate."""

    changes: ClassVar[Changes] = "pass"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return queue.estimate, np.ones(len(queue))


@dataclass
class Random:
    """Drawn uniformly from the waiting requests; with *hold*, a drawn request that does not fit stays the head.

    Under a rule that lets others pass, a pass draws one whole order.
    """

    hold: bool = True
    changes: ClassVar[Changes] = "pass"
    source: ClassVar[str] = "Burkimsher, Bate, Indrusiak: Random"
    _rng: Generator = field(init=False, repr=False, compare=False)

    def setup(self, rng: Generator) -> None:
        """Begin a run: draws come from *rng*, by ``rng.integers(n)`` alone."""
        self._rng = rng

    @property
    def stream(self) -> Generator:
        """What it draws from."""
        return self._rng

    def pick(self, queue: Queue, now: float) -> int:
        """Index of the next request."""
        return int(self._rng.integers(len(queue)))

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """A whole order, drawn one after the other."""
        left = list(range(len(queue)))
        rank = np.empty(len(queue))
        for place in range(len(queue)):
            rank[left.pop(int(self._rng.integers(len(left))))] = place
        return rank
