"""Reference implementation of the strategies for moldable jobs: simple and slow.

It follows the specification of moldable jobs; comments refer to its sections. The machine and its event loop are those
of `gridsim.testing.oracle`. Times are whole microseconds, shares are fractions, and every size is tried. No code is
shared with `gridsim.policy`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan: A Robust Scheduling Strategy for Moldable Scheduling of Parallel Jobs, CLUSTER
2003; Srinivasan, Subramani, Kettimuthu, Holenarsipur, Sadayappan: Effective Selection of Partition Sizes for Moldable
Scheduling of Parallel Jobs, HiPC 2002.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.oracle import Interval, Job, Machine, Watcher, decimal, earliest, jobs_of, play, record_of

Algorithm = Literal["conservative", "submit-greedy", "submit-fair-share", "aggressive-fair-share"]

EQUAL = 1
"""Tolerance for equal ends, microseconds (section 1)."""

GUARD = Fraction(1, 10**9)
"""Added before a limit is rounded down (section 4.1)."""

NOISE = Fraction(1, 1000)
"""Tolerance of a product of floats above an instant or a bound, microseconds."""

Lane = tuple[str, int]
"""Lane of promises: its kind, and its index of that kind."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Parameters of the strategies, with the names of the specified cases.

    Attributes
    ----------
    wf, gap : float
        Weight factor and gap factor (4.1).
    weight : {"linear", "sqrt", "sqrt-parallel", "equal"}
        Weight to which a job's share is proportional (4.2).
    scope : {"system", "remaining", "queued"}
        Jobs that share the machine (4.1).
    choices : int or "all"
        Number of tried sizes, two or more (4.3).
    grid : {"geometric", "linear"}
        Spacing of the sizes.
    head : bool
        Whether the oldest job that cannot start holds a promise, if there are no lanes by category (3.4).
    category : mapping or None
        ``count``, ``first`` (s) and ``ratio`` of lanes by weight (5.2).
    xfactor : float or None
        Expansion factor above which a job has a separate lane (5.3).
    backfill : {"best", "now"}
        Whether a job without a promise starts only on its best size, or on the best size that fits now (3.4).
    promise_order : {"acquired", "queue"}
        Order in which promises are placed (5.1).
    """

    wf: float = 2
    gap: float = 0.9
    weight: Literal["linear", "sqrt", "sqrt-parallel", "equal"] = "linear"
    scope: Literal["system", "remaining", "queued"] = "system"
    choices: int | Literal["all"] = 12
    grid: Literal["geometric", "linear"] = "geometric"
    head: bool = True
    category: Mapping[str, float] | None = None
    xfactor: float | None = None
    backfill: Literal["best", "now"] = "best"
    promise_order: Literal["acquired", "queue"] = "acquired"


SIZES = frozenset({"choices", "grid"})
SHARES = SIZES | {"wf", "gap", "weight", "scope"}

ALGORITHMS: Mapping[str, frozenset[str]] = {
    "conservative": frozenset(),
    "submit-greedy": SIZES,
    "submit-fair-share": SHARES,
    "aggressive-fair-share": frozenset(field.name for field in fields(Rules)),
}
"""Names of the parameters of each algorithm."""


# -- possible sizes, section 2 ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """Properties of a job in addition to its line in the log.

    Attributes
    ----------
    least, most : int
        The range, the useful maximum applied.
    weight : Fraction
        Effective sequential runtime, as estimated, microseconds.
    cores, runtime, estimate : int
        Requested cores, and the times for these, microseconds.
    relative : sequence of float
        Relative runtime on 1, 2, 3, … cores; None for a job that runs as requested.
    named : tuple of int
        The allowed sizes, ascending, if they are not a range (section 11).
    """

    least: int
    most: int
    weight: Fraction
    cores: int
    runtime: int
    estimate: int
    relative: list[float] | None = None
    named: tuple[int, ...] = ()

    def lasting(self, time: int, cores: int) -> int:
        """Return the duration on *cores* cores of work that takes *time* as requested, whole microseconds."""
        if cores == self.cores or self.relative is None:
            return time
        return max(1, round(time * self.relative[cores - 1] / self.relative[self.cores - 1]))


def shapes_of(workload: Workload, cores: int) -> Iterator[Shape]:
    asked = zip(*(column.tolist() for column in (workload.cores, workload.runtime, workload.estimate)), strict=True)
    moldable = workload.moldable
    for row, (wanted, runtime, estimate) in enumerate(asked):
        if moldable is None:
            yield Shape(wanted, wanted, Fraction(wanted * estimate), wanted, runtime, estimate)
            continue
        begin, end = moldable.first[moldable.curve[row] :][:2]
        named: list[int] = []
        if moldable.size_first is not None and moldable.sizes is not None:
            named = moldable.sizes[slice(*moldable.size_first[row:][:2])].tolist()
        yield Shape(
            least=int(moldable.minimum[row]),
            most=min(int(moldable.maximum[row]), cores),
            weight=Fraction(float(moldable.weight[row])) * estimate,
            cores=wanted,
            runtime=runtime,
            estimate=estimate,
            relative=moldable.relative[begin:end].tolist(),
            named=tuple(named),
        )


# -- how many cores, section 4 ---------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """Request of a job for a share of cores: weight, counted part of it, and range."""

    weight: Fraction
    least: int
    most: int


def _claimed(claim: Claim, weight: str) -> Fraction:
    """Return the contribution of a job to the sum (section 4.2)."""
    if weight == "linear":
        return claim.weight
    if weight == "sqrt-parallel" and claim.most == 1:
        return Fraction(0)
    return Fraction(1) if weight == "equal" else Fraction(math.sqrt(claim.weight))


def limit(claim: Claim, claims: Iterable[Claim], cores: int, rules: Rules) -> int:
    """Return the fair share of a job of *cores* cores; the job is one of the *claims* (section 4.1).

    Examples
    --------
    >>> alone = Claim(Fraction(5000), 1, 64)
    >>> limit(alone, [alone], 64, Rules())
    57
    """
    if claim.least == claim.most:
        return claim.most
    total = sum(_claimed(other, rules.weight) for other in claims)
    if not total:
        return 1
    share = min(decimal(rules.wf) * _claimed(claim, rules.weight) / total, decimal(rules.gap))
    return max(1, math.floor(share * cores + GUARD))


def largest(claim: Claim, share: int) -> int:
    """Return the largest size within a limit, at least a job's minimum."""
    return min(claim.most, max(share, claim.least))


