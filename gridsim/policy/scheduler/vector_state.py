"""Waiting and running requests of a cluster with nodes, or with pools of more than cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.errors import PolicyError
from gridsim.model.time import IntArray
from gridsim.policy.places import holdings_of, place_of, placement_at
from gridsim.policy.protocols import Placement, Start, name_of
from gridsim.policy.queue import ClusterView, Ledger
from gridsim.policy.scheduler import vectors
from gridsim.policy.scheduler.kernels import ESTIMATE, QUEUE
from gridsim.policy.scheduler.predicted import Predictions
from gridsim.policy.scheduler.state import EVERYONE, State
from gridsim.policy.scheduler.vectors import COUNT, DONE, PASSED, PROMISE, ROW, Pass
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["VectorState"]


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
        An order of those behind the protected, of which nothing is known here.
    placement : PlacementRule
        Where tasks go.
    rng : Generator
        For rules that draw.

    Raises
    ------
    PolicyError
        For such an order.
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
        if tail is not None:
            raise PolicyError(f"{name_of(tail)} orders those behind the protected on one pool of cores alone")
        super().__init__(cluster, rule, ledger, predictions)
        self._holdings = holdings_of(cluster, placement, rng)
        self._placements: dict[int, Placement] = {}
        self._now = 0
        self._state: IntArray = np.zeros(11, dtype=np.int64)
        self._state[vectors.RISES] = 1
        self._pending: IntArray = np.zeros(n, dtype=np.int64)
        self._columns = self._columns_for(len(self._holdings.asked.classes.shape))

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
        self._settle(now, self.tail)
        holdings, state, estimate = self._holdings, self._state, self.table[ESTIMATE]
        vectors.begin_pass(self._columns)
        while True:
            given = (self._columns, holdings.floor, holdings.classes, holdings.sketch)
            found = vectors.next_of_pass(now, limit, *given)
            if found == PASSED:
                break
            row, duration = int(state[ROW]), int(estimate[state[ROW]])
            if found == PROMISE:
                start = holdings.first_place(row, duration, now)
                holdings.put(row, start, start + duration, promise=True)
                continue
            count = holdings.put(row, now, now + duration)
            self._placements[row] = placement_at(holdings, row, count)
        holdings.let_go(self._pending, int(state[DONE]), now)
        return self.passed(int(state[COUNT]), now)

    def begin_at(self, index: int, now: int) -> int | None:
        """Start the request at an index of the queue; None where it cannot be placed now."""
        row, holdings = int(self.table[QUEUE, self.meta[HEAD] + index]), self._holdings
        duration = int(self.table[ESTIMATE, row])
        if holdings.first_place(row, duration, now, now + 1) < 0:
            return None
        count = holdings.put(row, now, now + duration)
        self._placements[row] = placement_at(holdings, row, count)
        vectors.begun(now, index, self._columns)
        if self.ledger is not None and self._share is not None:
            self.ledger.change(self._share[row], int(self.requests.cores[row]), now)
        return row

    def starts(self, started: Sequence[int]) -> list[Start]:
        """The decision that these start, each at its place."""
        return [Start(row, 0, self._placements.pop(row)) for row in started]

    def available(self, now: int) -> int:
        """Something that is not 0: which resource is scarce depends on who asks."""
        return 1

    def full(self, now: int) -> bool:
        """Never known before requests are looked at."""
        return False
