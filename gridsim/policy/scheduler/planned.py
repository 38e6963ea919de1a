"""Plan-based scheduling: every waiting request holds a promised start, kept while the plan is compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission.conservative import Conservative
from gridsim.policy.admission.plan import Plan
from gridsim.policy.capabilities import begin, fixes_sizes, scope_of, shifts_left
from gridsim.policy.protocols import NOTHING, Capabilities, Decision, Quote, Start, Stop, ranks_of, starting, starts_of
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.scheduler.molded import Shapes

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
    compress_at : {"early", "every"}
        Ends after which the plan is compressed: those of jobs that ended before their expected ends, or all. The second
        finds more only where a pass leaves holes, as one in order of arrival does; pyss compresses so.
    ordering : Ordering, optional
        Order of compression instead: an ordering of the waiting requests.
    partition : Partition, optional
        How wide moldable jobs are planned, once and for all on arrival: as wide as lets them end first. As wide as they
        asked for where left out.

    Notes
    -----
    No request moves later while runtimes respect the estimates (spec of the deadline papers, 3.3 and 3.4). A job that
    outlives its estimate has all waiting requests placed again in planned order (6.3).
    """

    admission: Any = field(default_factory=Conservative)
    compress: Literal["planned", "arrival", "none"] = "planned"
    ordering: Any | None = None
    partition: Any | None = None
    compress_at: Literal["early", "every"] = field(default="early", kw_only=True)
    source: ClassVar[str] = "Mu'alem, Feitelson 2001; Islam, Balaji, Sadayappan, Panda 2003"

    def __post_init__(self) -> None:
        if self.compress not in ("planned", "arrival", "none"):
            raise ValueError(f"compress is {self.compress!r}; planned, arrival or none is needed")
        if self.compress == "none" and self.ordering is not None:
            raise ValueError("an order of compression means nothing with compress=none; leave one of them out")
        if self.compress_at not in ("early", "every"):
            raise ValueError(f"compress_at is {self.compress_at!r}; early or every is needed")
        if self.compress == "none" and self.compress_at != "early":
            raise ValueError("compress_at means nothing with compress=none; leave one of them out")

    @property
    def capabilities(self) -> Capabilities:
        """It has a plan; whether it chooses sizes, and what its order depends on."""
        sizes = self.partition is not None and not fixes_sizes(self.partition)
        return Capabilities(plan=True, sizes=sizes, scope=scope_of(self.ordering), effort=2.0)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: an empty plan."""
        self._requests = cluster.requests
        self._plan = Plan(cluster.requests, cluster.cores, cluster.tick)
        self._frontier = 0
        self._overrun = False
        self._nothing = NOTHING  # with the wake of the last time; most decisions start nothing
        # Only compression in planned order leaves the plan left-shifted, which is what the frontier relies on.
        in_order = self.compress == "planned" and self.ordering is None
        self._left_shifted = in_order and shifts_left(self.admission)
        begin(self.ordering, rng)
        self._shapes = None if self.partition is None else Shapes(cluster.requests, self.partition, cluster.cores)

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return self._plan

    def quote(self, request: int, now: int) -> Quote | None:
        """The admission's offer; None where it refuses."""
        cores = self._size(request, now)
        with self._sized(request, cores):
            offer = self.admission.plan(request, NEVER, self._plan, now)
        return None if offer is None else Quote(request, offer, cores)

    def _size(self, request: int, now: int) -> int:
        """Cores by which a new request would end first, behind the plan as it stands; 0 where it is not asked."""
        if self._shapes is None:
            return 0
        return self._shapes.best(*self._plan.profile(now), request, self._limit(request, now))

    def _limit(self, request: int, now: int) -> int:
        """Most cores that the partition allows a new request, itself counted among the waiting ones."""
        assert self._shapes is not None
        plan = self._plan
        rows = np.append(plan.order(), request)
        return int(self._shapes.largest(rows, plan.running(), plan.began, plan.expected, now)[-1])

    @contextmanager
    def _sized(self, request: int, cores: int) -> Iterator[None]:
        """Let a request be of another size while it is only asked about."""
        if not cores or self._shapes is None:
            yield
            return
        plan = self._plan
        before = plan.need[request], plan.estimate[request]
        plan.need[request], plan.estimate[request] = cores, self._shapes.on(request, cores)
        try:
            yield
        finally:
            plan.need[request], plan.estimate[request] = before

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """The offered start becomes a promise; after a kill everybody moves up."""
        assert quote.offer is not None
        if quote.cores and self._shapes is not None:
            self._plan.need[quote.request] = quote.cores
            self._plan.estimate[quote.request] = self._shapes.on(quote.request, quote.cores)
        self._plan.take(quote.request, quote.offer, now)
        if quote.offer.kills and self.compress != "none":
            self._compress(now, NEVER)
        return [Stop(victim, "requeue", quote.request) for victim in quote.offer.kills] if quote.offer.kills else ()

    def ended(self, request: int, now: int) -> None:
        """The request gave its cores back, maybe before its expected end."""
        until = self._plan.ended(request, now)
        if self.compress_at == "every":
            until = max(until, now + 1)
        if until > now:
            self._frontier = max(self._frontier, until)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._plan.expected[request] = expected_end
        self._overrun = True

    def settled(self, now: int) -> None:
        """Plan again after an overrun, else compress if something was given back, or after every end."""
        if self._overrun:
            self._plan.replan(now)
        elif self._frontier > now and self.compress != "none" and len(self._plan):
            self._compress(now, self._frontier if self._left_shifted else NEVER)
        self._overrun, self._frontier = False, 0

    def _compress(self, now: int, frontier: int) -> None:
        rows = self._plan.order()
        places = np.arange(len(rows))
        if self.ordering is not None or self.compress == "arrival":
            places = self._requests.in_order(rows)
        if self.ordering is not None:
            ranks = ranks_of(self.ordering, self._queue(rows[places]), now / 1e6)
            places = places[np.argsort(ranks, kind="stable")]
        self._plan.compress(places, now, frontier)

    def _queue(self, rows: IntArray) -> Queue:
        total, running = self._plan.cores, self._plan.running()
        return Queue(self._requests, rows, {"free": total - int(self._plan.need[running].sum()), "total": total})

    def dispatch(self, now: int) -> Decision:
        """Requests whose promised start has come; the next decision is due at the next one."""
        plan = self._plan
        rows, wake = plan.due(now), plan.next_start()
        if not rows:
            if wake != self._nothing.wake:
                self._nothing = NOTHING._replace(wake=wake)
            return self._nothing
        starts = starts_of(rows) if self._shapes is None else [Start(row, int(plan.need[row])) for row in rows]
        return starting(starts, wake)
