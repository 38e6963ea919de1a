"""Waiting requests whose cores are chosen at the start, and their reservations, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from gridsim.errors import PolicyError, call, policy_error
from gridsim.machine import verbs
from gridsim.machine.moldable_demands import OWN_FITS, SizeClasses
from gridsim.machine.pool import PoolProfile
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import HELD, RUNNING, TOTAL, begin_running, end_running, expect_end, most_running
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy import limits
from gridsim.policy.capabilities import fixes_sizes, limits_in_columns
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import largest
from gridsim.policy.protocols import LoopState, Placement, Start, integer_column, lanes_of, ranks_of
from gridsim.policy.queue import ClusterView, Queue, Requests
from gridsim.policy.scheduler import core_count_choice as sizes
from gridsim.policy.scheduler import moldable_cycle
from gridsim.policy.scheduler.machines import NodesMachine, PoolMachine
from gridsim.policy.scheduler.moldable_cycle import CORES, DUE, LANE, STALE, STARTED, STARTING


class _Earliest(NamedTuple):
    """A machine in Python with a function for earliest starts by number of cores; its nodes can hold some sizes."""

    sizes: SizeClasses
    start_on: Callable[[int], int]


sizes.tried.register(_Earliest, sizes.tried_on_nodes)


def _start_on(machine: _Earliest, now: int, row: int, cores: int, duration: int) -> int:
    return machine.start_on(cores)


verbs.earliest_on.register(_Earliest, _start_on)


class Shapes:
    """Data of all requests for the choice of sizes.

    Parameters
    ----------
    requests : Requests
        Requests of the run.
    partition : Partition
        Which sizes are tried.
    cores : int
        Cores of the cluster.
    sized : SizeClasses, optional
        Sizes that the nodes can hold; all if omitted.
    """

    def __init__(self, requests: Requests, partition: Any, cores: int, sized: SizeClasses | None = None) -> None:
        self._fixed = fixes_sizes(partition)
        self.classes = SizeClasses.of_none() if sized is None else sized
        n = len(requests)
        self.requests, self.partition, self.cores = requests, partition, cores
        self.table: IntArray = np.zeros((8, n), dtype=np.int64)
        self.relative, named = self._fill(slice(None))
        choices = partition.choices
        counted = choices == "all" or (isinstance(choices, int | np.integer) and choices >= 1)
        if not counted or partition.grid not in ("geometric", "linear"):
            raise policy_error(
                partition,
                f"has choices {partition.choices!r} and grid {partition.grid!r}; expected "
                "a number of sizes from 1 or all, and geometric or linear",
            )
        choices = 0 if choices == "all" else int(min(choices, max(cores, 1)))  # no range has more sizes
        scratch: IntArray = np.zeros(max(cores, 1) + 1, dtype=np.int64)
        self.sizes = sizes.Sizes(self.table, self.relative, named, scratch, choices, int(partition.grid == "geometric"))
        self.arrays = tuple(self.sizes)
        self.from_python = not limits_in_columns(partition)
        most = limits.limits_of(requests, limits.GIVEN) if self.from_python else partition.columns(requests)
        self.limits, self.most = tuple(most), most
        self.allowed: IntArray = most.allowed

    def _fill(self, rows: slice) -> tuple[FloatArray, IntArray]:
        """Write the sizes of requests to the table; return the relative run times and possible sizes of all."""
        requests, moldable = self.requests, None if self._fixed else self.requests.moldable
        table = self.table[:, rows]
        table[[sizes.REQUESTED, sizes.ESTIMATE]] = requests.cores[rows], requests.estimate[rows]
        table[[sizes.LEAST, sizes.MOST]], table[sizes.FALLS] = requests.cores[rows], 1
        if moldable is None:
            return np.ones(1), np.zeros(0, dtype=np.int64)
        named, relative = np.zeros(0, dtype=np.int64), np.ascontiguousarray(moldable.relative, dtype=np.float64)
        table[sizes.LEAST] = moldable.minimum[rows]
        table[sizes.MOST] = np.minimum(moldable.maximum[rows], self.cores)
        table[sizes.CURVE] = moldable.first[moldable.curve[rows]] - 1
        if moldable.size_first is not None and moldable.sizes is not None:
            named = np.ascontiguousarray(moldable.sizes)
            table[[sizes.NAMED, sizes.BEYOND]] = moldable.size_first[:-1][rows], moldable.size_first[1:][rows]
        alone = np.ascontiguousarray(table)
        sizes.falling(alone, relative)
        table[sizes.FALLS] = alone[sizes.FALLS]
        return relative, named

    def learn(self, request: int) -> None:
        """Add a request that was unknown at the start of the run."""
        self.relative, named = self._fill(slice(request, request + 1))
        self.sizes = self.sizes._replace(relative=self.relative, named=named)
        self.arrays = tuple(self.sizes)
        if not self.from_python:
            limits.take_down(self.most, self.requests, request)

    def on(self, request: int, cores: int) -> int:
        """Return the estimate of a request on this number of cores, whole microseconds."""
        return int(sizes.on(self.table, self.relative, request, cores))

    def fits_as_requested(self, request: int) -> bool:
        """Return whether the empty cluster can hold a request at its requested size."""
        known = self.classes.table
        return bool(known[OWN_FITS, request] if known.shape[1] else self.table[sizes.REQUESTED, request] <= self.cores)

    def best(self, times: IntArray, free: IntArray, size: int, request: int, high: int) -> int:
        """Return the cores, at most *high*, with the first end of a request in a profile; of equal ends the fewest."""
        return int(sizes.choose_by_profile(PoolProfile(times, free, size), request, high, self.sizes)[1])

    def most_of_last(self, rows: IntArray, held: tuple[IntArray, ...], now: int) -> int:
        """Return the largest size of the last of *rows*, a new request; *held* has the running requests."""
        if not self.from_python:
            table = self.table[sizes.LEAST], self.table[sizes.MOST]
            return int(limits.allow_one(now, rows, held, *table, self.most))
        running, counts, _, began = held
        count = counts[RUNNING]
        return int(self.largest(rows, running[1, :count], began, running[0, :count], now)[-1])

    def tried(self, request: int, high: int) -> list[int]:
        """Return the sizes that are tried for a request with at most *high* cores, ascending."""
        count = sizes.tried(_Earliest(self.classes, int), request, high, self.sizes)
        found: list[int] = self.sizes.scratch[:count].tolist()
        return found

    def choose(self, request: int, high: int, now: int, earliest: Callable[[int], int]) -> tuple[int, int]:
        """Return start and cores, at most *high*, with the first end of a request; of equal ends the fewest cores.

        Like `gridsim.policy.scheduler.core_count_choice.choose`, with *earliest*, the earliest start by number of
        cores.
        """
        start, cores = sizes.choose(_Earliest(self.classes, earliest), now, request, high, self.sizes)
        return int(start), int(cores)

    def largest(self, rows: IntArray, running: IntArray, began: IntArray, ends: IntArray, now: int) -> IntArray:
        """Return the largest sizes that the partition allows waiting requests, given the running ones.

        *began* (n,) has the start of each request, *ends* (r,) the expected ends of the running ones.

        Raises
        ------
        PolicyError
            If the partition returns anything else than one whole number per request.
        """
        requests = self.requests
        times = {"began": began[running] / MICROSECOND, "expected": ends / MICROSECOND}
        state = {"total": self.cores, "running": Queue(requests, running, times)}
        answer = call(self.partition, "limits", Queue(requests, rows, state), now / MICROSECOND)
        most = integer_column(self.partition, "limits", answer, len(rows))
        return largest(most, self.table[sizes.LEAST, rows], self.table[sizes.MOST, rows])


class MoldableState:
    """State of a cluster whose requests get their cores at the start (specification of moldable jobs, 3.4).

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    ordering, rule, partition, placement
        Order of the queue, reservation rule, limits of sizes, and placement of tasks.
    rng : Generator
        For random placement rules.
    best : bool
        Whether a request without a reservation starts only if no later start ends earlier.
    by_queue : bool
        Whether holders are served in queue order instead of the order in which they became holders.

    Attributes
    ----------
    table : (10, n) int64
        As in `gridsim.policy.scheduler.moldable_cycle.MoldableQueue`.
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
        requests, asked = cluster.requests, cluster.demands
        n = len(requests)
        self.requests, self.ordering, self._cluster = requests, ordering, cluster
        # Requests submitted before the run join before those that are submitted at the same instant during the run.
        self._first_come = type(ordering) is Fifo and requests.tasks is None and not requests.spare
        self.shapes = Shapes(requests, partition, cluster.cores, None if asked is None else asked.sized)
        lanes = lanes_of(rule, Queue(requests, np.arange(n)))
        self._lanes, self._rule = lanes, rule
        self.table: IntArray = np.zeros((len(moldable_cycle.ROWS), n), dtype=np.int64)
        self.table[LANE], self.table[DUE] = lanes.lane, NEVER if lanes.due is None else lanes.due
        self._submit = requests.submit.copy() if requests.moves else requests.submit  # those of `due`
        self._waiting: IntArray = np.zeros(n, dtype=np.int64)
        # On nodes, some requests may need no cores.
        busy = (most_running(cluster.cores, n) if asked is None else n) + 1
        self._held: IntArray = np.zeros((2, busy), dtype=np.int64)
        self.meta: IntArray = np.zeros(moldable_cycle.META, dtype=np.int64)
        self.meta[[TOTAL, moldable_cycle.BEST, moldable_cycle.BY_QUEUE]] = cluster.cores, best, by_queue
        self._need, _ = requests.sizes()  # chosen cores of running requests
        self.began: IntArray = np.full(n, NEVER, dtype=np.int64)
        capacity = np.array(lanes.capacity, dtype=np.int64)
        self._columns = (self.table, capacity, requests.ties, self._waiting, self._held, self.meta, self._need)
        queue = self._need[np.newaxis], self._held, self.meta
        self.machine: PoolMachine | NodesMachine
        if asked is None:
            self.machine = PoolMachine(cluster, queue, 2 * (busy + 2 * n) + 8)
        else:
            self.machine = NodesMachine(cluster, queue, placement, rng)

    @property
    def _queue(self) -> tuple[Any, ...]:
        """The arrays of `gridsim.policy.scheduler.moldable_cycle.MoldableQueue` as they are now."""
        return *self._columns, self.began, self.shapes.limits, self.shapes.arrays

    def learn(self, request: int) -> None:
        """Add a request that was unknown at the start of the run and has one size.

        Raises
        ------
        PolicyError
            If the reservation rule has other lanes for it.
        """
        self.shapes.learn(request)
        lanes = lanes_of(self._rule, Queue(self.requests, np.array([request])))
        if not np.array_equal(lanes.capacity, self._lanes.capacity):
            raise PolicyError(f"{self._rule!r} computes its lanes from all jobs; no job can be submitted later")
        self.table[LANE, request] = lanes.lane[0]
        self.table[DUE, request] = NEVER if lanes.due is None else lanes.due[0]
        self._submit[request] = self.requests.submit[request]
        self.machine.learn(request)

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """Allocate cores at a placement from *now* until an instant to a request that never waited."""
        cores = int(self.requests.cores[request])
        if self._need[request] != cores:  # the column of a run of rigid jobs cannot be written
            self._need[request] = cores
        self.began[request] = now
        begin_running(self._held, self.meta, request, until, cores)
        self.machine.hold(request, until, now, placement)

    def joined(self, request: int, now: int) -> None:
        """Add a waiting request."""
        self._waiting[self.meta[TAIL]] = request
        self.meta[TAIL] += 1
        if self.table[DUE, request] < NEVER:  # the wait of a task counts from when it is ready
            self.table[DUE, request] += now - self._submit[request]

    def ended(self, request: int, now: int) -> None:
        """Release the cores of a request, which may have ended early."""
        if end_running(self._held, self.meta, request, self._need[request]) > now:
            self.meta[STALE] = 1
        self.machine.release(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Record that a running request is expected to hold its cores for longer."""
        expect_end(self._held, self.meta, request, expected_end)
        self.meta[STALE] = 1
        self.machine.postpone(request, expected_end, now)

    def run_cycle(self, now: int) -> Sequence[Start]:
        """Run a cycle; return the starts, with sizes and placements."""
        if self.meta[HEAD] == self.meta[TAIL]:
            return ()
        rows, queue = self._rows(now), self._queue
        if isinstance(self.machine, PoolMachine):
            moldable_cycle.moldable_cycle_in_pool(now, rows, queue, self.machine.columns)
        else:
            cycle, classes = moldable_cycle.moldable_cycle_on_nodes, tuple(self.shapes.classes)
            self.machine.complete(lambda columns: cycle(now, rows, queue, columns, classes))
        count = self.meta[STARTED]
        return self.machine.starts(*self.table[STARTING : CORES + 1, :count].tolist()) if count else ()

    def _rows(self, now: int) -> IntArray:
        """Return the waiting requests in queue order; store limits that are computed in Python."""
        rows = self._in_order(now)
        if self.shapes.from_python:
            ends, running = self._held[:, : self.meta[RUNNING]]
            self.shapes.allowed[: len(rows)] = self.shapes.largest(rows, running, self.began, ends, now)
        return rows

    def passes(self, rows: IntArray) -> LoopState:
        """Return the arrays for a run in which these requests are submitted in this order."""
        self._waiting[: len(rows)] = rows
        asks = self.shapes.from_python or not self._first_come
        order: IntArray = np.zeros(len(rows) if asks else 0, dtype=np.int64)

        def ask(now: int) -> None:
            found = self._rows(now)
            order[: len(found)] = found

        moves = self.table[STARTING : CORES + 1]
        return LoopState(
            "moldable_loop", (order, self._queue, self.machine.columns, moves, self.meta), ask if asks else None
        )

    def _in_order(self, now: int) -> IntArray:
        """Return the waiting requests in queue order."""
        rows = self._waiting[self.meta[HEAD] : self.meta[TAIL]]
        if self._first_come:
            return rows
        rows = rows[self.requests.in_order(rows)]
        queue = self._cluster.queue(rows, self._held[1, : self.meta[RUNNING]], int(self.meta[HELD]))
        ranks = ranks_of(self.ordering, queue, now / MICROSECOND)
        return rows[np.argsort(ranks, kind="stable")]
