"""List policies with predictions, backfill orders and reservation lanes on one pool of cores; slow reference.

The implementation follows the specification of predictions; comments cite its sections. The machine and the event
loop are those of `gridsim.testing.oracle`; the module imports nothing from the core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from numpy.random import Generator

from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing import oracle
from gridsim.testing.oracle import Interval, Job, Machine, earliest, jobs_of, play, record_of

__all__ = [
    "DRAWN",
    "KEYS",
    "Cycles",
    "Key",
    "List",
    "Predictions",
    "Rule",
    "State",
    "listed",
    "projected_slr",
    "remaining",
    "starvation_free",
]


class State(Protocol):
    """Arguments of a key besides the job: running jobs and predicted run times."""

    waiting: list[Any]
    running: list[Any]
    tick: int

    def predicted(self, job: Any) -> int: ...


Key = Callable[[Job, int, State], Any]
"""Sort key of a waiting job; lowest first, ties by job order."""


def _waited(job: Job, now: int, unit: float) -> float:
    return (now / MICROSECOND - job.submit / MICROSECOND) / unit


def _ageing(power: int, unit: Callable[[Job], float], weight: Callable[[Job], float]) -> Key:
    """Return the key of ageing as floats; whole exponents are computed as products."""

    def key(job: Job, now: int, state: State) -> float:
        waited = _waited(job, now, unit(job))
        return -math.prod([waited] * power) * weight(job)

    return key


def _seconds(job: Job) -> float:
    return job.estimate / MICROSECOND


def _static(name: str) -> Key:
    return lambda job, now, state: oracle.ORDERS[name](job, now)


# Grid, section 9. Rank and critical path of a job without tasks equal its estimate; it is ready when it is submitted.


def _rank(job: Any) -> int:
    rank: int = getattr(job, "rank", job.estimate)
    return rank


def _path(job: Any) -> int:
    path: int = getattr(job, "path", job.estimate)
    return path


def remaining(sign: int, inclusive: bool = True) -> Key:
    """Return the key of the remaining time, longest first for a *sign* of -1."""
    return lambda job, now, state: sign * (_rank(job) - (0 if inclusive else job.estimate))


def projected_slr(lateness: int = 1) -> Key:
    """Return the key of the projected SLR; *lateness* in ticks."""
    return lambda job, now, state: -Fraction(now + _rank(job) + lateness * state.tick - job.submit, _path(job))


def starvation_free(lateness: int = 1) -> Key:
    """Return the key of the projected SLR with the square of the wait in longest critical paths, as floats."""

    def key(job: Job, now: int, state: State) -> float:
        longest = max(_path(other) for other in state.waiting)
        projected = (now - job.submit + _rank(job) + lateness * state.tick) / _path(job)
        return -(projected + ((now - job.submit) // longest) ** 2)

    return key


KEYS: Mapping[str, Key] = {
    **{name: _static(name) for name in oracle.ORDERS},
    "fifo-task": lambda job, now, state: getattr(job, "ready", job.submit),
    "xfactor": _ageing(1, _seconds, lambda job: 1.0),
    "wfp3": _ageing(3, _seconds, lambda job: job.cores),
    "unicef": _ageing(1, lambda job: math.log2(max(job.cores, 2)) * job.estimate / MICROSECOND, lambda job: 1.0),
    "p-slr": projected_slr(),
    "shortest": lambda job, now, state: state.predicted(job),
}
"""Orders by name; ageing orders have the ties of the documented floats."""


DRAWN: Key = _static("fifo")
"""Marker of an order that is drawn in each scheduling cycle."""

# -- predictions -------------------------------------------------------------------------------------------------------

STEPS = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""Steps of section 3, s."""


