"""Process that removes failed nodes and GPUs, and nodes in windows, stops their requests, and restores them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from simpy import Event

from gridsim.entities.clock import Clock, Instant, PriorityEvent
from gridsim.entities.cluster import Cluster
from gridsim.errors import InputError, call, located, policy_error
from gridsim.model.failures import Failure, Failures, Machines, Part
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.windows import PlannedWindow, Window, planned
from gridsim.policy.capabilities import attribute_of
from gridsim.policy.protocols import Absence, CapacityChange
from gridsim.policy.queue import Requests
from gridsim.policy.scheduler.with_reservations import WithReservations
from gridsim.record import FAILURE, REASONS

_ANNOUNCE, _BEGIN, _END = range(3)
"""Order of the steps of windows within an instant."""

_MOST_RESTARTS = 10_000
"""A job that is interrupted more often would practically never end."""

_LONGEST_WAIT = 100_000
"""Changes of capacity in which nothing runs, after which waiting jobs are taken to fit at no time."""

_Key = tuple[int, Part]
"""Cluster, and node or GPU."""


class Breakdowns:
    """Apply failures and windows in order of time; failures of one node that overlap or touch are one absence.

    Parameters
    ----------
    clusters : sequence of Cluster
        Clusters with nodes, whose schedulers have ``capacity_changed``.
    options : Failures
        Knowledge of repairs, windows, and what happens to stopped requests.
    machines : Machines
        Nodes of the clusters.
    seed : int
        Seed of the scenario.
    provenance : mapping
        Provenance of the workload, which may define the dates of windows.
    reserving : callable
        Returns the scheduler with reservations of the only cluster, if it is needed.
    """

    def __init__(
        self,
        env: Clock,
        clusters: Sequence[Cluster],
        requests: Requests,
        options: Failures,
        machines: Machines,
        seed: int,
        instant: Instant,
        provenance: Mapping[str, Any],
        reserving: Callable[[Sequence[Absence]], WithReservations],
    ) -> None:
        self._env, self._clusters, self._requests = env, clusters, requests
        self._options, self._machines, self._priority = options, machines, instant.capacity
        self._failures = options.failures(machines, seed)
        self._announced, self._delay = options.repair == "announced", to_us(options.requeue_delay)
        self._next = next(self._failures, None)
        self._ups: list[tuple[int, int, Failure]] = []  # by end
        self._until: dict[_Key, list[int]] = defaultdict(list)  # ends of the failures of each absent part
        self._known: dict[_Key, Absence] = {}  # failures, as far as schedulers know
        self._since: dict[_Key, int] = {}
        self._past: list[tuple[int, int, int, Part, int]] = []  # begin, end and reason of absences that are over
        self._steps: list[tuple[int, int, int]] = []  # instant and number of the steps of each window
        self._windows: list[tuple[PlannedWindow, list[_Key]]] = []
        self._open: set[int] = set()  # announced windows that are not over
        self._begun: dict[int, int] = {}  # begins of windows that are not over
        self._inside: dict[_Key, set[int]] = defaultdict(set)  # windows that have begun, of each node
        self._restarts: dict[int, int] = defaultdict(int)
        self._count, self._expected, self._reserving = 0, NEVER, reserving
        self._idle = 0  # changes of capacity since anything ran
        if options.windows and "reservation" in requests.labels and not clusters[0].can.site:
            self._reserve()
        booked = attribute_of(clusters[0].scheduler, "booked", ())  # by the scheduler itself
        for window in planned(options.windows, machines.nodes, provenance):
            if window.kind != "reservation" or window.id not in booked:
                self._add(window)
        self._expect()

    def absences(self) -> tuple[tuple[str, ...], int, IntArray, tuple[PlannedWindow, ...]]:
        """Return the names of all nodes, the number of GPUs, all absences so far in order of time, and reservations.

        Returns
        -------
        names : tuple of str
            As in `gridsim.record.Interruptions`.
        gpus : int
            Number of GPUs.
        absences : (5, f) int64
            Index of the node, number of the GPU, reason, begin and end.
        reserved : tuple of PlannedWindow
            Reservations.
        """
        first = np.cumsum([0, *(len(each.nodes) for each in self._machines.capacities)]).tolist()
        present = [(self._since[key], max(ends), *key, FAILURE) for key, ends in self._until.items() if ends]
        for number, began in self._begun.items():
            window, keys = self._windows[number]
            if window.kind != "reservation":
                present += [(began, window.end, *key, REASONS.index(window.kind)) for key in keys]
        rows = sorted((*self._past, *present))
        table = [(first[cluster] + part[0], part[1], reason, down, up) for down, up, cluster, part, reason in rows]
        gpus = sum(int(each.gpus.sum()) for each in self._machines.capacities)
        reserved = tuple(window for window, _ in self._windows if window.kind == "reservation")
        return self._machines.nodes, gpus, np.array(table, dtype=np.int64).reshape(-1, 5).T, reserved

    @property
    def lost_part(self) -> bool:
        """True if a node or GPU is absent and will not return."""
        lasting = any(self._windows[number][0].over >= NEVER for number in self._begun)
        return lasting or any(NEVER in ends for ends in self._until.values())

    @property
    def _returning(self) -> bool:
        """True if requests wait, and an absent node or GPU returns, or members wait for a reservation."""
        if not any(cluster.awaited for cluster in self._clusters):  # on many nodes, some are absent at any time
            return False
        reserved = self._clusters[0].reserved
        return (
            bool(self._ups)
            or (reserved is not None and reserved.awaited)
            or any(self._windows[number][0].over < NEVER for number in self._open)
        )

    def _expect(self) -> None:
        """Schedule the next instant of a failure, a return, or a step of a window."""
        due = [*(each[0][0] for each in (self._ups, self._steps) if each), NEVER]
        at = min(*due, NEVER if self._next is None else self._next.down)
        if at < min(self._expected, NEVER):
            self._expected = at
            PriorityEvent(self._env, at - self._env.instant, self._priority, self._happen)

    def _happen(self, _: Event) -> None:
        now = self._env.instant
        self._idle = self._idle + 1 if self._env.quiet else 0
        over = self._idle > 0 and not self._returning and not any(it.goes_on(now) for it in self._clusters)
        if now != self._expected or over or self._idle > _LONGEST_WAIT:
            return  # superseded by an earlier event; or nothing runs, arrives or returns: the run is over
        self._expected = NEVER
        self._change(now)
        self._expect()

    def fail(self, nodes: Sequence[str], now: int, until: int) -> None:
        """Let nodes and GPUs fail in the present instant, in addition, until an instant in whole microseconds."""
        state = _Changes()
        for cluster, parts in self._machines.parts(nodes).items():
            self._begin(Failure(now, until, cluster, tuple(parts)), state)
        self._apply(now, state)
        self._expect()

    def announce(self, window: Window, now: int, provenance: Mapping[str, Any]) -> None:
        """Announce a window in the present instant, in addition."""
        for each in planned([window], self._machines.nodes, provenance):
            self._add(replace(each, announced=now))
        self._change(now)
        self._expect()

    def _add(self, window: PlannedWindow) -> None:
        with located(window.origin or None, field=f"window.{window.id or len(self._windows)}.nodes"):
            found = [(cluster, (node, -1)) for cluster, node in map(self._machines.node, window.nodes)]
            if window.kind == "reservation":
                self._reserve().add(len(self._windows), window, [node for _, (node, _) in found])
        heapq.heappush(self._steps, (window.announced, _ANNOUNCE, len(self._windows)))
        self._windows.append((window, found))

    def _reserve(self) -> WithReservations:
        """Return the scheduler with reservations of the only cluster."""
        cluster = self._clusters[0]
        if cluster.reserved is None:
            known = [*self._known.values(), *(it for number in self._open for _, it in self._absences_of(number))]
            cluster.scheduler = cluster.reserved = self._reserving(known)
        return cluster.reserved

    def _absences_of(self, number: int) -> Iterator[tuple[int, Absence]]:
        """Yield the cluster and the absence of each node of a window; none for reservations."""
        window, keys = self._windows[number]
        for cluster, (node, _) in keys if window.kind != "reservation" else ():
            yield cluster, Absence(node, -1, window.begin, window.end, window.announced < window.begin)

    def _change(self, now: int) -> None:
        """Apply all returns and failures of an instant, then the steps of windows."""
        state = _Changes()
        while self._ups and self._ups[0][0] == now:
            _, _, failure = heapq.heappop(self._ups)
            for part in failure.parts:
                key = failure.cluster, part
                state.failing.setdefault(key, True)
                self._until[key].remove(failure.up)
        while self._next is not None and self._next.down == now:
            self._begin(self._next, state)
            self._next = next(self._failures, None)
        while self._steps and self._steps[0][0] <= now:
            _, step, number = heapq.heappop(self._steps)
            self._step(step, number, now, state)
        self._apply(now, state)

    def _begin(self, failure: Failure, state: _Changes) -> None:
        self._count += 1
        for part in failure.parts:
            state.failing.setdefault((failure.cluster, part), bool(self._until[failure.cluster, part]))
            self._until[failure.cluster, part].append(failure.up)
        if failure.up < NEVER:
            heapq.heappush(self._ups, (failure.up, self._count, failure))

    def _step(self, step: int, number: int, now: int, state: _Changes) -> None:
        """Announce, begin or end a window."""
        window, keys = self._windows[number]
        reason, away = REASONS.index(window.kind), keys
        if window.kind == "reservation":
            state.reserved.append(number)
            away = []
        if step == _ANNOUNCE:
            self._open.add(number)
            if window.begin < window.deleted:
                heapq.heappush(self._steps, (max(now, window.begin), _BEGIN, number))
            if window.over < NEVER:
                heapq.heappush(self._steps, (window.over, _END, number))
        elif step == _BEGIN:
            self._begun[number] = now
            state.hit += [(key, reason) for key in keys if window.stops]
            for key in away:
                self._inside[key].add(number)
                state.touched.add(key)
        else:
            self._open.remove(number)
            began = self._begun.pop(number, None)
            for key in away if began is not None else ():
                self._past.append((began or 0, now, *key, reason))
                self._inside[key].remove(number)
                state.touched.add(key)
        if step != _BEGIN:
            table = state.lost if step == _ANNOUNCE else state.restored
            for cluster, absence in self._absences_of(number):
                table[cluster].append(absence)

    def _apply(self, now: int, state: _Changes) -> None:
        """Notify the clusters of the changes of an instant."""
        failed: list[tuple[_Key, int]] = []
        for key, was_absent in state.failing.items():
            (cluster, part), until = key, self._until[key]
            state.touched.add(key)
            if until and not was_absent:
                self._since[key] = now
                failed.append((key, FAILURE))
            elif not until and was_absent:
                self._past.append((self._since[key], now, cluster, part, FAILURE))
            absence = Absence(*part, now, max(until) if self._announced else NEVER) if until else None
            known = self._known.get(key)
            if absence is not None and known is not None and absence.end == known.end:
                continue
            if known is not None:
                state.restored[cluster].append(self._known.pop(key))
            if absence is not None:
                self._known[key] = absence
                state.lost[cluster].append(absence)
        changed = {cluster for cluster, _ in state.touched} | {*state.lost, *state.restored}
        for cluster in sorted(changed | ({0} if state.reserved else set())):
            lost, restored = tuple(state.lost[cluster]), tuple(state.restored[cluster])
            change = CapacityChange(lost, restored, reserved=tuple(state.reserved))
            ends = {key[1]: self._end_of(key) for key in state.touched if key[0] == cluster}
            hits = [(part, reason) for (of, part), reason in (*failed, *state.hit) if of == cluster]
            machine = self._clusters[cluster]
            machine.change_capacity(change, ends, self._hit(machine, hits, now), partial(self._again, machine))

    def _end_of(self, key: _Key) -> int | None:
        """Return the known end of the present absence of a node or GPU; None if it is present."""
        ends = [self._windows[number][0].end for number in self._inside[key]]
        if key in self._known:
            ends.append(self._known[key].end)
        return max(ends, default=None)

    def _hit(self, cluster: Cluster, hits: Iterable[tuple[Part, int]], now: int) -> dict[int, int]:
        """Return the requests on failed nodes and GPUs, and of windows that begin, with the reason; in their order.

        Requests that end now are left out.
        """
        found: dict[int, int] = {}
        submit = self._requests.submit
        for reason, group in groupby(hits, key=lambda it: it[1]):
            there = {request for part, _ in group for request in cluster.machine.on(*part)}
            for request in sorted(there, key=lambda request: (int(submit[request]), request)):
                if not cluster.ends(request, now):
                    found.setdefault(request, reason)
        return found

    def _again(self, cluster: Cluster, request: int) -> tuple[int, bool] | None:
        """Return the delay of a stopped request and whether it keeps its place in the queue; None if it failed."""
        options, own = self._options, self._requests.own
        most, may = NEVER if options.max_restarts is None else options.max_restarts, True
        delay, in_place = self._delay, options.requeue == "original"
        if "requeue_rule" in cluster.can.notified:
            delay, in_place = 0, True  # the scheduler itself determines them
            rule = call(cluster.scheduler, "requeue_rule", request)
            if not isinstance(rule, tuple) or [*map(type, rule)] != [bool, int]:
                raise policy_error(cluster.scheduler, f"returned {rule!r} from requeue_rule; expected (bool, int)")
            may, most = rule[0], min(most, rule[1])
        most = own("max_restarts", request, most)
        cancels = own("on_failure", request, not may or options.on_failure == "cancel")
        if cancels or self._restarts[request] >= most:
            return None
        self._restarts[request] += 1
        if self._restarts[request] > _MOST_RESTARTS:
            job = self._requests.number[request]
            message = f"job {job} was interrupted {_MOST_RESTARTS:,} times without completing"
            raise InputError(f"{message}; expected checkpoints, max_restarts or fewer failures", field="failures")
        return delay, in_place


@dataclass
class _Changes:
    """Changes of one instant: failing parts with their previous state, and steps of windows."""

    failing: dict[_Key, bool] = field(default_factory=dict)
    touched: set[_Key] = field(default_factory=set)
    hit: list[tuple[_Key, int]] = field(default_factory=list)
    lost: dict[int, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    restored: dict[int, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    reserved: list[int] = field(default_factory=list)
