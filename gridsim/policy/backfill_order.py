"""Backfill orders: orders of the candidates behind a blocked request with a reservation; any ordering can be used.

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
    """Queue order: textbook backfilling."""

    name: ClassVar[str] = "queue"
    changes: ClassVar[Changes] = "static"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return equal ranks: ties are in queue order."""
        return queue.estimate * 0.0


@dataclass
class Shortest:
    """Shortest prediction first (SJBF); the shortest estimate without predictor."""

    changes: ClassVar[Changes] = "static"
    source: ClassVar[str] = "Tsafrir, Etsion, Feitelson 2007"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the predictions, s."""
        return queue.prediction
