"""Backfilling: one scheduler for FCFS, first-fit, EASY and reservations of any depth, under any ordering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.policy.capabilities import (
    ages,
    begin,
    blocks,
    corrects_by_rule,
    counts_in_columns,
    draws_alone,
    is_own,
    keeps_holders,
    knows_runtimes,
    of_ordering,
    predicts_in_columns,
    scope_of,
)
from gridsim.policy.correction import Request
from gridsim.policy.ordering import Fifo
from gridsim.policy.placement import First
from gridsim.policy.prediction import Requested
from gridsim.policy.protocols import (
    NOTHING,
    Capabilities,
    Decision,
    Passes,
    Placement,
    Quote,
    Start,
    Stop,
    name_of,
    representation,
    starting,
)
from gridsim.policy.queue import ClusterView
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.list_state import ListState
from gridsim.policy.scheduler.moldable_state import MoldableState
from gridsim.policy.scheduler.ordering_strategy import cycle_for
from gridsim.policy.scheduler.predicted import Predictions
from gridsim.policy.tail import InQueue
from gridsim.record import Predictions as PredictionRecord


@dataclass(repr=False)
class Backfilling:
    """Requests in the order of *ordering*; whom *reserve* protects is not delayed by those that pass.

    Parameters
    ----------
    ordering : Ordering
        Which waiting request comes first.
    reserve : ReservationRule
        ``strict`` (nobody passes), ``first-fit``, ``easy``, ``depth(k=…)``.
    backfill_order : Ordering
        In which order those behind the protected are looked at: ``queue``, ``shortest``, or any ordering.
    predict : Predictor
        What requests are planned to run; ``requested``: what their users asked for. Killed they are at that alone.
    correct : Corrector
        What is believed of one that outlives its prediction.
    placement : PlacementRule
        Where tasks go on a machine of nodes.

    Notes
    -----
    Promises do not outlive a pass: the head is whatever the order says now, and its place is found afresh
    (spec of the deadline papers, 3.2). FCFS is ``strict`` in first-come order.
    """

    ordering: Any = field(default_factory=Fifo)
    reserve: Any = field(default_factory=Easy)
    backfill_order: Any = field(default_factory=InQueue, kw_only=True, repr=False)
    predict: Any = field(default_factory=Requested, kw_only=True, repr=False)
    correct: Any = field(default_factory=Request, kw_only=True, repr=False)
    placement: Any = field(default_factory=First, kw_only=True, repr=False)
    _holds = frozenset[int]()
    source: ClassVar[str] = "Lifka 1995; Mu'alem, Feitelson 2001"

    def __post_init__(self) -> None:
        if keeps_holders(self.reserve):
            raise ValueError(f"{self.reserve!r} keeps promises from pass to pass: molding?partition=asked&reserve=…")
        if blocks(self.reserve) and not isinstance(self.backfill_order, InQueue):
            raise InputError("means nothing where nobody passes: give reserve=easy", field="backfill_order")

    def __repr__(self) -> str:
        return representation(self)

    @property
    def capabilities(self) -> Capabilities:
        """What its order depends on."""
        can, scope = of_ordering(self.ordering), scope_of(self.ordering)
        predicts = not isinstance(self.predict, Requested)
        in_python = self._in_python()
        able: dict[Any, bool] = {"pool": not in_python, "nodes": not in_python and not self._picks}
        able["windows"] = not in_python and not predicts and self._by_row()
        if self._picks:
            in_python = f"{name_of(self.ordering)} names the next request, on a machine of nodes or several pools"
        return Capabilities(
            scope=scope,
            held=not can.keep,
            compiled=frozenset(name for name in able if able[name]),
            in_python=in_python,
            predicts=predicts,
            vectors=True,
            oracle=knows_runtimes(self.predict),
        )

    def _by_row(self) -> bool:
        """Whether all that it asks of a request is what the request says: it may be asked again in another window."""
        orderings = (self.ordering, self.backfill_order)
        known = all(is_own(it) and (of_ordering(it).changes == "static" or ages(it)) for it in orderings)
        return known and is_own(self.reserve)

    @property
    def _picks(self) -> bool:
        """Whether the next request is named anew after each start, by what is compiled."""
        plain = blocks(self.reserve) and isinstance(self.predict, Requested)
        return plain and (draws_alone(self.ordering) or counts_in_columns(self.ordering))

    def _in_python(self) -> str:
        """Why its passes cannot be played in one compiled loop; empty where they can."""
        can = of_ordering(self.ordering)
        if self._picks:
            return ""
        if can.keep or scope_of(self.ordering) != "cluster":
            return f"{name_of(self.ordering)} follows what each share uses"
        if can.changes == "start":
            return f"{name_of(self.ordering)} is asked again after each start"
        if can.changes == "pass" and blocks(self.reserve) and (can.pick or can.group):
            return f"{name_of(self.ordering)} names the next request itself"
        if isinstance(self.predict, Requested):
            return ""
        if not predicts_in_columns(self.predict):
            return f"{name_of(self.predict)} predicts in Python"
        if not corrects_by_rule(self.correct):
            return f"{name_of(self.correct)} corrects in Python"
        if of_ordering(self.backfill_order).changes == "static" and not is_own(self.backfill_order):
            return f"{name_of(self.backfill_order)} is asked for each request, with its prediction"
        return ""

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run: empty queue, nothing running."""
        begin(self.ordering, rng)
        ledger = self.ordering.keep(cluster) if of_ordering(self.ordering).keep else None
        predictions = None
        if self.capabilities.predicts:
            predictions = Predictions(cluster, self.predict, self.correct, rng)
        self._predictions = predictions
        tail = None if isinstance(self.backfill_order, InQueue) else self.backfill_order
        begin(tail, rng)
        state = ListState(cluster, self.reserve, ledger, predictions, tail, self.placement, rng)
        self._state: ListState | MoldableState = state
        self._starts: Callable[[Sequence[Any]], Sequence[Start]] = state.starts
        self._cycle: Callable[[int], Sequence[Any]] = cycle_for(self.ordering, state, cluster)
        self._known = cluster.requests.known
        self._holds = frozenset()

    def passes(self, rows: IntArray) -> Passes:
        """Its passes for a calendar that plays the whole run, to which these requests come in this order."""
        return self._state.passes(rows)

    def go_on(self, before: Backfilling, rows: IntArray, came: int) -> IntArray:
        """Go on where a scheduler of the same policy stood in an earlier window of requests."""
        assert isinstance(self._state, ListState)
        assert isinstance(before._state, ListState)
        return self._state.go_on(before._state, rows, came)

    def quote(self, request: int, now: int) -> Quote:
        """Every request is taken."""
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """The request joins the queue."""
        if quote.request >= self._known:
            self._state.learn(quote.request)
        if self._predictions is not None:
            self._predictions.came(quote.request, self._predictions.predict(quote.request, now))
        self._state.joined(quote.request, now)
        return ()

    def held(self, request: int, until: int, now: int, placement: Placement | None = None) -> None:
        """Somebody who is no job holds cores, or nodes."""
        self._state.hold(request, until, now, placement)
        self._holds |= {request}

    def ended(self, request: int, now: int) -> None:
        """The request left the machine."""
        self._state.ended(request, now)
        if self._holds and request in self._holds:  # nobody predicts how long those take
            self._holds -= {request}
        elif self._predictions is not None:
            self._predictions.ended(request, now)

    def predicted(self, request: int) -> int:
        """What a running request is believed to run, whole microseconds."""
        assert self._predictions is not None
        return self._predictions.believed(request)

    def corrected(self, request: int, now: int) -> int:
        """A running request outlives its prediction; the next one, whole microseconds. Nothing starts for that."""
        assert self._predictions is not None
        corrected = self._predictions.outlived(request)
        self._state.corrected(request, self._predictions.expected_end(request))  # type: ignore[union-attr]  # it predicts
        return corrected

    def predictions(self) -> PredictionRecord:
        """What was predicted, and how often it was corrected."""
        assert self._predictions is not None
        return PredictionRecord(self._predictions.first, self._predictions.corrections)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The request is expected to hold its cores until *expected_end*."""
        self._state.overran(request, expected_end, now)

    def settled(self, now: int) -> None:
        """Nothing to do: no promise outlives a pass."""

    def dispatch(self, now: int) -> Decision:
        """One pass over the queue; nothing starts without an event."""
        started = self._cycle(now)
        if self._predictions is not None:
            for request in started:
                self._predictions.began(request, now)
        return starting(self._starts(started)) if started else NOTHING
