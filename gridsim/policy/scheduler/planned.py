"""Plan-based scheduling: every waiting request holds a promised start, kept while the plan is compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission.conservative import Conservative
from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Quote, ranks_of
from gridsim.policy.queue import ClusterView, Queue

__all__ = ["Planned"]


@dataclass
class Planned:
    """Requests start at their promised starts; *admission* makes the promises.

    Parameters
    ----------
    admission : Admission
        Where a new request goes, and whether it is taken at all.
    compress : {"planned", "arrival", "none"}
        When a job ends before its expected end, each waiting request moves to its earliest place, all others staying:
        in the order of their planned starts (one pass then leaves no hole that one of them could use), in order of
        arrival (a single pass may leave holes), or not at all.
    ordering : Ordering, optional
        Order of compression instead: an ordering of the waiting requests.

    Notes
    -----
    No request moves later while runtimes respect the estimates (spec of the deadline papers, 3.3 and 3.4). A job that
    outlives its estimate has all waiting requests placed again in planned order (6.3).
    """

    admission: Any = field(default_factory=Conservative)
    compress: Literal["planned", "arrival", "none"] = "planned"
    ordering: Any | None = None
    source: ClassVar[str] = "Mu'alem, Feitelson 2001; Islam, Balaji, Sadayappan, Panda 2003"

    def __post_init__(self) -> None:
        if self.compress not in ("planned", "arrival", "none"):
            raise ValueError(f"compress is {self.compress!r}; planned, arrival or none is needed")
        if self.compress == "none" and self.ordering is not None:
            raise ValueError("an order of compression means nothing with compress=none; leave one of them out")

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: an empty plan."""
        self._requests = cluster.requests
        self._plan = Plan(cluster.requests, cluster.cores, cluster.tick)
        self._frontier = 0
        self._overrun = False
        # Only compression in planned order leaves the plan left-shifted, which is what the frontier relies on.
        in_order = self.compress == "planned" and self.ordering is None
        self._left_shifted = in_order and getattr(self.admission, "left_shifted", False)
        if self.ordering is not None and hasattr(self.ordering, "setup"):
            self.ordering.setup(rng)

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return self._plan

    def quote(self, request: int, now: int) -> Quote | None:
        """The admission's offer; None where it refuses."""
        offer = self.admission.plan(request, NEVER, self._plan, now)
        return None if offer is None else Quote(request, offer)

    def commit(self, quote: Quote, now: int) -> None:
        """The offered start becomes a promise; after a kill everybody moves up."""
        assert quote.offer is not None
        self._plan.take(quote.request, quote.offer, now)
        if quote.offer.kills and self.compress != "none":
            self._compress(now, NEVER)

    def ended(self, request: int, now: int) -> None:
        """The request gave its cores back, maybe before its expected end."""
        until = self._plan.ended(request, now)
        if until > now:
            self._frontier = max(self._frontier, until)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._plan.expected[request] = expected_end
        self._overrun = True

    def settled(self, now: int) -> None:
        """Plan again after an overrun, else compress if something was given back."""
        if self._overrun:
            self._plan.replan(now)
        elif self._frontier > now and self.compress != "none" and len(self._plan):
            self._compress(now, self._frontier if self._left_shifted else NEVER)
        self._overrun, self._frontier = False, 0

    def _compress(self, now: int, frontier: int) -> None:
        rows = self._plan.order()
        places = np.arange(len(rows))
        if self.ordering is not None or self.compress == "arrival":
            places = np.argsort(rows)
        if self.ordering is not None:
            ranks = ranks_of(self.ordering, self._queue(rows[places]), now / 1e6)
            places = places[np.argsort(ranks, kind="stable")]
        self._plan.compress(places, now, frontier)

    def _queue(self, rows: IntArray) -> Queue:
        total, running = self._plan.cores, self._plan.running()
        return Queue(self._requests, rows, {"free": total - int(self._requests.cores[running].sum()), "total": total})

    def dispatch(self, now: int) -> Sequence[int]:
        """Requests whose promised start has come."""
        return self._plan.due(now)

    def wake(self, now: int) -> int:
        """The next promised start."""
        return self._plan.next_start()
