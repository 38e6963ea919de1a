"""Slow second implementation of priority classes, preemption and checkpoints on nodes that fail, by second.

It shares no code with gridsim. Jobs are as in `tests.oracles.failures`; they have ``priority`` too, and ``interval``,
``cost`` and ``restart`` of checkpoints (interval 0: none). Times are whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.oracles.failures import Machine

INFINITE = float("inf")
Job = dict[str, Any]
Place = dict[int, int]
Hold = tuple[int, float, Job, Place]


@dataclass
class Rules:
    """Mode of preemption, order of victims, grace, number of stops, and time without a stop."""

    mode: str
    victims: str
    grace: int
    most: float
    min_run: int


@dataclass
class Run:
    """A run of a job: begin, work that is left for it, whether it pays for a restart, and its place."""

    job: Job
    begin: int
    work: int
    restart: int
    place: Place
    suspended: int = 0
    asleep_since: int | None = None
    leaves: int | None = None
    stops_working: int | None = None
    claimant: int = 0

    @property
    def checkpoints(self) -> int:
        """Number of checkpoints if nothing interrupts the run."""
        tau = self.job["interval"]
        return int(-(-self.work // tau) - 1) if tau and self.work > tau else 0

    @property
    def length(self) -> int:
        """Duration without suspensions."""
        return int(self.restart + self.work + self.checkpoints * self.job["cost"])

    @property
    def limit(self) -> int:
        """Instant at which its walltime ends."""
        return int(self.begin + self.suspended + self.job["estimate"])

    @property
    def end(self) -> int:
        """Instant at which it ends by itself."""
        return min(self.begin + self.suspended + self.length, self.limit)

    def passed(self, now: int) -> int:
        """Time for which it had its cores."""
        return (now if self.asleep_since is None else self.asleep_since) - self.begin - self.suspended

    def kept(self, now: int) -> int:
        """Work that its own checkpoints have saved."""
        inside = self.passed(now) - self.restart
        if inside <= 0 or not self.checkpoints:
            return 0
        return int(min(self.checkpoints, inside // (self.job["interval"] + self.job["cost"])) * self.job["interval"])

    def done(self, now: int) -> int:
        """Work that it has done, saved or not."""
        inside = self.passed(now) - self.restart
        if inside <= 0:
            return 0
        if not self.checkpoints:
            return min(inside, self.work)
        count = min(self.checkpoints, inside // (self.job["interval"] + self.job["cost"]))
        rest = inside - count * (self.job["interval"] + self.job["cost"])
        if count < self.checkpoints:
            rest = min(rest, self.job["interval"])
        return int(min(count * self.job["interval"] + rest, self.work))

    def lost(self, now: int) -> int:
        """Seconds that would be lost if it was stopped now."""
        saved = self.kept(now)
        count = saved // self.job["interval"] if saved else 0
        return int(self.passed(now) - min(self.restart, self.passed(now)) - saved - count * self.job["cost"])


@dataclass
class Claim:
    """Resources held for a job from an instant on."""

    job: Job
    at: int
    place: Place


@dataclass
class Simulation:
    """A run of ``fcfs``, ``first-fit``, ``easy``, ``depth`` or ``conservative`` with preemption (None: without)."""

    machine: Machine
    jobs: list[Job]
    policy: str
    rules: Rules | None
    k: int = 1
    behind: bool = False
    running: dict[int, Run] = field(default_factory=dict)
    asleep: dict[int, Run] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    claims: dict[int, Claim] = field(default_factory=dict)
    plan: dict[int, tuple[float, Place]] = field(default_factory=dict)
    runs: list[tuple[int, int, int, str, Place, int]] = field(default_factory=list)
    cut: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_id = {job["id"]: job for job in self.jobs}
        self.coming = {job["id"]: job["submit"] for job in self.jobs}
        self.place_in_queue = {job["id"]: (job["submit"], job["submit"], job["id"]) for job in self.jobs}
        self.left = {job["id"]: job["runtime"] for job in self.jobs}
        self.ran = {job["id"]: False for job in self.jobs}
        self.stops = {job["id"]: 0 for job in self.jobs}
        self.depth = {"easy": 1, "depth": self.k}.get(self.policy, 0)
        self.plans = self.policy == "conservative"
        self.wants_anew = False

    def run(self, last: int) -> list[tuple[int, int, int, str, Place, int]]:
        """Return all runs: job, start, end, reason, tasks by node and suspended time; by job and start."""
        for now in range(last):
            self.second(now)
            if not (self.coming or self.running or self.claims) and (not self.waiting or self.stuck(now)):
                break
        self.left_over = [*self.coming, *self.waiting, *self.running, *self.claims]
        return sorted(self.runs, key=lambda run: run[:2])

    def stuck(self, now: int) -> bool:
        """Return whether jobs wait for what suspended ones keep, and no node returns."""
        absent = [self.machine.absent_until(node, now) for node in range(len(self.machine.nodes))]
        return bool(self.asleep) and absent == [None] * len(absent)

    # -- events ----------------------------------------------------------------------------------------------------

    def second(self, now: int) -> None:
        """Process one instant."""
        early = self.ends(now)
        requeued = self.leave(now)
        nodes = range(len(self.machine.nodes))
        before = [self.machine.absent_until(node, now - 1) for node in nodes]
        ends = [self.machine.absent_until(node, now) for node in nodes]
        lost = {node for node in nodes if ends[node] is not None and before[node] is None}
        changed = any(ends[node] is not None and before[node] not in (None, ends[node]) for node in nodes)
        back = any(before[node] is not None and ends[node] is None for node in nodes)
        hit = [job for job, run in {**self.running, **self.asleep}.items() if lost & set(run.place)]
        for job in sorted(hit, key=lambda job: (self.by_id[job]["submit"], job)):
            self.stop(job, now, "failure", self.kept_by(job, now))
            if self.behind:
                self.place_in_queue[job] = (now, self.by_id[job]["submit"], job)
                self.cut.pop(job)
            requeued.append(job)
        for job, claim in list(self.claims.items()):
            if lost & set(claim.place) or not self.is_free(claim.job, max(claim.at, now), now, claim.place, job):
                self.dissolve(job)
        here = [job for job in requeued if job in self.cut]
        if self.plans:
            if lost or changed or here or self.wants_anew:
                for job in here:
                    self.waiting.append(job)
                self.anew(now)
            elif early or back:
                self.compress(now)
        arrivals = [job for job, at in self.coming.items() if at == now]
        arrivals += [job for job in requeued if job not in self.waiting]
        for job in sorted(arrivals, key=lambda job: self.place_in_queue[job]):
            self.coming.pop(job, None)
            self.waiting.append(job)
            if self.plans:
                self.plan[job] = self.earliest(job, now, but=job)
                level = self.by_id[job]["priority"]
                if any(self.by_id[other]["priority"] < level for other in self.waiting):
                    self.anew(now)
        due = [self.plan[job][0] for job in self.plan] + [claim.at for claim in self.claims.values()]
        if self.rules is not None and self.rules.min_run:
            due += [run.begin + run.suspended + self.rules.min_run for run in self.running.values()]
        if self.ended or requeued or hit or lost or changed or back or arrivals or now in due:
            self.dispatch(now)

    def ends(self, now: int) -> bool:
        """End the runs that end by themselves; return whether one ended before it was expected."""
        early = self.ended = False
        for job in sorted(self.running):
            run = self.running[job]
            if run.stops_working is not None and run.stops_working < now:
                continue
            if run.end == now:
                self.ended = True
                early |= now < self.expected(run)
                completed = run.length <= run.job["estimate"]
                self.finish(job, now, "completed" if completed else "killed_walltime")
        return early

    def leave(self, now: int) -> list[int]:
        """Let the victims leave whose time has come; return those that wait again."""
        found = []
        for job in sorted(self.running):
            run = self.running[job]
            if run.leaves == now:
                self.ended = True
                found += self.depart(job, now)
        return found

    def depart(self, job: int, now: int) -> list[int]:
        """Let a victim leave; return it if it waits again."""
        assert self.rules is not None
        run = self.running[job]
        if self.rules.mode == "cancel":
            self.finish(job, now, "preempted")
            return []
        saves = run.stops_working is not None
        kept = run.done(run.stops_working or now) if saves else run.kept(now)
        self.stops[job] += 1
        self.stop(job, now, "preempted", kept)
        return [job]

    def kept_by(self, job: int, now: int) -> int:
        run = self.running.get(job) or self.asleep[job]
        return run.kept(now if run.stops_working is None else min(now, run.stops_working))

    def finish(self, job: int, now: int, reason: str) -> Run:
        if job in self.asleep:
            run = self.asleep.pop(job)
            run.suspended += now - (run.asleep_since or 0)
            self.waiting.remove(job)
            self.plan.pop(job, None)
        else:
            run = self.running.pop(job)
        self.runs.append((job, run.begin, now, reason, run.place, run.suspended))
        return run

    def stop(self, job: int, now: int, reason: str, kept: int) -> None:
        run = self.finish(job, now, reason)
        self.left[job] -= kept
        self.cut[job] = run.begin

    def dissolve(self, job: int) -> None:
        del self.claims[job]
        self.waiting.append(job)
        if self.plans:
            self.plan[job] = INFINITE, {}
        self.wants_anew = True

    # -- resources -------------------------------------------------------------------------------------------------

    def expected(self, run: Run) -> int:
        """Return the expected end of a run."""
        if run.leaves is None:
            return run.limit
        assert self.rules is not None
        works = run.stops_working if run.stops_working is not None else run.leaves
        return run.leaves if works < run.limit else run.limit

    def holds(self, *, but: int = 0, planned: set[int] | None = None) -> list[Hold]:
        """Return what is held: by runs, by suspended ones without cores, by claims, and by planned jobs."""
        found: list[Hold] = [
            (run.begin, self.expected(run), run.job, run.place) for job, run in self.running.items() if job != but
        ]
        for job, run in self.asleep.items():
            start = self.plan[job][0] if self.plans and job in self.plan and job != but else INFINITE
            if planned is not None and job not in planned:
                start = INFINITE
            left = run.job["estimate"] - run.passed(0)
            found.append((0, start + left, {**run.job, "cores": 0}, run.place))
        found += [
            (it.at, it.at + it.job["estimate"], it.job, it.place) for job, it in self.claims.items() if job != but
        ]
        for job, (at, place) in self.plan.items():
            if job == but or at == INFINITE or (planned is not None and job not in planned):
                continue
            what = self.asked(job)
            found.append((int(at), at + what["estimate"], what, place))
        return found

    def asked(self, job: int) -> Job:
        """Return what a waiting job asks for: a suspended one only its cores, for what is left of its walltime."""
        it = self.by_id[job]
        if job not in self.asleep:
            return it
        return {**it, "memory": 0, "estimate": it["estimate"] - self.asleep[job].passed(0)}

    def is_free(self, job: Job, begin: int, now: int, place: Place, but: int, planned: set[int] | None = None) -> bool:
        """Return whether a job can have exactly this place from an instant on."""
        planned = set() if planned is None else planned
        return self.fits(job, begin, now, place, self.holds(but=but, planned=planned))

    def fits(self, job: Job, begin: int, now: int, place: Place, holds: list[Hold]) -> bool:
        end = begin + job["estimate"]
        for node, tasks in place.items():
            until = self.machine.absent_until(node, now)
            if until is not None and until > begin:
                return False
            there = [hold for hold in holds if node in hold[3]]
            for at in {begin, *(int(hold[0]) for hold in there if begin < hold[0] < end)}:
                for name, total in zip(("cores", "memory"), self.machine.nodes[node], strict=True):
                    used = sum(each[name] * held[node] for first, last, each, held in there if first <= at < last)
                    if job[name] and used + job[name] * tasks > total:
                        return False
        return True

    def place(self, job: int, begin: int, now: int, holds: list[Hold]) -> Place | None:
        """Return the place of a waiting job from an instant on; None if it does not fit."""
        what = self.asked(job)
        if job in self.asleep:
            place = self.asleep[job].place
            return place if self.fits(what, begin, now, place, holds) else None
        left, found = what["tasks"], {}
        for node in range(len(self.machine.nodes)):
            for tasks in range(min(what["most"], left), 0, -1):
                if self.fits(what, begin, now, {node: tasks}, holds):
                    found[node], left = tasks, left - tasks
                    break
            if not left:
                return found
        return None

    def earliest_in(self, job: int, now: int, holds: list[Hold]) -> tuple[float, Place]:
        ends = {hold[1] for hold in holds} | {
            self.machine.absent_until(node, now) or 0 for node in range(len(self.machine.nodes))
        }
        for begin in sorted({now, *(int(end) for end in ends if now < end < INFINITE)}):
            place = self.place(job, begin, now, holds)
            if place is not None:
                return begin, place
        return INFINITE, {}

    def earliest(self, job: int, now: int, *, but: int) -> tuple[float, Place]:
        return self.earliest_in(job, now, self.holds(but=but))

    # -- plan ------------------------------------------------------------------------------------------------------

    def order(self) -> list[int]:
        """Return the waiting jobs by class and planned start; those that were cut by the start of that run."""

        def key(job: int) -> tuple[Any, ...]:
            start = self.plan[job][0] if job in self.plan else self.cut.get(job, INFINITE)
            if job in self.plan and job in self.fresh:
                start = self.cut[job]
            return -self.by_id[job]["priority"], job not in self.fresh, start, self.place_in_queue[job]

        self.fresh = {job for job in self.waiting if job not in self.plan and job in self.cut}
        return sorted(self.waiting, key=key)

    def anew(self, now: int) -> None:
        """Place all waiting jobs again."""
        self.wants_anew = False
        order = self.order()
        self.plan = {}
        for job in order:
            self.plan[job] = self.earliest(job, now, but=job)

    def compress(self, now: int) -> None:
        """Move waiting jobs to earlier starts until none moves."""
        moved = True
        while moved:
            moved = False
            for job in self.order():
                found = self.earliest(job, now, but=job)
                if found[0] < self.plan[job][0]:
                    self.plan[job], moved = found, True

    # -- a scheduling cycle ------------------------------------------------------------------------------------------

    def in_queue_order(self) -> list[int]:
        return sorted(self.waiting, key=lambda job: (-self.by_id[job]["priority"], self.place_in_queue[job]))

    def begin(self, job: int, now: int, place: Place) -> None:
        self.waiting.remove(job)
        self.plan.pop(job, None)
        self.cut.pop(job, None)
        if job in self.asleep:
            run = self.asleep.pop(job)
            assert run.asleep_since is not None
            run.suspended += now - run.asleep_since
            run.asleep_since = None
            self.running[job] = run
            return
        it = self.by_id[job]
        self.running[job] = Run(it, now, self.left[job], it["restart"] if self.ran[job] else 0, place)
        self.ran[job] = True

    def dispatch(self, now: int) -> None:
        """Start claims, then the queue."""
        for job, claim in list(self.claims.items()):
            planned = {other for other in self.plan if self.plan[other][0] < INFINITE} if self.plans else None
            if self.is_free(claim.job, now, now, claim.place, job, planned):
                del self.claims[job]
                self.waiting.append(job)
                self.begin(job, now, claim.place)
            elif claim.at <= now:
                self.dissolve(job)
        if self.plans:
            if self.wants_anew:
                self.anew(now)
            while self.preempts_in_plan(now):
                pass
            for job in [job for job in self.in_queue_order() if self.plan[job][0] == now]:
                self.begin(job, now, self.plan[job][1])
            return
        self.wants_anew = False
        while queue := self.in_queue_order():
            job, holds = queue[0], self.holds()
            place = self.place(job, now, now, holds)
            if place is not None:
                self.begin(job, now, place)
            elif not self.preempts(job, now, holds):
                break
        reserved: list[Hold] = []
        for job in [] if self.policy == "fcfs" else self.in_queue_order():
            holds = [*self.holds(), *reserved]
            place = self.place(job, now, now, holds)
            if place is not None:
                self.begin(job, now, place)
            elif len(reserved) < self.depth:
                at, there = self.earliest_in(job, now, holds)
                if at < INFINITE:
                    reserved.append((int(at), at + self.asked(job)["estimate"], self.asked(job), there))

    def preempts_in_plan(self, now: int) -> bool:
        queue = self.in_queue_order()
        for place, job in enumerate(queue):
            if self.plan[job][0] > now and self.preempts(job, now, self.holds(planned=set(queue[:place]))):
                return True
        return False

    def wait(self, run: Run) -> int:
        """Return the time until a victim has left."""
        assert self.rules is not None
        if self.rules.mode == "suspend":
            return 0
        writes = run.job["cost"] if self.rules.mode == "checkpoint" and run.job["interval"] else 0
        return int(self.rules.grace + writes)

    def candidates(self, job: int, now: int) -> list[int]:
        rules, level, found = self.rules, self.by_id[job]["priority"], []
        if rules is None or job in self.asleep:
            return []
        for other, run in self.running.items():
            if run.job["priority"] >= level or run.leaves is not None or self.stops[other] >= rules.most:
                continue
            if run.passed(now) >= rules.min_run and run.begin < now:
                found.append(other)

        def key(other: int) -> tuple[Any, ...]:
            run = self.running[other]
            by = {
                "youngest": -run.begin,
                "least-lost": run.lost(now) * run.job["tasks"] * run.job["cores"],
                "checkpointed": run.lost(now),
            }[rules.victims]
            return run.job["priority"], by, -run.job["submit"], -other

        return sorted(found, key=key)

    def preempts(self, job: int, now: int, holds: list[Hold]) -> bool:
        """Stop runs so that a job can start; return whether it could."""
        candidates = self.candidates(job, now)

        def trial(taken: list[int]) -> Place | None:
            at = now + max(self.wait(self.running[other]) for other in taken)
            gone = {other: self.running[other] for other in taken}
            left = [hold for hold in holds if hold[2]["id"] not in gone or hold[0] != gone[hold[2]["id"]].begin]
            assert self.rules is not None
            if self.rules.mode == "suspend":
                left += [(0, INFINITE, {**run.job, "cores": 0}, run.place) for run in gone.values()]
            return self.place(job, at, now, left)

        taken: list[int] = []
        for other in candidates:
            taken.append(other)
            if trial(taken) is not None:
                break
        else:
            return False
        for other in taken[-2::-1]:
            without = [each for each in taken if each != other]
            if trial(without) is not None:
                taken = without
        place = trial(taken)
        assert place is not None
        at = now + max(self.wait(self.running[other]) for other in taken)
        self.waiting.remove(job)
        self.plan.pop(job, None)
        self.claims[job] = Claim(self.by_id[job], at, place)
        for other in taken:
            self.order_to_leave(other, now)
        if self.plans:
            claim = self.claims.pop(job)
            self.claims[job] = claim
            self.anew(now)
        if at == now:
            del self.claims[job]
            self.waiting.append(job)
            self.begin(job, now, place)
            if self.plans:
                self.anew(now)
        return True

    def order_to_leave(self, job: int, now: int) -> None:
        """Tell a victim to leave; at once if it has no time left."""
        assert self.rules is not None
        run = self.running[job]
        if self.rules.mode == "suspend":
            self.stops[job] += 1
            run.asleep_since = now
            self.asleep[job] = self.running.pop(job)
            self.cut[job] = run.begin
            self.waiting.append(job)
            return
        run.leaves = now + self.wait(run)
        if self.rules.mode == "checkpoint" and run.job["interval"]:
            run.stops_working = now + self.rules.grace
        if run.leaves == now:
            self.waiting += self.depart(job, now)
