"""What a run is made of, in public: a clock, clusters, jobs that come; it goes on as far as its user wants."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from simpy import Event

from gridsim import registry
from gridsim.calendar.engine import Calendar, Earlier, Setup, calendar_of
from gridsim.entities.clock import Clock
from gridsim.entities.cluster import Cluster
from gridsim.entities.holds import Holds
from gridsim.entities.instant import modes
from gridsim.entities.link import links_of
from gridsim.entities.machine import Machine
from gridsim.entities.outcome import Outcome
from gridsim.entities.recorded import recorded
from gridsim.entities.router import Root
from gridsim.entities.source import Reacting, Source
from gridsim.entities.submissions import Submission, Submissions, with_room
from gridsim.entities.tree import admission, clusters_of
from gridsim.errors import InputError, PolicyError
from gridsim.model.applicable_demands import suited
from gridsim.model.dates import zone_name_of
from gridsim.model.platform import Platform
from gridsim.model.pools import ways
from gridsim.model.site.vocabulary import Notice
from gridsim.model.tasks import ANY_KIND, Job, Task
from gridsim.model.time import NEVER, IntArray, of_whole_seconds, whole
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.balancing import balancer as make_balancer
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import seen_by
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import name_of
from gridsim.policy.queue import Requests
from gridsim.policy.ranks import upward_ranks
from gridsim.record import Record
from gridsim.result import Result

__all__ = ["World", "in_site_zone", "notices_of", "result_of", "with_clock"]


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
        instant, tasks = modes[options.instant], workload.tasks
        if workload.reactions is not None:
            workload.require_rigid("users react to jobs of one task", field="users")
        policy = make_policy(policy)
        platform = seen_by(policy, platform)
        workload = in_site_zone(suited(workload, platform, sited=capabilities_of(policy).site), [policy])
        self.workload, self.platform, self.options = workload, platform, options
        self._policy, self._tick, self._progress = policy, whole(options.tick_of(workload)), progress
        self.env = Clock(instant)
        if not instant.batched and (can := capabilities_of(policy)).predicts and can.plan:
            message = "is per-event, which is not defined for promised starts by predictions; expected batched"
            raise InputError(message, field="instant")
        asked = workload.cores if tasks is None else tasks.cores
        least = asked if workload.moldable is None else workload.moldable.minimum
        _check_runnable(workload, self.platform, policy, least)
        rank = None if tasks is None else upward_ranks(tasks, self.platform, self._tick)
        self._why_closed = _why_closed(workload, self.platform, policy, room)
        room = 0 if self._why_closed else room
        sizes = workload.moldable is not None
        workload = replace(workload, names=_names(workload, policy)) if room else workload
        workload = with_room(workload, room, sizes=_takes_sizes(workload, platform, policy)) if room else workload
        self._requests = Requests(workload, rank=rank, room=room)
        runtime = workload.runtime if tasks is None else tasks.runtime
        self.outcome = Outcome(self._requests, runtime, workload.tolerance if tasks is None else None)
        self.clusters = self._clusters()
        if self._requests.needed is not self._requests.minimum:  # the policy chooses no sizes
            _check_runnable(workload, self.platform, policy, self._requests.needed)
        found = ways(self.workload, self.platform)
        pinned = None if found is None else [found.clusters[way] for way in found.way.tolist()]
        self._pinned = pinned is not None
        links = None if tasks is None else links_of(self.env, tasks, self.platform, instant, self._tick)
        admit = admission(
            self.env,
            self.platform,
            self.clusters,
            self._requests,
            links,
            instant,
            options,
            pinned,
        )
        self._root = Root(self.env, self.clusters, admit)
        reacting = self._source()
        self._submissions: Submissions | None = None
        if room:
            sited = capabilities_of(policy).site
            given = (self._root, self.platform, self.clusters, pinned, len(self.workload), workload)
            self._submissions = Submissions(
                self.env, instant, *given, self._requests, self.outcome, sizes=sizes, sited=sited
            )
        for cluster in self.clusters:
            cluster.users = self._submissions or reacting
            self._let_hold(cluster)
        self.env.ready = True
        self._over = False  # by the compiled calendar

    def _clusters(self) -> list[Cluster]:
        try:
            return clusters_of(
                self.env,
                self.platform,
                with_clock(self._policy, self.workload),
                self._requests,
                self.outcome,
                modes[self.options.instant],
                self.options,
                self._tick,
            )
        except InputError as error:  # jobs without what the policy asks for, such as a share
            source = error.path or self.workload.provenance.get("source")
            raise InputError(error.message, path=source, line=error.line, field=error.field) from error

    def _let_hold(self, cluster: Cluster) -> None:
        """Let processes of a user's own hold cores of a cluster, where its scheduler can be told of them."""
        if self._submissions is None:
            cluster.machine.why_not = self._why_closed
        elif not cluster.can.held:
            keeps = cluster.can.plan or cluster.can.sizes
            why = "keeps promises, which it would have to break" if keeps else "is told of jobs alone"
            cluster.machine.why_not = f"{name_of(self._policy)} {why}"
        else:
            cluster.machine.why_not = None
            cluster.machine.holds = Holds(cluster, modes[self.options.instant], self._submissions)

    @property
    def machines(self) -> dict[str, Machine]:
        """The machine of each cluster by name: who holds what; cores and nodes for processes of a user's own."""
        return {cluster.name: cluster.machine for cluster in self.clusters}

    def _source(self) -> Reacting | None:
        """Let jobs come: at their submit times, or when their users submit them, who then wait for their ends."""
        workload, instant = self.workload, modes[self.options.instant]
        if workload.reactions is None:
            Source(self.env, workload.submit, self._root, instant, self._progress)
            return None
        return Reacting(self.env, self._requests, workload.reactions, self._root, instant, self._progress)

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
            raise PolicyError(f"no job can be submitted: {self._why_closed}")
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
        calendar = self._calendar()
        if calendar is None:
            self.run()
            return
        calendar.run(self._progress)
        self._over = True
        if self._progress is not None:
            self._progress(len(self.workload))
        self._check_complete()

    def _calendar(self, earlier: Earlier | None = None, *, more: bool = False) -> Calendar | None:
        options = self.options
        run = Setup(
            self.workload,
            self._requests,
            self.outcome,
            self.clusters,
            self.platform,
            options,
            batched=modes[options.instant].batched,
            extend=options.overrun == "extend",
            tick=self._tick,
            pinned=self._pinned,
            earlier=earlier,
            more=more,
        )
        return calendar_of(options.engine, run)

    def complete_window(self, earlier: Earlier | None, *, more: bool) -> Calendar:
        """Play the jobs of this world as a window of a longer run, by the compiled calendar (`gridsim.streaming`).

        Parameters
        ----------
        earlier : Earlier or None
            What it goes on from.
        more : bool
            Whether other jobs come behind these: then it stands still when the last of these has come.

        Returns
        -------
        Calendar
            Where it stands.

        Raises
        ------
        InputError
            When something in the run needs Python.
        PolicyError
            As `complete` does.
        """
        calendar = self._calendar(earlier, more=more)
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
        reached, admit = self.env.event(), self._root.admit

        def hold(row: int) -> None:
            if row == job:
                reached.succeed()
            else:
                admit(row)

        self._root.admit = hold
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
            raise PolicyError(f"{name_of(self._policy)} left {len(left)} {what} waiting for ever, job {job} first")

    def record(self) -> Record:
        """What happened to the jobs that have come; those that have not ended are ``waiting`` or ``running``.

        Returns
        -------
        Record
            A copy, as long as the run may go on.
        """
        path = None
        if self.workload.tasks is not None:
            path = _critical_path(self.workload, self.platform, self._requests.rank, self.options, self._tick)
        schedulers = [cluster.scheduler for cluster in self.clusters]
        until = None if self._ended() else self.env.instant
        workload = self.workload if self._submissions is None else self._submissions.workload
        found = recorded(workload, self._requests, self.outcome, self.platform, schedulers, path, until)
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


