"""Data available to policies: all requests as columns, and the queues of waiting and running requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.queue_order import in_order
from gridsim.model.demand import Demands
from gridsim.model.moldable import Moldable
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import ANY_KIND
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.usage import kept, weighted


def _writable(column: IntArray) -> IntArray:
    """Return the column as contiguous and writable, so that kernels are compiled for one type only."""
    return np.require(column, dtype=np.int64, requirements=["C", "W"])


def readable(column: IntArray) -> IntArray:
    """Return a read-only view of a column."""
    view = column.view()
    view.setflags(write=False)
    return view


class RunProgress(Protocol):
    """Progress of running requests with checkpoints; times in whole microseconds."""

    def lost(self, request: int, passed: int) -> int:
        """Return the time that a run would lose if it was stopped *passed* after its start."""

    def cost(self, request: int) -> int | None:
        """Return the duration of a checkpoint of a request; None for one without checkpoints."""


class Requests:
    """Every request of a run as columns, numbered by (job order, task index); true run times are not included.

    A request is a task; if jobs are single rigid tasks, a request is a job.

    Attributes
    ----------
    cores : (n,) int64
        Requested cores; for moldable jobs the size that the user requests.
    estimate, submit, deadline : (n,) int64
        Whole microseconds: walltime estimate on these cores, submit of the job, and deadline; `NEVER` for none.
    job, number : (n,) int64
        Row of the job, and its number in the source.
    ready : (n,) int64
        Instant from which the request may run, whole microseconds; `NEVER` until known.
    rank, critical_path : (n,) int64
        Upward rank of the task, itself included, and critical path of its job, whole microseconds (grid spec, section
        6); the estimate for single rigid tasks.
    labels : mapping of str to (n,) int64
        User, group, queue …, if the source has them.
    names : mapping of str to tuple of str
        Names for the numbers of a label.
    demands : Demands or None
        Demands for nodes and pools; None: plain cores.
    restartable : (n,) bool or None
        Requests that may be killed and restarted; None: all.
    minimum, maximum : (n,) int64
        Least and most cores; both are the requested cores for rigid jobs.
    needed : (n,) int64
        Cores that a cluster must have to run the request: those of its smallest size if the policy chooses sizes, else
        the requested cores.
    moldable : Moldable or None
        Ranges and relative run times.
    moves : bool
        Whether submit times depend on this run. If so, `submit`, `ready` and `deadline` are valid only for submitted
        requests (in rows reserved for later jobs, all columns), and job order is the order of submission.
    spare : int
        Number of rows at the end that are reserved for jobs submitted later.
    used : int
        Number of rows in use; the remaining ones are still free.
    stopped : set of int
        Requests whose run was stopped by a failure, until they are queued again.
    earlier : dict of int to (int, int)
        For requests with checkpoints and earlier runs, whole microseconds: restarts, kept work and checkpoints of these
        runs; and how much shorter the next run is than a run without earlier ones, if requests are adapted to this.
    ties : (2, n) int64
        Keys that order requests of equal rank before their row number (`gridsim.machine.queue_order`): the row of the
        job, or the same value for all if `moves`; and `ready`.
    """

    def __init__(
        self, workload: Workload, *, rank: IntArray | None = None, spare: int = 0, moves: bool = False
    ) -> None:
        tasks = workload.tasks
        rows: Any = slice(None) if tasks is None else tasks.job_rows()
        source = workload if tasks is None else tasks
        columns = _writable(source.cores), _writable(source.estimate)
        self._sizes = [columns]  # all copies of the columns, which `add` updates
        self.cores, self.estimate = readable(columns[0]), readable(columns[1])
        times = _writable(workload.submit[rows]), _writable(workload.deadline[rows])
        self.spare, self.used = spare, len(self.cores) - spare
        self.moves = spare > 0 or moves or workload.reactions is not None
        self.stopped: set[int] = set()
        self.earlier: dict[int, tuple[int, int]] = {}
        self.progress: RunProgress | None = None
        # The workload's columns must not change.
        self.submit, self.deadline = (time.copy() if self.moves else readable(time) for time in times)
        self.moldable = workload.moldable
        self.minimum, self.maximum = self.cores, self.cores
        if self.moldable is not None:
            self.minimum, self.maximum = readable(self.moldable.minimum), readable(self.moldable.maximum)
        self.needed = self.minimum if self.moldable is None else _writable(self.moldable.least)
        self.job: IntArray = np.arange(len(self.cores)) if tasks is None else rows
        self.number: IntArray = workload.job[rows]
        self.labels: Mapping[str, IntArray] = {name: column[rows] for name, column in workload.labels.items()}
        self.names = workload.names
        self.demands = workload.demands
        self._totals: dict[str, FloatArray] = {}
        self._added: dict[int, Demands] = {}
        self.restartable = None if workload.restartable is None else workload.restartable[rows]
        self.tasks = tasks
        self.ties: IntArray = np.zeros((2, len(self.cores)), dtype=np.int64)
        self.ties[0] = 0 if self.moves else self.job
        self.ties[1] = self.submit if tasks is None else NEVER
        self.rank = self.estimate if rank is None else rank
        self.critical_path: IntArray = self.rank
        if tasks is not None:
            self.critical_path = np.maximum.reduceat(self.rank, tasks.first[:-1])[rows]

    def __len__(self) -> int:
        return len(self.cores)

    @property
    def ready(self) -> IntArray:
        """Instants from which requests may run; a writable view."""
        found: IntArray = self.ties[1]
        return found

    @property
    def by_row(self) -> bool:
        """True if job order is row order."""
        return self.tasks is None and not self.moves

    @property
    def known(self) -> int:
        """Number of requests known from the beginning; they have the first rows."""
        return len(self) - self.spare

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return new copies of requested cores and estimates, which a scheduler that chooses sizes may overwrite."""
        self._sizes.append((self.cores.copy(), self.estimate.copy()))
        return self._sizes[-1]

    def arrive(self, request: int, now: int) -> None:
        """Submit a request at *now*; its deadline moves by the same time as its submission."""
        submit, ready, deadline = self._views
        later = now - submit[request]
        submit[request] = ready[request] = now
        if not later:
            return
        self.submit_seconds[request] = now / 1e6
        if deadline[request] < NEVER:
            deadline[request] += later
            self.deadline_seconds[request] = deadline[request] / 1e6

    def queue_again(self, request: int, now: int) -> None:
        """Queue a request as if it was submitted at *now*; its deadline stays."""
        self.submit[request] = self.ready[request] = now
        self.submit_seconds[request] = now / 1e6

    def ask(self, request: int, estimate: int) -> None:
        """Change the estimate of a request, whole microseconds."""
        for _, column in self._sizes:
            column[request] = estimate
        for name in ("estimate_seconds", "weight_seconds"):
            self.__dict__.pop(name, None)

    def add(self, request: int, job: Workload, demands: Demands) -> None:
        """Fill a reserved row with the only job of a workload, submitted now, with these *demands*."""
        for cores, estimate in self._sizes:
            cores[request], estimate[request] = job.cores[0], job.estimate[0]
        if self.moldable is not None:
            own = Moldable.rigid(job.cores) if job.moldable is None else job.moldable
            self.moldable = self.moldable.take(request, own)
            if self.needed is not self.cores:
                self.needed[request] = own.least[0]
        self._added[request], self.used = demands, request + 1
        self.submit[request] = self.ready[request] = job.submit[0]
        self.deadline[request] = job.deadline[0]
        for name in _MADE_OF_COLUMNS:
            self.__dict__.pop(name, None)
        for resource, totals in self._totals.items():
            totals[request] = demands.total(resource)[0]

    def demand(self, resource: str) -> FloatArray:
        """Return the total demand of each request for a resource, over its tasks and pools; ``gpu`` in thousandths."""
        if resource not in self._totals:
            if self.demands is None:
                asked = self.cores if resource == "cores" else np.zeros(len(self), dtype=np.int64)
            else:
                asked = self.demands.total(resource)
            self._totals[resource] = asked.astype(np.float64)
            for request, demands in self._added.items():
                self._totals[resource][request] = demands.total(resource)[0]
        return self._totals[resource]

    @cached_property
    def _views(self) -> tuple[Any, Any, Any]:
        """Columns that change at submission, as memoryviews: assigning plain numbers takes half the time of arrays."""
        return self.submit.data, self.ready.data, self.deadline.data

    def own(self, label: str, request: int, default: int) -> int:
        """Return the value of a request in a label, or a default for one without a value."""
        column = self.labels.get(label)
        return default if column is None or column[request] < 0 else int(column[request])

    def in_order(self, rows: IntArray, keys: IntArray | FloatArray | None = None) -> IntArray:
        """Return indices that sort requests by key, if any, then by job order."""
        return in_order(rows, None if self.by_row else self.ties, keys)

    def estimate_on(self, request: int, cores: int) -> int:
        """Return the estimate of a request on this number of cores, whole microseconds."""
        estimate, asked = int(self.estimate[request]), int(self.cores[request])
        return estimate if self.moldable is None else self.moldable.time_on(request, cores, estimate, asked)

    @cached_property
    def kinds_of(self) -> list[str]:
        """Architecture that each request needs."""
        if self.tasks is None:
            return [ANY_KIND] * len(self)
        return [self.tasks.kinds[kind] for kind in self.tasks.kind]

    @cached_property
    def cores_of(self) -> list[int]:
        """Requested cores, as plain numbers."""
        found: list[int] = self.cores.tolist()
        return found

    @cached_property
    def needed_of(self) -> list[int]:
        """Cores that a cluster must have, as plain numbers."""
        found: list[int] = self.needed.tolist()
        return found

    @cached_property
    def cores_float(self) -> FloatArray:
        """Cores as floats, for orderings."""
        return self.cores.astype(np.float64)

    @cached_property
    def estimate_seconds(self) -> FloatArray:
        """Estimates, s."""
        return self.estimate / 1e6

    @cached_property
    def weight_seconds(self) -> FloatArray:
        """Estimated effective sequential run times, s; cores times estimate for rigid jobs."""
        weight = self.cores_float if self.moldable is None else self.moldable.weight
        return self.estimate_seconds * weight

    @cached_property
    def submit_seconds(self) -> FloatArray:
        """Submit times, s."""
        return self.submit / 1e6

    @cached_property
    def deadline_seconds(self) -> FloatArray:
        """Deadlines, s; infinity for none."""
        return np.where(self.deadline >= NEVER, np.inf, self.deadline / 1e6)


