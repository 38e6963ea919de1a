"""Jobs on a tree of routers and clusters: routing, delays of data, and list schedulers; slow reference.

The implementation follows the specification of the grid family; comments cite its sections. The scheduling cycle of a
cluster is that of `tests.oracles.backfilling`; the module imports nothing from the core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import takewhile
from typing import Any

from numpy.random import Generator

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.testing.oracle import Interval, Job, earliest
from tests.oracles.backfilling import Key, List, Predictions

__all__ = ["BALANCERS", "Balancer", "Cluster", "Router", "Task", "Tree", "fair_share"]


@dataclass(eq=False)
class Task(Job):
    """Task of a job; a rigid job is a job of one task. Times are whole microseconds.

    Attributes
    ----------
    of : int
        Position of the job in job order.
    share : int
        Number of the job's share, -1 without one.
    before, after : list of (int, Task)
        Edges from predecessors, and edges to successors.
    missing : int
        Number of data that the task waits for.
    rank, path : int
        Upward rank of the task, and critical path of its job (section 6).
    """

    of: int = 0
    kind: str = ""
    share: int = -1
    rank: int = 0
    path: int = 0
    ready: int = NEVER
    missing: int = 0
    before: list[tuple[int, Task]] = field(default_factory=list)
    after: list[tuple[int, Task]] = field(default_factory=list)
    cluster: Cluster | None = None


# -- the tree --------------------------------------------------------------------------------------------------------


class Cluster(List):
    """Cluster with a list scheduler (section 8), and the tasks that are assigned to it and have not ended.

    Attributes
    ----------
    offered : int
        Cores of the tasks that became ready since the last scheduling cycle.
    above : tuple of str
        Routers from the root down to the cluster.
    """

    tree: Tree

    def __init__(self, spec: ClusterSpec, above: tuple[str, ...], index: int, overrun: str, tick: int) -> None:
        super().__init__([], spec.cores, "easy", compress="none", overrun=overrun, tick=tick)
        self.kind, self.above, self.index = spec.kind, above, index
        self.assigned: list[Task] = []
        self.offered = 0

    @property
    def leaves(self) -> list[Cluster]:
        return [self]

    def in_job_order(self) -> list[Any]:
        """Return the ready tasks in the order of ties: job order, ready time, task index (section 9)."""
        return sorted(self.waiting, key=lambda task: (task.of, task.ready, task.row))

    def starts_on(self, job: Any, now: int, held: Interval) -> None:
        super().starts_on(job, now, held)
        self.tree.later(job.end, self.tree.ended, job)

    def cycle(self, now: int) -> None:
        self.offered = 0
        self.starts(now)

    # -- load, section 7 ----------------------------------------------------------------------------------------------

    def work(self, which: str, now: int) -> int:
        """Return the unfinished, queued or remaining work in core-microseconds."""
        queued: int = sum(task.cores * task.estimate for task in self.assigned if task.start >= NEVER)
        if which == "queued":
            return queued
        if which == "unfinished":
            return sum(task.cores * task.estimate for task in self.assigned)
        left: int = sum(job.cores * max(0, job.start + job.estimate - now) for job in self.running)
        return queued + left

    def busy(self) -> int:
        """Return the used cores, including those of tasks that were sent in this instant."""
        used: int = sum(job.cores for job in self.running)
        return min(self.cores, used + self.offered)

    def could_start(self, cores: int, now: int) -> int:
        """Return when a task could start behind all waiting tasks, which start in job order."""
        held = [(job.start, job.start + job.estimate, job.cores) for job in self.running]
        at = now
        for job in sorted(self.waiting, key=lambda job: job.row):
            at = earliest(held, self.cores, job.cores, job.estimate, at)
            held.append((at, at + job.estimate, job.cores))
        return earliest(held, self.cores, cores, 0, at)


@dataclass(eq=False)
class Router:
    """Inner node of the tree; the first child is the first in all ties."""

    children: list[Router | Cluster]

    @property
    def leaves(self) -> list[Cluster]:
        return [leaf for child in self.children for leaf in child.leaves]


Child = Router | Cluster
Piece = Sequence[Task]


def _widest(piece: Piece) -> dict[str, int]:
    """Return the cores of the widest task of each kind; kinds in order of first appearance."""
    return {kind: max(task.cores for task in piece if task.kind == kind) for kind in dict.fromkeys(map(_kind, piece))}


def _kind(task: Task) -> str:
    return task.kind


def _eligible(child: Child, kind: str, cores: int) -> list[Cluster]:
    return [leaf for leaf in child.leaves if leaf.kind == kind and leaf.cores >= cores]


def _able(child: Child, piece: Piece) -> bool:
    """Return whether each task of a piece can run below a router, or all of them on a cluster."""
    return all(_eligible(child, task.kind, task.cores) for task in piece)


# -- balancers, section 7 --------------------------------------------------------------------------------------------


@dataclass
class Balancer:
    """Choice of one of several able children.

    Attributes
    ----------
    name : str
        Name of the balancer; *given* are its parameters.
    inner : Balancer, optional
        Balancer that decides between the children that this one has chosen.
    draws : Generator, optional
        Random numbers.
    """

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    inner: Balancer | None = None
    draws: Generator | None = None
    turns: dict[Any, int] = field(default_factory=dict)

    def pick(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        return BALANCERS[self.name](self, piece, able, tree, now)

    def _expected_queue(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        own = sum(task.cores * task.estimate for task in piece) if self.given["include_candidate"] else 0

        def least(leaves: list[Cluster]) -> Fraction:
            return min(Fraction(leaf.work(self.given["work"], now) + own, leaf.cores) for leaf in leaves)

        def value(child: Child) -> Fraction:
            if self.given["advertise"] == "any":
                return least(child.leaves)
            return max(least(_eligible(child, kind, cores)) for kind, cores in _widest(piece).items())

        return min(able, key=value)

    def _round_robin(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        """Return the next child in turn; turns are counted for each first able child and set of kinds."""
        key = able[0], frozenset(_widest(piece))
        self.turns[key] = self.turns.get(key, -1) + 1
        return able[self.turns[key] % len(able)]

    def _random(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        assert self.draws is not None
        if not self.given["weighted"]:
            return able[int(self.draws.integers(len(able)))]
        tickets = [child for child in able for leaf in child.leaves for _ in range(leaf.cores)]
        return tickets[int(self.draws.integers(len(tickets)))]

    def _power_of_two(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        assert self.draws is not None
        assert self.inner is not None
        one = able[int(self.draws.integers(len(able)))]
        rest = [child for child in able if child is not one]
        other = rest[int(self.draws.integers(len(rest)))]
        return self.inner.pick(piece, [child for child in able if child in (one, other)], tree, now)

    def _least_utilised(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        def use(child: Child) -> tuple[Fraction, Fraction]:
            cores = sum(leaf.cores for leaf in child.leaves)
            busy = sum(leaf.busy() for leaf in child.leaves)
            return Fraction(busy, cores), Fraction(sum(leaf.work("unfinished", now) for leaf in child.leaves), cores)

        return min(able, key=use)

    def _data_local(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        assert self.inner is not None

        def delay(child: Child) -> int:
            near = [leaf for kind, cores in _widest(piece).items() for leaf in _eligible(child, kind, cores)]
            return min(sum(tree.data_delay(task, leaf) for task in piece) for leaf in near)

        least = min(delay(child) for child in able)
        return self.inner.pick(piece, [child for child in able if delay(child) == least], tree, now)

    def _earliest_start(self, piece: Piece, able: list[Child], tree: Tree, now: int) -> Child:
        def start(child: Child) -> int:
            return max(
                min(leaf.could_start(cores, now) for leaf in _eligible(child, kind, cores))
                for kind, cores in _widest(piece).items()
            )

        return min(able, key=start)


BALANCERS: Mapping[str, Callable[[Balancer, Piece, list[Child], Tree, int], Child]] = {
    "expected-queue": Balancer._expected_queue,
    "round-robin": Balancer._round_robin,
    "random": Balancer._random,
    "power-of-two": Balancer._power_of_two,
    "least-utilised": Balancer._least_utilised,
    "data-local": Balancer._data_local,
    "earliest-start": Balancer._earliest_start,
}


# -- the simulation --------------------------------------------------------------------------------------------------


class Tree:
    """State of a run on a tree.

    Parameters
    ----------
    split : str
        ``task`` or ``kind-group``.
    policy : callable
        Attributes of `tests.oracles.backfilling.Cycles` for the cluster with a number.
    """

    def __init__(
        self,
        workload: Workload,
        platform: Platform,
        balancer: Balancer,
        policy: Callable[[int], Mapping[str, Any]],
        *,
        split: str = "task",
        overrun: str = "kill",
        tick: int = MICROSECOND,
        together: bool = False,
    ) -> None:
        self.clusters: list[Cluster] = []
        self.root = self._node(platform.root, (), overrun, tick)
        self.network, self.tick, self.balancer, self.split = platform.network, tick, balancer, split
        tasks = workload.tasks
        self.volume = None if tasks is None or tasks.volume is None else tasks.volume.tolist()
        self.jobs = _jobs_of(workload)
        self.tasks = [task for job in self.jobs for task in job]
        for job in self.jobs:
            self._set_ranks(job)
        for cluster in self.clusters:
            cluster.tree = self
            vars(cluster).update(policy(cluster.index), predictions=Predictions([-1] * len(self.tasks)))
        self.together = together  # all clusters decide whenever one does
        self.coming = list(self.jobs)
        self.events: list[tuple[int, int, Callable[[Any, int], None], Any]] = []
        self.scheduled = 0
        self.due = dict[int, Cluster]()
        self.batched = True
        self.news: dict[int, list[Task]] = {}

    def _node(self, spec: RouterSpec | ClusterSpec, above: tuple[str, ...], overrun: str, tick: int) -> Child:
        if isinstance(spec, RouterSpec):
            return Router([self._node(child, (*above, spec.name), overrun, tick) for child in spec.children])
        self.clusters.append(Cluster(spec, above, len(self.clusters), overrun, tick))
        return self.clusters[-1]

    # -- delays and ranks, sections 5 and 6 ---------------------------------------------------------------------------

    def delay(self, execution: int, edge: int, one: Cluster, other: Cluster) -> int:
        """Return the delay of the data of a task with an execution time, between two clusters."""
        if one is other:
            return 0
        network: Network = self.network
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.above, other.above, strict=False)))
        levels = max(len(one.above), len(other.above)) - shared + 1
        if network.transfer == "files":
            size = 0.0 if self.volume is None else self.volume[edge]
            ticks = Fraction(size) / Fraction(network.bandwidth) * MICROSECOND / self.tick
        else:
            ticks = Fraction(network.ccr) * execution / self.tick
        power: int = levels ** (network.delay_levels_power or 0)
        return math.ceil(ticks * power) * self.tick

    def data_delay(self, task: Task, cluster: Cluster) -> int:
        """Return the sum of the delays of a task's data from its assigned predecessors to a cluster."""
        assigned = [(edge, before, before.cluster) for edge, before in task.before if before.cluster is not None]
        return sum(self.delay(before.runtime, edge, there, cluster) for edge, before, there in assigned)

    def _set_ranks(self, job: list[Task]) -> None:
        def unavoidable(edge: int, task: Task, successor: Task) -> int:
            if task.kind == successor.kind:
                return 0
            pairs = [
                (one, other)
                for one in _eligible(self.root, task.kind, task.cores)
                for other in _eligible(self.root, successor.kind, successor.cores)
            ]
            return min(self.delay(task.estimate, edge, one, other) for one, other in pairs)

        def rank(task: Task) -> int:
            if not task.rank:
                beyond = [unavoidable(edge, task, successor) + rank(successor) for edge, successor in task.after]
                task.rank = task.estimate + max(beyond, default=0)
            return task.rank

        path = max(rank(task) for task in job)
        for task in job:
            task.path = path

    # -- events, section 2 --------------------------------------------------------------------------------------------

    def later(self, instant: int, what: Callable[[Any, int], None], subject: Any) -> None:
        """Schedule an event; events of one instant are processed in the order in which they were scheduled."""
        self.scheduled += 1
        self.events.append((instant, self.scheduled, what, subject))

    def play(self, instant: str) -> None:
        """Process all events."""
        self.batched = instant == "batched"
        step = self._batched if self.batched else self._per_event
        while (now := self._next_instant()) < NEVER:
            step(now)
        assert all(task.end < NEVER or task.ready >= NEVER for task in self.tasks)
        assert not any(cluster.waiting for cluster in self.clusters)

    def _next_instant(self) -> int:
        instants = [job[0].submit for job in self.coming[:1]] + [event[0] for event in self.events]
        for cluster in self.clusters:
            instants += [job.expected for job in cluster.running if cluster.extend and job.expected < job.end]
        return min(instants, default=NEVER)

    def _process(self, now: int) -> None:
        """Process ends and data of an instant, also those that have no delay."""
        while due := [event for event in self.events if event[0] == now]:
            event = min(due, key=lambda event: event[1])
            self.events.remove(event)
            event[2](event[3], now)

    def _batched(self, now: int) -> None:
        """Process ends, data, overruns and arrivals, then one cycle of each affected cluster in tree order."""
        self._process(now)
        self._overruns(now)
        while self.coming and self.coming[0][0].submit == now:
            for task in self._routed(self.coming.pop(0), now):
                self._is_ready(task, now)
        due = self.clusters if self.together and self.due else [self.due[k] for k in sorted(self.due)]
        for cluster in due:
            cluster.cycle(now)
        self.due.clear()

    def _per_event(self, now: int) -> None:
        """Process overruns, arrivals, then ends and data in the order of their scheduling; cycles after each event.

        An overrun alone causes its cycles after the arrivals and at the end of the instant.
        """
        self._overruns(now)
        late = list(self.due.values())
        arrived = False
        while self.coming and self.coming[0][0].submit == now:
            arrived = True
            for task in self._routed(self.coming.pop(0), now):
                self._is_ready(task, now)
        if arrived:
            for k in sorted(self.due):
                self._touch(self.due[k], now)
        self._process(now)
        for cluster in sorted(late, key=lambda cluster: cluster.index):
            self._touch(cluster, now)

    def _touch(self, cluster: Cluster, now: int) -> None:
        """Run a scheduling cycle of a cluster: now, or at the end of the instant if that is batched."""
        if self.batched:
            self.due[cluster.index] = cluster
        else:
            self.due.pop(cluster.index, None)
            cluster.cycle(now)

    def _overruns(self, now: int) -> None:
        for cluster in self.clusters:
            if cluster.extend and cluster.corrections(now):
                self.due[cluster.index] = cluster

    # -- jobs and tasks -----------------------------------------------------------------------------------------------

    def _routed(self, job: list[Task], now: int) -> list[Task]:
        """Route a job that arrives; return its tasks without predecessors, or nothing if it is rejected."""
        if not _able(self.root, job):
            return []
        self._route(self.root, job, now)
        return [task for task in job if not task.before]

    def _route(self, node: Child, piece: Piece, now: int) -> None:
        """Send a piece down the tree; split it if no child is able (section 7)."""
        if isinstance(node, Cluster):
            for task in piece:
                task.cluster = node
                node.assigned.append(task)
            return
        able = [child for child in node.children if _able(child, piece)]
        if able:
            chosen = able[0] if len(able) == 1 else self.balancer.pick(piece, able, self, now)
            self._route(chosen, piece, now)
            return
        kinds = list(_widest(piece))
        parts: list[Piece] = [[task] for task in piece]
        if self.split == "kind-group" and len(kinds) > 1:
            parts = [[task for task in piece if task.kind == kind] for kind in kinds]
        for part in parts:
            self._route(node, part, now)

    def _is_ready(self, task: Task, now: int) -> None:
        cluster = task.cluster
        assert cluster is not None
        task.ready = now
        cluster.waiting.append(task)
        cluster.predictions.arrived(task)
        cluster.offered += task.cores
        self._touch(cluster, now)

    def ended(self, task: Task, now: int) -> None:
        cluster = task.cluster
        assert cluster is not None
        cluster.running.remove(task)
        cluster.assigned.remove(task)
        if not self.batched and task.of not in self.news:  # one notice of a job for all its ends so far
            self.news[task.of] = []
            self.later(now, self._notice, task.of)
        if self.batched:
            self._send(task, now)
        else:
            self.news[task.of].append(task)
        self._touch(cluster, now)

    def _notice(self, of: int, now: int) -> None:
        for task in self.news.pop(of):
            self._send(task, now)

    def _send(self, task: Task, now: int) -> None:
        """Send the data of a task to all successors, or wait until a successor's last predecessor ends (section 5)."""
        for edge, successor in task.after:
            if self.network.transfer_start == "each":
                self._transfer(edge, task, successor, now)
                continue
            successor.missing -= 1
            if not successor.missing:
                successor.missing = len(successor.before)
                for arriving, before in successor.before:
                    self._transfer(arriving, before, successor, now)

    def _transfer(self, edge: int, task: Task, successor: Task, now: int) -> None:
        assert task.cluster is not None
        assert successor.cluster is not None
        delay = self.delay(task.runtime, edge, task.cluster, successor.cluster)
        if task.cluster is successor.cluster or self.network.free:
            self._delivered(successor, now)
        else:
            self.later(now + delay, self._delivered, successor)

    def _delivered(self, task: Task, now: int) -> None:
        task.missing -= 1
        if not task.missing:
            self._is_ready(task, now)


