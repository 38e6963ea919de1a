"""Detection of endless loops by the rules of a site: repeated preemption, and cycles that start nothing."""

from __future__ import annotations

from collections import Counter

from gridsim.errors import InputError
from gridsim.model.site import Site
from gridsim.model.time import IntArray
from gridsim.policy.slurm.entry_columns import SECOND
from gridsim.policy.slurm.reservations import Reservations, seen_all

ENDLESS = 1000
"""Number of preemptions of one job, without submissions and ends of jobs, that counts as an endless loop."""


class PreemptionCounter:
    """Preemptions of requests since the last submission or end; *number* are their jobs' numbers."""

    def __init__(self, number: IntArray) -> None:
        self._number = number
        self._times: Counter[int] = Counter()

    def clear(self) -> None:
        """Reset the counts after a submission or an end."""
        self._times.clear()

    def preempted(self, request: int, now: int) -> None:
        """Count a preemption.

        Raises
        ------
        InputError
            If the number of preemptions indicates an endless loop.
        """
        self._times[request] += 1
        if self._times[request] <= ENDLESS:
            return
        jobs = sorted(int(self._number[each]) for each, times in self._times.items() if 2 * times > ENDLESS)
        named = ", ".join(str(job) for job in jobs[:5]) + (" and others" if len(jobs) > 5 else "")
        what = f"preempts jobs {named} in an endless loop: {ENDLESS} times by {now / SECOND:.0f} s, without a new event"
        why = "the rules of the site give the freed resources to other jobs than the preempting ones"
        where = "PreemptExemptTime, GraceTime, requeue_delay, bf_min_prio_reserve"
        raise InputError(f"{what}; {why}: look at {where}", field="policy")


class IdleTime:
    """Time since the last change of the queue; *reservations* are those of a *site*."""

    def __init__(self, site: Site, reservations: Reservations) -> None:
        # The order can change until all entries have reached the maximum age.
        self._ages = max(site.priority.oldest, site.scheduling.least_age)
        self._reservations, self._since = reservations, 0

    def broken(self, now: int) -> None:
        """Record a change of the queue, or an early end of a reservation."""
        self._since = now

    def lasts(self, now: int) -> bool:
        """Return whether cycles can find nothing new without running jobs and submissions."""
        return now >= seen_all(self._since, self._reservations) + self._ages
