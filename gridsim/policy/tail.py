"""Orders in which those behind a protected head are looked at; any other ordering can be one too.

The rules are those of the specification of predictions, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gridsim.model.time import FloatArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import Queue


@dataclass
class InQueue:
    """As they stand in the queue: textbook backfilling."""

    name: ClassVar[str] = "queue"
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """All alike: ties are in the order of the queue."""
        return queue.estimate * 0.0


@dataclass
class Shortest:
    """The shortest prediction first (SJBF); the shortest estimate where nothing predicts."""

    changes: ClassVar[Changes] = "static"
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Predictions, s."""
        return queue.prediction
