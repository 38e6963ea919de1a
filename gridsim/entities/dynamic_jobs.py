"""Jobs of user processes during a run: free rows for them, and events for their start and end; held resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from simpy import Environment, Event

from gridsim import registry
from gridsim.entities.clock import Instant, PriorityEvent, Wakeup
from gridsim.entities.cluster import Cluster
from gridsim.entities.outcome import Outcome
from gridsim.entities.resource import Release, Request
from gridsim.entities.router import Root
from gridsim.errors import InputError, PolicyError
from gridsim.model.applicable_demands import with_applicable_demands
from gridsim.model.demand import Demand, Demands
from gridsim.model.moldable import Moldable
from gridsim.model.partitions import job_clusters
from gridsim.model.platform import Platform
from gridsim.model.speedup import fitted
from gridsim.model.tasks import Job, Task
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import UNKNOWN, USUAL, Workload
from gridsim.policy.queue import Requests
from gridsim.record import Status


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that was submitted during a run.

    Attributes
    ----------
    job : int
        Number of the job in the record.
    started : Wakeup
        Event of the first start; its value is the start time, s. It does not occur if the job is rejected.
    ended : Wakeup
        Event of the end, whatever the outcome; its value is the `gridsim.record.Status` of the job.
    """

    job: int
    started: Wakeup
    ended: Wakeup


def with_spare_rows(workload: Workload, spare: int, *, sizes: bool = False) -> Workload:
    """Return the workload with *spare* free rows behind its jobs, for later submissions (of several *sizes* if set)."""
    # A group that no job belongs to would be rejected as soon as the run begins.
    labels = {name: 0 if name in workload.names else USUAL.get(name, UNKNOWN) for name in workload.labels}
    demands, moldable = workload.demands, workload.moldable
    if demands is not None:
        demands = demands.joined(Demands.plain_cores(np.ones(spare, dtype=np.int64)))
    if moldable is None and sizes:
        moldable = Moldable.rigid(workload.cores)
    moldable = None if moldable is None else moldable.with_spare_rows(spare)
    found = workload.with_more(labels, submit=[0] * spare, runtime=MICROSECOND, estimate=MICROSECOND, cores=1)
    return replace(found, demands=demands, moldable=moldable)


