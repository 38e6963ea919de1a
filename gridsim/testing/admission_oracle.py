"""Reference implementation of MSB, MRT, QoPS and FQoPS, including all steps after admission: simple and slow.

It follows the specification of deadline admission; comments refer to its sections and decisions (D1 to D32). The
machine and its event loop are those of `gridsim.testing.oracle`. Times are whole microseconds, prices and factors are
fractions, and placement tries every candidate. No code is shared with `gridsim.policy`.

References
----------
Islam, Balaji, Sadayappan, Panda: QoPS, OSU-CISRC-4/03-TR21, 2003, and JSSPP 2003, LNCS 2862; Towards Provision of
Quality of Service Guarantees in Job Scheduling, CLUSTER 2004.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record
from gridsim.testing.oracle import Interval, Job, Machine, Watcher, decimal, earliest, jobs_of, play, record_of

Algorithm = Literal["msb", "mrt", "qops", "fqops"]

Plan = dict[Job, int]
"""Planned start of every waiting job, whole microseconds."""

FOR_GOOD = NEVER
"""Duration of a placement whose cores must stay free indefinitely."""


@dataclass(frozen=True)
class View:
    """Input of an admission: the instant, the machine, running jobs with expected ends, and the present plan."""

    now: int
    cores: int
    held: list[Interval]
    plan: Plan

    def order(self) -> list[Job]:
        """Return the waiting jobs by planned start, section 2.5."""
        return sorted(self.plan, key=lambda job: (self.plan[job], job.row))

    def earliest(self, job: Job, placed: Plan, *, for_good: bool = False) -> int:
        """Return the earliest place beyond the running jobs and those in *placed*, section 2.3."""
        intervals = self.held + [(start, start + other.estimate, other.cores) for other, start in placed.items()]
        return earliest(intervals, self.cores, job.cores, FOR_GOOD if for_good else job.estimate, self.now)


Search = Callable[[View, Job], Plan | None]
"""Returns a new plan that includes the job, or None; the job's `granted` is the requested deadline."""


# -- heuristics, section 4 -------------------------------------------------------------------------------------------

RANKS: dict[str, Callable[[Job], int]] = {
    "llf": lambda job: job.granted - job.estimate,
    "edf": lambda job: job.granted,
    "fcfs": lambda job: job.submit,
}
"""Sort keys of a job by name of the heuristic, lower first, ties by job order."""


def _ranked(jobs: Iterable[Job], heuristic: str) -> list[Job]:
    return sorted(jobs, key=lambda job: (RANKS[heuristic](job), job.row))


def _due(job: Job) -> int:
    """Return the latest end that binds a search; a broken guarantee does not bind, but the job keeps its rank."""
    return NEVER if job.broken else job.granted


def _kept(job: Job, start: int) -> bool:
    return start + job.estimate <= _due(job)


# -- MSB, section 5.1 ------------------------------------------------------------------------------------------------

Price = Fraction | float


def _share(part: int, of: int) -> Price:
    """Return the share of a slack that a wait uses; infinite for a wait without slack."""
    if of > 0:
        return Fraction(part, of)
    return math.inf if part else Fraction(0)


PRICES: dict[str, Callable[[Job, int, int | None], Price]] = {
    "slack": lambda job, start, old: _share(start - job.submit, _due(job) - job.estimate - job.submit),
    "wait": lambda job, start, old: Fraction(start - job.submit),
    "work_wait": lambda job, start, old: Fraction(job.cores * (start - job.submit)),
    "slowdown": lambda job, start, old: Fraction(start - job.submit, job.estimate),
    "disturbance": lambda job, start, old: Fraction(0 if old is None else max(0, start - old)),
}
"""Terms of the price of a plan by name, for a job, its planned start, and its previous planned start."""


def _price(view: View, plan: Plan, price: str) -> Price:
    term = PRICES[price]
    return sum((term(job, start, view.plan.get(job)) for job, start in plan.items()), Fraction(0))


def _cheaper(new: Price, old: Price) -> bool:
    """Return whether a price is lower, beyond a relative tolerance of 1e-9 (D7)."""
    if math.isinf(new) or math.isinf(old):
        return new < old
    return old - new > Fraction(1, 10**9) * Fraction(old)


