"""Backfilling: one scheduler for FCFS, first-fit, EASY and reservations of any depth, under any ordering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.random import Generator

from gridsim.errors import InputError, name_of
from gridsim.machine.allocations_over_time import Holdings
from gridsim.model.time import IntArray
from gridsim.policy import capabilities as parts
from gridsim.policy.ordering import Fifo, InQueue
from gridsim.policy.placement import First
from gridsim.policy.placement_bridge import PlacementLog
from gridsim.policy.prediction import Request, Requested
from gridsim.policy.preemption import by_class
from gridsim.policy.protocols import (
    NOTHING,
    Capabilities,
    CapacityChange,
    Decision,
    LoopState,
    Placement,
    Quote,
    Start,
    Stop,
    starting,
)
from gridsim.policy.queue import ClusterView
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.list_cycle import ESTIMATE
from gridsim.policy.scheduler.list_state import ListState
from gridsim.policy.scheduler.moldable_state import MoldableState
from gridsim.policy.scheduler.ordering_strategy import cycle_for
from gridsim.policy.scheduler.run_predictions import Predicting, Predictions


@dataclass(repr=False)
class Backfilling(Predicting):
    """Starts requests in the order of *ordering*, and backfills others that delay no reservation of *reserve*.

    Parameters
    ----------
    ordering : Ordering
        Order of the queue.
    reserve : ReservationRule
        ``strict`` (no backfilling), ``first-fit``, ``easy``, ``depth(k=…)``.
    backfill_order : Ordering
        Order of the backfill candidates: ``queue``, ``shortest``, or any ordering.
    predict : Predictor
        Predicted run times for planning; ``requested``: the requested walltimes. Jobs are killed only at their
        requested walltimes.
    correct : Corrector
        New prediction of a job that exceeds its prediction.
    placement : PlacementRule
        Placement of tasks on a machine of nodes.
    preempt : Preemption, optional
        Stops running jobs for the first job of the queue if that has a higher priority class.

    Notes
    -----
    Reservations are valid for one scheduling cycle: each cycle determines the first request in the queue and its
    reservation again (spec of the deadline papers, 3.2). FCFS is ``strict`` in first-come order.
    """

    ordering: Any = field(default_factory=Fifo)
    reserve: Any = field(default_factory=Easy)
    backfill_order: Any = field(default_factory=InQueue, kw_only=True, repr=False)
    predict: Any = field(default_factory=Requested, kw_only=True, repr=False)
    correct: Any = field(default_factory=Request, kw_only=True, repr=False)
    placement: Any = field(default_factory=First, kw_only=True, repr=False)
    preempt: Any = field(default=None, kw_only=True, repr=False)
    _holds = _recalled = frozenset[int]()
    orders_classes: ClassVar[bool] = True
    source: ClassVar[str] = "Lifka 1995; Mu'alem, Feitelson 2001"

    def __post_init__(self) -> None:
        if parts.keeps_holders(self.reserve):
            raise ValueError(f"{self.reserve!r} keeps reservations between cycles: moldable?partition=rigid&reserve=…")
        if parts.blocks(self.reserve) and not isinstance(self.backfill_order, InQueue):
            raise InputError("has no effect without backfilling: give reserve=easy", field="backfill_order")

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities, which depend on the parts."""
        can, scope = parts.of_ordering(self.ordering), parts.scope_of(self.ordering)
        predicts = not isinstance(self.predict, Requested)
        in_python = self._in_python()
        able: dict[Any, bool] = {"pool": not in_python, "nodes": not in_python and not self._picks}
        able["windows"] = not in_python and not predicts and self._by_row()
        if self._picks:
            in_python = f"{name_of(self.ordering)} selects the next request, on a machine of nodes or several pools"
        return Capabilities(
            scope=scope,
            notified=frozenset({"capacity_changed"} if can.keep else {"held", "capacity_changed"}),
            compiled=frozenset(name for name in able if able[name]),
            in_python=in_python,
            predicts=predicts,
            vectors=True,
            oracle=parts.uses_run_times(self.predict),
        )

    def _by_row(self) -> bool:
        """Return whether its decisions depend only on data of the requests, which can then change the window."""
        orderings = (self.ordering, self.backfill_order)
        by_row = all(parts.of_ordering(it).changes == "static" or parts.ages(it) for it in orderings)
        return by_row and all(map(parts.is_own, (*orderings, self.reserve)))

    @property
    def _picks(self) -> bool:
        """True if the next request is selected after each start, by a compiled ordering."""
        plain = parts.blocks(self.reserve) and isinstance(self.predict, Requested)
        return plain and (parts.draws_alone(self.ordering) or parts.counts_in_columns(self.ordering))

    def _in_python(self) -> str:
        """Return why its cycles cannot run in the compiled loop; empty if they can."""
        can = parts.of_ordering(self.ordering)
        if self.preempt is not None:
            return "running jobs can be preempted"
        if self._picks:
            return ""
        if can.keep or parts.scope_of(self.ordering) != "cluster":
            return f"{name_of(self.ordering)} depends on the usage of each share"
        if can.changes == "start":
            return f"{name_of(self.ordering)} is called again after each start"
        if can.changes == "pass" and parts.blocks(self.reserve) and (can.pick or can.group):
            return f"{name_of(self.ordering)} selects the next request itself"
        if isinstance(self.predict, Requested):
            return ""
        if not parts.predicts_in_columns(self.predict):
            return f"{name_of(self.predict)} predicts in Python"
        if not parts.corrects_by_rule(self.correct):
            return f"{name_of(self.correct)} corrects in Python"
        if parts.of_ordering(self.backfill_order).changes == "static" and not parts.is_own(self.backfill_order):
            return f"{name_of(self.backfill_order)} is called for each request, with its prediction"
        return ""

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run: empty queue, no running requests."""
        parts.begin(self.ordering, rng)
        ledger = self.ordering.keep(cluster) if parts.of_ordering(self.ordering).keep else None
        predictions = None
        if self.capabilities.predicts:
            predictions = Predictions(cluster, self.predict, self.correct, rng)
        self._predictions = predictions
        tail = None if isinstance(self.backfill_order, InQueue) else self.backfill_order
        parts.begin(tail, rng)
        state = ListState(cluster, self.reserve, ledger, predictions, tail, self.placement, rng)
        self._state: ListState | MoldableState = state
        self._starts: Callable[[Sequence[Any]], Sequence[Start]] = state.starts
        self._cycle: Callable[[int], Sequence[Any]] = cycle_for(
            by_class(self.ordering, cluster.requests), state, cluster
        )
        self._known = cluster.requests.known
        self._holds = frozenset()

    def passes(self, rows: IntArray) -> LoopState:
        """Return the arrays for a compiled run in which these requests are submitted in this order."""
        return self._state.passes(rows)

    def resume(self, before: Backfilling, rows: IntArray, submitted: int) -> IntArray:
        """Continue from a scheduler of the same policy in an earlier window of requests."""
        return self._list.resume(before._list, rows, submitted)

    def quote(self, request: int, now: int) -> Quote:
        """Return a quote: every request is admitted."""
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Add the request to the queue."""
        if quote.request >= self._known:
            self._state.learn(quote.request)
        if self._predictions is not None and quote.request not in self._recalled:
            self._predictions.submitted(quote.request, self._predictions.predict(quote.request, now))
        self._state.joined(quote.request, now)
        return ()

    def held(self, request: int, until: int, now: int, placement: Placement | None = None) -> None:
        """Allocate cores or nodes to a request that is no job, or that runs from the beginning."""
        if request >= self._known:
            self._state.learn(request)
        if self._predictions is not None and request in self._recalled:
            until = self._predictions.resume(request, until, now)
        else:
            self._holds |= {request}
        self._state.hold(request, until, now, placement)

    def recall(self, past: Sequence[tuple[int, int, int]]) -> None:
        """Learn jobs that ended before the run, and predict the requests that were submitted before it."""
        assert self._predictions is not None
        self._recalled = self._predictions.recall(past)

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Record that nodes or GPUs are absent or have returned."""
        self._list.capacity_changed(change, now)

    def ended(self, request: int, now: int) -> None:
        """Record that the request has ended."""
        self._state.ended(request, now)
        if self._holds and request in self._holds:  # these have no predictions
            self._holds -= {request}
        elif self._predictions is not None:
            self._predictions.ended(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Record that the request is expected to hold its cores until *expected_end*."""
        self._state.overran(request, expected_end, now)

    # -- preemption (`gridsim.policy.scheduler.preempting`) --------------------------------------------------------

    @property
    def _list(self) -> ListState:
        assert isinstance(self._state, ListState)
        return self._state

    @property
    def log(self) -> PlacementLog:
        """Placements, and allocations over time."""
        return self._list.log

    @property
    def durations(self) -> IntArray:
        """Planned run times of all requests, whole microseconds."""
        found: IntArray = self._list.table[ESTIMATE]
        return found

    def front(self, now: int) -> tuple[Sequence[Start], Sequence[int]]:
        """Return the starts up to the first request that does not fit now, and that request."""
        with self._list.in_strict_order():
            starts = Backfilling.dispatch(self, now).starts  # a user-defined decision is for the whole queue
        self._list.take_in()
        return starts, self._list.rows()[:1].tolist()

    def holdings_for(self, request: int, now: int) -> Holdings:
        """Return a copy of the allocations."""
        return self.log.holdings.copy()

    def resumed(self, request: int, began: int, paused: int) -> None:
        """Record that a run continues that was suspended, so that predictions count the time with cores."""
        self._note_starts((request,), began + paused)

    def expect(self, request: int, end: int, now: int) -> None:
        """Set the expected end of a running request."""
        self._expect(request, end)

    def _expect(self, request: int, end: int) -> None:
        self._list.corrected(request, end)

    def set_aside(self, request: int, now: int) -> None:
        """Remove a request with a claim from the queue."""
        self._list.remove(request)

    def return_to_queue(self, request: int, now: int) -> None:
        """Queue a request again."""
        self._list.joined(request, now)

    def begin(self, request: int, until: int, now: int) -> None:
        """Start a request with a claim."""
        self._note_starts((request,), now)
        self._list.begin(request, until, now)

    def settled(self, now: int) -> None:
        """Do nothing: reservations are valid for one cycle only."""

    def dispatch(self, now: int) -> Decision:
        """Run a scheduling cycle; without an event no request starts later."""
        started = self._cycle(now)
        self._note_starts(started, now)
        return starting(self._starts(started)) if started else NOTHING
