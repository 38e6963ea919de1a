"""What processes of a user's own hold of a machine: to the scheduler, jobs that run."""

from __future__ import annotations

from simpy import Event

from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import At, Instant
from gridsim.entities.resource import Release, Request
from gridsim.entities.submissions import Submissions
from gridsim.model.demand import Demand


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

    def row(self, request: Request, now: int) -> int:
        """A row for what is idle, and is to be held from now on (whole microseconds)."""
        demand = Demand(cores=request.cores)
        if request.nodes is not None:
            count = request.nodes if isinstance(request.nodes, int) else len(request.nodes)
            demand = Demand(tasks=count, each={"cores": 1}, min_nodes=count, tasks_per_node=1, exclusive=True)
        return self._submissions.hold(demand, request.cores, now, request.until - now)

    def began(self, request: Request, now: int) -> None:
        """It is held."""
        assert request.row is not None
        self._cluster.hold(request.row, request.until, request.placement)
        At(request.env, request.until - now, self._instant.end, self._over, request)

    def ended(self, request: Request) -> None:
        """It is given back."""
        assert request.row is not None
        self._cluster.let_hold_go(request.row)

    def _over(self, event: Event) -> None:
        request: Request = event._value
        if request.holds:
            Release(self._cluster.machine, request)
