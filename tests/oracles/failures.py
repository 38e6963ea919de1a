"""Slow second implementation of list schedulers and conservative backfilling on nodes that are absent, by second.

It shares no code with gridsim. Times are whole seconds. A job is a dictionary with ``id``, ``submit``, ``estimate``,
``runtime``, ``tasks``, ``cores`` and ``memory`` of a task, and ``most`` tasks on a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Job = dict[str, Any]
Hold = tuple[int, float, Job, dict[int, int]]
"""Begin and end, the job, and its tasks by node."""


class Window(NamedTuple):
    """Nodes that are absent in an interval, known from an instant until it is deleted."""

    nodes: list[int]
    begin: int
    end: int
    announced: int
    deleted: float
    stops: bool


class Machine:
    """Nodes of (cores, memory) that are absent in some intervals, and what is known of their return."""

    def __init__(
        self,
        nodes: list[tuple[int, int]],
        failures: list[tuple[list[int], int, float]],
        announced: bool,
        windows: Sequence[Window] = (),
    ) -> None:
        self.nodes, self.failures, self.announced, self.windows = nodes, failures, announced, windows

    def known(self, now: int) -> list[Window]:
        """Return the windows that are known and not over."""
        return [it for it in self.windows if it.announced <= now < min(it.end, it.deleted)]

    def absent_until(self, node: int, now: int) -> float | None:
        """Return the known end of the present absence of a node; None if it is there."""
        end, began = None, [it for it in self.failures if node in it[0] and it[1] <= now]
        for _, down, up in sorted(began, key=lambda it: it[1]):
            end = max(end, up) if end is not None and down <= end else up
        if end is None or end <= now:
            return None
        return end if self.announced else float("inf")

    def place(self, job: Job, begin: int, now: int, holds: list[Hold]) -> dict[int, int] | None:
        """Return the tasks by node of a job from an instant on, first nodes first; None if it does not fit."""
        end, left, found = begin + job["estimate"], job["tasks"], {}
        for node, (cores, memory) in enumerate(self.nodes):
            until = self.absent_until(node, now)
            if until is not None and until > begin:
                continue
            if any(node in it.nodes and it.begin < end and begin < it.end for it in self.known(now)):
                continue
            there = [hold for hold in holds if node in hold[3]]
            fits = min(job["most"], left)
            for at in {begin, *(hold[0] for hold in there if begin < hold[0] < end)}:
                here = [(each, tasks[node]) for first, last, each, tasks in there if first <= at < last]
                for need, total, name in ((job["cores"], cores, "cores"), (job["memory"], memory, "memory")):
                    if need:
                        free = total - sum(each[name] * count for each, count in here)
                        fits = min(fits, max(0, free) // need)
            if fits:
                found[node], left = fits, left - fits
            if not left:
                return found
        return None

    def earliest(self, job: Job, now: int, holds: list[Hold]) -> tuple[int, dict[int, int]] | None:
        """Return the first start and place of a job; None if there is none as far as is known."""
        ends = {hold[1] for hold in holds} | {self.absent_until(node, now) or 0 for node in range(len(self.nodes))}
        ends |= {it.end for it in self.known(now)}
        for begin in sorted({now, *(int(end) for end in ends if now < end < float("inf"))}):
            place = self.place(job, begin, now, holds)
            if place is not None:
                return begin, place
        return None


class Simulation:
    """A run of ``fcfs``, ``first-fit``, ``easy``, ``depth`` (k) or ``conservative``."""

    def __init__(
        self, machine: Machine, jobs: list[Job], policy: str, *, k: int = 1, behind: bool = False, delay: int = 0
    ) -> None:
        self.machine, self.jobs, self.policy, self.behind, self.delay = machine, jobs, policy, behind, delay
        self.reservations = {"fcfs": 0, "first-fit": 0, "easy": 1, "depth": k}.get(policy, 0)
        self.coming = {job["id"]: job["submit"] for job in jobs}
        self.place_in_queue = {job["id"]: (job["submit"], job["submit"], job["id"]) for job in jobs}
        self.by_id = {job["id"]: job for job in jobs}
        self.waiting: list[int] = []
        self.running: dict[int, Hold] = {}
        self.runs: list[tuple[int, int, int, str, dict[int, int]]] = []
        self.plan: dict[int, tuple[float, dict[int, int]]] = {}
        self.cut: dict[int, int] = {}

    def run(self, last: int) -> list[tuple[int, int, int, str, dict[int, int]]]:
        """Return all runs: job, start, end, reason, tasks by node; by job and start."""
        for now in range(last):
            if not (self.coming or self.waiting or self.running):
                break
            self.second(now)
        assert not [*self.coming, *self.waiting, *self.running]
        return sorted(self.runs, key=lambda run: run[:2])

    def second(self, now: int) -> None:
        """Process one instant."""
        early = False
        for job in sorted(self.running):
            begin, expected, it, _ = self.running[job]
            if begin + min(it["runtime"], it["estimate"]) == now:
                early |= now < expected
                reason = "completed" if it["runtime"] <= it["estimate"] else "killed_walltime"
                self.end(job, now, reason)
        before = [self.machine.absent_until(node, now - 1) for node in range(len(self.machine.nodes))]
        ends = [self.machine.absent_until(node, now) for node in range(len(self.machine.nodes))]
        lost = {node for node, end in enumerate(ends) if end is not None and before[node] is None}
        changed = {node for node, end in enumerate(ends) if end is not None and before[node] not in (None, end)}
        back = any(was is not None and end is None for was, end in zip(before, ends, strict=True))
        hit = [job for job, hold in self.running.items() if lost & set(hold[3])]
        windows = self.machine.windows
        begins = [it for it in windows if it.stops and it.begin == now < it.deleted]
        away = {node for it in begins for node in it.nodes}
        cut = [job for job, hold in self.running.items() if away & set(hold[3]) and job not in hit]
        announced = any(it.announced == now for it in windows)
        back |= any(min(it.end, it.deleted) == now for it in windows)
        here = []
        for job in sorted([*hit, *cut], key=lambda job: (self.by_id[job]["submit"], job)):
            self.cut[job] = self.running[job][0]
            self.end(job, now, "failure" if job in hit else "maintenance")
            self.coming[job] = now + self.delay
            if self.behind:
                self.place_in_queue[job] = (now, self.by_id[job]["submit"], job)
                del self.cut[job]
            elif not self.delay:
                here.append(job)
        if self.policy == "conservative":
            if lost or changed or here or announced:
                self.anew(now, here)
            elif early or back or cut:
                self.compress(now)
        arrivals = [job for job, at in self.coming.items() if at == now]
        arrivals.sort(key=lambda job: self.place_in_queue[job])
        for job in arrivals:
            del self.coming[job]
            self.waiting.append(job)
            if self.policy == "conservative" and job not in here:
                if job in self.cut:
                    self.anew(now, [job])
                else:
                    self.enter(job, now)
        self.waiting.sort(key=lambda job: self.place_in_queue[job])
        if self.policy == "conservative":
            for job in [job for job in self.waiting if self.plan[job][0] == now]:
                self.start(job, now, self.plan.pop(job)[1])
        else:
            self.cycle(now)

    def end(self, job: int, now: int, reason: str) -> None:
        begin, _, _, place = self.running.pop(job)
        self.runs.append((job, begin, now, reason, place))

    def start(self, job: int, now: int, place: dict[int, int]) -> None:
        self.waiting.remove(job)
        self.cut.pop(job, None)
        self.running[job] = now, now + self.by_id[job]["estimate"], self.by_id[job], place

    def cycle(self, now: int) -> None:
        """Start what fits in queue order, with reservations for the first requests that do not fit."""
        reserved: list[Hold] = []
        for job in list(self.waiting):
            it, holds = self.by_id[job], [*self.running.values(), *reserved]
            place = self.machine.place(it, now, now, holds)
            if place is not None:
                self.start(job, now, place)
            elif self.policy == "fcfs":
                return
            elif len(reserved) < self.reservations and (found := self.machine.earliest(it, now, holds)):
                reserved.append((found[0], found[0] + it["estimate"], it, found[1]))

    def holds(self, but: int = 0) -> list[Hold]:
        planned = ((job, *it) for job, it in self.plan.items() if job != but and it[0] < float("inf"))
        return [
            *self.running.values(),
            *((int(at), at + self.by_id[job]["estimate"], self.by_id[job], place) for job, at, place in planned),
        ]

    def enter(self, job: int, now: int) -> None:
        self.plan[job] = self.machine.earliest(self.by_id[job], now, self.holds(job)) or (float("inf"), {})

    def order(self) -> list[int]:
        return sorted(self.plan, key=lambda job: (self.plan[job][0], self.place_in_queue[job]))

    def anew(self, now: int, first: list[int]) -> None:
        order = [*sorted(first, key=lambda job: (self.cut[job], self.place_in_queue[job])), *self.order()]
        self.plan = {}
        for job in order:
            self.enter(job, now)

    def compress(self, now: int) -> None:
        moved = True
        while moved:
            moved = False
            for job in self.order():
                found = self.machine.earliest(self.by_id[job], now, self.holds(job))
                if found is not None and found[0] < self.plan[job][0]:
                    self.plan[job], moved = found, True
