"""Waiting requests whose size is chosen when they start, and whose promises are kept from pass to pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import largest
from gridsim.policy.protocols import Lanes, failed, ranks_of, told
from gridsim.policy.queue import ClusterView, Queue, Requests
from gridsim.policy.scheduler import sizes
from gridsim.profile.compiled import compiled
from gridsim.profile.kernels import change, only_running

__all__ = ["Molded", "Shapes"]


class Shapes:
    """What compiled choices need to know of all requests: see `gridsim.policy.scheduler.sizes`.

    Parameters
    ----------
    requests : Requests
        Of the run.
    partition : Partition
        How sizes are tried.
    cores : int
        Of the cluster.
    """

    def __init__(self, requests: Requests, partition: Any, cores: int) -> None:
        moldable = None if getattr(partition, "fixed", False) else requests.moldable
        n = len(requests)
        self.requests, self.partition, self.cores = requests, partition, cores
        self.table: IntArray = np.zeros((8, n), dtype=np.int64)
        self.table[sizes.ASKED], self.table[sizes.ESTIMATE] = requests.asked, requests.estimate_asked
        self.table[sizes.LEAST : sizes.MOST + 1] = requests.asked
        self.table[sizes.FALLS] = 1
        self.relative, self.named = np.ones(1), np.zeros(0, dtype=np.int64)
        if moldable is not None:
            self.table[sizes.LEAST] = moldable.minimum
            self.table[sizes.MOST] = np.minimum(moldable.maximum, cores)
            self.table[sizes.CURVE] = moldable.first[moldable.curve] - 1
            self.relative = np.ascontiguousarray(moldable.relative, dtype=np.float64)
            if moldable.size_first is not None and moldable.sizes is not None:
                self.named = np.ascontiguousarray(moldable.sizes)
                self.table[sizes.NAMED], self.table[sizes.BEYOND] = moldable.size_first[:-1], moldable.size_first[1:]
            sizes.falling(self.table, self.relative)
        self.choices = 0 if partition.choices == "all" else int(partition.choices)
        self.geometric = partition.grid == "geometric"
        self.scratch: IntArray = np.zeros(max(cores, self.choices, 1) + 1, dtype=np.int64)

    def on(self, request: int, cores: int) -> int:
        """Estimate of a request on so many cores, whole microseconds."""
        return int(sizes.on(self.table, self.relative, request, cores))

    def best(self, times: IntArray, free: IntArray, size: int, request: int, high: int) -> int:
        """Cores, at most *high*, by which a request ends first in a profile; of equal ends the fewest."""
        _, cores = sizes.choose(
            times,
            free,
            size,
            self.table,
            self.relative,
            self.named,
            request,
            high,
            self.choices,
            self.geometric,
            self.scratch,
        )
        return int(cores)

    def tried(self, request: int, high: int) -> list[int]:
        """Sizes that are tried of a request that may have at most *high* cores, ascending."""
        count = sizes.tried(self.table, self.named, request, high, self.choices, self.geometric, self.scratch)
        found: list[int] = self.scratch[:count].tolist()
        return found

    def largest(self, rows: IntArray, running: IntArray, began: IntArray, expected: IntArray, now: int) -> IntArray:
        """Largest sizes that the partition allows some waiting requests, beside the running ones.

        Raises
        ------
        PolicyError
            When the partition answers with something else than one whole number a request.
        """
        requests = self.requests
        times = {"began": began[running] / MICROSECOND, "expected": expected[running] / MICROSECOND}
        state = {"total": self.cores, "running": Queue(requests, running, times)}
        try:
            limits = np.asarray(self.partition.limits(Queue(requests, rows, state), now / MICROSECOND))
        except Exception as error:
            raise failed(self.partition, "limits", error) from error
        if limits.shape != rows.shape or limits.dtype.kind != "i":
            raise PolicyError(
                f"{told(self.partition)} gave {len(rows)} requests limits of shape {limits.shape} and type "
                f"{limits.dtype}; one whole number each is needed"
            )
        return largest(limits, self.table[sizes.LEAST, rows], self.table[sizes.MOST, rows])


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
        self._first_come = type(ordering) is Fifo and requests.tasks is None
        self._best, self._by_queue = best, by_queue
        self.shapes = Shapes(requests, partition, cluster.cores)
        lanes: Lanes = rule.lanes(Queue(requests, np.arange(n)))
        self._lane = np.ascontiguousarray(lanes.lane)
        self._due: IntArray = np.full(n, NEVER) if lanes.due is None else np.array(lanes.due)
        self._submit = requests.submit.copy() if requests.moves else requests.submit  # what `due` was made of
        self._unheld: IntArray = np.array(lanes.capacity, dtype=np.int64)  # promises that each lane may still give
        self.waiting: list[int] = []
        self._ready: IntArray = np.zeros(n, dtype=np.int64)
        self.held: IntArray = np.zeros(n, dtype=np.int64)  # rows that hold promises, in order
        self._kept: IntArray = np.zeros((5, n), dtype=np.int64)  # see `mold`
        self._counts: IntArray = np.zeros(3, dtype=np.int64)  # holders, started, whether places must be found anew
        self.running: list[int] = []
        self.began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.expected: IntArray = np.full(n, NEVER, dtype=np.int64)

    def joined(self, request: int, now: int) -> None:
        """A request waits."""
        self.waiting.append(request)
        self._ready[request] = now
        if self._due[request] < NEVER:  # a task waits from when it is ready, not from when its job came
            self._due[request] += now - self._submit[request]

    def ended(self, request: int, now: int) -> None:
        """A request gave its cores back, maybe early."""
        self.running.remove(request)
        if self.expected[request] > now:
            self._counts[2] = 1

    def overran(self, request: int, expected_end: int) -> None:
        """A running request is expected to hold its cores for longer."""
        self.expected[request] = expected_end
        self._counts[2] = 1

    def run_pass(self, now: int) -> Sequence[int]:
        """Requests that start now; their sizes are written into the columns of the requests."""
        if not self.waiting:
            return ()
        rows, running = self._in_order(now), np.array(self.running, dtype=np.int64)
        high = self.shapes.largest(rows, running, self.began, self.expected, now)
        room = 2 * (len(running) + 2 * len(rows)) + 8
        started = np.empty((2, len(rows)), dtype=np.int64)
        shapes = self.shapes
        mold(
            now,
            rows,
            high,
            running,
            self.expected,
            self.requests.cores,
            shapes.table,
            shapes.relative,
            shapes.named,
            shapes.choices,
            shapes.geometric,
            shapes.scratch,
            self._lane,
            self._due,
            self._unheld,
            self.held,
            self._kept,
            self._counts,
            started,
            np.empty((2, room), dtype=np.int64),
            self.cores,
            self._best,
            self._by_queue,
        )
        count = int(self._counts[1])
        return self._begin(started[:, :count], now) if count else ()

    def _in_order(self, now: int) -> IntArray:
        """Waiting requests in queue order."""
        rows: IntArray = np.array(self.waiting, dtype=np.int64)
        if self._first_come:
            return rows
        if self.requests.tasks is None:
            rows = rows[self.requests.in_order(rows)]
        else:
            rows = rows[np.lexsort((rows, self._ready[rows], self.requests.job[rows]))]
        held = int(self.requests.cores[self.running].sum()) if self.running else 0
        state = {"free": self.cores - held, "total": self.cores, "tick": self._tick}
        ranks = ranks_of(self.ordering, Queue(self.requests, rows, state), now / MICROSECOND)
        return rows[np.argsort(ranks, kind="stable")]

    def _begin(self, started: IntArray, now: int) -> Sequence[int]:
        requests = self.requests
        rows: list[int] = started[0].tolist()
        for row, cores in zip(rows, started[1].tolist(), strict=True):
            estimate = self.shapes.on(row, cores)
            requests.cores[row], requests.estimate[row] = cores, estimate
            self.began[row], self.expected[row] = now, now + estimate
        gone = set(rows)
        self.waiting = [row for row in self.waiting if row not in gone]
        self.running += rows
        return rows


HOLDERS, STARTED, ANEW = 0, 1, 2
LIMIT, START, CORES, HOLDS, ALLOWED = 0, 1, 2, 3, 4
NOBODY, IN_LANE, ALONE = 0, 1, 2


@compiled
def mold(  # type: ignore[no-untyped-def]
    now,
    rows,
    high,
    running,
    expected,
    cores,
    shapes,
    relative,
    named,
    choices,
    geometric,
    scratch,
    lane,
    due,
    unheld,
    held,
    kept,
    counts,
    started,
    blocks,
    total,
    best,
    by_queue,
):
    """One pass: promises that have come due, holders in order, then the others in queue order.

    A holder's place is that of the last pass unless its limit, the place of a holder before it or the future of the
    running requests has changed: who has started since respected it, and what ends when expected frees nothing new.
    ``kept`` (5, n): limit, start and cores of each place, how its request came to hold it, the limit of this pass.
    """
    times, free = blocks[0], blocks[1]
    size = only_running(times, free, now, running, expected, cores, total)
    anew = counts[ANEW] != 0 or by_queue
    counts[STARTED], counts[ANEW] = 0, 0
    known = counts[HOLDERS]
    for i in range(rows.shape[0]):
        row = rows[i]
        kept[ALLOWED, row] = high[i]
        if kept[HOLDS, row] == NOBODY and due[row] < now:
            k = counts[HOLDERS]
            while k > known and (due[held[k - 1]] > due[row] or (due[held[k - 1]] == due[row] and held[k - 1] > row)):
                held[k] = held[k - 1]
                k -= 1
            held[k] = row
            kept[HOLDS, row], kept[LIMIT, row] = ALONE, -1
            counts[HOLDERS] += 1
    if by_queue:
        k = 0
        for i in range(rows.shape[0]):
            if kept[HOLDS, rows[i]] != NOBODY:
                held[k] = rows[i]
                k += 1
    still = 0
    for k in range(counts[HOLDERS]):
        row = held[k]
        start, width = kept[START, row], kept[CORES, row]
        if anew or kept[ALLOWED, row] != kept[LIMIT, row]:
            start, width = sizes.choose(
                times, free, size, shapes, relative, named, row, kept[ALLOWED, row], choices, geometric, scratch
            )
            anew = anew or start != kept[START, row] or width != kept[CORES, row]
        end = start + sizes.on(shapes, relative, row, width)
        size = change(times, free, size, start, end, -width)
        if start == now:
            if kept[HOLDS, row] == IN_LANE:
                unheld[lane[row]] += 1
            kept[HOLDS, row] = NOBODY
            started[0, counts[STARTED]], started[1, counts[STARTED]] = row, width
            counts[STARTED] += 1
        else:
            kept[LIMIT, row], kept[START, row], kept[CORES, row] = kept[ALLOWED, row], start, width
            held[still] = row
            still += 1
    counts[HOLDERS] = still
    gone = counts[STARTED]
    for i in range(rows.shape[0]):
        row = rows[i]
        if kept[HOLDS, row] != NOBODY:
            continue
        may_hold = unheld[lane[row]] > 0
        if not may_hold and shapes[sizes.LEAST, row] > free[0]:
            continue
        if gone:
            begun = False
            for k in range(gone):
                begun = begun or started[0, k] == row
            if begun:
                continue
        allowed = kept[ALLOWED, row]
        start = now
        if may_hold:
            start, width = sizes.choose(
                times, free, size, shapes, relative, named, row, allowed, choices, geometric, scratch
            )
        elif best:
            width = sizes.starts_now(
                times, free, size, shapes, relative, named, row, allowed, choices, geometric, scratch
            )
        else:
            width = sizes.fitting_now(
                times, free, size, shapes, relative, named, row, allowed, choices, geometric, scratch
            )
        if not width:
            continue
        size = change(times, free, size, start, start + sizes.on(shapes, relative, row, width), -width)
        if start == now:
            started[0, counts[STARTED]], started[1, counts[STARTED]] = row, width
            counts[STARTED] += 1
        else:
            unheld[lane[row]] -= 1
            kept[HOLDS, row] = IN_LANE
            kept[LIMIT, row], kept[START, row], kept[CORES, row] = allowed, start, width
            held[counts[HOLDERS]] = row
            counts[HOLDERS] += 1
