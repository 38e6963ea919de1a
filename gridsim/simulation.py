"""Simulation of one run: from a workload, a platform and a policy to a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsim.engine.setup import Engine
from gridsim.entities.clock import Mode
from gridsim.entities.cluster import Cluster
from gridsim.entities.outcome import Outcome
from gridsim.entities.router import Split
from gridsim.entities.walltime_limit import LimitedJobs, Limits, limited_jobs
from gridsim.errors import InputError, not_modelled
from gridsim.model.demand import Demand, Demands
from gridsim.model.failures import Failures
from gridsim.model.partitions import PARTITION, Partitions
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload
from gridsim.options import Overrun, Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import in_pools, seen_by
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import machine
from gridsim.record import Record
from gridsim.result import Result
from gridsim.run_setup import machines_of
from gridsim.world import World, result_of

__all__ = ["Moment", "Overrun", "Run", "run", "simulate", "state_at"]


def run(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Record:
    """Simulate to the last job end, or to the option ``until``.

    Parameters
    ----------
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`; an object is copied, so it can be reused.
    progress : callable, optional
        Called from time to time with the number of jobs released so far.

    Raises
    ------
    PolicyError
        If the policy makes an impossible decision, or leaves jobs waiting on an idle machine.
    """
    options = options or Run()
    changed = _within_limits(workload, policy, options)
    if changed is not None:
        made = run(changed.pieces, platform, policy, replace(options, limits="refuse"), progress=progress)
        return changed.record(made)
    world = World(workload, platform, policy, replace(options, limits="refuse"), progress=progress, max_jobs=0)
    if options.until is None:
        world.complete()
    else:
        world.run(options.until)
    return world.record()


def _within_limits(workload: Workload, policy: Any, options: Run) -> LimitedJobs | None:
    """Return the requests changed by the option ``limits``; None if no job is above a time limit."""
    if options.limits == "refuse" or workload.tasks is not None or workload.moldable is not None:
        return None
    knowing = make_policy(policy)
    if not capabilities_of(knowing).site:
        return None
    return limited_jobs(workload, knowing.longest(workload), options.limits)


@dataclass(frozen=True, slots=True)
class Moment:
    """State of a run at a job's submission: earlier events are decided, the job itself is not.

    Attributes
    ----------
    workload : Workload
        The submitted jobs; the job in question is the last one.
    job : int
        Row and request of the job.
    now : int
        The instant, whole microseconds.
    cluster : Cluster
        The machine with its scheduler, which has been notified of all ends of this instant.
    outcome : Outcome
        Outcomes so far.
    tick : int
        Unit for rounding up, whole microseconds.
    known : Failures or None
        Failures and windows as the scheduler knows them; None without.
    """

    workload: Workload
    job: int
    now: int
    cluster: Cluster
    outcome: Outcome
    tick: int
    known: Failures | None = None

    @property
    def running(self) -> IntArray:
        """Rows of the running jobs."""
        left = self.outcome.unfinished()
        rows: IntArray = left[self.outcome.start[left] < NEVER]
        return rows

    @property
    def waiting(self) -> IntArray:
        """Rows of the waiting jobs, without the job in question."""
        left = self.outcome.unfinished()
        rows: IntArray = left[(self.outcome.start[left] >= NEVER) & (left != self.job)]
        return rows

    def as_estimated(self) -> Workload:
        """Return the jobs with estimates as run times; jobs that have ended keep their true run time.

        A job that has exceeded its estimate ends one tick from now.
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
    demand: Demand | None = None,
    decided: bool = False,
    options: Run | None = None,
    progress: Callable[[int], None] | None = None,
) -> Moment:
    """Simulate until *at*, submit one more job after all others of that instant, and stop before its decision.

    Parameters
    ----------
    workload, platform, policy, options, progress
        As for `run`; later jobs of the workload are ignored.
    at, estimate : int
        Submit time and walltime of the job, whole microseconds.
    cores : int
        Cores of the job.
    labels : mapping of str to int, optional
        Labels of the job, from the labels of the workload; unknown by default.
    demand : Demand, optional
        Requested resources of nodes and pools; by default plain cores.
    decided : bool
        Whether the job is submitted after the starts of its instant instead of before them.

    Raises
    ------
    InputError
        For platforms of several clusters and for DAG jobs, since the returned state is that of one cluster.
    """
    options, seen = options or Run(), seen_by(make_policy(policy), platform)
    if (count := len(list(seen.clusters()))) > 1:
        cure = " (--partitions pooled merges partitions)" if seen.by == PARTITION else ""
        raise InputError(not_modelled(f"the platform has {count} clusters; expected one{cure}"), field="platform")
    if workload.tasks is not None:
        raise InputError(not_modelled("the workload has DAG jobs; expected rigid jobs"), field="workload")
    # The question is about the recorded history, so users do not react to this run.
    known = replace(workload.select(workload.submit <= at), reactions=None)
    come = with_job(known, at, cores, estimate, labels or {}, demand)
    tick, last = to_us(options.tick_of(workload)), len(come) - 1
    world = World(come, platform, policy, replace(options, limits="refuse"), progress=progress, max_jobs=0)
    world.stop_before(last)
    if decided:
        world.clusters[0].decide()
    world.clusters[0].quote(last)  # notifies the scheduler that the ends of this instant are complete
    failures, dates = options.failures, come.provenance
    if failures is not None:
        machines = machines_of(seen, world.clusters[0].can.nodes)
        failures = failures.dated(dates).known_at(machines, options.seed, at, dates)
    return Moment(come, last, at, world.clusters[0], world.outcome, tick, failures)


def with_job(
    workload: Workload, at: int, cores: int, estimate: int, labels: Mapping[str, int], demand: Demand | None
) -> Workload:
    """Append a job to the workload, without a deadline and with its walltime as run time."""
    demands, moldable = workload.demands, workload.moldable
    if demands is None and demand is not None:
        demands = Demands.plain_cores(workload.cores)
    if demands is not None:
        demands = demands.joined(Demands.plain_cores(np.array([cores])) if demand is None else Demands.of([demand]))
    moldable = None if moldable is None else moldable.with_rigid(cores)
    found = workload.with_more(labels, submit=[at], runtime=estimate, estimate=estimate, cores=cores)
    return replace(found, moldable=moldable, demands=demands)


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
    engine: Engine | None = None,
    until: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Simulate one workload under one policy.

    Parameters
    ----------
    workload : Workload
        Jobs, from `gridsim.read_workload` or `Workload.from_columns`.
    platform : Platform, optional
        The machine; by default that of the policy's site configuration, else one cluster of the size that the
        workload's source states.
    policy : str or object
        A preset such as ``easy``, a composition such as ``backfilling?ordering=sjf&reserve=easy``, a bare ordering,
        ``file.py:Class``, or a policy object.
    options : Run, optional
        Options of the run as one object.
    overrun, instant, seed, tick, balancer, split, partitions, limits, engine, until : optional
        Single options, which override those in *options*.
    progress : callable, optional
        Called from time to time with the number of jobs released so far.

    Returns
    -------
    Result
        The record with its provenance.

    Raises
    ------
    InputError
        If the size of the machine is unknown, or an option is invalid.
    PolicyError
        If the policy makes an impossible decision.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> simulate(jobs, platform=Platform.single(4)).record.start
    array([ 0., 10.,  2.])
    """
    scheduler = make_policy(policy)
    given: dict[str, Any] = {"overrun": overrun, "instant": instant, "seed": seed, "tick": tick}
    given |= {"balancer": balancer, "split": split, "partitions": partitions, "limits": limits, "engine": engine}
    given |= {"until": until}
    options = replace(options or Run(), **{name: value for name, value in given.items() if value is not None})
    platform = in_pools(workload, platform or machine(workload, policies=[scheduler]), [scheduler], options.partitions)
    platform = seen_by(scheduler, platform)
    record = run(workload, platform, scheduler, options, progress=progress)
    return result_of(record, platform, scheduler, options)
