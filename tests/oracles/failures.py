"""Slow second implementation of list schedulers and conservative backfilling on nodes that are absent, by second.

It shares no code with gridsim. Times are whole seconds. A job is a dictionary with ``id``, ``submit``, ``estimate``,
``runtime``, ``tasks``, ``cores`` and ``memory`` of a task, and ``most`` tasks on a node; members of a reservation have
``reservation`` and ``user`` too. Each reservation has a queue, with its number; that of all other jobs is `COMMON`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Job = dict[str, Any]
Hold = tuple[int, float, Job, dict[int, int]]
"""Begin and end, the job, and its tasks by node."""


COMMON = -1


class Reservation(NamedTuple):
    """Nodes, or some cores of each, for the jobs of some users that name it."""

    name: str
    nodes: list[int]
    cores: int | None
    users: list[str]
    begin: int
    end: int
    announced: int
    deleted: float
    stops: bool

    @property
    def over(self) -> float:
        """Instant at which it ends or is deleted."""
        return min(self.end, self.deleted)

    def size(self, node: tuple[int, int]) -> tuple[int, int]:
        """Return the reserved cores and memory of a node."""
        return node if self.cores is None or self.cores >= node[0] else (self.cores, 0)


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
        reservations: Sequence[Reservation] = (),
    ) -> None:
        self.nodes, self.failures, self.announced, self.windows = nodes, failures, announced, windows
        self.reservations = reservations

    def known(self, now: int) -> list[Window]:
        """Return the windows that are known and not over."""
        return [it for it in self.windows if it.announced <= now < min(it.end, it.deleted)]

    def reserved(self, now: int) -> list[Reservation]:
        """Return the reservations that are known and not over."""
        return [it for it in self.reservations if it.announced <= now < it.over]

    def absent_until(self, node: int, now: int) -> float | None:
        """Return the known end of the present absence of a node; None if it is there."""
        end, began = None, [it for it in self.failures if node in it[0] and it[1] <= now]
        for _, down, up in sorted(began, key=lambda it: it[1]):
            end = max(end, up) if end is not None and down <= end else up
        if end is None or end <= now:
            return None
        return end if self.announced else float("inf")

    def free(
        self, node: int, at: int, now: int, holds: list[Hold], queue: int, others: Sequence[Hold]
    ) -> tuple[int, int]:
        """Return the free cores and memory of a node for a queue at an instant; *others* are runs of other queues."""
        own, foreign = (
            [
                sum(
                    each[name] * tasks[node]
                    for first, last, each, tasks in part
                    if node in tasks and first <= at < last
                )
                for name in ("cores", "memory")
            ]
            for part in (holds, others)
        )
        total = self.nodes[node]
        if queue == COMMON:
            taken = [it.size(total) for it in self.reserved(now) if node in it.nodes and it.begin <= at < it.end]
            if total in taken:
                return 0, 0
            cores, memory = (total[k] - own[k] - foreign[k] - sum(it[k] for it in taken) for k in (0, 1))
            return cores, memory
        there = self.reservations[queue]
        if node not in there.nodes or not there.begin <= at < there.end:
            return 0, 0
        size = there.size(total)
        cores, memory = (min(size[k] - own[k], total[k] - own[k] - foreign[k]) for k in (0, 1))
        return cores, memory

    def place(
        self,
        job: Job,
        begin: int,
        now: int,
        holds: list[Hold],
        queue: int = COMMON,
        others: Sequence[Hold] = (),
    ) -> dict[int, int] | None:
        """Return the tasks by node of a job from an instant on, first nodes first; None if it does not fit."""
        end, left, found = begin + job["estimate"], job["tasks"], {}
        times = {begin, end - 1, *(hold[0] for hold in holds), *(it.begin for it in self.reserved(now))}
        for node in range(len(self.nodes)):
            until = self.absent_until(node, now)
            if until is not None and until > begin:
                continue
            if any(node in it.nodes and it.begin < end and begin < it.end for it in self.known(now)):
                continue
            fits = min(job["most"], left)
            for at in times:
                if begin <= at < end:
                    cores, memory = self.free(node, at, now, holds, queue, others)
                    fits = min(fits, max(0, cores) // job["cores"])
                    if job["memory"]:
                        fits = min(fits, max(0, memory) // job["memory"])
            if fits:
                found[node], left = fits, left - fits
            if not left:
                return found
        return None

    def earliest(
        self, job: Job, now: int, holds: list[Hold], queue: int = COMMON, others: Sequence[Hold] = ()
    ) -> tuple[int, dict[int, int]] | None:
        """Return the first start and place of a job; None if there is none as far as is known."""
        ends = {hold[1] for hold in (*holds, *others)}
        ends |= {self.absent_until(node, now) or 0 for node in range(len(self.nodes))}
        ends |= {it.end for it in self.known(now)} | {it.end for it in self.reserved(now)}
        if queue != COMMON:
            ends.add(self.reservations[queue].begin)
        for begin in sorted({now, *(int(end) for end in ends if now < end < float("inf"))}):
            place = self.place(job, begin, now, holds, queue, others)
            if place is not None:
                return begin, place
        return None


class Simulation:
    """A run of ``fcfs``, ``first-fit``, ``easy``, ``depth`` (k) or ``conservative``."""

    def __init__(
        self, machine: Machine, jobs: list[Job], policy: str, *, k: int = 1, behind: bool = False, delay: int = 0
    ) -> None:
        self.machine, self.jobs, self.policy, self.behind, self.delay = machine, jobs, policy, behind, delay
        self.depth = {"fcfs": 0, "first-fit": 0, "easy": 1, "depth": k}.get(policy, 0)
        self.coming = {job["id"]: job["submit"] for job in jobs}
        self.place_in_queue = {job["id"]: (job["submit"], job["submit"], job["id"]) for job in jobs}
        self.by_id = {job["id"]: job for job in jobs}
        self.queues = [*range(len(machine.reservations)), COMMON]
        self.queue_of: dict[int, int] = {}
        self.waiting: dict[int, list[int]] = {queue: [] for queue in self.queues}
        self.running: dict[int, Hold] = {}
        self.runs: list[tuple[int, int, int, str, dict[int, int]]] = []
        self.plan: dict[int, dict[int, tuple[float, dict[int, int]]]] = {queue: {} for queue in self.queues}
        self.cut: dict[int, int] = {}
        self.rejected: set[int] = set()
        self.cancelled: set[int] = set()

    def run(self, last: int) -> list[tuple[int, int, int, str, dict[int, int]]]:
        """Return all runs: job, start, end, reason, tasks by node; by job and start."""
        for now in range(last):
            if not (self.coming or any(self.waiting.values()) or self.running):
                break
            self.second(now)
        assert not [*self.coming, *(job for queue in self.waiting.values() for job in queue), *self.running]
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
        cut = self.interrupt(lost, now)
        here = [job for job in cut if not self.delay and not self.behind]
        worse = lost | changed | {node for it in self.machine.windows if it.announced == now for node in it.nodes}
        back |= any(min(it.end, it.deleted) == now for it in self.machine.windows)
        self.close(now)
        for queue in self.queues if self.policy == "conservative" else ():
            there = range(len(ends)) if queue == COMMON else self.machine.reservations[queue].nodes
            mine = [job for job in here if self.queue_of[job] == queue and queue in self.open(now)]
            told = queue == COMMON and any(it.announced == now < it.over for it in self.machine.reservations)
            if worse & set(there) or mine or told:
                self.anew(queue, now, mine)
            elif early or back or cut or any(it.over == now for it in self.machine.reservations):
                self.compress(queue, now)
        self.arrive(now, here)
        for queue in self.open(now):
            self.waiting[queue].sort(key=lambda job: self.place_in_queue[job])
            if self.policy == "conservative":
                for job in [job for job in self.waiting[queue] if self.plan[queue][job][0] == now]:
                    self.start(job, now, self.plan[queue].pop(job)[1])
            else:
                self.cycle(queue, now)

    def interrupt(self, lost: set[int], now: int) -> list[int]:
        """Stop the runs on failed nodes, and of windows that begin; return their jobs."""
        reasons = {job: "failure" for job, hold in self.running.items() if lost & set(hold[3])}
        kinds = [("maintenance", it) for it in self.machine.windows]
        kinds += [("reservation", it) for it in self.machine.reservations]  # type: ignore[misc]  # both have these
        for reason, it in kinds:
            if it.stops and it.begin == now < it.deleted:
                for job, hold in self.running.items():
                    if set(it.nodes) & set(hold[3]):
                        reasons.setdefault(job, reason)
        for job, reason in reasons.items():
            self.cut[job] = self.running[job][0]
            self.end(job, now, reason)
            self.coming[job] = now + self.delay
            if self.behind:
                self.place_in_queue[job] = (now, self.by_id[job]["submit"], job)
                del self.cut[job]
        return list(reasons)

    def open(self, now: int) -> list[int]:
        """Return the queues of known reservations, then the common one."""
        there = self.machine.reservations
        return [queue for queue in self.queues if queue == COMMON or there[queue].announced <= now < there[queue].over]

    def close(self, now: int) -> None:
        """Cancel the waiting members of reservations that are over; plan the early ones of those announced now."""
        for queue, it in enumerate(self.machine.reservations):
            if it.over == now:
                self.cancelled |= set(self.waiting[queue])
                self.waiting[queue], self.plan[queue] = [], {}
            elif it.announced == now and self.policy == "conservative":
                for job in self.waiting[queue]:
                    self.enter(queue, job, now)

    def arrive(self, now: int, here: list[int]) -> None:
        """Queue the jobs that arrive or return, if their reservations admit them."""
        arrivals = [job for job, at in self.coming.items() if at == now]
        for job in sorted(arrivals, key=lambda job: self.place_in_queue[job]):
            del self.coming[job]
            if job not in self.queue_of and not self.admit(job, now):
                self.rejected.add(job)
                continue
            queue = self.queue_of[job]
            if queue != COMMON and self.machine.reservations[queue].over <= now:
                self.cancelled.add(job)
                continue
            self.waiting[queue].append(job)
            if self.policy == "conservative" and job not in here and queue in self.open(now):
                if job in self.cut:
                    self.anew(queue, now, [job])
                else:
                    self.enter(queue, job, now)

    def admit(self, job: int, now: int) -> bool:
        """Determine the queue of a job; False if its reservation does not admit it."""
        it, queue = self.by_id[job], COMMON
        if it.get("reservation"):
            named = [
                (each.announced, number)
                for number, each in enumerate(self.machine.reservations)
                if each.name == it["reservation"] and now < each.over
            ]
            if not named:
                return False
            queue = min(named)[1]
            there = self.machine.reservations[queue]
            alone = Machine(self.machine.nodes, [], False, (), self.machine.reservations)
            if it["user"] not in there.users:
                return False
            begin = max(now, there.begin)
            if begin + it["estimate"] > there.end or alone.place(it, begin, -1, [], queue) is None:
                return False
        self.queue_of[job] = queue
        return True

    def end(self, job: int, now: int, reason: str) -> None:
        begin, _, _, place = self.running.pop(job)
        self.runs.append((job, begin, now, reason, place))

    def start(self, job: int, now: int, place: dict[int, int]) -> None:
        self.waiting[self.queue_of[job]].remove(job)
        self.cut.pop(job, None)
        self.running[job] = now, now + self.by_id[job]["estimate"], self.by_id[job], place

    def own(self, queue: int) -> list[Hold]:
        """Return the runs of a queue."""
        return [hold for job, hold in self.running.items() if self.queue_of[job] == queue]

    def others(self, queue: int, now: int) -> list[Hold]:
        """Return the runs of other queues that a queue has to avoid: others avoid members inside their reservation."""
        found = [(self.queue_of[job], hold) for job, hold in self.running.items() if self.queue_of[job] != queue]
        return [hold for other, hold in found if queue != COMMON or other not in self.open(now)]

    def cycle(self, queue: int, now: int) -> None:
        """Start what fits in queue order, with reservations for the first requests that do not fit."""
        reserved: list[Hold] = []
        for job in list(self.waiting[queue]):
            it, holds, others = self.by_id[job], [*self.own(queue), *reserved], self.others(queue, now)
            place = self.machine.place(it, now, now, holds, queue, others)
            if place is not None:
                self.start(job, now, place)
            elif self.policy == "fcfs":
                return
            elif len(reserved) < self.depth and (found := self.machine.earliest(it, now, holds, queue, others)):
                reserved.append((found[0], found[0] + it["estimate"], it, found[1]))

    def holds(self, queue: int, but: int) -> list[Hold]:
        planned = ((job, *it) for job, it in self.plan[queue].items() if job != but and it[0] < float("inf"))
        return [
            *self.own(queue),
            *((int(at), at + self.by_id[job]["estimate"], self.by_id[job], place) for job, at, place in planned),
        ]

    def earliest(self, queue: int, job: int, now: int) -> tuple[int, dict[int, int]] | None:
        return self.machine.earliest(self.by_id[job], now, self.holds(queue, job), queue, self.others(queue, now))

    def enter(self, queue: int, job: int, now: int) -> None:
        self.plan[queue][job] = self.earliest(queue, job, now) or (float("inf"), {})

    def order(self, queue: int) -> list[int]:
        return sorted(self.plan[queue], key=lambda job: (self.plan[queue][job][0], self.place_in_queue[job]))

    def anew(self, queue: int, now: int, first: list[int]) -> None:
        order = [*sorted(first, key=lambda job: (self.cut[job], self.place_in_queue[job])), *self.order(queue)]
        self.plan[queue] = {}
        for job in order:
            self.enter(queue, job, now)

    def compress(self, queue: int, now: int) -> None:
        moved = True
        while moved:
            moved = False
            for job in self.order(queue):
                found = self.earliest(queue, job, now)
                if found is not None and found[0] < self.plan[queue][job][0]:
                    self.plan[queue][job], moved = found, True