_MADE_OF_COLUMNS = [name for name, made in vars(Requests).items() if isinstance(made, cached_property)]


@dataclass(slots=True)
class ClusterView:
    """A scheduler's view of its cluster, passed to `setup`: its size, all requests, and the tick (microseconds).

    ``runtime`` (whole microseconds by request) is set only for schedulers that declare to plan with true run times.
    *demands* has the demands for nodes and pools; None if the cluster is one pool of cores and requests are for cores
    only. *totals* is the total amount of each resource, GPUs in thousandths.
    """

    cores: int
    requests: Requests
    tick: int = 1_000_000
    index: int = 0
    ledger: Ledger | None = None
    shares: ShareTree | None = None
    runtime: IntArray | None = None
    demands: DemandClasses | None = None
    totals: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = {"cores": self.cores}
        if self.demands is not None:
            self.totals = {name: self.demands.capacity.total(name) for name in self.demands.capacity.resources}

    def queue(self, rows: IntArray, running: IntArray, held: int, predicted: IntArray | None = None) -> Queue:
        """Return requests as orderings see them, with the running ones, which hold so many cores."""
        state = {"free": self.cores - held, "total": self.cores, "totals": self.totals, "tick": self.tick / 1e6}
        return Queue(self.requests, rows, {**state, "running": Queue(self.requests, running)}, predicted)


