"""Cores that processes of a user's own hold: to the scheduler, jobs that run."""

from __future__ import annotations

from simpy import Event

from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import At, Instant
from gridsim.entities.machine import Release, Request
from gridsim.entities.submissions import Submissions

__all__ = ["Holds"]


class Holds:
    """Tells the scheduler of a cluster what others than its jobs hold, and gives it back when its time is over.

    Parameters
    ----------
    cluster : Cluster
        Whose scheduler can be told.
    instant : Instant
        Order inside one instant.
    submissions : Submissions
        With room for them: each is a row that is no job.
    """

    def __init__(self, cluster: Cluster, instant: Instant, submissions: Submissions) -> None:
        self._cluster, self._instant, self._submissions = cluster, instant, submissions
        self._rows: dict[Request, int] = {}

    def began(self, request: Request, now: int) -> None:
        """Cores were idle, and are held from now on."""
        row = self._submissions.hold(request.cores, now, request.until - now)
        self._rows[request] = row
        self._cluster.hold(row, request.until)
        At(request.env, request.until - now, self._instant.end, self._over, request)

    def ended(self, request: Request) -> None:
        """They are given back."""
        self._cluster.let_hold_go(self._rows.pop(request))

    def _over(self, event: Event) -> None:
        request: Request = event._value
        if request.holds:
            Release(self._cluster.machine, request)
