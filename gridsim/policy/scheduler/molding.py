"""Backfilling of moldable jobs: sizes are chosen at the start, promises are kept from pass to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from gridsim.model.time import NEVER
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import FairShare
from gridsim.policy.protocols import Quote
from gridsim.policy.queue import ClusterView
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.molded import Molded

__all__ = ["Molding"]


@dataclass
class Molding:
    """Requests in the order of *ordering*, each on as many cores as let it end first, within its *partition*.

    Parameters
    ----------
    partition : Partition
        How wide a job may start: ``fair-share``, ``greedy``, ``asked`` (as wide as it asked for).
    reserve : ReservationRule
        Who holds a promise: ``easy`` (the oldest blocked job), ``category``, ``xfactor``, ``first-fit`` (nobody).
    ordering : Ordering
        Which waiting job comes first.
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
    partition: Any = field(default_factory=FairShare)
    reserve: Any = field(default_factory=Easy)
    ordering: Any = field(default_factory=Fifo)
    backfill: Literal["best", "now"] = "best"
    promise_order: Literal["acquired", "queue"] = "acquired"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("backfill", self.backfill, ("best", "now")),
            ("promise_order", self.promise_order, ("acquired", "queue")),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; {' or '.join(known)} is needed")
        if getattr(self.reserve, "blocking", False):
            raise ValueError("sizes are chosen where others may pass a blocked job: easy, category, xfactor, first-fit")

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: empty queue, nothing running."""
        if hasattr(self.ordering, "setup"):
            self.ordering.setup(rng)
        best, by_queue = self.backfill == "best", self.promise_order == "queue"
        self._state = Molded(cluster, self.ordering, self.reserve, self.partition, best=best, by_queue=by_queue)

    def quote(self, request: int, now: int) -> Quote:
        """Every request is taken; its size is left open."""
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> None:
        """The request joins the queue."""
        self._state.joined(quote.request, now)

    def ended(self, request: int, now: int) -> None:
        """The request left the machine."""
        self._state.ended(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._state.overran(request, expected_end)

    def settled(self, now: int) -> None:
        """Nothing to do: places are found at each pass."""

    def wake(self, now: int) -> int:
        """Nothing starts without an event: places begin where somebody ends."""
        return NEVER

    def dispatch(self, now: int) -> Sequence[int]:
        """One pass over the queue."""
        return self._state.run_pass(now)