def _cheapest(view: View, plans: Iterable[Plan], price: str) -> Plan | None:
    """Return the cheapest of some plans, the first of equal ones."""
    best: Plan | None = None
    for plan in plans:
        if best is None or _cheaper(_price(view, plan, price), _price(view, best, price)):
            best = plan
    return best


def msb(view: View, job: Job, *, price: str = "slack", order: str = "ast") -> Plan | None:
    """Return the cheapest of the plans with the new job at each position of the order (modified slack-based).

    Parameters
    ----------
    price : str
        A name of `PRICES`.
    order : str
        ``ast``: ascending scheduled time, with unchanged places before the new job; or a name of `RANKS`: all jobs are
        placed again (D6).
    """
    waiting = view.order() if order == "ast" else _ranked(view.plan, order)
    plans = (_inserted(view, job, waiting, position, order == "ast") for position in range(len(waiting) + 1))
    return _cheapest(view, (plan for plan in plans if plan is not None), price)


def _inserted(view: View, job: Job, waiting: list[Job], position: int, stay: bool) -> Plan | None:
    """Return the plan with the job at a position; None if a placed job misses its deadline."""
    before, behind = waiting[:position], waiting[position:]
    plan: Plan = {other: view.plan[other] for other in before} if stay else {}
    for other in [job, *behind] if stay else [*before, job, *behind]:
        start = view.earliest(other, plan)
        if not _kept(other, start):
            return None
        plan[other] = start
    return plan


# -- MRT, section 5.2 ------------------------------------------------------------------------------------------------


@dataclass
class _Vertex:
    """Partial schedule, remaining jobs in heuristic order, and index of the next candidate."""

    placed: Plan
    left: list[Job]
    next: int = 0


def mrt(
    view: View,
    job: Job,
    *,
    heuristic: str = "llf",
    backtracks: int = 10,
    window: int | None = None,
    hole_filling: bool = True,
    weight: float = 1,
) -> Plan | None:
    """Modified real-time: depth-first search over orders, cut by strong feasibility and by a limit on backtracks.

    Parameters
    ----------
    heuristic : str
        A name of `RANKS`, or ``edf+est``: deadline + *weight* * earliest start in the partial schedule.
    backtracks : int
        Largest number of undone extensions, for either reason (D10, D11).
    window : int, optional
        Number of remaining jobs tested for strong feasibility; by default all.
    hole_filling : bool
        Whether a job may be placed where its cores do not stay free indefinitely (D12).
    """

    def place(other: Job, placed: Plan) -> int:
        return view.earliest(other, placed, for_good=not hole_filling)

    def ranked(jobs: Iterable[Job], placed: Plan) -> list[Job]:
        if heuristic != "edf+est":
            return _ranked(jobs, heuristic)
        return sorted(jobs, key=lambda other: (other.granted + decimal(weight) * place(other, placed), other.row))

    def strongly_feasible(placed: Plan, left: list[Job]) -> bool:
        return all(_kept(other, place(other, placed)) for other in left[:window])

    root = _Vertex({}, ranked([*view.plan, job], {}))
    if not strongly_feasible(root.placed, root.left):
        return None
    stack, undone = [root], 0
    while True:
        top = stack[-1]
        if not top.left:
            return top.placed
        if top.next == len(top.left):
            stack.pop()
            undone += 1
            if not stack or undone > backtracks:
                return None
            continue
        candidate = top.left[top.next]
        top.next += 1
        start = place(candidate, top.placed)
        placed = {**top.placed, candidate: start}
        left = ranked((other for other in top.left if other is not candidate), placed)
        if _kept(candidate, start) and strongly_feasible(placed, left):
            stack.append(_Vertex(placed, left))
        else:
            undone += 1
            if undone > backtracks:
                return None


# -- QoPS, section 5.3 -----------------------------------------------------------------------------------------------


