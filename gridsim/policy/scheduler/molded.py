"""Waiting requests whose size is chosen when they start, and whose promises are kept from pass to pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy import limits
from gridsim.policy.capabilities import fixes_sizes, limits_in_columns
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import largest
from gridsim.policy.protocols import Passes, Placement, Start, call, lanes_of, name_of, ranks_of, whole_numbers
from gridsim.policy.queue import ClusterView, Queue, Requests
from gridsim.policy.scheduler import promises, sizes
from gridsim.policy.scheduler.promises import ANEW, CORES, STARTING, mold
from gridsim.profile.running import HELD, RUNNING, begin_running, end_running, expect_end, most_running
from gridsim.profile.sized import SizedDemands
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["Molded", "Shapes"]


class Shapes:
    """What choices of a size need to know of all requests.

    Parameters
    ----------
    requests : Requests
        Of the run.
    partition : Partition
        How sizes are tried.
    cores : int
        Of the cluster.
    sized : SizedDemands, optional
        Which sizes its nodes can hold; all where left out.
    """

    def __init__(self, requests: Requests, partition: Any, cores: int, sized: SizedDemands | None = None) -> None:
        self._placed, self._fixed = sized, fixes_sizes(partition)
        moldable = None if self._fixed else requests.moldable
        n = len(requests)
        self.requests, self.partition, self.cores = requests, partition, cores
        self.table: IntArray = np.zeros((8, n), dtype=np.int64)
        self.table[sizes.ASKED], self.table[sizes.ESTIMATE] = requests.cores, requests.estimate
        self.table[sizes.LEAST : sizes.MOST + 1] = requests.cores
        self.table[sizes.FALLS] = 1
        self.relative, named = np.ones(1), np.zeros(0, dtype=np.int64)
        if moldable is not None:
            self.table[sizes.LEAST] = moldable.minimum
            self.table[sizes.MOST] = np.minimum(moldable.maximum, cores)
            self.table[sizes.CURVE] = moldable.first[moldable.curve] - 1
            self.relative = np.ascontiguousarray(moldable.relative, dtype=np.float64)
            if moldable.size_first is not None and moldable.sizes is not None:
                named = np.ascontiguousarray(moldable.sizes)
                self.table[sizes.NAMED], self.table[sizes.BEYOND] = moldable.size_first[:-1], moldable.size_first[1:]
            sizes.falling(self.table, self.relative)
        choices = partition.choices
        counted = choices == "all" or (isinstance(choices, int | np.integer) and choices >= 1)
        if not counted or partition.grid not in ("geometric", "linear"):
            raise PolicyError(
                f"{name_of(partition)} has choices {partition.choices!r} and grid {partition.grid!r}; expected "
                "a number of sizes from 1 or all, and geometric or linear"
            )
        choices = 0 if choices == "all" else int(min(choices, max(cores, 1)))  # no range has more sizes
        scratch: IntArray = np.zeros(max(cores, 1) + 1, dtype=np.int64)
        self.sizes = sizes.Sizes(self.table, self.relative, named, scratch, choices, int(partition.grid == "geometric"))
        self.arrays = tuple(self.sizes)
        self.told = not limits_in_columns(partition)
        most = limits.limits_of(requests, limits.TOLD) if self.told else partition.columns(requests)
        self.limits, self._most = tuple(most), most
        self.allowed: IntArray = most.allowed

    def learn(self, request: int) -> None:
        """Take down a request that was not known when the run began."""
        requests, table, moldable = self.requests, self.table, self.requests.moldable
        table[sizes.ASKED : sizes.ESTIMATE + 1, request] = requests.cores[request], requests.estimate[request]
        table[sizes.LEAST : sizes.MOST + 1, request] = requests.cores[request]
        if moldable is not None and not self._fixed:
            most = min(moldable.maximum[request], self.cores)
            table[sizes.LEAST : sizes.MOST + 1, request] = moldable.minimum[request], most
            table[sizes.CURVE, request] = moldable.first[moldable.curve[request]] - 1
            self.relative = moldable.relative
            self.sizes = self.sizes._replace(relative=moldable.relative)
            if moldable.size_first is not None and moldable.sizes is not None:
                table[sizes.NAMED : sizes.BEYOND + 1, request] = moldable.size_first[request : request + 2]
                self.sizes = self.sizes._replace(named=moldable.sizes)
            self.arrays = tuple(self.sizes)
            alone = np.ascontiguousarray(table[:, request : request + 1])
            sizes.falling(alone, self.relative)
            table[sizes.FALLS, request] = alone[sizes.FALLS, 0]
        if not self.told:
            limits.take_down(self._most, requests, request)

    def on(self, request: int, cores: int) -> int:
        """Estimate of a request on so many cores, whole microseconds."""
        return int(sizes.on(self.table, self.relative, request, cores))

    def as_asked(self, request: int) -> bool:
        """Whether the empty cluster can hold a request of the size that it asks for."""
        if self._placed is not None:
            return self._placed.holds_asked(request)
        return bool(self.table[sizes.ASKED, request] <= self.cores)

    def best(self, times: IntArray, free: IntArray, size: int, request: int, high: int) -> int:
        """Cores, at most *high*, by which a request ends first in a profile; of equal ends the fewest."""
        return int(sizes.best(times, free, size, self.arrays, request, high))

    def allow(self, rows: IntArray, held: tuple[IntArray, ...], now: int) -> None:
        """Fill `allowed` with the largest sizes of waiting requests, beside the running ones; where nobody is told."""
        limits.allow(now, rows, held, self.table[sizes.LEAST], self.table[sizes.MOST], self._most)

    def most_of_last(self, rows: IntArray, held: tuple[IntArray, ...], now: int) -> int:
        """Largest size of the last of some requests, a new one behind those that wait; *held* are the running ones."""
        if not self.told:
            table = self.table[sizes.LEAST], self.table[sizes.MOST]
            return int(limits.allow_one(now, rows, held, *table, self._most))
        running, counts, _, began = held
        count = counts[RUNNING]
        return int(self.largest(rows, running[1, :count], began, running[0, :count], now)[-1])

    def tried(self, request: int, high: int) -> list[int]:
        """Sizes that are tried of a request that may have at most *high* cores, ascending."""
        if self._placed is not None:
            return self._tried_of(self._placed.of(request), request, high)
        count = sizes.tried(self.sizes, request, high)
        found: list[int] = self.sizes.scratch[:count].tolist()
        return found

    def _tried_of(self, able: IntArray, request: int, high: int) -> list[int]:
        """The same of those that the nodes can hold: those that are tried are rounded down to one of them."""
        named = self.table[sizes.NAMED, request] < self.table[sizes.BEYOND, request]
        within = able[: max(1, int(np.searchsorted(able, high, side="right")))]
        if named or not self.sizes.choices:
            return [int(size) for size in within]
        scratch, how = self.sizes.scratch, (self.sizes.choices, self.sizes.geometric)
        count = sizes.spread(within[0], within[-1], *how, scratch)
        return [int(size) for size in np.unique(within[np.searchsorted(within, scratch[:count], side="right") - 1])]

    def choose(self, request: int, high: int, now: int, earliest: Callable[[int], int]) -> tuple[int, int]:
        """Start and cores by which a request of at most *high* cores ends first; of equal ends the fewest cores.

        As `gridsim.policy.scheduler.sizes.choose` where *earliest* knows the earliest start on so many cores. Ends
        within a microsecond are equal. What cannot end soon enough even if it started now is not looked for.
        """
        ends: dict[int, tuple[int, int]] = {}
        first = NEVER
        for cores in reversed(self.tried(request, high)):
            duration = self.on(request, cores)
            if now + duration <= first + 1:
                start = earliest(cores)
                ends[cores] = (start + duration, start)
                first = min(first, start + duration)
        cores = min(cores for cores, (end, _) in ends.items() if end <= first + 1)
        return ends[cores][1], cores

    def largest(self, rows: IntArray, running: IntArray, began: IntArray, ends: IntArray, now: int) -> IntArray:
        """Largest sizes that the partition allows some waiting requests, beside the running ones.

        *began* (n,) is when each request did, *ends* (r,) are the expected ends of the running ones.

        Raises
        ------
        PolicyError
            When the partition answers with something else than one whole number a request.
        """
        requests = self.requests
        times = {"began": began[running] / MICROSECOND, "expected": ends / MICROSECOND}
        state = {"total": self.cores, "running": Queue(requests, running, times)}
        answer = call(self.partition, "limits", Queue(requests, rows, state), now / MICROSECOND)
        most = whole_numbers(self.partition, "limits", answer, len(rows))
        return largest(most, self.table[sizes.LEAST, rows], self.table[sizes.MOST, rows])


class Molded:
    """State of a cluster whose requests get their sizes when they start (spec of moldable jobs, 3.4).

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    ordering, rule, partition
        Order of the queue, who holds promises, and how wide requests may be.
    best : bool
        Whether a request without a promise starts only if no later start ends earlier.
    by_queue : bool
        Whether holders are served in queue order instead of the order in which they became holders.
    """

    def __init__(
        self, cluster: ClusterView, ordering: Any, rule: Any, partition: Any, *, best: bool, by_queue: bool
    ) -> None:
        requests = cluster.requests
        n = len(requests)
        self.requests, self.ordering, self.cores, self._tick = requests, ordering, cluster.cores, cluster.tick / 1e6
        # Who is submitted before the run begins joins before those that come by themselves then.
        self._first_come = type(ordering) is Fifo and requests.tasks is None and not requests.room
        self._best, self._by_queue = best, by_queue
        self._how: IntArray = np.array([best, by_queue], dtype=np.int64)
        sized = None if cluster.asked is None else cluster.asked.sized
        self.shapes = Shapes(requests, partition, cluster.cores, sized)
        lanes = lanes_of(rule, Queue(requests, np.arange(n)))
        self._lanes, self._rule = lanes, rule
        self._places: IntArray = np.zeros((promises.ROWS, n), dtype=np.int64)
        self._places[promises.LANE] = lanes.lane
        self._places[promises.DUE] = NEVER if lanes.due is None else lanes.due
        self._due, self.held = self._places[promises.DUE], self._places[promises.HELD]
        self._submit = requests.submit.copy() if requests.moves else requests.submit  # what `due` was made of
        self._counts: IntArray = np.zeros(3, dtype=np.int64)
        self._promises = (self._places, np.array(lanes.capacity, dtype=np.int64), self._counts, requests.ties)
        self._waiting: IntArray = np.zeros(n, dtype=np.int64)
        self._held: IntArray = np.zeros((2, most_running(cluster.cores, n) + 1), dtype=np.int64)
        self._meta: IntArray = np.array([0, 0, cluster.cores, 0, 0], dtype=np.int64)  # who runs, who waits
        self._need, _ = requests.sizes()  # of running requests, the size that was chosen
        self.began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self._running = (self._held, self._meta, self._need, self.began)
        self._blocks: IntArray = np.empty((2, 64), dtype=np.int64)

    def learn(self, request: int) -> None:
        """Take down what a request asks for that was not known when the run began.

        Raises
        ------
        PolicyError
            When the reservation rule has other lanes for it.
        """
        self.shapes.learn(request)
        lanes = lanes_of(self._rule, Queue(self.requests, np.array([request])))
        if not np.array_equal(lanes.capacity, self._lanes.capacity):
            raise PolicyError(f"{self._rule!r} makes its lanes of all jobs; none can be submitted later")
        self._places[promises.LANE, request] = lanes.lane[0]
        self._due[request] = NEVER if lanes.due is None else lanes.due[0]
        self._submit[request] = self.requests.submit[request]

    def hold(self, request: int, until: int, now: int, placement: Placement | None) -> None:
        """A request that never waited holds its cores from *now* until an instant."""
        self.learn(request)
        cores = int(self.requests.cores[request])
        self._need[request], self.began[request] = cores, now
        begin_running(self._held, self._meta, request, until, cores)

    def joined(self, request: int, now: int) -> None:
        """A request waits."""
        self._waiting[self._meta[TAIL]] = request
        self._meta[TAIL] += 1
        if self._due[request] < NEVER:  # a task waits from when it is ready, not from when its job came
            self._due[request] += now - self._submit[request]

    def ended(self, request: int, now: int) -> None:
        """A request gave its cores back, maybe early."""
        if end_running(self._held, self._meta, request, self._need[request]) > now:
            self._counts[ANEW] = 1

    def overran(self, request: int, expected_end: int) -> None:
        """A running request is expected to hold its cores for longer."""
        expect_end(self._held, self._meta, request, expected_end)
        self._counts[ANEW] = 1

    def run_pass(self, now: int) -> Sequence[Start]:
        """Requests that start now, with their sizes."""
        if self._meta[HEAD] == self._meta[TAIL]:
            return ()
        rows = self._rows(now)
        self._blocks = self._room(self._blocks, len(rows))
        arrays = (self.shapes.limits, self.shapes.arrays, self._promises, self._running, self._blocks)
        count = mold(now, rows, self._waiting, self._how, *arrays)
        if not count:
            return ()
        started, cores = self._places[STARTING : CORES + 1, :count].tolist()
        return [Start(row, size) for row, size in zip(started, cores, strict=True)]

    def _rows(self, now: int) -> IntArray:
        """Waiting requests in queue order; where somebody is asked for their limits, those are noted."""
        rows = self._in_order(now)
        if self.shapes.told:
            ends, running = self._held[:, : self._meta[RUNNING]]
            self.shapes.allowed[: len(rows)] = self.shapes.largest(rows, running, self.began, ends, now)
        return rows

    def _room(self, blocks: IntArray, waiting: int) -> IntArray:
        """Scratch for a profile of those that run and so many that wait."""
        room = 2 * (int(self._meta[RUNNING]) + 2 * waiting) + 8
        return blocks if room <= blocks.shape[1] else np.empty((2, 2 * room), dtype=np.int64)

    def passes(self, rows: IntArray) -> Passes:
        """The passes of a run to which these requests come in this order, each when it is submitted."""
        self._waiting[: len(rows)] = rows
        asks = self.shapes.told or not self._first_come
        blocks: IntArray = np.empty((2, 2 * (self._held.shape[1] + 2 * len(rows)) + 8), dtype=np.int64)
        order: IntArray = np.zeros(len(rows) if asks else 0, dtype=np.int64)
        cycle = self._waiting, self._how, self.shapes.limits, self.shapes.arrays, self._promises, self._running, blocks

        def ask(now: int) -> None:
            found = self._rows(now)
            order[: len(found)] = found

        moves = self._places[STARTING : CORES + 1]
        return Passes("molded", (order, cycle, moves, self._meta), ask if asks else None)

    def _in_order(self, now: int) -> IntArray:
        """Waiting requests in queue order."""
        rows = self._waiting[self._meta[HEAD] : self._meta[TAIL]]
        if self._first_come:
            return rows
        rows = rows[self.requests.in_order(rows)]
        count, held = self._meta[[RUNNING, HELD]].tolist()
        running = Queue(self.requests, self._held[1, :count])
        state: dict[str, Any] = {"free": self.cores - held, "total": self.cores, "tick": self._tick}
        state |= {"totals": {"cores": self.cores}, "running": running}
        ranks = ranks_of(self.ordering, Queue(self.requests, rows, state), now / MICROSECOND)
        return rows[np.argsort(ranks, kind="stable")]
