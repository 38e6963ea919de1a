"""Waiting requests whose size is chosen when they start, on machines of nodes, or with pools of more than cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.places import holdings_of, place_of, placement_at
from gridsim.policy.protocols import Placement, Start
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler import promises
from gridsim.policy.scheduler.molded import Molded
from gridsim.profile.running import begin_running
from gridsim.profile.waiting import HEAD, TAIL, index_of, take_out

__all__ = ["VectorMolded"]


class VectorMolded(Molded):
    """The same as `Molded` where a size is a number of tasks, at places.

    Parameters
    ----------
    cluster, ordering, rule, partition, best, by_queue
        As `Molded` takes them.
    placement : PlacementRule
        Where tasks go.
    rng : Generator
        For rules that draw.

    Notes
    -----
    A pass is that of `gridsim.policy.scheduler.promises`, on holdings. The places of holders are always found anew:
    those who have started since may lie elsewhere than was thought.
    """

    def __init__(
        self,
        cluster: ClusterView,
        ordering: Any,
        rule: Any,
        partition: Any,
        placement: Any,
        rng: Generator,
        *,
        best: bool,
        by_queue: bool,
    ) -> None:
        super().__init__(cluster, ordering, rule, partition, best=best, by_queue=by_queue)
        self._held = np.zeros((2, len(cluster.requests) + 1), dtype=np.int64)  # some may need no core
        self._running = (self._held, self._meta, self._need, self.began)
        self._holdings = holdings_of(cluster, placement, rng)
        self._sized = cluster.asked is not None and cluster.asked.sized is not None
        self._one: IntArray = np.zeros(1, dtype=np.int64)
        self._now = 0
        self._lane, self._unheld = self._lanes.lane.tolist(), list(self._lanes.capacity)
        self._holders: list[int] = []
        self._in_lane: dict[int, bool] = {}  # of each holder: whether it is one in its lane
        self._started: list[tuple[int, int]] = []
        self._placements: dict[int, Placement] = {}

    def learn(self, request: int) -> None:
        """Take down what a request asks for that was not known when the run began: it has one size."""
        super().learn(request)
        self._lane[request] = int(self._places[promises.LANE, request])
        self._holdings.learn()

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """A request that never waited holds its place from *now* until an instant."""
        assert placement is not None
        super().hold(request, until, now, placement)
        self._holdings.put_at(request, place_of(self._holdings, placement), now, until)

    def ended(self, request: int, now: int) -> None:
        """A request gave back what it held, maybe early."""
        super().ended(request, now)
        self._one[0] = request
        self._holdings.let_go(self._one, 1, now)

    def overran(self, request: int, expected_end: int) -> None:
        """A running request is expected to hold its place for longer."""
        super().overran(request, expected_end)
        self._holdings.until(request, expected_end, self._now)

    def run_pass(self, now: int) -> Sequence[Start]:
        """Requests that start now, with their sizes and places."""
        self._now = now
        if self._meta[HEAD] == self._meta[TAIL]:
            return ()
        rows = self._rows(now)
        if not self.shapes.told:
            self.shapes.allow(rows, self._running, now)
        limits = dict(zip(rows.tolist(), self.shapes.allowed[: len(rows)].tolist(), strict=True))
        self._come_due(now, rows)
        if self._by_queue:
            self._holders = [row for row in limits if row in self._in_lane]
        self._started = []
        self._serve_holders(now, limits)
        self._serve_others(now, limits)
        self._holdings.let_go(np.array(self._holders, dtype=np.int64), len(self._holders), now)
        if not self._started:
            return ()
        starts = self._begin(np.array(self._started, dtype=np.int64).T, now)
        return [start._replace(placement=self._placements.pop(start.request)) for start in starts]

    def _come_due(self, now: int, rows: IntArray) -> None:
        """Who has waited too long holds a promise too, those due first before others."""
        late = np.array([row for row in rows[self._due[rows] < now] if row not in self._in_lane], dtype=np.int64)
        for row in late[self.requests.in_order(late, self._due[late])].tolist():
            self._holders.append(row)
            self._in_lane[row] = False

    def _serve_holders(self, now: int, limits: dict[int, int]) -> None:
        """Place all holders in order, and start those whose place begins now."""
        holders, self._holders = self._holders, []
        for row in holders:
            start, cores = self._choose(row, limits[row], now)
            self._lay(row, cores, start, now)
            if start > now:
                self._holders.append(row)
            elif self._in_lane.pop(row):
                self._unheld[self._lane[row]] += 1

    def _serve_others(self, now: int, limits: dict[int, int]) -> None:
        """Start requests without promises in queue order; one that cannot holds a promise if its lane has any left."""
        gone = {row for row, _ in self._started}
        for row, high in limits.items():
            if row in self._in_lane or row in gone:
                continue
            lane = self._lane[row]
            if self._unheld[lane] > 0:
                start, cores = self._choose(row, high, now)
                self._lay(row, cores, start, now)
                if start > now:
                    self._unheld[lane] -= 1
                    self._in_lane[row] = True
                    self._holders.append(row)
                continue
            fitting = self._fitting(row, high, now)
            if fitting is None:
                continue
            start, cores = self._choose(row, high, now) if self._best else (now, fitting)
            if start == now:
                self._lay(row, cores, start, now)

    def _choose(self, row: int, high: int, now: int) -> tuple[int, int]:
        """Start and cores by which a request of at most *high* cores ends first; of equal ends the fewest cores."""
        return self.shapes.choose(row, high, now, lambda cores: self._earliest(row, cores, now, NEVER))

    def _fitting(self, row: int, high: int, now: int) -> int | None:
        """Cores by which a request that starts now ends first; None where none of its sizes has a place now."""
        best, found = NEVER, None
        for cores in self.shapes.tried(row, high):
            duration = self.shapes.on(row, cores)
            if duration < best - 1 and self._earliest(row, cores, now, now + 1) >= 0:
                best, found = duration, cores
        return found

    def _earliest(self, row: int, cores: int, begin: int, before: int) -> int:
        """First instant from *begin* on, before another, at which a request of this size has a place; -1 for none."""
        if self._sized:
            self._holdings.asked.resize(row, cores)
        return self._holdings.first_place(row, self.shapes.on(row, cores), begin, before)

    def _lay(self, row: int, cores: int, start: int, now: int) -> None:
        """Lay a request down where it has a place; from *now* on it runs there."""
        self._earliest(row, cores, start, start + 1)
        count = self._holdings.put(row, start, start + self.shapes.on(row, cores), promise=start > now)
        if start == now:
            self._started.append((row, cores))
            self._placements[row] = placement_at(self._holdings, row, self._holdings.place(count))

    def _begin(self, started: IntArray, now: int) -> Sequence[Start]:
        """Let those that start leave the queue and run."""
        rows: list[int] = started[0].tolist()
        starts = [Start(row, cores) for row, cores in zip(rows, started[1].tolist(), strict=True)]
        for row, cores, _ in starts:
            take_out(self._waiting, self._meta, index_of(self._waiting, self._meta, row))
            self._need[row] = cores
            self.began[row] = now
            begin_running(self._held, self._meta, row, now + self.shapes.on(row, cores), cores)
        return starts
