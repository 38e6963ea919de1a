"""The plan of one cluster: a promised start for every waiting request, beside what runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np

from gridsim.errors import PolicyError, call, name_of
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.admission import kernels
from gridsim.policy.admission.kernels import SIZE
from gridsim.policy.admission.trial import pool_trial
from gridsim.policy.capabilities import is_own
from gridsim.policy.protocols import Arrangement, Offer, Start, ranks_of, starts_of, whole_numbers
from gridsim.policy.queue import Promised, Requests, readable
from gridsim.profile.blocks import forget
from gridsim.profile.bounds import no_bounds
from gridsim.profile.floor import PROMISE, SINCE, Floor
from gridsim.profile.holdings import Holdings
from gridsim.profile.running import RUNNING, expect_end, most_running, only_running
from gridsim.profile.waiting import HEAD, TAIL, in_order

__all__ = ["Admission", "Plan", "Search", "offer_of"]


class Admission(Protocol):
    """Can this request be taken without breaking a promise, and where?

    One with ``left_shifted`` true leaves no single waiting request that could start earlier, which saves searches when
    the plan is compressed. One with ``vectors`` true searches where requests ask for several resources, at places, too.
    One with ``inner`` is asked only for deadlines that users want; its inner admission
    for those that the system sets itself.
    """

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        """An offer to end by *deadline* (a later one says so in ``granted``), or None to refuse.

        Leaves *plan* as it is.
        """
        ...


def offer_of(admission: Any, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
    """Return the offer of an admission; that of a plug-in is checked against the plan that it was asked about.

    Raises
    ------
    PolicyError
        When the admission fails, changes the plan, or returns anything else than an offer that the plan can carry out.
    """
    before = plan.meta.item(TAIL)
    offer: Any = call(admission, "plan", request, deadline, plan, now)
    found: Offer | None = offer
    wrong = "changed the plan that it was asked about; expected changes of plan.copy() only"
    if plan.meta.item(TAIL) == before:
        # An offer that moves no other request is checked here, in a tenth of the time.
        plain = type(offer) is Offer and offer.arrangement is None and not offer.kills and offer.granted == NEVER
        if plain and type(offer.start) is int and now <= offer.start < NEVER and offer.doublings == 0:
            return found
        wrong = "" if offer is None or is_own(admission) else _why_no_offer(admission, offer, request, plan, now)
    if wrong:
        raise PolicyError(f"{name_of(admission)} {wrong}, for request {request} at {now / MICROSECOND} s")
    return found


def _why_no_offer(admission: Any, offer: Any, request: int, plan: Plan, now: int) -> str:
    """Why a plan cannot carry out what an admission returned; empty where it can."""
    if not isinstance(offer, Offer):
        return f"returned {offer!r}; expected an Offer or None"
    for name, least in (("start", now), ("granted", now), ("doublings", 0)):
        value = getattr(offer, name)
        if not isinstance(value, int | np.integer) or not least <= value <= NEVER:
            return f"offers {name}={value!r}; expected a whole number from {least} to {NEVER}"
    if offer.start == NEVER:
        return "offers a start that never comes; expected an instant in whole microseconds"
    kills = whole_numbers(admission, "kills", offer.kills)
    if len(np.unique(kills)) < len(kills) or not np.isin(kills, plan.running()).all():
        return f"kills {list(offer.kills)}; expected running requests, each once"
    if offer.arrangement is None:
        return f"kills {list(offer.kills)} without an arrangement of them" if len(kills) else ""
    arrangement: Any = offer.arrangement
    if not isinstance(arrangement, Arrangement):
        return f"offers the arrangement {arrangement!r}; expected an Arrangement or None"
    rows = whole_numbers(admission, "rows of an arrangement", offer.arrangement.rows)
    starts = whole_numbers(admission, "starts of an arrangement", offer.arrangement.starts, len(rows), least=now)
    if not np.array_equal(np.sort(rows), np.sort(np.concatenate([plan.order(), [request], kills]))):
        return "arranges other requests than the waiting ones, the new one and those that it kills"
    if not np.array_equal(in_order(rows, plan.requests.ties, starts), np.arange(len(rows))):
        return "arranges requests out of order; expected planned starts to ascend, ties in job order"
    if starts[rows == request][0] != offer.start:
        return f"offers the start {offer.start}, but arranges it at {starts[rows == request][0]}"
    holdings: Any = offer.arrangement.holdings
    if type(holdings) is not type(plan.arrangement().holdings):
        return "offers an arrangement without holdings on a machine of nodes, or with holdings on one of cores"
    if isinstance(holdings, Holdings):
        held = Floor(*holdings.floor).holds[:, rows]
        if not held[PROMISE].all() or not np.array_equal(held[SINCE], starts):
            return "offers holdings in which not every arranged request has a place from its start"
    return ""


class Search(NamedTuple):
    """What a search for a new plan works on: the waiting requests by planned start, and the new one behind them.

    Attributes
    ----------
    rows, cores, estimate, due, submit : (n + 1,) int64
        Requests and their columns; ``due`` is the latest end, `NEVER` where none binds.
    planned : (n + 1,) int64
        Planned starts; `NEVER` for the new request.
    times, free, size
        Profile of the running requests alone, with room for all others.
    ties : (2, requests) int64
        What job order compares before the rows, of all requests.
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

    def run(self, search: Callable[..., float], *arguments: Any) -> Offer | None:
        """The offer to take the new request in by the plan that a compiled search finds."""
        trial = pool_trial(tuple(self))
        price = search(trial, *arguments)
        if price == np.inf:
            return None
        starts = trial.found
        order = in_order(self.rows, self.ties, starts)
        return Offer(int(starts[-1]), Arrangement(self.rows[order], starts[order]), price=price)


