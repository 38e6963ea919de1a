"""Guaranteed deadlines: every admitted job ends by its guaranteed deadline, whatever is submitted later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from gridsim.errors import InputError, name_of, not_modelled
from gridsim.machine.njit import as_python
from gridsim.model.decimal_numbers import exact
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.policy.admission import decision
from gridsim.policy.admission import plan_cycle as cycle
from gridsim.policy.admission.plan import Plan, offer_of
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.restart import restartable
from gridsim.policy.capabilities import is_static, on_nodes, search_of
from gridsim.policy.prediction import Request, Requested
from gridsim.policy.protocols import Answers, Capabilities, CapacityChange, Decision, LoopState, Offer, Quote, Stop
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.record import BROKEN_BY

DAY = 86400.0

_MACHINE, _OVERRUN = BROKEN_BY.index("machine"), BROKEN_BY.index("overrun")


@dataclass(repr=False)
class Guaranteed(Planned):
    """Admits jobs for which *admission* can guarantee a deadline without breaking others, and rejects all other jobs.

    Parameters
    ----------
    admission : Admission
        Decides whether a new job fits, and its planned start, for the requested deadline.
    compress, ordering
        As in `Planned`.
    relaxation : float
        A job without a deadline gets an artificial one: its submit time plus this factor times its estimate, …
    artificial_floor : float
        … but at least this many seconds.
    artificial_fallback : {"loosen", "reject"}
        Treatment of such a job if the search rejects it: the response is doubled until the job, appended to the plan,
        meets it; or the job is rejected like any other.
    unadmitted : {"drop", "best-effort"}
        Rejected jobs leave; or they stay without a guarantee, behind the plan, and every later admission may move
        them.

    Notes
    -----
    Spec of the deadline papers, sections 5 to 7. After a loss of capacity all waiting requests are placed again in
    planned order, stopped ones first. A guarantee that the new plan does not keep is broken for good: it binds no later
    search. Requests that ran before keep their guarantees and are never rejected.
    """

    name: ClassVar[str] = "guaranteed"
    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003 and 2004"
    admission: Any = field(default_factory=QoPS)
    relaxation: float = 5.0
    artificial_floor: float = DAY
    artificial_fallback: Literal["loosen", "reject"] = "loosen"
    unadmitted: Literal["drop", "best-effort"] = "drop"
    # Guarantees are not based on predictions.
    predict: Any = field(default_factory=Requested, init=False, repr=False)
    correct: Any = field(default_factory=Request, init=False, repr=False)
    preempt: Any = field(default=None, init=False, repr=False)
    orders_classes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.relaxation < float("inf"):
            raise ValueError(f"relaxation is {self.relaxation}; a number above 0 is needed")
        if not 0 <= self.artificial_floor < float("inf"):
            raise ValueError(f"artificial_floor is {self.artificial_floor}; seconds from 0 up are needed")

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities, which depend on the parts; it has a plan and guarantees deadlines."""
        able = replace(super().capabilities, guarantees=True)
        notified: Any = frozenset({"capacity_changed"} if on_nodes(self.admission) and not able.sizes else ())
        in_python = self._in_python()
        compiled: Any = frozenset(() if in_python else {"pool"})
        return replace(able, notified=notified, compiled=compiled, in_python=in_python, effort=100.0)

    def _in_python(self) -> str:
        """Return why its decisions cannot run in the compiled loop; empty if they can."""
        if self.unadmitted != "drop":
            return "jobs may have no reservation"
        if self.partition is not None:
            return f"{name_of(self.partition)} chooses sizes"
        if not is_static(self.ordering):
            return f"{name_of(self.ordering)} is called at each compression"
        return decision.why_not(self.admission)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run.

        Raises
        ------
        InputError
            For DAG jobs: a deadline applies to a whole job, but a plan contains single tasks.
        """
        if cluster.requests.tasks is not None:
            raise InputError(not_modelled("guaranteed deadlines for DAG jobs"), field="policy")
        super().setup(cluster, rng)
        self._keeps_all = self.unadmitted == "best-effort"
        self._loose: list[int] = []  # waiting requests without a guarantee, in order of arrival
        self._aside: list[int] = []  # and requests that fit at no known time, which bind no search either
        self._firm: Plan | None = None  # the plan without these, during the search for an offer
        self._lost = False  # capacity was lost, or a stopped request returned, since the plan was settled
        n = len(cluster.requests)
        self._broken_at: IntArray = np.full(n, NEVER, dtype=np.int64)
        self._broken_by: npt.NDArray[np.int8] = np.zeros(n, dtype=np.int8)

    def passes(self, rows: IntArray) -> LoopState:
        """Return the arrays of its decisions and its plan for the compiled event loop."""
        plan, requests = self._plan, self._requests
        self._rank_all()
        queue, machine, moves = plan.columns_for(len(rows))
        how = decision.numbers_of(self.admission, loosen=self.artificial_fallback == "loosen", tick=plan.tick)
        trial = plan.copy().columns_for(len(rows))[:-1]
        asked = requests.submit.copy(), requests.deadline.copy(), self._responses(), plan.kills, restartable(requests)
        answers = Answers.none_yet(len(requests))
        bundle = (queue, machine), trial, asked, tuple(answers), moves, how
        return LoopState("guaranteed", bundle, answers=answers)

    def _responses(self) -> IntArray:
        """Return `artificial_response` of each request."""
        return np.array([self.artificial_response(it) for it in self._requests.estimate.tolist()], dtype=np.int64)

    def quote(self, request: int, now: int) -> Quote | None:
        """Return the admission's offer for the requested deadline; a request that ran before keeps its guarantee."""
        if self._plan.began[request] < NEVER:
            return self._again(request, now)
        return self.promise(request, int(self._requests.deadline[request]), now)

    def promise(self, request: int, deadline: int, now: int) -> Quote | None:
        """Return the admission's offer for *deadline*, possibly with a later one; None if it rejects the request.

        A moldable job gets the fewest cores for which the requested deadline can be guaranteed, which use the least
        work; if there are none, those with the earliest deadline that can be guaranteed.
        """
        self._set_aside(now)
        best: Quote | None = None
        for cores in self._sizes(request, now):
            with self._sized(request, cores):
                offer = self._offer(request, deadline, now)
            if offer is None or (best is not None and best.offer is not None and best.offer.granted <= offer.granted):
                continue
            best = Quote(request, offer, cores)
            if offer.granted <= deadline and not offer.doublings:
                break
        return self._behind(request, now) if best is None and self._keeps_all else best

    def _set_aside(self, now: int) -> None:
        """Set apart the requests that bind no search: those without a place, and those without a guarantee."""
        plan = self._plan
        lost = plan.order()[plan.planned_starts() >= NEVER].tolist()
        self._aside = [*(row for row in lost if row not in self._loose), *self._loose] if lost else self._loose
        self._firm = self._without(self._aside, now) if self._aside else None

    def _again(self, request: int, now: int) -> Quote:
        """Return the quote for a request that was stopped: its planned start, else its earliest one."""
        self._firm, granted = None, int(self._plan.granted[request])
        if request in self._requeued:
            return Quote(request, Offer(self._plan.starts()[request], granted=granted))
        if request not in self._requests.stopped and granted < NEVER:
            self._set_aside(now)
        plan = self._plan if self._firm is None else self._firm
        return Quote(request, Offer(plan.earliest(request, now), granted=granted))

    def _behind(self, request: int, now: int) -> Quote:
        """Return a quote behind all guarantees: at the requested size if it fits, else at the size with the first end.

        It is based on the plan of all waiting requests.
        """
        cores = 0 if self._shapes is None or self._shapes.fits_as_requested(request) else self._size(request, now)
        with self._sized(request, cores):
            return Quote(request, Offer(self._plan.earliest(request, now)), cores)

    def _sizes(self, request: int, now: int) -> Sequence[int]:
        """Return the core counts to try for a request, ascending; 0 means the requested ones."""
        return (0,) if self._shapes is None else self._shapes.tried(request, self._limit(request, now))

    def _offer(self, request: int, deadline: int, now: int) -> Offer | None:
        """Return the admission's offer for a request at its present size."""
        plan = self._plan if self._firm is None else self._firm  # an empty plan is falsy
        if deadline >= NEVER:
            return self._artificial(request, plan, now)
        offer = offer_of(self.admission, request, deadline, plan, now)
        return offer._replace(granted=deadline) if offer is not None and offer.granted >= NEVER else offer

    def declined(self, quote: Quote) -> Quote | None:
        """Return the remaining quote after the user declined the offer: at the requested size, if that fits."""
        if not self._keeps_all or quote.offer is None:
            return None
        asked = self._shapes is None or self._shapes.fits_as_requested(quote.request)
        return Quote(quote.request, Offer(quote.offer.start), 0 if asked else quote.cores)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Guarantee the offer; without an offer, add the request to those that wait behind all guarantees."""
        assert quote.offer is not None
        request, returns = quote.request, bool(self._plan.began[quote.request] < NEVER)
        if request in self._requeued:
            return super().commit(quote, now)
        if quote.offer.granted >= NEVER:
            self._plan.granted[request] = NEVER  # a trial may have changed it
            self._resize(quote)
            self._loose.append(request)
            if returns:
                self._sort_loose()
                self._plan = self._without(self._loose, now)
            self._append(self._loose if returns else [request], now)
            return ()
        if self._firm is not None:
            self._plan = self._firm
        self._lost |= returns
        stops = super().commit(quote, now)
        if self._firm is not None:
            self._append(self._aside, now)
        if returns:
            self._note_broken(now, _MACHINE)
        return stops

    def capacity_changed(self, change: CapacityChange, now: int) -> None:
        """Record that nodes or GPUs are absent or have returned; `settled` plans again."""
        super().capacity_changed(change, now)
        self._lost |= bool(change.lost or change.requeued)
        if loose := [request for request in change.requeued if self._plan.granted[request] >= NEVER]:
            self._loose += loose
            self._sort_loose()

    def settled(self, now: int) -> None:
        """Plan again after an overrun, else compress after a release; requests without guarantees are placed last."""
        again = self._plan.meta.item(cycle.OVERRAN)
        if not self._loose or self._plan.is_settled(now):
            super().settled(now)
        else:
            self._plan = self._without(self._loose, now)
            super().settled(now)
            self._append(self._loose, now)
        if again:
            self._note_broken(now, _MACHINE if self._lost else _OVERRUN)
        self._lost = False

    def _note_broken(self, now: int, by: int) -> None:
        """Record the guarantees that the present plan is the first one not to keep."""
        plan, rows = self._plan, self._plan.order()
        late = plan.planned_starts() > plan.granted[rows] - plan.estimate[rows]
        new = rows[late & (plan.granted[rows] < NEVER) & (self._broken_at[rows] >= NEVER)]
        plan.broken[new], self._broken_at[new], self._broken_by[new] = True, now, by

    def _sort_loose(self) -> None:
        """Sort the requests without a guarantee by arrival, after some were stopped."""
        rows: IntArray = np.array(self._loose, dtype=np.int64)
        self._loose = rows[self._requests.in_order(rows)].tolist()

    def _append(self, requests: Sequence[int], now: int) -> None:
        """Place requests that are not in the plan behind it, one after the other, in any gap."""
        for request in requests:
            self._plan.reserve(request, self._plan.earliest(request, now))

    @property
    def broken(self) -> npt.NDArray[np.bool_]:
        """Requests whose guarantees were broken by an overrun of another request, or a loss of capacity."""
        return self._plan.broken

    def broken_promises(self) -> tuple[IntArray, npt.NDArray[np.int8]]:
        """Return when the guarantee of each request was broken, `NEVER` if it was not, and indices in `BROKEN_BY`."""
        return self._broken_at, self._broken_by

    def dispatch(self, now: int) -> Decision:
        """Return the requests whose planned start is now."""
        decision = super().dispatch(now)
        if self._loose and decision.starts:
            gone = {start.request for start in decision.starts}
            self._loose = [request for request in self._loose if request not in gone]
        return decision

    def _without(self, requests: Sequence[int], now: int) -> Plan:
        """Return the plan of all other requests."""
        plan = self._plan.copy()
        plan.withdraw(requests, now)
        return plan

    def _artificial(self, request: int, plan: Plan, now: int) -> Offer | None:
        """Return an offer for a job without a requested deadline; None only with ``artificial_fallback=reject``."""
        submit, estimate = int(self._requests.submit[request]), int(plan.estimate[request])
        response = self.artificial_response(estimate)
        offer = offer_of(search_of(self.admission), request, submit + response, plan, now)
        if offer is not None:
            return offer._replace(granted=submit + response)
        if self.artificial_fallback == "reject":
            return None
        start = plan.earliest(request, now)
        if start >= NEVER:  # no deadline can be guaranteed
            return None
        response, doublings = as_python(decision.doubled)(response, start + estimate - submit)
        return Offer(start, granted=submit + response, doublings=doublings)

    def artificial_response(self, estimate: int) -> int:
        """Return the response guaranteed to a job without deadline: max(floor, relaxation * estimate), microseconds.

        At least one, since it is doubled, and limited so that its sum with a submit time fits into 64 bits.
        """
        times, of, floor = self._artificial_rule
        return min(max(floor, estimate * times // of, 1), NEVER // 2)

    @cached_property
    def _artificial_rule(self) -> tuple[int, int, int]:
        """Numerator and denominator of the relaxation, and the floor in whole microseconds."""
        factor = exact(self.relaxation, "relaxation")
        return factor.numerator, factor.denominator, to_us(self.artificial_floor)
