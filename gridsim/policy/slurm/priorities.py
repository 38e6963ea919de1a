"""Priorities of requests: decayed usage, the resulting factors, and their weighted sums, period by period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from gridsim.model.site import Site
from gridsim.model.site_file import SiteClock
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_columns import SECOND, fixed_factors, shares_of, use_factors
from gridsim.policy.slurm.factors import Factors, age_factor, weighted_of_one, weighted_sum
from gridsim.policy.slurm.nodes import Bytes, Demands
from gridsim.policy.slurm.queue_entries import Owner
from gridsim.policy.slurm.queue_sort import by_levels, in_order, levels_of, place_of, sort_columns_of
from gridsim.policy.slurm.usage_limits import UsageLimits


class Priorities:
    """Priorities of the requests of a run; usage is updated once per ``PriorityCalcPeriod``.

    Parameters
    ----------
    requests : Requests
        The requests.
    site : Site
        Shares, weights, factors.
    owners : sequence of Owner
        Owner of each entry.
    demands : Demands
        Demands of the entries.
    boot : int
        Instant from which periods are counted, whole microseconds.
    classes : ((k, k) uint8, (n,) int64) or None
        Which classes of entries may preempt which (`gridsim.policy.slurm.preemption.Rules.may`), and the class of each
        entry; None without preemption.
    budgets : UsageLimits or None
        Usage limits, notified of usage.
    reset : callable or None
        Returns the last usage reset up to an instant; None without resets.

    Attributes
    ----------
    priority : (n,) int64
        Last computed priorities.
    since : (n,) int64
        Instants from which the age of entries counts, whole microseconds.
    """

    def __init__(
        self,
        requests: Requests,
        site: Site,
        owners: Sequence[Owner],
        demands: Demands,
        boot: int,
        classes: tuple[Bytes, IntArray] | None = None,
        budgets: UsageLimits | None = None,
        reset: Callable[[int], int] | None = None,
    ) -> None:
        self._site, self._boot, self._requests = site, boot, requests
        self._budgets, self._reset = budgets or None, reset
        self.shares, self.leaf = shares_of(site, owners)
        self._fixed, tier = fixed_factors(requests, site, owners, demands)
        fixed = self._fixed
        self._of_one = [each.data for each in (fixed.size, fixed.partition, fixed.qos, fixed.nice, fixed.tres)]
        self._use = use_factors(site, owners)
        self.since: IntArray = requests.submit[demands["request"]].copy()
        self._factors = self.shares.factors()
        self._used = self.shares.used.copy()  # usage of these factors
        self._calculated = self._last_boundary(0)
        self._began: IntArray = np.full(len(owners), NEVER, dtype=np.int64)
        self._cores = np.zeros(len(owners))
        self._request, free = demands["request"], (demands["reservation"] < 0).astype(np.int64)
        self._submitted = requests.submit.astype(np.int64)
        self._again = np.zeros(len(requests), dtype=bool)
        self._running: dict[int, None] = {}
        may, kind = classes or (np.zeros((1, 1), dtype=np.uint8), np.zeros(len(owners), dtype=np.int64))
        self._precedence = sort_columns_of(may, kind, self._request, free, tier, self._submitted)
        self.priority: IntArray = self._precedence.own["priority"]
        self._level = levels_of(may, kind)

    def resume(self, before: Priorities, kept: IntArray) -> None:
        """Take over from priorities of fewer requests; *kept* entries have the same numbers."""
        leaf = {pair: row for row, pair in enumerate(self.shares.users)}
        pairs = [(leaf[pair], row) for row, pair in enumerate(before.shares.users) if pair in leaf]
        new, old = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        now = self.shares.used.copy()
        now[new], self.shares.used[new] = before.shares.used[old], before._used[old]
        self._used, self._factors = self.shares.used.copy(), self.shares.factors()
        self.shares.used[:] = now
        for name in ("since", "priority", "_began", "_cores"):
            getattr(self, name)[kept] = getattr(before, name)[kept]
        self._submitted[:], self._again, self._running = before._submitted, before._again, before._running
        self._calculated = before._calculated

    @property
    def used_by(self) -> dict[tuple[str, str], float]:
        """Decayed usage by account and user."""
        return dict(zip(self.shares.users, self.shares.used.tolist(), strict=True))

    def _last_boundary(self, now: int) -> int:
        period = max(self._site.priority.period, 1)
        return self._boot + (now - self._boot) // period * period

    def eligible(self, entry: int, since: int) -> None:
        """Make an entry eligible from an instant on; its age counts from there unless ``ACCRUE_ALWAYS`` is set.

        The age of a requeued entry counts from the requeue, its new submit time. The age of an entry with a
        reservation counts from the begin of the reservation, as in a real Slurm 22.05.
        """
        request = self._request[entry]
        accrues = self._site.priority.always_accrue and not self._again[request]
        self.since[entry] = self._requests.submit[request] if accrues else since

    def submitted(self, request: int, now: int) -> None:
        """Record a submission, which can differ from the log if users react or a job continues in another one."""
        self._submitted[request] = now

    def requeued(self, request: int, now: int) -> None:
        """Set the submit time of a requeued request to now."""
        self._again[request], self._submitted[request] = True, now

    def began(self, request: int, cores: float, now: int) -> None:
        """Record that a request holds cores from *now* on, or is billed for this number."""
        self._began[request], self._cores[request] = now, cores * self._use[request]
        self._running[request] = None

    def ended(self, request: int, now: int) -> None:
        """Record that a request has released its cores, and charge its usage."""
        self.calculate(now)
        if self._budgets is None:
            base = self._calculated
            begin = max(int(self._began[request]), base)
            held = (begin - base) / SECOND, (now - base) / SECOND
            self.shares.charge_one(int(self.leaf[request]), float(self._cores[request]), *held)
        else:
            self._charge(np.array([request]), now)
        del self._running[request]

    def _charge(self, rows: IntArray, until: int) -> None:
        """Charge usage since the last calculation, weighted relative to that time."""
        base = self._calculated
        begin = np.maximum(self._began[rows], base)
        self.shares.charge(self.leaf[rows], self._cores[rows], (begin - base) / SECOND, (until - base) / SECOND)
        if self._budgets is not None:
            self._budgets.charge(rows, (begin - base) / SECOND, (until - base) / SECOND)

    def _start_period(self, boundary: int) -> None:
        """Clear usage after a reset, at the first calculation after it."""
        assert self._reset is not None
        at = self._reset(boundary)
        if at > self._calculated:
            self.shares.used[:] = 0.0
            period = max(self._site.priority.period, 1)
            self._calculated = self._boot - (self._boot - at) // period * period
            if self._budgets is not None:
                self._budgets.clear()

    def calculate(self, now: int) -> int | None:
        """Update usage and factors to the last period; return its instant, None if no calculation is due."""
        if now < self.next_calculation():
            return None
        boundary = self._last_boundary(now)
        running = np.fromiter(self._running, dtype=np.int64, count=len(self._running))
        if self._reset is not None:
            self._start_period(boundary)
        self._charge(running, boundary)
        elapsed = (boundary - self._calculated) / SECOND
        self.shares.decay(elapsed)
        if self._budgets is not None:
            self._budgets.decay(elapsed)
            self._budgets.wait(running, self._began[running], boundary)
        self._calculated = boundary
        self._factors = self.shares.factors()
        self._used = self.shares.used.copy()
        return boundary

    def forgets(self) -> bool:
        """Return whether usage that holds a request back will still decay."""
        return self._budgets is not None and self._budgets.forgets()

    def next_calculation(self) -> int:
        """Return the instant of the next calculation."""
        return self._calculated + max(self._site.priority.period, 1)

    def factors(self, rows: IntArray, now: int) -> Factors:
        """Return the factors of requests at an instant."""
        fixed = self._fixed
        age = age_factor(np.maximum(now - self.since[rows], 0), self._site.priority)
        share = self._factors[self.leaf[rows]]
        of_job = (fixed.size[rows], fixed.partition[rows], fixed.qos[rows], fixed.nice[rows], fixed.tres[rows])
        return Factors(age, share, *of_job)

    def rank(self, rows: IntArray, now: int) -> None:
        """Compute the priorities of some requests."""
        if self._site.priority.kind == "multifactor":
            self.priority[rows] = weighted_sum(self.factors(rows, now), self._site.priority)

    def rank_one(self, entry: int, now: int) -> None:
        """Compute the priority of one entry; called once per submission, so it avoids arrays."""
        if self._site.priority.kind != "multifactor":
            return
        priority = self._site.priority
        age = min(max(now - int(self.since[entry]), 0) / max(priority.oldest, 1), 1.0)
        share = float(self._factors[self.leaf[entry]])
        factors: Any = Factors(age, share, *(column[entry] for column in self._of_one))  # type: ignore[arg-type]
        self.priority[entry] = weighted_of_one(factors, priority)

    def order(self, rows: IntArray) -> IntArray:
        """Return entries in queue order."""
        if self._level is not None:
            return by_levels(rows, self._level, self._precedence)
        ordered: IntArray = in_order(rows, self._precedence)
        return ordered

    @property
    def circular(self) -> bool:
        """True if each cycle must sort the queue again, since an insertion or removal can reorder other entries."""
        return self._level is None

    def place(self, rows: IntArray, entry: int) -> int:
        """Return the place of an entry among others in queue order."""
        return int(place_of(entry, rows, self._precedence))


def last_reset(period: str, at: int, clock: SiteClock) -> int:
    """Return the last usage reset up to *at*; whole microseconds.

    "DAILY: cleared every day at midnight. WEEKLY: every week on Sunday at time 00:00. MONTHLY: on the first day of each
    month", and so on with the quarters and the years.

    Parameters
    ----------
    period : str
        One of these.
    at : int
        Instant, whole microseconds of the simulation.
    clock : SiteClock
        Start of the simulation, and time zone of the site.

    Examples
    --------
    >>> day = 86_400 * SECOND
    >>> [last_reset(each, 40 * day, SiteClock(epoch=0)) // day for each in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")]
    [40, 38, 31, 0]
    """
    assert clock.epoch is not None
    now = datetime.fromtimestamp(at / SECOND + clock.epoch, clock.zone())
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "WEEKLY":
        day -= timedelta(days=(day.weekday() + 1) % 7)
    elif period == "MONTHLY":
        day = day.replace(day=1)
    elif period == "QUARTERLY":
        day = day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
    elif period == "YEARLY":
        day = day.replace(day=1, month=1)
    return round((day.timestamp() - clock.epoch) * SECOND)
