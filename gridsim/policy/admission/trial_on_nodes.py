"""Trial plans on nodes, and on pools of several resources: requests are placed by the rule of the machine.

The work for each request is compiled; in between, user-defined rules are called, and arrays grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsim.machine.feasibility import can_place, first_place
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.node_profile import Classes, NodeProfile, Workspace, hold
from gridsim.machine.placing import KIND, OUTSIDE, place_tasks
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.policy.admission import trial
from gridsim.policy.admission.trial import LATE, term

AT, NOW, LASTING, PRICE, PLACED = range(5)
"""Step of placing in an order: index in it, present instant, whether placements never end, index of the price (-1 for
none), whether the request at the index is already placed."""

STOP_LATE, STOP_DEAR, STOP_RULE = range(4, 7)
"""Why placing stops, except for arrays that must grow (1 to 3): an end after its deadline, a price that is too high, a
rule that is called in Python."""


class NodeTrial:
    """Allocations in which requests of a search are placed and removed; see `gridsim.policy.admission.trial`.

    Parameters
    ----------
    search : gridsim.policy.admission.plan.Search
        Input of the search.

    Attributes
    ----------
    holdings : Holdings
        The allocations.
    starts : (n + 1,) int64
        Starts of placed requests, and of others in the present plan; whole microseconds.
    found : tuple
        Starts and allocations of the best plan.
    """

    one_pool = False

    def __init__(self, search: Any) -> None:
        self.rows, self.cores, self.estimate, self.due, self.submit, self.planned = search[:6]
        self.holdings = self._before = search.holdings
        self.ties = search.ties
        self.now, n = search.now, len(search.rows)
        self.cost: FloatArray = np.zeros(1)
        self.state: IntArray = np.zeros(1, dtype=np.int64)
        self.known: IntArray = np.full((2, n), -1, dtype=np.int64)
        self.earliest: IntArray = np.full(n, self.now, dtype=np.int64)
        self.starts: IntArray = self.planned
        self._place_tasks: tuple[Any, ...] = ()

    @property
    def _jobs(self) -> tuple[IntArray, ...]:
        return self.rows, self.cores, self.estimate, self.due, self.submit, self.planned

    @property
    def _machine(self) -> tuple[Any, ...]:
        return self.holdings.floor, self.holdings.classes, self.holdings.sketch

    def keep_first(self, count: int) -> None:
        self.starts = self.planned.copy()
        self.holdings = self._before.copy()
        self.take_off(np.arange(count, len(self.rows) - 1))

    def keep(self, job: int, planned: bool) -> bool:
        if not planned:
            return bool(self.place_all(np.array([job]), False, -1, np.inf))
        row, start = int(self.rows[job]), int(self.planned[job])
        end = start + int(self.estimate[job])
        self.starts[job] = start
        self.holdings.put_at(row, self._before.place_of(row), start, end, promise=True)
        return bool(end <= self.due[job])

    def place_all(self, jobs: IntArray, lasting: bool, price: int, most: float) -> int:
        held, step = self.holdings, np.array([0, self.now, lasting, price, 0])
        costs = np.array([self.cost[0], most])
        given = jobs, step, costs, self._jobs, self.starts
        while stopped := _place_all(*given, held.floor, held.classes, held.sketch, held.rule):
            if stopped in (STOP_LATE, STOP_DEAR):
                break
            held.help(stopped, int(self.rows[jobs[step[AT]]]) if stopped == STOP_RULE else -1)
        self.cost[0], self.state[LATE] = costs[0], stopped == STOP_LATE
        return int(step[AT])

    def take_off(self, jobs: IntArray) -> None:
        self.holdings.release_many(self.rows[jobs], len(jobs), self.now)

    restore = take_off

    def has_moved(self, job: int) -> bool:
        place = self.holdings.place_of(int(self.rows[job]))
        before, self._place_tasks = self._place_tasks, (int(self.starts[job]), *(column.tobytes() for column in place))
        return before != self._place_tasks

    def count_unmoved(self, jobs: IntArray) -> int:
        rows = self.rows[jobs].tolist()
        return next((at for at, row in enumerate(rows) if not self.holdings.is_same_hold(self._before, row)), len(rows))

    def save(self) -> None:
        self.found = self.starts.copy(), self.holdings.copy()

    def all_in_time(self, jobs: IntArray, lasting: bool, depth: int, start: int, end: int) -> bool:
        last = self.now, depth, start, end
        return bool(_all_in_time(jobs, last, self.known, self._jobs, lasting, *self._machine))

    def advance_start(self, jobs: IntArray, lasting: bool, start: int, end: int) -> None:
        _advance_start(jobs, (start, end), self.earliest, self._jobs, lasting, *self._machine)


for _verb in ("keep_first", "keep", "restore", "place_all", "take_off", "has_moved", "count_unmoved", "save"):
    getattr(trial, _verb).register(NodeTrial, getattr(NodeTrial, _verb))
trial.all_in_time.register(NodeTrial, NodeTrial.all_in_time)
trial.advance_start.register(NodeTrial, NodeTrial.advance_start)


# -- for each request, compiled ----------------------------------------------------------------------------------------


@njit_noalloc
def _place_all(order, step, cost, jobs, starts, floor, classes, sketch, rule):  # type: ignore[no-untyped-def]
    """Place requests of a search in order, each at its earliest start; return 0 if all are placed, else why not.

    *jobs* are columns of a search, *order* has indices into them, and ``step[AT]`` is the number of placed
    requests, from which it continues. Their prices are added to ``cost[0]``, which must stay below ``cost[1]``.
    """
    rows, cores, estimate, due, submit, planned = jobs
    while step[AT] < order.shape[0]:
        job = order[step[AT]]
        row = rows[job]
        if not step[PLACED]:
            duration = NEVER if step[LASTING] else estimate[job]
            start = first_place(floor, classes, sketch, step[NOW], row, duration, NEVER, NEVER)
            if start < 0 or start + estimate[job] > due[job]:
                return STOP_LATE
            if step[PRICE] >= 0:
                own = planned[job], cores[job], estimate[job], due[job], submit[job]
                cost[0] += term(step[PRICE], start, own[0], own[1], own[2], own[3], own[4])
                if cost[0] >= cost[1]:
                    return STOP_DEAR
            starts[job], step[PLACED] = start, 1
            if rule[0][KIND] == OUTSIDE:
                return STOP_RULE
            place_tasks(sketch, classes, rule, row)
        count = hold(floor, classes, sketch, row, starts[job], starts[job] + estimate[job], np.int64(1))
        if count < 0:
            return -count
        step[PLACED] = 0
        step[AT] += 1
    return 0


@njit_noalloc
def _advance_start(order, last, earliest, jobs, lasting, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Update the earliest starts of requests after one was placed in the interval *last*."""
    rows, estimate = jobs[0], jobs[2]
    for job in order:
        duration = NEVER if lasting else estimate[job]
        at = earliest[job]
        if at < last[1] and at + duration > last[0]:
            start = first_place(floor, classes, sketch, at, rows[job], duration, NEVER, NEVER)
            earliest[job] = NEVER if start < 0 else start


