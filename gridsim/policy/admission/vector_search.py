"""Searches for a new plan where requests ask for several resources: the same three, laying requests down at places.

What `gridsim.policy.admission.msb`, `mrt` and `qops` do on the profile of one pool of cores, on holdings: a request is
laid down at its earliest place, by the rule of the machine, beside those that have been laid down before it (spec of
machines, 4.2 and 4.6). The order in which places are tried, and what decides between plans, are the same. What is done
for each request is compiled (`gridsim.policy.admission.vector_kernels`); a search decides between runs of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.admission.price import term
from gridsim.policy.admission.vector_kernels import AT, BY_RULE, LATE, all_in_time, bring_up, lay_down
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
        trial.take_off(np.arange(count, len(self.rows) - 1))
        return trial


class _Trial:
    """Holdings in which requests of a search are laid down and taken off again; requests by their places in it.

    Attributes
    ----------
    holdings : Holdings
        What it works on.
    jobs : tuple of arrays
        Columns of the search, as compiled loops take them.
    starts : (n + 1,) int64
        Where those start that have been laid down, or else would by the plan as it stands; whole microseconds.
    cost : float
        Price of what has been laid down last, upon what came before.
    late : bool
        Whether the last one would have ended behind its deadline.
    """

    def __init__(self, search: VectorSearch, holdings: Holdings) -> None:
        self.holdings = holdings
        self.jobs = (search.rows, search.cores, search.estimate, search.due, search.submit, search.planned)
        self.starts: IntArray = search.planned.copy()
        self.cost, self.late, self._now = 0.0, False, search.now

    def lay_down(
        self, order: IntArray, *, lasting: bool = False, price: int = -1, cost: float = 0.0, most: float = np.inf
    ) -> int:
        """Lay requests down one after the other, each at its earliest place; how many of them can be, in time.

        Parameters
        ----------
        lasting : bool
            Whether their places have to be free for ever.
        price : int
            Index into `PRICES` of what they add to *cost*, which has to stay below *most*; -1 for nothing.
        """
        held, step, costs = self.holdings, np.array([0, self._now, lasting, price, 0]), np.array([cost, most])
        given = order, step, costs, self.jobs, self.starts
        while stopped := lay_down(*given, held.floor, held.classes, held.sketch, held.rule):
            if stopped < LATE:
                held.grow(stopped)
            elif stopped == BY_RULE:
                assert held.outside is not None
                held.outside(held, int(self.jobs[0][order[step[AT]]]))
            else:
                break
        self.cost, self.late = float(costs[0]), stopped == LATE
        return int(step[AT])

    def take_off(self, jobs: IntArray) -> None:
        """Take requests that have been laid down off again."""
        self.holdings.let_go(self.jobs[0][jobs], len(jobs), self._now)

    def lies(self, job: int) -> tuple[Any, ...]:
        """When and where a request lies, to be compared."""
        place = self.holdings.place_of(int(self.jobs[0][job]))
        return int(self.starts[job]), *(column.tobytes() for column in place)

    def alike(self, jobs: IntArray, holdings: Holdings) -> int:
        """How many of some requests, up to the first other one, lie as in other holdings."""
        rows = self.jobs[0][jobs].tolist()
        return next((at for at, row in enumerate(rows) if not self.holdings.is_alike(holdings, row)), len(rows))

    def put_back(self, job: int, holdings: Holdings) -> None:
        """Lay a request down where it lies in the holdings of the plan as it stands."""
        row, start = int(self.jobs[0][job]), int(self.jobs[5][job])
        self.starts[job] = start
        self.holdings.put_at(row, holdings.place_of(row), start, start + int(self.jobs[2][job]), promise=True)


def cheapest(search: VectorSearch, order: IntArray, keep: bool, price: int) -> Found | None:
    """Cheapest plan with the new request at any place of *order*; see `gridsim.policy.admission.msb.cheapest`.

    Where the requests behind it come to lie just where they would have stayed, and it lies at the places behind these
    where it lies here, they make the same plan.
    """
    new, spent = len(search.rows) - 1, 0.0
    best: Found | None = None
    least, alike, lay = np.inf, -1, (0, -1)
    trial = search.with_first(0)
    for place in range(new + 1):
        rest = np.concatenate(([new], order[place:]))
        count = trial.lay_down(rest[:1], price=price, cost=spent, most=least * _TIE)
        if trial.late:
            break
        lies = trial.lies(new)
        if count and not (place <= alike and lies == lay):
            count += trial.lay_down(rest[1:], price=price, cost=trial.cost, most=least * _TIE)
            if count == len(rest):
                least = trial.cost
                best = Found(least, trial.starts.copy(), trial.holdings.copy())
            alike, lay = place + (trial.alike(rest[1:count], search.holdings) if keep else -1), lies
        if place == new:
            break
        trial.take_off(rest[:count])
        job = int(order[place])
        if keep:
            trial.put_back(job, search.holdings)
            if trial.starts[job] + search.estimate[job] > search.due[job]:
                break
        elif not trial.lay_down(order[place : place + 1]):
            break
        own = (column[job] for column in (search.planned, search.cores, search.estimate, search.due, search.submit))
        spent += float(term(price, int(trial.starts[job]), *(int(number) for number in own)))
    return best


def by_slots(
    search: VectorSearch,
    order: IntArray,
    k_factor: int,
    *,
    only_first: bool,
    new_first: bool,
    append: bool,
    price: int,
) -> Found | None:
    """A plan with the new request, by slots; see `gridsim.policy.admission.qops.by_slots`."""
    new, tail = len(search.rows) - 1, len(search.rows) - 1
    best: Found | None = None
    while True:
        trial = search.with_first(new - tail)
        if _repaired(trial, order, new - tail, k_factor, new_first=new_first):
            cost = 0.0 if price < 0 else _price(search, trial.starts, price)
            if best is None or cost < best.price * _TIE:
                best = Found(cost, trial.starts, trial.holdings)
        if only_first or tail == 0 or (tail == 1 and not append) or (best is not None and price < 0):
            return best
        tail //= 2


def _price(search: VectorSearch, starts: IntArray, price: int) -> float:
    """Of a whole plan, added up in this order, as sums of ratios depend on it."""
    columns = starts, search.planned, search.cores, search.estimate, search.due, search.submit
    cost = 0.0
    for own in zip(*(column.tolist() for column in columns), strict=True):
        cost += float(term(price, *own))
    return cost


def _repaired(trial: _Trial, order: IntArray, staying: int, k_factor: int, *, new_first: bool) -> bool:
    """Lay all but the first *staying* requests down; whether at most *k_factor* repairs let all keep their promises."""
    new = len(order) - 1
    left = order >= staying
    first = new_first and staying > 0
    left[order == new] = not first
    stack, job = np.zeros(0, dtype=np.int64), new
    for _ in range(k_factor + 1):
        following = order[left]
        if first:
            following = np.concatenate(([job], following))
        count = trial.lay_down(following)
        stack = np.concatenate((stack, following[:count]))
        if count == len(following):
            return True
        if not len(stack):
            return False
        # Who stays counts for the height of the stack, half of what lies above goes.
        middle = (2 * staying + len(stack)) // 2 - staying
        trial.take_off(stack[middle:])
        stack, job, first = stack[:middle], int(following[count]), True
        left = (order >= staying) & ~np.isin(order, stack) & (order != job)
    return False


def depth_first(
    search: VectorSearch, keys: FloatArray, limit: int, window: int, hole_filling: bool, weight: float
) -> Found | None:
    """A plan of all requests, placed anew; see `gridsim.policy.admission.mrt.depth_first`."""
    vertices = _Vertices(search, keys, window, hole_filling, weight)
    n, backtracks = len(search.rows), 0
    stack = [vertices.first()]
    if not vertices.open(stack[0]):
        return None
    while len(stack) <= n:
        vertex = stack[-1]
        if vertex.following == len(vertex.order):  # no other request to go on with: back to the vertex before
            stack.pop()
            backtracks += 1
            if not stack or backtracks > limit:
                return None
            vertices.take_off(stack[-1])
            continue
        if vertices.lay_down(vertex):
            below = vertices.below(vertex)
            if vertices.open(below):
                stack.append(below)
                continue
            vertices.take_off(vertex)
        backtracks += 1
        if backtracks > limit:
            return None
    return Found(0.0, vertices.trial.starts, vertices.trial.holdings)


class _Vertex:
    """A partial schedule: the requests left in the order of the heuristic, and the earliest starts known of each.

    *last* is how many are laid down, and from when to when the last one of them is.
    """

    __slots__ = ("earliest", "following", "last", "order")

    def __init__(self, order: IntArray, earliest: IntArray, last: tuple[int, int, int]) -> None:
        self.order, self.earliest, self.last, self.following = order, earliest, last, 0


class _Vertices:
    """What is the same at all vertices of a search."""

    def __init__(self, search: VectorSearch, keys: FloatArray, window: int, hole_filling: bool, weight: float) -> None:
        self.trial, self._now = search.with_first(0), search.now
        self._keys, self._window, self._lasting, self._weight = keys, window, not hole_filling, weight
        self._turn: IntArray = np.argsort(in_order(search.rows, search.ties))  # of each, in job order
        self._known: IntArray = np.full((2, len(keys)), -1, dtype=np.int64)

    def first(self) -> _Vertex:
        """The vertex at which nothing is laid down."""
        order: IntArray = np.lexsort((self._turn, self._keys))
        return _Vertex(order, np.full(len(order), self._now, dtype=np.int64), (0, -NEVER, NEVER))

    def below(self, vertex: _Vertex) -> _Vertex:
        """The vertex behind the request that has just been laid down."""
        at = vertex.following - 1
        start = int(self.trial.starts[vertex.order[at]])
        end = start + int(self.trial.jobs[2][vertex.order[at]])
        earliest = vertex.earliest.copy() if self._weight else vertex.earliest
        return _Vertex(np.delete(vertex.order, at), earliest, (vertex.last[0] + 1, start, end))

    def lay_down(self, vertex: _Vertex) -> bool:
        """Lay the next request of a vertex down, if it can be in time."""
        vertex.following += 1
        at = vertex.following - 1
        return bool(self.trial.lay_down(vertex.order[at : at + 1], lasting=self._lasting))

    def take_off(self, vertex: _Vertex) -> None:
        """Let the request laid down at a vertex be left again; what was found out beside it is forgotten."""
        self.trial.take_off(vertex.order[vertex.following - 1 : vertex.following])
        np.minimum(self._known[1], vertex.last[0], out=self._known[1])

    def open(self, vertex: _Vertex) -> bool:
        """Enter a vertex: whether each request of the window could still be placed in time, alone.

        With a weight the order depends on the earliest starts of all.
        """
        held, jobs = self.trial.holdings, self.trial.jobs
        given = jobs, self._lasting, held.floor, held.classes, held.sketch
        if not self._weight:
            last = (self._now, *vertex.last)
            return bool(all_in_time(vertex.order[: self._window], last, self._known, *given))
        bring_up(vertex.order, vertex.last[1:], vertex.earliest, *given)
        keys = self._keys + self._weight * (vertex.earliest / MICROSECOND)
        vertex.order = vertex.order[np.lexsort((self._turn[vertex.order], keys[vertex.order]))]
        looked_at = vertex.order[: self._window]
        return bool((vertex.earliest[looked_at] + jobs[2][looked_at] <= jobs[3][looked_at]).all())
