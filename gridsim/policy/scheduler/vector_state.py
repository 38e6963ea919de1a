"""Waiting and running requests of a cluster with nodes, or with pools of more than cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.model.time import IntArray
from gridsim.policy.places import Laid, holdings_of, place_of, placement_at
from gridsim.policy.protocols import Passes, Placement, Start
from gridsim.policy.queue import ClusterView, Ledger
from gridsim.policy.scheduler import vectors
from gridsim.policy.scheduler.kernels import ESTIMATE, QUEUE
from gridsim.policy.scheduler.predicted import Predictions
from gridsim.policy.scheduler.state import EVERYONE, Order, State
from gridsim.policy.scheduler.vectors import COUNT, FULL, ROW, STOPPED, Pass
from gridsim.profile.holdings import Place
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["VectorState"]

_NOWHERE = Placement((), {}, (), ())


class VectorState(State):
    """The same as `State` where requests ask for several resources, at places.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    rule : ReservationRule
        Who holds a promise during a pass, and whether anybody passes a blocked request.
    ledger : Ledger or None
        Where usage by share is kept, for orderings that ask.
    predictions : Predictions or None
        What requests are planned to run; their estimates where left out.
    tail : Ordering or None
        In which order those behind the protected are looked at; the queue's where left out.
    placement : PlacementRule
        Where tasks go.
    rng : Generator
        For rules that draw.
    """

    in_slots = False

    def __init__(
        self,
        cluster: ClusterView,
        rule: Any,
        ledger: Ledger | None,
        predictions: Predictions | None,
        tail: Any,
        placement: Any,
        rng: Generator,
    ) -> None:
        n = len(cluster.requests)
        super().__init__(cluster, rule, ledger, predictions, tail)
        self._holdings = holdings_of(cluster, placement, rng)
        self._placements: dict[int, Placement] = {}
        self._now = 0
        self._state: IntArray = np.zeros(16, dtype=np.int64)
        self._state[vectors.RISES] = 1
        self._state[vectors.RANKED] = tail is not None
        self._pending: IntArray = np.zeros(n, dtype=np.int64)
        self._columns = self._columns_for(len(self._holdings.asked.classes.shape))
        self._laid = Laid(self._holdings, self._state)

    def _columns_for(self, classes: int) -> tuple[Any, ...]:
        """What passes work on, where so many different demands are made."""
        table, running, moves, _, lanes, meta = self.arrays
        blocked: IntArray = np.zeros(classes, dtype=np.int64)
        return tuple(Pass(table, running, moves, lanes, meta, self._state, self._pending, blocked))

    def learn(self, request: int) -> None:
        """Take down what a request asks for that was not known when the run began."""
        super().learn(request)
        self._holdings.learn()
        if len(self._holdings.asked.classes.shape) > len(self._columns[-1]):
            self._state[vectors.RISES] += 1  # nothing is known of any class
            self._columns = self._columns_for(2 * len(self._holdings.asked.classes.shape))

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """A request that never waited holds its place from *now* until an instant."""
        assert placement is not None
        self._now = now
        super().hold(request, until, now, placement)
        self._holdings.put_at(request, place_of(self._holdings, placement), now, until)

    def joined(self, request: int, now: int) -> None:
        """A request waits from *now* on; the next pass finds its place in the queue."""
        self._now = now
        super().joined(request, now)

    def ended(self, request: int, now: int) -> None:
        """A running request gave back what it held."""
        self._now = now
        super().ended(request, now)

    def corrected(self, request: int, expected_end: int) -> None:
        """A running request is believed to hold its place until *expected_end*; nothing is free for that."""
        super().corrected(request, expected_end)
        self._holdings.until(request, expected_end, self._now)

    def _let_go(self) -> None:
        self._settle(self._now, int(self.meta[TAIL]))

    def take_in(self) -> None:
        """Tell the arrays what ended and arrived since the last pass."""
        self._settle(self._now, self.tail)

    def _settle(self, now: int, tail: int) -> None:
        self._holdings.let_go(self.moves[1], self.ended_count, now)
        vectors.settle(now, self.ended_count, tail, self._columns)
        self.ended_count = 0

    def run_pass(self, now: int, limit: int = EVERYONE) -> Sequence[int]:
        """Rows that a pass starts, at most *limit* of them."""
        self.rank_behind(now)
        ended, self.ended_count = self.ended_count, 0
        while stopped := vectors.make_pass(now, limit, ended, self.tail, *self._given()):
            if stopped != FULL:
                self._holdings.help(stopped, int(self._state[ROW]))
            self._note_places()
        self._note_places()
        return self.passed(int(self._state[COUNT]), now)

    def _given(self) -> tuple[tuple[Any, ...], ...]:
        """What a pass works on, as it is now."""
        held = self._holdings
        return self._columns, held.floor, held.classes, held.sketch, held.rule, self._laid.log

    def _note_places(self) -> None:
        """Take down in words where those lie who started."""
        request, place = self._laid.take()
        rows = request.tolist()
        first = 0
        for last in range(1, len(rows) + 1):
            if last == len(rows) or rows[last] != rows[first]:
                part = Place(*(column[first:last] for column in place))
                self._placements[rows[first]] = placement_at(self._holdings, rows[first], part)
                first = last

    def begin_at(self, index: int, now: int) -> int | None:
        """Start the request at an index of the queue; None where it cannot be placed now."""
        row, holdings = int(self.table[QUEUE, self.meta[HEAD] + index]), self._holdings
        duration = int(self.table[ESTIMATE, row])
        if holdings.first_place(row, duration, now, now + 1) < 0:
            return None
        count = holdings.put(row, now, now + duration)
        self._placements[row] = placement_at(holdings, row, holdings.place(count))
        vectors.begun(now, index, self._columns)
        if self.ledger is not None and self._share is not None:
            self.ledger.change(self._share[row], int(self.requests.cores[row]), now)
        return row

    def starts(self, started: Sequence[int]) -> list[Start]:
        """The decision that these start, each at its place."""
        return [Start(row, 0, self._placements.pop(row, _NOWHERE)) for row in started]

    def hand_over(self, loop: str, *columns: Any) -> None:
        """Say what a whole run of passes over a queue that stays sorted is played by; *columns* end with its flags."""
        if loop == "backfilling":
            self.hand_over_ordered(Order(waits=bool(columns[-1][0])))

    def _play(self, order: tuple[Any, ...], ask: Callable[[int], None] | None) -> None:
        def columns() -> tuple[Any, ...]:
            return (*self._given(), order)

        def asked(now: int) -> tuple[Any, ...]:
            if stopped := int(self._state[STOPPED]):
                self._laid.help(stopped, int(self._state[ROW]))
            elif ask is not None:
                ask(now)
            return columns()

        self._passes = Passes("placed", columns(), asked, self._laid.pieces)

    def available(self, now: int) -> int:
        """Something that is not 0: which resource is scarce depends on who asks."""
        return 1

    def full(self, now: int) -> bool:
        """Never known before requests are looked at."""
        return False
