"""Predictors: what jobs will run, as a scheduler believes (specification of predictions, section 2)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator

from gridsim.model.time import FloatArray
from gridsim.policy.queue import Queue

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

    def setup(self, rng: Generator) -> None:
        """Begin a run: nothing is known."""
        self._of: dict[Any, Any] = {}

    def answer(self, user: int, cores: int) -> int | None:
        """Whole microseconds that a request of a known user will run; None while too little is known."""
        raise NotImplementedError

    def learn(self, user: int, cores: int, ran: int) -> None:
        """A request of a known user ran so many microseconds."""
        raise NotImplementedError

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Seconds, by the history of each request's user; infinity for none."""
        asked = zip(queue.label("user").tolist(), queue.cores.tolist(), strict=True)
        answers = [None if user < 0 else self.answer(user, int(cores)) for user, cores in asked]
        return np.array([math.inf if answer is None else answer / 1e6 for answer in answers])

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Add what ended to the history of its user."""
        for user, cores, seconds in zip(queue.label("user").tolist(), queue.cores.tolist(), ran.tolist(), strict=True):
            if user >= 0:
                self.learn(user, int(cores), round(seconds * 1e6))


@dataclass
class Recent(History):
    """Mean of what the last *n* finished jobs of the same user ran; the request while there are fewer."""

    n: int = 2
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def __post_init__(self) -> None:
        _at_least_one(self.n)

    def answer(self, user: int, cores: int) -> int | None:
        """The mean, rounded down."""
        return _mean(self._of.get(user), self.n)

    def learn(self, user: int, cores: int, ran: int) -> None:
        """The last *n* are kept."""
        _keep(self._of, user, self.n, ran)


@dataclass
class Average(History):
    """Exponential average of what a user's jobs ran, of which the last one counts *alpha*."""

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha is {self.alpha}; a number above 0, at most 1, is needed")

    def answer(self, user: int, cores: int) -> int | None:
        """The average, rounded down."""
        average = self._of.get(user)
        return None if average is None else int(average * 1e6)

    def learn(self, user: int, cores: int, ran: int) -> None:
        """In floating point, s."""
        seconds, before = ran / 1e6, self._of.get(user)
        self._of[user] = seconds if before is None else self.alpha * seconds + (1 - self.alpha) * before


@dataclass
class Similar(History):
    """Mean of the last *n* finished jobs of the same user and size class; of all the user's jobs while they are fewer.

    Notes
    -----
    Sizes of a class have the same whole binary logarithm.
    """

    n: int = 2
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"

    def __post_init__(self) -> None:
        _at_least_one(self.n)

    def answer(self, user: int, cores: int) -> int | None:
        """The mean, rounded down."""
        alike = _mean(self._of.get((user, cores.bit_length())), self.n)
        return _mean(self._of.get(user), self.n) if alike is None else alike

    def learn(self, user: int, cores: int, ran: int) -> None:
        """The last *n* of the user are kept, and of the class."""
        _keep(self._of, user, self.n, ran)
        _keep(self._of, (user, cores.bit_length()), self.n, ran)


def _at_least_one(n: int) -> None:
    if n < 1:
        raise ValueError(f"n is {n}; at least 1 is needed")


def _keep(known: dict[Any, Any], key: Any, n: int, ran: int) -> None:
    if key not in known:
        known[key] = deque(maxlen=n)
    known[key].append(ran)


def _mean(last: Sequence[int] | None, n: int) -> int | None:
    return None if last is None or len(last) < n else sum(last) // n