@njit_noalloc
def _all_in_time(order, last, known, jobs, lasting, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Return whether each request alone could still meet its deadline, at its *known* instant or another.

    *last* has the present instant, the number of placed requests, and the interval of the last one. ``known[0]`` has
    feasible instants, ``known[1]`` the number of placed requests for which they were found, -1 for none. The latest
    feasible instant is tried first, since later placements seldom affect it.
    """
    rows, _, estimate, due, _, _ = jobs
    floor, classes, sketch = NodeProfile(*floor), Classes(*classes), Workspace(*sketch)
    now, depth, start, end = last
    for job in order:
        c, duration = classes.of[rows[job]], NEVER if lasting else estimate[job]
        at, attached = known[0, job], known[1, job]
        untouched = depth > 0 and attached == depth - 1 and (at >= end or at + duration <= start)
        if attached < 0 or not (untouched or can_place(floor, classes, sketch, c, at, at + duration)):
            at = due[job] - estimate[job]
            if at < now or not can_place(floor, classes, sketch, c, at, at + duration):
                at = first_place(floor, classes, sketch, now, rows[job], duration, NEVER, NEVER)
                if at < 0 or at + estimate[job] > due[job]:
                    known[1, job] = -1
                    return False
            known[0, job] = at
        known[1, job] = depth
    return True
