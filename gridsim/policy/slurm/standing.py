"""Where requests stand: decayed usage, the factors that follow from it, and priorities, period by period."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.model.site import Site
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.limits import Owner
from gridsim.policy.slurm.needs import SECOND, fixed_factors, shares_of, use_factors
from gridsim.policy.slurm.nodes import Asks
from gridsim.policy.slurm.priority import Factors, age_factor, priorities

__all__ = ["Standing"]


class Standing:
    """Priorities of the requests of a run; usage is brought up to date once in a ``PriorityCalcPeriod``.

    Parameters
    ----------
    requests : Requests
        The requests.
    site : Site
        Shares, weights, factors.
    owners : sequence of Owner
        Whose each request is.
    asks : Asks
        What they ask for.
    boot : int
        Instant from which periods are counted, whole microseconds.

    Attributes
    ----------
    priority, tier : (n,) int64
        Priorities as last made, and tiers of the partitions.
    since : (n,) int64
        Instants from which requests grow older, whole microseconds.
    weak : (n,) bool
        Which may not preempt anybody.
    """

    def __init__(self, requests: Requests, site: Site, owners: Sequence[Owner], asks: Asks, boot: int) -> None:
        self._site, self._boot, self._requests = site, boot, requests
        self.shares, self.leaf = shares_of(site, owners)
        self._fixed, self.tier = fixed_factors(requests, site, owners, asks)
        self._use = use_factors(site, owners)
        self.priority: IntArray = np.zeros(len(owners), dtype=np.int64)
        self.since: IntArray = requests.submit[asks["request"]].copy()
        self._factors = self.shares.factors()
        self._calculated = self._last_boundary(0)
        self._began: IntArray = np.full(len(owners), NEVER, dtype=np.int64)
        self._cores = np.zeros(len(owners))
        self._request, self._free = asks["request"], asks["reservation"] < 0
        self.weak = np.zeros(len(owners), dtype=bool)
        self._again: IntArray = np.full(len(requests), -1, dtype=np.int64)  # when each came back
        self._running: dict[int, None] = {}

    def _last_boundary(self, now: int) -> int:
        period = max(self._site.priority.period, 1)
        return self._boot + (now - self._boot) // period * period

    def eligible(self, entry: int, since: int) -> None:
        """An entry can run from an instant on; it grows older from there unless ``ACCRUE_ALWAYS`` is set.

        One that was requeued begins to grow older again: its submit time is that of the requeue. One that asks for a
        reservation grows older from the beginning of that: a real Slurm 22.05 did so.
        """
        request = self._request[entry]
        accrues = self._site.priority.always_accrue and self._again[request] < 0
        self.since[entry] = self._requests.submit[request] if accrues else since

    def requeued(self, request: int, now: int) -> None:
        """A request counts as submitted now."""
        self._again[request] = now

    def began(self, request: int, cores: int, now: int) -> None:
        """A request holds cores from *now* on."""
        self._began[request], self._cores[request] = now, cores * self._use[request]
        self._running[request] = None

    def ended(self, request: int, now: int) -> None:
        """A request gave its cores back; what it used counts."""
        self.calculate(now)
        self._charge(np.array([request]), now)
        del self._running[request]

    def _charge(self, rows: IntArray, until: int) -> None:
        """Count use since the last calculation, in the weight of usage at that time."""
        base = self._calculated
        begin = np.maximum(self._began[rows], base)
        self.shares.charge(self.leaf[rows], self._cores[rows], (begin - base) / SECOND, (until - base) / SECOND)

    def calculate(self, now: int) -> int | None:
        """Bring usage and factors up to the last period; the instant that they are of, None where nothing is due."""
        boundary = self._last_boundary(now)
        if boundary <= self._calculated:
            return None
        self._charge(np.fromiter(self._running, dtype=np.int64, count=len(self._running)), boundary)
        self.shares.decay((boundary - self._calculated) / SECOND)
        self._calculated = boundary
        self._factors = self.shares.factors()
        return boundary

    def next_calculation(self) -> int:
        """When priorities are made anew next."""
        return self._calculated + max(self._site.priority.period, 1)

    def factors(self, rows: IntArray, now: int) -> Factors:
        """Factors of requests as they are at an instant."""
        fixed = self._fixed
        age = age_factor(np.maximum(now - self.since[rows], 0), self._site.priority)
        share = self._factors[self.leaf[rows]]
        return Factors(age, share, fixed.size[rows], fixed.partition[rows], fixed.qos[rows], fixed.nice[rows])

    def rank(self, rows: IntArray, now: int) -> None:
        """Make the priorities of some requests anew."""
        if self._site.priority.kind == "multifactor":
            self.priority[rows] = priorities(self.factors(rows, now), self._site.priority)

    def order(self, rows: IntArray) -> IntArray:
        """Entries that may preempt first, then those with a reservation, then by tier, priority, and submission.

        priority_multifactor.html, "Job Prioritization": "jobs that can preempt, jobs with an advanced reservation,
        partition PriorityTier, job priority, job submit time, job ID".
        """
        keys = (*self._coming(rows), -self.priority[rows], -self.tier[rows], self._free[rows], self.weak[rows])
        ordered: IntArray = rows[np.lexsort(keys)]
        return ordered

    def _coming(self, rows: IntArray) -> tuple[IntArray, ...]:
        """In which order requests came, or came back: by time, then by number."""
        request = self._request[rows]
        again = self._again[request]
        return request, np.where(again >= 0, again, self._requests.submit[request])

    def _class(self, rows: IntArray | int) -> IntArray:
        found: IntArray = 2 * self.weak[rows] + self._free[rows]
        return found

    def place(self, rows: IntArray, entry: int) -> int:
        """Where an entry belongs among others that are in order."""
        free, tier, priority = self._class(rows), self.tier[rows], self.priority[rows]
        mine, own_tier, own = self._class(entry), self.tier[entry], self.priority[entry]
        earlier = (tier > own_tier) | ((tier == own_tier) & (priority > own))
        equal = (tier == own_tier) & (priority == own)
        if equal.any():
            here = np.append(rows[equal], entry)
            order = np.lexsort(self._coming(here))
            earlier[equal] = np.argsort(order)[:-1] < np.argsort(order)[-1]
        return int(np.count_nonzero((free < mine) | ((free == mine) & earlier)))
