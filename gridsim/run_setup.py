"""Set-up of a run: clusters, routers and arrivals from a workload, a platform and a policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gridsim.engine.setup import Setup
from gridsim.entities.beginning import Beginning, Begun
from gridsim.entities.clock import Clock, Instant, modes
from gridsim.entities.cluster import Cluster
from gridsim.entities.dynamic_jobs import HeldResources, Submissions, with_spare_rows
from gridsim.entities.failures import Breakdowns
from gridsim.entities.link import links_of
from gridsim.entities.outcome import Outcome
from gridsim.entities.progress import Progress
from gridsim.entities.router import Root
from gridsim.entities.source import Reacting, Source
from gridsim.entities.tree import TreeOptions, admission, clusters_of
from gridsim.errors import InputError, name_of
from gridsim.model.applicable_demands import with_applicable_demands
from gridsim.model.capacity import Capacity
from gridsim.model.dates import zone_name_of
from gridsim.model.failures import Failures, Machines
from gridsim.model.partitions import job_clusters
from gridsim.model.platform import Platform
from gridsim.model.site.vocabulary import Notice
from gridsim.model.tasks import ANY_KIND
from gridsim.model.time import NEVER, IntArray, has_second_resolution, to_us
from gridsim.model.workload import PRIORITY, USUAL, Workload
from gridsim.policy.capabilities import attribute_of, capabilities_of, is_own
from gridsim.policy.dag_ordering import upward_ranks
from gridsim.policy.pools import seen_by
from gridsim.policy.preemption import classes_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import Absence
from gridsim.policy.queue import ClusterView, Ledger, Requests
from gridsim.policy.scheduler.preempting import Preempting
from gridsim.policy.scheduler.with_reservations import WithReservations


def set_up(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: TreeOptions,
    *,
    max_jobs: int = 0,
    progress: Callable[[int], None] | None = None,
    beginning: Beginning | None = None,
) -> Setup:
    """Build the entities of a run.

    Parameters
    ----------
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`; an object is copied, so it can be reused.
    max_jobs : int
        Number of jobs that may be submitted in addition to the workload.
    progress : callable, optional
        Called from time to time with the number of jobs submitted so far.
    beginning : Beginning, optional
        State at time 0; an empty machine by default.

    Raises
    ------
    InputError
        If a job needs a resource that no cluster has, or the policy needs data that the workload does not have.
    """
    instant, tick = modes[options.instant], to_us(options.tick_of(workload))
    if workload.reactions is not None:
        workload.require_rigid("a model of users' reactions supports jobs of one task only", field="users")
    policy = make_policy(policy)
    platform = seen_by(policy, platform)
    if beginning is not None:
        workload, beginning = beginning.adapted(workload, policy)
    can = capabilities_of(policy)
    workload = in_site_zone(with_applicable_demands(workload, platform, sited=can.site), [policy])
    if not instant.batched and can.predicts and can.plan:
        message = "is per-event, which is undefined for promised start times from predictions; expected batched"
        raise InputError(message, field="instant")
    _check_runnable(workload, platform, policy, _least_cores(workload))
    closed = _why_closed(workload, platform, policy, max_jobs)
    if max_jobs and not closed and options.failures is not None and options.failures.spares:
        closed = "spare nodes need all jobs in advance"
    known = workload if closed else _with_spare_rows(workload, platform, policy, max_jobs)
    env = Clock(instant)
    failures = None if options.failures is None else options.failures.dated(workload.provenance)
    saving = None if failures is None else failures.checkpoints
    saves = saving is not None and (saving.save_before is not None or "save_before" in known.labels)
    moves = failures is not None and (failures.requeue == "behind" or saves)
    if saving is not None and saving.requeue_estimate == "remaining":
        known = _with_own_estimates(known)
    requests = Requests(known, rank=_ranks(workload, platform, tick), spare=0 if closed else max_jobs, moves=moves)
    _check_classes(requests, workload, policy)
    outcome = _outcome_of(requests, known, several=saving is not None)
    with _naming_source(workload):
        dated = with_clock(policy, workload)
        clusters = clusters_of(env, platform, dated, requests, outcome, instant, options, tick)
    if requests.needed is not requests.minimum:  # the policy does not choose core counts
        _check_runnable(workload, platform, policy, requests.needed)
    clusters_of_jobs = _job_clusters(workload, platform)
    links = None if workload.tasks is None else links_of(env, workload.tasks, platform, instant, tick)
    root = Root(env, clusters, admission(env, platform, clusters, requests, links, instant, options, clusters_of_jobs))
    users: Reacting | Submissions | None = None
    if beginning is not None:
        rows = beginning.arrivals(workload.submit)
        Source(env, np.maximum(workload.submit[rows], 0), root, instant, progress, rows)
    elif workload.reactions is None:
        Source(env, workload.submit, root, instant, progress)
    else:
        users = Reacting(env, requests, workload.reactions, root, instant, progress)
    submissions = None
    if not closed:
        given = (env, instant, root, platform, clusters, clusters_of_jobs, len(workload), known, requests, outcome)
        users = submissions = Submissions(*given, sizes=workload.moldable is not None, sited=can.site)
    for cluster in clusters:
        cluster.users = users
        _let_hold(cluster, policy, instant, submissions, closed)
    breakdowns = None
    stopping = (isinstance(it.scheduler, Preempting) or attribute_of(it.scheduler, "suspends") for it in clusters)
    if failures is not None or any(stopping):
        outcome.interrupted = []
    if failures is not None:
        if saves and "capacity_changed" not in clusters[0].can.notified:
            message = f"is not supported by {name_of(policy)}, which cannot queue a job again"
            raise InputError(message, field="checkpoint.save_before")
        if failures.need_nodes:
            parts = (env, clusters, platform, requests, policy, failures)
            breakdowns = breakdowns_of(*parts, options.seed, instant, workload.provenance)
    if failures is not None and saving is not None:
        mtbf = failures.mtbf(machines_of(platform, clusters[0].can.nodes))
        for cluster in clusters:
            cluster.progress = requests.progress = Progress(requests, outcome, saving, mtbf, tick)
    if beginning is not None:
        Begun(beginning, env, instant, root, clusters[0], outcome)
    env.ready = True
    made = (env, requests, outcome, clusters, root, clusters_of_jobs, submissions, closed, breakdowns, beginning)
    return Setup(workload, platform, policy, options, tick, *made)


def _check_classes(requests: Requests, workload: Workload, policy: Any) -> None:
    """Raise an error for jobs with classes under a policy of gridsim that has none."""
    if classes_of(requests) is not None and is_own(policy) and not attribute_of(policy, "orders_classes"):
        message = f"classes of jobs are not supported by {name_of(policy)}; expected for example easy or conservative"
        raise InputError(message, path=workload.provenance.get("source"), field=PRIORITY)


def _with_own_estimates(workload: Workload) -> Workload:
    """Return the workload with a copy of the estimates, which later runs of jobs may change.

    Raises
    ------
    InputError
        If jobs can have several sizes.
    """
    if workload.moldable is not None:
        message = "is 'remaining', which is not supported for jobs of several sizes; expected original"
        raise InputError(message, field="checkpoint.requeue_estimate")
    if workload.tasks is not None:
        return replace(workload, tasks=replace(workload.tasks, estimate=workload.tasks.estimate.copy()))
    return replace(workload, estimate=workload.estimate.copy())


def machines_of(platform: Platform, nodes: Capacity | None = None) -> Machines:
    """Return the nodes of all clusters that have any; *nodes* are those of a policy that brings its own."""
    given = [(nodes or it.capacity, it.name) for it in platform.clusters()]
    pairs = [(capacity, name) for capacity, name in given if capacity is not None and capacity.nodes]
    return Machines([capacity for capacity, _ in pairs], [name for _, name in pairs])


def breakdowns_of(
    env: Clock,
    clusters: list[Cluster],
    platform: Platform,
    requests: Requests,
    policy: Any,
    failures: Failures,
    seed: int,
    instant: Instant,
    provenance: Mapping[str, Any],
) -> Breakdowns:
    """Return the process of the failures and windows of a run.

    Raises
    ------
    InputError
        If the machine has no nodes, or the scheduler is not notified of changes of capacity.
    """
    can = clusters[0].can
    machines = machines_of(platform, can.nodes)
    if len(machines.names) < len(clusters):
        message = f"need nodes, but the machine is a pool of {platform.cores:,} cores; define its nodes, for example"
        raise InputError(f"{message} 128 nodes of 64 cores with --platform 128x64", field="failures")
    if "capacity_changed" not in can.notified:
        why = "it chooses sizes of jobs" if can.sizes else "it has no capacity_changed"
        message = f"are not supported by {name_of(policy)}: {why}"
        raise InputError(f"{message}; expected for example easy, fcfs or conservative", field="failures")
    if failures.spares and can.site:
        raise InputError(f"are not supported by {name_of(policy)}", field="failures.spares")
    if not isinstance(failures.spares, int):
        known = {node for machine in machines.capacities for node in machine.nodes}
        if missing := [node for node in failures.spares if node not in known]:
            raise InputError(f"no node of the machine is named '{missing[0]}'", field="failures.spares")
    parts = (env, clusters, requests, failures, machines, seed, instant, provenance)
    return Breakdowns(*parts, partial(_with_reservations, clusters, requests, platform, policy, seed))


def _with_reservations(
    clusters: list[Cluster], requests: Requests, platform: Platform, policy: Any, seed: int, absent: Sequence[Absence]
) -> WithReservations:
    """Return the scheduler of the only cluster, with a scheduler for the members of each reservation.

    Raises
    ------
    InputError
        For runs in which reservations are not supported.
    """
    can, cluster = clusters[0].can, clusters[0]
    refused = {
        "several clusters": len(clusters) > 1,
        "DAG jobs": requests.tasks is not None,
        "jobs of several sizes": requests.moldable is not None,
        "predicted run times": can.predicts or can.oracle,
        "guaranteed deadlines": can.guarantees,
        "slurm, which has those of its parameter reservations": can.site,
        "preemption by rules of a site": can.preempts not in (None, PRIORITY),
        f"the scheduler {name_of(policy)}": not is_own(cluster.scheduler),
    }
    if found := [name for name, there in refused.items() if there]:
        raise InputError(f"have reservations, which are not supported with {found[0]}", field="windows")
    parts = (cluster.tick, 0, Ledger(cluster.cores), platform.shares, None, cluster.demands)
    view = ClusterView(cluster.cores, requests, *parts)
    return WithReservations(cluster.scheduler, policy, view, cluster.machine.running, seed, absent)


def _least_cores(workload: Workload) -> IntArray:
    """Return the number of cores that a cluster must have for each task."""
    if workload.moldable is not None:
        return workload.moldable.minimum
    return workload.cores if workload.tasks is None else workload.tasks.cores


def _check_runnable(workload: Workload, platform: Platform, policy: Any, least: IntArray) -> None:
    """Raise `InputError` for the first task that no cluster can run.

    Rigid jobs that are too wide are rejected, as are jobs with a task that no nodes can hold.

    Parameters
    ----------
    least : (n,) int64
        Number of cores that a cluster must have for each task.
    """
    tasks, source = workload.tasks, workload.provenance.get("source")
    widest, of_one_site = {cluster.kind: 0 for cluster in platform.clusters()}, capabilities_of(policy).site
    for cluster in platform.clusters():
        rejects = cluster.capacity is not None and not of_one_site
        widest[cluster.kind] = max(widest[cluster.kind], NEVER if rejects else cluster.cores)
    if tasks is None:
        if ANY_KIND not in widest:
            kinds = ", ".join(sorted(widest))
            raise InputError(
                f"the jobs have no kind, but every cluster of the platform has one ({kinds}); remove the kinds",
                path=source,
                field="kind",
            )
        return
    limit = np.array([widest.get(kind, 0) for kind in tasks.kinds])[tasks.kind]
    bad = np.flatnonzero(least > limit)
    if len(bad):
        row = int(bad[0])
        job = int(np.searchsorted(tasks.first, row, side="right")) - 1
        task = tasks.names[row] if tasks.names is not None else str(row - int(tasks.first[job]))
        kind = tasks.kinds[tasks.kind[row]]
        if kind not in widest:
            raise InputError(
                f"job {workload.job[job]} task {task} needs a cluster of kind '{kind}'; "
                f"the platform has {', '.join(sorted(widest))}",
                path=source,
                field="kind",
            )
        raise InputError(
            f"job {workload.job[job]} task {task} needs {least[row]} cores of kind '{kind}'; "
            f"the widest cluster of that kind has {widest[kind]}",
            path=source,
            field="cores",
        )


def _why_closed(workload: Workload, platform: Platform, policy: Any, max_jobs: int) -> str:
    """Return why no additional jobs can be submitted; empty if they can."""
    if not max_jobs:
        return "no rows are reserved for jobs, World(…, max_jobs=0)"
    if workload.tasks is not None:
        return "the workload has DAG jobs"
    if _on_nodes(workload, platform) and (workload.moldable is not None or capabilities_of(policy).sizes):
        return "on machines of nodes and pools, sizes can be chosen only for jobs that are known in advance"
    if workload.reactions is not None:
        return "reacting users depend only on jobs of the workload"
    if not capabilities_of(policy).takes_more:
        return f"{name_of(policy)} reads all jobs before the first submission"
    return ""


def _on_nodes(workload: Workload, platform: Platform) -> bool:
    """Return whether jobs may request more than the cores of one pool."""
    return workload.demands is not None or any(cluster.capacity is not None for cluster in platform.clusters())


def _with_spare_rows(workload: Workload, platform: Platform, policy: Any, max_jobs: int) -> Workload:
    """Return the workload with rows for jobs that are submitted during the run, and with the names of its labels."""
    sizes = capabilities_of(policy).sizes and not _on_nodes(workload, platform)
    labels = dict(workload.labels)
    if attribute_of(policy, "preempt") is not None:  # jobs may state their classes though none of the workload does
        labels = {name: np.full(len(workload), value) for name, value in USUAL.items()} | labels
    return with_spare_rows(replace(workload, names=_names(workload, policy), labels=labels), max_jobs, sizes=sizes)


def _names(workload: Workload, policy: Any) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the labels: those of the workload, followed by those of the policy's site."""
    site = policy.site if capabilities_of(policy).site else None
    if site is None:
        return workload.names
    found = dict(workload.names)
    for name in {"user", "account", "partition", "qos"} & set(found):
        found[name] = tuple(dict.fromkeys([*found[name], *site.names(name)]))
    return found


def _ranks(workload: Workload, platform: Platform, tick: int) -> IntArray | None:
    return None if workload.tasks is None else upward_ranks(workload.tasks, platform, tick)


def _outcome_of(requests: Requests, workload: Workload, *, several: bool) -> Outcome:
    if workload.tasks is not None:
        return Outcome(requests, workload.tasks.runtime, None, several=several)
    return Outcome(requests, workload.runtime, workload.tolerance, several=several)


@contextmanager
def _naming_source(workload: Workload) -> Iterator[None]:
    """Add the file of the workload to errors about data that the policy requires, such as a share."""
    try:
        yield
    except InputError as error:
        source = error.path or workload.provenance.get("source")
        raise InputError(error.message, path=source, line=error.line, field=error.field) from error


def _job_clusters(workload: Workload, platform: Platform) -> list[tuple[int, ...]] | None:
    found = job_clusters(workload, platform)
    return None if found is None else [found.clusters[way] for way in found.way.tolist()]


def _let_hold(cluster: Cluster, policy: Any, instant: Instant, submissions: Submissions | None, closed: str) -> None:
    """Let user processes hold cores of a cluster, if its scheduler supports notifications of this."""
    if submissions is None:
        cluster.machine.why_not = closed
    elif "held" not in cluster.can.notified:
        keeps = cluster.can.plan or cluster.can.sizes
        why = "keeps promises, which it would have to break" if keeps else "is notified of jobs only"
        cluster.machine.why_not = f"{name_of(policy)} {why}"
    else:
        cluster.machine.why_not = None
        cluster.machine.holds = HeldResources(cluster, instant, submissions)


def in_site_zone(workload: Workload, policies: Iterable[Any]) -> Workload:
    """Return the workload with dates in the time zone of a policy's site, if the log has only Unix times."""
    clock = workload.provenance.get("clock", {})
    zones = [it.timezone for it in policies if capabilities_of(it).site and it.timezone is not None]
    if not zones or clock.get("zone") != "epoch":
        return workload
    return replace(workload, provenance={**workload.provenance, "clock": {**clock, "zone": zones[0]}})


def with_clock(policy: Any, workload: Workload) -> Any:
    """Set the policy's ``epoch`` and ``timezone`` to those of the workload if they are None.

    If the log has local times of an unknown zone, dates are interpreted on the same clock, whatever zone the policy
    names.

    In a log of whole seconds, an event occurred on average half a second after the recorded second, so the cycles of a
    periodic scheduler are placed between the logged events.
    """
    epoch = workload.epoch
    can = capabilities_of(policy)
    if epoch is None or not can.epoch:
        return policy
    dated = copy.copy(policy)
    local = workload.provenance.get("clock", {}).get("zone") == "local" and policy.epoch is None
    if can.site and (policy.timezone is None or local):
        dated.timezone = zone_name_of(workload.provenance)
    if policy.epoch is None:
        dated.epoch = epoch + 0.5 if has_second_resolution(workload.submit) else epoch
    return dated


def notices_of(policy: Any, workload: Workload, end: int) -> tuple[Notice, ...]:
    """Return the settings of a policy's site that a run of the workload ignores, as far as known.

    Parameters
    ----------
    end : int
        End of the last job, whole microseconds. A job avoids reservations that begin within its walltime.
    """
    if not capabilities_of(policy).site:
        return ()
    dated = with_clock(policy, workload)
    if not len(workload):
        return tuple(dated.notices)
    return (*dated.notices, *dated.outside(int(workload.submit.min()), end, int(workload.estimate.max())))