@dataclass
class Predictions:
    """Predictors and correctors of sections 2 and 3; times are whole microseconds.

    Attributes
    ----------
    users, cores : sequence of int
        User and cores of each row; a negative user is unknown.
    rule : str
        ``requested``, ``clairvoyant``, ``recent``, ``average`` or ``similar``.
    corrector : str
        ``request``, ``steps``, ``added`` or ``double``; without *cap*, ``double`` may exceed the request.
    tick : int
        Predictions are rounded down to whole ticks [P2].
    """

    users: Sequence[int]
    rule: str = "requested"
    n: int = 2
    alpha: float = 0.5
    corrector: str = "request"
    cap: bool = True
    tick: int = MICROSECOND
    ran: list[tuple[int, int, int]] = field(default_factory=list)
    first: dict[Job, int] = field(default_factory=dict)
    present: dict[Job, int] = field(default_factory=dict)
    times: dict[Job, int] = field(default_factory=dict)

    def arrived(self, job: Job) -> None:
        answer = self._answer(job)
        seen = job.estimate if answer is None else answer
        if seen < job.estimate and self.rule != "clairvoyant":
            seen = max(self.tick, seen // self.tick * self.tick)
        self.first[job] = self.present[job] = min(job.estimate, seen)
        self.times[job] = 0

    def _answer(self, job: Job) -> int | None:
        if self.rule == "clairvoyant":
            return min(job.runtime, job.estimate)
        user = self.users[job.row]
        if self.rule == "requested" or user < 0:
            return None
        mine = [(size, ran) for who, size, ran in self.ran if who == user]
        if self.rule == "average":
            mean: float | None = None
            for _, ran in mine:
                seconds = ran / MICROSECOND
                mean = seconds if mean is None else self.alpha * seconds + (1 - self.alpha) * mean
            return None if mean is None else math.floor(mean * MICROSECOND)
        alike = [ran for size, ran in mine if size == job.cores.bit_length()]
        if self.rule == "similar" and len(alike) >= self.n:
            return sum(alike[-self.n :]) // self.n
        everything = [ran for _, ran in mine]
        return sum(everything[-self.n :]) // self.n if len(everything) >= self.n else None

    def ended(self, job: Job) -> None:
        if self.users[job.row] >= 0:
            self.ran.append((self.users[job.row], job.cores.bit_length(), min(job.runtime, job.estimate)))

    def correct(self, job: Job) -> None:
        self.times[job] += 1
        step = STEPS[self.times[job] - 1] * MICROSECOND if self.times[job] <= len(STEPS) else NEVER
        present = self.present[job]
        new = {
            "request": job.estimate,
            "steps": self.first[job] + step,
            "added": present + step,
            "double": 2 * present,
        }[self.corrector]
        self.present[job] = new if self.corrector == "double" and not self.cap else min(job.estimate, new)


# -- scheduling cycle -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Requests that hold a reservation if they cannot start in a cycle: a number per lane, none if *strict*."""

    capacity: Sequence[int] = (1,)
    lane: Callable[[Job], int] = lambda job: 0
    strict: bool = False


class Cycles:
    """List policies on any machine: events of one instant and the scheduling cycle.

    Attributes
    ----------
    afresh : bool
        Whether the queue is sorted again after each start.
    hold : bool
        Whether a drawn job that does not fit stays the first in the queue.
    """

    afresh = False
    hold = True
    drawn: Any = None
    by: Key
    rule: Rule
    predictions: Predictions
    behind: Key | None
    draws: Generator | None
    coming: list[Any]
    waiting: list[Any]
    running: list[Any]
    extend: bool
    tick: int
    now = -1

    # -- the machine -------------------------------------------------------------------------------------------------

    def leave(self, job: Any, now: int) -> Any:
        """Remove a completed job from the machine."""
        raise NotImplementedError

    def arrive(self, job: Any, now: int) -> None:
        """Add a job to the queue, or reject it."""
        raise NotImplementedError

    def soonest(self, job: Any, reserved: list[Any], now: int) -> tuple[int, Any]:
        """Return the earliest start given running jobs and reservations, and the allocation of the job from then on."""
        raise NotImplementedError

    def starts_on(self, job: Any, now: int, held: Any) -> None:
        """Start a job."""
        raise NotImplementedError

    def is_full(self, now: int) -> bool:
        """Return whether nothing is free; False for a machine of several resources."""
        return False

    # -- events --------------------------------------------------------------------------------------------------------

    def predicted(self, job: Any) -> int:
        return self.predictions.present[job]

    def next_instant(self) -> int:
        instants = [job.submit for job in self.coming[:1]]
        for job in self.running:
            limit = job.start + job.estimate
            instants += [job.end, *(instant for instant in (job.expected, limit) if self.now < instant < job.end)]
        return min(instants, default=NEVER)

    def batched(self, now: int) -> None:
        """Process one instant (section 4.5); corrections alone cause no scheduling cycle [P12]."""
        self.now, changed = now, False
        for job in [job for job in self.running if job.end == now]:
            self.ended(job, now)
            changed = True
        changed |= self.corrections(now)
        while self.coming and self.coming[0].submit == now:
            changed |= self.arrives(self.coming.pop(0), now)
        if changed:
            self.starts(now)

    def per_event(self, now: int) -> None:
        self.now = now
        overran = self.corrections(now)
        while self.coming and self.coming[0].submit == now:
            if self.arrives(self.coming.pop(0), now):
                self.starts(now)
        for job in list(self.running):
            if job.end == now:
                self.ended(job, now)
                self.starts(now)
        if overran:
            self.starts(now)

    def arrives(self, job: Any, now: int) -> bool:
        """Return whether the job is admitted; a rejected job causes no cycle."""
        self.arrive(job, now)
        if job in self.waiting:
            self.predictions.arrived(job)
        return job in self.waiting

    def ended(self, job: Any, now: int) -> None:
        self.predictions.ended(job)
        self.leave(job, now)

    def corrections(self, now: int) -> bool:
        """Correct predictions and overruns of requests; return whether there was an overrun."""
        found = False
        for job in self.running:
            limit = job.start + job.estimate
            if job.end <= now:
                continue
            if job.expected == now < limit:
                self.predictions.correct(job)
                job.expected = job.start + self.predictions.present[job]
            elif now >= limit and now in (limit, job.expected):
                job.expected = limit + max(2 * (now - limit), self.tick)
                found = True
        return found

    # -- scheduling cycle ---------------------------------------------------------------------------------------------

    def ordered(self, jobs: list[Any], key: Key, now: int) -> list[Any]:
        """Yield jobs sorted by a key with stable ties, or drawn at random from the remaining jobs."""
        if key is not DRAWN:
            return sorted(jobs, key=lambda job: key(job, now, self))
        assert self.draws is not None
        left = list(jobs)
        return [left.pop(int(self.draws.integers(len(left)))) for _ in jobs]

    def in_job_order(self) -> list[Any]:
        """Return the waiting jobs in the order of ties."""
        return sorted(self.waiting, key=lambda job: job.row)

    def draw_starts(self, now: int) -> None:
        """Draw and start one job after the other while a core is free, until one does not fit (grid, section 9)."""
        assert self.draws is not None
        while self.waiting and not self.is_full(now):
            queue = self.in_job_order()
            if self.drawn not in queue:
                self.drawn = queue[int(self.draws.integers(len(queue)))]
            job = self.drawn
            start, held = self.soonest(job, [], now)
            if not self.hold or start == now:
                self.drawn = None
            if start > now:
                return
            self.starts_on(job, now, held)

    def starts(self, now: int) -> None:
        """Run a scheduling cycle (sections 4.1 and 4.2)."""
        if self.by is DRAWN and self.rule.strict:
            self.draw_starts(now)
            return
        queue = self.ordered(self.in_job_order(), self.by, now)
        left, reserved, blocked = list(self.rule.capacity), list[Any](), False
        ranked = [] if self.behind is None else self.ordered(queue, self.behind, now)
        while queue:
            if ranked and blocked and not any(left):
                queue, ranked = [job for job in ranked if job in queue], []
            job = queue.pop(0)
            start, held = self.soonest(job, reserved, now)
            if start == now:
                self.starts_on(job, now, held)
                job.expected = now + self.predictions.present[job]
                if self.afresh:
                    self.starts(now)
                    return
                continue
            blocked = True
            if self.rule.strict:
                return
            if left[self.rule.lane(job)]:
                left[self.rule.lane(job)] -= 1
                reserved.append(held)


class List(Cycles, Machine):
    """List policies on one pool of cores."""

    def leave(self, job: Job, now: int) -> bool:
        return Machine.leave(self, job, now)

    def arrive(self, job: Job, now: int) -> None:
        Machine.arrive(self, job, now)

    def soonest(self, job: Job, reserved: list[Interval], now: int) -> tuple[int, Interval]:
        start = earliest([*self.held(), *reserved], self.cores, job.cores, self.predicted(job), now)
        return start, (start, start + self.predicted(job), job.cores)

    def starts_on(self, job: Job, now: int, held: Interval) -> None:
        self.begin(job, now)

    def is_full(self, now: int) -> bool:
        return self.free(now) <= 0


def listed(
    workload: Workload,
    cores: int,
    policy: Mapping[str, Any],
    *,
    overrun: str = "kill",
    instant: str = "batched",
    tick: float = 1.0,
) -> tuple[Record, Sequence[Job]]:
    """Return the schedule of a small workload under a list policy (attributes of `Cycles`), and its jobs."""
    jobs = jobs_of(workload)
    machine = List(list(jobs), cores, "easy", compress="none", overrun=overrun, tick=to_us(tick))
    vars(machine).update(policy)
    play(machine, instant, None)
    return record_of(workload, jobs, machine), jobs
