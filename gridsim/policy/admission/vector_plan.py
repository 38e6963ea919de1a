"""The plan of a cluster with nodes, or with pools of more than cores: reservations at places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy.admission import vector_moves as kernels
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.trial_on_nodes import NodeSearch
from gridsim.policy.places import Laid, holdings_of, placement_at
from gridsim.policy.protocols import Arrangement, Passes, Placement, Start, whole_numbers
from gridsim.policy.queue import ClusterView
from gridsim.profile.nodes import ROW
from gridsim.profile.running import begin_running, end_running
from gridsim.profile.waiting import HEAD, TAIL, insert

__all__ = ["VectorPlan"]

_NOTHING: IntArray = np.array([[NEVER], [-1]])
"""Nothing was given back: the first instant after the last."""


class VectorPlan(Plan):
    """A `Plan` of requests that ask for several resources: every one of them, waiting or running, holds its place.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    rule : PlacementRule
        Where tasks go.
    rng : Generator
        For rules that draw.
    """

    __slots__ = ("_found", "_fresh", "_holdings", "_one", "_placements", "_state")

    def __init__(self, cluster: ClusterView, rule: Any, rng: Generator) -> None:
        super().__init__(cluster.requests, cluster.cores, cluster.tick)
        n = len(cluster.requests)
        self._make_room(n)
        self._holdings = holdings_of(cluster, rule, rng)
        self._one: IntArray = np.zeros(1, dtype=np.int64)
        self._placements: dict[int, Placement] = {}
        # Of each node from when until when something was given back: since all looked for earlier starts, in this pass.
        nodes = len(self._holdings.asked.columns.nodes)
        self._fresh: IntArray = np.zeros((2, 2, nodes), dtype=np.int64)
        self._fresh[:] = _NOTHING
        self._state: IntArray = np.zeros(24, dtype=np.int64)  # of what is to be done with the plan
        self._found = (-1, 0)  # request and start of the last search, as the sketch has them

    def earliest(self, request: int, now: int) -> int:
        """Earliest place of a request from *now* on, holes used, everyone else staying where they are."""
        if request >= self.requests.known:
            self._holdings.learn()
        start = self._holdings.first_place(request, int(self.estimate[request]), now)
        self._found = (request, start)
        return start

    def reserve(self, request: int, start: int) -> None:
        """Promise *start* to a request that joins the waiting ones, at the place that the rule finds for it."""
        start = self._checked(request, start)
        self._ensure(1)
        tail = int(self.meta[TAIL])
        self.waiting[tail], self.planned[tail] = request, start
        self.meta[TAIL] = tail + 1
        self._lay(request, start)
        self._sort()

    def _lay(self, request: int, start: int) -> None:
        """Lay a request down at *start*, where it fits; of another search than the last one that is looked at again."""
        end = start + int(self.estimate[request])
        known = self._found == (request, start)
        if not known and self._holdings.first_place(request, end - start, start, start + 1) < 0:
            raise PolicyError(f"request {request} has no place in this plan at {start / MICROSECOND} s")
        self._found = (-1, 0)
        self._holdings.put(request, start, end, promise=True)

    def _sort(self) -> None:
        head, tail = int(self.meta[HEAD]), int(self.meta[TAIL])
        insert(self.waiting, self.planned, head, head + 1, tail, self.requests.ties)

    def ended(self, request: int, now: int) -> int:
        """Give back what a running request would have held; returns its expected end."""
        until = int(end_running(self.held, self.meta, request, self.need[request]))
        if until < 0:
            raise PolicyError(f"request {request} does not run in this plan at {now / MICROSECOND} s")
        if until > now:
            self._holdings.mark(request, self._fresh[0], now, until)
        self._let_go(request, now)
        return until

    def resize(self, request: int, cores: int, estimate: int) -> None:
        """Let a request that has no place be of another size, with as many tasks."""
        super().resize(request, cores, estimate)
        self._holdings.asked.resize(request, cores)

    def _let_go(self, request: int, now: int) -> None:
        self._one[0] = request
        self._found = (-1, 0)
        self._holdings.let_go(self._one, 1, now)

    def compress(self, places: IntArray, now: int, frontier: int = NEVER, *, again: bool = False) -> None:
        """Move the requests at these places of the order, one after the other, to their earliest starts.

        None moves later; who finds no earlier start keeps its place. *again*: in planned order until nobody moves.
        """
        order = whole_numbers(self, "places", places, least=0, most=len(self) - 1) + int(self.meta[HEAD])
        kernels.compress(now, len(order), int(frontier >= NEVER), int(again), self._plan(order))
        self._carry_out(now, order)

    def _plan(self, order: IntArray) -> tuple[IntArray, ...]:
        return self.waiting, self.planned, self.meta, order, self._fresh, self._state

    def _carry_out(self, now: int, order: IntArray) -> None:
        """Do what is to be done with the plan."""
        holdings, plan = self._holdings, self._plan(order)
        while stopped := kernels.carry_out(
            now, plan, self._columns, holdings.floor, holdings.classes, holdings.sketch, holdings.rule
        ):
            holdings.help(stopped, int(self._state[ROW]))
        self._found = (-1, 0)

    def replan(self, now: int) -> None:
        """Place all waiting requests again in planned order, after a running one outlived its estimate.

        It keeps its place, and promises that the new places do not keep are broken.
        """
        holdings, plan = self._holdings, self._plan(self._one)
        kernels.uproot(now, plan, self.held, holdings.floor, holdings.classes, holdings.sketch)
        self._carry_out(now, self._one)
        rows = self.order()
        self.broken[rows] |= self.planned_starts() + self.estimate[rows] > self.granted[rows]

    def search(self, request: int, deadline: int, now: int) -> NodeSearch:
        """What a search works on that is to take *request* in, to end by *deadline* (`NEVER` for any time)."""
        rows, due = self._sought(request, deadline)
        return NodeSearch(
            rows,
            self.need[rows],
            self.estimate[rows],
            due,
            self.requests.submit[rows],
            np.append(self.planned_starts(), NEVER),
            self.requests.ties,
            self._holdings,
            now,
        )

    def copy(self) -> VectorPlan:
        """An independent plan with the same running and waiting requests; promises and their history are shared."""
        twin = super().copy()
        assert isinstance(twin, VectorPlan)
        twin._holdings, twin._placements = self._holdings.copy(), self._placements.copy()
        twin._one, twin._fresh, twin._state = self._one.copy(), self._fresh.copy(), self._state.copy()
        twin._found = (-1, 0)
        return twin

    def arrangement(self) -> Arrangement:
        """What the plan is determined by; a copy."""
        return super().arrangement()._replace(holdings=self._holdings.copy())

    def adopt(self, arrangement: Arrangement, now: int) -> None:
        """Let an arrangement be the plan of all that waits, at the places that it has."""
        holdings = arrangement.holdings
        assert holdings is not None
        rows = whole_numbers(self, "rows of an arrangement", arrangement.rows, least=0, most=len(self.need) - 1)
        starts = whole_numbers(self, "starts of an arrangement", arrangement.starts, len(rows), least=0)
        self._set_waiting(rows, starts)
        self._holdings, self._found = holdings, (-1, 0)
        self._fresh[0] = np.array([[now], [NEVER]])  # who has moved left room

    def withdraw(self, requests: Sequence[int], now: int) -> None:
        """Let waiting requests leave the plan; all others stay where they are."""
        rows, starts = self.order().copy(), self.planned_starts().copy()
        gone = np.isin(rows, requests)
        self._holdings.let_go(rows[gone], int(gone.sum()), now)
        self._found = (-1, 0)
        self._set_waiting(rows[~gone], starts[~gone])

    def _set_waiting(self, rows: IntArray, starts: IntArray) -> None:
        self._ensure(max(0, len(rows) - len(self)))
        head = int(self.meta[HEAD])
        self.meta[TAIL] = head + len(rows)
        self.waiting[head : head + len(rows)], self.planned[head : head + len(rows)] = rows, starts

    def due(self, now: int) -> Sequence[int]:
        """Requests planned for *now*: they run from here on."""
        started = list[int]()
        head, tail = int(self.meta[HEAD]), int(self.meta[TAIL])
        while head < tail and self.planned[head] <= now:
            row = int(self.waiting[head])
            begin_running(self.held, self.meta, row, now + self.estimate[row], self.need[row])
            self.began[row] = now
            self._placements[row] = placement_at(
                self._holdings, row, self._holdings.place(self._holdings.begin(row, now))
            )
            started.append(row)
            head += 1
        self.meta[HEAD] = head
        return started

    def passes(self, requests: int, flags: IntArray) -> Passes:
        """Its passes in a run of so many requests, for a calendar that plays the whole run; *flags* say how."""
        self._to_front(requests)
        holdings = self._holdings
        moves, order, laid = np.zeros_like(self.held), np.zeros_like(self.waiting), Laid(holdings, self._state)

        def columns() -> tuple[Any, ...]:
            lies = (holdings.floor, holdings.classes, holdings.sketch, holdings.rule, laid.log)
            return (self._plan(order), self._columns, self.held, moves, *lies, flags)

        def ask(now: int) -> tuple[Any, ...]:
            laid.help(int(self._state[kernels.STOPPED]), int(self._state[ROW]))
            return columns()

        return Passes("planned_at_places", columns(), ask, laid.pieces)

    def starts_of(self, rows: Sequence[int]) -> list[Start]:
        """The decision that these start, each at its place."""
        return [Start(row, 0, self._placements.pop(row)) for row in rows]