class Ledger:
    """Cores in use by share, of one cluster or of all clusters that share a ledger.

    Attributes
    ----------
    running : (k,) int64
        Cores in use now, by leaf of the share tree.
    used : (k,) float64
        Core-seconds whose weight halves every `half_life` seconds.
    cores : int
        Cores of the scope.
    """

    def __init__(self, cores: int, half_life: float | None = None) -> None:
        self.running: IntArray = np.zeros(0, dtype=np.int64)
        self.used: FloatArray = np.zeros(0)
        self.cores, self.half_life = cores, half_life
        self.since = 0

    def open(self, leaves: int) -> None:
        """Allocate columns for *leaves* leaves, unless another cluster that shares the ledger has done so."""
        if len(self.running) != leaves:
            self.running, self.used = np.zeros(leaves, dtype=np.int64), np.zeros(leaves)

    def change(self, leaf: int, cores: int, now: int) -> None:
        """Add *cores* (negative: subtract) to the cores in use by *leaf* at *now*."""
        if self.half_life is not None:
            self.decay(now)
        self.running[leaf] += cores

    def decay(self, now: int) -> None:
        """Advance decayed usage to *now*: halved every half-life, plus usage since the last update (section 10)."""
        elapsed = (now - self.since) / 1e6
        if elapsed > 0 and self.half_life is not None:
            gained = self.running * weighted(-elapsed, 0.0, self.half_life)
            self.used = self.used * kept(elapsed, self.half_life) + gained
            self.since = now


