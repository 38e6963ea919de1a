"""Correctors: new predictions of jobs that exceed their prediction (specification of predictions, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from gridsim.model.time import to_us
from gridsim.policy.runtime_history import ADDED, DOUBLE, DOUBLE_OR_LESS, REQUEST, STEPS, corrected

__all__ = ["Added", "Corrector", "Double", "Request", "Steps"]


class Corrector(Protocol):
    """Rule for the next prediction of a request that exceeded its prediction."""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Return seconds, above *present*; *times* counts from 1, *first* is the first prediction."""
        ...


class Compiled:
    """Correctors whose rule is compiled: `gridsim.policy.runtime_history.corrected`."""

    _rule: ClassVar[int]

    @property
    def rule(self) -> int:
        """Code of the rule."""
        return self._rule

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Return the new prediction, s."""
        return int(corrected(self.rule, to_us(first), to_us(present), times, to_us(estimate))) / 1e6


@dataclass
class Request(Compiled):
    """The requested walltime after the first wrong prediction."""

    _rule: ClassVar[int] = REQUEST


@dataclass
class Steps(Compiled):
    """The first prediction plus a growing step: 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h, then the request."""

    _rule: ClassVar[int] = STEPS
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"


@dataclass
class Added(Compiled):
    """The same steps, each added to the present prediction."""

    _rule: ClassVar[int] = ADDED


@dataclass
class Double(Compiled):
    """Twice the present prediction; without *cap* it may exceed the request."""

    cap: bool = True
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"

    @property
    def rule(self) -> int:
        """Code of the rule, with or without the cap."""
        return DOUBLE_OR_LESS if self.cap else DOUBLE