class Plan:
    """Running requests until their expected ends and a reservation for every waiting one.

    Parameters
    ----------
    requests : Requests
        Columns of all requests; a request is a row of them.
    cores : int
        Cores of the cluster.
    tick : int
        Unit of offered deadlines, whole microseconds.

    Attributes
    ----------
    granted : (n,) int64
        Latest end promised to each request, `NEVER` for none; shared by copies of a plan.
    broken : (n,) bool
        Promises that could not be kept: they bind no search any more.
    kills : (n,) int64
        How often each request has been killed to make room.
    began : (n,) int64
        Start of running requests.
    held : (2, busy) int64
        Running requests by expected end, as `gridsim.profile.running` has them.
    need, estimate : (n,) int64
        Cores of each request and its estimate on them, whole microseconds: as asked for, or of the size that has been
        chosen; shared by copies of a plan.

    Notes
    -----
    All instants are whole microseconds. A request is planned with its estimate; true runtimes are not known here.
    """

    __slots__ = (
        "_bounds",
        "began",
        "broken",
        "cores",
        "estimate",
        "free",
        "granted",
        "held",
        "kills",
        "meta",
        "need",
        "planned",
        "requests",
        "started",
        "tick",
        "times",
        "waiting",
    )

    def __init__(self, requests: Requests, cores: int, tick: int = MICROSECOND) -> None:
        n = len(requests)
        self.requests, self.cores, self.tick = requests, cores, tick
        self.need, self.estimate = requests.sizes()
        self.times: IntArray = np.zeros(64, dtype=np.int64)
        self.free: IntArray = np.zeros(64, dtype=np.int64)
        self.free[0] = cores
        self.meta: IntArray = np.array([0, 0, cores, 0, 0, 1], dtype=np.int64)
        self.waiting: IntArray = np.zeros(64, dtype=np.int64)
        self.planned: IntArray = np.zeros(64, dtype=np.int64)
        self._bounds = no_bounds()
        self._make_room(most_running(cores, n))
        self.began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.granted: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.broken = np.zeros(n, dtype=np.bool_)
        self.kills: IntArray = np.zeros(n, dtype=np.int64)

    @property
    def _arrays(self) -> tuple[IntArray, ...]:
        """What every compiled change works on."""
        return self.times, self.free, self.meta, self.waiting, self.planned, self._bounds

    @property
    def _columns(self) -> tuple[IntArray, IntArray, IntArray]:
        """What it reads of requests."""
        return self.requests.ties, self.need, self.estimate

    def _make_room(self, busy: int) -> None:
        """Room for so many requests that run at once, and that begin at once; none does."""
        self.held: IntArray = np.zeros((2, busy + 1), dtype=np.int64)
        self.started: IntArray = np.zeros(busy + 1, dtype=np.int64)

    def _ensure(self, more_requests: int) -> None:
        """Room for the most blocks there can be: two bounds a request, and four while one is being moved."""
        blocks = 2 * (len(self) + int(self.meta[RUNNING]) + more_requests) + 8
        if blocks > len(self.times):
            self.times, self.free = _longer(self.times, blocks), _longer(self.free, blocks)
        if self.meta[TAIL] + more_requests > len(self.waiting):
            self._to_front(len(self) + more_requests)

    def _to_front(self, places: int) -> None:
        """Let the waiting requests begin at the first place again, with room for so many and as many more."""
        rows, starts = self.order(), self.planned_starts()
        room = max(2 * places, 64)
        self.waiting, self.planned = _longer(rows, room), _longer(starts, room)
        self.meta[HEAD], self.meta[TAIL] = 0, len(rows)

    def columns_for(self, requests: int) -> tuple[Any, ...]:
        """What compiled changes work on in a run of so many requests, with room for them all (`gridsim.calendar`)."""
        self._to_front(requests)
        self._ensure(requests)
        moves, order = np.zeros_like(self.held), np.zeros_like(self.waiting)
        return self._arrays, self._columns, self.held, self.began, moves, order

    def go_on(self, before: Plan, rows: IntArray) -> IntArray:
        """Go on where the plan of an earlier window of requests stood, whose requests are *rows* here; who waits."""
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
        """An independent plan with the same running and waiting requests; promises and their history are shared."""
        twin = copy.copy(self)
        for name in ("times", "free", "meta", "waiting", "planned", "held"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def running(self) -> IntArray:
        """Running requests by expected end; a view."""
        return readable(self.held[1, : self.meta[RUNNING]])

    def expected_ends(self) -> IntArray:
        """Their expected ends, whole microseconds, in the same order; a view."""
        return readable(self.held[0, : self.meta[RUNNING]])

    @property
    def running_columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Who runs, as compiled choices of a size look at them: by expected end, counts, cores, and since when."""
        return self.held, self.meta, self.need, self.began

    def order(self) -> IntArray:
        """Waiting requests by planned start, then job order; a view."""
        return readable(self.waiting[self.meta[HEAD] : self.meta[TAIL]])

    def planned_starts(self) -> IntArray:
        """Their planned starts, in the same order; a view."""
        return readable(self.planned[self.meta[HEAD] : self.meta[TAIL]])

    def starts(self) -> dict[int, int]:
        """Planned start of every waiting request."""
        return dict(zip(self.order().tolist(), self.planned_starts().tolist(), strict=True))

    # -- searching -----------------------------------------------------------------------------------------------

    def earliest(self, request: int, now: int) -> int:
        """Earliest place of a request from *now* on, holes used, everyone else staying where they are."""
        cores, estimate = self.need, self.estimate
        found = kernels.earliest_start(self.times, self.free, self.meta, now, cores[request], estimate[request])
        return int(found)

    def profile(self, now: int) -> tuple[IntArray, IntArray, int]:
        """Free cores from *now* on, for compiled searches: when they change, what they are then, how many changes."""
        self.meta[SIZE] = forget(self.times, self.free, self.meta[SIZE], now)
        return self.times, self.free, int(self.meta[SIZE])

    def search(self, request: int, deadline: int, now: int) -> Any:
        """A `Search` that is to take *request* in, to end by *deadline* (`NEVER` for any time)."""
        requests, waiting = self.requests, len(self)
        rows, due = self._sought(request, deadline)
        room = 2 * (waiting + int(self.meta[RUNNING]) + 1) + 8
        times, free = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        size = only_running(now, self.held, self.meta, self.need, times, free)
        return Search(
            rows,
            self.need[rows],
            self.estimate[rows],
            due,
            requests.submit[rows],
            np.append(self.planned_starts(), NEVER),
            times,
            free,
            size,
            requests.ties,
        )

    def _sought(self, request: int, deadline: int) -> tuple[IntArray, IntArray]:
        """The waiting requests and a new one, and by when each is to end."""
        rows: IntArray = np.append(self.order(), request)
        due: IntArray = np.where(self.broken[rows], NEVER, self.granted[rows])
        due[-1] = deadline
        return rows, due

    def promised(self, search: Any) -> Promised:
        """Requests of a search as orderings see them: their deadlines are those promised, kept or broken."""
        granted = self.granted[search.rows]
        granted[-1] = search.due[-1]
        return Promised(self.requests, search.rows, granted=granted, starts=search.planned)

    def ranks(self, heuristic: Any, search: Any, now: int) -> FloatArray:
        """What an ordering makes of the requests of a search; lower first."""
        return ranks_of(heuristic, self.promised(search), now / MICROSECOND)

    # -- changing ------------------------------------------------------------------------------------------------

    def reserve(self, request: int, start: int) -> None:
        """Promise *start*, whole microseconds, to a request that joins the waiting ones."""
        if type(start) is not int or not 0 <= start < NEVER or request < 0:
            start = self._checked(request, start)
        self._ensure(1)
        cores, estimate = self.need[request], self.estimate[request]
        kernels.enter(self._arrays, self.requests.ties, request, start, cores, estimate)

    def _checked(self, request: int, start: int) -> int:
        """A planned start as a plain whole number: compiled loops use it, and the request, without a check."""
        at = index(start)
        if not 0 <= request < len(self.need) or not 0 <= at < NEVER:
            raise PolicyError(f"request {request} cannot be planned at {at}: expected a row of Requests and an instant")
        return at

    def resize(self, request: int, cores: int, estimate: int) -> None:
        """Let a request that has no place be of another size, on which it is estimated to run so long."""
        self.need[request], self.estimate[request] = cores, estimate

    def take(self, request: int, offer: Offer, now: int) -> None:
        """Carry out an offer: kills, a place for the request, and where the others go for it."""
        for victim in offer.kills:
            self.ended(victim, now)
            self.kills[victim] += 1
        self.granted[request] = offer.granted
        if offer.arrangement is None:
            self.reserve(request, offer.start)
        else:
            self.adopt(offer.arrangement, now)

    def adopt(self, arrangement: Arrangement, now: int) -> None:
        """Let an arrangement be the plan of all that waits."""
        rows, starts, _ = arrangement
        self._ensure(max(0, len(rows) - len(self)))
        if not kernels.adopt(self._arrays, self._columns, self.held, now, rows, starts):
            raise PolicyError(f"{arrangement} cannot be a plan: expected rows of Requests and one start for each")

    def withdraw(self, requests: Sequence[int], now: int) -> None:
        """Let waiting requests leave the plan; all others stay where they are."""
        rows, starts, _ = self.arrangement()
        kept = ~np.isin(rows, requests)
        self.adopt(Arrangement(rows[kept], starts[kept]), now)

    def without(self, victim: int, now: int) -> Plan:
        """A copy in which a running request does not run any more; the waiting ones stay where they are."""
        twin = self.copy()
        twin.ended(victim, now)
        return twin

    def arrangement(self) -> Arrangement:
        """What the plan is determined by; a copy."""
        return Arrangement(self.order().copy(), self.planned_starts().copy())

    def ended(self, request: int, now: int) -> int:
        """Give back what a running request would have held; returns its expected end."""
        until = int(kernels.stop(self.times, self.free, self.meta, self.held, now, request, self.need[request]))
        if until < 0:
            raise PolicyError(f"request {request} does not run in this plan at {now / MICROSECOND} s")
        return until

    def expect(self, request: int, end: int) -> None:
        """A running request is expected to hold its cores until *end*; `replan` makes room for that."""
        expect_end(self.held, self.meta, request, end)

    def compress(self, places: IntArray, now: int, frontier: int = NEVER, *, again: bool = False) -> None:
        """Move the requests at these places of the order, one after the other, to their earliest starts.

        None moves later. Where this is done *again* as long as somebody moves, in planned order, that changes nothing:
        on one pool of cores none could move after it.
        """
        if not kernels.shift_left(self._arrays, self._columns, now, places + self.meta[HEAD], frontier, again):
            raise PolicyError(f"{places} cannot be compressed: expected places of the {len(self)} waiting requests")

    def replan(self, now: int) -> None:
        """Place all waiting requests again in planned order, after a running one outlived its estimate.

        Promises that their new places do not keep are broken.
        """
        kernels.replan(self._arrays, self._columns, self.held, now)
        rows = self.order()
        self.broken[rows] |= self.planned_starts() + self.estimate[rows] > self.granted[rows]

    def due(self, now: int) -> Sequence[int]:
        """Requests planned for *now*: they run from here on."""
        count = kernels.due(now, self._arrays, self._columns, self.held, self.started, self.began)
        if not count:
            return ()
        started: list[int] = self.started[:count].tolist()
        return started

    def starts_of(self, rows: Sequence[int]) -> list[Start]:
        """The decision that these start."""
        return starts_of(rows)

    def next_start(self) -> int:
        """Planned start of the first waiting request; `NEVER` when none waits."""
        head: int = self.meta.item(HEAD)
        return self.planned.item(head) if head < self.meta.item(TAIL) else NEVER


def _longer(column: IntArray, room: int) -> IntArray:
    """Column with room for at least so many entries; doubles, so that growing is linear in the end."""
    more: IntArray = np.zeros(max(room, 2 * len(column)), dtype=np.int64)
    more[: len(column)] = column
    return more