def _why_closed(workload: Workload, platform: Platform, policy: Any, room: int) -> str:
    """Why no job can be submitted beside those of the workload; empty where some can."""
    if not room:
        return "there is no room, World(…, room=0)"
    if workload.tasks is not None:
        return "the workload has jobs of several tasks"
    if _on_nodes(workload, platform) and (workload.moldable is not None or capabilities_of(policy).sizes):
        return "sizes on machines of nodes and pools are those of jobs that are known from the beginning"
    if workload.reactions is not None:
        return "users react, and wait for jobs of the workload alone"
    if not capabilities_of(policy).takes_more:
        return f"{name_of(policy)} looks at all jobs before the first one comes"
    return ""


def _on_nodes(workload: Workload, platform: Platform) -> bool:
    """Whether jobs may ask for more than cores of one pool."""
    return workload.demands is not None or any(cluster.capacity is not None for cluster in platform.clusters())


def _names(workload: Workload, policy: Any) -> Mapping[str, tuple[str, ...]]:
    """Names of the labels: those of the workload, and behind them those of the policy's site."""
    site = policy.site if capabilities_of(policy).site else None
    if site is None:
        return workload.names
    found = dict(workload.names)
    for name in {"user", "account", "partition", "qos"} & set(found):
        found[name] = tuple(dict.fromkeys([*found[name], *site.names(name)]))
    return found


