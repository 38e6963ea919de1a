"""Correctors: what to believe of a job that outlived its prediction (specification of predictions, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from gridsim.model.time import whole
from gridsim.policy.histories import ADDED, DOUBLE, DOUBLE_OR_LESS, REQUEST, STEPS, corrected

__all__ = ["Added", "Corrector", "Double", "Request", "Steps"]


class Corrector(Protocol):
    """What to believe next of a request that outlived its prediction?"""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Seconds, above *present*; for the *times*-th time (from 1), after a *first* prediction, of an *estimate*."""
        ...


class Compiled:
    """Correctors whose rule is compiled: `gridsim.policy.histories.corrected`."""

    _rule: ClassVar[int]

    @property
    def rule(self) -> int:
        """Which rule."""
        return self._rule

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Seconds."""
        return int(corrected(self.rule, whole(first), whole(present), times, whole(estimate))) / 1e6


@dataclass
class Request(Compiled):
    """The request: believed once the prediction has been wrong."""

    _rule: ClassVar[int] = REQUEST


@dataclass
class Steps(Compiled):
    """The first prediction and a step that grows: 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h, then the request."""

    _rule: ClassVar[int] = STEPS
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"


@dataclass
class Added(Compiled):
    """The same steps, each added to the present prediction."""

    _rule: ClassVar[int] = ADDED


@dataclass
class Double(Compiled):
    """Twice the present prediction; without *cap* it may pass the request."""

    cap: bool = True
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"

    @property
    def rule(self) -> int:
        """With the cap or without."""
        return DOUBLE_OR_LESS if self.cap else DOUBLE
