"""The same limit for everybody."""

from dataclasses import dataclass

import numpy as np

__all__ = ["EqualShare"]


@dataclass
class EqualShare:
    """At most the machine over the number of waiting jobs, and at most the fraction *most* of it."""

    most: float = 0.5
    choices = "all"
    grid = "geometric"

    def limits(self, queue, now):
        share = min(1 / len(queue), self.most)
        return np.full(len(queue), max(1, int(share * queue.state["total"])))
