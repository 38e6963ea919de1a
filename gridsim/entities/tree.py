"""The tree of a run: clusters, routers and links of the platform, and the entry point of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from simpy import Environment

from gridsim.entities.clock import Clock, Instant, Mode
from gridsim.entities.cluster import Cluster, Piece
from gridsim.entities.dag import DagJob, DagJobs
from gridsim.entities.link import Links
from gridsim.entities.outcome import Outcome
from gridsim.entities.router import Router, Split
from gridsim.errors import InputError, call, name_of, not_modelled
from gridsim.machine.demand_classes import DemandClasses
from gridsim.model.capacity import Capacity, NodeGroup
from gridsim.model.demand import Demands
from gridsim.model.failures import Failures
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.capabilities import adapted, attribute_of, begin, capabilities_of, compares_quotes
from gridsim.policy.copies import per_cluster_copy
from gridsim.policy.preemption import classes_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.queue import ClusterView, Ledger, Requests
from gridsim.policy.scheduler.preempting import Preempting


class TreeOptions(Protocol):
    """Options of a run that define its tree."""

    @property
    def overrun(self) -> str:
        """Action at the walltime: kill or extend."""

    @property
    def instant(self) -> Mode:
        """Batched or per-event decisions."""

    @property
    def seed(self) -> int:
        """Seed of the random streams."""

    @property
    def balancer(self) -> Any:
        """Balancer that selects the child for a piece."""

    @property
    def failures(self) -> Failures | None:
        """Failures of nodes and GPUs."""

    @property
    def split(self) -> Split:
        """Splitting of a piece that fits on no child."""

    def tick_of(self, workload: Workload) -> float:
        """Return the unit that durations are rounded up to, s."""


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
    """Return the clusters of the platform, each with its own scheduler."""
    scheduler = make_policy(policy)
    if not capabilities_of(scheduler).sizes:
        requests.needed = requests.cores
    specs = list(platform.clusters())
    ledger = Ledger(platform.cores)
    clusters = []
    for index, spec in enumerate(specs):
        own = adapted(per_cluster_copy(scheduler))
        if attribute_of(own, "orders_classes") and classes_of(requests) is not None:
            own = own if own.preempt is None else Preempting(own)
            if not spec.nodes:  # a pool is one node (specification of availability, F38)
                node = NodeGroup(group=spec.name, count=1, capacity={"cores": spec.cores}, names=(spec.name,))
                spec = replace(spec, nodes=(node,))
        runtime = outcome.runtime if capabilities_of(own).oracle else None
        demands = _demand_classes(spec, requests, sizes=capabilities_of(own).sizes)
        if options.failures is not None and demands is not None and options.failures.spares:
            demands.keep_spares(options.failures.spare_nodes(demands.capacity))
        view = ClusterView(spec.cores, requests, tick, index, ledger, platform.shares, runtime, demands)
        call(own, "setup", view, stream(options.seed, "cluster", index))
        if demands is not None:
            demands = _supported_demands(own, spec, demands)
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
                demands=demands,
            )
        )
    if capabilities_of(scheduler).scope == "grid":
        for cluster in clusters:
            cluster.together = clusters
    return clusters


def _demand_classes(spec: ClusterSpec, requests: Requests, *, sizes: bool) -> DemandClasses | None:
    """Return the resources that requests need of the nodes and pools of a cluster; None for one pool of cores only.

    If the scheduler chooses *sizes*, the resources are given for each possible core count.
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


def _supported_demands(scheduler: Any, spec: ClusterSpec, demands: DemandClasses) -> DemandClasses | None:
    """Return the demand classes if the scheduler supports them; None if the scheduler has its own nodes.

    Raises
    ------
    InputError
        If the scheduler supports only one pool of cores.
    """
    can = capabilities_of(scheduler)
    if can.nodes is not None:
        return None
    what = "has nodes" if spec.nodes else "has several pools" if spec.pools else "gets requests for more than cores"
    if not can.vectors:
        raise InputError(
            f"{name_of(scheduler)} supports one pool of cores; the machine '{spec.name}' {what}. fcfs, first-fit, "
            "easy, depth, conservative, msb, mrt, qops, fqops and the moldable policies support nodes and pools",
            field="policy",
        )
    return demands


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
    """Return the function that admits a job at the root: route it down the tree, then offer its first tasks.

    If jobs have *ways*, each job is routed among its allowed clusters, given as positions in tree order.
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
    """Raise `InputError` if a balancer that compares quotes would get none."""
    if requests.tasks is not None:
        raise InputError(
            not_modelled(f"{name_of(balancer)} compares quotes for jobs of one task; the workload has DAG jobs"),
            field="balancer",
        )
    for cluster in clusters:
        if not cluster.can.plan:
            raise InputError(
                f"{name_of(balancer)} compares promised start times, but {name_of(cluster.scheduler)} has no plan; "
                f"give a policy with a plan, such as qops or conservative",
                field="balancer",
            )


def _admit_rigid(
    root_of: Callable[[int], Router | Cluster], clusters: list[Cluster], requests: Requests
) -> Callable[[int], None]:
    """Return the function that admits rigid jobs, each below its own root."""
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

    limited = any(cluster.demands is not None for cluster in clusters)

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
