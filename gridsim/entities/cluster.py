"""A cluster: cores, their scheduler, checks of the scheduler's decisions, and the load that balancers see."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from simpy import Event

from gridsim.entities.clock import Clock, Instant, PriorityEvent, Wakeup
from gridsim.entities.outcome import DONE, RUNNING, WAITING, Outcome
from gridsim.entities.progress import Progress
from gridsim.entities.resource import Machine
from gridsim.entities.walltime_limit import CHAINED
from gridsim.errors import InputError, PolicyError, call, name_of, policy_error, raise_failed
from gridsim.machine.demand_classes import DemandClasses
from gridsim.model.demand import Demands
from gridsim.model.platform import ClusterSpec
from gridsim.model.time import NEVER
from gridsim.policy.balancing import Bid
from gridsim.policy.capabilities import attribute_of, capabilities_of, is_own, takes_running
from gridsim.policy.protocols import (
    NOTHING,
    CapacityChange,
    Decision,
    Offer,
    Placement,
    Quote,
    Scheduler,
    Start,
    Stop,
)
from gridsim.policy.queue import Requests
from gridsim.policy.scheduler.with_reservations import WithReservations
from gridsim.record import FAILURE, SAVED, Status

_BROKEN = (Status.rejected, Status.unadmitted, Status.cancelled)
"""Statuses of a chain's piece after which the later pieces are not run."""

_COMPLETED, _KILLED = int(Status.completed), int(Status.killed_walltime)  # converted once instead of for each job


class DagView(Protocol):
    """DAG jobs of a run, as far as clusters need them."""

    cluster_of: list[Any]
    of: list[Any]


class Users(Protocol):
    """Simulated users that react to starts and ends, as far as clusters need them."""

    def began(self, request: int) -> None:
        """Notify the users that a request has started."""

    def over(self, request: int) -> None:
        """Notify the users that a request has ended or was rejected."""


