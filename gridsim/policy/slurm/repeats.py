"""What would go on for ever, by the rules of a site: preemption, and passes that start nobody."""

from __future__ import annotations

from collections import Counter

from gridsim.errors import InputError
from gridsim.model.site import Site
from gridsim.model.time import IntArray
from gridsim.policy.slurm.needs import SECOND
from gridsim.policy.slurm.reservations import Reservations, seen_all

ENDLESS = 1000
"""How often one job is preempted, with no job that comes or ends meanwhile, until it is taken to go on so for ever."""


class Repeats:
    """How often requests were preempted since one came or ended; *number* are their jobs' numbers."""

    def __init__(self, number: IntArray) -> None:
        self._number = number
        self._times: Counter[int] = Counter()

    def clear(self) -> None:
        """A request came, or ended."""
        self._times.clear()

    def preempted(self, request: int, now: int) -> None:
        """A request was preempted.

        Raises
        ------
        InputError
            When this would go on for ever.
        """
        self._times[request] += 1
        if self._times[request] <= ENDLESS:
            return
        jobs = sorted(int(self._number[each]) for each, times in self._times.items() if 2 * times > ENDLESS)
        named = ", ".join(str(job) for job in jobs[:5]) + (" and others" if len(jobs) > 5 else "")
        what = f"preempts jobs {named} for ever: {ENDLESS} times by {now / SECOND:.0f} s, while none came or ended"
        why = "what is freed goes to others than those who wait for it, by the rules of the site"
        where = "PreemptExemptTime, GraceTime, requeue_delay, bf_min_prio_reserve"
        raise InputError(f"{what}; {why}: look at {where}", field="policy")


class Stillness:
    """For how long nobody has come into the queue or left it; *reservations* is what is reserved of a *site*."""

    def __init__(self, site: Site, reservations: Reservations) -> None:
        # As long as some grow older and others do not, the order changes.
        self._ages = max(site.priority.oldest, site.scheduling.least_age)
        self._reservations, self._since = reservations, 0

    def broken(self, now: int) -> None:
        """Somebody came, or left, or a reservation is over before its time."""
        self._since = now

    def lasts(self, now: int) -> bool:
        """Whether passes have found all that they can find where nobody runs, and nobody comes any more."""
        return now >= seen_all(self._since, self._reservations) + self._ages
