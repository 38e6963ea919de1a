"""The scheduler: its queue, its clock, the main scheduler cycle and the backfill cycle.

Sources: sched_config.html, slurm.conf(5) (``SchedulerParameters``), sbatch(1), reservations.html, preempt.html.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gridsim.model.site import Site, SitePartition
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import UNKNOWN_PARTITION, Entry, Job
from tests.oracles.slurm.limits import licences_free, may_come, may_run, uses_will_be_forgotten
from tests.oracles.slurm.nodes import Held, Pieces, left_by, select
from tests.oracles.slurm.plan import Plan
from tests.oracles.slurm.preemption import anybody_may, could_preempt, fate_of, goes_before, victims_of
from tests.oracles.slurm.priority import Use, fair_shares, in_order, priority_of
from tests.oracles.slurm.reservations import Books
from tests.oracles.slurm.tres import Used, billed

__all__ = ["Decision", "Scheduler"]

SECOND = 1_000_000

LATER = SECOND // 4
"""Delay of the priority calculation after the backfill cycle of the same second, on a real Slurm 22.05."""

GROUP = 30 * SECOND
"""Running jobs with ends within this time form the first group; ends are rounded down to it."""


class Stop(NamedTuple):
    """A preempted running entry: whether its job is requeued, and the job that preempted it."""

    held: Held
    again: bool
    taker: Job | None


class Decision(NamedTuple):
    """Cancelled waiting jobs, preempted running jobs, and entries that start."""

    withdrawn: list[Job]
    stops: list[Stop]
    starts: list[Held]


class Scheduler:
    """Slurm's scheduler; events are passed to it in order of time, as whole microseconds."""

    def __init__(self, jobs: Iterable[Job], site: Site, boot: int) -> None:
        self.site, self.scheduling, self.boot = site, site.scheduling, boot
        self.jobs = list(jobs)
        self.by_number = {job.number: job for job in self.jobs}
        self.books = Books(site)
        self.running: list[Held] = []  # by expected end
        self.queue: list[Entry] = []
        self.inside: list[Job] = []  # submitted jobs that are not over
        self.later: list[tuple[int, int, Job]] = []  # jobs that can run from an instant on
        self.withdrawals: list[tuple[int, int, Job]] = []
        self.followers: dict[Job, list[Job]] = {}
        self.uses: list[Use] = []
        self.known = [_who(entry) for job in self.jobs for entry in job.entries]
        self.preempting = anybody_may(site)
        self.exempt: list[int] = []  # ends of the exemption from preemption
        self.first = self.calculated = self._last_calculation(0)
        self.shares = fair_shares(site, self.known, (), self.first, self.first)
        self.quick, self.last_quick = NEVER, -NEVER  # when the main scheduler cycle is due, and when it last ran
        self.news_for_all = self.news_for_backfill = False
        self.stops: list[Stop] = []
        self.moved = 0  # last time that a job entered or left the queue, or a reservation ended

    # -- events ------------------------------------------------------------------------------------------------------

    def submit(self, job: Job, now: int) -> bool:
        """Submit a job; return whether it is accepted."""
        self._calculate(now)
        possible = self._possible(job, now)
        others = [other.chosen[0] for other in self.inside]
        if not possible or not may_come(possible[0], self.site, others):
            return False
        job.chosen, job.came = possible, now
        self.inside.append(job)
        for name in _reservations(job):
            self.books.ask(name, job)
        if job.numbers.get("withdrawn", -1) >= 0:
            self.withdrawals.append((now + job.numbers["withdrawn"] * SECOND, job.row, job))
        self._release(job, now)
        return True

    def over(self, job: Job, now: int) -> bool:
        """Record that a job is over or rejected, and release its dependent jobs; return whether there were any."""
        job.over = True
        self.moved = now
        waited = [follower for follower in self.followers.pop(job, []) if not follower.over]
        for follower in waited:
            self._release(follower, now)
        return bool(waited)

    def ended(self, held: Held, now: int) -> None:
        """Release the cores of an ended entry."""
        self._calculate(now)
        self._give_back(held, now)
        self._out(held.entry.job, now)
        self._freed(now)

    def decide(self, now: int, *, alone: bool = False) -> Decision:
        """Run the cycles that are due; *alone* if no job runs and none will be submitted."""
        self._calculate(now)
        self.stops = []
        withdrawn = self._leave(now)
        if alone and not withdrawn:
            withdrawn = self._lose_first(now)
        self._end_grace(now)
        for at, row, job in sorted(each for each in self.later if each[0] <= now):
            self.later.remove((at, row, job))
            if not job.over:
                self._join(job, now)
                self._at_once(now)
        if any(at <= now for at in self.exempt):
            self.exempt = [at for at in self.exempt if at > now]
            self._news()
        starts = []
        full = self.news_for_all and self._on_the_clock(now, self.scheduling.full_interval)
        if full or (self.quick <= now and now >= self.last_quick + self.scheduling.least_interval):
            starts += self._main_pass(now, 0 if full else self.scheduling.queue_depth)
        if self.scheduling.backfill and self.news_for_backfill and self._on_the_clock(now, self.scheduling.interval):
            self.news_for_backfill = False
            starts += self._backfill_pass(now)
        return Decision(withdrawn, self.stops, starts)

    def wake(self, now: int) -> int:
        """Return the next instant at which the state could change without further events."""
        times = [at for at, *_ in (*self.later, *self.withdrawals)] + [held.leaves for held in self.running]
        if self.queue:
            times += [self.calculated + max(self.site.priority.period, 1), self.books.change, *self.exempt]
            if self.quick < NEVER:
                times.append(max(self.quick, self.last_quick + self.scheduling.least_interval))
            if self.news_for_backfill and self.scheduling.backfill:
                times.append(self._next_tick(now, self.scheduling.interval))
            if self.news_for_all:
                times.append(self._next_tick(now, self.scheduling.full_interval))
        if any(self.books.asking.values()):
            times.append(self.books.change)
        return max(min(times, default=NEVER), now + 1)

    # -- the clock ---------------------------------------------------------------------------------------------------

    def _on_the_clock(self, now: int, period: int) -> bool:
        return (now - self.boot) % max(period, 1) == 0

    def _next_tick(self, now: int, period: int) -> int:
        return now + max(period, 1) - (now - self.boot) % max(period, 1)

    def _news(self) -> None:
        """Mark that the periodic cycles have new work."""
        self.news_for_all = self.news_for_backfill = True

    def _freed(self, now: int) -> None:
        """Schedule the main scheduler cycle at once, since resources became free."""
        self._at_once(now)
        self._news()

    def _at_once(self, now: int) -> None:
        self._pass_over_nobody(now)
        self.quick = min(self.quick, now)

    def _pass_over_nobody(self, now: int) -> None:
        """Mark that a main scheduler cycle that was due found an empty queue."""
        due = max(self.quick, self.last_quick + self.scheduling.least_interval)
        if due < now:
            self.quick, self.last_quick = NEVER, due

    def _last_calculation(self, now: int) -> int:
        origin, period = self.boot + LATER, max(self.site.priority.period, 1)
        return now - (now - origin) % period

    def _calculate(self, now: int) -> None:
        """Recalculate priorities once in a ``PriorityCalcPeriod``."""
        at = self._last_calculation(now)
        if at <= self.calculated:
            return
        held = self._forgets()
        self.calculated = at
        if held and not self._forgets():
            self.moved = now
        self.shares = fair_shares(self.site, self.known, self.uses, self.first, at)
        for entry in self.queue:
            entry.priority = self._priority(entry, at)
        if self.queue:
            self._news()

    def _priority(self, entry: Entry, at: int) -> int:
        return priority_of(entry, self.site, self.shares[_who(entry)], at)

    # -- submission --------------------------------------------------------------------------------------------------

    def _possible(self, job: Job, now: int) -> list[Entry]:
        """Return entries in which a job could start; one that only waits for a reservation to end keeps it."""
        welcome = [entry for entry in job.entries if self._welcome(entry)]
        found = [entry for entry in welcome if self._could(entry, now)]
        if all(entry.waits for entry in found):
            asking = [entry for entry in welcome if not entry.waits]
            return asking + found if asking and found else []
        return found

    def _welcome(self, entry: Entry) -> bool:
        """Return whether a partition accepts an entry whose limits would ever let it start."""
        partition = entry.partition
        most_memory = self.site.most_memory if partition.most_memory is None else partition.most_memory
        return (
            entry.reservation != UNKNOWN_PARTITION
            and entry.reservation not in self.books.over
            and partition.state == "UP"
            and (bool(entry.reservation) or not partition.needs_reservation)
            and entry.account in partition.accounts
            and entry.qos in partition.levels
            and self._in_a_group(entry)
            and self._associated(entry)
            and entry.limit <= partition.longest
            and not (self.site.memory and most_memory and entry.node_memory > most_memory)
            and may_run(entry, self.site, ())
            and licences_free(entry, self.site, ())
        )

    def _in_a_group(self, entry: Entry) -> bool:
        """Return whether the user is in a permitted group (``AllowGroups``), if groups are known."""
        members = self.site.members
        if not entry.partition.groups or members is None or entry.user == "root":
            return True
        return entry.user in {user for group in entry.partition.groups for user in members.get(group, ())}

    def _associated(self, entry: Entry) -> bool:
        """Return whether the user has an association with the account, if the site enforces and lists associations."""
        users = [(each.account, each.user) for each in self.site.associations if each.user]
        if not self.site.associations_only or not users or entry.user in ("", "root"):
            return True
        return (entry.account, entry.user) in users

    def _could(self, entry: Entry, now: int) -> bool:
        """Return whether an entry could start at any instant from now on, on empty nodes."""
        allowed = entry.partition.most_nodes
        if allowed and entry.nodes > allowed:
            return False
        empty = left_by(self.site, ())
        return any(
            select(entry, self.site, empty, *self.books.open(entry, at, at, at + entry.limit, ())) is not None
            for at in self.books.openings(now)
        )

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _release(self, job: Job, now: int) -> None:
        """Add a job to the queue, unless a dependency or its begin time delays it."""
        on = self.by_number.get(job.numbers.get("after", -1)) if job.numbers.get("after", -1) >= 0 else None
        begin = job.numbers.get("begin", -1)
        if on is not None and not on.over and on is not job:
            self.followers.setdefault(on, []).append(job)
        elif begin > 0 and job.submit + begin * SECOND > now:
            self.later.append((job.submit + begin * SECOND, job.row, job))
        else:
            self._join(job, now)
            if not self.scheduling.defer:
                # "How long the scheduling of batch jobs can be delayed": since the last main cycle, in whole seconds.
                self._pass_over_nobody(now)
                tick = now + (self.boot - now) % SECOND
                self.quick = min(self.quick, max(tick, self.last_quick + self.scheduling.batch_delay))

    def _join(self, job: Job, now: int) -> None:
        for entry in job.chosen:
            if not entry.waits:
                self._enter(entry, now)

    def _enter(self, entry: Entry, now: int) -> None:
        """Let an entry accrue age from now on, from the start of its reservation, or always with ``ACCRUE_ALWAYS``."""
        accrues = self.site.priority.always_accrue and not entry.job.requeued
        entry.since = entry.job.submit if accrues else max(now, self.books.begins(entry.reservation))
        entry.priority = self._priority(entry, now)
        self.queue.append(entry)
        self.moved = now
        self._news()

    def _ordered(self) -> list[Entry]:
        return in_order(self.queue, lambda one, other: goes_before(one, other, self.site))

    def _runs(self, job: Job) -> bool:
        return any(held.entry.job is job for held in self.running)

    def _out(self, job: Job, now: int) -> None:
        """Remove an accepted job that is over."""
        self.inside.remove(job)
        for name in _reservations(job):
            self.books.leave(name, job, now)
        self.over(job, now)

    def _leave(self, now: int) -> list[Job]:
        """Return waiting jobs that are cancelled: jobs that can never run, and jobs withdrawn by their users."""
        found = [job for job in self._lost(now) if self._drop(job, now)]
        for each in sorted(each for each in self.withdrawals if each[0] <= now):
            self.withdrawals.remove(each)
            if self._drop(each[2], now):
                found.append(each[2])
        return found

    def _lose_first(self, now: int) -> list[Job]:
        """Cancel the first job in the queue if no scheduling cycle would ever start it.

        This holds when all patterns of reservations have occurred, and no job accrues age.
        """
        if self.later or self.withdrawals or not self.queue:
            return []
        if now < self.books.seen_all(self.moved) + max(self.site.priority.oldest, self.scheduling.least_age):
            return []
        if self._forgets():
            return []
        first = self._ordered()[0].job
        return [first] if self._drop(first, now) else []

    def _drop(self, job: Job, now: int) -> bool:
        """Cancel a job if it waits."""
        if job.over or self._runs(job):
            return False
        self.queue = [entry for entry in self.queue if entry.job is not job]
        self._out(job, now)
        self._freed(now)
        return True

    def _lost(self, now: int) -> list[Job]:
        """Return jobs without eligible nodes after a reservation begins or ends."""
        if now < self.books.change:
            return []
        asking = {name: [job for job in self.inside if name in _reservations(job)] for name in self.books.names}
        lost = []
        for name in self.books.turn(now):
            self.moved = now
            for job in asking[name]:
                if not self._runs(job) and not self._without(job, name, now):
                    lost.append(job)
        self._freed(now)
        for job in dict.fromkeys(entry.job for entry in self._ordered()):
            if job not in lost and not any(self._could(entry, now) for entry in job.chosen):
                lost.append(job)
        return lost

    def _without(self, job: Job, name: str, now: int) -> bool:
        """Drop a reservation from the entries of a job; return whether the job could still start."""
        before = job.chosen
        job.chosen = [entry for entry in before if entry.reservation != name]
        self.books.leave(name, job, now)
        waited = any(entry in self.queue for entry in before)
        self.queue = [entry for entry in self.queue if entry in job.chosen or entry.job is not job]
        if all(entry.waits for entry in job.chosen):
            for entry in job.chosen:
                entry.waits = False
                if waited:
                    self._enter(entry, now)
        return bool(job.chosen)

    # -- allocation and release --------------------------------------------------------------------------------------

    def _await(self, held: Held, expected: int) -> None:
        """Insert a running entry by its expected end."""
        self.running = [other for other in self.running if other is not held]
        held.expected = expected
        self.running = sorted([*self.running, held], key=lambda other: other.expected)

    def _take(self, entry: Entry, pieces: Pieces, now: int) -> Held:
        held = Held(entry, now, now + entry.limit, pieces)
        self._await(held, held.expected)
        return held

    def _give_back(self, held: Held, now: int) -> None:
        self.running = [other for other in self.running if other is not held]
        for use in self.uses:
            if use.held is held:
                use.end = now

    def _begun(self, started: list[Held], now: int) -> list[Held]:
        """Start entries: their jobs leave the queue, and their use counts."""
        self.queue = [entry for entry in self.queue if not self._runs(entry.job)]
        factors = {each.name: each.usage_factor for each in self.site.qos}
        for held in started:
            cores = billed(held, self.site) * factors.get(held.entry.qos, 1.0)
            self.uses.append(Use(_who(held.entry), cores, held, now))
            exempt = fate_of(held.entry, self.site).exempt
            if self.preempting and exempt > 0:
                self.exempt.append(now + exempt)
        return started

    def _stop(self, held: Held, now: int) -> None:
        """Preempt a running entry: its job is requeued or cancelled."""
        self._give_back(held, now)
        job, again = held.entry.job, fate_of(held.entry, self.site).mode == "REQUEUE"
        self.stops.append(Stop(held, again, held.taker))
        if again:
            job.requeued, job.came = True, now
            self.later.append((now + self.site.preemption.delay, job.row, job))
        else:
            self._out(job, now)
        self._freed(now)

    def _end_grace(self, now: int) -> None:
        """Stop entries whose grace period is over."""
        for held in [held for held in self.running if held.leaves <= now]:
            self._stop(held, now)

    def _tell(self, victims: list[Held], taker: Job, now: int) -> None:
        """Start the grace period of entries to preempt."""
        for held in victims:
            if held.leaves >= NEVER:
                held.taker, held.leaves = taker, now + fate_of(held.entry, self.site).grace
                self._await(held, min(held.expected, held.leaves))

    # -- main scheduler cycle ----------------------------------------------------------------------------------------

    def _may_run(self, entry: Entry) -> bool:
        return may_run(entry, self.site, self.running, self._used())

    def _forgets(self) -> bool:
        """Return whether use that blocks an entry, or could block one, will still decay."""
        known = (entry for job in self.jobs for entry in job.entries)
        return uses_will_be_forgotten(self.site, self._used(), known)

    def _used(self) -> Used:
        runs = [(use.held, use.begin, use.end) for use in self.uses]
        return Used(self.site, runs, self.first, self.calculated)

    def _reserves(self, entry: Entry, now: int) -> bool:
        """Return whether an entry may delay others (``bf_min_age_reserve``, ``bf_min_prio_reserve``)."""
        scheduling = self.scheduling
        if not scheduling.least_age and not scheduling.least_priority:
            return True
        return now - entry.since >= scheduling.least_age and entry.priority >= scheduling.least_priority

    def _main_pass(self, now: int, depth: int) -> list[Held]:
        """Start entries in order, down to *depth* (0: all).

        "Once any job in a partition is left pending, no other jobs in that partition will be scheduled", nor others on
        its nodes; except if the job itself lacks nodes of a blocked partition.
        """
        self.quick, self.last_quick = NEVER, now
        order = self._ordered()
        self.news_for_all = self.news_for_all and 0 < depth < len(order)
        blocked: set[tuple[str, str]] = set()
        shut: set[int] = set()
        looked, tested, started, gone = 0, Counter[str](), list[Held](), list[Held]()
        for entry in order:
            if 0 < depth <= looked:
                break
            if self._runs(entry.job) or entry.lane in blocked:
                continue
            looked += 1
            tested[entry.partition.name] += 1
            if 0 < self.scheduling.partition_depth < tested[entry.partition.name]:
                continue
            held_back = not self._may_run(entry)
            licensed = licences_free(entry, self.site, self.running)
            if (held_back and not self.scheduling.stop_at_limit) or (not held_back and not licensed):
                continue
            pieces = None if held_back else self._fit_now(entry, now, shut, gone)
            if pieces is not None:
                started.append(self._take(entry, pieces, now))
            elif self._reserves(entry, now) and (held_back or not self._lacks_shut_nodes(entry, now, shut)):
                blocked.add(entry.lane)
                if not entry.reservation:
                    shut |= self._nodes_of(entry.partition)
        for held in gone:
            self._stop(held, now)
        return self._begun(started, now)

    def _nodes_of(self, partition: SitePartition) -> set[int]:
        return {place for place, node in enumerate(self.site.nodes) if node.name in partition.nodes}

    def _lacks_shut_nodes(self, entry: Entry, now: int, shut: set[int]) -> bool:
        """Return whether an entry that does not fit lacks nodes of blocked partitions and so blocks none itself.

        Either its partition has too few nodes left; or the entry would not fit on these even if they were empty, but
        would fit on all nodes of the partition, and none of those left is closed to it (only without preemption).
        """
        if not self.books.in_time(entry, now):
            return False
        if len(self._nodes_of(entry.partition) - shut) < max(entry.nodes, 1):
            return True
        left = {node for node, member in enumerate(entry.members) if member} - shut
        alone = [held for held in self.running if entry.exclusive or held.entry.exclusive]
        if not self.preempting and any(left & held.nodes for held in alone):
            return False
        most, kept = self.books.open(entry, now, now, now + entry.limit, self.running)
        remaining = [cores if node in left else 0 for node, cores in enumerate(most)]
        empty = left_by(self.site, ())
        return (
            select(entry, self.site, empty, most, kept) is not None
            and select(entry, self.site, empty, remaining, kept) is None
        )

    def _fit_now(self, entry: Entry, now: int, shut: set[int], gone: list[Held]) -> Pieces | None:
        """Return the allocation of an entry now; entries that it preempts without grace are *gone*."""
        most, kept = self.books.open(entry, now, now, now + entry.limit, self.running)
        most = [0 if node in shut else cores for node, cores in enumerate(most)]
        pieces = select(entry, self.site, left_by(self.site, self.running), most, kept)
        if pieces is not None:
            return pieces
        found = victims_of(entry, now, self.site, self.running, most, kept)
        if found is None:
            return None
        pieces, victims = found
        wait = any(held.leaves < NEVER or fate_of(held.entry, self.site).grace > 0 for held in victims)
        for held in victims:
            if held.leaves >= NEVER and fate_of(held.entry, self.site).grace <= 0:
                held.taker = entry.job
                self.running.remove(held)
                gone.append(held)
        self._tell([held for held in victims if held not in gone], entry.job, now)
        return None if wait else pieces

    # -- backfill cycle ----------------------------------------------------------------------------------------------

    def _down(self, time: int, step: int) -> int:
        return time - time % step

    def _rounded(self, time: int) -> int:
        """Return a time rounded down to ``bf_resolution``."""
        return self._down(time, max(self.scheduling.resolution, 1))

    def _backfill_pass(self, now: int) -> list[Held]:
        """Start each entry in order, or reserve its whole nodes from its expected start."""
        scheduling, plan = self.scheduling, Plan(self._rounded(now))
        order = self._ordered()
        resolution = max(scheduling.resolution, 1)
        tested, reserved, started = Counter[tuple[str, ...]](), Counter[tuple[object, ...]](), list[Held]()
        for entry in order[: scheduling.tests or None]:
            if self._runs(entry.job) or not self._may_run(entry) or not self.books.in_time(entry, now):
                continue
            if not licences_free(entry, self.site, self.running):
                continue
            if not self._tests(entry, tested):
                continue
            found = self._expected(entry, now, plan)
            if found is None:
                continue
            start, pieces, preempting = found
            if start == now and not preempting:
                started.append(self._take(entry, pieces, now))
                if 0 < scheduling.starts <= len(started):
                    break
                continue
            if not preempting and not self._plans(entry, now, reserved):
                continue
            begin = self._rounded(start)
            plan.add(begin, max(self._rounded(start + entry.limit), begin + resolution), pieces)
        started = self._begun(started, now)
        self._end_grace(now)
        return started

    def _tests(self, entry: Entry, tested: Counter[tuple[str, ...]]) -> bool:
        """Return whether an entry is examined: ``bf_max_job_user``, ``…_assoc``, ``…_part`` and ``…_user_part``."""
        scheduling, partition = self.scheduling, entry.partition.name
        counted = {
            ("user", entry.user): scheduling.user_tests,
            ("association", entry.account, entry.user): scheduling.association_tests,
            ("partition", partition): scheduling.partition_tests,
            ("both", entry.user, partition): scheduling.both_tests,
        }
        tested.update(counted.keys())
        return all(not most or tested[key] <= most for key, most in counted.items())

    def _plans(self, entry: Entry, now: int, reserved: Counter[tuple[object, ...]]) -> bool:
        """Return whether nodes are planned for an entry that does not start, in addition to those planned already."""
        scheduling, job, array = self.scheduling, entry.job, entry.job.numbers.get("array", -1)
        if not self._reserves(entry, now):
            return False
        if scheduling.once and reserved["job", job]:
            return False
        if array >= 0 and reserved["array", array] >= scheduling.array_reserves:
            return False
        if 0 < scheduling.partition_reserves <= reserved["partition", entry.partition.name]:
            return False
        reserved.update([("job", job), ("array", array), ("partition", entry.partition.name)])
        return True

    def _expected(self, entry: Entry, now: int, plan: Plan) -> tuple[int, Pieces, bool] | None:
        """Return expected start and allocation of an entry, and whether it preempts others; None: not planned."""
        start = now
        while start < NEVER and start - now <= self.scheduling.window:
            until = start + entry.limit
            most, kept = self.books.open(entry, now, start, until, self.running)
            planned = plan.nodes(start, until)
            most = [0 if node in planned else cores for node, cores in enumerate(most)]
            if start == now:
                pieces = select(entry, self.site, left_by(self.site, self.running), most, kept)
                if pieces is not None:
                    return now, pieces, False
                found = victims_of(entry, now, self.site, self.running, most, kept)
                if found is not None:
                    self._tell(found[1], entry.job, now)
                    return now, found[0], True
            change = self.books.next_change(start)
            if change < NEVER:
                change = self._rounded(change + max(self.scheduling.resolution, 1) - 1)
            following = min(change, plan.next_opening(start, until, entry.members))
            pieces, when = self._first_fit(entry, now, start, following, most, kept)
            if pieces is None:
                start = following
            elif when <= start or plan.is_clear(when, self._rounded(when + entry.limit), pieces):
                return max(when, start), pieces, False
            else:
                start = when
        return None

    def _first_fit(
        self, entry: Entry, now: int, start: int, until: int, most: list[int], kept: list[int]
    ) -> tuple[Pieces | None, int]:
        """Return allocation and start of an entry as running ones end, tested after groups of ends up to *until*.

        Entries that it may preempt are removed first. A group is an end and all ends within 30 s of it, three times,
        then within 60 s, 120 s and so on, or as ``bf_window_linear`` defines. The end that closes a group is rounded
        down to 30 s. If that end is on other nodes, the entry is not tested.
        """
        staying = [held for held in self.running if not could_preempt(entry, held, now, self.site)]
        others = list(staying)

        def fit() -> Pieces | None:
            return select(entry, self.site, left_by(self.site, others), most, kept)

        if start > now and (pieces := fit()) is not None:
            return pieces, now
        span, groups, opened, when = GROUP, 0, NEVER, now
        for held in staying:
            if not any(most[node] for node in held.pieces):
                continue
            ends = self._whole(held, now)
            if ends > until or ends - now > self.scheduling.window:
                return None, NEVER
            others.remove(held)
            opened, when = min(opened, ends), ends
            place = self.running.index(held) + 1
            if place < len(self.running):
                following = self._down(self._whole(self.running[place], now), GROUP)
                if following - opened <= span:
                    continue
            if (pieces := fit()) is not None:
                return pieces, when
            opened, groups = NEVER, groups + 1
            if groups > 2:
                span = span + self.scheduling.linear if self.scheduling.linear > 0 else 2 * span
        return (fit(), when) if opened < NEVER else (None, NEVER)

    def _whole(self, held: Held, now: int) -> int:
        """Return when a running entry reaches its limit, as Slurm stores it: in whole seconds, and in the future."""
        return max(held.expected // SECOND * SECOND, now + 1)


def _who(entry: Entry) -> tuple[str, str]:
    return entry.account, entry.user or "nobody"


def _reservations(job: Job) -> set[str]:
    return {entry.reservation for entry in job.chosen if entry.reservation}
