"""Waiting and running requests of one cluster, as arrays for list cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from gridsim.errors import PolicyError, policy_error
from gridsim.machine.pool import is_too_full
from gridsim.machine.queue_order import HEAD, TAIL, in_order
from gridsim.machine.running_set import HELD, RUNNING, TOTAL, available_now, begin_running, expect_end, most_running
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.capabilities import ages, is_own, of_ordering
from gridsim.policy.ordering import Shortest
from gridsim.policy.placement_bridge import PlacementLog
from gridsim.policy.protocols import CapacityChange, LoopState, Placement, Start, lanes_of, ranks_of
from gridsim.policy.queue import ClusterView, Ledger, Queue
from gridsim.policy.runtime_history import no_predictions
from gridsim.policy.scheduler import linear_priority, list_cycle
from gridsim.policy.scheduler.list_cycle import CORES, ESTIMATE, JOB, LANE, PLACE, QUEUE, RANK, READY
from gridsim.policy.scheduler.machines import NodesMachine, PoolMachine
from gridsim.policy.scheduler.random_selection import nothing_drawn
from gridsim.policy.scheduler.run_predictions import Predictions

ALL = 1 << 60
"""Unlimited number of starts in a cycle."""

STATIC, LINEAR, AGEING, CALLBACK, RANDOM = range(5)
IN_QUEUE, BY_RANK, PREDICTED, AGED_TAIL = range(4)
"""Order of the queue in each cycle: unchanged, linear in time, by wait, evaluated in Python, random; and order of the
backfill candidates: of the queue, by rank, by predicted run time, by wait."""


class Order(NamedTuple):
    """Order of each cycle, if a queue that stays sorted does not suffice.

    Attributes
    ----------
    sort : callable, optional
        Sorts the queue for an instant, whole microseconds; None if it is sorted.
    lines : (2, n) int64, optional
        Coefficients of linear priorities, by request, if the order is linear in time.
    ageing : (4, n) float64, optional
        Terms of ranks by wait (`ListState.ageing`), if these are used.
    draws : bool
        Whether the order is evaluated even if nothing could start.
    drawn : (6,) uint64, optional
        State of the generator for a random order (`gridsim.policy.scheduler.random_selection.drawing`).
    waits : bool
        Whether a blocked first request waits for an end.
        Whether a blocked first request waits for an end.
    """

    sort: Callable[[int], None] | None = None
    lines: IntArray | None = None
    ageing: FloatArray | None = None
    draws: bool = False
    drawn: npt.NDArray[np.uint64] | None = None
    waits: bool = False


class ListState:
    """Waiting requests, in queue order after a cycle has taken them in, and running requests.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    rule : ReservationRule
        Which requests hold a reservation during a cycle, and whether others may start ahead of a blocked request.
    ledger : Ledger, optional
        Usage by share, for orderings that need it.
    predictions : Predictions, optional
        Predicted run times; the estimates if omitted.
    tail : Ordering, optional
        Order of the backfill candidates; that of the queue if omitted.
    placement : PlacementRule, optional
        Placement of tasks on a machine of nodes.
    rng : Generator, optional
        For random placement rules.
    """

    def __init__(
        self,
        cluster: ClusterView,
        rule: Any,
        ledger: Ledger | None = None,
        predictions: Predictions | None = None,
        tail: Any = None,
        placement: Any = None,
        rng: Generator | None = None,
    ) -> None:
        requests = cluster.requests
        n = len(requests)
        self.requests, self.blocking, self.ledger = requests, bool(rule.blocking), ledger
        self._cluster = cluster
        lanes = lanes_of(rule, Queue(requests, np.arange(n)))
        if lanes.due is not None:
            raise policy_error(
                rule,
                "returned due instants, which backfilling does not support: its reservations last "
                "one scheduling cycle; use moldable?partition=rigid&reserve=…",
            )
        self._rule, self._capacity = rule, lanes.capacity
        busy = (most_running(cluster.cores, n) if cluster.demands is None else n) + 1
        promises = int(min(n, lanes.capacity.sum()))
        self.meta: IntArray = np.zeros(list_cycle.META, dtype=np.int64)
        self.meta[[TOTAL, list_cycle.BLOCKING, list_cycle.RANKED]] = cluster.cores, self.blocking, tail is not None
        self.running: IntArray = np.zeros((2, busy), dtype=np.int64)
        self.moves: IntArray = np.zeros((2, busy), dtype=np.int64)
        self._predictions, self._tail_order = predictions, tail
        self._tail_callback = tail is not None and of_ordering(tail).changes != "static"
        self._tail_predicts = type(tail) is Shortest and predictions is not None
        self.table: IntArray = np.zeros((len(list_cycle.ROWS), n), dtype=np.int64)
        self.table[[CORES, ESTIMATE, LANE]] = requests.cores, requests.estimate, lanes.lane
        self.table[JOB : READY + 1] = requests.ties
        capacities = np.stack([lanes.capacity, lanes.capacity])
        self.arrays = (self.table, self.running, self.moves, capacities, self.meta)
        self.machine: PoolMachine | NodesMachine
        if cluster.demands is None or not cluster.demands.capacity.nodes:
            self.machine = PoolMachine(cluster, self.arrays, 2 * (busy + promises) + 8)
        else:
            self.machine = NodesMachine(cluster, self.arrays, placement, rng)
        self._ready_at = requests.ready.data
        self._waiting, self._ready, self._gone = self.table[QUEUE].data, self.table[READY].data, self.moves[1].data
        self._begun = self.moves[0].data
        self._share = requests.labels["share"].data if ledger is not None else None
        self._meta = self.meta.data
        self.tail = self.ended_count = self._now = 0
        self.blocked = self._unsteady = False  # unsteady: the first request may change although none has ended
        self.by_ready = False  # the queue is in the order in which requests became ready
        self._place, self._planned = self.table[PLACE].data, self.table[ESTIMATE].data
        self._rank = None if tail is None else self.table[RANK].data
        # A static order is evaluated once, unless it depends on columns that are set at submission.
        is_static = tail is not None and not self._tail_callback and not self._tail_predicts
        # So may a user-defined one, on predictions.
        self._tail_comes = is_static and (requests.moves or (predictions is not None and not is_own(tail)))
        self._tail_ages = self.ageing(tail)
        if is_static and not self._tail_comes:
            self._rank_tail(np.arange(n), 0)
        self._passes: LoopState | None = None

    def joined(self, request: int, now: int) -> None:
        """Add a waiting request *now*; the next cycle sorts it into the queue."""
        if self.tail == len(self._waiting):
            self._to_front()
        self._waiting[self.tail] = request
        self._now = now
        self._ready[request] = ready = self._ready_at[request]
        self.tail += 1
        if self.by_ready:
            self._place[request] = ready
        if self._predictions is not None:
            self._planned[request] = self._predictions.predicted(request)
        elif self.requests.earlier:
            self._planned[request] = self.requests.estimate[request]
        if self._tail_predicts and self._rank is not None:
            self._rank[request] = self._planned[request]
        elif self._tail_comes:
            self._rank_tail(np.array([request]), now)

    def _to_front(self) -> None:
        """Move the queue to the first place; with requeued requests there are more arrivals than places."""
        head = self._meta[HEAD]
        if not head:
            raise PolicyError("more requests wait than exist: a request was queued twice")
        waiting = self.table[QUEUE]
        waiting[: self.tail - head] = waiting[head : self.tail].copy()
        self.tail -= head
        self._meta[HEAD], self._meta[TAIL] = 0, self._meta[TAIL] - head

    def _rank_tail(self, rows: IntArray, now: int) -> None:
        """Compute the ranks of some requests in the backfill order."""
        self._set(RANK, rows, ranks_of(self._tail_order, self.queue(rows), now / 1e6))

    def ageing(self, ordering: Any) -> FloatArray | None:
        """Return the terms with which `rank_by_age` of the list cycle ranks by wait; None for other orderings."""
        if not ages(ordering) or self.requests.moves:
            return None
        everyone = self.queue(np.arange(len(self.requests)))
        power = np.full(len(everyone), float(ordering.power))
        return np.stack([everyone.submit, *ordering.terms(everyone), power])

    def sort_by_age(self, now: int, ageing: FloatArray) -> None:
        """Sort the queue for this instant; after `take_in`."""
        list_cycle.sort_by_age(now, self.table, self.running, self.meta, ageing)

    @property
    def plain(self) -> bool:
        """True without predictions and with the backfill candidates in queue order."""
        return self._predictions is None and self._tail_order is None

    def export_state(self, loop: str, more: tuple[Any, ...]) -> None:
        """Let a loop for one amount run all cycles of a run, with the queue and *more* columns; see `passes`."""
        if self.machine.is_one_amount:
            self._passes = LoopState(loop, (self.arrays, more))

    def export_ordered_state(self, order: Order) -> None:
        """Let the machine's list loop run all cycles; `passes` then has the queue, the machine and the order.

        The order consists of linear priorities, terms of ageing of the queue and of the backfill order, predictions,
        draws, and flags (`gridsim.engine.list_states`).
        """
        predictions, tail = self._predictions, self._tail_order
        predicting = predictions is not None
        history = no_predictions() if predictions is None else predictions.columns
        if history is None or self._tail_comes:
            return
        ask_tail = self._tail_callback and self._tail_ages is None
        lines, ageing, sort = order.lines, order.ageing, order.sort
        by = LINEAR if lines is not None else AGEING if ageing is not None else CALLBACK if sort is not None else STATIC
        # Otherwise others would draw from the same generator.
        drawn = order.drawn if self.machine.is_one_amount and not ask_tail else None
        by = by if drawn is None else RANDOM
        behind = IN_QUEUE
        if tail is not None:
            behind = PREDICTED if self._tail_predicts else BY_RANK if self._tail_ages is None else AGED_TAIL
        flags = [by, behind, predicting, order.draws, order.waits, False, by == CALLBACK or ask_tail, self.by_ready]
        no_lines, no_ages = np.ones((2, 1), dtype=np.int64), np.ones((4, 1))
        columns = (
            no_lines if lines is None else lines,
            no_ages if ageing is None else ageing,
            no_ages if self._tail_ages is None else self._tail_ages,
            history,
            nothing_drawn() if drawn is None else drawn,
            np.array(flags, dtype=np.int64),
        )

        def callback(now: int) -> None:
            if sort is not None:  # the backfill order is evaluated for requests in queue order
                sort(now)
            if ask_tail:
                self._rank_tail(self.rows(), now)

        self._passes = self.machine.passes(columns, callback if flags[6] else None)

    def passes(self, rows: IntArray) -> LoopState:
        """Return the arrays for a run in which these requests are submitted in this order."""
        assert self._passes is not None
        self.table[QUEUE, : len(rows)] = rows
        if self.by_ready:
            self.table[PLACE] = self.requests.submit
        return self._passes

    def resume(self, before: ListState, rows: IntArray, submitted: int) -> IntArray:
        """Continue from the state of an earlier window of requests; return the waiting ones, in queue order.

        Parameters
        ----------
        rows : (w,) int64
            Rows in this window of the requests of the earlier one.
        submitted : int
            Number of requests that had been submitted there.
        """
        assert self._passes is not None
        assert before._passes is not None
        head, running = before.meta[HEAD], before.meta[RUNNING]
        self.meta[:] = before.meta
        self.meta[HEAD], self.meta[TAIL], self.meta[list_cycle.AGAIN] = 0, before.meta[TAIL] - head, 0
        self.running[0, :running] = before.running[0, :running]
        self.running[1, :running] = rows[before.running[1, :running]]
        self._passes.columns[-1][-1][:] = before._passes.columns[-1][-1]  # flags
        waiting: IntArray = rows[before.table[QUEUE, head:submitted]]
        return waiting

    def learn(self, request: int) -> None:
        """Store the demand of a request that was unknown at the start of the run.

        Raises
        ------
        PolicyError
            If the reservation rule has other lanes for it.
        """
        lanes = lanes_of(self._rule, Queue(self.requests, np.array([request])))
        if not np.array_equal(lanes.capacity, self._capacity):
            raise PolicyError(f"{self._rule!r} computes its lanes from all jobs; no job can be submitted later")
        self.table[[CORES, ESTIMATE], request] = self.requests.cores[request], self.requests.estimate[request]
        self.table[LANE, request] = lanes.lane[0]
        self.machine.learn(request)

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """Allocate cores from *now* until an instant to a request that never waited; on nodes, at its placement."""
        self._now = now
        self._take_ends()
        begin_running(self.running, self.meta, request, until, self.requests.cores[request])
        self._charge((request,), now)
        self.machine.hold(request, until, now, placement)

    @property
    def log(self) -> PlacementLog:
        """Allocations over time on a machine of nodes, without requests that have ended."""
        assert isinstance(self.machine, NodesMachine)
        if self.ended_count:
            self._take_ends()
        return self.machine.log

    @contextmanager
    def in_strict_order(self) -> Iterator[None]:
        """Let cycles end at the first request that does not fit, without reservations."""
        lanes, blocking = self.arrays[3], self.meta[list_cycle.BLOCKING]
        capacity = lanes[0].copy()
        lanes[0], self.meta[list_cycle.BLOCKING] = 0, 1
        try:
            yield
        finally:
            lanes[0], self.meta[list_cycle.BLOCKING] = capacity, blocking

    def remove(self, request: int) -> None:
        """Remove a waiting request from the queue."""
        self.take_in()
        rows = self.rows()
        at = int(np.flatnonzero(rows == request)[0])
        rows[at:-1] = rows[at + 1 :].copy()
        self.tail -= 1
        self.meta[TAIL] -= 1

    def begin(self, request: int, until: int, now: int) -> None:
        """Add a request that is not in the queue to the running ones."""
        self._now = now
        self._take_ends()
        begin_running(self.running, self.meta, request, until, self.requests.cores[request])
        self._charge((request,), now)

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Remove the capacity of absent nodes and GPUs, and restore that of returned ones."""
        self.blocked, self._unsteady, self._now = False, True, now
        self.log.change(change, now)

    def ended(self, request: int, now: int) -> None:
        """Record that a running request has released its cores."""
        self._gone[self.ended_count] = request
        self.ended_count += 1
        self.blocked, self._now = False, now
        if self.ledger is not None and self._share is not None:
            self.ledger.change(self._share[request], -int(self.requests.cores[request]), now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Record that a running request is expected to hold its cores until *expected_end*."""
        self.corrected(request, expected_end)
        self.blocked = False

    def corrected(self, request: int, expected_end: int) -> None:
        """Set the predicted end of a running request; this frees no cores."""
        if self.ended_count:
            self._take_ends()
        expect_end(self.running, self.meta, request, expected_end)
        self.machine.postpone(request, expected_end, self._now)

    def set_places(self, rows: IntArray, ranks: FloatArray) -> None:
        """Set the places of requests in the queue by their ranks."""
        self._set(PLACE, rows, ranks)

    def _set(self, key: int, rows: IntArray, ranks: FloatArray) -> None:
        """Store floats as integers in the same order."""
        bits = (ranks + 0.0).view(np.int64)  # + 0.0: minus zero is zero
        self.table[key, rows] = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)

    def _take_ends(self) -> None:
        """Update the arrays with ends since the last cycle, but without arrivals."""
        self._catch_up(self._meta[TAIL])

    def take_in(self) -> None:
        """Update the arrays with ends and arrivals since the last cycle."""
        self._catch_up(self.tail)

    def _catch_up(self, tail: int) -> None:
        self.machine.catch_up(self._now, self.ended_count, tail)
        self.ended_count = 0

    def arrivals(self) -> IntArray:
        """Return the requests that arrived since the last cycle; before `take_in`."""
        return self.table[QUEUE, self.meta[TAIL] : self.tail]

    def rank_behind(self, now: int) -> None:
        """Compute the ranks of the backfill candidates, if these change between cycles."""
        if self._tail_callback:
            self.take_in()
            if self._tail_ages is not None:
                list_cycle.rank_by_age(now, RANK, self.table, self.meta[HEAD], self.meta[TAIL], self._tail_ages)
            elif not self.empty:
                self._rank_tail(self.rows(), now)

    def run_list_cycle(self, now: int, limit: int = ALL) -> Sequence[int]:
        """Run a compiled cycle; return the rows that start, at most *limit*."""
        self.rank_behind(now)
        return self.passed(self.machine.cycle(now, limit, self.ended_count, self.tail), now)

    def strict_linear(self, now: int, arrays: Sequence[IntArray]) -> Sequence[int]:
        """Run a cycle by largest line without backfilling; return the rows that start. *arrays* are `Slots`."""
        count = linear_priority.strict_linear(
            now, self.ended_count, self.tail, self.table, self.running, self.moves, self.meta, arrays
        )
        return self.passed(count, now)

    def passed(self, count: int, now: int) -> Sequence[int]:
        """Update usage and flags after a cycle that started *count* requests; return them."""
        self.ended_count = 0
        self.blocked = self.tail > self._meta[HEAD] and not self._unsteady
        if not count:
            return ()
        started: list[int] = self._begun[:count].tolist()
        self._charge(started, now)
        return started

    def _charge(self, started: Sequence[int], now: int) -> None:
        """Add the cores of started requests to their shares."""
        if self.ledger is not None and self._share is not None:
            for request in started:
                self.ledger.change(self._share[request], int(self.requests.cores[request]), now)

    def starts(self, started: Sequence[int]) -> list[Start]:
        """Return the decisions to start these requests."""
        return self.machine.starts(started)

    def begin_at(self, index: int, now: int) -> int | None:
        """Start the request at an index of the queue; return None if it does not fit. In blocking mode only."""
        head: int = self._meta[HEAD]
        place = head + index
        request: int = self._waiting[place]
        if self.machine.is_one_amount:
            if not list_cycle.begin_at(now, index, self.table, self.running, self.meta):
                return None
            self._charge((request,), now)
            return request
        waiting = self.table[QUEUE]
        waiting[head + 1 : place + 1] = waiting[head:place].copy()
        waiting[head] = request
        if self.run_list_cycle(now, 1):
            return request
        waiting[head:place] = waiting[head + 1 : place + 1].copy()
        waiting[place] = request
        return None

    @property
    def empty(self) -> bool:
        """True if no request waits; after `take_in`."""
        return self._meta[TAIL] == self._meta[HEAD]

    def rows(self) -> IntArray:
        """Return the waiting requests, a writable view; after `take_in`."""
        return self.table[QUEUE, self.meta[HEAD] : self.meta[TAIL]]

    def rows_in_job_order(self) -> IntArray:
        """Return the waiting requests, sorted in place by job order, then ready time, then task index."""
        rows = self.rows()
        if self.requests.by_row:
            rows.sort()
        else:
            rows[:] = rows[in_order(rows, self.table[JOB : READY + 1])]
        return rows

    def queue(self, rows: IntArray) -> Queue:
        """Return requests as an ordering sees them."""
        predicted = None if self._predictions is None else self._predictions.present
        return self._cluster.queue(rows, self.running[1, : self.meta[RUNNING]], int(self.meta[HELD]), predicted)

    def available(self, now: int) -> int:
        """Return the free cores in a cycle at an instant; 1 for machines with several resources."""
        if not self.machine.is_one_amount:
            return 1
        if self._meta[RUNNING] and self.running[0, 0] <= now:
            return int(available_now(now, self.running, self.meta, self.table[CORES]))
        return self._meta[TOTAL] - self._meta[HELD]

    def full(self, now: int) -> bool:
        """Return whether the smallest waiting request does not fit, so that no request can start in any order."""
        if not self.machine.is_one_amount:
            return False
        return bool(is_too_full(now, self.table[CORES], self.table[QUEUE], self.running, self.meta))
