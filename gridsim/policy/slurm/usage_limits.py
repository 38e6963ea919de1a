"""Usage limits over time: usage of resources by counter, and the remaining time of running entries.

Sources: sacctmgr(1), ``GrpTRESMins`` ("the total number of TRES minutes that can possibly be used by past, present and
future jobs running from an association and its children"; "the time is decayed using the value of PriorityDecayHalfLife
or reset based on PriorityUsageResetPeriod"), ``GrpTRESRunMins`` ("takes into consideration the time limit of running
jobs"), ``UsageFactor`` and the flag ``NoDecay`` of QOS; slurm.conf(5), ``AccountingStorageEnforce``: with ``safe`` a
job is only started if it can run to its end, else while usage is below the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gridsim.model.site import Association, Site
from gridsim.model.site.parameters import BILLING, CPU
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.slurm.limits import Counter, Limits
from gridsim.policy.slurm.tres import RUNNING, UNLIMITED, USED, USED_SAFELY, columns_of
from gridsim.policy.usage import kept, weighted

Bools = npt.NDArray[np.bool_]

SECOND = 1_000_000
WHOLE = 1e-6
"""Tolerance below a whole unit-second, since usage is a sum of floats."""


class UsageLimits:
    """Usage for limits over time; updated once per ``PriorityCalcPeriod``, and at the end of each job.

    Parameters
    ----------
    site : Site
        Half-life, initial usage.
    counters : sequence of Counter
        Counters of its limits.
    limits : Limits
        The same as columns for scheduling cycles; usage is written into them.
    names : sequence of str
        Resources.
    limit : (e,) int64
        Time limits of entries, whole microseconds.
    factor : sequence of float
        Usage factor of each entry.
    resets : bool
        Whether usage is reset at some time.
    """

    def __init__(
        self,
        site: Site,
        counters: Sequence[Counter],
        limits: Limits,
        names: Sequence[str],
        limit: IntArray,
        factor: Sequence[float],
        *,
        resets: bool = False,
    ) -> None:
        self._limits, self._limit, self._factor = limits, limit, np.array(factor, dtype=np.float64)
        self._half_life, self._resets = site.priority.half_life / SECOND, resets
        over = limits.tres.over
        self._columns = np.flatnonzero(np.isin(over, (USED, USED_SAFELY)))
        self._timed = np.flatnonzero(np.isin(over, (USED_SAFELY, RUNNING)))
        self._decays: Bools = np.array([each.decays for each in counters], dtype=np.bool_)
        self._spent: FloatArray = np.zeros((len(counters), len(self._columns)))
        self._whole: IntArray = np.zeros(self._spent.shape, dtype=np.int64)
        self._begin(site, counters, names)

    def resume(self, before: UsageLimits, new: IntArray, old: IntArray) -> None:
        """Take over the usage of earlier counters, which may have other numbers."""
        to, source = columns_of(self._limits.tres, before._limits.tres, self._columns, before._columns)
        self._spent[np.ix_(new, to)] = before._spent[np.ix_(old, source)]
        self._whole[np.ix_(new, to)] = before._whole[np.ix_(old, source)]

    def __bool__(self) -> bool:
        """Return whether any limit over time exists."""
        return bool(len(self._columns) or len(self._timed))

    def _begin(self, site: Site, counters: Sequence[Counter], resources: Sequence[str]) -> None:
        """Set initial usage of users, which is the billed amount."""
        names = [resources[self._limits.tres.resource[column]] for column in self._columns]
        billed = {BILLING} if any(each.billing for each in site.partitions) else {BILLING, CPU}
        above = {each.account: each.parent for each in site.associations if not each.user}
        for row, counter in enumerate(counters):
            if counter.key[0] in ("user", "account"):
                used = sum(each.usage for each in site.associations if each.user and _counts(each, counter, above))
                self._spent[row] = [used if name in billed else 0.0 for name in names]
        self._write()

    def _write(self) -> None:
        """Write usage into the limits."""
        whole = np.floor(self._spent + WHOLE).astype(np.int64)
        self._limits.tres.used[:, self._columns] += whole - self._whole
        self._whole = whole

    def _members(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the counters of entries, concatenated: index into *rows*, and counter."""
        first, counter = self._limits.first, self._limits.counter
        count = first[rows + 1] - first[rows]
        place = np.repeat(first[rows] - np.cumsum(count) + count, count) + np.arange(count.sum())
        return np.repeat(np.arange(len(rows)), count), counter[place]

    def charge(self, rows: IntArray, begin: FloatArray, end: float) -> None:
        """Charge held resources of entries from *begin* to *end*, s relative to the instant of the usage."""
        if not len(self._columns) or not len(rows):
            return
        tres = self._limits.tres
        amounts = tres.held[rows][:, tres.resource[self._columns]] * self._factor[rows, None]
        forgotten = np.maximum(weighted(begin, end, self._half_life), 0.0)
        plain = np.maximum(end - begin, 0.0)
        place, counter = self._members(rows)
        weight = np.where(self._decays[counter], forgotten[place], plain[place])
        np.add.at(self._spent, counter, amounts[place] * weight[:, None])
        self._write()

    def decay(self, elapsed: float) -> None:
        """Decay usage over this number of seconds."""
        if len(self._columns):
            self._spent[self._decays] *= kept(elapsed, self._half_life)
            self._write()

    def clear(self) -> None:
        """Reset usage, except that of QOS without decay."""
        if len(self._columns):
            self._spent[self._decays] = 0.0
            self._write()

    def wait(self, rows: IntArray, began: IntArray, now: int) -> None:
        """Update the remaining time of running entries."""
        if not len(self._timed) or not len(rows):
            return
        tres = self._limits.tres
        seconds = np.maximum(began + self._limit[rows] - np.maximum(now, began), 0) // SECOND
        left = np.floor(seconds * self._factor[rows] + 1e-9).astype(np.int64)
        change = tres.held[rows][:, tres.resource[self._timed]] * (left - tres.left[rows])[:, None]
        place, counter = self._members(rows)
        np.add.at(tres.used, (counter[:, None], self._timed[None, :]), change[place])
        tres.left[rows] = left

    def forgets(self) -> bool:
        """Return whether usage that holds a request back, or could, will still decay or be reset."""
        if not len(self._columns) or not (self._half_life or self._resets):
            return False
        tres = self._limits.tres
        most = tres.most[:, self._columns]
        least = np.where(tres.over[self._columns] == USED, most, np.minimum(most, 1))
        return bool(((self._whole >= least) & (most < UNLIMITED) & self._decays[:, None]).any())


def _counts(user: Association, counter: Counter, above: Mapping[str, str]) -> bool:
    """Return whether the usage of a user counts for an association."""
    if counter.key[0] == "user":
        return counter.key[1:] == (user.account, user.user)
    account, seen = user.account, set[str]()
    while account not in seen:
        if account == counter.key[1]:
            return True
        seen.add(account)
        account = above.get(account, "")
    return False
