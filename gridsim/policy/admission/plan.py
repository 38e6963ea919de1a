"""The plan of one cluster: a planned start for every waiting request, given the running ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gridsim.errors import PolicyError, call, policy_error
from gridsim.machine.allocations_over_time import Holdings
from gridsim.machine.blocks import forget
from gridsim.machine.njit import as_python
from gridsim.machine.node_profile import PROMISE, SINCE, NodeProfile
from gridsim.machine.pool_plan import SIZE, no_bounds
from gridsim.machine.queue_order import HEAD, TAIL, in_order
from gridsim.machine.running_set import RUNNING, TOTAL, begin_running, most_running
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.admission import plan_cycle as cycle
from gridsim.policy.admission.trial import pool_trial
from gridsim.policy.admission.trial_on_nodes import NodeTrial
from gridsim.policy.capabilities import is_own
from gridsim.policy.protocols import (
    CapacityChange,
    LoopState,
    Offer,
    PlannedStarts,
    Start,
    integer_column,
    ranks_of,
    starts_of,
)
from gridsim.policy.queue import Promised, Requests, readable


class Admission(Protocol):
    """Decision whether a request can be admitted without breaking a guarantee, and its planned start.

    An admission with a true ``left_shifted`` leaves no waiting request that alone could start earlier, which saves
    searches when the plan is compressed. With a true ``vectors``, it supports demands for several resources and
    placements on nodes. An admission with ``inner`` is used only for deadlines that users request; its inner admission
    is used for deadlines that the system sets.
    """

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        """Return an offer to end by *deadline* (or by a later one in ``granted``), None to reject the request.

        *plan* must not be changed.
        """


def offer_of(admission: Any, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
    """Return the offer of an admission; that of a user-defined admission is checked against the plan.

    Raises
    ------
    PolicyError
        If the admission fails, changes the plan, or returns anything else than an offer that the plan can carry out.
    """
    before = plan.meta.item(TAIL)
    offer: Any = call(admission, "plan", request, deadline, plan, now)
    found: Offer | None = offer
    wrong = "changed the plan that it received; expected changes of plan.copy() only"
    if plan.meta.item(TAIL) == before:
        # An offer that moves no other request is checked here, in a tenth of the time.
        plain = type(offer) is Offer and offer.arrangement is None and not offer.kills and offer.granted == NEVER
        if plain and type(offer.start) is int and now <= offer.start < NEVER and offer.doublings == 0:
            return found
        wrong = "" if offer is None or is_own(admission) else _why_no_offer(admission, offer, request, plan, now)
    if wrong:
        raise policy_error(admission, f"{wrong}, for request {request} at {now / MICROSECOND} s")
    return found


def _why_no_offer(admission: Any, offer: Any, request: int, plan: Plan, now: int) -> str:
    """Return why a plan cannot carry out the result of an admission; empty if it can."""
    if not isinstance(offer, Offer):
        return f"returned {offer!r}; expected an Offer or None"
    for name, least in (("start", now), ("granted", now), ("doublings", 0)):
        value = getattr(offer, name)
        if not isinstance(value, int | np.integer) or not least <= value <= NEVER:
            return f"offers {name}={value!r}; expected a whole number from {least} to {NEVER}"
    if offer.start == NEVER:
        return "offers a start beyond the largest time; expected whole microseconds"
    kills = integer_column(admission, "kills", offer.kills)
    if len(np.unique(kills)) < len(kills) or not np.isin(kills, plan.running()).all():
        return f"kills {list(offer.kills)}; expected running requests, each once"
    if offer.arrangement is None:
        return f"kills {list(offer.kills)} without an arrangement for them" if len(kills) else ""
    arrangement: Any = offer.arrangement
    if not isinstance(arrangement, PlannedStarts):
        return f"offers the arrangement {arrangement!r}; expected an PlannedStarts or None"
    rows = integer_column(admission, "rows of an arrangement", offer.arrangement.rows)
    starts = integer_column(admission, "starts of an arrangement", offer.arrangement.starts, len(rows), least=now)
    if not np.array_equal(np.sort(rows), np.sort(np.concatenate([plan.order(), [request], kills]))):
        return "arranges requests other than the waiting ones, the new one and the killed ones"
    if not np.array_equal(in_order(rows, plan.requests.ties, starts), np.arange(len(rows))):
        return "arranges requests out of order; expected ascending planned starts, ties in job order"
    if starts[rows == request][0] != offer.start:
        return f"offers the start {offer.start}, but arranges it at {starts[rows == request][0]}"
    holdings: Any = offer.arrangement.holdings
    if type(holdings) is not type(plan.arrangement().holdings):
        return "offers an arrangement without holdings on a machine of nodes, or with holdings on a machine of cores"
    if isinstance(holdings, Holdings):
        held = NodeProfile(*holdings.floor).holds[:, rows]
        if not held[PROMISE].all() or not np.array_equal(held[SINCE], starts):
            return "offers holdings in which an arranged request has no nodes from its start"
    return ""


class Search(NamedTuple):
    """Input of a search for a new plan: the waiting requests by planned start, and the new one behind them.

    Attributes
    ----------
    rows, cores, estimate, due, submit : (n + 1,) int64
        Requests and their columns; ``due`` is the latest end, `NEVER` if there is none.
    planned : (n + 1,) int64
        Planned starts; `NEVER` for the new request.
    times, free, size
        Profile of the running requests alone, with space for all others.
    ties : (2, requests) int64
        Keys of the job order that precede the row number, of all requests.
    holdings : Holdings or None
        Allocations of the present plan, on a machine of nodes or several pools; a search works on copies.
    now : int
        Present instant, whole microseconds; only with *holdings*.
    """

    rows: IntArray
    cores: IntArray
    estimate: IntArray
    due: IntArray
    submit: IntArray
    planned: IntArray
    times: IntArray
    free: IntArray
    size: int
    ties: IntArray
    holdings: Holdings | None = None
    now: int = 0

    def run(self, search: Callable[..., float], *arguments: Any) -> Offer | None:
        """Return the offer for the new request with the plan that a compiled search finds."""
        on_nodes = self.holdings is not None
        trial: Any = NodeTrial(self) if on_nodes else pool_trial(tuple(self[:-2]))
        price = (as_python(search) if on_nodes else search)(trial, *arguments)
        if price == np.inf:
            return None
        starts, holdings = trial.found if on_nodes else (trial.found, None)
        order = in_order(self.rows, self.ties, starts)
        return Offer(int(starts[-1]), PlannedStarts(self.rows[order], starts[order], holdings), price=price)


class Plan:
    """Running requests up to their expected ends, and a reservation for every waiting request.

    Parameters
    ----------
    requests : Requests
        Columns of all requests; a request is a row of them.
    cores : int
        Cores of the cluster.
    tick : int
        Unit of offered deadlines, whole microseconds.
    placement_log : gridsim.policy.placement_bridge.PlacementLog, optional
        Placements of waiting and running requests, for clusters with nodes, or with pools of other resources than
        cores.

    Attributes
    ----------
    granted : (n,) int64
        Latest end guaranteed to each request, `NEVER` for none; shared by copies of a plan.
    broken : (n,) bool
        Broken guarantees; searches ignore them.
    kills : (n,) int64
        Number of times that each request has been killed to free cores.
    began : (n,) int64
        Start of running requests.
    held : (2, busy) int64
        Running requests by expected end, as in `gridsim.machine.running_set`.
    need, estimate : (n,) int64
        Cores of each request and its estimate on them, whole microseconds: as requested, or of the chosen size; shared
        by copies of a plan.
    ranking : (n,) int64
        Order in which requests move when the plan is compressed by rank, ties in job order.
    rests : (n,) int64
        Row of what each suspended request keeps until its planned end; -1 for all others. Shared by copies of a plan.

    Notes
    -----
    All instants are whole microseconds. A request is planned with its estimate; true run times are unknown here. The
    compiled event loop changes plans with the same functions (`gridsim.policy.admission.plan_cycle`).
    """

    def __init__(self, requests: Requests, cores: int, tick: int = MICROSECOND, placement_log: Any = None) -> None:
        n = len(requests)
        self.requests, self.cores, self.tick = requests, cores, tick
        self.need, self.estimate = requests.sizes()
        self.times: IntArray = np.zeros(64, dtype=np.int64)
        self.free: IntArray = np.zeros(64, dtype=np.int64)
        self.free[0] = cores
        self.meta: IntArray = np.zeros(cycle.COUNTS, dtype=np.int64)
        self.meta[TOTAL], self.meta[SIZE] = cores, 1
        self.waiting: IntArray = np.zeros(64, dtype=np.int64)
        self.planned: IntArray = np.zeros(64, dtype=np.int64)
        self._order: IntArray = np.zeros(64, dtype=np.int64)
        self._bounds = no_bounds()
        busy = most_running(cores, n) if placement_log is None else n
        self.held: IntArray = np.zeros((2, busy + 1), dtype=np.int64)
        self.started: IntArray = np.zeros(busy + 1, dtype=np.int64)
        self.began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.granted: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.broken = np.zeros(n, dtype=np.bool_)
        self.kills: IntArray = np.zeros(n, dtype=np.int64)
        self.ranking: IntArray = np.zeros(n, dtype=np.int64)
        self.rests: IntArray = np.full(n, -1, dtype=np.int64)
        self._log = placement_log

    @property
    def _queue(self) -> tuple[Any, ...]:
        """Arrays of the plan as a `gridsim.policy.admission.plan_cycle.PlanQueue`."""
        columns = self.requests.ties, self.need, self.estimate
        ends = self.held, self.began, self.started, self.granted, self.broken, self.ranking, self.rests
        return (self.waiting, self.planned, self.meta, self._order, *columns, *ends)

    @property
    def _machine(self) -> tuple[Any, ...]:
        """Arrays of its machine, without those of the queue."""
        return (self.times, self.free, self._bounds) if self._log is None else self._log.columns

    def _act(self, what: int, now: int, request: int = 0, start: int = 0) -> int:
        """Let a compiled function change the plan, or search in it; return its answer.

        Raises
        ------
        PolicyError
            If *request* is no row: a compiled function would read outside the columns.
        """
        if request and not 0 <= request < len(self.need):
            raise PolicyError(f"request {request} is not in this plan; expected a row of Requests")
        function = cycle.act_in_pool if self._log is None else cycle.act_on_nodes
        while True:
            answer: int = function(what, now, request, start, self._queue, self._machine)
            stopped: int = self.meta.item(cycle.STOPPED)
            if stopped in (0, cycle.TO_RANK):
                return answer
            self.log.serve(stopped)

    def _ensure(self, more_requests: int) -> None:
        """Allocate space for the maximum number of blocks: two bounds per request, four while one is moved."""
        blocks = 2 * (len(self) + int(self.meta[RUNNING]) + more_requests) + 8
        if blocks > len(self.times):
            self.times, self.free = _longer(self.times, blocks), _longer(self.free, blocks)
        if self.meta[TAIL] + more_requests > len(self.waiting):
            self._to_front(len(self) + more_requests)

    def _to_front(self, places: int) -> None:
        """Move the waiting requests to the first place, with space for twice *places* requests."""
        rows, starts = self.order(), self.planned_starts()
        size = max(2 * places, 64)
        self.waiting, self.planned = _longer(rows, size), _longer(starts, size)
        self._order = np.zeros_like(self.waiting)
        self.meta[HEAD], self.meta[TAIL] = 0, len(rows)

    def columns_for(self, requests: int) -> tuple[Any, ...]:
        """Return the arrays of a compiled run with this number of requests: queue, machine, and starts and ends.

        They have space for all requests.
        """
        self._to_front(requests)
        if self._log is None:
            self._ensure(requests)
        moves = np.zeros_like(self.held)
        self.started = moves[0]
        return self._queue, self._machine, moves

    def passes(self, requests: int, sizes: tuple[Any, ...] = ()) -> LoopState:
        """Return the arrays of a run with this number of requests for the compiled event loop.

        Parameters
        ----------
        sizes : tuple, optional
            Data for the choice of sizes; empty if requests keep their requested size.
        """
        columns = self.columns_for(requests)
        if self._log is None:
            loop, arrays = ("sized_plan_in_pool", (*columns, sizes)) if sizes else ("plan_in_pool", columns)
            return LoopState(loop, arrays)

        def ask(now: int) -> tuple[Any, ...]:
            self._log.help(int(self.meta[cycle.STOPPED]))
            return self._queue, self._machine, columns[-1]

        return LoopState("plan_on_nodes", columns, ask, self._log.pieces)

    def resume(self, before: Plan, rows: IntArray) -> IntArray:
        """Continue from the plan of an earlier window, whose requests are *rows* here; return the waiting requests."""
        running = int(before.meta[RUNNING])
        self.times, self.free, self.meta = before.times.copy(), before.free.copy(), before.meta.copy()
        self.waiting, self.planned = rows[before.order()], before.planned_starts().copy()
        self.meta[HEAD], self.meta[TAIL] = 0, len(self.waiting)
        self.held[0, :running] = before.expected_ends()
        self.held[1, :running] = rows[before.running()]
        kept = np.flatnonzero(rows >= 0)
        self.began[rows[kept]] = before.began[kept]
        return self.waiting

    def __len__(self) -> int:
        return int(self.meta[TAIL] - self.meta[HEAD])

    def copy(self) -> Plan:
        """Return an independent plan with the same running and waiting requests; guarantees and kills are shared."""
        twin = copy.copy(self)
        for name in ("times", "free", "meta", "waiting", "planned", "held"):
            setattr(twin, name, getattr(self, name).copy())
        if self._log is not None:
            twin._log = self._log.copy()
        return twin

    def running(self) -> IntArray:
        """Return the running requests by expected end; a view."""
        return readable(self.held[1, : self.meta[RUNNING]])

    def expected_ends(self) -> IntArray:
        """Return their expected ends, whole microseconds, in the same order; a view."""
        return readable(self.held[0, : self.meta[RUNNING]])

    def order(self) -> IntArray:
        """Return the waiting requests by planned start, then job order; a view."""
        return readable(self.waiting[self.meta[HEAD] : self.meta[TAIL]])

    def planned_starts(self) -> IntArray:
        """Return their planned starts, in the same order; a view."""
        return readable(self.planned[self.meta[HEAD] : self.meta[TAIL]])

    def starts(self) -> dict[int, int]:
        """Return the planned start of every waiting request."""
        return dict(zip(self.order().tolist(), self.planned_starts().tolist(), strict=True))

    # -- searching -----------------------------------------------------------------------------------------------

    def earliest(self, request: int, now: int) -> int:
        """Return the earliest start of a request from *now* on, if all others keep their planned starts.

        `NEVER` if too many nodes are absent, and their return is unknown.
        """
        if self._log is not None and request >= self.requests.known:
            self._log.learn()
        start = int(self._act(cycle.EARLIEST, now, request))
        return start if start >= 0 else NEVER

    def profile(self, now: int) -> tuple[IntArray, IntArray, int]:
        """Return the free cores from *now* on, for compiled searches: times, free cores, number of blocks."""
        self.meta[SIZE] = forget(self.times, self.free, self.meta[SIZE], now)
        return self.times, self.free, int(self.meta[SIZE])

    def search(self, request: int, deadline: int, now: int) -> Search:
        """Return a `Search` for a plan with *request* that ends by *deadline* (`NEVER` for any time).

        Raises
        ------
        PolicyError
            If *request* is no row: a compiled function would read outside the columns.
        """
        found = cycle.requested(request, deadline, self._checked(request, now), self._queue, self.requests.submit)
        search = Search(*found)
        return search if self._log is None else search._replace(holdings=self._log.holdings, now=now)

    def promised(self, search: Any) -> Promised:
        """Return the requests of a search as orderings see them; deadlines are the guaranteed ones, kept or broken."""
        granted = self.granted[search.rows]
        granted[-1] = search.due[-1]
        return Promised(self.requests, search.rows, granted=granted, starts=search.planned)

    def ranks(self, heuristic: Any, search: Any, now: int) -> FloatArray:
        """Return the ranks of the requests of a search by an ordering; lower first."""
        return ranks_of(heuristic, self.promised(search), now / MICROSECOND)

    # -- changing ------------------------------------------------------------------------------------------------

    def reserve(self, request: int, start: int) -> None:
        """Add a request to the waiting ones with a planned *start*, whole microseconds.

        On nodes the placement rule chooses its placement at that time.

        Raises
        ------
        PolicyError
            If it is no request, or does not fit at that start.
        """
        held = self._log is None or start != NEVER
        if held and (type(start) is not int or not 0 <= start < NEVER or request < 0):
            start = self._checked(request, start)
        self._ensure(1)
        if self._log is not None and held:
            length = int(self.estimate[request])
            if self._log.holdings.first_place(request, length, start, start + 1) < 0:
                raise PolicyError(f"request {request} has no free capacity in this plan at {start / MICROSECOND} s")
        self._act(cycle.ENTER, start, request, start)

    def _checked(self, request: int, start: int) -> int:
        """Return a planned start as a plain integer, after checks: compiled loops use it and the request unchecked."""
        at = index(start)
        if not 0 <= request < len(self.need) or not 0 <= at < NEVER:
            raise PolicyError(f"request {request} cannot be planned at {at}: expected a row of Requests and an instant")
        return at

    def resize(self, request: int, cores: int, estimate: int) -> None:
        """Change the cores and the estimate of a request that is not in the plan."""
        self.need[request], self.estimate[request] = cores, estimate
        if self._log is not None:
            self._log.holdings.demands.resize(request, cores)

    def take(self, request: int, offer: Offer, now: int) -> None:
        """Carry out an offer: kills, the start of the request, and the new starts of the others."""
        for victim in offer.kills:
            self.ended(victim, now)
            self.kills[victim] += 1
        self.granted[request] = offer.granted
        if offer.arrangement is None:
            self.reserve(request, offer.start)
        else:
            self.adopt(offer.arrangement, now)

    def adopt(self, arrangement: PlannedStarts, now: int) -> None:
        """Replace the plan of all waiting requests by an arrangement, on nodes with its placements."""
        rows, starts, holdings = arrangement
        if self._log is None:
            self._ensure(max(0, len(rows) - len(self)))
            if not cycle.adopt_in_pool(rows, starts, now, self._queue, self._machine):
                raise PolicyError(f"{arrangement} cannot be a plan: expected rows of Requests and one start for each")
            return
        rows = integer_column(self, "rows of an arrangement", rows, least=0, most=len(self.need) - 1)
        self._set_waiting(rows, integer_column(self, "starts of an arrangement", starts, len(rows), least=0))
        assert holdings is not None
        self._log.holdings = holdings
        self._log.freed(now)  # by requests that moved

    def _set_waiting(self, rows: IntArray, starts: IntArray) -> None:
        self._ensure(max(0, len(rows) - len(self)))
        head = int(self.meta[HEAD])
        self.meta[TAIL] = head + len(rows)
        self.waiting[head : head + len(rows)], self.planned[head : head + len(rows)] = rows, starts

    def change_capacity(self, change: CapacityChange, now: int) -> None:
        """Remove the capacity of absent nodes and GPUs, and restore that of returned ones; `settle` then plans again.

        If any is absent, all waiting requests are placed again in planned order, requeued ones first by their previous
        start. If some only returned, the plan is compressed.
        """
        self.log.change(change, now)
        for request in change.requeued:
            self.queue_again(request)
        self.meta[cycle.OVERRAN] |= bool(change.lost)
        self.meta[cycle.FRONTIER] = NEVER

    def queue_again(self, request: int) -> None:
        """Add a stopped request without a planned start; `settle` places it before all others that did not run."""
        self._ensure(1)
        self.meta[cycle.OVERRAN] = 1
        rows, starts = self.order().copy(), self.planned_starts().copy()
        at = int(np.searchsorted(starts, start := int(self.began[request]) - NEVER, side="right"))
        self._set_waiting(np.insert(rows, at, request), np.insert(starts, at, start))

    @property
    def log(self) -> Any:
        """Placements, and allocations over time (`gridsim.policy.placement_bridge.PlacementLog`), on nodes."""
        return self._log

    def lift(self, places: IntArray, now: int) -> None:
        """Release all waiting requests, which `settle` then places in the order of these places."""
        rows, starts = self.order().copy(), self.planned_starts()
        held = rows[(starts >= 0) & (starts < NEVER)]
        self.log.holdings.release_many(held, len(held), now)
        self._set_waiting(rows[places], np.full(len(rows), -1, dtype=np.int64))
        self.meta[cycle.OVERRAN] = 1

    def begin(self, request: int, until: int, now: int) -> None:
        """Add a request that is not in the plan to the running ones."""
        begin_running(self.held, self.meta, request, until, self.need[request])
        self.began[request] = now

    def hold_rests(self, now: int) -> None:
        """Hold what suspended requests keep until their planned ends."""
        for request, start in self.starts().items():
            if (rest := int(self.rests[request])) >= 0:
                self.log.holdings.until(rest, min(NEVER, start + int(self.estimate[request])), now)

    def withdraw(self, requests: Sequence[int], now: int) -> None:
        """Remove waiting requests from the plan; all others keep their starts."""
        rows, starts = self.order().copy(), self.planned_starts().copy()
        gone = np.isin(rows, requests)
        if self._log is None:
            self.adopt(PlannedStarts(rows[~gone], starts[~gone]), now)
            return
        held = rows[gone & (starts >= 0) & (starts < NEVER)]
        self._log.holdings.release_many(held, len(held), now)
        self._set_waiting(rows[~gone], starts[~gone])

    def without(self, victim: int, now: int) -> Plan:
        """Return a copy in which a running request has ended; the waiting ones keep their starts."""
        twin = self.copy()
        twin.ended(victim, now)
        return twin

    def arrangement(self) -> PlannedStarts:
        """Return the plan as an arrangement; a copy."""
        holdings = None if self._log is None else self._log.holdings.copy()
        return PlannedStarts(self.order().copy(), self.planned_starts().copy(), holdings)

    def ended(self, request: int, now: int) -> int:
        """Release the rest of a running request's reservation; return its expected end."""
        return self._end(cycle.STOP, request, now)

    def give_back(self, request: int, now: int) -> int:
        """Do the same as `ended`; `settle` then compresses the plan."""
        return self._end(cycle.END, request, now)

    def _end(self, what: int, request: int, now: int) -> int:
        until = int(self._act(what, now, request))
        if until < 0:
            raise PolicyError(f"request {request} is not running in this plan at {now / MICROSECOND} s")
        return until

    def expect(self, request: int, end: int) -> None:
        """Record that a running request is expected to hold its cores until *end*; `replan` then moves others."""
        cycle.expect(request, end, self.held, self.meta)

    def compress(self, places: IntArray, now: int, frontier: int = NEVER, *, again: bool = False) -> None:
        """Move the requests at these places of the order, one after the other, to their earliest starts.

        None moves later. With *again*, this is repeated while one moves. On one pool of cores and in planned order the
        repetition is skipped, since no request could move.
        """
        places = integer_column(self, "places", places, least=0, most=len(self) - 1)
        meta = self.meta
        if len(places) > len(self._order):  # places may repeat
            self._order = np.zeros_like(places)
        self._order[: len(places)] = places + meta[HEAD]
        meta[cycle.TASK], meta[cycle.COUNT] = cycle.OPEN, len(places)
        meta[cycle.AGAIN], meta[cycle.UNTIL] = again, min(frontier, NEVER)
        self._act(cycle.SETTLE, now)

    def compress_all(self, now: int) -> None:
        """Compress the plan in its order, whether or not anything was released."""
        self._act(cycle.COMPRESS_ALL, now)

    def replan(self, now: int) -> None:
        """Place all waiting requests again in planned order, after a running one exceeded its estimate.

        Guarantees that the new starts do not keep are broken.
        """
        self.meta[cycle.OVERRAN] = 1
        self.settle(now)

    def settle(self, now: int) -> None:
        """Plan again after an overrun, else compress if anything was released (`give_back`)."""
        self._act(cycle.SETTLE, now)

    def is_settled(self, now: int) -> bool:
        """Return whether `settle` would change nothing."""
        return not self.meta.item(cycle.OVERRAN) and self.meta.item(cycle.FRONTIER) <= now

    @property
    def needs_order(self) -> bool:
        """True if `compress` must be called with an order that is determined in Python."""
        return self.meta.item(cycle.TASK) == cycle.RANK

    def due(self, now: int) -> Sequence[int]:
        """Start the requests planned for *now*; return them."""
        if self.next_start() > now:
            return ()
        self.meta[cycle.STARTED] = 0
        self._act(cycle.DUE, now)
        started: list[int] = self.started[: self.meta[cycle.STARTED]].tolist()
        return started

    def starts_of(self, rows: Sequence[int]) -> list[Start]:
        """Return the decisions to start these requests, on nodes with their placements."""
        if self._log is None:
            return starts_of(rows)
        return [Start(row, 0, self._log.placement(row)) for row in rows]

    def next_start(self) -> int:
        """Return the planned start of the first waiting request; `NEVER` if none waits."""
        head: int = self.meta.item(HEAD)
        return self.planned.item(head) if head < self.meta.item(TAIL) else NEVER


def _longer(column: IntArray, size: int) -> IntArray:
    """Return the column with at least this length; the length doubles, so that the total cost is linear."""
    more: IntArray = np.zeros(max(size, 2 * len(column)), dtype=np.int64)
    more[: len(column)] = column
    return more


@dataclass
class Conservative:
    """Every request gets its earliest start in the present plan; no other request is moved."""

    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Feitelson, Weil 1998"

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        start = plan.earliest(request, now)
        return Offer(start) if min(start + plan.estimate[request], NEVER) <= deadline else None