class Piece:
    """Tasks of one job, in task order.

    Attributes
    ----------
    requests : sequence of int
        Rows of the tasks.
    widest : dict of str to int
        Cores of the widest task of each kind, kinds in order of first appearance.
    """

    __slots__ = ("_delay", "_table", "requests", "widest")

    def __init__(self, requests: Sequence[int], table: Requests, delay: Callable[[Sequence[int], Any], int]) -> None:
        self.requests, self._table, self._delay = requests, table, delay
        kinds, cores_of = table.kinds_of, table.needed_of
        widest: dict[str, int] = {}
        for request in requests:
            kind, cores = kinds[request], cores_of[request]
            if cores > widest.get(kind, 0):
                widest[kind] = cores
        self.widest = widest

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the tasks, in order of first appearance."""
        return tuple(self.widest)

    @property
    def work(self) -> int:
        """Work of all tasks: cores times estimates, core-microseconds."""
        table = self._table
        return sum(table.cores_of[request] * int(table.estimate[request]) for request in self.requests)

    def delay_to(self, cluster: Any) -> int:
        """Return the summed data delays from predecessors that are already placed, whole microseconds."""
        return self._delay(self.requests, cluster)

    def of_kind(self, kind: str) -> Piece:
        """Return the tasks of one kind as a piece."""
        kinds = self._table.kinds_of
        return Piece([request for request in self.requests if kinds[request] == kind], self._table, self._delay)

    def alone(self, request: int) -> Piece:
        """Return one task as a piece."""
        return Piece((request,), self._table, self._delay)


class Load:
    """Work of the requests that are placed on a cluster; used on trees of several clusters and for DAG jobs.

    The work is that of the requested cores, whatever number of cores a moldable request gets.

    Parameters
    ----------
    requests : Requests
        All requests of the run.
    state : bytearray
        State of each request, as in `gridsim.entities.outcome.Outcome`.

    Attributes
    ----------
    unfinished, queued : int
        Work that has not ended, or not started: cores times estimates, core-microseconds.
    """

    def __init__(self, requests: Requests, state: bytearray) -> None:
        self._requests, self._state = requests, state
        self._requested, self._estimate = requests.cores.data, requests.estimate.data
        self._here = bytearray(len(requests))
        self.unfinished = self.queued = 0

    def __contains__(self, request: int) -> bool:
        return bool(self._here[request])

    def add(self, request: int) -> None:
        """Add a request that is placed here; it is queued."""
        self._here[request] = 1
        work = self._requested[request] * self._estimate[request]
        self.unfinished += work
        self.queued += work

    def dequeue(self, request: int) -> None:
        """Subtract a request from the queued work when it starts."""
        self.queued -= self._requested[request] * self._estimate[request]

    def enqueue(self, request: int) -> None:
        """Add a request to the queued work again after its run was stopped."""
        self.queued += self._requested[request] * self._estimate[request]

    def remove(self, request: int) -> None:
        """Remove a request that is not queued from the unfinished work."""
        self._here[request] = 0
        self.unfinished -= self._requested[request] * self._estimate[request]

    def waiting(self) -> list[int]:
        """Return the requests that wait on this cluster, in job order."""
        rows = np.flatnonzero(np.frombuffer(self._here, dtype=np.uint8))
        if self._requests.moves:
            rows = rows[self._requests.in_order(rows)]
        return [request for request in rows.tolist() if self._state[request] == WAITING]


class Cluster:
    """A process that decides once per instant, after all its events (in ``per-event`` mode after each event).

    Parameters
    ----------
    spec : ClusterSpec
        Name, kind and cores.
    scheduler : Scheduler
        Scheduler, already set up.
    extend : bool
        Whether a job continues beyond its estimate; otherwise it is killed there.
    tick : int
        First assumed overrun of a job that exceeds its estimate; doubled each time. Whole microseconds.

    Attributes
    ----------
    machine : Machine
        Resources of the cluster: free amounts and running requests.
    offered : int
        Cores of the requests that were submitted since the last decision, whether they start at the next one or not.
    dirty : bool
        Whether events have occurred since the last decision.
    dags : DagView or None
        DAG jobs of the run.
    users : Users or None
        Users that submit jobs after the ends of other requests.
    progress : Progress or None
        Work of the requests over several runs, in a run with checkpoints.
    reserved : WithReservations or None
        The scheduler, in a run with reservations.
    placed_on : list of Cluster or None
        List that the cluster appends itself to when a piece of a rigid job is placed on it.
    can : Capabilities
        Capabilities of the scheduler.
    demands : DemandClasses or None
        Requested resources of nodes and pools; None if requests need only the cores of one pool.
    together : sequence of Cluster
        Clusters that decide whenever this one does (grid-wide fair share).
    """

    def __init__(
        self,
        env: Clock,
        index: int,
        spec: ClusterSpec,
        scheduler: Scheduler,
        requests: Requests,
        outcome: Outcome,
        instant: Instant,
        *,
        extend: bool = False,
        tick: int = 1_000_000,
        placing: bool = False,
        demands: DemandClasses | None = None,
    ) -> None:
        self._env, self.index, self.name, self.kind = env, index, spec.name, spec.kind
        self.cores, self.rate = spec.cores, spec.rate
        self.dags: DagView | None = None
        self.users: Users | None = None
        self.progress: Progress | None = None
        self.reserved: WithReservations | None = None
        self.placed_on: list[Cluster] | None = None
        self.together: Sequence[Cluster] = ()
        self._requests, self._outcome = requests, outcome
        self._foreign = not is_own(scheduler)  # answers of a plug-in are checked
        self.scheduler, self._instant, self._extend, self.tick = scheduler, instant, extend, tick
        self._decide_priority, self._end_priority = instant.decide + index, instant.end
        # Memory views return and accept plain numbers in half the time of arrays.
        self._molds = requests.moldable is not None
        # Moldable requests have their chosen number of cores here once it is chosen.
        need, estimate = requests.sizes() if self._molds else (requests.cores, requests.estimate)
        self._need, self._estimate = need.data, estimate.data
        self._least, self._most, self._needed = requests.minimum.data, requests.maximum.data, requests.needed.data
        self.demands = demands
        if demands is not None:  # infinite for requests that the empty machine cannot hold, 0 for all others
            self._needed = np.where(demands.never(), NEVER, 0).data
        self._requested, self._ready = requests.cores.data, requests.ready.data
        self._runtime, self._state = outcome.runtime.data, outcome.state
        self._start, self._end = outcome.start.data, outcome.end.data
        self._status, self._cluster = outcome.status.data, outcome.cluster.data
        self._batched = instant.batched
        self.dirty = False
        self._overrun = False  # a request has exceeded its estimate
        self._promises = False  # a request has a guaranteed deadline
        self._unsettled = False  # the scheduler has not been notified that the ends of this instant are complete
        self.can, withdrawn = capabilities_of(scheduler), requests.labels.get("withdrawn")
        closing = None if instant.batched else self._decide_priority
        nodes = self.can.nodes or spec.capacity
        self.machine = Machine(env, spec.cores, nodes, owner=scheduler, closing=closing, demands=demands)
        self.machine.why_not = "its scheduler is not notified"
        self._take, self._give_back = self.machine.take, self.machine.give_back
        self._load = Load(requests, outcome.state) if placing else None
        self.offered, self._nodes = 0, nodes is not None and bool(nodes.nodes)
        self._first_node = 0 if nodes is None or not nodes.nodes else outcome.placed.add(spec.name, nodes)
        self._never_submitted = None if self.can.withdraws or withdrawn is None else (withdrawn >= 0).tolist()
        chained = requests.labels.get(CHAINED)
        self._chained = None if chained is None else chained.tolist()
        self._cancelled = False  # a running request was cancelled or interrupted; its end event is still pending
        self._suspended = outcome.asleep
        self._paused: dict[int, int] = {}  # time for which running requests were suspended
        self._suspends = bool(attribute_of(scheduler, "suspends", False))
        self._places: dict[int, Placement] = {}  # of requests that can be suspended
        self._leaving: dict[int, Stop] = {}  # running requests that write a last checkpoint, and why
        self._quoted: tuple[int, int, Quote | None] | None = None  # last quote that was computed for a comparison
        self._due = self._wake_at = NEVER  # what the last decision requested; the first pending event
        self._wakes = 0
        self._wanted = Wakeup(env, self._decide_priority)
        self.process = env.process(self._run())

    # -- placing ------------------------------------------------------------------------------------------------

    def leaves(self) -> Sequence[Cluster]:
        """Return this cluster as the only leaf of its subtree."""
        return (self,)

    def can_run(self, kind: str, cores: int) -> bool:
        """Return whether a task of a kind and number of cores can run on this cluster."""
        return kind == self.kind and cores <= self.cores

    def able(self, piece: Piece, *, present: bool = False) -> bool:
        """Return whether every task of a piece can run on this cluster; *present*: with any node not lost."""
        if present and self.all_absent:
            return False
        for kind, cores in piece.widest.items():
            if kind != self.kind or (cores > self.cores and self.demands is None):
                return False
        return self.demands is None or all(self._needed[request] <= self.cores for request in piece.requests)

    def place(self, piece: Piece) -> None:
        """Place a piece: its tasks count as load from now on and run on this cluster when they are ready."""
        assert self._load is not None
        for request in piece.requests:
            self._load.add(request)
            if self.dags is not None:
                self.dags.cluster_of[request] = self
            if self.placed_on is not None:
                self.placed_on.append(self)

    def refuse(self, request: int, others: Iterable[int] = (), why: str = "") -> None:
        """Reject a request that fits on no cluster, or *why* else, and the *others*: the other tasks of its job."""
        self._state[request] = DONE
        for other in others:
            self._state[other] = DONE
        if self.demands is not None:
            self._outcome.refused[request] = self.demands.reason(request) or why
        if self.users is not None:
            self.users.over(request)

    @property
    def free(self) -> int:
        """Free cores."""
        return self.machine.free

    @property
    def busy(self) -> int:
        """Used cores plus those of requests submitted in this instant, so that a balancer sees its assignments."""
        return min(self.cores, self.cores - self.machine.free + self.offered)

    @property
    def all_absent(self) -> bool:
        """True if no node is present or known to return."""
        return self.machine.all_absent

    @property
    def awaited(self) -> bool:
        """True if a request waits on a cluster of the run, or a user process waits for resources of this one."""
        return WAITING in self._state or bool(self.machine.get_queue)

    @property
    def unfinished(self) -> int:
        """Work placed on this cluster that has not ended: cores times estimates, core-microseconds."""
        return 0 if self._load is None else self._load.unfinished

    @property
    def queued(self) -> int:
        """Work placed on this cluster that has not started, core-microseconds."""
        return 0 if self._load is None else self._load.queued

    def remaining(self) -> int:
        """Return the queued work plus the remaining work of running requests, core-microseconds."""
        return self.queued + self.machine.left(self._env.now)  # type: ignore[arg-type]

    def earliest_start(self, cores: int) -> int:
        """Return when a request could start behind all waiting requests in job order; whole microseconds."""
        assert self._load is not None
        # A moldable request without a chosen size may request more cores than the cluster has.
        needs = [(min(self._need[row], self.cores), self._estimate[row]) for row in self._load.waiting()]
        return self.machine.earliest([*needs, (cores, 0)], self._env.now)  # type: ignore[arg-type]

    def install(self, request: int, elapsed: int, placement: Placement | None) -> None:
        """Let a request run that has run for some time, before anything is decided, at a placement on nodes.

        A scheduler that is not notified of such requests must start it now; it has not run before then.

        Raises
        ------
        InputError
            If the scheduler does not.
        """
        now = self._env.instant
        self._state[request], self._ready[request] = WAITING, now
        if takes_running(self.scheduler):
            if placement is None and self.machine.nodes is not None:
                placement = self.machine.nodes.first(self._need[request])
            self.hold(request, now - elapsed + self._estimate[request], placement)
            self._begin(Start(request, 0, placement), now, elapsed)
            return
        if (expect := attribute_of(self.scheduler, "expect_running")) is not None:
            expect(request, placement)
        self.take(request, self.quote(request))
        self._decide(now)
        if self._state[request] != RUNNING:
            name = name_of(self.scheduler)
            raise InputError(f"has a running request {request} that {name} does not start at once", field="state")

    # -- arrivals ------------------------------------------------------------------------------------------------

    def submit(self, request: int) -> None:
        """Get a quote for a request and accept the request; it is rejected without a quote or if the user declines."""
        why = "" if self.reserved is None else self.reserved.refusal(request, self._env.instant)
        if why or self._needed[request] > self.cores:
            self.refuse(request, why=why)
            return
        if self._chained is not None and self._chained[request] and self._status[request - 1] in _BROKEN:
            self.take(request, None)  # its chain is over: the piece before it was rejected or cancelled
            self._status[request] = self._status[request - 1]
            return
        if self._never_submitted is not None and self._never_submitted[request]:
            self.take(request, None)  # the policy does not support cancellations by users
            self._status[request] = Status.cancelled
            return
        self.take(request, self.quote(request) if self._quoted is None else self._quote_of(request))

    def bid(self, piece: Piece) -> Bid | None:
        """Return the bid of this cluster for a rigid job, without changing any state."""
        (request,) = piece.requests
        quote = self._quote_of(request)
        if quote is None:
            return None
        if quote.offer is None:
            raise self._error("quotes no start time, so clusters cannot be compared")
        offer, cores = quote.offer, quote.cores or self._requested[request]
        charge = self.rate * cores * (self._requests.estimate_on(request, cores) / 1e6)
        return Bid(self._acceptable(request, offer), offer.granted, len(offer.kills), offer.start, charge)

    def _quote_of(self, request: int) -> Quote | None:
        """Return the quote for a request; it is computed once per instant, for all routers and the submission."""
        now: int = self._env.now  # type: ignore[assignment]
        if self._quoted is None or self._quoted[:2] != (request, now):
            self._quoted = (request, now, self.quote(request))
        return self._quoted[2]

    def quote(self, request: int) -> Quote | None:
        """Return the scheduler's quote for a new request that fits this cluster; the caller may pass it to `take`."""
        now: int = self._env.now  # type: ignore[assignment]
        if self._unsettled:
            self._settle(now)
        self._ready[request] = now
        try:
            quote = self.scheduler.quote(request, now)
        except Exception as error:
            raise_failed(self.scheduler, "quote", error)
        if self._foreign:
            self._check_quote(quote, request, now)
        return quote

    def _check_quote(self, quote: Any, request: int, now: int) -> None:
        """Raise `PolicyError` for a value that is not a quote, or for an offer without times."""
        offer = quote.offer if isinstance(quote, Quote) else quote
        whole = isinstance(offer, Offer) and all(
            isinstance(it, int | np.integer) for it in (offer.start, offer.granted)
        )
        if offer is not None and not whole:
            raise self._error(
                f"answered request {request} at {now / 1e6} s with {quote!r}; expected "
                "None or a Quote, with an Offer of whole microseconds or none"
            )

    def take(self, request: int, quote: Quote | None) -> None:
        """Accept a request with its quote of this instant, if its user agrees."""
        now: int = self._env.now  # type: ignore[assignment]
        if quote is not None and quote.offer is not None and not self._agreed(request, quote.offer):
            # Some policies keep a job without a guarantee if its user declines.
            quote = call(self.scheduler, "declined", quote) if self.can.guarantees else None
        if quote is None:
            self._turn_away(request)
            if not self._batched:
                self._decide(now)
            return
        try:
            stops = self.scheduler.commit(quote, now)
        except Exception as error:
            raise_failed(self.scheduler, "commit", error)
        self._state[request] = WAITING
        if quote.cores:
            self._size(request, quote.cores, now)
        self.offered += self._need[request]
        if stops:
            if not isinstance(stops, Iterable):
                raise self._error(f"returned {stops!r} from commit; expected Stop objects")
            for stop in stops:
                self._stop(stop, now)
        self.dirty = True
        if not self._batched:
            self._decide(now)

    def _turn_away(self, request: int) -> None:
        """Leave out a request that gets no quote, was declined or was withdrawn, and remove it from the load."""
        self._status[request] = Status.unadmitted
        self._state[request] = DONE
        if self._load is not None and request in self._load and self.dags is None:
            self._load.dequeue(request)
            self._load.remove(request)
        if self.users is not None:
            self.users.over(request)

    def _agreed(self, request: int, offer: Offer) -> bool:
        """Record the guaranteed deadline, or the later offer that the user declines; return whether the user agrees."""
        if offer.granted >= NEVER:
            return True
        outcome, asked = self._outcome, int(self._requests.deadline[request])
        if offer.granted > asked:
            outcome.offer[request] = offer.granted
            if not self._acceptable(request, offer):
                return False
        outcome.granted[request] = offer.granted
        outcome.doublings[request] = offer.doublings
        self._promises = True
        return True

    def _acceptable(self, request: int, offer: Offer) -> bool:
        """Return whether the user accepts an offer: the requested deadline, or a later one within the tolerance."""
        asked = int(self._requests.deadline[request])
        if offer.granted >= NEVER or offer.granted <= asked:
            return True
        return offer.granted <= self._outcome.latest_taken(request, int(self._requests.submit[request]), asked)

    def _kill(self, request: int, now: int, by: int, *, again: bool = True) -> None:
        """Stop a running request in favour of the request *by*; it waits, and may run *again*."""
        began = self._check_running(request, now)
        self._outcome.cut.append((request, began, now, by))
        if self.progress is not None:
            self.progress.end(request, began, self._passed(request, now), again=again)
        self._release(request, now)

    def _check_running(self, request: int, now: int) -> int:
        """Return the start of a request that can be stopped."""
        began = self._start[request]
        if self._state[request] != RUNNING or began >= now:
            raise self._error(f"kills request {request} at {now / 1e6} s, which is not running")
        return began

    def _passed(self, request: int, now: int) -> int:
        """Return how long a run has had its cores, whole microseconds."""
        asleep = self._suspended.get(request, (now, 0))[0]
        return asleep - self._start[request] - self._paused.get(request, 0)

    def _suspend(self, request: int, now: int, by: int) -> None:
        """Take the cores of a running request, which keeps all else and waits for them."""
        self._cancelled = True
        self._suspended[request] = now, by
        self._state[request] = WAITING
        self.machine.suspend(request)
        self._outcome.placed.begin(request, self._places[request], self._first_node, now, "suspended")
        if self._load is not None:
            self._load.enqueue(request)

    def _awake(self, request: int, now: int) -> None:
        """Record the end of a suspension."""
        since, by = self._suspended.pop(request)
        self._paused[request] = self._paused.get(request, 0) + now - since
        self._outcome.suspended.append((request, self._start[request], since, now, by))

    def _resume(self, start: Start, now: int) -> None:
        """Resume a suspended request at its place."""
        request = start.request
        self._awake(request, now)
        began = self._start[request] + self._paused[request]
        self.machine.resume(request, began + self._estimate[request])
        self._outcome.placed.begin(request, self._places[request], self._first_node, now, "resumed")
        self._state[request] = RUNNING
        if self._load is not None:
            self._load.dequeue(request)
        self._schedule_end(request, began, now)

    def change_capacity(
        self,
        change: CapacityChange,
        ends: Mapping[tuple[int, int], int | None],
        hit: Mapping[int, int],
        again: Callable[[int], tuple[int, bool] | None],
    ) -> None:
        """Remove and restore nodes and GPUs, and stop the requests that are *hit*.

        Parameters
        ----------
        change : CapacityChange
            The change for the scheduler, without the requeued requests.
        ends : mapping
            Known ends of present absences, and nodes and GPUs that are back (`Machine.change`).
        hit : mapping of int to int
            Requests to stop, with the reason: an index in `gridsim.record.REASONS`.
        again : callable
            Returns for a stopped request the delay after which it waits again (whole microseconds) and whether it then
            keeps its place in the queue; None if it failed.
        """
        now: int = self._env.now  # type: ignore[assignment]
        back: list[tuple[int, int, bool]] = []
        self.machine.change(ends)
        for request, reason in hit.items():
            if self.machine.lose_hold(request):
                continue
            how = again(request)
            began = self._interrupt(request, now, reason, again=how is not None)
            if how is None:
                self._requests.stopped.discard(request)
                self._outcome.ended[request] = reason
                self._end_stopped(request, began, now, Status.failed)
            else:
                back.append((request, *how))
                if self.demands is not None:
                    self.demands.allow_spares(request, reason == FAILURE)
        here = [request for request in sorted(hit) if (request, 0, True) in back]
        if change.lost or change.restored or change.reserved or hit:
            call(self.scheduler, "capacity_changed", change._replace(requeued=here), now)
            self._unsettled = self.dirty = True
        submitted, submit = self._outcome.submitted, self._requests.submit
        for request, delay, in_place in sorted(back, key=lambda it: (submitted.get(it[0], int(submit[it[0]])), it[0])):
            self._queue_later(request, delay, in_place)
        self.close()

    def _interrupt(self, request: int, now: int, reason: int, *, again: bool) -> int:
        """Stop a run for a reason and notify the scheduler; the request will run *again*, or not. Return its start."""
        self._requests.stopped.add(request)
        began, passed = self._start[request], self._passed(request, now)
        self._release(request, now)
        call(self.scheduler, "ended", request, now)
        if self.progress is not None:
            self.progress.end(request, began, passed, again=again)
        if again:
            assert self._outcome.interrupted is not None
            self._outcome.interrupted.append((request, began, now, reason))
        if again and self.progress is not None:
            self.progress.request_again(request, saved=reason == SAVED)
        return began

    def _release(self, request: int, now: int) -> None:
        """Stop a running or suspended request, which then waits."""
        self._cancelled = True
        asleep = request in self._suspended
        if asleep:
            self._awake(request, now)
        self._paused.pop(request, None)
        self._state[request] = WAITING
        self._leaving.pop(request, None)
        self._give_back(request)
        self._outcome.placed.end(request, now)
        self._start[request] = NEVER
        if self._load is not None and not asleep:
            self._load.enqueue(request)

    def _queue_later(self, request: int, delay: int, in_place: bool) -> None:
        """Submit a stopped request again after a delay; in ``per-event`` order at once without delay."""
        now: int = self._env.now  # type: ignore[assignment]
        if delay or self._batched:
            PriorityEvent(self._env, delay, self._instant.requeue, self._requeued, (request, in_place, now))
        else:
            self._queue_again(request, in_place, now)

    def _requeued(self, event: Event) -> None:
        self._queue_again(*event._value)
        self.close()

    def _queue_again(self, request: int, in_place: bool, stopped: int) -> None:
        """Submit a stopped request again: at its previous place in the queue, or as if submitted when it *stopped*."""
        now: int = self._env.now  # type: ignore[assignment]
        if not in_place:
            self._requests.stopped.discard(request)
            self._outcome.submitted.setdefault(request, int(self._requests.submit[request]))
            self._requests.queue_again(request, stopped)
        ready = self._ready[request]
        quote = self.quote(request)
        self._ready[request] = ready
        if quote is None:
            raise self._error(f"rejects request {request}, which was interrupted")
        call(self.scheduler, "commit", quote, now)
        self._requests.stopped.discard(request)
        self.offered += self._need[request]
        self.dirty = True

    def learn(self, request: int, demands: Demands) -> None:
        """Add a request that was submitted during the run; *demands* contains its requested resources."""
        if self.demands is not None:
            self.demands.learn(request, demands)
            self._needed[request] = NEVER if self.demands.reason(request) else 0

    def hold(self, request: int, until: int, placement: Placement | None) -> None:
        """Report to the scheduler, as a running request, that a user process holds resources; whole microseconds."""
        where = () if placement is None else (placement,)
        self.scheduler.held(request, until, self._env.now, *where)  # type: ignore[attr-defined]

    def let_hold_go(self, request: int) -> None:
        """Report to the scheduler that a user process has released its cores or nodes."""
        self.scheduler.ended(request, self._env.now)  # type: ignore[arg-type]
        self._unsettled = self.dirty = True
        self._decide_later()

    # -- decisions -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Decide after the events that the cluster has been notified of, once the instant is complete.

        The cluster decides at once if the next event is later, otherwise after all other events of this instant.
        """
        if not self.dirty:
            return
        if self.together:
            for cluster in self.together:
                cluster.dirty = True
                cluster._decide_later()
            return
        env = self._env
        if not self._batched or env.peek() > env.now:
            self._decide(env.now)  # type: ignore[arg-type]
        else:
            self._decide_later()

    def _decide_later(self) -> None:
        """Decide after all other events of this instant."""
        self._wanted.ring()

    def _run(self) -> Generator[Event, None, None]:
        while True:
            yield self._wanted
            self._wanted = Wakeup(self._env, self._decide_priority)
            self._decide(self._env.now)  # type: ignore[arg-type]

    def goes_on(self, now: int) -> bool:
        """Return whether the scheduler has requested a cycle that may start a request without another event."""
        still = attribute_of(self.scheduler, "still")
        return still is not None and bool(self._wakes) and not still(now)

    def decide(self) -> None:
        """Decide now, before the remaining events of this instant."""
        self._decide(self._env.now)  # type: ignore[arg-type]

    def _settle(self, now: int) -> None:
        self._unsettled = False
        try:
            self.scheduler.settled(now)
        except Exception as error:
            raise_failed(self.scheduler, "settled", error)

    def _decide(self, now: int) -> None:
        self.dirty, self.offered = False, 0
        if self._unsettled:
            self._settle(now)
        try:
            decision = self.scheduler.dispatch(now)
        except Exception as error:
            raise_failed(self.scheduler, "dispatch", error)
        if decision is NOTHING:
            self._due = NEVER
            return
        if self._foreign:
            self._check_decision(decision, now)
        starts, stops, withdrawals, self._due = decision
        again = False
        if withdrawals or stops:
            for request in withdrawals:
                self._withdraw(request)
            again = self._stop_all(stops, now)
        for start in starts:
            self._begin(start, now)
        if again:
            self._decide(now)
            return
        if self._due <= now:
            raise self._error(f"requested a wake-up at {self._due / 1e6} s, which is not after now")
        self._schedule_wake(now)

    def _schedule_wake(self, now: int) -> None:
        """Schedule the wake-up that the last decision requested, unless an event is pending that is not later."""
        if now < self._due < self._wake_at:
            self._wake_at = self._due
            self._wakes += 1
            self._env.wakes += 1
            PriorityEvent(self._env, self._due - now, self._decide_priority, self._woken)

    def _check_decision(self, decision: Any, now: int) -> None:
        """Raise `PolicyError` for a value that is not a decision; its requests are checked when they are applied."""
        if not isinstance(decision, Decision):
            raise self._error(f"decides {decision!r} at {now / 1e6} s; expected a Decision")
        for name in ("starts", "stops", "withdrawals"):
            part: Any = getattr(decision, name)
            if not isinstance(part, list | tuple):
                raise self._error(f"decides {name}={part!r}; expected a list or tuple")
        wake: Any = decision.wake
        if not isinstance(wake, int | np.integer):
            raise self._error(f"requested a wake-up at {wake!r}; expected whole microseconds or NEVER")

    def _stop_all(self, stops: Sequence[Stop], now: int) -> bool:
        """Carry out stops; return whether a request left at once and waits again."""
        left: list[Stop] = []
        for stop in stops:
            self._check_stop(stop, now)
            if stop.grace is None:
                self._stop(stop, now)
                continue
            self._check_running(stop.request, now)
            if stop.grace:
                what = stop, self._start[stop.request]
                PriorityEvent(self._env, stop.grace, self._end_priority, self._grace_over, what)
            elif not self._writes_last(stop, now):
                left.append(stop)
        for request in self._vacate(left, now) if left else ():
            self._queue_again(request, True, now)
        return bool(left)

    def _check_stop(self, stop: Any, now: int) -> None:
        """Raise `PolicyError` for a stop that cannot be carried out; whether the request runs is checked later."""
        if not isinstance(stop, Stop):
            raise self._error(f"stops {stop!r} at {now / 1e6} s; expected a Stop")
        request, then, by, grace = stop
        self._row(request, "stops")
        if not isinstance(by, int) or by != -1:
            self._row(by, "preempts jobs for")
        known: tuple[str, ...] = ("requeue", "cancel")
        expected = "requeue or cancel, or a grace"
        if grace is not None:
            if isinstance(grace, bool) or not isinstance(grace, int | np.integer) or not 0 <= grace < NEVER:
                raise self._error(f"stops request {request} with grace={grace!r}; expected whole microseconds from 0")
            known, expected = ("requeue", "checkpoint", "cancel"), "requeue, checkpoint or cancel"
        if then not in known and not (then == "suspend" and grace == 0 and self._suspends):
            raise self._error(
                f"stops request {request} with then={then!r}, which is not supported; expected {expected}"
            )

    def _stop(self, stop: Stop, now: int) -> None:
        """Stop a running request, and requeue or cancel it."""
        self._kill(stop.request, now, stop.by)
        if stop.then == "cancel":
            self._cancel(stop.request, now, Status.cancelled)

    def _grace_over(self, event: Event) -> None:
        """Let a stopped request leave, unless its run has ended or ends now."""
        stop, began = event._value
        request, now = stop.request, self._env.instant
        if self._state[request] != RUNNING or self._start[request] != began or self.ends(request, now):
            return
        if not self._writes_last(stop, now):
            self._leave(stop, now)

    def _writes_last(self, stop: Stop, now: int) -> bool:
        """Let a request write a last checkpoint; False if it does not or if that takes no time."""
        if stop.then != "checkpoint" or self.progress is None:
            return False
        cost = self.progress.leave(stop.request, self._passed(stop.request, now))
        if cost:
            self._leaving[stop.request], self._cancelled = stop, True
            PriorityEvent(self._env, cost, self._end_priority, self._ended, stop.request)
        return bool(cost)

    def _leave(self, stop: Stop, now: int) -> None:
        """Let a stopped request leave after its grace or its last checkpoint; it waits again in this instant."""
        for request in self._vacate([stop], now):
            self._queue_later(request, 0, True)
        self.close()

    def _vacate(self, stops: Sequence[Stop], now: int) -> list[int]:
        """End the runs of stopped requests; return those that wait again."""
        again: list[int] = []
        for request, then, by, _ in stops:
            self._requests.stopped.add(request)
            if then == "suspend":
                self._check_running(request, now)
                self._suspend(request, now, by)
            else:
                self._kill(request, now, by, again=then != "cancel")
            call(self.scheduler, "ended", request, now)
            if then == "cancel":
                self._requests.stopped.discard(request)
                self._cancel(request, now, Status.preempted)
                continue
            if self.progress is not None and then != "suspend":
                self.progress.request_again(request, saved=False)
            again.append(request)
        if again:
            call(self.scheduler, "capacity_changed", CapacityChange(requeued=sorted(again)), now)
        self._unsettled = self.dirty = True
        return again

    def _withdraw(self, request: int) -> None:
        """Remove a waiting request that its user cancels."""
        request = self._row(request, "withdraws")
        if self._state[request] != WAITING:
            raise self._error(f"withdraws request {request}, which is not waiting")
        self._turn_away(request)
        self._status[request] = Status.cancelled

    def _error(self, problem: str) -> PolicyError:
        return policy_error(self.scheduler, problem)

    def _row(self, request: Any, does: str) -> int:
        """Return the row of a request in a decision; reject negative rows, which Python counts from the end."""
        if not isinstance(request, int | np.integer) or not 0 <= request < len(self._state):
            raise self._error(f"{does} {request!r}, which is not a request")
        return int(request)

    def _cancel(self, request: int, now: int, status: Status) -> None:
        """End a request that was just stopped instead of requeueing it."""
        _, began, _, by = self._outcome.cut.pop()
        self._outcome.cancelled_by[request] = by
        self._end_stopped(request, began, now, status)

    def _end_stopped(self, request: int, began: int, now: int, status: Status) -> None:
        """End a request that was just stopped."""
        self._state[request] = DONE
        self._start[request], self._end[request] = began, now
        self._status[request] = status
        if self._load is not None:
            self._load.dequeue(request)
        self._over(request, failed=status in (Status.failed, Status.preempted))

    def give_up(self, request: int) -> None:
        """Cancel a task that was placed here and not submitted, since it depends on a failed one."""
        assert self._load is not None
        self._state[request] = DONE
        self._status[request] = Status.cancelled
        self._load.dequeue(request)
        self._load.remove(request)

    def _woken(self, event: Event) -> None:
        now: int = self._env.now  # type: ignore[assignment]
        self._wakes -= 1
        self._env.wakes -= 1
        if self._wake_at <= now:
            self._wake_at = NEVER
        self._schedule_wake(now)  # if a later decision has postponed it
        alone = self.can.alone and not self._wakes and self._env.quiet  # other stuck jobs may need a wake-up
        if alone:
            self.scheduler.alone(now)  # type: ignore[attr-defined]
        if alone or self._due <= now:
            self.dirty = True
            self.close()

    # -- running -------------------------------------------------------------------------------------------------

    def _begin(self, start: Start, now: int, elapsed: int = 0) -> None:
        """Check a start and apply it; *elapsed* is the time for which the request has run before."""
        try:
            request, cores, placement = start
            need, state = self._need[request], self._state[request]
            if request < 0:
                raise IndexError(request)
        except (IndexError, TypeError, ValueError) as error:
            what = f"{start.request!r}" if isinstance(start, Start) else f"{start!r} (not a Start)"
            raise self._error(f"starts {what} at {now / 1e6} s, which is not a request") from error
        if state != WAITING:
            what = ("has not arrived", "", "is running already", "has ended")[state]
            raise self._error(f"starts request {request} at {now / 1e6} s, but it {what}")
        if self._suspended and request in self._suspended:
            self._resume(start, now)
            return
        if cores and cores != need:
            self._size(request, cores, now)
            need = cores
        estimate = self._estimate[request]
        began = now - elapsed
        placement = self._take(request, need, began + estimate, placement)
        if placement is not None:
            if self._suspends:
                self._places[request] = placement
            self._outcome.placed.begin(request, placement, self._first_node, began)
        self._state[request] = RUNNING
        if self._load is not None:
            self._load.dequeue(request)
        if self._molds:
            self._outcome.resize(request, need)
        self._start[request] = began
        self._cluster[request] = self.index
        if self.users is not None:
            self.users.began(request)
        if self.progress is not None:
            self.progress.begin(request, estimate, 1 if placement is None else len(set(placement.node)))
        self._schedule_end(request, began, now)

    def _schedule_end(self, request: int, began: int, now: int) -> None:
        """Schedule the end of a run, and checks of its estimate; without suspensions it *began* at that instant."""
        runtime, estimate = self._runtime[request], self._estimate[request]
        if runtime > estimate and self._extend:
            self._watch(request, max(0, began + estimate - now), 0)
        elif runtime > estimate and request not in self._leaving:
            runtime = estimate
        PriorityEvent(self._env, began + runtime - now, self._end_priority, self._ended, request)
        if self.can.predicts:
            self._expect(request, call(self.scheduler, "predicted", request), began)

    def _expect(self, request: int, prediction: int, began: int) -> None:
        """Schedule a check for when a running request exceeds its prediction, if it does so before it ends."""
        if prediction < self._runtime[request] and prediction < self._estimate[request]:
            delay = began + prediction - self._env.now
            PriorityEvent(self._env, delay, self._instant.overrun, self._prediction_exceeded, (request, began))  # type: ignore[arg-type]

    def _prediction_exceeded(self, event: Event) -> None:
        """Let the scheduler correct an exceeded prediction; this alone starts no request."""
        request, began = event._value
        if self._state[request] != RUNNING or self._start[request] + self._paused.get(request, 0) != began:  # earlier
            return
        self._expect(request, call(self.scheduler, "corrected", request, self._env.now), began)
        if self.can.plan:  # planned starts change, and some requests may start now
            self._unsettled = self.dirty = True
            self._decide_later()

    def _size(self, request: int, cores: int, now: int) -> None:
        """Set the number of cores of a moldable request: within its range, or the requested number."""
        inside = isinstance(cores, int | np.integer) and self._least[request] <= cores <= self._most[request]
        if cores != self._requested[request] and not inside:
            raise self._error(
                f"starts request {request} on {cores} cores at {now / 1e6} s; "
                f"it can run on {self._least[request]} to {self._most[request]}"
            )
        if cores != self._need[request]:
            self._need[request], self._estimate[request] = cores, self._requests.estimate_on(request, cores)

    def _ended(self, event: Event) -> None:
        request: int = event._value
        now: int = self._env.now  # type: ignore[assignment]
        if self._cancelled and not self.ends(request, now):
            return
        if self._unsettled and not self._batched:  # overruns of this instant
            self._settle(now)
        if self.progress is not None:
            passed = self._passed(request, now)
            if self.progress.saves(request, passed):
                self._saved(request, now)
                return
            self.progress.end(request, self._start[request], passed, again=False)
        self._give_back(request)
        self._state[request] = DONE
        self._end[request] = now
        if self._nodes:
            self._outcome.placed.end(request, now)
        killed = not self._extend and self._runtime[request] > self._estimate[request]
        self._status[request] = _KILLED if killed else _COMPLETED
        if self._promises and now > self._outcome.granted[request]:
            self._missed(request, now)
        try:
            self.scheduler.ended(request, now)
        except Exception as error:
            raise_failed(self.scheduler, "ended", error)
        self._unsettled = self.dirty = True
        if self._load is not None or self.users is not None:
            self._over(request)
        self.close()

    def _saved(self, request: int, now: int) -> None:
        """End a run that has saved its work before its walltime, or because it was stopped; the request waits again."""
        if (stop := self._leaving.pop(request, None)) is not None:
            self._leave(stop, now)
            return
        self._interrupt(request, now, SAVED, again=True)
        self._unsettled = self.dirty = True
        self._queue_later(request, 0, False)
        self.close()

    def ends(self, request: int, now: int) -> bool:
        """Return whether the present run of a request ends *now*; an end event may belong to a stopped run."""
        held = self._runtime[request]
        if not self._extend and request not in self._leaving:
            held = min(held, self._estimate[request])
        return self._state[request] == RUNNING and self._start[request] + self._paused.get(request, 0) + held == now

    def _missed(self, request: int, now: int) -> None:
        """Record a missed deadline guarantee; this is an error without an overrun or an absence."""
        if self._extend and self._overrun:
            self._outcome.broken[request] |= self._runtime[request] <= self._estimate[request]
            return
        if self._outcome.interrupted is not None and self.can.guarantees and self.scheduler.broken[request]:  # type: ignore[attr-defined]
            return  # by the machine
        promised = self._outcome.granted[request] / 1e6
        raise self._error(f"promised request {request} an end by {promised} s; it ends at {now / 1e6} s")

    def _over(self, request: int, *, failed: bool = False) -> None:
        """Remove a request that is over from the load, and notify its DAG job and its users."""
        if self._load is not None:
            self._load.remove(request)
        dag = self.dags.of[request] if self.dags is not None else None
        if dag is not None:
            (dag.failed if failed else dag.ended)(request)
        if self.users is not None:
            self.users.over(request)

    def _watch(self, request: int, delay: int, overrun: int) -> None:
        """Schedule a check for when a request should have ended: overruns are assumed to be one tick, two, four, …"""
        PriorityEvent(self._env, delay, self._instant.overrun, self._overran, (request, overrun))

    def _overran(self, event: Event) -> None:
        request, overrun = event._value
        now: int = self._env.now  # type: ignore[assignment]
        began = self._start[request] + self._paused.get(request, 0)
        if began + self._runtime[request] <= now:  # it has ended, or ends in this instant
            return
        if self._state[request] != RUNNING or began + self._estimate[request] + overrun != now:  # of an earlier run
            return
        self._overrun = True
        more = max(2 * overrun, self.tick)
        expected = began + self._estimate[request] + more
        call(self.scheduler, "overran", request, expected, now)
        self._watch(request, expected - now, more)
        self._unsettled = self.dirty = True
        self._decide_later()
