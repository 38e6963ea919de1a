"""Guaranteed deadlines on machines of nodes; slow reference in which searches of the oracle place jobs on nodes.

A planned start is a number with its places (section 4.6: a plan is a set of holds). Prices, orders, slots, repairs and
the steps after admission are those of `gridsim.testing.admission_oracle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.record import Promises
from gridsim.testing import admission_oracle as oracle
from gridsim.testing.oracle import Job, Machine, jobs_of, play
from tests.oracles.machine.free_capacity import reason
from tests.oracles.machine.parts import Demand, Hold, Place
from tests.oracles.machine.parts import Machine as Parts
from tests.oracles.machine.placing import earliest
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.translated import jobs_of as demands_of
from tests.oracles.machine.translated import machine_of

__all__ = ["Admitted", "admitted"]


class _Start(int):
    """A planned start with its places."""

    places: Sequence[Place] = ()

    @classmethod
    def at(cls, start: int, places: Sequence[Place]) -> _Start:
        found = cls(start)
        found.places = places
        return found


@dataclass(frozen=True)
class _Site:
    """A machine of nodes, its placement rule, and the demand of each row."""

    parts: Parts
    rule: Rule
    demands: Sequence[Demand]

    def hold(self, job: Job, start: int, end: int) -> Hold:
        return Hold(self.demands[job.row], getattr(start, "places", ()), start, end)

    def earliest(self, job: Job, duration: int, holds: Sequence[Hold], now: int) -> _Start:
        return _Start.at(*earliest(self.parts, self.rule, self.demands[job.row], duration, holds, now))


@dataclass(frozen=True)
class _View(oracle.View):
    """State that an admission may read; *held* are holds."""

    held: Any
    site: _Site = field(kw_only=True)

    def earliest(self, job: Job, placed: oracle.Plan, *, for_good: bool = False) -> int:
        holds = [self.site.hold(other, start, start + other.estimate) for other, start in placed.items()]
        duration = oracle.FOR_GOOD if for_good else job.estimate
        return self.site.earliest(job, duration, [*self.held, *holds], self.now)


class _OnNodes(Machine):
    """A plan whose jobs hold places on nodes."""

    site: _Site

    def held(self) -> Any:
        return [self.site.hold(job, job.start, job.expected) for job in self.running]

    def reserved(self, jobs: Any) -> Any:
        return [self.site.hold(job, job.planned, job.planned + job.estimate) for job in jobs]

    def begin(self, job: Job, now: int) -> None:
        places = getattr(job.planned, "places", ())
        super().begin(job, now)
        job.start = _Start.at(now, places)

    def place(self, job: Job, now: int) -> int:
        others = self.reserved(other for other in self.waiting if other is not job)
        return self.site.earliest(job, job.estimate, [*self.held(), *others], now)

    def squeeze(self, now: int) -> None:
        """Compress the plan by planned start until no job moves; a job with an unchanged start keeps its place."""
        if self.compress == "arrival":
            self._squeezed(sorted(self.waiting, key=lambda job: job.row), now)
        while self.compress == "planned" and self._squeezed(self.by_plan(), now):
            pass

    def _squeezed(self, turns: Sequence[Job], now: int) -> bool:
        moved = False
        for job in turns:
            start = self.place(job, now)
            assert start <= job.planned, "compression delays no job"
            if start < job.planned:
                job.planned, moved = start, True
        return moved

    def replan(self, now: int) -> None:
        placed: list[Job] = []
        for job in self.by_plan():
            job.planned = self.site.earliest(job, job.estimate, [*self.held(), *self.reserved(placed)], now)
            placed.append(job)


class _Guarantor(oracle.Guarantor, _OnNodes):
    """A machine of nodes that guarantees deadlines."""

    def arrive(self, job: Job, now: int) -> None:
        if reason(self.site.parts, self.site.demands[job.row]) is None:
            super().arrive(job, now)

    def view(self, now: int, without: Job | None = None) -> _View:
        held = [self.site.hold(job, job.start, job.expected) for job in self.running if job is not without]
        plan = {job: job.planned for job in self.promised()}
        return _View(now, self.cores, held, plan, site=self.site)


@dataclass(frozen=True)
class Admitted:
    """Outcome of the jobs of a workload, in workload order.

    Attributes
    ----------
    start, end : list of int
        Whole microseconds; `NEVER` for jobs that did not run.
    nodes : list of dict of int to int
        Tasks on each node in the last run of each job.
    promises : Promises
        The guaranteed deadlines and the killed jobs.
    """

    start: list[int]
    end: list[int]
    nodes: list[dict[int, int]]
    promises: Promises


def admitted(
    workload: Workload,
    platform: Platform,
    algorithm: str,
    rule: Rule | None = None,
    *,
    compress: str = "planned",
    overrun: str = "kill",
    tick: float = 1.0,
    **parameters: Any,
) -> Admitted:
    """Return the schedule of a small workload under guaranteed deadlines on a machine of nodes.

    Parameters
    ----------
    algorithm, compress, overrun, tick, **parameters
        As in `gridsim.testing.admission_oracle.admitted`.
    rule : Rule, optional
        The placement rule; by default the node with the lowest number is first.

    Examples
    --------
    >>> from gridsim.model.capacity import NodeGroup
    >>> from gridsim.model.demand import Demands
    >>> from gridsim.model.demand import Demand as Asked
    >>> nodes = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 2})])
    >>> wide = Asked(tasks=1, each={"cores": 2})
    >>> jobs = Workload.from_columns(
    ...     submit=[0, 0, 1, 2], runtime=[9, 9, 9, 5], deadline=[9, 9, 30, 14], demands=Demands.of([wide] * 4)
    ... )
    >>> found = admitted(jobs, nodes, "qops")
    >>> [start // 10**6 for start in found.start], found.nodes
    ([0, 0, 9, 9], [{0: 1}, {1: 1}, {1: 1}, {0: 1}])
    """
    parts = machine_of(platform)
    demands = [job.demand.on(parts) for job in demands_of(workload)]
    jobs = jobs_of(workload)
    how: Any = {"compress": compress, "overrun": overrun, "tick": to_us(tick)}
    machine = _Guarantor(list(jobs), platform.cores, *oracle.terms_of(algorithm, parameters), **how)
    machine.site = _Site(parts, rule or Rule(), demands)
    play(machine, "batched", None)
    nodes = []
    for job in jobs:
        places = [node for node, _ in getattr(job.start, "places", ())] if job.start < NEVER else []
        nodes.append({node: places.count(node) for node in sorted(set(places))})
    return Admitted([int(job.start) for job in jobs], [job.end for job in jobs], nodes, machine.promises(jobs))
