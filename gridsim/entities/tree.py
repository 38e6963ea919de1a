"""The tree of a run: clusters, routers and links as the platform says, and how a job enters it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from simpy import Environment

from gridsim.entities.clock import Clock
from gridsim.entities.cluster import Cluster
from gridsim.entities.dag import DagJob, DagJobs
from gridsim.entities.instant import Instant, Mode
from gridsim.entities.link import Links
from gridsim.entities.outcome import Outcome
from gridsim.entities.piece import Piece
from gridsim.entities.router import Router, Split
from gridsim.errors import InputError
from gridsim.machine.demand_classes import DemandClasses
from gridsim.model.capacity import Capacity
from gridsim.model.demand import Demands
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.streams import stream
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.capabilities import adapted, begin, capabilities_of, compares_quotes
from gridsim.policy.copies import own as own_copy
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import call, name_of
from gridsim.policy.queue import ClusterView, Ledger, Requests


class TreeOptions(Protocol):
    """Options of a run that its tree is made with."""

    @property
    def overrun(self) -> str:
        """Kill or extend."""
        ...

    @property
    def instant(self) -> Mode:
        """Batched or per-event."""
        ...

    @property
    def seed(self) -> int:
        """Of the random streams."""
        ...

    @property
    def balancer(self) -> Any:
        """Which child of a router gets a piece."""
        ...

    @property
    def split(self) -> Split:
        """How a piece is split that no child can hold."""
        ...

    def tick_of(self, workload: Workload) -> float:
        """Unit of rounding up, s."""
        ...


def clusters_of(
    env: Clock,
    platform: Platform,
    policy: Any,
    requests: Requests,
    outcome: Outcome,
    instant: Instant,
    options: TreeOptions,
    tick: int,
) -> list[Cluster]:
    """Clusters of the platform, each with a scheduler of its own."""
    scheduler = make_policy(policy)
    if not capabilities_of(scheduler).sizes:
        requests.needed = requests.cores
    specs = list(platform.clusters())
    ledger = Ledger(platform.cores)
    clusters = []
    for index, spec in enumerate(specs):
        own = adapted(own_copy(scheduler))
        runtime = outcome.runtime if capabilities_of(own).oracle else None
        asked = _asked(spec, requests, sizes=capabilities_of(own).sizes)
        view = ClusterView(spec.cores, requests, tick, index, ledger, platform.shares, runtime, asked)
        call(own, "setup", view, stream(options.seed, "cluster", index))
        if asked is not None:
            asked = _carried(own, spec, asked)
        clusters.append(
            Cluster(
                env,
                index,
                spec,
                own,
                requests,
                outcome,
                instant,
                extend=options.overrun == "extend",
                tick=tick,
                placing=len(specs) > 1 or requests.tasks is not None,
                asked=asked,
            )
        )
    if capabilities_of(scheduler).scope == "grid":
        for cluster in clusters:
            cluster.together = clusters
    return clusters


def _asked(spec: ClusterSpec, requests: Requests, *, sizes: bool) -> DemandClasses | None:
    """What requests ask of the nodes and pools of a cluster; None where all is cores of one pool.

    Where the scheduler chooses *sizes*, on each of those that they may be of.
    """
    demands, capacity = requests.demands, spec.capacity
    if capacity is None and (demands is None or ((demands.plain == demands.cores).all() and (demands.plain > 0).all())):
        return None
    if demands is None:
        demands = Demands.plain_cores(requests.cores)
    ranges, moldable = None, requests.moldable
    if sizes and moldable is not None:
        named = None if moldable.size_first is None else (moldable.size_first, moldable.sizes)
        ranges = requests.minimum, np.minimum(requests.maximum, spec.cores), named
    return DemandClasses(capacity or Capacity.of((), {"cores": spec.cores}), demands, requests.known, ranges)


def _carried(scheduler: Any, spec: ClusterSpec, asked: DemandClasses) -> DemandClasses | None:
    """The same, where the scheduler can decide about it; None where it has nodes of its own.

    Raises
    ------
    InputError
        Where it knows one pool of cores only.
    """
    can = capabilities_of(scheduler)
    if can.nodes is not None:
        return None
    what = "has nodes" if spec.nodes else "has several pools" if spec.pools else "receives requests for more than cores"
    if not can.vectors:
        raise InputError(
            f"{name_of(scheduler)} knows one pool of cores; the machine '{spec.name}' {what}. fcfs, first-fit, easy, "
            "depth, conservative, msb, mrt, qops, fqops and the moldable ones know nodes and pools",
            field="policy",
        )
    return asked


def admission(
    env: Environment,
    platform: Platform,
    clusters: list[Cluster],
    requests: Requests,
    links: Links | None,
    instant: Instant,
    options: TreeOptions,
    ways: Sequence[tuple[int, ...]] | None = None,
) -> Callable[[int], None]:
    """What the root does with a job: down the tree, then its first tasks are offered.

    Where jobs have *ways*, each goes among the clusters of its own, which are places in tree order.
    """
    balancer = make_balancer(options.balancer)
    if compares_quotes(balancer):
        _check_quotes(balancer, clusters, requests)
    if requests.tasks is None and len(clusters) == 1:
        return clusters[0].submit
    begin(balancer, stream(options.seed, "router"))
    by_name = {cluster.name: cluster for cluster in clusters}

    def node(spec: RouterSpec | ClusterSpec) -> Router | Cluster:
        if isinstance(spec, ClusterSpec):
            return by_name[spec.name]
        return Router(env, [node(child) for child in spec.children], balancer, split=options.split)

    if ways is not None:
        roots = dict[tuple[int, ...], Router | Cluster]()

        def below(request: int) -> Router | Cluster:
            way = ways[request]
            if way not in roots:
                some = [clusters[place] for place in way]
                roots[way] = some[0] if len(some) == 1 else Router(env, some, balancer, split=options.split)
            return roots[way]

        return _admit_rigid(below, clusters, requests)
    root = node(platform.root)
    if requests.tasks is None:
        return _admit_rigid(lambda request: root, clusters, requests)
    assert links is not None
    return _admit_tasks(env, root, clusters, requests, requests.tasks, links, instant)


def _check_quotes(balancer: Any, clusters: list[Cluster], requests: Requests) -> None:
    """Raise `InputError` where a balancer that compares quotes would have none to compare."""
    if requests.tasks is not None:
        raise InputError(
            f"{name_of(balancer)} compares quotes for jobs of one task; the workload has DAG jobs", field="balancer"
        )
    for cluster in clusters:
        if not cluster.can.plan:
            raise InputError(
                f"{name_of(balancer)} compares what clusters promise, and {name_of(cluster.scheduler)} makes no "
                "plans to promise from; give a policy that does, such as qops or conservative",
                field="balancer",
            )


def _admit_rigid(
    root_of: Callable[[int], Router | Cluster], clusters: list[Cluster], requests: Requests
) -> Callable[[int], None]:
    """Rigid jobs, each below the root of its own."""
    where: list[Cluster] = []
    for cluster in clusters:
        cluster.placed_on = where

    def admit(request: int) -> None:
        piece, root = Piece((request,), requests, lambda rows, cluster: 0), root_of(request)
        if root.able(piece):
            root.place(piece)
            where.pop().submit(request)
        else:
            root.leaves()[0].refuse(request)

    return admit


def _admit_tasks(
    env: Environment,
    root: Router | Cluster,
    clusters: list[Cluster],
    requests: Requests,
    tasks: Tasks,
    links: Links,
    instant: Instant,
) -> Callable[[int], None]:
    dags = DagJobs(env, tasks, links, instant)
    for cluster in clusters:
        cluster.dags = dags
    first, known = tasks.first.data, dags.delay_to

    limited = any(cluster.asked is not None for cluster in clusters)

    def admit(job: int) -> None:
        rows = range(first[job], first[job + 1])
        piece = Piece(rows, requests, known)
        if limited and (never := next((task for task in rows if not root.able(piece.alone(task))), -1)) >= 0:
            kind = requests.kinds_of[never]
            next(leaf for leaf in root.leaves() if leaf.kind == kind).refuse(never, rows)
            return
        root.place(piece)
        if len(rows) == 1:
            dags.placed(rows[0]).submit(rows[0])
        else:
            DagJob(dags, rows)

    return admit
