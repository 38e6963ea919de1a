"""Predictors: what jobs will run, as a scheduler believes (specification of predictions, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator

from gridsim.model.time import MICROSECOND, FloatArray
from gridsim.policy.histories import AVERAGE, RECENT, REQUEST, SIMILAR, TOLD, Histories, answer, learn
from gridsim.policy.queue import Queue, Requests

__all__ = ["Average", "Clairvoyant", "Predictor", "Recent", "Requested", "Similar"]


class Predictor(Protocol):
    """What will a request run? Asked once, when it comes; told of every end.

    A dataclass, whose fields are its parameters; what it learns in a run begins in `setup`. One with ``oracle`` true is
    told all run times, ``setup(rng, runtime)`` in seconds, and results say so.
    """

    def setup(self, rng: Generator) -> None:
        """Begin a run: nothing is known."""
        ...

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Seconds, one for each request that comes *now*, in job order; infinity means as requested.

        Answers are cut at the request and at one tick, and rounded down to whole ticks.
        """
        ...

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """These requests ended *now*, in this order, and *ran* so many seconds, no more than they asked for."""
        ...


@dataclass
class Requested:
    """What the user asked for: no prediction at all."""

    def setup(self, rng: Generator) -> None:
        """Nothing to begin."""

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """The estimates, s."""
        return queue.estimate

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Nothing to learn."""


@dataclass
class Clairvoyant:
    """What the job will run: plans with true run times, for comparison only."""

    oracle: ClassVar[bool] = True

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """Columns with room for the run times; there is nothing to learn."""
        return Histories(requests, TOLD, corrector, tick=tick)

    def setup(self, rng: Generator, runtime: FloatArray) -> None:
        """Run times of all requests, s."""
        self._runtime = runtime

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Run times, s, cut at the estimates."""
        return np.minimum(self._runtime[queue.rows], queue.estimate)

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Nothing to learn."""


class History:
    """Predictors that learn what jobs of a user ran; a user who is not known has no history and makes none."""

    rule: ClassVar[int]

    def setup(self, rng: Generator) -> None:
        """Begin a run: nothing is known."""
        self._histories: Histories | None = None

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """Columns to learn in, for a run of these requests."""
        raise NotImplementedError

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Seconds, by the history of each request's user; infinity for none."""
        answers = np.array([answer(row, self._beliefs(queue, row)) for row in queue.rows.tolist()], dtype=np.float64)
        return np.where(answers < 0, np.inf, answers / 1e6)

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Add what ended to the history of its user."""
        for row, seconds in zip(queue.rows.tolist(), ran.tolist(), strict=True):
            learn(row, round(seconds * 1e6), self._beliefs(queue, row))

    def _beliefs(self, queue: Queue, row: int) -> tuple[Any, ...]:
        if self._histories is None:
            self._histories = self.histories(queue.requests)
        if row >= queue.requests.known:
            self._histories.add(row)
        return tuple(self._histories.beliefs)


@dataclass
class Recent(History):
    """Mean of what the last *n* finished jobs of the same user ran; the request while there are fewer."""

    n: int = 2
    rule: ClassVar[int] = RECENT
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def __post_init__(self) -> None:
        _at_least_one(self.n)

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """The last *n* jobs of each user; their mean is rounded down."""
        return Histories(requests, self.rule, corrector, tick=tick, mean_of=self.n)


@dataclass
class Average(History):
    """Exponential average of what a user's jobs ran, of which the last one counts *alpha*."""

    alpha: float = 0.5
    rule: ClassVar[int] = AVERAGE

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha is {self.alpha}; a number above 0, at most 1, is needed")

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """The average of each user, in floating point, s; answers are rounded down."""
        return Histories(requests, self.rule, corrector, tick=tick, weight=self.alpha)


@dataclass
class Similar(Recent):
    """Mean of the last *n* finished jobs of the same user and size class; of all the user's jobs while they are fewer.

    Notes
    -----
    Sizes of a class have the same whole binary logarithm.
    """

    rule: ClassVar[int] = SIMILAR
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"


def _at_least_one(n: int) -> None:
    if n < 1:
        raise ValueError(f"n is {n}; at least 1 is needed")