@dataclass(slots=True)
class Queue:
    """Waiting requests as columns in job order, for orderings and rules; seconds and cores are floats.

    Attributes
    ----------
    rows : (n,) int64
        Numbers of the requests.
    state : mapping
        ``free`` and ``total`` cores of the cluster; ``totals`` by resource; ``running``, a queue of the running
        requests; ``tick``, s.
    predicted : (m,) int64, optional
        Predicted run time of each request, whole microseconds; the estimate without predictor.
    """

    requests: Requests
    rows: IntArray
    state: Mapping[str, Any] = field(default_factory=dict)
    predicted: IntArray | None = None

    def __post_init__(self) -> None:
        self.rows = readable(self.rows)  # compiled loops use the scheduler's array as an index

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def cores(self) -> FloatArray:
        """Requested cores."""
        return self.requests.cores_float[self.rows]

    @property
    def estimate(self) -> FloatArray:
        """Walltime estimates on the requested cores, s."""
        return self.requests.estimate_seconds[self.rows]

    @property
    def prediction(self) -> FloatArray:
        """Predicted run times, s; the estimates without predictor."""
        return self.estimate if self.predicted is None else self.predicted[self.rows] / 1e6

    @property
    def weight(self) -> FloatArray:
        """Effective sequential run times, s; cores times estimate for rigid jobs."""
        return self.requests.weight_seconds[self.rows]

    @property
    def area(self) -> FloatArray:
        """Cores times estimate, core-seconds."""
        return self.cores * self.estimate

    @property
    def submit(self) -> FloatArray:
        """Submit times, s."""
        return self.requests.submit_seconds[self.rows]

    @property
    def deadline(self) -> FloatArray:
        """Deadlines, s; infinity for none."""
        return self.requests.deadline_seconds[self.rows]

    @property
    def ready(self) -> FloatArray:
        """Instants from which the requests may run, s."""
        return self.requests.ready[self.rows] / 1e6

    @property
    def rank(self) -> FloatArray:
        """Upward ranks, the tasks themselves included, s."""
        return self.requests.rank[self.rows] / 1e6

    @property
    def critical_path(self) -> FloatArray:
        """Critical paths of their jobs, s."""
        return self.requests.critical_path[self.rows] / 1e6

    def demand(self, resource: str) -> FloatArray:
        """Return the total demand over all tasks for ``cores``, ``memory`` (MiB), ``gpu`` (thousandths), a pool …"""
        return self.requests.demand(resource)[self.rows]

    @property
    def totals(self) -> Mapping[str, int]:
        """Total amount of each resource of the cluster, in the units of `demand`."""
        found: Mapping[str, int] = self.state["totals"]
        return found

    @property
    def running(self) -> Queue:
        """Running requests."""
        found: Queue = self.state["running"]
        return found

    def label(self, name: str) -> IntArray:
        """Return a label column, such as ``user``; -1 if unknown."""
        column = self.requests.labels.get(name)
        return np.full(len(self.rows), -1) if column is None else column[self.rows]


@dataclass(slots=True)
class Promised(Queue):
    """Requests with the deadlines that the system has guaranteed, or is requested to guarantee.

    Attributes
    ----------
    granted, starts : (n,) int64
        Guaranteed deadlines and planned starts, whole microseconds; `NEVER` for none.
    """

    granted: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    starts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def deadline(self) -> FloatArray:
        """Guaranteed deadlines, s; infinity for none."""
        return np.where(self.granted >= NEVER, np.inf, self.granted / 1e6)

    @property
    def planned(self) -> FloatArray:
        """Planned starts, s; infinity for none."""
        return np.where(self.starts >= NEVER, np.inf, self.starts / 1e6)
