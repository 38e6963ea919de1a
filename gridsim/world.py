"""What a run is made of, in public: a clock, clusters, jobs that come; it goes on as far as its user wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from simpy import Event

from gridsim import registry
from gridsim.engine.choice import compiled_run_of
from gridsim.engine.setup import CompiledRun, Earlier, Setup
from gridsim.entities.recorded import recorded
from gridsim.entities.resource import Machine
from gridsim.entities.submissions import Submission
from gridsim.errors import InputError, PolicyError
from gridsim.model.platform import Platform
from gridsim.model.tasks import Job, Task
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.protocols import name_of
from gridsim.policy.ranks import upward_ranks
from gridsim.record import Record
from gridsim.result import Result
from gridsim.run_setup import notices_of, set_up


class World:
    """A workload, a platform and a policy, before anything has come: a SimPy world of clusters, routers and links.

    Parameters
    ----------
    workload : Workload
        Jobs that come by themselves.
    platform : Platform
        The machine.
    policy : str or object
        As `gridsim.policy.presets.policy` takes it; an object is copied, so it can be used again.
    options : Run, optional
        What all policies share; limits other than ``refuse`` make another workload, which `gridsim.simulate` does.
    progress : callable, optional
        Told the number of jobs released so far, now and then.
    room : int
        Jobs that may be submitted beside those of the workload.

    Attributes
    ----------
    env : Clock
        The SimPy environment, in whole microseconds: for processes, conditions and resources of a user's own.
    clusters : list of Cluster
        In tree order.
    now : float
        The time, s.

    Raises
    ------
    InputError
        When a job needs what no cluster has, or the policy needs what the workload does not tell.

    Notes
    -----
    What a user's own process waits for happens after the arrivals of its instant and before its pass, by
    `timeout` and by SimPy's own means alike.

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
        room: int = 1000,
    ) -> None:
        options = options or Run()
        if options.limits != "refuse":
            raise InputError("jobs are not changed within a world; gridsim.simulate does that", field="limits")
        self._setup = set_up(workload, platform, policy, options, room=room, progress=progress)
        self.workload, self.platform, self.options = self._setup.workload, self._setup.platform, options
        self.env, self.clusters, self.outcome = self._setup.env, self._setup.clusters, self._setup.outcome
        self._policy, self._submissions, self._progress = self._setup.policy, self._setup.submissions, progress
        self._over = False  # by the compiled event loop

    @property
    def machines(self) -> dict[str, Machine]:
        """The machine of each cluster by name: who holds what; cores and nodes for processes of a user's own."""
        return {cluster.name: cluster.machine for cluster in self.clusters}

    @property
    def now(self) -> float:
        """The time, s."""
        return self.env.seconds

    def timeout(self, seconds: float, value: Any = None) -> Event:
        """An event that happens some seconds from now, rounded to whole microseconds.

        Parameters
        ----------
        seconds : float
            From now, s.
        value : object, optional
            What a process that waits for it is given.

        Returns
        -------
        Event
            For a process to wait for.

        Raises
        ------
        PolicyError
            When that is no number of seconds from 0.
        """
        delay = whole(seconds)
        if not 0 <= delay < NEVER:
            raise PolicyError(f"a timeout of {seconds!r} s; expected a number of seconds from 0")
        return self.env.timeout(delay, value)

    def submit(self, job: Task | Job | Mapping[str, Any]) -> Submission:
        """Let a job come now, in this instant, before its next pass.

        Parameters
        ----------
        job : Task, Job or mapping
            One task: ``cores``, ``runtime`` (s), and as far as wanted ``estimate`` (s; the runtime where left out),
            ``deadline`` (s), ``demand`` (a `gridsim.Demand`, all that it asks of nodes and pools, instead of ``cores``)
            and the labels of the workload's jobs, by number or by name. Where the policy chooses sizes,
            ``speedup`` (a law of `gridsim.model.speedup`, or its name: ``downey(sigma=1)``) lets it have others than
            the ``cores`` that runtime and estimate are of: from ``minimum`` (1 where left out) to ``maximum`` (that of
            the machine), or those of ``sizes`` alone. Under `slurm` a job says by labels what it asks of nodes
            (`gridsim.model.site.LABELS`); it waits for the end of another one (``after``) that has come before it.

        Returns
        -------
        Submission
            The job's number, and the events ``started`` and ``ended``.

        Raises
        ------
        InputError
            When it is no such job, or of a user, account, partition or QOS that neither a job of the workload nor the
            site of the policy has.
        PolicyError
            When the policy looks at all jobs before the first one comes; when there is no room left.
        """
        if self._submissions is None:
            raise PolicyError(f"no job can be submitted: {self._setup.closed}")
        return self._submissions.submit(job, self.now)

    def run(self, until: float | None = None) -> None:
        """Go on to the last event, or to the instant *until*, s: what happens at it is left.

        Parameters
        ----------
        until : float, optional
            The instant, s; one that is over changes nothing.

        Raises
        ------
        PolicyError
            When the policy decides something impossible, or leaves jobs waiting on an idle machine.
        """
        if until is not None:
            if whole(until) > self.env.instant:
                self.env.run(whole(until))
            return
        self.env.run()
        if self._progress is not None:
            self._progress(len(self.workload))
        self._check_complete()

    def complete(self) -> None:
        """Run to the last event by the engine that the options name; nothing has been added to the world so far.

        Raises
        ------
        InputError
            When they name the compiled calendar, and something in the run needs Python.
        PolicyError
            As `run` does.
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
        """Play the jobs of this world as a window of a longer run, by the compiled calendar (`gridsim.streaming`).

        Parameters
        ----------
        earlier : Earlier or None
            What it goes on from.
        more : bool
            Whether other jobs come behind these: then it stands still when the last of these has come.

        Returns
        -------
        CompiledRun
            Where it stands.

        Raises
        ------
        InputError
            When something in the run needs Python.
        PolicyError
            As `complete` does.
        """
        calendar = compiled_run_of(self.options.engine, self._setup, earlier, more=more)
        assert calendar is not None  # the options name it
        calendar.run(self._progress)
        self._over = True
        if not more:
            self._check_complete()
        return calendar

    def step(self) -> float | None:
        """Go on to the close of the next instant; which that was, s, or None where nothing is left to happen.

        Returns
        -------
        float or None
            Seconds.
        """
        instant = self.env.run_instant()
        return None if instant is None else instant / 1e6

    def stop_before(self, job: int) -> None:
        """Run until a job (its row) comes: all before it has been decided on, the job itself has not been routed.

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
        """Every request has ended or was refused: nothing may be left waiting on a machine without events."""
        left, tasks = self.outcome.unfinished(), self.workload.tasks
        if self._submissions is not None:
            left = left[left < self._submissions.next]
            left = left[~np.isin(left, self._submissions.held)]
        if len(left):
            row = int(left[0]) if tasks is None else int(np.searchsorted(tasks.first, left[0], side="right")) - 1
            what = "jobs" if tasks is None else "tasks"
            job = int(self.workload.job[row])
            raise PolicyError(f"{name_of(self._policy)} never started {len(left)} {what}, job {job} first")

    def record(self) -> Record:
        """What happened to the jobs that have come; those that have not ended are ``waiting`` or ``running``.

        Returns
        -------
        Record
            A copy, as long as the run may go on.
        """
        path = None
        if self.workload.tasks is not None:
            path = _critical_path(self._setup)
        schedulers = [cluster.scheduler for cluster in self.clusters]
        until = None if self._ended() else self.env.instant
        workload = self.workload if self._submissions is None else self._submissions.workload
        found = recorded(workload, self._setup.requests, self.outcome, self.platform, schedulers, path, until)
        return found if self._submissions is None else self._as_come(found, until)

    def _as_come(self, found: Record, until: int | None) -> Record:
        """The rows that were used, by when they came."""
        submissions = self._submissions
        assert submissions is not None
        if until is not None and not submissions.any:
            return found
        rows = np.arange(len(found)) if until is not None else np.delete(np.arange(submissions.next), submissions.held)
        if submissions.any:
            rows = rows[np.argsort(found.workload.submit[rows], kind="stable")]
        return found.select(rows)

    def result(self) -> Result:
        """The record with its platform, policy and options, for metrics and files.

        Returns
        -------
        Result
            Of the run so far.
        """
        return result_of(self.record(), self.platform, self._policy, self.options)


def result_of(record: Record, platform: Platform, policy: Any, options: Run) -> Result:
    """A record with what it came from."""
    plugins = registry.plugins(policy, make_balancer(options.balancer))
    workload = record.workload_given
    ends = record.end_us[record.ran]
    notices = notices_of(policy, workload, NEVER if record.until_us is not None else int(ends.max(initial=0)))
    return Result(record, platform, name_of(policy), options.written(workload), plugins, notices=notices)


def _critical_path(setup: Setup) -> IntArray:
    """Critical path of each job by the times that its tasks truly held their cores; policies see those by estimates."""
    tasks, rank = setup.workload.tasks, setup.requests.rank
    assert tasks is not None
    assert rank is not None
    held = tasks.runtime if setup.extend else np.minimum(tasks.runtime, tasks.estimate)
    if (held != tasks.estimate).any():
        rank = upward_ranks(replace(tasks, estimate=held), setup.platform, setup.tick)
    return np.maximum.reduceat(rank, tasks.first[:-1])