def sizes(low: int, high: int, choices: int | Literal["all"], grid: str) -> list[int]:
    """Return the tried sizes of a range, lowest first (section 4.3).

    Examples
    --------
    >>> sizes(1, 128, 5, "geometric"), sizes(1, 128, 5, "linear")
    ([1, 3, 11, 38, 128], [1, 33, 65, 96, 128])
    """
    every = range(low, high + 1)
    if choices == "all" or len(every) <= choices:
        return list(every)
    steps = choices - 1
    if grid == "linear":
        return sorted(
            {math.floor(low + Fraction((high - low) * step, steps) + Fraction(1, 2)) for step in range(choices)}
        )
    # Rounded half up: n is low (high/low)^(step/steps) if n - 1/2 is at most that; both are compared to the power of
    # steps, as integers.
    powers = [low ** (steps - step) * high**step for step in range(choices)]
    return sorted({max(n for n in every if (2 * n - 1) ** steps <= 2**steps * power) for power in powers})


class Place(NamedTuple):
    """Cores, start and expected end of a job; whole microseconds."""

    start: int
    end: int
    cores: int


def soonest(places: Iterable[Place]) -> Place:
    """Return the place that ends first; for equal ends the one on the fewest cores."""
    places = list(places)
    first = min(place.end for place in places)
    return min((place for place in places if place.end <= first + EQUAL), key=lambda place: place.cores)


# -- promises, section 5 ---------------------------------------------------------------------------------------------


def category(weight: Fraction, count: float, first: float, ratio: float) -> int:
    """Return the category of a weight in microseconds, from 1; *first* is the bound of the first one, s (section 5.2).

    Examples
    --------
    >>> [category(Fraction(seconds * 10**6), 10, 100, 3) for seconds in (1, 100, 101, 300, 301, 10**9)]
    [1, 1, 2, 2, 3, 10]
    """
    bound, number = decimal(first) * MICROSECOND, 1
    while number < count and weight > bound + NOISE:
        bound, number = bound * decimal(ratio), number + 1
    return number


# -- the machines ----------------------------------------------------------------------------------------------------


