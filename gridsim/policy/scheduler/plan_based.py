"""Plan-based scheduling: every waiting request holds a reservation, kept while the plan is compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.machine.allocations_over_time import Holdings
from gridsim.model.time import NEVER, IntArray
from gridsim.policy import capabilities as parts
from gridsim.policy.admission import plan_cycle as cycle
from gridsim.policy.admission.plan import Conservative, Plan, offer_of
from gridsim.policy.ordering import Fifo
from gridsim.policy.placement import First
from gridsim.policy.placement_bridge import PlacementLog, holdings_of
from gridsim.policy.prediction import Request, Requested
from gridsim.policy.preemption import by_class, classes_of
from gridsim.policy.protocols import (
    NOTHING,
    Capabilities,
    CapacityChange,
    Decision,
    LoopState,
    Offer,
    Quote,
    Start,
    Stop,
    ranks_of,
    starting,
)
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.scheduler.moldable_state import Shapes
from gridsim.policy.scheduler.run_predictions import Predicting, Predictions
from gridsim.record import Predictions as PredictionRecord


@dataclass(repr=False)
class Planned(Predicting):
    """Starts requests at the times of a plan, which *admission* makes.

    Parameters
    ----------
    admission : Admission
        Decides whether a new request is admitted, and its planned start.
    compress : {"planned", "arrival", "none"}
        After a job ends before its expected end, each waiting request moves to its earliest start, while all others
        stay: in the order of planned starts (then one sweep leaves no gap that one of them could use), in order of
        arrival (a single sweep may leave gaps), or not at all.
    compress_at : {"early", "every"}
        Ends after which the plan is compressed: those of jobs that ended before their expected ends, or all. The
        second finds more only if a sweep leaves gaps, as in order of arrival; pyss compresses in this way.
    ordering : Ordering, optional
        Order of compression instead: an ordering of the waiting requests.
    partition : Partition, optional
        Limit of the size of moldable jobs, which is chosen once, at submission, for the first end. If omitted, jobs
        have their requested sizes.
    placement : PlacementRule
        Placement of tasks on a machine of nodes.
    predict : Predictor
        Predicted run times for planning; ``requested``: the requested walltimes. Jobs are killed only at their
        requested walltimes.
    correct : Corrector
        New prediction of a job that exceeds its prediction; then all waiting requests are placed again.
    preempt : Preemption, optional
        Stops running jobs for waiting jobs of a higher priority class whose planned start is later than now.

    Notes
    -----
    No request moves later while run times respect the estimates (spec of the deadline papers, 3.3 and 3.4). After a
    job exceeds its estimate, all waiting requests are placed again in planned order (6.3).
    """

    admission: Any = field(default_factory=Conservative)
    compress: Literal["planned", "arrival", "none"] = "planned"
    ordering: Any | None = None
    partition: Any | None = None
    compress_at: Literal["early", "every"] = field(default="early", kw_only=True)
    placement: Any = field(default_factory=First, kw_only=True, repr=False)
    predict: Any = field(default_factory=Requested, kw_only=True, repr=False)
    correct: Any = field(default_factory=Request, kw_only=True, repr=False)
    preempt: Any = field(default=None, kw_only=True, repr=False)
    orders_classes: ClassVar[bool] = True
    source: ClassVar[str] = "Mu'alem, Feitelson 2001; Islam, Balaji, Sadayappan, Panda 2003"

    def __post_init__(self) -> None:
        if self.compress not in ("planned", "arrival", "none"):
            raise ValueError(f"compress is {self.compress!r}; planned, arrival or none is needed")
        if self.compress == "none" and self.ordering is not None:
            raise ValueError("an order of compression has no effect with compress=none; leave one of them out")
        if self.compress_at not in ("early", "every"):
            raise ValueError(f"compress_at is {self.compress_at!r}; early or every is needed")
        if self.compress == "none" and self.compress_at != "early":
            raise ValueError("compress_at has no effect with compress=none; leave one of them out")
        if self.partition is not None and self.preempt is not None:
            raise ValueError("jobs whose sizes are chosen cannot be preempted; leave out partition, or preempt")
        if self.partition is not None and not isinstance(self.predict, Requested):
            raise ValueError("sizes are chosen by requested walltimes; leave out partition, or predict")

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities, which depend on the parts."""
        sizes = self.partition is not None and not parts.fixes_sizes(self.partition)
        predicts = not isinstance(self.predict, Requested)
        scope, oracle = parts.scope_of(self.ordering), parts.uses_run_times(self.predict)
        told = self.partition is not None and not parts.limits_in_columns(self.partition)
        plain = type(self.admission) is Conservative
        whole = plain and parts.is_static(self.ordering) and not told and self.preempt is None
        able: dict[Any, bool] = {"pool": whole and not predicts}
        able["nodes"] = able["pool"] and self.partition is None
        able["windows"] = able["nodes"] and self.ordering is None
        in_python = "sizes are chosen on a machine of nodes or several pools" if able["pool"] > able["nodes"] else ""
        in_python = in_python if self.preempt is None else "running jobs can be preempted"
        compiled = frozenset(name for name in able if able[name])
        notified: Any = frozenset({"capacity_changed"} if plain else ())
        can = Capabilities(plan=True, sizes=sizes, scope=scope, effort=10.0, predicts=predicts, oracle=oracle)
        more = {"notified": notified, "vectors": parts.on_nodes(self.admission)}
        return replace(can, compiled=compiled, in_python=in_python, **more)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run: an empty plan."""
        self._requests, self._cluster = cluster.requests, cluster
        placement_log = None if cluster.demands is None else PlacementLog(holdings_of(cluster, self.placement, rng))
        self._plan = Plan(cluster.requests, cluster.cores, cluster.tick, placement_log)
        self._own = parts.is_own(self.admission)  # a call of `offer_of` takes 2 % of a run
        self._nothing = NOTHING  # with the last `wake`; most decisions start no request
        # Only compression in planned order leaves no request that could start earlier.
        self._class = classes_of(cluster.requests)
        in_order = self.compress == "planned" and self.ordering is None and self._class is None
        calls = self.ordering is not None or (self._class is not None and self.compress != "none")
        how = cycle.BY_CALL if calls else ("none", "planned", "arrival").index(self.compress)
        self._plan.meta[cycle.COMPRESS], self._plan.meta[cycle.EVERY] = how, self.compress_at == "every"
        self._plan.meta[cycle.HOLES] = not (in_order and parts.shifts_left(self.admission))
        parts.begin(self.ordering, rng)
        self._shapes = None
        self._requeued = set[int]()  # already in the plan, before they are submitted again
        n = len(cluster.requests)
        self._moved: IntArray = np.zeros((2, n), dtype=np.int64)
        self._held: IntArray = np.full(n, NEVER, dtype=np.int64)  # last planned start of those without a place
        self._disturbed = False  # the capacity has changed
        if self.partition is not None:
            sized = None if cluster.demands is None else cluster.demands.sized
            self._shapes = Shapes(cluster.requests, self.partition, cluster.cores, sized)
        self._predictions = None
        if not isinstance(self.predict, Requested):
            self._predictions = Predictions(cluster, self.predict, self.correct, rng)
            self._promised: IntArray = np.full(n, NEVER, dtype=np.int64)

    def passes(self, rows: IntArray) -> LoopState:
        """Return the arrays for a compiled run in which these requests are submitted in this order."""
        self._rank_all()
        return self._plan.passes(len(rows), () if self._shapes is None else (self._shapes.limits, self._shapes.arrays))

    def _rank_all(self) -> None:
        """Rank all requests by the order of compression, which is static."""
        if self.ordering is not None:
            everyone = np.arange(len(self._requests))
            ranks = ranks_of(self.ordering, self._queue(everyone), 0.0)
            self._plan.ranking[:] = np.unique(ranks, return_inverse=True)[1]
            self._plan.meta[cycle.COMPRESS] = cycle.BY_RANK

    def resume(self, before: Planned, rows: IntArray, submitted: int) -> IntArray:
        """Continue from a scheduler of the same policy in an earlier window of requests."""
        return self._plan.resume(before._plan, rows)

    @property
    def plan(self) -> Plan:
        """The present plan."""
        return self._plan

    def quote(self, request: int, now: int) -> Quote | None:
        """Return the admission's offer; None if it rejects the request."""
        if request in self._requeued:
            return Quote(request, Offer(self._plan.starts()[request]))
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
        """Return the cores with the first end of a new request in the present plan; 0 without choice of sizes."""
        if self._shapes is None or self._plan.began[request] < NEVER:  # later runs keep the size
            return 0
        limit = self._limit(request, now)
        if self._cluster.demands is None:
            return self._shapes.best(*self._plan.profile(now), request, limit)
        cores = self._shapes.choose(request, limit, now, lambda cores: self._earliest_on(request, cores, now))[1]
        # If no size has a known start, since nodes are absent: the requested one; others may need spare nodes.
        return cores or int(self._requests.cores[request])

    def _earliest_on(self, request: int, cores: int, now: int) -> int:
        """Return the earliest start of a new request of another size."""
        with self._sized(request, cores):
            return self._plan.earliest(request, now)

    def _limit(self, request: int, now: int) -> int:
        """Return the maximum cores that the partition allows a new request, itself counted among the waiting ones."""
        assert self._shapes is not None
        plan = self._plan
        if request >= self._requests.known:
            self._shapes.learn(request)
        running = plan.held, plan.meta, plan.need, plan.began
        return self._shapes.most_of_last(np.append(plan.order(), request), running, now)

    @contextmanager
    def _sized(self, request: int, cores: int) -> Iterator[None]:
        """Temporarily change the size of a request for a trial."""
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
        """Admit the request with the offered start; after a kill the plan is compressed."""
        assert quote.offer is not None
        self._resize(quote)
        if quote.request in self._requeued:
            self._requeued.remove(quote.request)
            return ()
        if self._predictions is not None:
            self._predictions.submitted(quote.request, int(self._plan.estimate[quote.request]))
            self._promised[quote.request] = min(quote.offer.start, self._promised[quote.request])
        if quote.request in self._requests.stopped:  # after a delay, it returns to its previous place
            self._plan.queue_again(quote.request)
            self.settled(now)
            return ()
        self._plan.take(quote.request, quote.offer, now)
        if self._class is not None and (self._class[self._plan.order()] < self._class[quote.request]).any():
            self._plan.meta[cycle.OVERRAN] = 1
            self.settled(now)
        if quote.offer.kills:
            self._change(self._plan.compress_all, now)
        return [Stop(victim, "requeue", quote.request) for victim in quote.offer.kills] if quote.offer.kills else ()

    def _resize(self, quote: Quote) -> None:
        """Set the size of an admitted request to that of its quote."""
        if quote.cores and self._shapes is not None:
            self._plan.resize(quote.request, quote.cores, self._shapes.on(quote.request, quote.cores))

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Record that nodes or GPUs are absent or have returned; `settled` plans again."""
        if self._predictions is not None:
            for request in change.requeued:
                self._plan.estimate[request] = self._predictions.predict(request, now)
                self._predictions.submitted(request, int(self._plan.estimate[request]))
        self._plan.change_capacity(change, now)
        self._disturbed = True
        self._requeued.update(change.requeued)

    def ended(self, request: int, now: int) -> None:
        """Release the cores of the request, possibly before its expected end."""
        self._plan.give_back(request, now)
        if self._predictions is not None:
            self._predictions.ended(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Record that the request is expected to hold its cores until *expected_end*."""
        self._plan.expect(request, expected_end)

    def _expect(self, request: int, end: int) -> None:
        self._plan.expect(request, end)

    def predictions(self) -> PredictionRecord:
        """Return first predictions, numbers of corrections, first planned starts, and numbers of delays of starts."""
        return PredictionRecord(self._predictions.first, self._predictions.corrections, self._promised, self._moved[0])

    def settled(self, now: int) -> None:
        """Plan again after an overrun, else compress if cores were released, or after every end."""
        plan = self._plan
        if plan.is_settled(now):
            return
        anew = bool(plan.meta[cycle.OVERRAN])
        if not anew and not self._disturbed:
            self._change(plan.settle, now)
            return
        rows, before = plan.order().copy(), plan.planned_starts().copy()
        if anew and self._class is not None:
            plan.lift(self._by_class(rows), now)
        self._change(plan.settle, now)
        after: IntArray = np.empty(len(self._requests), dtype=np.int64)
        after[plan.order()] = plan.planned_starts()
        self._note_moves(rows, before, after[rows])

    def _note_moves(self, rows: IntArray, before: IntArray, after: IntArray) -> None:
        """Record which planned starts became later; those of requests that were stopped are negative."""
        waited = before >= 0
        last = np.where(before < NEVER, before, self._held[rows])
        self._held[rows] = np.where(waited, last, NEVER)
        self._moved[0, rows] += waited & (after > before)
        self._moved[1, rows] += np.where(waited & (after < NEVER), np.maximum(after - last, 0), 0)

    def planned_start_moves(self) -> IntArray:
        """Return how often the planned start of each request became later, and by how much, whole microseconds.

        A request that loses its place moves once; by how much is known when it has a place again.
        """
        return self._moved

    def _change(self, change: Callable[[int], None], now: int) -> None:
        """Change the plan; if it is compressed by an ordering, evaluate that."""
        change(now)
        if self._plan.needs_order and self.ordering is None and self.compress == "planned":
            self._compress_by_class(now)
        elif self._plan.needs_order:
            rows = self._plan.order()
            places = self._requests.in_order(rows)
            ordering = by_class(self.ordering or Fifo(), self._requests)
            ranks = ranks_of(ordering, self._queue(rows[places]), now / 1e6)
            self._plan.compress(places[np.argsort(ranks, kind="stable")], now)

    def _compress_by_class(self, now: int) -> None:
        """Move requests to their earliest starts, by class and planned start, until none moves."""
        plan = self._plan
        while True:
            before = plan.starts()
            plan.compress(self._by_class(plan.order()), now)
            plan.log.freed(now)
            plan.hold_rests(now)
            if plan.starts() == before:
                return

    # -- preemption (`gridsim.policy.scheduler.preempting`) --------------------------------------------------------

    @property
    def log(self) -> PlacementLog:
        """Placements, and allocations over time."""
        found: PlacementLog = self._plan.log
        return found

    @property
    def durations(self) -> IntArray:
        """Planned run times of all requests, whole microseconds."""
        return self._plan.estimate

    def front(self, now: int) -> tuple[Sequence[Start], Sequence[int]]:
        """Return no starts, and the waiting requests whose planned start is not now, by class and job order."""
        return (), self._in_queue_order(self._plan.order()[self._plan.planned_starts() > now]).tolist()

    def holdings_for(self, request: int, now: int) -> Holdings:
        """Return a copy of the allocations without those of waiting requests behind one in queue order."""
        held, starts = self.log.holdings.copy(), self._plan.starts()
        queue = self._in_queue_order(self._plan.order()).tolist()
        gone = [row for row in queue[queue.index(request) :] if starts[row] < NEVER]
        held.release_many(np.array(gone, dtype=np.int64), len(gone), now)
        return held

    def _in_queue_order(self, rows: IntArray) -> IntArray:
        """Return requests by class and job order."""
        rows = rows[self._requests.in_order(rows)]
        return rows[self._by_class(rows)]

    def _by_class(self, rows: IntArray) -> IntArray:
        """Return the places of requests by class, in their order within a class."""
        return np.arange(len(rows)) if self._class is None else np.argsort(-self._class[rows], kind="stable")

    def resumed(self, request: int, began: int, paused: int) -> None:
        """Set the start of the run of a resumed request; predictions count the time with cores."""
        self._plan.began[request] = began
        self._note_starts((request,), began + paused)

    def expect(self, request: int, end: int, now: int) -> None:
        """Set the expected end of a running request; all waiting ones are planned again."""
        self._plan.expect(request, end)
        self.log.holdings.until(request, end, now)

    def set_aside(self, request: int, now: int) -> None:
        """Remove a request with a claim from the plan; all others are then planned again, around the claim."""
        self._plan.withdraw([request], now)
        self._plan.lift(self._by_class(self._plan.order()), now)

    def return_to_queue(self, request: int, now: int) -> None:
        """Plan a request again, with all others."""
        self._plan.reserve(request, self._plan.earliest(request, now))
        self._plan.meta[cycle.OVERRAN] = 1

    def begin(self, request: int, until: int, now: int) -> None:
        """Start a request with a claim."""
        self._note_starts((request,), now)
        self._plan.begin(request, until, now)

    def _queue(self, rows: IntArray) -> Queue:
        running = self._plan.running()
        predicted = None if self._predictions is None else self._predictions.present
        return self._cluster.queue(rows, running, int(self._plan.need[running].sum()), predicted)

    def dispatch(self, now: int) -> Decision:
        """Return the requests whose planned start is now; the next decision is due at the next planned start."""
        plan = self._plan
        rows, wake = plan.due(now), plan.next_start()
        if not rows:
            if wake != self._nothing.wake:
                self._nothing = NOTHING._replace(wake=wake)
            return self._nothing
        self._note_starts(rows, now)
        starts = plan.starts_of(rows)
        if self._shapes is not None:
            starts = [start._replace(cores=int(plan.need[start.request])) for start in starts]
        return starting(starts, wake)
