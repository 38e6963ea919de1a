"""Searches for a new plan where requests ask for several resources: the same three, laying requests down at places.

What `gridsim.policy.admission.msb`, `mrt` and `qops` do on the profile of one pool of cores, on holdings: a request is
laid down at its earliest place, by the rule of the machine, beside those that have been laid down before it (spec of
machines, 4.2 and 4.6). The order in which places are tried, and what decides between plans, are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.admission.price import term
from gridsim.policy.protocols import Arrangement, Offer
from gridsim.profile.holdings import Holdings
from gridsim.profile.waiting import in_order

__all__ = ["Found", "VectorSearch", "by_slots", "cheapest", "depth_first"]

_TIE = 1 - 1e-9
"""Prices that are nearer to each other are equal."""


class Found(NamedTuple):
    """A plan of all requests of a search: its price, their starts, and the holdings in which they lie so."""

    price: float
    starts: IntArray
    holdings: Holdings


class VectorSearch(NamedTuple):
    """What a search for a new plan works on: the waiting requests by planned start, and the new one behind them.

    Attributes
    ----------
    rows, cores, estimate, due, submit, planned : (n + 1,) int64, ties : (2, requests) int64
        As `gridsim.policy.admission.plan.Search` has them.
    holdings : Holdings
        Of the plan as it stands: a search works on copies.
    now : int
        The present, whole microseconds.
    """

    rows: IntArray
    cores: IntArray
    estimate: IntArray
    due: IntArray
    submit: IntArray
    planned: IntArray
    ties: IntArray
    holdings: Holdings
    now: int

    def offer(self, found: Found) -> Offer:
        """The offer to take the new request in by a plan."""
        starts = found.starts
        order = in_order(self.rows, self.ties, starts)
        arrangement = Arrangement(self.rows[order], starts[order], found.holdings)
        return Offer(int(starts[-1]), arrangement, price=found.price)

    def with_first(self, count: int) -> _Trial:
        """A trial in which so many of the waiting requests stay where they are, and no other has a place."""
        trial = _Trial(self, self.holdings.copy())
        gone = self.rows[count:-1]
        trial.holdings.let_go(gone, len(gone), self.now)
        return trial


class _Trial:
    """Holdings in which requests of a search are laid down and taken off again; requests by their places in it."""

    def __init__(self, search: VectorSearch, holdings: Holdings) -> None:
        self.holdings = holdings
        self._rows: list[int] = search.rows.tolist()
        self._estimate: list[int] = search.estimate.tolist()
        self._search, self._one = search, np.zeros(1, dtype=np.int64)
        self._found = (-1, -1)  # request and start of the last search, as the sketch has them

    def copy(self) -> _Trial:
        """Another trial of its own."""
        return _Trial(self._search, self.holdings.copy())

    def earliest(self, job: int, begin: int, *, lasting: bool = False) -> int:
        """First instant from *begin* on at which a request has a place for its estimate, or for ever (*lasting*)."""
        duration = NEVER if lasting else self._estimate[job]
        start = self.holdings.first_place(self._rows[job], duration, begin)
        self._found = (job, start)
        return NEVER if start < 0 else start  # what never ends may have its place

    def lay(self, job: int, start: int, *, lasting: bool = False) -> None:
        """Lay a request down where it has a place at *start*."""
        row, estimate = self._rows[job], self._estimate[job]
        if self._found != (job, start):
            self.holdings.first_place(row, NEVER if lasting else estimate, start, start + 1)
        self.holdings.put(row, start, start + estimate, promise=True)
        self._found = (-1, -1)

    def take_off(self, job: int) -> None:
        """Take a request that has been laid down off again."""
        self._one[0] = self._rows[job]
        self.holdings.let_go(self._one, 1, self._search.now)
        self._found = (-1, -1)


class _Prices:
    """What single requests add to the price of a plan."""

    def __init__(self, search: VectorSearch, price: int) -> None:
        names = ("planned", "cores", "estimate", "due", "submit")
        self._price, self._of = price, [getattr(search, name).tolist() for name in names]

    def term(self, job: int, start: int) -> float:
        """Of a request that starts then."""
        return float(term(self._price, start, *(column[job] for column in self._of)))


def cheapest(search: VectorSearch, order: Sequence[int], keep: bool, price: int) -> Found | None:
    """Cheapest plan with the new request at any place of *order*; see `gridsim.policy.admission.msb.cheapest`."""
    new, now, prices = len(search.rows) - 1, search.now, _Prices(search, price)
    due, estimate = search.due.tolist(), search.estimate.tolist()
    best: Found | None = None
    least, spent = np.inf, 0.0
    starts: IntArray = np.empty(new + 1, dtype=np.int64)
    before = None if keep else search.with_first(0)
    for place in range(new + 1):
        trial = search.with_first(place) if before is None else before.copy()
        cost, works = spent, True
        for job in (new, *order[place:]):
            start = trial.earliest(job, now)
            if start + estimate[job] > due[job]:
                if job == new:
                    return best
                works = False
                break
            cost += prices.term(job, start)
            if cost >= least * _TIE:
                works = False
                break
            starts[job] = start
            trial.lay(job, start)
        if works:
            least = cost
            best = Found(cost, starts.copy(), trial.holdings)
        if place == new:
            break
        job = order[place]
        start = int(search.planned[job]) if before is None else before.earliest(job, now)
        if start + estimate[job] > due[job]:
            break
        starts[job] = start
        spent += prices.term(job, start)
        if before is not None:
            before.lay(job, start)
    return best


def by_slots(
    search: VectorSearch,
    order: Sequence[int],
    k_factor: int,
    *,
    only_first: bool,
    new_first: bool,
    append: bool,
    price: int,
) -> Found | None:
    """A plan with the new request, by slots; see `gridsim.policy.admission.qops.by_slots`."""
    new, tail = len(search.rows) - 1, len(search.rows) - 1
    prices = None if price < 0 else _Prices(search, price)
    best: Found | None = None
    while True:
        trial, starts = search.with_first(new - tail), search.planned.copy()
        if _repaired(search, trial, starts, order, new - tail, k_factor, new_first=new_first):
            if prices is None:
                return Found(0.0, starts, trial.holdings)
            cost = 0.0  # in this order, as sums of ratios depend on it
            for job, start in enumerate(starts.tolist()):
                cost += prices.term(job, start)
            if best is None or cost < best.price * _TIE:
                best = Found(cost, starts, trial.holdings)
        if only_first or tail == 0 or (tail == 1 and not append):
            return best
        tail //= 2


def _repaired(
    search: VectorSearch,
    trial: _Trial,
    starts: IntArray,
    order: Sequence[int],
    staying: int,
    k_factor: int,
    *,
    new_first: bool,
) -> bool:
    """Lay all but the first *staying* requests down; whether at most *k_factor* repairs let all keep their promises."""
    due, estimate = search.due.tolist(), search.estimate.tolist()
    new, stack, violations = len(due) - 1, list[int](), 0
    first = new if new_first and staying else -1
    left = {job for job in order if staying <= job < new or (job == new and first < 0)}
    while left or first >= 0:
        job = first if first >= 0 else next(each for each in order if each in left)
        left.discard(job)
        first = -1
        start = trial.earliest(job, search.now)
        if start + estimate[job] <= due[job]:
            trial.lay(job, start)
            starts[job] = start
            stack.append(job)
            continue
        violations += 1
        if violations > k_factor or not stack:
            return False
        # Who stays counts for the height of the stack, half of what lies above goes.
        middle = (2 * staying + len(stack)) // 2 - staying
        for moved in reversed(stack[middle:]):
            trial.take_off(moved)
            left.add(moved)
        del stack[middle:]
        first = job
    return True


def depth_first(
    search: VectorSearch, keys: FloatArray, limit: int, window: int, hole_filling: bool, weight: float
) -> Found | None:
    """A plan of all requests, placed anew; see `gridsim.policy.admission.mrt.depth_first`."""
    vertices = _Vertices(search, keys, window, hole_filling, weight)
    n, backtracks = len(search.rows), 0
    due, estimate = search.due.tolist(), search.estimate.tolist()
    stack = [_Vertex(vertices.sorted(range(n), keys.tolist()), [search.now] * n)]
    placed = list[int]()
    starts: IntArray = np.empty(n, dtype=np.int64)
    if not vertices.open(stack[0]):
        return None
    while len(placed) < n:
        vertex = stack[-1]
        if vertex.following == len(vertex.order):  # no other request to go on with: back to the vertex before
            stack.pop()
            backtracks += 1
            if not placed or backtracks > limit:
                return None
            vertices.trial.take_off(placed.pop())
            continue
        job = vertex.order[vertex.following]
        vertex.following += 1
        start = vertices.earliest(job, vertex.earliest[job])
        if start + estimate[job] <= due[job]:
            vertices.trial.lay(job, start, lasting=not hole_filling)
            below = _Vertex([other for other in vertex.order if other != job], list(vertex.earliest))
            if vertices.open(below):
                placed.append(job)
                stack.append(below)
                starts[job] = start
                continue
            vertices.trial.take_off(job)
        backtracks += 1
        if backtracks > limit:
            return None
    return Found(0.0, starts, vertices.trial.holdings)


class _Vertex:
    """A partial schedule: the requests left in the order of the heuristic, and the earliest starts known of each."""

    __slots__ = ("earliest", "following", "order")

    def __init__(self, order: list[int], earliest: list[int]) -> None:
        self.order, self.earliest, self.following = order, earliest, 0


class _Vertices:
    """What is the same at all vertices of a search."""

    def __init__(self, search: VectorSearch, keys: FloatArray, window: int, hole_filling: bool, weight: float) -> None:
        self.trial = search.with_first(0)
        self._keys = keys.tolist()
        self._turn: list[int] = np.argsort(in_order(search.rows, search.ties)).tolist()  # of each, in job order
        self._due, self._estimate = search.due.tolist(), search.estimate.tolist()
        self._window, self._lasting, self._weight = window, not hole_filling, weight

    def sorted(self, jobs: Sequence[int], keys: Sequence[float]) -> list[int]:
        """Requests by key, then in job order."""
        return sorted(jobs, key=lambda job: (keys[job], self._turn[job]))

    def earliest(self, job: int, bound: int) -> int:
        """Earliest place of a request from a bound on; without hole filling one that it could keep for ever."""
        return self.trial.earliest(job, bound, lasting=self._lasting)

    def open(self, vertex: _Vertex) -> bool:
        """Enter a vertex: whether each request of the window could still be placed in time, alone."""
        earliest = vertex.earliest
        if self._weight:
            keys = list(self._keys)
            for job in vertex.order:
                earliest[job] = self.earliest(job, earliest[job])
                keys[job] = self._keys[job] + self._weight * (earliest[job] / MICROSECOND)
            vertex.order = self.sorted(vertex.order, keys)
        for job in vertex.order[: self._window]:
            earliest[job] = self.earliest(job, earliest[job])
            if earliest[job] + self._estimate[job] > self._due[job]:
                return False
        return True