class Submissions:
    """Accept jobs from user processes, and notify these when each job has started and ended.

    Parameters
    ----------
    platform : Platform
        The machine.
    clusters : sequence of Cluster
        Clusters that receive the requested resources of each new job.
    pinned : list of tuple of int or None
        Allowed clusters of each job as positions in tree order, if jobs are restricted; extended for each new job.
    first : int
        First free row.
    workload : Workload
        Workload with the free rows, which are filled in as jobs are submitted.
    sizes : bool
        Whether jobs may have several core counts.
    sited : bool
        Whether a policy with its own nodes decides, which reads the labels of the jobs.
    """

    def __init__(
        self,
        env: Environment,
        instant: Instant,
        root: Root,
        platform: Platform,
        clusters: Sequence[Cluster],
        pinned: list[tuple[int, ...]] | None,
        first: int,
        workload: Workload,
        requests: Requests,
        outcome: Outcome,
        *,
        sizes: bool,
        sited: bool,
    ) -> None:
        self._env, self._instant, self._root = env, instant, root
        self._platform, self._clusters, self._pinned = platform, clusters, pinned
        self._workload, self._requests, self._outcome = workload, requests, outcome
        self._first, self.next = first, first
        self._requested: list[Demand] = []  # requested resources of each row in use
        self._demands = False  # a job requests more than cores
        self._sizes, self._sited = sizes, sited  # jobs may have several core counts
        self._made: dict[int, Submission] = {}
        self._inbox: list[int] = []
        self.held: list[int] = []
        self._arrival = self._wakeup()

    def hold(self, demand: Demand, cores: int, now: int, duration: int) -> int:
        """Fill in a row for resources that a user process holds from now on, for *duration* whole microseconds."""
        one = {"cores": cores, "runtime": duration / MICROSECOND}
        row = self._row(_of_one(one, now / MICROSECOND, self._workload, cores), Demands.of([demand]))
        self.held.append(row)
        self._requested.append(Demand(cores=cores))
        return row

    @property
    def workload(self) -> Workload:
        """Return the jobs and free rows, with the resources and core counts that the submitted jobs requested."""
        moldable = self._requests.moldable if self._sizes else None
        workload = replace(self._workload, moldable=None if moldable is None else moldable.trimmed)
        known = workload.demands
        if known is None and not self._demands:
            return workload
        known = Demands.plain_cores(self._workload.cores) if known is None else known
        before, behind = known.select(slice(self._first)), known.select(slice(self.next, None))
        return replace(workload, demands=before.joined(Demands.of(self._requested)).joined(behind))

    @property
    def any(self) -> bool:
        """Return whether a job has been submitted."""
        return self.next > self._first

    def _wakeup(self) -> Wakeup:
        bell = Wakeup(self._env, self._instant.arrival)
        assert bell.callbacks is not None
        bell.callbacks.append(self._route)
        return bell

    def submit(self, job: Task | Job | Mapping[str, Any], now: float) -> Submission:
        """Submit a job at the time *now*, s.

        Raises
        ------
        InputError
            If the job has several tasks, or several core counts that no scheduler chooses from.
        PolicyError
            If there is no free row left.
        """
        one = _of_one(job, now, self._workload, max(cluster.cores for cluster in self._clusters))
        if "share" in self._workload.labels and "share" not in one.labels:
            raise InputError("has no share, but the jobs of the workload have one", field="job")
        if self._sited and one.demands is not None:
            what = "the policy's site defines the nodes; expected labels such as memory_mb, nodes or gpus"
            raise InputError(f"has a demand, and {what}", field="job")
        one = with_applicable_demands(one, self._platform, sited=self._sited)
        demands = Demands.plain_cores(one.cores) if one.demands is None else one.demands
        if demands.plain[0] != one.cores[0] and any(cluster.demands is None for cluster in self._clusters):
            raise InputError("requests more than cores, but the machine is one pool of cores", field="job")
        if one.moldable is not None and self._requests.moldable is None:
            what = "the policy does not choose sizes on this machine"
            raise InputError(f"has several sizes, and {what}; leave out speedup", field="job")
        way = job_clusters(one, self._platform)
        row = self._row(one, demands, (0,) if way is None else way.clusters[0])
        self._requested.append(demands[0])
        self._demands = self._demands or one.demands is not None
        self._sizes = self._sizes or one.moldable is not None
        priority = self._instant.users + 1
        made = Submission(int(self._workload.job[row]), Wakeup(self._env, priority), Wakeup(self._env, priority))
        self._made[row] = made
        self._inbox.append(row)
        self._arrival.ring()
        return made

    def _row(self, one: Workload, demands: Demands, way: tuple[int, ...] = (0,)) -> int:
        """Fill in a row from a workload with one job that requests *demands*."""
        row = self.next
        if row == len(self._workload):
            raise PolicyError(f"{row - self._first} jobs have been submitted; World(…, max_jobs=…) sets the maximum")
        self.next += 1
        for name in ("runtime", "tolerance", "restartable"):
            column, value = getattr(self._workload, name), getattr(one, name)
            if column is not None and value is not None:
                column[row] = value[0]
        for name, column in self._workload.labels.items():
            column[row] = one.labels[name][0] if name in one.labels else USUAL.get(name, UNKNOWN)
        if self._pinned is not None:
            self._pinned.append(way)
        self._requests.add(row, one, demands)
        self._outcome.learn(row)
        for cluster in self._clusters:
            cluster.learn(row, demands)
        return row

    def _route(self, event: Event) -> None:
        rows, self._inbox, self._arrival = self._inbox, [], self._wakeup()
        self._root.take(rows)

    def began(self, request: int) -> None:
        """Trigger the start event of a request."""
        made = self._made.get(request)
        if made is not None:
            made.started.ring(int(self._env.now) / MICROSECOND)

    def over(self, request: int) -> None:
        """Trigger the end event of a request that has ended or was rejected."""
        made = self._made.get(request)
        if made is not None:
            made.ended.ring(Status(int(self._outcome.status[request])))


