"""Backfilling of moldable jobs: cores are chosen at the start, holders keep their reservations until they start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from gridsim.policy.capabilities import begin, blocks, fixes_sizes, of_ordering, scope_of
from gridsim.policy.correction import Request
from gridsim.policy.partition import ShareOfWork
from gridsim.policy.prediction import Requested
from gridsim.policy.protocols import Capabilities
from gridsim.policy.queue import ClusterView
from gridsim.policy.reservation import FirstFit
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_state import MoldableState
from gridsim.policy.tail import InQueue


@dataclass
class Molding(Backfilling):
    """Requests in the order of *ordering*, each on as many cores as let it end first, within its *partition*.

    Parameters
    ----------
    ordering : Ordering
        Which waiting job comes first.
    reserve : ReservationRule
        Who holds a promise: ``easy`` (the oldest blocked job), ``category``, ``xfactor``, ``first-fit`` (nobody).
    partition : Partition
        How wide a job may start: ``fair-share``, ``greedy``, ``asked`` (as wide as it asked for).
    backfill : {"best", "now"}
        Whether a job without a promise starts only if no later start ends earlier, or by the best of the sizes that fit
        now.
    promise_order : {"acquired", "queue"}
        Whether holders of promises are served in the order of becoming one, or in queue order.

    Notes
    -----
    A holder keeps its promise until it starts, not its size or instant: both are found anew at each pass, before all
    others. Sections 3.4 and 5 of the project's specification of moldable jobs. With ``partition=asked`` and
    ``reserve=easy`` this is EASY.
    """

    name: ClassVar[str] = "molding"
    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"
    partition: Any = field(default_factory=ShareOfWork)
    backfill: Literal["best", "now"] = "best"
    promise_order: Literal["acquired", "queue"] = "acquired"
    # Sizes are chosen by what users ask for, for whole passes in the order of the queue.
    backfill_order: Any = field(default_factory=InQueue, init=False, repr=False)
    predict: Any = field(default_factory=Requested, init=False, repr=False)
    correct: Any = field(default_factory=Request, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value, known in (
            ("backfill", self.backfill, ("best", "now")),
            ("promise_order", self.promise_order, ("acquired", "queue")),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; {' or '.join(known)} is needed")
        if blocks(self.reserve):
            raise ValueError("sizes are chosen where others may pass a blocked job: easy, category, xfactor, first-fit")
        if of_ordering(self.ordering).keep:
            raise ValueError(f"{self.ordering!r} ranks anew after every start, and sizes are chosen for a whole pass")

    @property
    def capabilities(self) -> Capabilities:
        """Whether it chooses sizes, and what its order depends on."""
        sizes, scope = not fixes_sizes(self.partition), scope_of(self.ordering)
        promises_nothing = isinstance(self.reserve, FirstFit)
        compiled: Any = frozenset({"pool"} if scope == "cluster" else ())
        return Capabilities(sizes=sizes, scope=scope, vectors=True, compiled=compiled, held=promises_nothing)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: empty queue, nothing running."""
        begin(self.ordering, rng)
        best, by_queue = self.backfill == "best", self.promise_order == "queue"
        given = (cluster, self.ordering, self.reserve, self.partition, self.placement, rng)
        state = MoldableState(*given, best=best, by_queue=by_queue)
        self._known = cluster.requests.known
        self._holds = frozenset()
        self._state, self._predictions = state, None
        self._cycle, self._starts = state.run_cycle, list