class _Molder(Machine):
    """Machine whose jobs may have other sizes than requested."""

    def __init__(self, jobs: list[Job], shapes: Iterable[Shape], cores: int, rules: Rules, policy: str) -> None:
        super().__init__(list(jobs), cores, policy, compress="planned", overrun="kill", tick=MICROSECOND)
        self.shapes = dict(zip(jobs, shapes, strict=True))
        self.rules = rules

    def possible(self, job: Job) -> bool:
        """Return whether any size of the job fits the machine."""
        return min(self.shapes[job].named or (self.shapes[job].least,)) <= self.cores

    def claim(self, job: Job, left: Fraction = Fraction(1)) -> Claim:
        shape = self.shapes[job]
        return Claim(shape.weight * left, shape.least, shape.most)

    def claims(self, waiting: Iterable[Job], now: int) -> list[Claim]:
        """Return the claims of all jobs that share the machine, *waiting* ones included (section 4.1)."""
        among = [self.claim(job) for job in waiting]
        if self.rules.scope == "queued":
            return among
        for job in self.running:
            left = Fraction(job.expected - now, job.expected - job.start)
            among.append(self.claim(job, left if self.rules.scope == "remaining" else Fraction(1)))
        return among

    def allowed(self, job: Job, claims: list[Claim]) -> int:
        """Return the largest number of cores that fairness allows a job."""
        claim = self.claim(job)
        return largest(claim, limit(claim, claims, self.cores, self.rules))

    def places(self, job: Job, most: int, intervals: list[Interval], now: int) -> list[Place]:
        """Return the earliest place of each tried size."""
        shape = self.shapes[job]
        if shape.named:
            tried = [size for size in shape.named if size <= most] or [shape.named[0]]
        else:
            tried = sizes(shape.least, most, self.rules.choices, self.rules.grid)
        found = []
        for cores in tried:
            length = shape.lasting(shape.estimate, cores)
            start = earliest(intervals, self.cores, cores, length, now)
            found.append(Place(start, start + length, cores))
        return found

    def mould(self, job: Job, place: Place) -> None:
        """Set size and start of the job; a later call may change them."""
        shape = self.shapes[job]
        job.cores, job.planned = place.cores, place.start
        job.estimate, job.runtime = (shape.lasting(time, place.cores) for time in (shape.estimate, shape.runtime))


class AtSubmit(_Molder):
    """Strategy that chooses size and promise of every job on arrival (3.1 to 3.3)."""

    def __init__(
        self, jobs: list[Job], shapes: Iterable[Shape], cores: int, rules: Rules, algorithm: Algorithm
    ) -> None:
        super().__init__(jobs, shapes, cores, rules, "conservative")
        self.algorithm = algorithm

    def possible(self, job: Job) -> bool:
        return job.cores <= self.cores if self.algorithm == "conservative" else super().possible(job)

    def arrive(self, job: Job, now: int) -> None:
        if not self.possible(job):
            return
        if self.algorithm == "conservative":
            job.planned = self.place(job, now)
        else:
            intervals = self.held() + self.reserved(self.waiting)
            self.mould(job, soonest(self.places(job, self.most(job, now), intervals, now)))
        self.waiting.append(job)

    def most(self, job: Job, now: int) -> int:
        if self.algorithm == "submit-greedy":
            return self.shapes[job].most
        # Promised starts follow the arrivals of their instant, so a job with a promise for now still waits.
        return self.allowed(job, self.claims([job, *self.waiting], now))

    def squeeze(self, now: int) -> None:
        """Compress (3.1) the waiting jobs in the order of their promises."""
        before = {job: job.planned for job in self.waiting}
        self.replan(now)
        assert all(job.planned <= start for job, start in before.items()), "compression delays no reservation"


