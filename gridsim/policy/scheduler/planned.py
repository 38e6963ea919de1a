"""Plan-based scheduling: every waiting request holds a promised start, kept while the plan is compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import plan_cycle as cycle
from gridsim.policy.admission.conservative import Conservative
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.capabilities import (
    asked_once,
    begin,
    fixes_sizes,
    is_own,
    knows_runtimes,
    limits_in_columns,
    on_nodes,
    scope_of,
    shifts_left,
)
from gridsim.policy.correction import Request
from gridsim.policy.placement import First
from gridsim.policy.places import Laid, holdings_of
from gridsim.policy.prediction import Requested
from gridsim.policy.protocols import (
    NOTHING,
    Capabilities,
    Decision,
    Passes,
    Quote,
    Stop,
    ranks_of,
    representation,
    starting,
)
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.scheduler.moldable_state import Shapes
from gridsim.policy.scheduler.predicted import Predictions
from gridsim.record import Predictions as PredictionRecord


@dataclass(repr=False)
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
    placement : PlacementRule
        Where tasks go on a machine of nodes.
    predict : Predictor
        What requests are planned to run; ``requested``: what their users asked for. Killed they are at that alone.
    correct : Corrector
        What is believed of one that outlives its prediction: then all waiting requests are placed again.

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
    placement: Any = field(default_factory=First, kw_only=True, repr=False)
    predict: Any = field(default_factory=Requested, kw_only=True, repr=False)
    correct: Any = field(default_factory=Request, kw_only=True, repr=False)
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
        if self.partition is not None and not isinstance(self.predict, Requested):
            raise ValueError("sizes are chosen by what users ask for; leave out partition, or predict")

    def __repr__(self) -> str:
        return representation(self)

    @property
    def capabilities(self) -> Capabilities:
        """It has a plan; whether it chooses sizes, and what its order depends on."""
        sizes = self.partition is not None and not fixes_sizes(self.partition)
        predicts = not isinstance(self.predict, Requested)
        scope, oracle = scope_of(self.ordering), knows_runtimes(self.predict)
        told = self.partition is not None and not limits_in_columns(self.partition)
        whole = type(self.admission) is Conservative and asked_once(self.ordering) and not told
        can = Capabilities(plan=True, sizes=sizes, scope=scope, effort=10.0, predicts=predicts, oracle=oracle)
        able: dict[Any, bool] = {"pool": whole and not predicts}
        able["nodes"] = able["pool"] and self.partition is None
        able["windows"] = able["nodes"] and self.ordering is None
        in_python = "sizes are chosen on a machine of nodes or several pools" if able["pool"] > able["nodes"] else ""
        compiled = frozenset(name for name in able if able[name])
        return replace(can, compiled=compiled, vectors=on_nodes(self.admission), in_python=in_python)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: an empty plan."""
        self._requests, self._totals = cluster.requests, cluster.totals
        laid = None if cluster.asked is None else Laid(holdings_of(cluster, self.placement, rng))
        self._plan = Plan(cluster.requests, cluster.cores, cluster.tick, laid)
        self._own = is_own(self.admission)  # a call of `offer_of` takes 2 % of a run
        self._nothing = NOTHING  # with the wake of the last time; most decisions start nothing
        # Only compression in planned order leaves no request that could start earlier.
        in_order = self.compress == "planned" and self.ordering is None
        how = cycle.BY_CALL if self.ordering is not None else ("none", "planned", "arrival").index(self.compress)
        self._plan.meta[cycle.COMPRESS], self._plan.meta[cycle.EVERY] = how, self.compress_at == "every"
        self._plan.meta[cycle.HOLES] = not (in_order and shifts_left(self.admission))
        begin(self.ordering, rng)
        self._shapes = None
        if self.partition is not None:
            sized = None if cluster.asked is None else cluster.asked.sized
            self._shapes = Shapes(cluster.requests, self.partition, cluster.cores, sized)
        self._predictions: Predictions | None = None
        if not isinstance(self.predict, Requested):
            n = len(cluster.requests)
            self._predictions = Predictions(cluster, self.predict, self.correct, rng)
            self._promised: IntArray = np.full(n, NEVER, dtype=np.int64)
            self._moved: IntArray = np.zeros(n, dtype=np.int64)

    def passes(self, rows: IntArray) -> Passes:
        """Its passes for a calendar that plays the whole run, to which these requests come in this order."""
        self._rank_all()
        return self._plan.passes(len(rows), () if self._shapes is None else (self._shapes.limits, self._shapes.arrays))

    def _rank_all(self) -> None:
        """Rank all requests by the order of compression, which is static."""
        if self.ordering is not None:
            everyone = np.arange(len(self._requests))
            ranks = ranks_of(self.ordering, self._queue(everyone), 0.0)
            self._plan.ranking[:] = np.unique(ranks, return_inverse=True)[1]
            self._plan.meta[cycle.COMPRESS] = cycle.BY_RANK

    def go_on(self, before: Planned, rows: IntArray, came: int) -> IntArray:
        """Go on where a scheduler of the same policy stood in an earlier window of requests."""
        return self._plan.go_on(before._plan, rows)

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return self._plan

    def quote(self, request: int, now: int) -> Quote | None:
        """The admission's offer; None where it refuses."""
        if self._predictions is not None:
            self._plan.estimate[request] = self._predictions.predict(request, now)
        cores = self._size(request, now)
        with self._sized(request, cores):
            if self._own:
                offer = self.admission.plan(request, NEVER, self._plan, now)
            else:
                offer = offer_of(self.admission, request, NEVER, self._plan, now)
        return None if offer is None else Quote(request, offer, cores)

    def _size(self, request: int, now: int) -> int:
        """Cores by which a new request would end first, behind the plan as it stands; 0 where it is not asked."""
        if self._shapes is None:
            return 0
        limit = self._limit(request, now)
        if not self._plan.is_on_nodes:
            return self._shapes.best(*self._plan.profile(now), request, limit)
        return self._shapes.choose(request, limit, now, lambda cores: self._earliest_on(request, cores, now))[1]

    def _earliest_on(self, request: int, cores: int, now: int) -> int:
        """Earliest place of a new request of another size."""
        with self._sized(request, cores):
            return self._plan.earliest(request, now)

    def _limit(self, request: int, now: int) -> int:
        """Most cores that the partition allows a new request, itself counted among the waiting ones."""
        assert self._shapes is not None
        plan = self._plan
        if request >= self._requests.known:
            self._shapes.learn(request)
        return self._shapes.most_of_last(np.append(plan.order(), request), plan.running_columns, now)

    @contextmanager
    def _sized(self, request: int, cores: int) -> Iterator[None]:
        """Let a request be of another size while it is only asked about."""
        if not cores or self._shapes is None:
            yield
            return
        plan = self._plan
        before = int(plan.need[request]), int(plan.estimate[request])
        plan.resize(request, cores, self._shapes.on(request, cores))
        try:
            yield
        finally:
            plan.resize(request, *before)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """The offered start becomes a promise; after a kill everybody moves up."""
        assert quote.offer is not None
        self._resize(quote)
        if self._predictions is not None:
            self._predictions.came(quote.request, int(self._plan.estimate[quote.request]))
            self._promised[quote.request] = quote.offer.start
        self._plan.take(quote.request, quote.offer, now)
        if quote.offer.kills:
            self._change(self._plan.compress_all, now)
        return [Stop(victim, "requeue", quote.request) for victim in quote.offer.kills] if quote.offer.kills else ()

    def _resize(self, quote: Quote) -> None:
        """A request that is taken in is as wide as it was quoted."""
        if quote.cores and self._shapes is not None:
            self._plan.resize(quote.request, quote.cores, self._shapes.on(quote.request, quote.cores))

    def ended(self, request: int, now: int) -> None:
        """The request gave its cores back, maybe before its expected end."""
        self._plan.give_back(request, now)
        if self._predictions is not None:
            self._predictions.ended(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._plan.expect(request, expected_end)

    def predicted(self, request: int) -> int:
        """What a running request is believed to run, whole microseconds."""
        assert self._predictions is not None
        return self._predictions.believed(request)

    def corrected(self, request: int, now: int) -> int:
        """A running request outlives its prediction; the next one, whole microseconds. All are placed anew for that."""
        assert self._predictions is not None
        corrected = self._predictions.outlived(request)
        self._plan.expect(request, self._predictions.expected_end(request))
        return corrected

    def predictions(self) -> PredictionRecord:
        """What was predicted and promised, how often it was corrected, and how often starts were put off."""
        assert self._predictions is not None
        return PredictionRecord(self._predictions.first, self._predictions.corrections, self._promised, self._moved)

    def settled(self, now: int) -> None:
        """Plan again after an overrun, else compress if something was given back, or after every end."""
        plan = self._plan
        if plan.is_settled(now):
            return
        if self._predictions is None or not plan.meta[cycle.OVERRAN]:
            self._change(plan.settle, now)
            return
        rows, before = plan.order().copy(), plan.planned_starts().copy()
        plan.settle(now)
        after = np.empty(len(self._requests), dtype=np.int64)
        after[plan.order()] = plan.planned_starts()
        self._moved[rows] += after[rows] > before  # starts that became later

    def _change(self, change: Callable[[int], None], now: int) -> None:
        """Change the plan; where it is compressed by an ordering, that is evaluated."""
        change(now)
        if self._plan.needs_order:
            rows = self._plan.order()
            places = self._requests.in_order(rows)
            ranks = ranks_of(self.ordering, self._queue(rows[places]), now / 1e6)
            self._plan.compress(places[np.argsort(ranks, kind="stable")], now)

    def _queue(self, rows: IntArray) -> Queue:
        total, running = self._plan.cores, self._plan.running()
        predicted = None if self._predictions is None else self._predictions.present
        state: dict[str, Any] = {"free": total - int(self._plan.need[running].sum()), "total": total}
        state |= {"totals": self._totals, "running": Queue(self._requests, running)}
        return Queue(self._requests, rows, state, predicted)

    def dispatch(self, now: int) -> Decision:
        """Requests whose promised start has come; the next decision is due at the next one."""
        plan = self._plan
        rows, wake = plan.due(now), plan.next_start()
        if not rows:
            if wake != self._nothing.wake:
                self._nothing = NOTHING._replace(wake=wake)
            return self._nothing
        if self._predictions is not None:
            for request in rows:
                self._predictions.began(request, now)
        starts = plan.starts_of(rows)
        if self._shapes is not None:
            starts = [start._replace(cores=int(plan.need[start.request])) for start in starts]
        return starting(starts, wake)
