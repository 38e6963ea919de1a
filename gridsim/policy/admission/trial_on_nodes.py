"""Trials on nodes, and on pools of several resources: requests are laid down by the rule of the machine.

What is done for each request is compiled (`gridsim.policy.admission.vector_kernels`); rules of users are called in
between, and arrays grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.admission import trial, vector_kernels
from gridsim.policy.admission.trial import LATE
from gridsim.policy.admission.vector_kernels import AT, BY_RULE
from gridsim.policy.protocols import Arrangement, Offer
from gridsim.profile.holdings import Holdings
from gridsim.profile.waiting import in_order

__all__ = ["NodeSearch", "NodeTrial"]


class NodeSearch(NamedTuple):
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

    def run(self, search: Callable[..., float], *arguments: Any) -> Offer | None:
        """The offer to take the new request in by the plan that a compiled search finds."""
        tried = NodeTrial(self)
        price = getattr(search, "py_func", search)(tried, *arguments)
        if price == np.inf:
            return None
        starts, holdings = tried.found
        order = in_order(self.rows, self.ties, starts)
        return Offer(int(starts[-1]), Arrangement(self.rows[order], starts[order], holdings), price=price)


class NodeTrial:
    """Holdings in which requests of a search are laid down and taken off again; see `gridsim.policy.admission.trial`.

    Attributes
    ----------
    holdings : Holdings
        What it works on.
    starts : (n + 1,) int64
        Where those start that have been laid down, or else would by the plan as it stands; whole microseconds.
    found : tuple
        Starts and holdings of the best plan.
    """

    one_pool = False

    def __init__(self, search: NodeSearch) -> None:
        self.rows, self.cores, self.estimate, self.due, self.submit, self.planned, self.ties = search[:7]
        self.holdings = self._before = search.holdings
        self.now, n = search.now, len(search.rows)
        self.cost: FloatArray = np.zeros(1)
        self.state: IntArray = np.zeros(1, dtype=np.int64)
        self.known: IntArray = np.full((2, n), -1, dtype=np.int64)
        self.earliest: IntArray = np.full(n, self.now, dtype=np.int64)
        self.starts: IntArray = self.planned
        self._lay: tuple[Any, ...] = ()

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
            return bool(self.lay_down(np.array([job]), False, -1, np.inf))
        row, start = int(self.rows[job]), int(self.planned[job])
        end = start + int(self.estimate[job])
        self.starts[job] = start
        self.holdings.put_at(row, self._before.place_of(row), start, end, promise=True)
        return bool(end <= self.due[job])

    def lay_down(self, jobs: IntArray, lasting: bool, price: int, most: float) -> int:
        held, step = self.holdings, np.array([0, self.now, lasting, price, 0])
        costs = np.array([self.cost[0], most])
        given = jobs, step, costs, self._jobs, self.starts
        while stopped := vector_kernels.lay_down(*given, held.floor, held.classes, held.sketch, held.rule):
            if stopped < vector_kernels.LATE:
                held.grow(stopped)
            elif stopped == BY_RULE:
                assert held.outside is not None
                held.outside(held, int(self.rows[jobs[step[AT]]]))
            else:
                break
        self.cost[0], self.state[LATE] = costs[0], stopped == vector_kernels.LATE
        return int(step[AT])

    def take_off(self, jobs: IntArray) -> None:
        self.holdings.let_go(self.rows[jobs], len(jobs), self.now)

    def has_moved(self, job: int) -> bool:
        place = self.holdings.place_of(int(self.rows[job]))
        before, self._lay = self._lay, (int(self.starts[job]), *(column.tobytes() for column in place))
        return before != self._lay

    def count_unmoved(self, jobs: IntArray) -> int:
        rows = self.rows[jobs].tolist()
        return next((at for at, row in enumerate(rows) if not self.holdings.is_alike(self._before, row)), len(rows))

    def save(self) -> None:
        self.found = self.starts.copy(), self.holdings.copy()

    def all_in_time(self, jobs: IntArray, lasting: bool, depth: int, start: int, end: int) -> bool:
        last = self.now, depth, start, end
        return bool(vector_kernels.all_in_time(jobs, last, self.known, self._jobs, lasting, *self._machine))

    def bring_up(self, jobs: IntArray, lasting: bool, start: int, end: int) -> None:
        vector_kernels.bring_up(jobs, (start, end), self.earliest, self._jobs, lasting, *self._machine)


trial.keep_first.register(NodeTrial, NodeTrial.keep_first)
trial.keep.register(NodeTrial, NodeTrial.keep)
trial.restore.register(NodeTrial, NodeTrial.take_off)
trial.lay_down.register(NodeTrial, NodeTrial.lay_down)
trial.take_off.register(NodeTrial, NodeTrial.take_off)
trial.has_moved.register(NodeTrial, NodeTrial.has_moved)
trial.count_unmoved.register(NodeTrial, NodeTrial.count_unmoved)
trial.save.register(NodeTrial, NodeTrial.save)
trial.all_in_time.register(NodeTrial, NodeTrial.all_in_time)
trial.bring_up.register(NodeTrial, NodeTrial.bring_up)
