"""Dominant resource fairness: jobs of the user with the smallest dominant share first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import Queue


@dataclass
class DominantShare:
    """Smallest dominant share first: the largest fraction of any resource that the user's running jobs use.

    Parameters
    ----------
    by : str
        Label that identifies the user of a job: ``user``, ``account``, ``group`` … Jobs without it count as one
        user's.

    Notes
    -----
    Fractions are relative to the machine's total of each resource: cores, memory, GPUs, other resources of nodes,
    pools. On a machine with cores only, the share is the number of cores in use. Every start changes the order; equal
    shares are ordered by arrival. Past usage does not count.

    References
    ----------
    Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, *Dominant Resource Fairness*, NSDI 2011.
    """

    by: str = "user"

    aliases: ClassVar[tuple[str, ...]] = ("drf",)
    changes: ClassVar[Changes] = "start"
    source: ClassVar[str] = "Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica 2011"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the dominant share of the user of each waiting request."""
        running = queue.running
        users, waits = np.unique(queue.label(self.by), return_inverse=True)
        place = np.searchsorted(users, running.label(self.by))
        theirs = np.isin(running.label(self.by), users)
        shares = np.zeros(len(users))
        for resource, total in queue.totals.items():
            held = np.bincount(place[theirs], running.demand(resource)[theirs], len(users))
            shares = np.maximum(shares, held / total if total else 0.0)
        return shares[waits]
