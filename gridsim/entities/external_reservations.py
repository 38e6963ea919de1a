"""Cores and nodes held by user processes, which the scheduler sees as running jobs."""

from __future__ import annotations

from simpy import Event

from gridsim.entities.cluster import Cluster
from gridsim.entities.dynamic_jobs import Submissions
from gridsim.entities.event_priorities import Instant, PriorityEvent
from gridsim.entities.resource import Release, Request
from gridsim.model.demand import Demand


class HeldResources:
    """Report to the scheduler what user processes hold, and release it when its time is over.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose scheduler accepts external holds.
    instant : Instant
        Order within one instant.
    submissions : Submissions
        Free rows for the holds; each hold uses a row that is not a job.
    """

    def __init__(self, cluster: Cluster, instant: Instant, submissions: Submissions) -> None:
        self._cluster, self._instant, self._submissions = cluster, instant, submissions

    def row(self, request: Request, now: int) -> int:
        """Return a row for idle resources that a user process holds from now on (whole microseconds)."""
        demand = Demand(cores=request.cores)
        if request.nodes is not None:
            count = request.nodes if isinstance(request.nodes, int) else len(request.nodes)
            demand = Demand(tasks=count, each={"cores": 1}, min_nodes=count, tasks_per_node=1, exclusive=True)
        return self._submissions.hold(demand, request.cores, now, request.until - now)

    def began(self, request: Request, now: int) -> None:
        """Report the start of a hold."""
        assert request.row is not None
        self._cluster.hold(request.row, request.until, request.placement)
        PriorityEvent(request.env, request.until - now, self._instant.end, self._over, request)

    def ended(self, request: Request) -> None:
        """Report the end of a hold."""
        assert request.row is not None
        self._cluster.let_hold_go(request.row)

    def _over(self, event: Event) -> None:
        request: Request = event._value
        if request.holds:
            Release(self._cluster.machine, request)
