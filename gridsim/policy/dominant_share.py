"""Dominant resource fairness: whoever holds least of what he holds most of comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import Queue


@dataclass
class DominantShare:
    """Smallest dominant share first: of each user the largest part that his running jobs hold of any resource.

    Parameters
    ----------
    by : str
        Label that says whose a job is: ``user``, ``account``, ``group`` … Jobs without one count as one user's.

    Notes
    -----
    Parts are those of what the machine has in all: cores, memory, GPUs, other resources of nodes, pools. On a machine
    of cores alone it is the number of cores in use. Every start changes the order; equal shares are ranked by arrival.
    What a user had before does not count.

    References
    ----------
    Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, *Dominant Resource Fairness*, NSDI 2011.
    """

    by: str = "user"

    aliases: ClassVar[tuple[str, ...]] = ("drf",)
    changes: ClassVar[Changes] = "start"
    source: ClassVar[str] = "Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica 2011"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Dominant share of the user of each waiting request."""
        running = queue.running
        users, waits = np.unique(queue.label(self.by), return_inverse=True)
        place = np.searchsorted(users, running.label(self.by))
        theirs = np.isin(running.label(self.by), users)
        shares = np.zeros(len(users))
        for resource, total in queue.totals.items():
            held = np.bincount(place[theirs], running.demand(resource)[theirs], len(users))
            shares = np.maximum(shares, held / total if total else 0.0)
        return shares[waits]