def _jobs_of(workload: Workload) -> list[list[Task]]:
    """Return the tasks of each job, in the initial state, in job order."""
    share = workload.labels["share"].tolist() if "share" in workload.labels else [-1] * len(workload)
    tasks = workload.tasks
    source = workload if tasks is None else tasks
    kinds = ["any"] * len(workload) if tasks is None else [tasks.kinds[kind] for kind in tasks.kind.tolist()]
    first = list(range(len(workload) + 1)) if tasks is None else tasks.first.tolist()
    cores, estimate, runtime = (column.tolist() for column in (source.cores, source.estimate, source.runtime))
    common = zip(*(column.tolist() for column in (workload.job, workload.submit, workload.deadline)), strict=True)

    def task(row: int, of: int, number: int, submit: int, deadline: int) -> Task:
        known = Task(row, number, submit, cores[row], estimate[row], runtime[row], deadline)
        known.of, known.kind, known.share = of, kinds[row], share[of]
        return known

    jobs = [[task(row, of, *known) for row in range(*first[of : of + 2])] for of, known in enumerate(common)]
    everything = [task for job in jobs for task in job]
    if tasks is not None:
        begins, ends = tasks.edge_first.tolist(), tasks.edge_to.tolist()
        for before in everything:
            for edge in range(begins[before.row], begins[before.row + 1]):
                successor = everything[ends[edge]]
                before.after.append((edge, successor))
                successor.before.append((edge, before))
                successor.missing += 1
    return jobs


