"""Predictors of run times, and correctors of predictions (specification of predictions, sections 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator

from gridsim.model.time import MICROSECOND, FloatArray, to_us
from gridsim.policy import runtime_history
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.runtime_history import REQUEST, Histories

__all__ = ["Average", "Clairvoyant", "Predictor", "Recent", "Requested", "Similar"]


class Predictor(Protocol):
    """Predictor of run times. It predicts once, at submission, and learns from every end.

    A predictor is a dataclass whose fields are its parameters; `setup` initialises its state. A predictor with a true
    ``oracle`` receives all run times, ``setup(rng, runtime)`` in seconds, and results mention this.
    """

    def setup(self, rng: Generator) -> None:
        """Initialise the state for a run."""

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Return one prediction, s, per request that is submitted *now*, in job order; infinity means as requested.

        Predictions are limited to the range from one tick to the requested walltime, and rounded down to whole ticks.
        """

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Record that these requests ended *now*, in this order, after *ran* seconds, at most their estimates."""


@dataclass
class Requested:
    """The requested walltime: no prediction."""

    def setup(self, rng: Generator) -> None:
        """Do nothing."""

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Return the estimates, s."""
        return queue.estimate

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Do nothing."""


@dataclass
class Clairvoyant:
    """The true run time, for comparison only."""

    oracle: ClassVar[bool] = True

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """Return columns for the run times; no learning takes place."""
        return Histories(requests, runtime_history.EXACT, corrector, tick=tick)

    def setup(self, rng: Generator, runtime: FloatArray) -> None:
        """Store the run times of all requests, s."""
        self._runtime = runtime

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Return the run times, s, limited by the estimates."""
        return np.minimum(self._runtime[queue.rows], queue.estimate)

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Do nothing."""


class History:
    """Base of predictors that learn from the run times of a user's jobs; an unknown user has no history."""

    rule: ClassVar[int]
    n: int = 1
    alpha: float = 1.0

    def setup(self, rng: Generator) -> None:
        """Initialise the state for a run."""
        self._histories: Histories | None = None

    def histories(self, requests: Requests, corrector: int = REQUEST, tick: int = MICROSECOND) -> Histories:
        """Return the columns of the histories, for a run of these requests; predictions are rounded down."""
        return Histories(requests, self.rule, corrector, tick=tick, mean_of=self.n, weight=self.alpha)

    def predict(self, queue: Queue, now: float) -> FloatArray:
        """Return predictions, s, from the history of each request's user; infinity for users without history."""
        rows = queue.rows.tolist()
        answers = np.array([runtime_history.answer(row, self._history(queue, row)) for row in rows], dtype=np.float64)
        return np.where(answers < 0, np.inf, answers / 1e6)

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        """Add the ended requests to the histories of their users."""
        for row, seconds in zip(queue.rows.tolist(), ran.tolist(), strict=True):
            runtime_history.learn(row, round(seconds * 1e6), self._history(queue, row))

    def _history(self, queue: Queue, row: int) -> tuple[Any, ...]:
        if self._histories is None:
            self._histories = self.histories(queue.requests)
        if row >= queue.requests.known:
            self._histories.add(row)
        return tuple(self._histories.history)


@dataclass
class Recent(History):
    """Mean run time of the last *n* finished jobs of the same user; the requested walltime until there are *n*."""

    n: int = 2
    rule: ClassVar[int] = runtime_history.RECENT
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n is {self.n}; at least 1 is needed")


@dataclass
class Average(History):
    """Exponential average of the run times of a user's jobs, in which the last one has weight *alpha*."""

    alpha: float = 0.5
    rule: ClassVar[int] = runtime_history.AVERAGE

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha is {self.alpha}; a number above 0, at most 1, is needed")


@dataclass
class Similar(Recent):
    """Mean run time of the last *n* finished jobs of the same user and size class; of all the user's jobs if fewer.

    Notes
    -----
    Sizes of a class have the same integer part of the binary logarithm.
    """

    rule: ClassVar[int] = runtime_history.SIMILAR
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"


# -- correctors: new predictions of jobs that exceed their prediction (specification of predictions, section 3) ------


class Corrector(Protocol):
    """Rule for the next prediction of a request that exceeded its prediction."""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Return seconds, above *present*; *times* counts from 1, *first* is the first prediction."""


class Compiled:
    """Correctors whose rule is compiled: `gridsim.policy.runtime_history.corrected`."""

    _rule: ClassVar[int]

    @property
    def rule(self) -> int:
        """Code of the rule."""
        return self._rule

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Return the new prediction, s."""
        return int(runtime_history.corrected(self.rule, to_us(first), to_us(present), times, to_us(estimate))) / 1e6


@dataclass
class Request(Compiled):
    """The requested walltime after the first wrong prediction."""

    _rule: ClassVar[int] = REQUEST


@dataclass
class Steps(Compiled):
    """The first prediction plus a growing step: 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h, then the request."""

    _rule: ClassVar[int] = runtime_history.STEPS
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"


@dataclass
class Added(Compiled):
    """The same steps, each added to the present prediction."""

    _rule: ClassVar[int] = runtime_history.ADDED


@dataclass
class Double(Compiled):
    """Twice the present prediction; without *cap* it may exceed the request."""

    cap: bool = True
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"

    @property
    def rule(self) -> int:
        """Code of the rule, with or without the cap."""
        return runtime_history.DOUBLE_OR_LESS if self.cap else runtime_history.DOUBLE
