"""A Slurm-like scheduler: multifactor priority, a quick pass after events, backfill by the clock, nodes with cores.

What is modelled and what is not is told in the documentation (background, Slurm); each part names its source.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.site import Site
from gridsim.model.site_file import Clock, read_reservations, read_site
from gridsim.model.time import NEVER, IntArray, of_whole_seconds
from gridsim.policy.protocols import Quote, Stop
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.slurm.backfill import backfill_pass
from gridsim.policy.slurm.bookings import Bookings
from gridsim.policy.slurm.closed import closed_of
from gridsim.policy.slurm.entries import entries_of, label_of, owners_of
from gridsim.policy.slurm.expected import Look
from gridsim.policy.slurm.holding import held_by, release
from gridsim.policy.slurm.intake import Intake
from gridsim.policy.slurm.limits import limits_of
from gridsim.policy.slurm.needs import SECOND, asks_of, machine_of, rows_of_numbers
from gridsim.policy.slurm.passes import main_pass
from gridsim.policy.slurm.preemption import REQUEUE, rules_of
from gridsim.policy.slurm.standing import Standing

__all__ = ["Slurm"]

LATER = SECOND // 4
"""Priorities are made so much later than the backfill pass of the same second, on a real Slurm 22.05."""

ENDLESS = 1000
"""How often one job is preempted, with no job that comes or ends meanwhile, until it is taken to go on so for ever."""

NOBODY: IntArray = np.zeros(0, dtype=np.int64)


@dataclass
class Slurm:
    """What Slurm's own scheduler would do, as far as its documentation says.

    Parameters
    ----------
    conf : str
        The site's ``slurm.conf``.
    assoc, qos, usage : str or None
        What ``sacctmgr dump`` (or ``show assoc tree``), ``sacctmgr -P show qos`` and ``sshare -alP`` printed; everybody
        has equal shares, nobody limits, nobody used anything where left out.
    reservations : str or None
        What ``scontrol show reservation`` or ``sacctmgr -P show reservation`` printed; needs *epoch*.
    boot : float, str or None
        Instant from which the periods of the scheduler are counted (``BOOT_TIME`` in ``scontrol show config``): s of
        the simulation, may be negative, or a date, which needs *epoch*. Where left out, 0; on logs of whole seconds
        half a second before: what a log says of a second happened within it, not at its beginning.
    more_nodes : int
        Nodes added to those of the configuration, like the commonest of the default partition
        (`gridsim.model.site.Site.with_nodes`); below 0, taken away.
    epoch : float or None
        Unix time at which the simulation's clock is 0, s.
    timezone : str or None
        Zone of dates, such as ``Europe/Berlin``; UTC where left out.
    site : Site or None
        The site itself, instead of files.

    Notes
    -----
    Jobs say what they need by the labels of `gridsim.model.site.LABELS`. Times at which jobs start are those of the
    scheduler: no time passes between a decision and a start.
    """

    conf: str | None = None
    assoc: str | None = None
    qos: str | None = None
    usage: str | None = None
    reservations: str | None = None
    boot: float | str | None = None
    more_nodes: int = 0
    epoch: float | None = None
    timezone: str | None = None
    site: Site | None = None
    source: ClassVar[str] = "slurm.schedmd.com: sched_config, priority_multifactor, fair_tree, cons_tres, preempt"

    def __post_init__(self) -> None:
        if self.site is None:
            if self.conf is None:
                raise InputError("is not given; slurm?conf=slurm.conf&assoc=assoc.cfg is needed", field="conf")
            self.site = read_site(self.conf, assoc=self.assoc, qos=self.qos, usage=self.usage)
        if self.reservations is not None and not Path(self.reservations).is_file():
            raise InputError("no such file; expected what 'scontrol show reservation' printed", path=self.reservations)

    def __repr__(self) -> str:
        names = ("conf", "assoc", "qos", "usage", "reservations", "epoch", "timezone")
        told = [f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None]
        told = told or ["site=…"]
        if self.boot is not None:
            told.append(f"boot={self.boot!r}" if isinstance(self.boot, str) else f"boot={self.boot:g}")
        return f"Slurm({', '.join([*told, *([f'more_nodes={self.more_nodes}'] if self.more_nodes else [])])})"

    # -- beginning ---------------------------------------------------------------------------------------------------

    def resolved(self) -> Site:
        """The site with its reservations, and with more nodes where that is asked for.

        Raises
        ------
        InputError
            When reservations have dates and nobody said when the simulation begins.
        """
        assert self.site is not None
        if self.reservations is None:
            return self.site.with_nodes(self.more_nodes)
        clock = Clock(self.epoch, self.timezone)
        found, more = read_reservations(self.reservations, self.site.nodes, clock)
        ignored = Counter(self.site.ignored) + more
        site = replace(self.site, reservations=(*self.site.reservations, *found), ignored=dict(ignored))
        return site.with_nodes(self.more_nodes)

    def machine(self) -> Platform:
        """The machine that its nodes make, one cluster."""
        assert self.site is not None
        return self.site.with_nodes(self.more_nodes).platform()

    @property
    def node_cores(self) -> int:
        """Cores of a node by which the machine grows."""
        assert self.site is not None
        return self.site.usual_node.cores

    def sized(self, cores: float) -> Slurm:
        """The same with as many more or fewer nodes as it takes for about so many cores."""
        assert self.site is not None
        now = self.site.with_nodes(self.more_nodes)
        return replace(self, more_nodes=self.more_nodes + now.nodes_to(cores))

    def _booted(self, requests: Requests) -> int:
        """The boot, whole microseconds of the simulation."""
        if self.boot is None:
            return -SECOND // 2 if of_whole_seconds(requests.submit) else 0
        if not isinstance(self.boot, str):
            return round(self.boot * SECOND)
        return Clock(self.epoch, self.timezone).instant(self.boot, field="boot")

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run.

        Raises
        ------
        InputError
            When the cluster has other cores than the nodes of the site together.
        """
        site = self.resolved()
        if cluster.cores != site.cores:
            why = f"has {cluster.cores} cores; the nodes of the site have {site.cores} (more_nodes=1 adds one)"
            raise InputError(why, field="cluster")
        requests = cluster.requests
        self._site, self._requests, self._boot = site, requests, self._booted(requests)
        self._entries = entries_of(requests, site)
        owners = owners_of(requests, site, self._entries)
        self._asks = asks_of(requests, site, owners, self._entries)
        self._standing = Standing(requests, site, owners, self._asks, self._boot + LATER)
        self._machine = machine_of(site, requests, self._asks)
        self._limits = limits_of(site, owners)
        self._held = held_by(self._asks, len(site.nodes))
        self._closed = closed_of(site)
        self._bookings = Bookings(site, self._closed)
        requeue = label_of(requests, "requeue")[self._entries.request]
        self._rules = rules_of(site, owners, self._asks, requeue)
        self._standing.preempting(self._rules.may, self._rules.own["kind"])
        self._intake = Intake(site, owners, self._entries, self._asks, self._machine, self._limits, self._closed)
        look = site.scheduling
        limits = (look.tests, look.user_tests, look.partition_tests, look.association_tests, look.starts)
        more = (look.both_tests, look.linear, look.array_reserves, look.partition_reserves, look.once)
        origin = -round((self.epoch or 0) * SECOND) % max(look.resolution, 1)
        self._look = Look(max(look.resolution, 1), origin, look.window, *limits, *more)
        shapes = max(int(self._asks["form"].max(initial=0)), int(self._asks["kind"].max(initial=0))) + 1
        self._fits, self._soonest = np.zeros(shapes, dtype=np.int64), np.zeros(shapes, dtype=np.int64)
        self._started = np.zeros(len(owners) + 1, dtype=np.int64)
        self._begin_columns()

    def _begin_columns(self) -> None:
        requests, n = self._requests, len(self._requests)
        self._entry: IntArray = np.arange(n, dtype=np.int64)  # as which each request runs, or ran last
        self._began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self._order: IntArray = np.zeros(0, dtype=np.int64)
        self._after, self._begin = label_of(requests, "after"), label_of(requests, "begin")
        self._withdrawn = label_of(requests, "withdrawn")
        self._row_of = rows_of_numbers(requests) if (self._after >= 0).any() else {}
        self._followers: dict[int, list[int]] = defaultdict(list)
        self._choices: dict[int, list[int]] = {}  # entries of requests that have not one, their own
        self._reserved: dict[int, list[int]] = defaultdict(list)  # waiting requests by reservation
        self._over = np.zeros(n, dtype=bool)
        self._timed: list[tuple[int, int]] = []
        self._leaves: list[tuple[int, int]] = []
        self._stops: list[Stop] = []
        self._anew: Counter[int] = Counter()  # how often each request was preempted since one came or ended
        self._exempt: list[int] = []
        self._ends_grace = NEVER
        self._gives_way = bool(self._rules.may.any())
        self._main_due, self._main_last, self._full_wanted, self._backfill_wanted = NEVER, -NEVER, False, False

        self._exempts = bool(self._rules.may.any() and self._rules.own["exempt"].any())
        self._within = bool(np.diag(self._rules.may).any())

    @property
    def _parts(self) -> tuple[Any, ...]:
        """What the passes work on."""
        return self._asks, self._machine, self._limits, self._held, self._closed, self._rules

    # -- what the cluster tells ---------------------------------------------------------------------------------------

    def quote(self, request: int, now: int) -> Quote | None:
        """Every request is taken that fits the site and its limits."""
        found = self._intake.choices(request, now, self._bookings.over)
        if not found:
            return None
        if found != [request]:
            self._choices[request] = found
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> None:
        """The request joins the queue, now or when what it waits for has come."""
        request = quote.request
        self._anew.clear()
        for reservation in self._asked_for(request):
            self._bookings.ask(reservation, now)
            self._reserved[reservation].append(request)
        if self._withdrawn[request] >= 0:
            heapq.heappush(self._leaves, (now + int(self._withdrawn[request]) * SECOND, request))
        self._release_when_due(request, now)

    def _chosen(self, request: int) -> list[int]:
        return self._choices.get(request, [request])

    def _asked_for(self, request: int) -> set[int]:
        if not self._site.reservations:
            return set()
        return {int(row) for row in self._asks["reservation"][self._chosen(request)] if row >= 0}

    def _release_when_due(self, request: int, now: int) -> None:
        on = self._row_of.get(int(self._after[request]), -1) if self._after[request] >= 0 else -1
        if on >= 0 and not self._over[on] and on != request:
            self._followers[on].append(request)
        elif (
            self._begin[request] > 0
            and (due := int(self._requests.submit[request]) + int(self._begin[request]) * SECOND) > now
        ):
            heapq.heappush(self._timed, (due, request))
        else:
            self._join(request, now)
            if not self._site.scheduling.defer:
                # "How long … the scheduling of batch jobs can be delayed": since the last pass, in whole seconds of
                # Slurm's own clock.
                tick = now + (self._boot - now) % SECOND
                due = max(tick, self._main_last + self._site.scheduling.batch_delay)
                self._main_due = min(self._main_due, due)

    def _join(self, request: int, now: int) -> None:
        """A request can run from *now* on."""
        self._calculate(now)
        for entry in self._chosen(request):
            if not self._entries.waits[entry]:
                self._enter(entry, now)

    def _enter(self, entry: int, now: int) -> None:
        since = max(now, self._bookings.begins(int(self._asks["reservation"][entry])))
        self._standing.eligible(entry, since)
        self._standing.rank(np.array([entry]), now)
        self._order = np.insert(self._order, self._standing.place(self._order, entry), entry)
        self._full_wanted = self._backfill_wanted = True

    def ended(self, request: int, now: int) -> None:
        """The request gave its cores back."""
        entry = int(self._entry[request])
        self._calculate(now)
        self._standing.ended(entry, now)
        release(entry, *self._parts)
        self._began[request] = NEVER
        self._done(request, now)
        self._stir(now)

    def _stir(self, now: int) -> None:
        """Something has become free: all passes have something to look at."""
        self._main_due = min(self._main_due, now)
        self._full_wanted = self._backfill_wanted = True

    def _done(self, request: int, now: int) -> None:
        """A request is over; whoever waited for that may run."""
        self._over[request] = True
        self._anew.clear()
        self._intake.give(request)
        for reservation in self._asked_for(request):
            self._bookings.leave(reservation, now)
        for follower in self._followers.pop(request, ()):
            self._release_when_due(follower, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """A request that reached its limit is taken to end next; Slurm's own time-outs are late by up to a minute."""

    def settled(self, now: int) -> None:
        """Nothing to do: nothing is promised."""

    def leaving(self, now: int) -> Sequence[int]:
        """Waiting requests that are cancelled by *now*: by their users, or since they can never run."""
        found = [request for request in self._let_go(now) if self._drop(request, now)]
        while self._leaves and self._leaves[0][0] <= now:
            request = heapq.heappop(self._leaves)[1]
            if self._drop(request, now):
                found.append(request)
        return found

    def _drop(self, request: int, now: int) -> bool:
        """Take a request out of the queue for good, if it waits."""
        if self._over[request] or self._began[request] < NEVER:
            return False
        self._order = self._order[self._asks["request"][self._order] != request]
        self._done(request, now)
        self._stir(now)
        return True

    def _let_go(self, now: int) -> list[int]:
        """Waiting requests that no nodes are left for where a reservation begins or ends.

        Slurm would hold them until somebody does something about it. Those whose reservation says so
        (``NO_HOLD_JOBS_AFTER``) go on without it.
        """
        if now < self._bookings.change:
            return []
        lost = []
        for reservation in self._bookings.turn(now):
            for request in self._reserved.pop(reservation, ()):
                waits = not self._over[request] and self._began[request] >= NEVER
                if waits and not self._without(request, reservation, now):
                    lost.append(request)
        self._stir(now)
        for entry in self._order.tolist():
            request = int(self._asks["request"][entry])
            if request not in lost and not any(self._intake.could(each, now) for each in self._chosen(request)):
                lost.append(request)
        return lost

    def _without(self, request: int, reservation: int, now: int) -> bool:
        """Go on without a reservation; whether anything is left that the request could start in."""
        before = self._chosen(request)
        left = [entry for entry in before if self._asks["reservation"][entry] != reservation]
        self._choices[request] = left
        self._bookings.leave(reservation, now)
        queued = np.isin(self._order, before)
        inside = self._order[queued]
        self._order = self._order[~queued | (self._asks["reservation"][self._order] != reservation)]
        if left and len(inside) and all(self._entries.waits[entry] for entry in left):
            self._entries.waits[left] = False
            for entry in left:
                self._enter(entry, now)
        return bool(left)

    # -- decisions ------------------------------------------------------------------------------------------------

    def dispatch(self, now: int) -> Sequence[int]:
        """The passes that are due."""
        look = self._site.scheduling
        self._stops = []
        self._end_grace(now)
        while self._timed and self._timed[0][0] <= now:
            request = heapq.heappop(self._timed)[1]
            if not self._over[request]:
                self._join(request, now)
                self._main_due = min(self._main_due, now)
        while self._exempt and self._exempt[0] <= now:
            heapq.heappop(self._exempt)
            self._full_wanted = self._backfill_wanted = True
        self._calculate(now)
        started: list[int] = []
        full = self._full_wanted and self._on_the_clock(now, look.full_interval)
        if full or (self._main_due <= now and now >= self._main_last + look.least_interval):
            started += self._main(now, 0 if full else look.queue_depth)
        if look.backfill and self._backfill_wanted and self._on_the_clock(now, look.interval):
            started += self._backfill(now)
        return started

    def stopped(self) -> Sequence[Stop]:
        """Requests that were preempted in this instant; those who took their nodes are among those that start."""
        return self._stops

    def _end_grace(self, now: int) -> None:
        """Stop what had to give way by now."""
        if now < self._ends_grace:
            return
        for entry in self._held.row[: self._held.counts[0]].tolist():
            if self._rules.own["leaves"][entry] <= now:
                release(entry, *self._parts)
                self._stop(entry, now)
        self._stir(now)
        self._look_for_grace()

    def _look_for_grace(self) -> None:
        running = self._held.row[: self._held.counts[0]]
        self._ends_grace = int(self._rules.own["leaves"][running].min(initial=NEVER))

    def _stop(self, entry: int, now: int) -> None:
        """A running entry was preempted: its request waits anew, or is over.

        Raises
        ------
        InputError
            When this would go on for ever.
        """
        request = int(self._asks["request"][entry])
        self._anew[request] += 1
        if self._anew[request] > ENDLESS:
            jobs = sorted(int(self._requests.number[each]) for each, many in self._anew.items() if 2 * many > ENDLESS)
            named = ", ".join(str(job) for job in jobs[:5]) + (" and others" if len(jobs) > 5 else "")
            what = f"preempts jobs {named} for ever: {ENDLESS} times by {now / SECOND:.0f} s, while none came or ended"
            cure = "what is freed goes to others than those who wait for it"
            where = "PreemptExemptTime, GraceTime, requeue_delay, bf_min_prio_reserve"
            raise InputError(f"{what}; {cure}, by the rules of the site: look at {where}", field="policy")
        self._standing.ended(entry, now)
        self._began[request] = self._rules.own["began"][entry] = NEVER
        again = bool(self._rules.own["mode"][entry] == REQUEUE)
        self._stops.append(Stop(request, again))
        if again:
            self._standing.requeued(request, now)
            heapq.heappush(self._timed, (now + self._site.preemption.delay, request))
        else:
            self._done(request, now)

    def _on_the_clock(self, now: int, period: int) -> bool:
        return (now - self._boot) % max(period, 1) == 0

    def _main(self, now: int, depth: int) -> list[int]:
        self._main_due, self._main_last = NEVER, now
        if not depth or depth >= len(self._order):
            self._full_wanted = False
        if not len(self._order):
            return []
        look, arrays = self._site.scheduling, (*self._prepare(now), self._started)
        count = main_pass(now, self._order, depth, look.partition_depth, look.stop_at_limit, *arrays)
        return self._begin_all(count, now)

    def _backfill(self, now: int) -> list[int]:
        self._backfill_wanted = False
        if not len(self._order):
            return []
        arrays = (*self._prepare(now), self._started, self._fits, self._soonest, NOBODY)
        begun = self._begin_all(backfill_pass(now, self._order, self._look, *arrays), now)
        self._end_grace(now)
        return begun

    def _prepare(self, now: int) -> tuple[Any, IntArray]:
        """What a pass works on, and which entries may hold others back; the queue is in order."""
        if self._standing.circular:
            self._order = self._standing.order(self._order)
        if self._within:
            self._rules.own["priority"][:] = self._standing.priority
        return self._parts, self._reserving(now)

    def _reserving(self, now: int) -> IntArray:
        """Which entries may hold others back (``bf_min_age_reserve``, ``bf_min_prio_reserve``); empty: all."""
        look = self._site.scheduling
        if not look.least_age and not look.least_priority:
            return NOBODY
        old = now - self._standing.since >= look.least_age
        return (old & (self._standing.priority >= look.least_priority)).astype(np.int64)

    def expected_starts(self, now: int) -> dict[int, int]:
        """When a backfill pass of this instant would expect each waiting request to start, as ``squeue --start`` says.

        Whole microseconds by request, without those that it does not plan: held back by a limit, or beyond
        ``bf_window``. Changes nothing.
        """
        asks, *others = self._parts
        parts = (asks, *(_copied(each) for each in others))
        planned = np.full(len(asks["request"]), NEVER, dtype=np.int64)
        arrays = (parts, self._reserving(now), self._started.copy(), self._fits.copy(), self._soonest.copy(), planned)
        if len(self._order):
            backfill_pass(now, self._standing.order(self._order), self._look, *arrays)
        found: dict[int, int] = {}
        for entry in np.flatnonzero(planned < NEVER).tolist():
            request = int(asks["request"][entry])
            found[request] = min(found.get(request, NEVER), int(planned[entry]))
        return dict(sorted(found.items()))

    def _begin_all(self, count: int, now: int) -> list[int]:
        for entry in self._held.stopped[: self._held.counts[1]].tolist():
            self._stop(entry, now)
        if self._held.counts[1]:
            self._stir(now)
        self._held.counts[1] = 0
        if self._gives_way:
            self._look_for_grace()
        if not count:
            return []
        entries = self._started[:count].copy()
        requests = self._asks["request"][entries]
        self._entry[requests], self._began[requests], self._rules.own["began"][entries] = entries, now, now
        self._order = self._order[self._began[self._asks["request"][self._order]] >= NEVER]
        for entry in entries.tolist():
            self._standing.began(entry, int(self._pieces(entry)[1].sum()), now)
            if self._exempts and self._rules.own["exempt"][entry] > 0:
                heapq.heappush(self._exempt, now + int(self._rules.own["exempt"][entry]))
        begun: list[int] = requests.tolist()
        return begun

    def wake(self, now: int) -> int:
        """The next pass by the clock that could start anything, new priorities, or an instant somebody waits for."""
        look = self._site.scheduling
        times = [each[0][0] for each in (self._timed, self._leaves) if each]
        times.append(self._ends_grace)
        if len(self._order) or self._bookings.wanted:
            times.append(self._bookings.change)
        if len(self._order):
            times.append(self._standing.next_calculation())
            if self._exempt:
                times.append(self._exempt[0])
            if self._main_due < NEVER:
                times.append(max(self._main_due, self._main_last + look.least_interval))
            if self._backfill_wanted and look.backfill:
                times.append(self._next(now, look.interval))
            if self._full_wanted:
                times.append(self._next(now, look.full_interval))
        return max(min(times), now + 1)

    def _next(self, now: int, period: int) -> int:
        """First instant after now that is a whole number of periods after the boot."""
        return self._boot + ((now - self._boot) // max(period, 1) + 1) * max(period, 1)

    def _calculate(self, now: int) -> None:
        """Make priorities anew where a period has gone by."""
        boundary = self._standing.calculate(now)
        if boundary is not None and len(self._order):
            self._standing.rank(self._order, boundary)
            self._order = self._standing.order(self._order)
            self._full_wanted = self._backfill_wanted = True

    def _pieces(self, entry: int) -> tuple[IntArray, IntArray]:
        """Nodes that an entry holds or held last, and how many cores of each."""
        first, count = int(self._held.first[entry]), int(self._held.pieces[entry])
        return self._held.node[first : first + count], self._held.cores[first : first + count]

    def nodes_of(self, request: int) -> dict[str, int]:
        """Cores by the name of the node that a request holds, or held last; for explanations and pictures."""
        nodes, cores = self._pieces(int(self._entry[request]))
        names = [self._site.nodes[node].name for node in nodes]
        return dict(zip(names, cores.tolist(), strict=True))

    def partition_of(self, request: int) -> str:
        """Name of the partition that a request runs in, or ran in last: of several that it asked for, this one."""
        return self._site.partitions[int(self._asks["part"][self._entry[request]])].name


def _copied(columns: Any) -> Any:
    return type(columns)(*(column.copy() for column in columns))
