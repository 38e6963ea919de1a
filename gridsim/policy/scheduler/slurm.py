"""Slurm's scheduler: multifactor priority, main cycles after events, periodic backfill cycles, nodes with cores.

The documentation lists what is modelled (background, Slurm); each part names its source.
"""

from __future__ import annotations

import copy
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.machine.njit import compile_in_background
from gridsim.machine.running_set import RUNNING
from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.dates import Calendar, zone_of
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.site import Notice, Site
from gridsim.model.site.vocabulary import Effect
from gridsim.model.site_file import SiteClock, read_reservations, read_site, set_limits, settings_of
from gridsim.model.time import NEVER, IntArray, has_second_resolution, seconds
from gridsim.model.workload import Workload
from gridsim.number_formatting import between, when
from gridsim.policy.protocols import Absence, Capabilities, CapacityChange, Decision, Placement, Quote, Start, Stop
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.site_policy import SiteChange
from gridsim.policy.slurm.backfill import NUMBERS, run_backfill_cycle
from gridsim.policy.slurm.binding import BindingLimit, binding_limits
from gridsim.policy.slurm.cycle_workspace import Buffers, buffers_for
from gridsim.policy.slurm.demand import labels_of
from gridsim.policy.slurm.eligible_nodes import eligible_cores, pools_of
from gridsim.policy.slurm.entry_allocation import STOPPED, held_by, release, resume, stop, take
from gridsim.policy.slurm.entry_columns import SECOND, demands_of, machine_of, use_factors
from gridsim.policy.slurm.entry_placement import Placing
from gridsim.policy.slurm.expected_start import backfill_parameters
from gridsim.policy.slurm.late_submissions import (
    count_gpus,
    kept_of,
    resume_allocations,
    resume_limits,
    resume_nodes,
    resume_preemption,
    with_placeholders,
)
from gridsim.policy.slurm.limits import Submissions, limits_of, whose
from gridsim.policy.slurm.main_cycle import run_main_cycle
from gridsim.policy.slurm.node_requests import node_requests_of
from gridsim.policy.slurm.nodes import FREE, select, spread, trial_on
from gridsim.policy.slurm.pending import IdleTime, Pending
from gridsim.policy.slurm.preemption import REQUEUE, SUSPEND, PreemptionCounter, may_requeue, rules_of
from gridsim.policy.slurm.priorities import Priorities, last_reset
from gridsim.policy.slurm.queue_entries import Owner, entries_of, label_of, owners_of
from gridsim.policy.slurm.reasons import WORDS, Diary, is_limit, limit_of
from gridsim.policy.slurm.reservation_times import ReservationTimes
from gridsim.policy.slurm.reservations import open_nodes, reservations_of, with_absences
from gridsim.policy.slurm.submit_checks import SubmitChecks
from gridsim.policy.slurm.timing import Timing
from gridsim.policy.slurm.tres import Bills, licences_of
from gridsim.policy.slurm.usage_limits import UsageLimits
from gridsim.record import Reasons, Record, Refusal, Requested

LATER = SECOND // 4
"""Delay of the priority calculation after the backfill cycle of the same second, as on a real Slurm 22.05."""

NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


