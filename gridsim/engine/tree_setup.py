"""Setup of compiled runs on a tree of clusters, or of DAG jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gridsim.engine import events, list_states, routing, tree_loop
from gridsim.engine.routing import EXPECTED, IN_TURN, LEAST_UTILISED, NOWHERE, Routes
from gridsim.engine.setup import CompiledRun, Setup
from gridsim.engine.tree_loop import Jobs
from gridsim.entities.cluster import Cluster
from gridsim.entities.tree import TreeOptions
from gridsim.errors import name_of
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import most_running
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload
from gridsim.policy import balancing
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.protocols import LoopState
from gridsim.policy.scheduler import list_cycle
from gridsim.policy.scheduler.random_selection import drawing

_KINDS_IN_TURN = 10
"""Maximum number of task kinds under round robin, which has a counter for every set of kinds."""


_SHARED: dict[str, set[tuple[int, ...]]] = {
    "list_in_pool": {(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 5)},
    "strict_lines": {(0, 0), (1, 0)},
    "selected": {(0, 0), (1, 1)},
}
"""Loops, and the columns that all clusters share: the table, orders and flags."""


def why_not(workload: Workload, clusters: Sequence[Cluster], platform: Platform, options: TreeOptions) -> str:
    """Return the part of a run on a tree or with DAG jobs that the loops do not support; empty if they support all."""
    if workload.moldable is not None:
        return "jobs have several sizes, on several clusters or in several tasks"
    scheduler = clusters[0].scheduler
    passes: LoopState = scheduler.passes(np.empty(0, dtype=np.int64))  # type: ignore[attr-defined]  # known from its capabilities
    several = "DAG jobs" if workload.tasks is not None else "several clusters"
    if passes.loop not in _SHARED or (
        passes.loop == "list_in_pool" and passes.columns[-1][-1][[list_states.PREDICTS, list_states.ASKS]].any()
    ):
        return f"{name_of(scheduler)} has no compiled scheduling cycle for {several}"
    if workload.tasks is not None and platform.network.kind != "ccr":
        return f"links are {platform.network.kind}, and transfers slow one another"
    if _too_long(workload, platform, options):
        return "the work and the transfers of the jobs add up to more than the calendar has"
    if len(clusters) == 1:
        return ""
    balancer = make_balancer(options.balancer)
    kinds = 1 if workload.tasks is None else len(workload.tasks.kinds)
    if type(balancer) is balancing.RoundRobin and kinds > _KINDS_IN_TURN:
        return f"tasks of {kinds} kinds take turns"
    if type(balancer) is balancing.EarliestStart and workload.tasks is not None:
        return f"{name_of(balancer)} reads the queue, and the workload has DAG jobs"
    return "" if _how(balancer, options) is not None else f"{name_of(balancer)} is evaluated in Python"


def _too_long(workload: Workload, platform: Platform, options: TreeOptions) -> bool:
    """Return whether total work, or a sequence of all transfers, could exceed 64-bit integers."""
    tasks = workload.tasks
    cores, estimate = (workload.cores, workload.estimate) if tasks is None else (tasks.cores, tasks.estimate)
    work = float(cores.astype(np.float64) @ estimate.astype(np.float64))
    if tasks is None or platform.network.free or not len(tasks.edge_to):
        return work >= NEVER
    tick = to_us(options.tick_of(workload))
    sent = None if tasks.volume is None else float(tasks.volume.max())
    longest = platform.network.delay(int(tasks.runtime.max()), max(platform.levels().values()), tick, sent)
    return work >= NEVER or longest * len(tasks) >= NEVER


def _how(balancer: Any, options: TreeOptions) -> IntArray | None:
    """Return the routing parameters of `gridsim.engine.routing`; None if the balancer must be called in Python."""
    how: IntArray = np.zeros(routing.OLDEST + 1, dtype=np.int64)
    how[routing.BY_KIND] = options.split == "kind-group"
    inner = balancer
    if type(balancer) in (balancing.PowerOfTwo, balancing.DataLocal):
        how[routing.PAIR if type(balancer) is balancing.PowerOfTwo else routing.NEAR], inner = 1, balancer.balancer
        if type(inner) is not balancing.ExpectedQueue:
            return None
    if type(inner) is balancing.ExpectedQueue:
        how[routing.BALANCER] = EXPECTED
        how[routing.WORK] = ("unfinished", "queued", "remaining").index(inner.work)
        how[routing.CANDIDATE], how[routing.ANY] = inner.include_candidate, inner.advertise == "any"
        return how
    numbers = {
        balancing.RoundRobin: IN_TURN,
        balancing.RandomChild: routing.DRAWN,
        balancing.LeastUtilised: LEAST_UTILISED,
    }
    numbers[balancing.EarliestStart] = routing.FIRST_START
    if type(inner) not in numbers:
        return None
    how[routing.BALANCER] = numbers[type(inner)]
    how[routing.WEIGHTED] = type(inner) is balancing.RandomChild and inner.weighted
    return how


class CompiledTreeRun(CompiledRun):
    """A run of rigid or DAG jobs on a tree of clusters, in compiled slices.

    Parameters
    ----------
    run : Setup
        The run.
    """

    def __init__(self, run: Setup) -> None:
        clusters = run.clusters
        self._outcome, self._clusters, self._extend, self._requests = run.outcome, clusters, run.extend, run.requests
        passes: list[LoopState] = [it.scheduler.passes(np.empty(0, dtype=np.int64)) for it in clusters]  # type: ignore[attr-defined]  # as above
        numbers = np.zeros(tree_loop.CLOSES + 1, dtype=np.int64)
        numbers[tree_loop.NEWS], numbers[tree_loop.CLOSING] = -1, len(clusters)
        numbers[events.BATCHED], numbers[events.EXTEND], numbers[events.TICK] = run.batched, run.extend, run.tick
        numbers[events.FAILED] = -1
        self._events = self._jobs(run, numbers)  # type: ignore[assignment]  # numbers of the same names
        routes = Routes(*self._events.routes)  # type: ignore[attr-defined]
        self.loop = getattr(tree_loop, passes[0].loop)
        self._ask = self._answers = self._pieces = None
        queue, *more = _joined([each.columns for each in passes], _SHARED[passes[0].loop])
        if passes[0].loop == "list_in_pool":
            flags = more[1][5]
            numbers[[tree_loop.BY_READY, tree_loop.WAITS]] = flags[[list_states.BY_READY, list_states.WAITS]]
            flags[list_states.WAITS] = 0  # the tree loop records ends
        self._passes = (_with_queues(queue, routes, run.requests.cores), *more)

    def _jobs(self, run: Setup, numbers: IntArray) -> Jobs:
        requests, outcome, tasks = self._requests, self._outcome, self._requests.tasks
        n = len(requests)
        none: IntArray = np.zeros(0, dtype=np.int64)
        first = np.arange(n + 1) if tasks is None else tasks.first
        edge_first = np.zeros(n + 1, dtype=np.int64) if tasks is None else tasks.edge_first
        edge_to = none if tasks is None else tasks.edge_to
        count = len(first) - 1
        network = run.platform.network
        numbers[events.ARRIVALS] = count
        numbers[tree_loop.AT_ONCE] = network.free
        numbers[tree_loop.TOGETHER] = network.transfer_start == "all" and not network.free
        running = sum(most_running(cluster.cores, n) for cluster in self._clusters)
        looks = int(np.count_nonzero(outcome.runtime > requests.estimate)) if self._extend else 0
        return Jobs(
            numbers=numbers,
            jobs=np.stack([outcome.runtime, requests.estimate, requests.cores, np.full(n, NEVER)]),
            come=np.stack([requests.submit[first[:-1]], np.arange(count)]),
            expected=np.zeros((3, running + len(edge_to) + count + 1), dtype=np.int64),
            looks=np.zeros((3, looks + 1), dtype=np.int64),
            first=first,
            edge_first=edge_first,
            edge_to=edge_to,
            missing=np.bincount(edge_to, minlength=n).astype(np.int64),
            job_of=np.ascontiguousarray(requests.job),
            news=np.full((3, n), -1, dtype=np.int64),
            routes=tuple(self._routes(run, edge_first, edge_to)),
            ends=np.zeros((3, running + 2), dtype=np.int64),
        )

    def _routes(self, run: Setup, edge_first: IntArray, edge_to: IntArray) -> Routes:
        platform, options = run.platform, run.options
        tasks, n = self._requests.tasks, len(self._requests)
        nodes, children = _nodes(platform)
        names = [self._clusters[0].kind] if tasks is None else list(tasks.kinds)
        clusters: IntArray = np.zeros((routing.LEFT + 1, len(self._clusters)), dtype=np.int64)
        for place, cluster in enumerate(self._clusters):
            kind = names.index(cluster.kind) if cluster.kind in names else NOWHERE
            clusters[[routing.SIZE, routing.FREE, routing.KIND], place] = cluster.cores, cluster.cores, kind
        balancer = make_balancer(options.balancer)
        how = _how(balancer, options) if len(self._clusters) > 1 else None
        how = np.zeros(routing.OLDEST + 1, dtype=np.int64) if how is None else how
        sets = 1 << len(names) if how[routing.BALANCER] == IN_TURN else 0
        draws = drawing(stream(options.seed, "router"))
        assert draws is not None
        network, near = platform.network, bool(how[routing.NEAR])
        levels, level = _levels(platform)
        delays: IntArray = np.zeros((len(levels), len(edge_to)), dtype=np.int64)
        looked_back = near or (network.transfer_start == "all" and not network.free)
        if tasks is not None and not network.free:
            source = np.repeat(np.arange(n), np.diff(edge_first))
            for row, height in enumerate(levels):
                delays[row] = network.delays(tasks.runtime[source], height, run.tick, tasks.volume)
        needs, needs_first = _needs(edge_first, edge_to) if looked_back else (np.zeros((2, 0)), np.zeros(1))
        return Routes(
            nodes=nodes,
            children=children,
            clusters=clusters,
            how=how,
            widest=np.zeros((3, len(names)), dtype=np.int64),
            able=np.zeros(max(len(children), 2), dtype=np.int64),
            turns=np.zeros((nodes.shape[1], sets), dtype=np.int64),
            draws=draws,
            kind=np.zeros(n, dtype=np.int64) if tasks is None else tasks.kind.astype(np.int64),
            where=np.full(n, NOWHERE, dtype=np.int64),
            delays=delays,
            level=level,
            needs=needs.astype(np.int64),
            needs_first=needs_first.astype(np.int64),
        )

    def _released(self) -> int:
        """Return the number of submitted jobs."""
        return int(self._events.numbers[events.NEXT])

    def _refuse(self) -> None:
        """Raise the error of a machine that has too few cores for a start."""
        numbers = self._events.numbers
        self._cluster = self._clusters[int(numbers[tree_loop.SHORT_AT])]
        found: IntArray = self._events.routes[2]  # type: ignore[attr-defined]
        numbers[events.FREE] = found[routing.FREE, int(numbers[tree_loop.SHORT_AT])]
        super()._refuse()

    def _fill_in(self) -> None:
        """Write where and when each request ran and how it ended; the others are waiting."""
        where: IntArray = self._events.routes[9]  # type: ignore[attr-defined]
        self._rows = np.flatnonzero(where != NOWHERE)
        super()._fill_in()
        ran = self._events.jobs[events.START] < NEVER
        self._outcome.cluster[ran] = where[ran]
        if self._requests.tasks is not None:
            self._requests.ready[:] = self._passes[0][0][list_cycle.READY, : len(where)]


def _joined(parts: Sequence[Any], shared: set[tuple[int, ...]], path: tuple[int, ...] = ()) -> Any:
    """Return the columns of all clusters as one: arrays are stacked, except equal ones at the *shared* paths."""
    if path in shared:
        return parts[0]
    if isinstance(parts[0], tuple):
        return tuple(_joined(each, shared, (*path, place)) for place, each in enumerate(zip(*parts, strict=True)))
    return _stacked(parts)


def _with_queues(queue: tuple[IntArray, ...], routes: Routes, cores: IntArray) -> tuple[IntArray, ...]:
    """Return the table with space for the queue of each cluster, with all requests it may get; queues are consecutive.

    Tables of the schedulers differ only in their queues.
    """
    clusters, (table, *others, meta) = routes.clusters, queue
    sizes = [
        int(np.count_nonzero((routes.kind == kind) & (cores <= size)))
        for kind, size in zip(clusters[routing.KIND], clusters[routing.SIZE], strict=True)
    ]
    begins = np.cumsum([0, *sizes])
    meta[:, [HEAD, TAIL]] = begins[:-1, np.newaxis]
    clusters[routing.ARRIVALS] = begins[:-1]
    rows, n = table.shape
    wider: IntArray = np.zeros((rows, max(n, begins[-1])), dtype=np.int64)
    wider[:, :n] = table
    return wider, *others, meta


def _stacked(arrays: Iterable[Any]) -> Any:
    """Stack arrays of equal shape, except for the last length: shorter ones are padded with 0."""
    found = list(arrays)
    longest = max(each.shape[-1] for each in found)
    if len(found) == 1:
        return found[0][np.newaxis]
    if all(each.shape[-1] == longest for each in found):
        return np.stack(found)
    out = np.zeros((len(found), *found[0].shape[:-1], longest), dtype=found[0].dtype)
    for place, each in enumerate(found):
        out[place, ..., : each.shape[-1]] = each
    return out


def _nodes(platform: Platform) -> tuple[IntArray, IntArray]:
    """Return the nodes of the tree as `gridsim.engine.routing` numbers them, the root last, and all children."""
    count = len(list(platform.clusters()))
    rows: list[tuple[int, int, int, int]] = [(0, 0, place, place + 1) for place in range(count)]
    children: list[int] = []
    leaves = iter(range(count))

    def add(node: RouterSpec | ClusterSpec) -> int:
        if isinstance(node, ClusterSpec):
            return next(leaves)
        below = [add(child) for child in node.children]
        first = len(children)
        children.extend(below)
        rows.append((first, len(children), rows[below[0]][2], rows[below[-1]][3]))
        return len(rows) - 1

    add(platform.root)
    return np.array(rows, dtype=np.int64).T.copy(), np.array(children, dtype=np.int64)


def _levels(platform: Platform) -> tuple[list[int], IntArray]:
    """Return the levels of the tree that occur between clusters, and the index of the level for each pair."""
    names = [cluster.name for cluster in platform.clusters()]
    between = platform.levels()
    heights = sorted({levels for levels in between.values() if levels})
    places = {height: place for place, height in enumerate(heights)} | {0: NOWHERE}
    level = [[places[between[one, other]] for other in names] for one in names]
    return heights, np.array(level, dtype=np.int64)


def _needs(edge_first: IntArray, edge_to: IntArray) -> tuple[IntArray, IntArray]:
    """Return the incoming edges by request, with the source of each, and the first edge of each request."""
    n = len(edge_first) - 1
    order = np.argsort(edge_to, kind="stable")
    source = np.repeat(np.arange(n), np.diff(edge_first))
    counts = np.bincount(edge_to, minlength=n)
    return np.stack([order, source[order]]), np.concatenate([[0], np.cumsum(counts)])
