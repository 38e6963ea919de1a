"""Widest request first."""

from dataclasses import dataclass

__all__ = ["WidestFirst"]


@dataclass
class WidestFirst:
    """Largest core request first; *tie* > 0 prefers longer estimates among equals (cores per second)."""

    tie: float = 0.0

    def rank(self, queue, now):
        return -(queue.cores + self.tie * queue.estimate)