@dataclass
class Slurm:
    """Slurm's scheduler, as documented by Slurm.

    Parameters
    ----------
    conf : str
        The site's ``slurm.conf``.
    assoc, qos, usage : str or None
        Output of ``sacctmgr dump`` (or ``show assoc tree``), ``sacctmgr -P show qos`` and ``sshare -alP``. If omitted:
        equal shares, no limits, no past usage.
    reservations : str or None
        Output of ``scontrol show reservation`` or ``sacctmgr -P show reservation``; needs *epoch*.
    boot : float, str or None
        Instant from which the periods of the scheduler are counted (``BOOT_TIME`` in ``scontrol show config``): s of
        the simulation, may be negative, or a date, which needs *epoch*. If omitted, 0; on logs with whole seconds half
        a second before, since an event of a second happened within it, not at its beginning.
    add_nodes : str or None
        Nodes added or, if negative, removed: ``gpu:10`` adds nodes like the most frequent ones of that partition,
        ``10`` of the default one (`gridsim.model.site.Site.with_nodes`); several separated by semicolons.
    add_pool : str or None
        Licences added or removed: ``matlab:4``, ``matlab:-2``; several separated by semicolons.
    set_limit : str or None
        Limits that replace those of the files: ``qos.gpu.GrpTRES=gres/gpu=14``, ``account.bio.GrpTRES=cpu=64``,
        ``user.ann.MaxJobs=-1`` (none), ``partition.gpu.MaxTime=2-0``; several separated by semicolons.
    epoch : float or None
        Unix time at which the simulation's clock is 0, s.
    timezone : str or None
        Time zone of dates without one, such as ``Europe/Berlin``; if omitted, that of the log.
    changes : mapping of str to str
        Changed keywords of ``slurm.conf`` and fields of partitions and QOS, by key as in the policy ``site``
        (`gridsim.model.site_file.settings`). Names of parameters are only recorded as changed.
    site : Site or None
        The site itself, instead of files.

    Notes
    -----
    Jobs define their demands by the labels of `gridsim.model.site.LABELS`. No time passes between a decision and a
    start.
    """

    conf: str | None = None
    assoc: str | None = None
    qos: str | None = None
    usage: str | None = None
    groups: str | None = None
    reservations: str | None = None
    boot: float | str | None = None
    add_nodes: str | None = None
    add_pool: str | None = None
    set_limit: str | None = None
    epoch: float | None = None
    timezone: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    site: Site | None = None
    _gives_way = False
    other_keys: ClassVar[str] = "changes"
    renamed: ClassVar[Mapping[str, str]] = {"nodes": "add_nodes", "more_nodes": "add_nodes"}
    source: ClassVar[str] = "slurm.schedmd.com: sched_config, priority_multifactor, fair_tree, cons_tres, preempt"

    def __post_init__(self) -> None:
        if isinstance(self.site, str):
            raise InputError("is not a text; give conf, the path of a slurm.conf", field="site")
        if self.site is None:
            if self.conf is not None and "," in self.conf and not Path(self.conf).exists():
                raise InputError(f"no file '{self.conf}'; parameters of slurm are separated by & only", field="conf")
            if self.conf is None:
                raise InputError("is not given; slurm?conf=slurm.conf&assoc=assoc.cfg is needed", field="conf")
            settings = settings_of(self.changes, [it.name for it in fields(self) if it.name not in ("changes", "site")])
            files = {name: getattr(self, name) for name in ("assoc", "qos", "usage", "groups")}
            self.site = read_site(self.conf, **files, settings=settings)
        elif self.changes and self.conf is None:
            raise InputError("change the files of a site; give conf instead of site", field="changes")
        if self.reservations is not None and not Path(self.reservations).is_file():
            raise InputError("no such file; expected the output of 'scontrol show reservation'", path=self.reservations)

    def __repr__(self) -> str:
        names = ("conf", "assoc", "qos", "usage", "groups", "reservations", *SiteChange._fields, "epoch", "timezone")
        given = [f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None]
        given = given if self.conf else ["site=…", *given]
        if self.boot is not None:
            given.append(f"boot={self.boot!r}" if isinstance(self.boot, str) else f"boot={self.boot:g}")
        if self.changes:
            given.append(f"changes={'&'.join(map('='.join, self.changes.items()))!r}")
        return f"Slurm({', '.join(given)})"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of Slurm; after `setup` they include whether jobs may be preempted."""
        by = self.site.preemption.kind if self.site is not None and self._gives_way else ""
        return replace(_CAN, preempts=by if self._gives_way else None, nodes=self.capacity())

    # -- setup -------------------------------------------------------------------------------------------------------

    def resolved(self) -> Site:
        """Return the site with its reservations and the changes of its nodes, licences and limits.

        Raises
        ------
        InputError
            If reservations have dates and the begin of the simulation is unknown.
        """
        assert self.site is not None
        if self.reservations is None:
            return self._changed(self.site)
        clock = SiteClock(self.epoch, self.timezone)
        found, more = read_reservations(self.reservations, self.site.nodes, clock)
        ignored = Counter(self.site.ignored) + more
        site = replace(self.site, reservations=(*self.site.reservations, *found), ignored=dict(ignored))
        return self._changed(site)

    def _changed(self, site: Site) -> Site:
        site = site.changed(self.add_nodes) if self.add_nodes else site
        site = site.with_licences(self.add_pool) if self.add_pool else site
        return set_limits(site, self.set_limit) if self.set_limit else site

    def changed(self, change: SiteChange) -> Slurm:
        """Return the policy with changed nodes, licences and limits, given as for the parameters of these names."""
        before = SiteChange(self.add_nodes or "", self.add_pool or "", self.set_limit or "")
        add_nodes, add_pool, set_limit = (text or None for text in before.and_then(change))
        return replace(self, add_nodes=add_nodes, add_pool=add_pool, set_limit=set_limit)

    def binding_limits(self, record: Record) -> list[BindingLimit]:
        """Return the limits that held jobs back in a run under this policy, and are below the totals of the site."""
        return binding_limits(self.resolved(), record)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Settings of the site's files that are not modelled; those of reservations only if their dates are known."""
        assert self.site is not None
        site = self.site if self.reservations and self.epoch is None else self.resolved()
        if site.priority.reset and self.epoch is None:  # the instants of resets are unknown
            site = replace(site, ignored={**site.ignored, "PriorityUsageResetPeriod": 1})
        if site.priority.reset and self.epoch is not None and self.timezone is None:
            text = "the time zone of PriorityUsageResetPeriod (UTC without --timezone)"
            return (*site.notices, Notice(text, effect=Effect.order))
        return site.notices

    def outside(self, first: int, last: int, longest: int) -> tuple[Notice, ...]:
        """Return notices of reservations and a boot outside the time between two instants, whole microseconds.

        A job avoids reservations that begin within its walltime, at most *longest*.
        """
        calendar = None if self.epoch is None else Calendar(0.0, zone_of(self.timezone or "UTC"))
        began = self.epoch or 0.0
        found = []
        if self.epoch is not None or not self.reservations:
            for each in self.resolved().reservations:
                if each.start >= last + longest or (each.end <= first and not each.period):
                    time = between(began + seconds(each.start), began + seconds(each.end), calendar)
                    found.append(f"reservation {each.name} ({time})")
        if self.boot is not None and (boot := self._boot_given()) >= last:
            date = when(began + seconds(boot), calendar)
            found.append(f"boot time {date} (it determines only the phase of the scheduler's periods)")
        return tuple(Notice(text, outside=True) for text in found)

    def longest(self, workload: Workload) -> IntArray:
        """Return the longest time that each job may request at this site, whole microseconds; `NEVER` for no limit.

        If a job requests several partitions, the most permissive one counts. The limits are ``MaxTime`` of the
        partition and, if limits are enforced, ``MaxWall`` of its associations, of its QOS and of the partition's QOS.
        """
        site = self.site
        assert site is not None
        requests = Requests(workload)
        entries = entries_of(requests, site)
        owners, submissions = owners_of(requests, site, entries), Submissions(site)
        found: IntArray = np.zeros(len(requests), dtype=np.int64)
        of_partition = [partition.longest for partition in site.partitions]
        known: dict[tuple[Owner, int], int] = {}
        for request, partition, owner in zip(entries.request.tolist(), entries.partition.tolist(), owners, strict=True):
            key = (owner, partition)
            if key not in known:
                known[key] = min(of_partition[partition], submissions.longest(owner))
            found[request] = max(found[request], known[key])
        return found

    def machine(self) -> Platform:
        """Return the machine of its nodes as one cluster of cores."""
        assert self.site is not None
        found = self._changed(self.site).platform()
        return replace(found, origin=f"{found.origin}, nodes {self.add_nodes}") if self.add_nodes else found

    def on_nodes(self) -> Platform:
        """Return the same machine with its nodes and licences."""
        assert self.site is not None
        return self._changed(self.site).on_nodes()

    def capacity(self) -> Capacity:
        """Return the capacity of its nodes."""
        assert self.site is not None
        return self._changed(self.site).capacity()

    def pools(self, named: Iterable[str]) -> Platform:
        """Return the machine as partitions without common nodes (`Site.pools`), for policies without partitions."""
        assert self.site is not None
        return self._changed(self.site).pools(named)

    @property
    def node_cores(self) -> int:
        """Cores of a node by which the machine grows."""
        assert self.site is not None
        return self.site.usual_node.cores

    def sized(self, cores: float) -> Slurm:
        """Return the policy with more or fewer nodes, for about *cores* cores."""
        assert self.site is not None
        now = self._changed(self.site)
        more = now.nodes_to(cores)
        return self.changed(SiteChange(add_nodes=f"{more:+}")) if more else self

    def _booted(self, requests: Requests) -> int:
        """Return the boot, whole microseconds of the simulation."""
        if self.boot is None:
            return -SECOND // 2 if has_second_resolution(requests.submit) else 0
        return self._boot_given()

    def _boot_given(self) -> int:
        """Return the given boot, whole microseconds of the simulation."""
        assert self.boot is not None
        if not isinstance(self.boot, str):
            return round(self.boot * SECOND)
        return SiteClock(self.epoch, self.timezone).instant(self.boot, field="boot")

    def _resets(self, site: Site) -> Callable[[int], int] | None:
        """Return the function of usage resets, if these are configured and dates are known."""
        if not site.priority.reset or self.epoch is None:
            return None
        return partial(last_reset, site.priority.reset, clock=SiteClock(self.epoch, self.timezone))

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run.

        Raises
        ------
        InputError
            If the cluster's number of cores is not that of all nodes of the site.
        """
        site = self.resolved()
        if cluster.cores != site.cores:
            why = f"has {cluster.cores} cores; the nodes of the site have {site.cores} (add_nodes=1 adds one)"
            raise InputError(why, field="cluster")
        requests = cluster.requests
        self._site, self._requests, self._boot = site, requests, self._booted(requests)
        self._reservations = reservations_of(site)
        self._bookings = ReservationTimes(site, self._reservations)
        placement_log = self._arrange(site)
        self._backfill_parameters = backfill_parameters(site.scheduling, self.epoch or 0)
        self._entry: IntArray = np.arange(len(requests), dtype=np.int64)  # present or last entry of each request
        self._timing, self._repeats = Timing(site.scheduling, self._boot), PreemptionCounter(requests.number)
        entries = len(self._entries.request)
        self._diary, self._last = Diary(len(requests), entries), dict.fromkeys(("quick", "backfill"), -NEVER)
        self._eligible_cores: IntArray = np.full((len(requests), 2), -1, dtype=np.int64)
        self._refused: dict[int, tuple[Refusal, int]] = {}
        stillness = IdleTime(site, self._reservations)
        others = (self._priorities, self._intake, self._bookings, self._timing, self._diary, stillness)
        self._pending = Pending(placement_log, self._entries, self._demands, self._held.busy, *others, site.cores)
        self._stops: list[Stop] = []
        self._begins: dict[int, Placement | None] = {}  # requests that run at the begin of the simulation
        self._last_quoted = -1  # the last request quoted
        self._alone = -NEVER  # last call of `alone`
        self._exempt: list[int] = []
        self._absences: list[Absence] = []
        self._suspended: dict[int, int] = {}  # suspended entries, and since when
        self._paused: Counter[int] = Counter()  # time for which entries were suspended in this run
        self._resumed: dict[int, Start] = {}  # entries that resume at this instant
        self._falling: set[int] = set()  # requests that the cluster suspends at this instant
        self._interrupted: dict[int, int] = {}  # delay of stopped requests until they can start again
        self._ends_grace = NEVER
        self._gives_way = bool(self._rules.may.any())
        own = (it.mode for it in site.qos) if site.preemption.kind == "qos" else (it.preempt for it in site.partitions)
        self.suspends = self._gives_way and "SUSPEND" in (site.preemption.mode, *own)
        self._exempts = bool(self._gives_way and self._rules.own["exempt"].any())
        self._within = bool(np.diag(self._rules.may).any())
        compile_in_background(run_backfill_cycle, self._backfill_arguments(0, NO_ROWS))

    def _arrange(self, spending: Site) -> Requests:
        """Create the columns of all requests known by now, in their initial state; return the requests used for that.

        *spending* is the site with the present usage.
        """
        site = self._site
        self._known = self._requests.used
        requests = with_placeholders(self._requests, self._known)
        self._entries = entries_of(requests, site)
        owners = owners_of(requests, site, self._entries)
        node_requests = node_requests_of(requests, site, self._entries)
        self._demands = demands_of(requests, site, owners, self._entries, node_requests)
        self._machine = machine_of(site, requests, self._demands, node_requests)
        self._limits, self._counters, names = limits_of(site, owners, requests, self._demands)
        self._bills = Bills(requests, site, self._demands, self._machine)
        self._held = held_by(self._demands, len(site.nodes))
        self._last_workspace: Buffers | None = None
        self._trial = trial_on(self._machine.cores)
        self._placing = Placing(site, self._demands, self._machine, self._held)
        requeue = label_of(requests, "requeue")[self._entries.request]
        self._rules = rules_of(site, owners, self._demands, requeue)
        classes = (self._rules.may, self._rules.own["kind"])
        reset = self._resets(site)
        used = (self._demands["limit"], use_factors(site, owners))
        self._budgets = UsageLimits(spending, self._counters, self._limits, names, *used, resets=reset is not None)
        self._priorities = Priorities(
            requests, site, owners, self._demands, self._boot + LATER, classes, self._budgets, reset
        )
        booked = self._bookings.reservations
        parts = (self._entries, self._demands, self._machine, self._limits, names, booked, node_requests)
        named = "user" in requests.names  # users with numbers only cannot be compared with associations
        self._intake = SubmitChecks(site if named else replace(site, associations_only=False), owners, *parts)
        self._numbers = np.zeros((NUMBERS, int(self._demands["same"].max(initial=0)) + 1), dtype=np.int64)
        self._started = np.zeros(len(owners) + 1, dtype=np.int64)
        return requests

    def _grow(self, now: int) -> None:
        """Create the columns again after submissions of unknown requests, and take over the previous state."""
        before = copy.copy(self)
        kept = kept_of(self._entries, len(self._requests), self._known)
        spending = self._site
        if any(each.usage for each in spending.associations):  # new counters begin with the decayed initial usage
            used, known = self._priorities.used_by, spending.associations
            new = [replace(each, usage=used[each.account, each.user]) if each.user else each for each in known]
            spending = replace(spending, associations=tuple(new))
        placement_log = self._arrange(spending)
        self._entries.waits[kept] = before._entries.waits[kept]
        resume_allocations(self._held, before._held, kept)
        resume_nodes(self._machine, before._machine, self._exclusive_nodes())
        resume_preemption(self._rules, before._rules, kept)
        same = resume_limits(self._limits, self._counters, before._limits, before._counters, kept)
        self._budgets.resume(before._budgets, *same)
        self._priorities.resume(before._priorities, kept)
        self._placing.resume(before._placing)
        self._intake.resume(before._intake)
        self._diary.resume(len(self._started) - 1)
        parts = (self._held.busy, self._priorities, self._intake)
        self._pending.resume(placement_log, self._entries, self._demands, *parts)
        if self._absences:
            self._see_absences(now)

    @property
    def _parts(self) -> tuple[Any, ...]:
        """Arguments of the scheduling cycles."""
        return self._demands, self._machine, self._limits, self._held, self._reservations, self._rules

    # -- events of the cluster ---------------------------------------------------------------------------------------

    def quote(self, request: int, now: int) -> Quote | None:
        """Return a quote for every request that fits the site and its limits; may be called repeatedly."""
        if request >= self._known:
            self._grow(now)
        if request in self._interrupted or self._entry[request] in self._suspended:
            return Quote(request, entries=tuple(self._pending.chosen(request)))
        self._pending.leave_log(request, now)
        found = self._intake.choices(request, now, self._bookings.over)
        if request in self._begins:  # accepted before, whatever holds now
            found = found or [request]
        self._last_quoted = request
        if not found:
            self._refused[request] = (self._intake.refusal(request, now, self._bookings.over), now)  # for `reasons`
            return None
        return Quote(request, entries=tuple(found))

    def expect_running(self, request: int, placement: Placement | None) -> None:
        """Note that a request runs at the begin of the simulation, with cores of its nodes if they are known."""
        self._begins[request] = placement

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Add the request to the queue, now or when its dependency or begin time is reached."""
        self._repeats.clear()
        if (delay := self._interrupted.pop(quote.request, None)) is not None:
            self._priorities.requeued(quote.request, now)
            self._pending.requeue(quote.request, now, now + delay)
            return ()
        if self._entry[quote.request] in self._suspended:
            return ()
        entries: IntArray = np.array(quote.entries, dtype=np.int64)
        parts = (self._demands, self._machine, self._reservations, self._trial)
        self._eligible_cores[quote.request] = eligible_cores(entries, now, *parts)
        self._refused.pop(quote.request, None)
        self._priorities.submitted(quote.request, now)
        self._pending.add(quote.request, quote.entries, now)
        return ()

    def ended(self, request: int, now: int) -> None:
        """Release the cores of the request; those of a suspended one are free already."""
        entry = int(self._entry[request])
        self._pending.calculate(now)
        if request in self._falling:
            self._falling.remove(request)
            return
        if entry in self._suspended:
            self._resume(entry, now)
        self._paused.pop(entry, None)
        self._priorities.ended(entry, now)
        release(entry, *self._parts)
        self._placing.end(entry)
        if request in self._requests.stopped:
            self._interrupted[request] = 0
        else:
            self._over(request, now)
        self._timing.freed(now)

    def requeue_rule(self, request: int) -> tuple[bool, int]:
        """Return whether a request is requeued after a failure (``--no-requeue``, ``JobRequeue``), and how often."""
        rule = self._site.preemption
        own = label_of(self._requests, "requeue")[request : request + 1]
        return bool(may_requeue(own, rule)[0]), rule.most_requeues

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Record absent nodes and GPUs, and stopped requests, which can start again after a delay or have failed."""
        for present, absences in ((True, change.restored), (False, change.lost)):
            for absence in absences:
                (self._absences.remove if present else self._absences.append)(absence)
                if absence.gpu >= 0:
                    self._placing.change(absence.node, absence.gpu, present=present)
        for request in list(self._interrupted):
            if request in change.requeued:
                self._interrupted[request] = self._site.preemption.delay
            elif request not in self._requests.stopped:
                del self._interrupted[request]
                self._over(request, now)
        if change.lost or change.restored:
            self._see_absences(now)
        self._look_for_grace()
        self._timing.freed(now)

    def _see_absences(self, now: int) -> None:
        """Use the present absences in scheduling cycles."""
        gpus: IntArray = np.array([node.gpus for node in self._site.nodes], dtype=np.int64)
        np.subtract.at(gpus, [absence.node for absence in self._absences if absence.gpu >= 0], 1)
        count_gpus(self._machine, gpus, self._exclusive_nodes())
        self._reservations = with_absences(self._bookings.reservations, self._absences)
        self._pending.see(self._reservations, now, absent=bool(self._absences))

    @property
    def booked(self) -> frozenset[str]:
        """Names of the site's own reservations."""
        return frozenset(each.name for each in self._site.reservations)

    def still(self, now: int) -> bool:
        """Return whether no cycle can start a request without another event."""
        return self._pending.still(now)

    def _over(self, request: int, now: int) -> None:
        self._repeats.clear()
        self._pending.done(request, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Do nothing: the request is expected to end next; Slurm's own time-outs are late by up to a minute."""

    def settled(self, now: int) -> None:
        """Do nothing: Slurm makes no guarantees."""

    def alone(self, now: int) -> None:
        """Note that no request arrives any more, and none is running."""
        self._alone = now

    # -- decisions ------------------------------------------------------------------------------------------------

    def dispatch(self, now: int) -> Decision:
        """Run the cycles that are due; requests preempted at this instant free resources for some of the starts."""
        self._stops = []
        self._pending.calculate(now)
        if self._pending.follows_log:
            return Decision(self._recorded_starts(now), (), self._pending.cancel(now), self._pending.next())
        self._pending.release_dependants(now, self._last_quoted)
        withdrawn = self._leave(now)
        self._end_grace(now)
        self._pending.join_due(now)
        while self._exempt and self._exempt[0] <= now:
            heapq.heappop(self._exempt)
            self._timing.changed(now)
        self._resumed = {}
        for entry in sorted(self._suspended, key=lambda entry: -int(self._rules.own["rank"][entry])):
            if self._can_resume(entry, now):
                self._resume(entry, now)
                self._resumed[entry] = Start(int(self._demands["request"][entry]))
        started: list[Start] = []
        depth = self._timing.depth(now)
        if depth is not None:
            started += self._main(now, depth)
        if self._timing.backfills(now):
            started += self._backfill(now)
        return Decision([*self._resumed.values(), *started], self._stops, withdrawn, self._next(now))

    def _recorded_starts(self, now: int) -> list[Start]:
        """Start the requests that have started in the log by *now*, on nodes that fit."""
        self._pending.join_due(now)
        demands, machine, trial, found = self._demands, self._machine, self._trial, 0
        for entry in self._pending.order.tolist():
            request = int(demands["request"][entry])
            if self._held.busy[request]:
                continue
            until, wanted, used = now + int(demands["limit"][entry]), int(self._requests.cores[request]), 0
            if (place := self._begins.get(request)) is not None:
                own: IntArray = np.zeros(len(trial.mask), dtype=np.int64)
                own[place.node] = place.amounts["cores"]
                used = spread(entry, wanted, trial, demands, machine, own)
            if not used:
                open_nodes(entry, now, now, until, demands, machine, self._reservations, trial.mask, trial.kept)
                used = select(entry, trial, demands, machine, machine.now)
            if used or (used := spread(entry, wanted, trial, demands, machine)):
                take(entry, until, trial.chosen[:used], trial.given[:used], self._parts)
                self._started[found], found = entry, found + 1
        return self._begin("quick", found, now)

    def _leave(self, now: int) -> Sequence[int]:
        """Return waiting requests that are cancelled by *now*: by their users, or because they can never run."""
        lost = self._pending.lose(now)
        for request in lost:
            self._refused[request] = (self._intake.refusal(request, now, self._bookings.over), now)
        found = lost + self._pending.cancel(now)
        if not found and self._alone == now:
            for request in self._pending.lose_first(now):
                self._refused[request] = (self._intake.never_started(request), now)
                found.append(request)
        if found:
            self._repeats.clear()
        return found

    def _end_grace(self, now: int) -> None:
        """Stop entries whose grace time has ended."""
        if now < self._ends_grace:
            return
        for entry in self._running().tolist():
            if self._rules.own["leaves"][entry] <= now:
                stop(entry, *self._parts)
                self._stop(entry, now)
        self._timing.freed(now)
        self._look_for_grace()

    def _look_for_grace(self) -> None:
        self._ends_grace = int(self._rules.own["leaves"][self._running()].min(initial=NEVER))

    def _running(self) -> IntArray:
        """Return the running entries by expected end; a view."""
        return self._held.running[1, : self._held.counts[RUNNING]]

    def _end_of(self, entry: int, now: int) -> int:
        """Return when a run reaches its time limit, which a suspension postpones."""
        paused = self._paused[entry] + now - self._suspended.get(entry, now)
        return int(self._rules.own["began"][entry] + self._demands["limit"][entry]) + paused

    def _can_resume(self, entry: int, now: int) -> bool:
        """Return whether the cores of a suspended entry are free."""
        nodes, cores = self._pieces(entry)
        parts = (self._demands, self._machine, self._reservations, self._trial.mask, self._trial.kept)
        open_nodes(entry, now, now, max(self._end_of(entry, now), now + 1), *parts)
        free, cap = self._machine.now[[FREE, self._demands["cap"][entry]]][:, nodes]
        free = np.minimum(np.minimum(free - self._trial.kept[nodes], cap), self._trial.mask[nodes])
        return bool((free >= cores).all())

    def _resume(self, entry: int, now: int) -> None:
        """Let a suspended entry hold its cores again."""
        resume(entry, self._end_of(entry, now), *self._parts)
        self._paused[entry] += now - self._suspended.pop(entry)
        self._priorities.began(entry, self._bills.of(entry, *self._pieces(entry)), now)

    def _exclusive_nodes(self) -> list[int]:
        """Return the nodes that running and suspended entries hold exclusively."""
        holders = (*self._running().tolist(), *self._suspended)
        whole = (entry for entry in holders if self._demands["exclusive"][entry] > 0)
        return [node for entry in whole for node in self._pieces(entry)[0].tolist()]

    def _stop(self, entry: int, now: int) -> None:
        """Requeue, cancel or suspend the request of a preempted entry."""
        request, taker = int(self._demands["request"][entry]), int(self._rules.own["taker"][entry])
        self._priorities.ended(entry, now)
        if self._rules.own["mode"][entry] == SUSPEND:
            self._suspended[entry] = now
            if self._resumed.pop(entry, None) is None:
                self._repeats.preempted(request, now)
                self._stops.append(Stop(request, "suspend", taker, 0))
                self._falling.add(request)
            return
        self._placing.end(entry)
        self._repeats.preempted(request, now)
        self._paused.pop(entry, None)
        self._rules.own["began"][entry] = NEVER
        again = bool(self._rules.own["mode"][entry] == REQUEUE)
        self._stops.append(Stop(request, "requeue" if again else "cancel", taker))
        if again:
            self._priorities.requeued(request, now)
            self._pending.requeue(request, now, now + self._site.preemption.delay)
        else:
            self._over(request, now)

    def _main(self, now: int, depth: int) -> list[Start]:
        order, scheduling = self._pending.ordered(now), self._site.scheduling
        self._timing.looked(now, at_all=not depth or depth >= len(order))
        if not len(order):
            return []
        arrays = (*self._prepare(now), self._started, self._diary.reasons, self._workspace(order))
        count = run_main_cycle(now, order, depth, scheduling.partition_depth, scheduling.stop_at_limit, *arrays)
        return self._begin("quick", count, now)

    def _backfill(self, now: int) -> list[Start]:
        order = self._pending.ordered(now)
        if not len(order):
            return []
        begun = self._begin("backfill", run_backfill_cycle(*self._backfill_arguments(now, order)), now)
        self._end_grace(now)
        return begun

    def _backfill_arguments(self, now: int, order: IntArray) -> tuple[Any, ...]:
        """Return the arguments of a backfill cycle over entries in *order*."""
        arrays = (*self._prepare(now), self._started, self._numbers, NO_ROWS, self._diary.reasons)
        return now, order, self._backfill_parameters, *arrays, self._workspace(order)

    def _prepare(self, now: int) -> tuple[Any, IntArray]:
        """Return the arguments common to all cycles, with the entries that may block others."""
        if self._within:
            self._rules.own["priority"][:] = self._priorities.priority
        return self._parts, self._reserving(now)

    def _workspace(self, order: IntArray) -> Buffers:
        """Return the workspace of a cycle over entries."""
        self._last_workspace = buffers_for(order, self._held, self._demands, self._machine, self._last_workspace)
        return self._last_workspace

    def _reserving(self, now: int) -> IntArray:
        """Return which entries may block others (``bf_min_age_reserve``, ``bf_min_prio_reserve``); empty: all."""
        scheduling = self._site.scheduling
        if not scheduling.least_age and not scheduling.least_priority:
            return NO_ROWS
        old = now - self._priorities.since >= scheduling.least_age
        return (old & (self._priorities.priority >= scheduling.least_priority)).astype(np.int64)

    def expected_starts(self, now: int) -> dict[int, int]:
        """Return the expected start of each waiting request in a backfill cycle now, as ``squeue --start`` shows it.

        Whole microseconds by request, without requests that have no plan: held back by a limit, or beyond
        ``bf_window``. It changes nothing that the next scheduling cycle does not change.
        """
        planned, _ = self._trial_cycle(now)
        found: dict[int, int] = {}
        for entry in np.flatnonzero(planned < NEVER).tolist():
            request = int(self._demands["request"][entry])
            found[request] = min(found.get(request, NEVER), int(planned[entry]))
        return dict(sorted(found.items()))

    def _trial_cycle(self, now: int) -> tuple[IntArray, IntArray]:
        """Return expected starts of entries and wait reasons of requests from a backfill cycle without effects."""
        self._pending.join_due(now)
        demands, *others = self._parts
        parts = (demands, *(_copied(each) for each in others))
        planned = np.full(len(demands["request"]), NEVER, dtype=np.int64)
        order, reasons = self._pending.ordered(now), _copied(self._diary.reasons)
        copies = (self._started.copy(), self._numbers.copy(), planned, reasons, self._workspace(order))
        if len(order):
            run_backfill_cycle(now, order, self._backfill_parameters, parts, self._reserving(now), *copies)
        return planned, reasons.code

    def held_by(self, request: int, now: int) -> str | Refusal:
        """Return the limit that holds a request back, such as ``QOSMaxJobsPerUserLimit of QOS low``, or rejects it.

        Parameters
        ----------
        request : int
            A waiting request, or one that `quote` rejected.
        now : int
            Whole microseconds.

        Returns
        -------
        str or Refusal
            Empty if no limit does.
        """
        if request in self._refused:
            return self._refused[request][0]
        code = int(self._trial_cycle(now)[1][request])
        if not is_limit(code):
            return ""
        entry, limits = self._pending.chosen(request)[0], self._limits
        first, cores = np.zeros_like(limits.first), int(self._demands["cores"][entry])
        first[entry + 1] = 1
        for place in range(int(limits.first[entry]), int(limits.first[entry + 1])):
            counter = limits.counter[place : place + 1]
            if limit_of(entry, cores, limits._replace(first=first, counter=counter)) == code:
                name = whose(self._counters[int(counter[0])].key)
                return f"{WORDS[code]} of {name}" if name else WORDS[code]
        return WORDS[code]

    def labels_of(self, demand: Demand) -> dict[str, int | str]:
        """Return the labels of a job with a demand at this site (`gridsim.policy.slurm.demand.labels_of`)."""
        assert self.site is not None
        return labels_of(demand, self._changed(self.site))

    def _begin(self, kind: str, count: int, now: int) -> list[Start]:
        """Apply the decisions of a cycle: stop preempted entries; return the starts of the first *count* entries."""
        last, self._last[kind] = self._last[kind], now
        self._diary.seen(now)
        for entry in self._held.stopped[: self._held.counts[STOPPED]].tolist():
            self._stop(entry, now)
        if self._held.counts[STOPPED]:
            self._timing.freed(now)
        self._held.counts[STOPPED] = 0
        if self._gives_way:
            self._look_for_grace()
        if not count:
            return []
        entries = self._started[:count].copy()
        requests = self._demands["request"][entries]
        self._entry[requests], self._rules.own["began"][entries] = entries, now
        self._pending.start()
        for entry in entries.tolist():
            self._priorities.began(entry, self._bills.of(entry, *self._pieces(entry)), now)
            if self._exempts and self._rules.own["exempt"][entry] > 0:
                heapq.heappush(self._exempt, now + int(self._rules.own["exempt"][entry]))
        begun: list[int] = requests.tolist()
        for request in begun:
            self._diary.start(request, last, self._timing.opened, now)
        places = map(self._placing.start, entries.tolist())
        return [Start(request, placement=place) for request, place in zip(begun, places, strict=True)]

    def _next(self, now: int) -> int:
        """Return the next useful periodic cycle, priority calculation, or change of the queue."""
        if self._alone == now and (self._absences or not len(self._pending.order)) and self._pending.still(now):
            return NEVER  # the remaining requests wait for each other, or for absent nodes
        times = [self._pending.next(), self._ends_grace, self._bookings.change if self._suspended else NEVER]
        if len(self._pending.order):
            times.append(self._timing.next(now))
            if self._exempt:
                times.append(self._exempt[0])
        return max(min(times), now + 1)

    def reasons(self) -> Reasons:
        """Return the wait reasons of requests in Slurm's terms, and the reasons for rejections."""
        words = tuple(dict.fromkeys([*WORDS, *(why.reason for why, _ in self._refused.values())]))
        refused = [(job, words.index(why.reason), at, NEVER) for job, (why, at) in self._refused.items()]
        more: IntArray = np.array(refused, dtype=np.int64).reshape(-1, 4)
        rows = np.concatenate([np.stack(self._diary.spans(), axis=1), more])
        job, word, since, until = rows[np.argsort(rows[:, 0], kind="stable")].T.copy()
        groups = self._demands["group"].tolist()
        entries = ((row, *self._entries.further.get(row, ())) for row in range(len(self._requests)))
        pool = pools_of(self._machine.member, [tuple(groups[entry] for entry in each) for each in entries])
        eligible, free = self._eligible_cores.T.copy()
        why_not = {row: why for row, (why, _) in self._refused.items()}
        return Reasons(words, job, word, since, until, eligible, free, pool, why_not)

    def requested(self) -> Requested:
        """Return the demand of each request, in its present or last partition. Memory is the allocated amount."""
        entry = self._entry
        asked = {name: self._demands[name][entry] for name in ("cores", "unit", "gpus", "exclusive")}
        amounts = {"cores": asked["cores"], GPU: asked["gpus"] * self._held.pieces[entry] * WHOLE_GPU}
        amounts |= {name: licences_of(self._requests, name) for name in self._site.licences}
        return Requested(asked["cores"] // asked["unit"], asked["exclusive"] > 0, amounts)

    def _pieces(self, entry: int) -> tuple[IntArray, IntArray]:
        """Return the nodes that an entry holds or held last, and the cores of each."""
        first, count = int(self._held.first[entry]), int(self._held.pieces[entry])
        return self._held.node[first : first + count], self._held.cores[first : first + count]

    def nodes_of(self, request: int) -> dict[str, int]:
        """Return cores by name of the node that a request holds, or held last; for explanations and figures."""
        nodes, cores = self._pieces(int(self._entry[request]))
        names = [self._site.nodes[node].name for node in nodes]
        return dict(zip(names, cores.tolist(), strict=True))

    def partition_of(self, request: int) -> str:
        """Return the partition in which a request runs, or ran last."""
        return self._site.partitions[int(self._demands["part"][self._entry[request]])].name


_CAN = Capabilities(
    withdraws=True,
    effort=400.0,
    expected_starts=True,
    reasons=True,
    alone=True,
    epoch=True,
    site=True,
    notified=frozenset({"capacity_changed", "requeue_rule"}),
    in_python="Slurm's scheduler requires the engine simpy",
)


def _copied(columns: Any) -> Any:
    return type(columns)(*(_copied(each) if isinstance(each, tuple) else each.copy() for each in columns))
