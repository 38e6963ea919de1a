"""Orderings: formulas over the columns of the waiting requests; lower ranks first, ties by arrival.

`__all__` contains the general ones; two others are for the order of backfilling only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.model.time import FloatArray
from gridsim.policy.protocols import Changes, Static
from gridsim.policy.queue import Queue

__all__ = [
    "DominantShare",
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
class Fifo(Static):
    """First come, first served: by submit time, then job order."""

    aliases: ClassVar[tuple[str, ...]] = ("fifo-job", "fcfs")

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return np.zeros(len(queue))


@dataclass
class ShortestEstimate(Static):
    """Shortest walltime estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("sjf", "spf")

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.estimate


@dataclass
class LongestEstimate(Static):
    """Longest walltime estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("ljf", "lpf")

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.estimate


@dataclass
class SmallestCores(Static):
    """Fewest cores first."""

    aliases: ClassVar[tuple[str, ...]] = ("narrowest",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.cores


@dataclass
class LargestCores(Static):
    """Most cores first."""

    aliases: ClassVar[tuple[str, ...]] = ("widest",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.cores


@dataclass
class SmallestArea(Static):
    """Smallest product of cores and estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("saf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.area


@dataclass
class LargestArea(Static):
    """Largest product of cores and estimate first."""

    aliases: ClassVar[tuple[str, ...]] = ("laf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return -queue.area


@dataclass
class EarliestDeadline(Static):
    """Earliest deadline first; jobs without deadline last, by arrival."""

    aliases: ClassVar[tuple[str, ...]] = ("edf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.deadline


@dataclass
class LeastLaxity(Static):
    """Least laxity first, i.e. earliest latest start (deadline minus estimate); jobs without deadline last.

    The current time is the same for all jobs, so the order does not change with time.
    """

    aliases: ClassVar[tuple[str, ...]] = ("llf",)

    def rank(self, queue: Queue, now: float) -> FloatArray:
        return queue.deadline - queue.estimate


class Ageing:
    """Orderings by a weighted power of the wait in units specific to each request; compiled cycles support them too.

    Integer powers are computed as products, so that all implementations agree in the last bit.
    """

    power: ClassVar[int] = 1
    changes: ClassVar[Changes] = "pass"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        """Return the units, s, and the weights of requests: constant positive numbers."""
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
    source: ClassVar[str] = "Tang, Lan, Desai, Buettner 2009"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return queue.estimate, queue.cores


@dataclass
class Unicef(Ageing):
    """Largest wait / (log2(cores) * estimate) first: quick turnaround for small jobs.

    Notes
    -----
    The formula divides by zero for one core. Sizes below two count as two, so serial jobs rank like two-core jobs.
    """

    source: ClassVar[str] = "Tang, Lan, Desai, Buettner 2009"

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return np.log2(np.maximum(queue.cores, 2.0)) * queue.estimate, np.ones(len(queue))


@dataclass
class Xfactor(Ageing):
    """Largest expansion factor first: (wait + estimate) / estimate."""

    def terms(self, queue: Queue) -> tuple[FloatArray, FloatArray]:
        return queue.estimate, np.ones(len(queue))


@dataclass
class Random:
    """Uniformly random order; with *hold*, a drawn request that does not fit stays the first in the queue.

    With backfilling, each scheduling cycle draws a complete order.
    """

    hold: bool = True
    changes: ClassVar[Changes] = "pass"
    source: ClassVar[str] = "Burkimsher, Bate, Indrusiak: Random"
    _rng: Generator = field(init=False, repr=False, compare=False)

    def setup(self, rng: Generator) -> None:
        """Begin a run: numbers are drawn from *rng* by ``rng.integers(n)`` only."""
        self._rng = rng

    @property
    def stream(self) -> Generator:
        """Random number generator of the ordering."""
        return self._rng

    def pick(self, queue: Queue, now: float) -> int:
        """Return the index of the next request."""
        return int(self._rng.integers(len(queue)))

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return a complete order, drawn one request after the other."""
        left = list(range(len(queue)))
        rank = np.empty(len(queue))
        for place in range(len(queue)):
            rank[left.pop(int(self._rng.integers(len(left))))] = place
        return rank


@dataclass
class DominantShare:
    """Smallest dominant share first: the largest fraction of any resource that the user's running jobs use.

    Parameters
    ----------
    by : str
        Label that identifies the user of a job: ``user``, ``account``, ``group`` … Jobs without it count as one
        user's.

    Notes
    -----
    Fractions are relative to the machine's total of each resource: cores, memory, GPUs, other resources of nodes,
    pools. On a machine with cores only, the share is the number of cores in use. Every start changes the order; equal
    shares are ordered by arrival. Past usage does not count.

    References
    ----------
    Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, *Dominant Resource Fairness*, NSDI 2011.
    """

    by: str = "user"

    aliases: ClassVar[tuple[str, ...]] = ("drf",)
    changes: ClassVar[Changes] = "start"
    source: ClassVar[str] = "Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica 2011"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the dominant share of the user of each waiting request."""
        running = queue.running
        users, waits = np.unique(queue.label(self.by), return_inverse=True)
        place = np.searchsorted(users, running.label(self.by))
        theirs = np.isin(running.label(self.by), users)
        shares = np.zeros(len(users))
        for resource, total in queue.totals.items():
            held = np.bincount(place[theirs], running.demand(resource)[theirs], len(users))
            shares = np.maximum(shares, held / total if total else 0.0)
        return shares[waits]


# -- backfill orders: of the candidates behind a blocked request with a reservation (specification of predictions, 4.2)


@dataclass
class InQueue(Static):
    """Queue order: textbook backfilling."""

    name: ClassVar[str] = "queue"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return equal ranks: ties are in queue order."""
        return queue.estimate * 0.0


@dataclass
class Shortest(Static):
    """Shortest prediction first (SJBF); the shortest estimate without predictor."""

    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the predictions, s."""
        return queue.prediction