def qops(
    view: View,
    job: Job,
    *,
    heuristic: str = "llf",
    k_factor: int = 5,
    slots: str = "first-feasible",
    insertion: str = "first",
    append_slot: bool = True,
    price: str = "slack",
) -> Plan | None:
    """Reorder a tail of the plan (QoPS): the whole plan, then half of it, and so on, with a few allowed violations.

    Parameters
    ----------
    heuristic : str
        A name of `RANKS`.
    k_factor : int
        Largest number of violations in a slot (D15).
    slots : {"first-feasible", "first-slot-only", "best"}
        The first feasible slot; only the slot that reorders all; the cheapest of the feasible slots, by *price*.
    insertion : {"first", "sorted"}
        Position of the new job in slots after the first (D16).
    append_slot : bool
        Whether the last slot moves no job (D13).
    """
    waiting = view.order()
    tails = _tails(len(waiting), append_slot)
    tried = (_slot(view, job, waiting, tail, heuristic, k_factor, insertion) for tail in tails)
    if slots == "first-slot-only":
        return next(tried)
    feasible = (plan for plan in tried if plan is not None)
    return _cheapest(view, feasible, price) if slots == "best" else next(feasible, None)


def _tails(waiting: int, append_slot: bool) -> list[int]:
    """Return the number of jobs that each slot reorders: all, half, a quarter, … 1, 0."""
    tails = [waiting]
    while tails[-1] > 1:
        tails.append(tails[-1] // 2)
    return tails + [0] * (append_slot and waiting > 0)


def _slot(
    view: View, job: Job, waiting: list[Job], tail: int, heuristic: str, k_factor: int, insertion: str
) -> Plan | None:
    """Evaluate one slot: keep the front of the plan, place the rest by the heuristic, and repair failures."""
    first = len(waiting) - tail
    sequence = [(other, view.plan[other]) for other in waiting[:first]]
    if first == 0 or insertion == "sorted":
        to_place = _ranked([job, *waiting[first:]], heuristic)
    else:
        to_place = [job, *_ranked(waiting[first:], heuristic)]
    violations = 0
    while to_place:
        candidate, *others = to_place
        start = view.earliest(candidate, dict(sequence))
        if _kept(candidate, start):
            sequence.append((candidate, start))
            to_place = others
            continue
        violations += 1
        if violations > k_factor or len(sequence) == first:
            return None
        middle = (first + len(sequence)) // 2
        to_place = [candidate, *_ranked([*others, *(other for other, _ in sequence[middle:])], heuristic)]
        del sequence[middle:]
    return dict(sequence)


# -- after admission, sections 6 and 7 -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """Parameters of all algorithms; those of the feedback apply only to FQoPS."""

    relaxation: float = 5
    artificial_floor: float = 86400
    artificial_fallback: Literal["loosen", "reject"] = "loosen"
    unadmitted: Literal["drop", "best-effort"] = "drop"
    feedback: bool = False
    retry_count: int = 10
    slack_factor: float = 1
    kill_restart: bool = False
    max_kills: int | None = None


class Guarantor(Machine):
    """Machine that guarantees deadlines."""

    def __init__(self, jobs: list[Job], cores: int, search: Search, terms: _Terms, **options: Any) -> None:
        super().__init__(jobs, cores, "conservative", **options)
        self.search, self.terms = search, terms
        self.killed: list[tuple[Job, int, int]] = []

    # -- arrivals ----------------------------------------------------------------------------------------------------

    def arrive(self, job: Job, now: int) -> None:
        if job.cores > self.cores:
            return
        if job.deadline < NEVER:
            self.ask(job, now)
        else:
            self.relax(job, now)
        if job not in self.waiting and self.terms.unadmitted == "best-effort":
            self.waiting.append(job)
        self.trail(now)

    def ask(self, job: Job, now: int) -> None:
        """Process a job with a deadline: admission, then a victim, then an offer."""
        if self.admit(job, job.deadline, self.view(now)) or not self.terms.feedback:
            return
        if self.terms.kill_restart and self.evict(job, now):
            return
        self.negotiate(job, now)

    def relax(self, job: Job, now: int) -> None:
        """Give a job without a deadline an artificial one, which is doubled instead of refused (section 6.4, D22)."""
        terms, view = self.terms, self.view(now)
        relaxed = math.floor(decimal(terms.relaxation) * job.estimate)
        response = max(to_us(terms.artificial_floor), relaxed, 1)
        if self.admit(job, job.submit + response, view) or terms.artificial_fallback == "reject":
            return
        start = view.earliest(job, view.plan)
        while start + job.estimate > job.submit + response:
            response *= 2
            job.doublings += 1
        self.adopt({**view.plan, job: start}, job, job.submit + response)

    # -- admission ---------------------------------------------------------------------------------------------------

    def promised(self) -> list[Job]:
        return [job for job in self.waiting if job.granted < NEVER]

    def view(self, now: int, without: Job | None = None) -> View:
        held = [(job.start, job.expected, job.cores) for job in self.running if job is not without]
        return View(now, self.cores, held, {job: job.planned for job in self.promised()})

    def tried(self, job: Job, deadline: int, view: View) -> Plan | None:
        """Return the plan that keeps a deadline, without a guarantee."""
        before = job.granted, job.broken
        job.granted, job.broken = deadline, False
        plan = self.search(view, job)
        job.granted, job.broken = before
        return plan

    def adopt(self, plan: Plan, job: Job, deadline: int) -> None:
        job.granted = deadline
        if job not in self.waiting:
            self.waiting.append(job)
        for other, start in plan.items():
            other.planned = start

    def admit(self, job: Job, deadline: int, view: View) -> bool:
        plan = self.tried(job, deadline, view)
        if plan is not None:
            self.adopt(plan, job, deadline)
        return plan is not None

    # -- feedback ----------------------------------------------------------------------------------------------------

    def negotiate(self, job: Job, now: int) -> None:
        """Offer the earliest deadline found by bisection, with slack, and process the user's answer (7.1 to 7.3)."""
        view, asked, tick = self.view(now), job.deadline, self.tick
        start = view.earliest(job, view.plan)
        low, high, plan = asked, start + job.estimate, {**view.plan, job: start}
        if high <= asked:
            self.adopt(plan, job, asked)
            return
        for _ in range(self.terms.retry_count):
            if high - low <= tick:
                break
            middle = low + max(1, (high - low) // (2 * tick)) * tick
            found = self.tried(job, middle, view)
            if found is None:
                low = middle
            else:
                high, plan = middle, found
        factor = decimal(self.terms.slack_factor)
        job.offer = high if factor == 1 else job.submit + math.ceil(factor * (high - job.submit) / tick) * tick
        if job.offer - job.submit <= job.tolerance * (asked - job.submit):
            self.adopt(plan, job, job.offer)

    # -- kill and restart --------------------------------------------------------------------------------------------

    def victims(self, now: int) -> list[Job]:
        """Return the candidates for a kill, the least lost work first (section 7.4)."""
        most = math.inf if self.terms.max_kills is None else self.terms.max_kills
        able = [
            job
            for job in self.running
            if job.restartable and job.start < now and sum(victim is job for victim, *_ in self.killed) < most
        ]
        return sorted(able, key=lambda job: (job.cores * (now - job.start), job.row))

    def evict(self, job: Job, now: int) -> bool:
        """Kill one running job for the new one, if the guarantee of the killed job can be kept."""
        for victim in self.victims(now):
            plan = self.revised(job, victim, now)
            if plan is not None:
                self.killed.append((victim, victim.start, now))
                self.running.remove(victim)
                victim.start = victim.end = victim.expected = NEVER
                self.waiting.append(victim)
                self.adopt(plan, job, job.deadline)
                self.squeeze(now)
                return True
        return False

    def revised(self, job: Job, victim: Job, now: int) -> Plan | None:
        """Return the plan with the new job, and with the victim later than now (D27)."""
        if victim.granted >= NEVER:
            return None
        view = self.view(now, without=victim)
        plan = self.tried(job, job.deadline, view)
        if plan is None:
            return None
        # The new job's deadline counts while the victim is placed.
        job.granted = job.deadline
        both = self.tried(victim, victim.granted, replace(view, plan=plan))
        job.granted = NEVER
        return both if both is not None and both[victim] > now else None

    # -- after admission ---------------------------------------------------------------------------------------------

    def squeeze(self, now: int) -> None:
        """Compress the plan of guaranteed jobs; jobs without a guarantee follow."""
        everyone, self.waiting = self.waiting, self.promised()
        super().squeeze(now)
        self.waiting = everyone
        self.trail(now)

    def replan(self, now: int) -> None:
        """Replan after an overrun (section 6.3); guarantees of jobs that are planned to end too late are broken."""
        everyone, self.waiting = self.waiting, self.promised()
        super().replan(now)
        for job in self.waiting:
            job.broken |= job.planned + job.estimate > job.granted
        self.waiting = everyone
        self.trail(now)

    def trail(self, now: int) -> None:
        """Place jobs without a guarantee again after the plan, in job order."""
        placed = self.view(now)
        for job in sorted(set(self.waiting) - set(placed.plan), key=lambda job: job.row):
            job.planned = placed.earliest(job, placed.plan)
            placed.plan[job] = job.planned

    # -- the record --------------------------------------------------------------------------------------------------

    def promises(self, jobs: list[Job]) -> Promises:
        def column(values: Iterable[int]) -> Any:
            return np.array(list(values), dtype=np.int64)

        return Promises(
            granted_us=column(job.granted for job in jobs),
            offer_us=column(job.offer for job in jobs),
            doublings=column(job.doublings for job in jobs),
            broken=np.array([job.broken for job in jobs], dtype=np.bool_),
            killed=column(victim.row for victim, *_ in self.killed),
            killed_start_us=column(start for _, start, _ in self.killed),
            killed_end_us=column(end for *_, end in self.killed),
        )


SEARCHES: Mapping[str, Callable[..., Plan | None]] = {"msb": msb, "mrt": mrt, "qops": qops, "fqops": qops}


def terms_of(algorithm: str, parameters: Mapping[str, Any]) -> tuple[Search, Any]:
    """Return the search of an algorithm with its parameters, and the parameters of all algorithms."""
    if algorithm not in SEARCHES:
        raise InputError(f"the oracle has no algorithm '{algorithm}'; known: {', '.join(SEARCHES)}", field="algorithm")
    shared = {name: value for name, value in parameters.items() if name in _Terms.__dataclass_fields__}
    own = {name: value for name, value in parameters.items() if name not in shared}
    return partial(SEARCHES[algorithm], **own), _Terms(**shared, feedback=algorithm == "fqops")


def admitted(
    workload: Workload,
    cores: int,
    algorithm: Algorithm,
    *,
    compress: Literal["planned", "arrival", "none"] = "planned",
    overrun: Literal["kill", "extend"] = "kill",
    instant: Literal["batched", "per-event"] = "batched",
    tick: float = 1.0,
    watch: Watcher | None = None,
    **parameters: Any,
) -> Record:
    """Return the schedule of a small workload under guaranteed deadlines, by the reference implementation.

    Parameters
    ----------
    cores : int
        Size of the machine; wider jobs are rejected.
    algorithm : {"msb", "mrt", "qops", "fqops"}
        Admission algorithm; parameters are those of `msb`, `mrt` and `qops`.
    tick : float
        First assumed overrun of a job that exceeds its estimate, and the step of offered deadlines, s.
    watch : callable, optional
        Called with the plan after each instant.
    **parameters
        Parameters of the algorithm; ``relaxation``, ``artificial_floor`` (s), ``artificial_fallback`` and
        ``unadmitted`` of all; ``retry_count``, ``slack_factor``, ``kill_restart`` and ``max_kills`` of ``fqops``.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[4, 4, 4], deadline=[10, 40, 16])
    >>> admitted(jobs, 4, "qops").start.tolist()
    [0.0, 15.0, 10.0]
    """
    jobs = jobs_of(workload)
    machine = Guarantor(
        list(jobs), cores, *terms_of(algorithm, parameters), compress=compress, overrun=overrun, tick=to_us(tick)
    )
    play(machine, instant, watch)
    return record_of(workload, jobs, machine, machine.promises(jobs))
