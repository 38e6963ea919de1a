"""One run: a workload, a platform and a policy in, what happened out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from simpy import Environment

from gridsim import registry
from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import Mode, modes
from gridsim.entities.limited import Limited, Limits, limited
from gridsim.entities.link import links_of
from gridsim.entities.outcome import Outcome
from gridsim.entities.router import Root, Split
from gridsim.entities.source import Reacting, Source
from gridsim.entities.tree import admission, clusters_of
from gridsim.errors import InputError, PolicyError
from gridsim.model.machine import machine
from gridsim.model.platform import Platform
from gridsim.model.pools import PARTITION, Partitions, in_pools, seen_by, ways
from gridsim.model.tasks import ANY_KIND
from gridsim.model.time import NEVER, IntArray, of_whole_seconds, whole
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import told
from gridsim.policy.queue import Requests
from gridsim.policy.ranks import upward_ranks
from gridsim.record import Promises, Reasons, Record, TaskRecord
from gridsim.result import Result

__all__ = ["Moment", "Overrun", "Run", "run", "simulate", "state_at", "told_when"]

Overrun = Literal["kill", "extend"]


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a run that every policy shares.

    Parameters
    ----------
    overrun : {"kill", "extend"}
        What happens to a job that reaches its walltime estimate.
    instant : {"batched", "per-event"}
        One decision after all events of an instant, or one after each.
    seed : int
        Of the random streams: those of policies that draw, and those of the synthetic workload of a recipe.
    tick : float
        Unit of rounding up: of delays, of the first overrun assumed of a job that outlives its estimate, s; that of the
        workload's source, or 1 s, where left out.
    balancer : str or object
        Which child of a router gets a piece of a job, as `gridsim.policy.balancing.balancer` takes it.
    split : {"task", "kind-group"}
        How a piece is split that no child can hold whole.
    partitions : {"apart", "pooled"} or None
        Whether partitions that jobs name are pools of their own; None: where their sizes are known and no two share a
        node. A policy that knows its site keeps them itself.
    limits : {"refuse", "clip", "split"}
        What users do whose jobs ask for more time than a limit of the policy's site allows: they are turned away; they
        ask for the limit, and their jobs are killed there; their jobs go on in a chain of pieces no longer than it.
    """

    overrun: Overrun = "kill"
    instant: Mode = "batched"
    seed: int = 1
    tick: float | None = None
    balancer: Any = "expected-queue"
    split: Split = "task"
    partitions: Partitions | None = None
    limits: Limits = "refuse"

    def __post_init__(self) -> None:
        if self.overrun not in ("kill", "extend"):
            raise InputError(f"'{self.overrun}' is neither kill nor extend", field="overrun")
        if self.instant not in modes:
            raise InputError(f"'{self.instant}' is neither batched nor per-event", field="instant")
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"{self.seed!r} is no whole number from 0", field="seed")
        tick = 1.0 if self.tick is None else self.tick
        if not isinstance(tick, int | float) or not 0 < whole(float(tick)) < NEVER:
            raise InputError(f"{self.tick!r} is no number of seconds; at least 1e-06 is needed", field="tick")
        if self.split not in get_args(Split):
            raise InputError(f"'{self.split}' is neither task nor kind-group", field="split")
        if self.partitions not in (None, *get_args(Partitions)):
            raise InputError(f"'{self.partitions}' is neither apart nor pooled", field="partitions")
        if self.limits not in get_args(Limits):
            raise InputError(f"'{self.limits}' is none of {', '.join(get_args(Limits))}", field="limits")

    def tick_of(self, workload: Workload) -> float:
        """Unit of rounding up for a workload, s."""
        return float(workload.provenance.get("tick", 1.0)) if self.tick is None else self.tick

    def written(self, workload: Workload) -> dict[str, Any]:
        """The options of a run on a workload as files and pages tell them; of partitions only what was asked for."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        if self.partitions is None:
            del values["partitions"]
        values["tick"] = self.tick_of(workload)
        if not isinstance(self.balancer, str):
            values["balancer"] = told(self.balancer)
        return values


def run(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Record:
    """Simulate to the last completion.

    Parameters
    ----------
    policy : str or object
        As `gridsim.policy.presets.policy` takes it; an object is copied, so it can be used again.
    progress : callable, optional
        Told the number of jobs released so far, now and then.

    Raises
    ------
    PolicyError
        When the policy decides something impossible, or leaves jobs waiting on an idle machine.
    """
    options = options or Run()
    changed = _within_limits(workload, policy, options)
    if changed is not None:
        made = run(changed.asked, platform, policy, replace(options, limits="refuse"), progress=progress)
        return changed.record(made)
    tick = whole(options.tick_of(workload))
    world = _world(workload, platform, policy, options, tick)
    root = Root(world.env, world.clusters, world.admit)
    if workload.reactions is None:
        Source(world.env, workload.submit, root, modes[options.instant], progress)
    else:
        users = Reacting(world.env, world.requests, workload.reactions, root, modes[options.instant], progress)
        for cluster in world.clusters:
            cluster.users = users
    world.env.run()
    if progress is not None:
        progress(len(workload))
    requests, outcome = world.requests, world.outcome
    path = None if workload.tasks is None else _critical_path(workload, platform, requests.rank, options, tick)
    schedulers = [cluster.scheduler for cluster in world.clusters]
    record = _record(workload, requests, outcome, platform, schedulers, path)
    _check_complete(record, outcome, policy)
    return record


def _within_limits(workload: Workload, policy: Any, options: Run) -> Limited | None:
    """What users ask for instead of what is above a limit of time; None where all may ask for what they do."""
    if options.limits == "refuse" or workload.tasks is not None or workload.moldable is not None:
        return None
    knows = getattr(make_policy(policy), "longest", None)
    if knows is None:
        return None
    return limited(workload, knows(workload), options.limits)


class _World(NamedTuple):
    """What a run is made of, before anything has come."""

    env: Environment
    clusters: list[Cluster]
    admit: Callable[[int], None]
    requests: Requests
    outcome: Outcome


def _world(workload: Workload, platform: Platform, policy: Any, options: Run, tick: int) -> _World:
    instant, tasks = modes[options.instant], workload.tasks
    policy = make_policy(policy)
    platform = seen_by(policy, platform)
    if workload.reactions is not None and tasks is not None:
        raise InputError("the jobs have several tasks; users react to jobs of one task", field="users")
    asked = workload.cores if tasks is None else tasks.cores
    _check_runnable(workload, platform, asked if workload.moldable is None else workload.moldable.minimum)
    requests = Requests(workload, rank=None if tasks is None else upward_ranks(tasks, platform, tick))
    runtime = workload.runtime if tasks is None else tasks.runtime
    outcome = Outcome(requests, runtime, workload.tolerance if tasks is None else None)
    env = Environment()
    try:
        policy = told_when(policy, workload)
        clusters = clusters_of(env, platform, policy, requests, outcome, instant, options, tick)
    except InputError as error:  # jobs without what the policy asks for, such as a share
        source = error.path or workload.provenance.get("source")
        raise InputError(error.message, path=source, line=error.line, field=error.field) from error
    if requests.needed is not requests.minimum:  # the policy chooses no sizes
        _check_runnable(workload, platform, requests.needed)
    links = None if tasks is None else links_of(env, tasks, platform, instant, tick)
    admit = admission(env, platform, clusters, requests, links, instant, options, ways(workload, platform))
    return _World(env, clusters, admit, requests, outcome)


def told_when(policy: Any, workload: Workload) -> Any:
    """The policy; one that wants to know when second 0 was (its ``epoch`` is None) is told what the workload says.

    In a log of whole seconds, what happened in a second happened half a second after its beginning, on average: the
    passes of a scheduler's clock fall between its events, not on them.
    """
    epoch = workload.epoch
    if getattr(policy, "epoch", 0.0) is not None or epoch is None:
        return policy
    told = copy.copy(policy)
    told.epoch = epoch + 0.5 if of_whole_seconds(workload.submit) else epoch
    return told


@dataclass(frozen=True, slots=True)
class Moment:
    """A run that stands still as a job comes: all before it has been decided on, the job itself has not.

    Attributes
    ----------
    workload : Workload
        The jobs that have come; the one in question is the last.
    job : int
        Its row, and its request.
    now : int
        The instant, whole microseconds.
    cluster : Cluster
        The machine with its scheduler, which knows all that ended in this instant.
    outcome : Outcome
        What has happened so far.
    tick : int
        Unit of rounding up, whole microseconds.
    """

    workload: Workload
    job: int
    now: int
    cluster: Cluster
    outcome: Outcome
    tick: int

    @property
    def running(self) -> IntArray:
        """Rows of the jobs that run."""
        left = self.outcome.unfinished()
        rows: IntArray = left[self.outcome.start[left] < NEVER]
        return rows

    @property
    def waiting(self) -> IntArray:
        """Rows of the jobs that wait, without the one in question."""
        left = self.outcome.unfinished()
        rows: IntArray = left[(self.outcome.start[left] >= NEVER) & (left != self.job)]
        return rows

    def as_estimated(self) -> Workload:
        """The jobs as they would go on if all took as long as estimated; who has ended keeps the true runtime.

        A job that has outlived its estimate ends a tick from now.
        """
        runtime = self.workload.runtime.copy()
        left, running = self.outcome.unfinished(), self.running
        runtime[left] = self.workload.estimate[left]
        runtime[running] = np.maximum(runtime[running], self.now - self.outcome.start[running] + self.tick)
        return replace(self.workload, runtime=runtime)


def state_at(
    workload: Workload,
    platform: Platform,
    policy: Any,
    at: int,
    *,
    cores: int,
    estimate: int,
    labels: Mapping[str, int] | None = None,
    options: Run | None = None,
    progress: Callable[[int], None] | None = None,
) -> Moment:
    """Simulate until *at*, when one more job comes after all others of that instant, and stop before it is decided on.

    Parameters
    ----------
    workload, platform, policy, options, progress
        As `run` takes them; later jobs of the workload play no part.
    at, estimate : int
        Submit and walltime of the job, whole microseconds.
    cores : int
        Cores of the job.
    labels : mapping of str to int, optional
        Whose it is and what it asks for, of the labels of the workload; unknown where left out.

    Raises
    ------
    InputError
        For platforms of several clusters and for DAG jobs: the state that is handed over is that of one cluster.
    """
    options, seen = options or Run(), seen_by(make_policy(policy), platform)
    if (count := len(list(seen.clusters()))) > 1:
        cure = " (--partitions pooled makes one of partitions)" if seen.by == PARTITION else ""
        raise InputError(f"the platform has {count} clusters; expected one{cure}", field="platform")
    if workload.tasks is not None:
        raise InputError("the workload has jobs of several tasks; expected rigid jobs", field="workload")
    # What the log says has happened is what is asked about: its users do not react to this run.
    come = _and_one_more(
        replace(workload.select(workload.submit <= at), reactions=None), at, cores, estimate, labels or {}
    )
    tick, last = whole(options.tick_of(workload)), len(come) - 1
    world = _world(come, platform, policy, options, tick)
    reached = world.env.event()

    def admit(job: int) -> None:
        if job == last:
            reached.succeed()
        else:
            world.admit(job)

    Source(world.env, come.submit, Root(world.env, world.clusters, admit), modes[options.instant], progress)
    world.env.run(until=reached)
    world.clusters[0].quote(last)  # asking lets the scheduler know that the ends of this instant are complete
    return Moment(come, last, at, world.clusters[0], world.outcome, tick)


def _and_one_more(workload: Workload, at: int, cores: int, estimate: int, labels: Mapping[str, int]) -> Workload:
    """The workload with a job behind all others; it asks for no deadline, and lasts as long as it may."""
    more = {"job": int(workload.job.max(initial=0)) + 1, "submit": at, "runtime": estimate, "estimate": estimate}
    more |= {"cores": cores, "deadline": NEVER, "tolerance": 1, "restartable": True}
    columns: dict[str, Any] = {name: getattr(workload, name) for name in more}
    for name, column in columns.items():
        columns[name] = None if column is None else np.append(column, column.dtype.type(more[name]))
    return replace(
        workload,
        **columns,
        labels={name: np.append(column, labels.get(name, UNKNOWN)) for name, column in workload.labels.items()},
        logged={},
    )


def _check_runnable(workload: Workload, platform: Platform, least: IntArray) -> None:
    """Raise `InputError` for the first task that no cluster can run. (Rigid jobs that are too wide are rejected.)

    Parameters
    ----------
    least : (n,) int64
        Cores that a cluster must have for each task.
    """
    tasks, source = workload.tasks, workload.provenance.get("source")
    widest = {cluster.kind: 0 for cluster in platform.clusters()}
    for cluster in platform.clusters():
        widest[cluster.kind] = max(widest[cluster.kind], cluster.cores)
    if tasks is None:
        if ANY_KIND not in widest:
            kinds = ", ".join(sorted(widest))
            raise InputError(
                f"the jobs name no kind, and every cluster of the platform has one ({kinds}); leave the kinds out",
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


def _critical_path(workload: Workload, platform: Platform, rank: IntArray, options: Run, tick: int) -> IntArray:
    """Critical path of each job by the times that its tasks truly held their cores; policies see those by estimates."""
    tasks = workload.tasks
    assert tasks is not None
    held = tasks.runtime if options.overrun == "extend" else np.minimum(tasks.runtime, tasks.estimate)
    if (held != tasks.estimate).any():
        rank = upward_ranks(replace(tasks, estimate=held), platform, tick)
    return np.maximum.reduceat(rank, tasks.first[:-1])


def _record(
    workload: Workload,
    requests: Requests,
    outcome: Outcome,
    platform: Platform,
    schedulers: Sequence[Any],
    critical_path: IntArray | None,
) -> Record:
    """What happened: rows of jobs, and of tasks where jobs have several."""
    if workload.tasks is None:
        columns = (outcome.start, outcome.end, outcome.status, outcome.cluster)
        used = None if workload.moldable is None else outcome.cores
        logged = None
        if requests.moves:  # waits in the log are counted from other submits
            logged = workload.submit
            workload = replace(workload, submit=requests.submit, deadline=requests.deadline, logged={})
        more: dict[str, Any] = {"promises": _promises(outcome, schedulers), "reasons": _reasons(schedulers)}
        return Record(workload, *columns, platform.cores, cores_used=used, logged_submit_us=logged, **more)
    begins = workload.tasks.first[:-1]
    used = None if workload.moldable is None else outcome.cores
    tasks = TaskRecord(requests.ready, outcome.start, outcome.end, outcome.status, outcome.cluster, used)
    return Record(
        workload,
        np.minimum.reduceat(outcome.start, begins),
        np.maximum.reduceat(outcome.end, begins),
        np.maximum.reduceat(outcome.status, begins),
        outcome.cluster[begins],
        platform.cores,
        tasks=tasks,
        critical_path=critical_path,
        rank=requests.rank,
    )


def _promises(outcome: Outcome, schedulers: Sequence[Any]) -> Promises | None:
    """What was promised, and which runs were cut short; None where the policy promises nothing and cut none."""
    guarantees = any(getattr(scheduler, "guarantees", False) for scheduler in schedulers)
    preempts = any(getattr(scheduler, "preempts", False) for scheduler in schedulers)
    if not guarantees and not preempts and not outcome.cut and (outcome.cancelled_by >= NEVER).all():
        return None
    for scheduler in schedulers:
        outcome.broken |= getattr(scheduler, "broken", False)
    cut: IntArray = np.array(outcome.cut, dtype=np.int64).reshape(-1, 4)
    request, began, ended, by = cut.T
    found = Promises(outcome.granted, outcome.offer, outcome.doublings, outcome.broken, request, began, ended)
    return replace(found, guarantees=guarantees, killed_by=by, cancelled_by=outcome.cancelled_by)


def _reasons(schedulers: Sequence[Any]) -> Reasons | None:
    """Why jobs waited, where the one scheduler of the machine says so."""
    return schedulers[0].reasons() if len(schedulers) == 1 and hasattr(schedulers[0], "reasons") else None


def _check_complete(record: Record, outcome: Outcome, scheduler: Any) -> None:
    """Every request has ended or was refused: nothing may be left waiting on a machine without events."""
    left = outcome.unfinished()
    if len(left):
        tasks = record.workload.tasks
        row = int(left[0]) if tasks is None else int(np.searchsorted(tasks.first, left[0], side="right")) - 1
        job = int(record.workload.job[row])
        what = "jobs" if tasks is None else "tasks"
        raise PolicyError(f"{told(scheduler)} left {len(left)} {what} waiting for ever, job {job} first")


def simulate(
    workload: Workload,
    *,
    platform: Platform | None = None,
    policy: Any = "easy",
    options: Run | None = None,
    overrun: Overrun | None = None,
    instant: Mode | None = None,
    seed: int | None = None,
    tick: float | None = None,
    balancer: Any = None,
    split: Split | None = None,
    partitions: Partitions | None = None,
    limits: Limits | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run one policy on one workload.

    Parameters
    ----------
    workload : Workload
        Jobs, as `gridsim.read_workload` returns them or `Workload.from_columns` makes them.
    platform : Platform, optional
        The machine; where left out, that of the site that the policy knows, else one cluster of the size that the
        workload's source states.
    policy : str or object
        A preset such as ``easy``, a composition such as ``backfilling?ordering=sjf&reserve=easy``, a bare ordering,
        ``file.py:Class``, or a policy object.
    options : Run, optional
        Overrun, instant, seed, tick, balancer, split, partitions and limits together.
    overrun, instant, seed, tick, balancer, split, partitions, limits : optional
        Each on its own, in place of that of the *options*.

    Raises
    ------
    InputError
        When the size of the machine is not known, or an option is none.
    PolicyError
        When the policy decides something impossible.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> simulate(jobs, platform=Platform.single(4)).record.start
    array([ 0., 10.,  2.])
    """
    scheduler = make_policy(policy)
    given: dict[str, Any] = {"overrun": overrun, "instant": instant, "seed": seed, "tick": tick}
    given |= {"balancer": balancer, "split": split, "partitions": partitions, "limits": limits}
    options = replace(options or Run(), **{name: value for name, value in given.items() if value is not None})
    platform = in_pools(workload, platform or machine(workload, policies=[scheduler]), [scheduler], options.partitions)
    platform = seen_by(scheduler, platform)
    record = run(workload, platform, scheduler, options, progress=progress)
    plugins = registry.plugins(scheduler, make_balancer(options.balancer))
    notices = getattr(told_when(scheduler, workload), "notices", ())
    return Result(record, platform, told(scheduler), options.written(workload), plugins, notices=notices)
