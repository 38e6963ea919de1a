"""Waiting and running requests of a cluster of several pools without nodes: nothing is placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridsim.policy.protocols import Passes, Placement
from gridsim.policy.queue import ClusterView, Ledger
from gridsim.policy.scheduler.kernels import QUEUE
from gridsim.policy.scheduler.pooled import LEFT, backfill_pools
from gridsim.policy.scheduler.predicted import Predictions
from gridsim.policy.scheduler.state import EVERYONE, Order, State
from gridsim.profile.asked import Asked
from gridsim.profile.waiting import HEAD

__all__ = ["PooledState"]


class PooledState(State):
    """The same as `State` where requests ask for amounts of several pools, and all are looked at in queue order."""

    in_slots = False

    def __init__(self, cluster: ClusterView, rule: Any, ledger: Ledger | None, predictions: Predictions | None) -> None:
        super().__init__(cluster, rule, ledger, predictions)
        asked = cluster.asked
        assert asked is not None
        table, running, moves, _, lanes, meta = self.arrays
        needs = np.ascontiguousarray(asked.classes.whole[asked.classes.of][:, self._first_pool(asked) :])
        self._asked = asked
        room = self.arrays[3].shape[1]
        idle = np.stack([asked.columns.amounts, asked.columns.amounts])
        profile = np.zeros(room, dtype=np.int64), np.zeros((room, idle.shape[1]), dtype=np.int64)
        self._queue = (table, running, moves, lanes, meta)
        self._pools = (needs, idle, *profile)

    @staticmethod
    def _first_pool(asked: Asked) -> int:
        """Where pools begin in the columns of what whole requests ask for."""
        return 1 + len(asked.columns.resources)

    def hand_over(self, loop: str, *columns: Any) -> None:
        """Say what a whole run of passes over a queue that stays sorted is played by; *columns* end with its flags."""
        if loop == "backfilling":
            self.hand_over_ordered(Order(waits=bool(columns[-1][0])))

    def _play(self, order: tuple[Any, ...], ask: Callable[[int], None] | None) -> None:
        self._passes = Passes("pooled", (self._queue, self._pools, order), ask)

    def learn(self, request: int) -> None:
        """Take down what a request asks for that was not known when the run began."""
        super().learn(request)
        classes = self._asked.classes
        self._pools[0][request] = classes.whole[classes.of[request], self._first_pool(self._asked) :]

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """A request that never waited holds what it asks of pools from *now* until an instant."""
        super().hold(request, until, now, placement)
        self._pools[1][:] -= self._pools[0][request]

    def run_pass(self, now: int, limit: int = EVERYONE) -> Sequence[int]:
        """Rows that a pass starts, at most *limit* of them."""
        return self.passed(backfill_pools(now, limit, self.ended_count, self.tail, self._queue, self._pools), now)

    def take_in(self) -> None:
        """Tell the arrays what ended and arrived since the last pass."""
        self._give_back()
        super().take_in()

    def _let_go(self) -> None:
        self._give_back()
        super()._let_go()

    def _give_back(self) -> None:
        for row in self.moves[1, : self.ended_count].tolist():
            self._pools[1][LEFT] += self._pools[0][row]

    def begin_at(self, index: int, now: int) -> int | None:
        """Start the request at an index of the queue; None where it has to wait."""
        waiting = self.table[QUEUE]
        place = int(self.meta[HEAD]) + index
        row = int(waiting[place])
        head = int(self.meta[HEAD])
        waiting[head + 1 : place + 1] = waiting[head:place].copy()
        waiting[head] = row
        started = self.run_pass(now, 1)  # nobody passes where single requests are picked: only this one is looked at
        if not started:
            waiting[head:place] = waiting[head + 1 : place + 1].copy()
            waiting[place] = row
            return None
        return row

    def available(self, now: int) -> int:
        """Something that is not 0: which pool is scarce depends on who asks."""
        return 1

    def full(self, now: int) -> bool:
        """Never known before requests are looked at."""
        return False
