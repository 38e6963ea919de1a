"""Preemption under any list or plan-based scheduler: victims are stopped, and their resources are claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from gridsim.machine.allocations_over_time import Holdings, Place
from gridsim.machine.node_profile import ABSENT, UNTIL, NodeProfile, Workspace
from gridsim.model.time import NEVER
from gridsim.model.workload import PRIORITY
from gridsim.policy.capabilities import Wrapper
from gridsim.policy.placement_bridge import placement_at
from gridsim.policy.protocols import Capabilities, CapacityChange, Decision, Quote, Start, Stop
from gridsim.policy.queue import ClusterView


class _Claim(NamedTuple):
    """Resources held for a waiting request from an instant on, whole microseconds."""

    place: Place
    start: int
    is_held: bool = False


class _Suspended(NamedTuple):
    """A suspended run: its place, the row of what it keeps, start, begin of the suspension, rest of its run time."""

    place: Place
    rest: int
    began: int
    since: int
    left: int


class Preempting(Wrapper):
    """Wrapper of a scheduler that lets waiting jobs of a higher class stop running jobs of a lower one.

    Parameters
    ----------
    inner : object
        A scheduler with a rule ``preempt``. It has

        - ``log``: a `gridsim.policy.placement_bridge.PlacementLog` with the allocations over time;
        - ``front(now)``: the starts decided before any preemption, and the requests that may preempt, in order;
        - ``holdings_for(request)``: a copy of the allocations, of running requests and of the waiting ones ahead;
        - ``durations``: the planned run time of each request; ``expect(request, end, now)``: a new expected end;
        - ``set_aside(request, now)``, ``return_to_queue(request, now)``: a request with a claim is not in the queue;
        - ``begin(request, until, now)``: a request with a claim starts;
        - ``resumed(request, began, paused)``: a suspended request continues; under a plan also ``plan.rests``.

    Notes
    -----
    Only the first request of the queue may preempt; under a plan every waiting request, in queue order. Victims are
    taken in order until the request can be placed at the instant at which the last of them has left; then those are
    spared, from the last but one to the first, without which it still can. It holds a claim on its place from that
    instant on.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._how = inner.preempt
        self._claims: dict[int, _Claim] = {}
        self._began: dict[int, int] = {}  # running requests
        self._leaving: set[int] = set()
        self._left: set[int] = set()
        self._stops: Counter[int] = Counter()
        self._suspended: dict[int, _Suspended] = {}
        self._paused: Counter[int] = Counter()  # time for which runs were suspended

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the inner scheduler, in Python."""
        return replace(super().capabilities, preempts=PRIORITY, compiled=frozenset())

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the inner scheduler for a run."""
        assert cluster.demands is not None
        self._demands, self.suspends = cluster.demands, self._how.then == "suspend"
        if self.suspends:
            cluster.demands.allow_suspension()
        super().setup(cluster, rng)
        self._requests, labels = cluster.requests, cluster.requests.labels
        self._class, self._preemptible = labels[PRIORITY], labels.get("preemptible")

    def ended(self, request: int, now: int) -> None:
        """Record that a request has ended or left."""
        if request in self._suspended:
            self._inner.set_aside(request, now)  # its run ends, and it waits for all its resources
            self._wake(request, now)
            self._paused.pop(request, None)
            return
        left, place = 0, None
        if self.suspends and request in self._leaving:
            left, place = self._end_of(request) - now, self._holdings.place_of(request)
        self._inner.ended(request, now)
        began = self._began.pop(request, now)
        if request in self._leaving:
            self._leaving.remove(request)
            self._left.add(request)
        if place is None:
            self._paused.pop(request, None)
            return
        log = self._inner.log  # without the request: its demand changes
        rest = self._demands.rest(request, place.node, place.tasks)
        self._demands.suspend(request, place.node, place.tasks)
        log.learn()
        log.holdings.put_at(rest, place, now, NEVER)
        self._note_rest(request, rest, 1)
        self._suspended[request] = _Suspended(place, rest, began, now, left)

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Record changed capacity, and requests that were stopped and wait again."""
        self._inner.capacity_changed(change, now)
        if not change.lost:
            self._stops.update(self._left.intersection(change.requeued))
        if change.requeued:
            self._left.clear()
        for request in self._suspended.keys() & set(change.requeued):
            self._inner.durations[request] = self._suspended[request].left

    def settled(self, now: int) -> None:
        """Hold the resources of claims before the inner scheduler plans again."""
        self._review(now, starting=False)
        self._inner.settled(now)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Admit the request; a suspended one requests what is left of its walltime."""
        stops: Sequence[Stop] = self._inner.commit(quote, now)
        if (run := self._suspended.get(quote.request)) is not None:
            self._inner.durations[quote.request] = run.left
        return stops

    def dispatch(self, now: int) -> Decision:
        """Return starts of claims, then stops for waiting requests, then the decision of the inner scheduler.

        If a victim leaves at once, the cluster asks again in the same instant.
        """
        starts, stops = self._review(now, starting=True), list[Stop]()
        while True:
            first, waiting = self._inner.front(now)
            starts += self._noted(first, now)
            more = self._stops_for(waiting, now)
            if not more:
                break
            stops += more
            if not all(stop.grace or self._writes(stop.request) for stop in more):
                return Decision(starts, stops)
            self.settled(now)
        last = self._inner.dispatch(now)
        starts += self._noted(last.starts, now)
        due = [claim.start for claim in self._claims.values()]
        due += [self._exempt(running) for running in self._began] if waiting and self._how.min_run_us else []
        wake = min(last.wake, *(at for at in due if at > now), NEVER)
        return Decision(starts, [*stops, *last.stops], last.withdrawals, wake)

    def _noted(self, starts: Sequence[Start], now: int) -> Sequence[Start]:
        """Record the starts of requests."""
        for request, *_ in starts:
            self._began[request] = self._resume(request, now) if request in self._suspended else now
        return starts

    # -- suspended requests ----------------------------------------------------------------------------------------

    def _resume(self, request: int, now: int) -> int:
        """Let a suspended request hold all its resources again; return the start of its run."""
        run = self._suspended[request]
        self._holdings.release_many(np.array([request]), 1, now)  # of the cores alone
        self._wake(request, now)
        self._holdings.put_at(request, run.place, now, now + run.left)
        self._paused[request] += now - run.since
        self._inner.resumed(request, run.began, self._paused[request])
        return run.began

    def _wake(self, request: int, now: int) -> None:
        """Release what a suspended request kept; from now on it needs all that it requested."""
        self._holdings.release_many(np.array([self._suspended.pop(request).rest]), 1, now)
        self._note_rest(request, -1, -1)
        self._demands.resume(request)
        self._inner.durations[request] = self._requests.estimate[request]

    def _note_rest(self, request: int, rest: int, more: int) -> None:
        """Record the row of what a suspended request keeps, because of which some requests may fit at no known time."""
        NodeProfile(*self._holdings.floor).meta[ABSENT] += more
        if self.capabilities.plan:
            self._inner.plan.rests[request] = rest

    # -- victims -------------------------------------------------------------------------------------------------

    def _stops_for(self, waiting: Sequence[int], now: int) -> list[Stop]:
        """Return the stops for the first of the waiting requests that can preempt; it then holds a claim."""
        lowest = min((int(self._class[request]) for request in self._began), default=NEVER)
        for request in waiting:
            if self._class[request] <= lowest:
                break
            if request in self._suspended:
                continue
            found = self._victims(request, now)
            if found is None:
                continue
            victims, claim = found
            for victim in victims:
                leave = now + self._wait(victim)
                if leave > now:
                    end = self._end_of(victim)
                    self._inner.expect(victim, leave if now + self._how.grace_us < end else end, now)
            self._leaving.update(victims)
            self._inner.set_aside(request, now)
            self._claims[request] = claim
            return [Stop(victim, self._how.then, request, self._how.grace_us) for victim in victims]
        return []

    def _victims(self, request: int, now: int) -> tuple[list[int], _Claim] | None:
        """Return the requests to stop, and the claim of a request; None if stopping all would not suffice."""
        candidates = self._candidates(request, now)
        if not candidates:
            return None
        places = {victim: self._holdings.place_of(victim) for victim in candidates}
        rests = {}
        if self.suspends:
            rests = {victim: self._demands.rest(victim, it.node, it.tasks) for victim, it in places.items()}
            self._inner.log.learn()
        trial: Holdings = self._inner.holdings_for(request, now)
        duration = int(self._inner.durations[request])
        taken: list[int] = []

        def take(victim: int) -> None:
            trial.release_many(np.array([victim]), 1, now)
            if rests:
                trial.put_at(rests[victim], places[victim], now, NEVER)

        def spare(victim: int) -> None:
            if rests:
                trial.release_many(np.array([rests[victim]]), 1, now)
            trial.put_at(victim, places[victim], now, self._end_of(victim))

        def fits() -> bool:
            at = now + max(map(self._wait, taken))
            return trial.first_place(request, duration, at, at + 1) == at

        if not rests and len({self._wait(it) for it in candidates}) == 1:  # all together suffice if any do
            everything, taken = trial, candidates
            trial = everything.copy()
            for victim in candidates:
                take(victim)
            if not fits():
                return None
            trial, taken = everything, []
        for victim in candidates:
            take(victim)
            taken.append(victim)
            if fits():
                break
        else:
            return None
        for victim in taken[-2::-1]:
            taken.remove(victim)
            spare(victim)
            if not fits():
                take(victim)
                taken.append(victim)
        taken.sort(key=candidates.index)
        start = now + max(map(self._wait, taken))
        trial.first_place(request, duration, start, start + 1)
        count = trial.put(request, start, start + duration, promise=True)
        return taken, _Claim(trial.place(count), start)

    def _candidates(self, request: int, now: int) -> list[int]:
        """Return the running requests that a request may stop, in the order in which they are taken."""
        level, how, found = self._class[request], self._how, []
        for victim, began in self._began.items():
            if self._class[victim] >= level or victim in self._leaving:
                continue
            if self._preemptible is not None and self._preemptible[victim] == 0:
                continue
            if how.max is not None and self._stops[victim] >= how.max:
                continue
            if self.suspends and not self._demands.can_suspend(victim):
                continue
            if began < now and self._exempt(victim) <= now:
                found.append(victim)
        return sorted(found, key=lambda victim: self._key(victim, now))

    def _exempt(self, victim: int) -> int:
        """Return the instant from which a running request can be stopped."""
        return self._began[victim] + self._paused[victim] + int(self._how.min_run_us)

    def _key(self, victim: int, now: int) -> tuple[float, ...]:
        """Return the sort key of a candidate."""
        began, requests, progress = self._began[victim], self._requests, self._requests.progress
        lost = now - began - self._paused[victim]
        if progress is not None:
            lost = progress.lost(victim, lost)
        by = {"youngest": -began, "checkpointed": lost, "least-lost": lost * requests.demand("cores")[victim]}
        return int(self._class[victim]), by[self._how.victims], -int(requests.submit[victim]), -victim

    def _wait(self, victim: int) -> int:
        """Return the time until a victim has left, whole microseconds."""
        return int(self._how.grace_us) + self._writes(victim)

    def _writes(self, victim: int) -> int:
        """Return the duration of the last checkpoint of a victim, whole microseconds."""
        progress = self._requests.progress
        if self._how.then != "checkpoint" or progress is None:
            return 0
        return progress.cost(victim) or 0

    def _end_of(self, request: int) -> int:
        """Return the expected end of a running request."""
        return int(NodeProfile(*self._holdings.floor).holds[UNTIL, request])

    @property
    def _holdings(self) -> Holdings:
        found: Holdings = self._inner.log.holdings
        return found

    # -- claims --------------------------------------------------------------------------------------------------

    def _review(self, now: int, *, starting: bool) -> list[Start]:
        """Hold the resources of each claim; start it if they are free from now on, dissolve it if they will not be."""
        starts, holdings = list[Start](), self._holdings
        for request, claim in list(self._claims.items()):
            if claim.is_held:
                holdings.release_many(np.array([request]), 1, now)
            duration = int(self._inner.durations[request])
            if starting and self._is_free(request, claim.place, now, duration):
                del self._claims[request]
                self._inner.begin(request, now + duration, now)
                holdings.put_at(request, claim.place, now, now + duration)
                starts.append(Start(request, 0, placement_at(holdings, request, claim.place)))
                self._inner.log.freed(now)
            elif claim.start >= now + starting and self._is_free(request, claim.place, claim.start, duration):
                holdings.put_at(request, claim.place, claim.start, claim.start + duration, promise=True)
                self._claims[request] = claim._replace(is_held=True)
            else:
                del self._claims[request]
                self._inner.log.freed(now)
                self._inner.return_to_queue(request, now)
        return list(self._noted(starts, now))

    def _is_free(self, request: int, place: Place, begin: int, duration: int) -> bool:
        """Return whether a request can have a place for its duration from an instant on."""
        holdings = self._holdings
        if holdings.first_place(request, duration, begin, begin + 1) != begin:
            return False
        sketch, columns = Workspace(*holdings.sketch), holdings.demands.columns
        free = sketch.low[place.node, len(columns.resources) : -1]
        return bool((sketch.fits[place.node] >= place.tasks).all() and (free >= place.shares).all())
