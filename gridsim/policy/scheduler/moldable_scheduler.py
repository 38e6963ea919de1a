"""Backfilling of moldable jobs: cores are chosen at the start, and holders keep reservations until they start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from gridsim.policy.capabilities import begin, blocks, fixes_sizes, of_ordering, scope_of
from gridsim.policy.ordering import InQueue
from gridsim.policy.partition import ShareOfWork
from gridsim.policy.prediction import Request, Requested
from gridsim.policy.protocols import Capabilities
from gridsim.policy.queue import ClusterView
from gridsim.policy.reservation import FirstFit
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_state import MoldableState


@dataclass
class MoldableBackfilling(Backfilling):
    """Starts requests in the order of *ordering*, each on as many cores of its *partition* as give the earliest end.

    Parameters
    ----------
    ordering : Ordering
        Order of the queue.
    reserve : ReservationRule
        Which jobs hold a reservation: ``easy`` (the oldest blocked job), ``category``, ``xfactor``, ``first-fit``
        (none).
    partition : Partition
        Limit of the size of a job: ``fair-share``, ``greedy``, ``asked`` (the requested size).
    backfill : {"best", "now"}
        Whether a job without a reservation starts only if no later start ends earlier, or with the best of the sizes
        that fit now.
    promise_order : {"acquired", "queue"}
        Whether holders of reservations are served in the order in which they became holders, or in queue order.

    Notes
    -----
    A holder keeps its reservation until it starts, but not its size or planned start: each scheduling cycle determines
    both again, before those of all others. Sections 3.4 and 5 of the project's specification of moldable jobs. With
    ``partition=rigid`` and ``reserve=easy`` this is EASY.
    """

    name: ClassVar[str] = "moldable"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"
    partition: Any = field(default_factory=ShareOfWork)
    backfill: Literal["best", "now"] = "best"
    promise_order: Literal["acquired", "queue"] = "acquired"
    # Sizes are chosen with requested walltimes, for complete cycles in queue order.
    backfill_order: Any = field(default_factory=InQueue, init=False, repr=False)
    predict: Any = field(default_factory=Requested, init=False, repr=False)
    correct: Any = field(default_factory=Request, init=False, repr=False)
    preempt: Any = field(default=None, init=False, repr=False)
    orders_classes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("backfill", self.backfill, ("best", "now")),
            ("promise_order", self.promise_order, ("acquired", "queue")),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; {' or '.join(known)} is needed")
        if blocks(self.reserve):
            raise ValueError("sizes require one of the reservation rules easy, category, xfactor and first-fit")
        if of_ordering(self.ordering).keep:
            raise ValueError(f"{self.ordering!r} re-ranks after every start, but sizes are chosen once per cycle")

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities, which depend on the parts."""
        sizes, scope = not fixes_sizes(self.partition), scope_of(self.ordering)
        notified: Any = frozenset({"held"} if isinstance(self.reserve, FirstFit) else ())
        compiled: Any = frozenset({"pool"} if scope == "cluster" else ())
        return Capabilities(sizes=sizes, scope=scope, vectors=True, compiled=compiled, notified=notified)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run: empty queue, no running requests."""
        begin(self.ordering, rng)
        best, by_queue = self.backfill == "best", self.promise_order == "queue"
        given = (cluster, self.ordering, self.reserve, self.partition, self.placement, rng)
        state = MoldableState(*given, best=best, by_queue=by_queue)
        self._known = cluster.requests.known
        self._holds = frozenset()
        self._state, self._predictions = state, None
        self._cycle, self._starts = state.run_cycle, list