def _takes_sizes(workload: Workload, platform: Platform, policy: Any) -> bool:
    """Whether jobs of several sizes may be submitted."""
    return capabilities_of(policy).sizes and not _on_nodes(workload, platform)


def result_of(record: Record, platform: Platform, policy: Any, options: Run) -> Result:
    """A record with what it came from."""
    plugins = registry.plugins(policy, make_balancer(options.balancer))
    workload = record.workload_given
    ends = record.end_us[record.ran]
    notices = notices_of(policy, workload, NEVER if record.until_us is not None else int(ends.max(initial=0)))
    return Result(record, platform, name_of(policy), options.written(workload), plugins, notices=notices)


def notices_of(policy: Any, workload: Workload, end: int) -> tuple[Notice, ...]:
    """What the files of a policy's site say and a run of the workload does not follow, as far as it is known to.

    Parameters
    ----------
    end : int
        When the last job ends, whole microseconds. A job keeps clear of what begins up to its walltime later.
    """
    can = capabilities_of(policy)
    dated = with_clock(policy, workload)
    found = tuple(dated.notices) if can.site else ()
    if not can.site or not len(workload):
        return found
    return (*found, *dated.outside(int(workload.submit.min()), end, int(workload.estimate.max())))


def in_site_zone(workload: Workload, policies: Iterable[Any]) -> Workload:
    """The workload with its dates in the time zone of a policy's site, where the log has only Unix times."""
    clock = workload.provenance.get("clock", {})
    zones = [it.timezone for it in policies if capabilities_of(it).site and it.timezone is not None]
    if not zones or clock.get("zone") != "epoch":
        return workload
    return replace(workload, provenance={**workload.provenance, "clock": {**clock, "zone": zones[0]}})


def with_clock(policy: Any, workload: Workload) -> Any:
    """The policy on the clock of the workload: its ``epoch`` and ``timezone`` are set where they are None.

    Dates beside local times of an unknown zone are on the same clock, whatever zone the policy names.

    In a log of whole seconds, what happened in a second happened half a second after its beginning, on average: the
    passes of a scheduler's clock fall between its events, not on them.
    """
    epoch = workload.epoch
    can, zone = capabilities_of(policy), zone_name_of(workload.provenance)
    if epoch is None or not can.site:
        return policy
    dated = copy.copy(policy)
    local = workload.provenance.get("clock", {}).get("zone") == "local" and policy.epoch is None
    if can.site and (policy.timezone is None or local):
        dated.timezone = zone
    if policy.epoch is None:
        dated.epoch = epoch + 0.5 if of_whole_seconds(workload.submit) else epoch
    return dated


def _check_runnable(workload: Workload, platform: Platform, policy: Any, least: IntArray) -> None:
    """Raise `InputError` for the first task that no cluster can run.

    Rigid jobs that are too wide are rejected, as are jobs with a task that no nodes can hold.

    Parameters
    ----------
    least : (n,) int64
        Cores that a cluster must have for each task.
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
