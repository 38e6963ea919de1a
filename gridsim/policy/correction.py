"""Correctors: what to believe of a job that outlived its prediction (specification of predictions, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

__all__ = ["Added", "Corrector", "Double", "Request", "Steps"]

_STEPS = (60, 300, 900, 1_800, 3_600, 7_200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""By how much the first eleven corrections raise a prediction, s; the twelfth believes the request."""


class Corrector(Protocol):
    """What to believe next of a request that outlived its prediction?"""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Seconds, above *present*; for the *times*-th time (from 1), after a *first* prediction, of an *estimate*."""
        ...


@dataclass
class Request:
    """The request: believed once the prediction has been wrong."""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """The estimate, s."""
        return estimate


@dataclass
class Steps:
    """The first prediction and a step that grows: 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h, then the request."""

    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Cut at the estimate, s."""
        return estimate if times > len(_STEPS) else min(estimate, first + _STEPS[times - 1])


@dataclass
class Added:
    """The same steps, each added to the present prediction."""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Cut at the estimate, s."""
        return estimate if times > len(_STEPS) else min(estimate, present + _STEPS[times - 1])


@dataclass
class Double:
    """Twice the present prediction; without *cap* it may pass the request."""

    cap: bool = True
    source: ClassVar[str] = "Gaussier, Glesser, Reis, Trystram 2015"

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        """Seconds."""
        return min(estimate, 2 * present) if self.cap else 2 * present
