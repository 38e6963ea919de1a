"""Advance reservations: each has a scheduler of the same policy, for which all other nodes and times are absent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gridsim.errors import InputError, call
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER, IntArray
from gridsim.model.windows import PlannedWindow
from gridsim.policy.capabilities import Wrapper
from gridsim.policy.copies import per_cluster_copy
from gridsim.policy.placement import First
from gridsim.policy.placement_bridge import PlacementLog, holdings_of
from gridsim.policy.protocols import (
    NOTHING,
    Absence,
    CapacityChange,
    Decision,
    Placement,
    Quote,
    Stop,
    starting,
)
from gridsim.policy.queue import ClusterView

Running = Iterable[tuple[int, int, int, Mapping[str, int], Sequence[tuple[int, int]]]]
"""Running requests, by node: expected end (whole microseconds), node, amounts, and thousandths of GPUs by number."""

COMMON = -1
"""Number of the common queue; the others are numbers of reservations."""


class WithReservations(Wrapper):
    """Scheduler of a cluster with reservations, whose members wait in separate queues.

    Parameters
    ----------
    common : Scheduler
        Scheduler of all other requests, already set up.
    policy : object
        Policy for the members of each reservation.
    view : ClusterView
        The cluster.
    running : callable
        Returns what requests and user processes hold now.
    seed : int
        Seed of the scenario.
    absent : sequence of Absence
        Known failures and windows.

    Notes
    -----
    Running requests of other queues, which started before the reservation was announced or whose own reservation is
    over, are absences of what they hold until their expected ends.
    """

    def __init__(
        self,
        common: Any,
        policy: Any,
        view: ClusterView,
        running: Callable[[], Running],
        seed: int,
        absent: Sequence[Absence] = (),
    ) -> None:
        assert view.demands is not None
        super().__init__(common)
        self._policy, self._view, self._running, self._seed = policy, view, running, seed
        self._whole: IntArray = view.demands.empty[:, :-1]
        self._names = view.demands.columns.resources
        self._cores_at = self._names.index("cores")
        self._windows: dict[int, tuple[PlannedWindow, list[int]]] = {}
        self._empty: dict[int, PlacementLog] = {}  # reservations without members
        self._queues: dict[int, Any] = {COMMON: common}  # schedulers of the reservations that are announced
        self._of: dict[int, int] = {}  # reservation of each member
        self._waiting: dict[int, dict[int, None]] = defaultdict(dict)  # members by reservation
        self._cancelled: list[int] = []
        self._absent = list(absent)
        self._intruding: dict[int, Counter[Absence]] = defaultdict(Counter)  # by queue
        self._late: dict[int, int] = {}  # expected ends after overruns

    @property
    def awaited(self) -> bool:
        """True if members wait."""
        return any(self._waiting.values())

    # -- reservations ------------------------------------------------------------------------------------------------

    def add(self, number: int, window: PlannedWindow, nodes: list[int]) -> None:
        """Add a reservation of some nodes before it is announced.

        Raises
        ------
        InputError
            If its cores are reserved twice.
        """
        reserved = {node: self._cores(window, node) for node in nodes}
        for other, there in self._windows.values():
            known_together = other.announced < window.over and window.announced < other.over  # deletion is unknown
            if known_together and other.begin < window.end and window.begin < other.end:
                for node in {*nodes}.intersection(there):
                    if reserved[node] + self._cores(other, node) > self._whole[node, self._cores_at]:
                        raise InputError(f"are reserved for '{other.id}' at the same time", field="nodes")
        self._windows[number] = window, nodes
        log = PlacementLog(holdings_of(self._view, First(), stream(self._seed, "reservation")))
        log.change(CapacityChange(self._outside(number, 0)), 0)
        self._empty[number] = log

    def _cores(self, window: PlannedWindow, node: int) -> int:
        """Return the reserved cores of a node."""
        most = int(self._whole[node, self._cores_at])
        return most if window.node_cores is None else min(window.node_cores, most)

    def _reserved(self, number: int, *, rest: bool = False) -> list[Absence]:
        """Return what is reserved, or the *rest* of its nodes, as absences."""
        window, nodes = self._windows[number]
        found = []
        for node in nodes:
            amounts, part = None, np.zeros_like(self._whole[node])
            part[self._cores_at] = self._cores(window, node)
            if part[self._cores_at] < self._whole[node, self._cores_at]:
                amounts = tuple((self._whole[node] - part if rest else part).tolist())
            if amounts is not None or not rest:
                found.append(Absence(node, -1, window.begin, window.end, window.announced < window.begin, amounts))
        return found

    def _outside(self, number: int, now: int) -> list[Absence]:
        """Return the nodes and times outside of a reservation as absences."""
        window, nodes = self._windows[number]
        found = [Absence(node, -1, 0, NEVER) for node in range(len(self._whole)) if node not in {*nodes}]
        if window.begin > now:
            found += [Absence(node, -1, 0, window.begin) for node in nodes]
        if window.end < NEVER:
            found += [Absence(node, -1, window.end, NEVER, announced=True) for node in nodes]
        return found + self._reserved(number, rest=True)

    def refusal(self, request: int, now: int) -> str:
        """Return why a new request is rejected by the reservation that it names; empty if it is not."""
        name = self._label("reservation", request)
        if name is None:
            return ""
        there = [(it.announced, at) for at, (it, _) in self._windows.items() if it.id == name and it.over > now]
        if not there:
            return "reservation:unknown"
        number = min(there)[1]
        window, demands = self._windows[number][0], self._view.demands
        if self._label("user", request) not in window.users and self._label("account", request) not in window.accounts:
            return "reservation:members"
        assert demands is not None
        if demands.of_pools(request):
            return "reservation:pools"
        held, begin = self._empty[number].holdings, max(now, window.begin)
        held.learn()
        if held.first_place(request, int(self._view.requests.estimate[request]), begin, begin + 1) < 0:
            return "reservation:size"
        self._of[request] = number
        return ""

    def _label(self, label: str, request: int) -> str | None:
        """Return the name in a label of a request."""
        if (value := self._view.requests.own(label, request, -1)) < 0:
            return None
        names = self._view.requests.names.get(label, ())
        return names[value] if names else str(value)

    def _open(self, number: int, now: int) -> CapacityChange:
        """Make the scheduler of a reservation that is announced; return what is absent for it."""
        self._queues[number] = scheduler = per_cluster_copy(self._policy)
        call(scheduler, "setup", self._view, stream(self._seed, "reservation", number))
        nodes = self._windows[number][1]
        return CapacityChange([*self._outside(number, now), *(it for it in self._absent if it.node in nodes)])

    # -- what holds the nodes of others ------------------------------------------------------------------------------

    def _intruders(self, number: int, without: int) -> Counter[Absence]:
        """Return what requests of other queues hold of the nodes of a queue, beyond their own share, as absences."""
        there = range(len(self._whole)) if number == COMMON else self._windows[number][1]
        rest = {it.node: np.array(it.amounts) for it in self._reserved(number, rest=True)} if number >= 0 else {}
        on: dict[int, list[tuple[int, IntArray]]] = defaultdict(list)
        for request, until, node, amounts, gpus in self._running():
            own = self._of.get(request, COMMON)
            if node in there and request != without and own != number and (number >= 0 or own not in self._queues):
                held = np.zeros_like(self._whole[node])
                held[[self._names.index(name) for name in amounts]] = list(amounts.values())
                for gpu, share in gpus:
                    held[len(self._names) + gpu] = share
                on[node].append((self._late.get(request, until), held))
        found: Counter[Absence] = Counter()
        for node, runs in on.items():
            total = before = np.zeros_like(self._whole[node])
            for until, held in sorted(runs, key=lambda it: -it[0]):
                total = total + held
                beyond = np.maximum(total - rest.get(node, 0), 0)
                if (beyond > before).any():
                    found[Absence(node, -1, 0, until, amounts=tuple((beyond - before).tolist()))] += 1
                before = beyond
        return found

    # -- events ------------------------------------------------------------------------------------------------------

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Announce, begin and close reservations, and report all changes to the schedulers of their nodes."""
        for it in change.restored:
            self._absent.remove(it)
        changes = {number: self._part(change, number) for number in self._queues}
        self._absent += change.lost
        common, opened = changes[COMMON], []
        for number in dict.fromkeys(change.reserved):
            window, nodes = self._windows[number]
            if window.over <= now:
                del self._queues[number], changes[number]
                self._cancelled += self._waiting.pop(number, ())
                common = common._replace(restored=[*common.restored, *self._reserved(number)])
            elif number not in self._queues:
                changes[number] = self._open(number, now)
                opened.append(number)
                common = common._replace(lost=[*common.lost, *self._reserved(number)])
            else:
                begun = [Absence(node, -1, 0, window.begin) for node in nodes]
                changes[number] = changes[number]._replace(restored=[*changes[number].restored, *begun])
        changes[COMMON] = common
        self._report(changes, now, late=bool(self._late))
        for number in opened:  # members that named it before it was announced
            call(self._queues[number], "settled", now)
            for request in self._waiting[number]:
                self.commit(self._queues[number].quote(request, now), now)

    def _part(self, change: CapacityChange, number: int) -> CapacityChange:
        """Return the part of a change that concerns a queue."""
        requeued = [it for it in change.requeued if self._of.get(it, COMMON) == number]
        if number == COMMON:
            return CapacityChange(change.lost, change.restored, requeued)
        nodes = self._windows[number][1]
        lost, restored = ([it for it in part if it.node in nodes] for part in (change.lost, change.restored))
        return CapacityChange(lost, restored, requeued)

    def _report(self, changes: dict[int, CapacityChange], now: int, *, late: bool = False, without: int = -1) -> None:
        """Report changes to all queues, with what requests of other queues hold; *late*: one of these overran."""
        for number in self._in_order():
            change = changes.get(number, CapacityChange())
            before, found = self._intruding[number], self._intruders(number, without)
            more, self._intruding[number] = [*(found - before).elements()], found
            change = change._replace(restored=[*change.restored, *(before - found).elements()])
            if late:
                change = change._replace(lost=[*change.lost, *more])
            elif more:
                change = change._replace(held=more)
            if any(change):
                call(self._queues[number], "capacity_changed", change, now)

    def ended(self, request: int, now: int) -> None:
        """Report an end to its queue, and to others whose nodes it held."""
        self._late.pop(request, None)
        if (queue := self._queue_of(request)) is not None:
            queue.ended(request, now)
        if any(self._intruding.values()):
            self._report({}, now, without=request)

    def _in_order(self) -> list[int]:
        return [*sorted(self._queues.keys() - {COMMON}), COMMON]

    def _queue_of(self, request: int) -> Any:
        """Return the scheduler of a request; None if its reservation is over or not yet announced."""
        return self._queues.get(self._of.get(request, COMMON))

    def held(self, request: int, until: int, now: int, placement: Placement) -> None:
        """Report that a user process holds nodes."""
        self._inner.held(request, until, now, placement)
        self._report({}, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Report an overrun to its queue, and to others whose nodes the request holds."""
        self._late[request] = expected_end
        if (queue := self._queue_of(request)) is not None:
            queue.overran(request, expected_end, now)
        self._report({}, now, late=True)

    def settled(self, now: int) -> None:
        """Report that all ends of this instant are known."""
        for queue in self._queues.values():
            queue.settled(now)

    def quote(self, request: int, now: int) -> Quote | None:
        """Return the answer of its queue; members wait for the announcement of their reservation."""
        queue = self._queue_of(request)
        found: Quote | None = Quote(request) if queue is None else queue.quote(request, now)
        return found

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Admit a request to its queue; a member whose reservation is over is cancelled."""
        number, queue = self._of.get(quote.request, COMMON), self._queue_of(quote.request)
        if number != COMMON:
            if queue is None and self._windows[number][0].over <= now:
                self._cancelled.append(quote.request)
                return ()
            self._waiting[number][quote.request] = None
        stops: Sequence[Stop] = () if queue is None else queue.commit(quote, now)
        return stops

    def dispatch(self, now: int) -> Decision:
        """Return the decisions of all queues, those of reservations first; cancel members without a reservation."""
        cancelled, self._cancelled = self._cancelled, []
        decisions = [self._queues[number].dispatch(now) for number in self._in_order()]
        if not cancelled and all(it is NOTHING for it in decisions):
            return NOTHING
        starts = [start for it in decisions for start in it.starts]
        for start in starts:
            self._waiting[self._of.get(start.request, COMMON)].pop(start.request, None)
        stops = [stop for it in decisions for stop in it.stops]
        return starting(starts, min(it.wake for it in decisions))._replace(stops=stops, withdrawals=cancelled)
