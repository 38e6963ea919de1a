"""Orders for admissions only, since they need data of a plan. All orderings can be used as heuristics too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gridsim.errors import PolicyError
from gridsim.model.time import FloatArray
from gridsim.policy.queue import Promised, Queue


@dataclass
class AscendingScheduledTime:
    """By planned start, for ``msb``: jobs before the new one keep their starts."""

    name: ClassVar[str] = "ast"
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, figure 1"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        if not isinstance(queue, Promised):
            raise PolicyError("the order ast needs planned start times, which only a plan has: msb?order=ast")
        return queue.planned


@dataclass
class EarliestDeadlineAndStart:
    """Smallest sum of deadline and *weight* times the earliest start in the partial schedule, for ``mrt``.

    Parameters
    ----------
    weight : float
        Weight of the earliest start.
    """

    name: ClassVar[str] = "edf+est"
    source: ClassVar[str] = "Ramamritham, Stankovic, Shiah 1990"
    weight: float = 1.0

    def rank(self, queue: Queue, now: float) -> FloatArray:
        raise PolicyError(
            "the heuristic edf+est needs earliest start times in a partial schedule: mrt?heuristic=edf+est"
        )