# -- fair share, section 10 ------------------------------------------------------------------------------------------


def fair_share(shares: Mapping[str, int], paths: Sequence[str], combine: str, scope: str) -> Key:
    """Return the key of fair share of the present use: the use of nodes of the share tree over their entitlement."""

    def fraction(node: str) -> Fraction:
        parent = node.rpartition("/")[0]
        return Fraction(shares[node], sum(n for other, n in shares.items() if other.rpartition("/")[0] == parent))

    def nodes(path: str) -> list[str]:
        parts = path.split("/")[1:]
        return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]

    fractions = {node: fraction(node) for node in shares}
    entitled = {node: math.prod((fractions[part] for part in nodes(node)), start=Fraction(1)) for node in shares}

    def key(job: Any, now: int, state: Any) -> Any:
        clusters = state.tree.clusters if scope == "grid" else [state]
        cores = sum(cluster.cores for cluster in clusters)
        running = [(paths[other.share], other.cores) for cluster in clusters for other in cluster.running]

        def use(node: str) -> int:
            """Return the cores of running tasks at or below a node; of all tasks for the root."""
            return sum(held for path, held in running if f"{path}/".startswith(f"{node}/"))

        path = nodes(paths[job.share])
        if combine == "fair-tree":
            levels = zip(path, ["", *path], strict=False)
            return [
                (Fraction(use(node), use(parent)) if use(parent) else 0) / fractions[node] for node, parent in levels
            ]
        ratios = [Fraction(use(node), cores) / entitled[node] for node in path]
        return ratios[-1] if combine == "leaf" else math.prod(ratios, start=Fraction(1))

    return key
