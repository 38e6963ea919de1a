"""FCFS, first-fit, EASY, depth-k and conservative backfilling on machines of nodes (section 4).

This folder is a second implementation of machines of nodes. It is slow and follows the wording of the rules. Jobs are
objects, amounts are integers, scores are fractions, and reservations are a list. Each query adds up free capacity
from that list. It imports neither `gridsim.machine` nor `gridsim.policy`, and is meant for tens of jobs and nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gridsim.model.time import NEVER
from gridsim.testing.oracle import ORDERS
from tests.oracles.machine.free_capacity import reason
from tests.oracles.machine.parts import Demand, Hold, Machine, Place
from tests.oracles.machine.placing import earliest
from tests.oracles.machine.rules import Rule

__all__ = ["Job", "Watcher", "schedule"]

Watcher = Callable[[int, Sequence["Job"], Sequence[Hold]], None]
"""Callback that receives an instant, the jobs that wait after it, and the allocations of running jobs."""


@dataclass(eq=False)
class Job:
    """One job, its demand on the machine, and its outcome.

    Attributes
    ----------
    number : int
        Jobs with equal submit times are ordered by number.
    submit, estimate, runtime, deadline : int
        Whole units of time; lengths are at least 1.
    demand : Demand
        The requested resources.
    status : str
        ``completed``, ``killed_walltime``, ``rejected``; empty until the job ends.
    reason : str, optional
        The reason of the rejection.
    start, end, expected : int
        Start, end and currently expected end; `NEVER` until known.
    places : list
        Node and GPUs of each task.
    planned : int
        Start of the reservation under ``conservative``; its places are `places`.
    first_planned : int
        Planned start on arrival.
    """

    number: int
    submit: int
    estimate: int
    runtime: int
    demand: Demand
    deadline: int = NEVER
    status: str = ""
    reason: str | None = None
    start: int = NEVER
    end: int = NEVER
    expected: int = NEVER
    places: list[Place] = field(default_factory=list)
    planned: int = NEVER
    first_planned: int = NEVER

    @property
    def cores(self) -> int:
        """Cores of all tasks and of the pool."""
        return self.demand.total_cores

    def nodes(self) -> dict[int, int]:
        """Return the number of tasks on each node."""
        nodes = [node for node, _ in self.places]
        return {node: nodes.count(node) for node in sorted(set(nodes))}

    def gpus(self) -> dict[int, dict[int, int]]:
        """Return the thousandths of each GPU on each node."""
        held: dict[int, dict[int, int]] = {}
        for node, gpus in sorted(self.places):
            for gpu in gpus:
                of_node = held.setdefault(node, {})
                of_node[gpu] = of_node.get(gpu, 0) + min(self.demand.gpu, 1000)
        return held


class _Run:
    """State of a run: waiting jobs and running jobs."""

    def __init__(self, machine: Machine, policy: str, rule: Rule, *, k: int, compress: str, extend: bool) -> None:
        self.machine, self.policy, self.rule = machine, policy, rule
        self.k = {"first-fit": 0, "easy": 1}.get(policy, k)
        self.compress, self.extend = compress, extend
        self.tick, self.order = 1, ORDERS["fifo"]
        self.waiting: list[Job] = []
        self.running: list[Job] = []

    @property
    def planned(self) -> bool:
        return self.policy == "conservative"

    def next_instant(self, coming: Sequence[Job]) -> int:
        instants = [job.submit for job in coming[:1]]
        instants += [job.end for job in self.running]
        instants += [job.expected for job in self.running if self.extend]
        instants += [job.planned for job in self.waiting if self.planned]
        return min(instants, default=NEVER)

    def step(self, now: int, arrivals: Sequence[Job]) -> None:
        """Process one instant in the order of section 4.1."""
        early = [self.leave(job) < job.expected for job in list(self.running) if job.end == now]
        self.overruns(now)
        if any(early) and self.planned:
            self.squeeze(now)
        for job in arrivals:
            self.arrive(job, now)
        if self.planned:
            for job in [job for job in self.waiting if job.planned == now]:
                self.begin(job, now, job.places)
        else:
            self.one_pass(now)

    # -- events ------------------------------------------------------------------------------------------------------

    def leave(self, job: Job) -> int:
        self.running.remove(job)
        killed = job.runtime > job.estimate and not self.extend
        job.status = "killed_walltime" if killed else "completed"
        return job.end

    def overruns(self, now: int) -> None:
        """Extend the holds of jobs that exceed their expected ends by one tick, then by two, four, …"""
        late = [job for job in self.running if job.expected == now]
        for job in late:
            beyond = now - job.start - job.estimate
            job.expected = job.start + job.estimate + max(2 * beyond, self.tick)
        if late and self.planned:
            self.replan(now)

    def arrive(self, job: Job, now: int) -> None:
        job.demand = job.demand.on(self.machine)
        job.reason = reason(self.machine, job.demand)
        if job.reason is not None:
            job.status = "rejected"
            return
        if self.planned:
            job.planned, job.places = self.find(job, [*self.held(), *self.reserved(self.waiting)], now)
            job.first_planned = job.planned
        self.waiting.append(job)

    def begin(self, job: Job, now: int, places: list[Place]) -> None:
        self.waiting.remove(job)
        self.running.append(job)
        job.start, job.places, job.expected = now, places, now + job.estimate
        job.end = now + (job.runtime if self.extend else min(job.runtime, job.estimate))

    # -- holds -------------------------------------------------------------------------------------------------------

    def held(self) -> list[Hold]:
        return [Hold(job.demand, job.places, job.start, job.expected) for job in self.running]

    def reserved(self, jobs: Sequence[Job]) -> list[Hold]:
        return [Hold(job.demand, job.places, job.planned, job.planned + job.estimate) for job in jobs]

    def find(self, job: Job, holds: Sequence[Hold], begin: int) -> tuple[int, list[Place]]:
        return earliest(self.machine, self.rule, job.demand, job.estimate, holds, begin)

    # -- plans (section 4.4) -----------------------------------------------------------------------------------------

    def by_plan(self) -> list[Job]:
        return sorted(self.waiting, key=lambda job: (job.planned, job.submit, job.number))

    def squeeze(self, now: int) -> None:
        """Compress the plan; repeat until no job moves if the order is planned start [R17]."""
        if self.compress == "planned":
            while self.squeezed(self.by_plan(), now):
                pass
        elif self.compress == "arrival":
            self.squeezed(sorted(self.waiting, key=lambda job: (job.submit, job.number)), now)

    def squeezed(self, jobs: Sequence[Job], now: int) -> bool:
        """Compress once and return whether a job moved. A job with an unchanged start keeps its place [R16]."""
        moved = False
        for job in jobs:
            others = [other for other in self.waiting if other is not job]
            start, places = self.find(job, [*self.held(), *self.reserved(others)], now)
            if start < job.planned:
                job.planned, job.places, moved = start, places, True
        return moved

    def replan(self, now: int) -> None:
        """Place all waiting jobs again in order of planned starts, after a job exceeded its estimate."""
        placed: list[Job] = []
        for job in self.by_plan():
            job.planned, job.places = self.find(job, [*self.held(), *self.reserved(placed)], now)
            placed.append(job)

    # -- scheduling cycle (section 4.3) --------------------------------------------------------------------------------

    def queue(self, now: int) -> list[Job]:
        def key(job: Job) -> tuple[Fraction | float | int, int, int]:
            return (self.order(job, now), job.submit, job.number)  # type: ignore[arg-type]

        return sorted(self.waiting, key=key)

    def one_pass(self, now: int) -> None:
        reservations: list[Hold] = []
        for job in self.queue(now):
            start, places = self.find(job, [*self.held(), *reservations], now)
            if start == now:
                self.begin(job, now, places)
            elif self.policy == "fcfs":
                return
            elif len(reservations) < self.k:
                reservations.append(Hold(job.demand, places, start, start + job.estimate))


def schedule(
    machine: Machine,
    jobs: Sequence[Job],
    policy: str = "easy",
    rule: Rule | None = None,
    *,
    k: int = 1,
    compress: str = "planned",
    overrun: str = "kill",
    tick: int = 1,
    order: str = "fifo",
    watch: Watcher | None = None,
) -> list[Job]:
    """Return the outcome of jobs on a machine.

    Parameters
    ----------
    policy : {"fcfs", "first-fit", "easy", "depth", "conservative"}
        The scheduling policy.
    rule : Rule, optional
        The placement rule; by default the node with the lowest number is first.
    k : int
        Number of jobs with reservations under ``depth``.
    compress : {"planned", "arrival", "none"}
        Order of compression of ``conservative``.
    overrun : {"kill", "extend"}
        Action at the end of an estimate.
    tick : int
        First assumed overrun, in the jobs' units of time.
    order : str
        Order of the queue, a name of `gridsim.testing.oracle.ORDERS`.
    watch : callable, optional
        Callback that receives the state after each instant.

    Returns
    -------
    list of Job
        Copies of the jobs with their outcomes, sorted by submit time and number.

    Examples
    --------
    >>> from tests.oracles.machine.parts import Node
    >>> two = Machine([Node({"cores": 4}), Node({"cores": 4})])
    >>> wide, long = Demand(tasks=1, each={"cores": 4}), Demand(tasks=1, each={"cores": 1})
    >>> jobs = [Job(1, 0, 9, 9, wide), Job(2, 0, 5, 5, wide), Job(3, 1, 5, 5, wide), Job(4, 2, 9, 9, long)]
    >>> [(job.start, job.nodes()) for job in schedule(two, jobs, "easy")]
    [(0, {0: 1}), (0, {1: 1}), (5, {1: 1}), (9, {0: 1})]
    """
    run = _Run(machine, policy, rule or Rule(), k=k, compress=compress, extend=overrun == "extend")
    run.tick, run.order = tick, ORDERS[order]
    ordered = [replace(job) for job in sorted(jobs, key=lambda job: (job.submit, job.number))]
    coming = list(ordered)
    while (now := run.next_instant(coming)) < NEVER:
        arrivals = [job for job in coming if job.submit == now]
        del coming[: len(arrivals)]
        run.step(now, arrivals)
        if watch is not None:
            watch(now, run.queue(now), run.held())
    assert not run.waiting, "every job starts"
    return ordered