class HeldResources:
    """Report to the scheduler what user processes hold, and release it when its time is over.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose scheduler accepts external holds.
    instant : Instant
        Order within one instant.
    submissions : Submissions
        Free rows for the holds; each hold uses a row that is not a job.
    """

    def __init__(self, cluster: Cluster, instant: Instant, submissions: Submissions) -> None:
        self._cluster, self._instant, self._submissions = cluster, instant, submissions

    def row(self, request: Request, now: int) -> int:
        """Return a row for idle resources that a user process holds from now on (whole microseconds)."""
        demand = Demand(cores=request.cores)
        if request.nodes is not None:
            count = request.nodes if isinstance(request.nodes, int) else len(request.nodes)
            demand = Demand(tasks=count, each={"cores": 1}, min_nodes=count, tasks_per_node=1, exclusive=True)
        return self._submissions.hold(demand, request.cores, now, request.until - now)

    def began(self, request: Request, now: int) -> None:
        """Report the start of a hold."""
        assert request.row is not None
        self._cluster.hold(request.row, request.until, request.placement)
        PriorityEvent(request.env, request.until - now, self._instant.end, self._over, request)

    def ended(self, request: Request) -> None:
        """Report the end of a hold."""
        assert request.row is not None
        self._cluster.let_hold_go(request.row)

    def _over(self, event: Event) -> None:
        request: Request = event._value
        if request.holds:
            Release(self._cluster.machine, request)


def _of_one(job: Task | Job | Mapping[str, Any], now: float, among: Workload, widest: int) -> Workload:
    """Return a job as a workload with one row, with the labels of *among*, on at most *widest* cores."""
    if isinstance(job, Job) and len(job.tasks) != 1:
        raise InputError(f"has {len(job.tasks)} tasks; expected a job of one task", field="job")
    task = job.tasks[0] if isinstance(job, Job) else job
    given = dict(task) if isinstance(task, Mapping) else {name: getattr(task, name) for name in _OF_TASK}
    if isinstance(job, Job):
        given |= {"deadline": job.deadline} if job.user is None else {"deadline": job.deadline, "user": job.user}
    columns = {name: given.pop(name, None) for name in ("cores", "runtime", "estimate", "deadline")}
    ranges = {name: given.pop(name, None) for name in _RANGE}
    demand: Demand | None = given.pop("demand", None)
    if demand is not None and columns["cores"] is None:
        columns["cores"] = demand.total("cores")
    missing = [name for name in ("cores", "runtime") if columns[name] is None]
    if missing or (strange := sorted(set(given) - set(among.labels))):
        what = f"has no {missing[0]}" if missing else f"has '{strange[0]}', which no job of the workload has"
        raise InputError(f"{what}; expected {_EXPECTED}", field="job")
    one: dict[str, Any] = {name: None if value is None else [value] for name, value in columns.items()}
    labels = {name: [_number(name, value, among)] for name, value in given.items()}
    demands = None if demand is None else Demands.of([demand])
    moldable = _range_of(int(columns["cores"]), widest, **ranges)
    made = Workload.from_columns(submit=[now], labels=labels, demands=demands, moldable=moldable, **one)
    return replace(made, names=among.names)


_EXPECTED = "cores or demand, runtime, estimate, deadline, speedup with its range, and labels of the workload"
_OF_TASK = ("cores", "runtime", "estimate")
_RANGE = ("speedup", "minimum", "maximum", "sizes")


def _range_of(cores: int, widest: int, speedup: Any, minimum: Any, maximum: Any, sizes: Any) -> Moldable | None:
    """Return the range of core counts of a job; None if it has only the requested number."""
    given = [name for name, value in zip(_RANGE[1:], (minimum, maximum, sizes), strict=True) if value is not None]
    if speedup is None:
        if given:
            raise InputError(f"has {given[0]} and no speedup; expected a law, such as downey(sigma=1)", field="job")
        return None
    law = registry.make("speedup", registry.parse(speedup)) if isinstance(speedup, str) else speedup
    most = widest if maximum is None else int(maximum)
    least, named = 1 if minimum is None else int(minimum), None if sizes is None else [sizes]
    return Moldable.of([cores], [least], [most], [fitted(law, most)], sizes=named)


def _number(name: str, value: Any, among: Workload) -> int:
    """Return the number of a label, which may be given by its name."""
    if not isinstance(value, str):
        return int(value)
    known = among.names.get(name, ())
    if value not in known:
        raise InputError(f"has {name} '{value}', which no job of the workload has", field="job")
    return known.index(value)