class AtStart(_Molder):
    """Strategy that chooses sizes at the start; only holders of promises have places (3.4)."""

    def __init__(self, jobs: list[Job], shapes: Iterable[Shape], cores: int, rules: Rules) -> None:
        super().__init__(jobs, shapes, cores, rules, "at start")
        self.holders: dict[Job, Lane] = {}
        """Lane of each holder of a promise, in the order of acquisition."""

    def arrive(self, job: Job, now: int) -> None:
        if self.possible(job):
            self.waiting.append(job)

    def starts(self, now: int) -> None:
        """Run one scheduling cycle."""
        intervals = self.held()
        claims = self.claims(self.waiting, now)
        most = {job: self.allowed(job, claims) for job in self.waiting}
        self.promise_by_xfactor(now)
        for job in self.ranked():
            place = soonest(self.places(job, most[job], intervals, now))
            self.serve(job, place, intervals, now)
        for job in self.others():
            places = self.places(job, most[job], intervals, now)
            place, at_once = soonest(places), [place for place in places if place.start == now]
            if place.start == now or self.promise(job, self.lane(job)):
                self.serve(job, place, intervals, now)
            elif at_once and self.rules.backfill == "now":
                self.serve(job, soonest(at_once), intervals, now)

    def serve(self, job: Job, place: Place, intervals: list[Interval], now: int) -> None:
        """Start the job if its place is now; else reserve the place."""
        self.mould(job, place)
        intervals.append(place)
        if place.start == now:
            self.holders.pop(job, None)
            self.begin(job, now)

    # -- promises ----------------------------------------------------------------------------------------------------

    def ranked(self) -> list[Job]:
        """Return the holders in the order of service (5.1)."""
        holders = list(self.holders)
        return holders if self.rules.promise_order == "acquired" else sorted(holders, key=lambda job: job.row)

    def others(self) -> list[Job]:
        """Return the jobs without a promise in the order of submission, then number."""
        return sorted((job for job in self.waiting if job not in self.holders), key=lambda job: job.row)

    def lane(self, job: Job) -> Lane | None:
        """Return the lane in which a job may hold a promise, without expansion factors."""
        if self.rules.category is not None:
            return "category", category(self.shapes[job].weight, **self.rules.category)
        return ("head", 0) if self.rules.head else None

    def promise(self, job: Job, lane: Lane | None) -> bool:
        """Make the job the last holder, if its lane has none."""
        if lane is None or lane in self.holders.values():
            return False
        self.holders[job] = lane
        return True

    def promise_by_xfactor(self, now: int) -> None:
        """Give each job that has waited too long a separate lane, in the order of the instants (5.3)."""
        if self.rules.xfactor is None:
            return
        beyond = decimal(self.rules.xfactor) - 1
        # The last whole microsecond at which the threshold is not exceeded.
        crossing = {job: math.floor(job.submit + beyond * self.shapes[job].weight + NOISE) for job in self.others()}
        for job in sorted(crossing, key=lambda job: (crossing[job], job.row)):
            if crossing[job] < now:
                self.promise(job, ("xfactor", job.row))


# -- the schedule ----------------------------------------------------------------------------------------------------


def machine_of(
    workload: Workload, cores: int, algorithm: Algorithm, rules: Rules
) -> tuple[list[Job], AtSubmit | AtStart]:
    """Return the jobs and the machine in the initial state."""
    jobs, shapes = jobs_of(workload), shapes_of(workload, cores)
    if algorithm == "aggressive-fair-share":
        return jobs, AtStart(jobs, shapes, cores, rules)
    return jobs, AtSubmit(jobs, shapes, cores, rules, algorithm)


def moldable_schedule(
    workload: Workload, cores: int, algorithm: Algorithm, *, watch: Watcher | None = None, **parameters: Any
) -> Record:
    """Return the schedule of a small workload of moldable jobs, by the reference implementation.

    Parameters
    ----------
    cores : int
        Size of the machine; jobs that need more are rejected.
    algorithm : {"conservative", "submit-greedy", "submit-fair-share", "aggressive-fair-share"}
        Sections 3.1 to 3.4. Under the first, jobs run as requested.
    watch : callable, optional
        Called with the plan after each instant; jobs without a promise have the start `NEVER`.
    **parameters
        Parameters in `Rules` that the algorithm has (`ALGORITHMS`).

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[3, 3, 1])
    >>> moldable_schedule(jobs, 4, "conservative").start.tolist()
    [0.0, 10.0, 2.0]
    """
    if algorithm not in ALGORITHMS:
        raise InputError(
            f"the oracle has no algorithm '{algorithm}'; known: {', '.join(ALGORITHMS)}", field="algorithm"
        )
    if unknown := parameters.keys() - ALGORITHMS[algorithm]:
        raise InputError(f"'{algorithm}' has no parameter '{min(unknown)}'", field="parameters")
    jobs, machine = machine_of(workload, cores, algorithm, Rules(**parameters))
    play(machine, "batched", watch)
    return replace(record_of(workload, jobs, machine), cores_used=np.array([job.cores for job in jobs], dtype=np.int64))
