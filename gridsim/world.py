"""Stepwise simulation with access to its parts: clock, clusters and jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from simpy import Event

from gridsim import registry
from gridsim.engine.choice import compiled_run_of
from gridsim.engine.setup import CompiledRun, Earlier, Setup
from gridsim.entities.beginning import Beginning
from gridsim.entities.clock import modes
from gridsim.entities.dynamic_jobs import Submission
from gridsim.entities.failures import Breakdowns
from gridsim.entities.record_builder import build_record
from gridsim.entities.resource import Machine
from gridsim.entities.starting_point import StartingPoint
from gridsim.errors import InputError, PolicyError, name_of
from gridsim.model.cluster_state import ClusterState
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.tasks import Job, Task
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.windows import AtBegin, Window, WindowKind
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.dag_ordering import upward_ranks
from gridsim.policy.presets import policy as make_policy
from gridsim.record import Record, Status
from gridsim.result import Result
from gridsim.run_setup import breakdowns_of, notices_of, set_up


class World:
    """Simulation of a workload, a platform and a policy in SimPy, which can be run in steps.

    Parameters
    ----------
    workload : Workload
        Jobs that are submitted automatically.
    platform : Platform
        The machine.
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`; an object is copied, so it can be reused.
    options : Run, optional
        Options of the run; for ``limits`` other than ``refuse`` use `gridsim.simulate`, since they change the
        workload.
    progress : callable, optional
        Called from time to time with the number of jobs released so far.
    max_jobs : int
        Number of jobs that may be submitted in addition to the workload.
    beginning : Beginning, optional
        State at time 0; an empty machine by default.

    Attributes
    ----------
    env : Clock
        The SimPy environment, in whole microseconds, for user-defined processes, conditions and resources.
    clusters : list of Cluster
        The clusters, in tree order.
    now : float
        The simulation time, s.

    Raises
    ------
    InputError
        If a job needs a resource that no cluster has, or the policy needs data that the workload does not have.

    Notes
    -----
    Events of user-defined processes occur after the arrivals of their instant and before its scheduling cycle, both
    for `timeout` and for SimPy's own events.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> world = World(jobs, Platform.single(4), "easy")
    >>> seen = []
    >>> def monitor():
    ...     while True:
    ...         yield world.timeout(4)
    ...         seen.append((world.now, world.clusters[0].free))
    >>> process = world.env.process(monitor())
    >>> world.run(until=13)
    >>> seen
    [(4.0, 0), (8.0, 2), (12.0, 0)]
    >>> world.record().status_names.tolist()
    ['completed', 'running', 'completed']
    """

    def __init__(
        self,
        workload: Workload,
        platform: Platform,
        policy: Any,
        options: Run | None = None,
        *,
        progress: Callable[[int], None] | None = None,
        max_jobs: int = 1000,
        beginning: Beginning | None = None,
    ) -> None:
        options = options or Run()
        if options.limits != "refuse":
            raise InputError("World does not change jobs; use gridsim.simulate", field="limits")
        given: Any = {"max_jobs": max_jobs, "progress": progress, "beginning": beginning}
        self._setup = set_up(workload, platform, policy, options, **given)
        self.workload, self.platform, self.options = self._setup.workload, self._setup.platform, options
        self.env, self.clusters, self.outcome = self._setup.env, self._setup.clusters, self._setup.outcome
        self._policy, self._submissions, self._progress = self._setup.policy, self._setup.submissions, progress
        self._over = False  # after a run of the compiled event loop

    @classmethod
    def from_state(
        cls, state: ClusterState, policy: Any, options: Run | None = None, *, default_limit: int | None = None
    ) -> World:
        """Return a simulation that starts from the state of a cluster; time 0 is the moment of the state.

        Running jobs hold their cores from the beginning, waiting jobs are in the queue, and every job runs for its
        limit. The machine is one pool of cores, or that of the policy's site; nodes that take no new jobs and
        reservations are respected.

        Parameters
        ----------
        state : ClusterState
            The state.
        policy : str or object
            A policy as for `gridsim.policy.presets.policy`.
        options : Run, optional
            Options of the run.
        default_limit : int, optional
            Limit of jobs without one, s; by default the longest limit of the state.

        Raises
        ------
        InputError
            If the state is not possible, or the policy does not support windows that the state has.
        """
        options, policy = options or Run(), make_policy(policy)
        on_nodes = options.failures is not None and options.failures.only_windows
        start = StartingPoint.of(state, default_limit, on_nodes=on_nodes, policy=policy)
        if start.windows or on_nodes:
            options = replace(options, failures=start.with_windows(options.failures))
        given: Any = {"max_jobs": 0, "beginning": start.beginning}
        return cls(start.jobs, start.platform, start.policy or policy, options, **given)

    @property
    def machines(self) -> dict[str, Machine]:
        """Machines of the clusters by name: allocations, and the cores and nodes for user-defined processes."""
        return {cluster.name: cluster.machine for cluster in self.clusters}

    @property
    def now(self) -> float:
        """Simulation time, s."""
        return self.env.seconds

    def timeout(self, seconds: float, value: Any = None) -> Event:
        """Return an event that occurs some seconds from now, rounded to whole microseconds.

        Parameters
        ----------
        seconds : float
            Delay, s.
        value : object, optional
            Value that a waiting process receives.

        Returns
        -------
        Event
            The event.

        Raises
        ------
        PolicyError
            If the delay is not a number from 0.
        """
        delay = to_us(seconds)
        if not 0 <= delay < NEVER:
            raise PolicyError(f"a timeout of {seconds!r} s; expected a number of seconds from 0")
        return self.env.timeout(delay, value)

    def submit(self, job: Task | Job | Mapping[str, Any]) -> Submission:
        """Submit a job now, before the next scheduling cycle of this instant.

        Parameters
        ----------
        job : Task, Job or mapping
            One task: ``cores``, ``runtime`` (s), and optionally ``estimate`` (s; by default the runtime), ``deadline``
            (s), ``demand`` (a `gridsim.Demand`, all requested resources of nodes and pools, instead of ``cores``) and
            the labels of the workload's jobs, by number or by name. If the policy chooses core counts, ``speedup`` (a
            law of `gridsim.model.speedup`, or its name: ``downey(sigma=1)``) allows core counts other than ``cores``,
            to which runtime and estimate refer: from ``minimum`` (default 1) to ``maximum`` (default: size of the
            machine), or only those in ``sizes``. Under `slurm`, labels define the requests for nodes
            (`gridsim.model.site.LABELS`), and ``after`` the earlier job whose end this job waits for.

        Returns
        -------
        Submission
            The job's number, and the events ``started`` and ``ended``.

        Raises
        ------
        InputError
            If the job is invalid, or has a user, account, partition or QOS that neither the workload nor the site of
            the policy has.
        PolicyError
            If the policy needs all jobs in advance, or *max_jobs* is exhausted.
        """
        if self._submissions is None:
            raise PolicyError(f"no job can be submitted: {self._setup.closed}")
        return self._submissions.submit(job, self.now)

    def fail(self, nodes: str | Sequence[str], until: float = float("inf")) -> None:
        """Let nodes fail now, before the next scheduling cycle of this instant: their jobs are stopped.

        Parameters
        ----------
        nodes : str or sequence of str
            Names of nodes (of a grid ``cluster/node``), or ``node:gpu`` for one GPU.
        until : float
            Instant at which they return, s; by default never.

        Raises
        ------
        InputError
            If a node is unknown, *until* is not after now, the machine has no nodes, or the policy does not support
            failures.
        """
        if not to_us(until) > self.env.instant:
            raise InputError(f"is {until!r}; expected a time after {self.now} s", field="until")
        names = [nodes] if isinstance(nodes, str) else list(nodes)
        self._breakdowns().fail(names, self.env.instant, min(to_us(until), NEVER))

    def window(
        self,
        nodes: str | Sequence[str],
        begin: float,
        end: float = float("inf"),
        *,
        kind: WindowKind = "maintenance",
        at_begin: AtBegin | None = None,
        **reservation: Any,
    ) -> None:
        """Announce now, before the next scheduling cycle of this instant, that nodes will be absent, or are reserved.

        Parameters
        ----------
        nodes : str or sequence of str
            Names of nodes (of a grid ``cluster/node``), or host lists.
        begin, end : float
            Interval, s; a window without end must begin now.
        kind, at_begin : str
            As of `gridsim.model.windows.Window`.
        **reservation : object
            For a reservation: ``id``, ``users``, ``accounts`` and ``node_cores``, as of that class.

        Raises
        ------
        InputError
            As `fail`, and if the window begins in the past.
        """
        if not to_us(begin) >= self.env.instant:
            raise InputError(f"is {begin!r}; expected a time from {self.now} s", field="begin")
        names = [nodes] if isinstance(nodes, str) else list(nodes)
        window = Window(names, begin, end, kind, announced=self.now, at_begin=at_begin, **reservation)
        self._breakdowns().announce(window, self.env.instant, self.workload.provenance)

    def _breakdowns(self) -> Breakdowns:
        """Return the process of failures, which begins if there is none."""
        setup = self._setup
        if setup.breakdowns is None:
            options = self.options.failures or Failures()
            given = (self.env, self.clusters, setup.platform, setup.requests, setup.policy, options)
            made = breakdowns_of(*given, self.options.seed, modes[self.options.instant], self.workload.provenance)
            self._setup = replace(setup, breakdowns=made)
            self.outcome.interrupted = self.outcome.interrupted or []
            return made
        return setup.breakdowns

    def run(self, until: float | None = None) -> None:
        """Run to the last event, or to the instant *until*, whose own events are not processed.

        Parameters
        ----------
        until : float, optional
            The instant, s; a past instant has no effect.

        Raises
        ------
        PolicyError
            If the policy makes an impossible decision, or leaves jobs waiting on an idle machine.
        """
        if until is not None:
            if to_us(until) > self.env.instant:
                self.env.run(to_us(until))
            return
        self.env.run()
        if self._progress is not None:
            self._progress(len(self.workload))
        self._check_complete()

    def complete(self) -> None:
        """Run to the last event with the engine of the options; nothing may have been added to the world before.

        Raises
        ------
        InputError
            If the options require the compiled engine, and something in the run needs Python.
        PolicyError
            As `run`.
        """
        calendar = compiled_run_of(self.options.engine, self._setup)
        if calendar is None:
            self.run()
            return
        calendar.run(self._progress)
        self._over = True
        if self._progress is not None:
            self._progress(len(self.workload))
        self._check_complete()

    def complete_window(self, earlier: Earlier | None, *, more: bool) -> CompiledRun:
        """Simulate the jobs of this world as a window of a longer run in the compiled engine (`gridsim.streaming`).

        Parameters
        ----------
        earlier : Earlier or None
            State of the previous window.
        more : bool
            Whether more jobs follow; then the run stops when the last job of this window is submitted.

        Returns
        -------
        CompiledRun
            State of the run.

        Raises
        ------
        InputError
            If something in the run needs Python.
        PolicyError
            As `complete`.
        """
        calendar = compiled_run_of(self.options.engine, self._setup, earlier, more=more)
        assert calendar is not None  # guaranteed by the option
        calendar.run(self._progress)
        self._over = True
        if not more:
            self._check_complete()
        return calendar

    def step(self) -> float | None:
        """Run to the end of the next instant and return it, s; None if no events are left.

        Returns
        -------
        float or None
            Seconds.
        """
        instant = self.env.run_instant()
        return None if instant is None else instant / 1e6

    def stop_before(self, job: int) -> None:
        """Run until a job is submitted; earlier events are decided, the job itself is not yet routed.

        Parameters
        ----------
        job : int
            Row of the job.
        """
        reached, admit = self.env.event(), self._setup.root.admit

        def hold(row: int) -> None:
            if row == job:
                reached.succeed()
            else:
                admit(row)

        self._setup.root.admit = hold
        self.env.run(until=reached)

    def _ended(self) -> bool:
        return self._over or self.env.peek() == float("inf")

    def _check_complete(self) -> None:
        """Raise an error if a request has neither ended nor been rejected on a machine without events."""
        left, tasks = self.outcome.unfinished(), self.workload.tasks
        if self._submissions is not None:
            left = left[left < self._submissions.next]
            left = left[~np.isin(left, self._submissions.held)]
        breakdowns = self._setup.breakdowns
        if len(left) and breakdowns is not None and breakdowns.lost_part:
            self.outcome.status[left] = Status.waiting
            return
        if len(left):
            row = int(left[0]) if tasks is None else int(np.searchsorted(tasks.first, left[0], side="right")) - 1
            what = "jobs" if tasks is None else "tasks"
            job = int(self.workload.job[row])
            raise PolicyError(f"{name_of(self._policy)} never started {len(left)} {what}, job {job} first")

    def record(self) -> Record:
        """Return the record of the jobs submitted so far; jobs that have not ended are ``waiting`` or ``running``.

        Returns
        -------
        Record
            The record; a copy if the run may continue.
        """
        path = None
        if self.workload.tasks is not None:
            path = _critical_path(self._setup)
        schedulers = [cluster.scheduler for cluster in self.clusters]
        until = None if self._ended() else self.env.instant
        workload = self.workload if self._submissions is None else self._submissions.workload
        absences = None if self._setup.breakdowns is None else self._setup.breakdowns.absences()
        run = (self._setup.requests, self.outcome, self.platform, schedulers, path, until, absences)
        found = build_record(workload, *run)
        return found if self._submissions is None else self._by_submission(found, until)

    def _by_submission(self, found: Record, until: int | None) -> Record:
        """Return the record of the used rows, in order of submission."""
        submissions = self._submissions
        assert submissions is not None
        if until is not None and not submissions.any:
            return found
        rows = np.arange(len(found)) if until is not None else np.delete(np.arange(submissions.next), submissions.held)
        if submissions.any:
            rows = rows[np.argsort(found.workload.submit[rows], kind="stable")]
        return found.select(rows)

    def result(self) -> Result:
        """Return the record with its platform, policy and options, for metrics and files.

        Returns
        -------
        Result
            Result of the run so far.
        """
        return result_of(self.record(), self.platform, self._policy, self.options)


def result_of(record: Record, platform: Platform, policy: Any, options: Run) -> Result:
    """Return the result of a record with its provenance."""
    plugins = registry.plugins(policy, make_balancer(options.balancer))
    workload = record.workload_given
    ends = record.end_us[record.ran]
    notices = notices_of(policy, workload, NEVER if record.until_us is not None else int(ends.max(initial=0)))
    return Result(record, platform, name_of(policy), options.written(workload), plugins, notices=notices)


def _critical_path(setup: Setup) -> IntArray:
    """Return the critical path of each job by actual run times of tasks; policies see the one by estimates."""
    tasks, rank = setup.workload.tasks, setup.requests.rank
    assert tasks is not None
    assert rank is not None
    held = tasks.runtime if setup.extend else np.minimum(tasks.runtime, tasks.estimate)
    if (held != tasks.estimate).any():
        rank = upward_ranks(replace(tasks, estimate=held), setup.platform, setup.tick)
    return np.maximum.reduceat(rank, tasks.first[:-1])
