"""Limits on what may run at once: of users, accounts, QOS and job arrays, as counters that requests belong to.

Sources: slurm.schedmd.com/resource_limits.html and sacctmgr(1): ``MaxJobs``, ``GrpJobs``, ``GrpTRES=cpu=``,
``MaxJobsPU``, ``MaxTRESPU=cpu=`` and so on; sbatch(1), ``--array=…%limit``. A request that a limit holds back does not
block others (slurm.conf(5), ``assoc_limit_stop``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gridsim.model.site import Association, Qos, Site
from gridsim.model.time import IntArray

__all__ = ["Limits", "Owner", "Submissions", "limits_of"]

NO_LIMIT = 1 << 40


class Owner(NamedTuple):
    """Whose a request is: account, user, QOS, QOS of its partition; array and its throttle, -1 for none."""

    account: str
    user: str
    qos: str
    partition_qos: str = ""
    array: int = -1
    array_limit: int = -1


class Limits(NamedTuple):
    """Counters, and which of them each request counts for.

    Attributes
    ----------
    jobs, cores : (c,) int64
        Most at once.
    jobs_used, cores_used : (c,) int64
        How many now.
    first, counter : (n + 1,), (m,) int64
        Counters of request *i* are ``counter[first[i]:first[i + 1]]``.
    """

    jobs: IntArray
    cores: IntArray
    jobs_used: IntArray
    cores_used: IntArray
    first: IntArray
    counter: IntArray


def limits_of(site: Site, owners: Iterable[Owner]) -> Limits:
    """Counters of a site for requests of these owners."""
    counters = _Counters(site)
    kinds: dict[Owner, list[int]] = {}
    counter: list[int] = []
    first = [0]
    for owner in owners:
        if owner not in kinds:
            kinds[owner] = [counters.number(*each) for each in counters.of(owner)]
        counter += kinds[owner]
        first.append(len(counter))
    jobs, cores = np.array(counters.jobs, dtype=np.int64), np.array(counters.cores, dtype=np.int64)
    zeros = np.zeros(len(jobs), dtype=np.int64)
    return Limits(jobs, cores, zeros, zeros.copy(), np.array(first), np.array(counter, dtype=np.int64))


class _Counters:
    def __init__(self, site: Site) -> None:
        self.enforce = site.enforce
        self.accounts = {each.account: each for each in site.associations if not each.user}
        self.users = {(each.account, each.user): each for each in site.associations if each.user}
        self.qos = {each.name: each for each in site.qos}
        self.numbers: dict[Hashable, int] = {}
        self.jobs: list[int] = []
        self.cores: list[int] = []

    def number(self, key: Hashable, jobs: int | None, cores: int | None) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.jobs)
            self.jobs.append(NO_LIMIT if jobs is None else jobs)
            self.cores.append(NO_LIMIT if cores is None else cores)
        return self.numbers[key]

    def of(self, owner: Owner) -> Iterator[tuple[Hashable, int | None, int | None]]:
        """Counters with a limit: what they count, most jobs, most cores."""
        if owner.array >= 0 and owner.array_limit > 0:
            yield ("array", owner.array), owner.array_limit, None
        if not self.enforce:
            return
        for each in (*self._of_associations(owner), *self._of_qos(owner)):
            if each[1] is not None or each[2] is not None:
                yield each

    def _of_associations(self, owner: Owner) -> Iterator[tuple[Hashable, int | None, int | None]]:
        user = self.users.get((owner.account, owner.user))
        chain = list(self._above(owner.account))
        if user is not None:
            yield ("user", owner.account, owner.user), self._inherited([user, *chain]), user.group_cores
        for account in chain:
            yield ("account", account.account), account.group_jobs, account.group_cores

    def _inherited(self, chain: list[Association]) -> int | None:
        """``MaxJobs`` of a user: its own, or that of the nearest account above that has one (resource_limits.html)."""
        return next((each.most_jobs for each in chain if each.most_jobs is not None), None)

    def _above(self, account: str) -> Iterator[Association]:
        while account in self.accounts:
            yield self.accounts[account]
            account = self.accounts[account].parent if account != "root" else ""

    def _of_qos(self, owner: Owner) -> Iterator[tuple[Hashable, int | None, int | None]]:
        for name in dict.fromkeys((owner.partition_qos, owner.qos)):
            qos = self.qos.get(name)
            if qos is not None:
                yield ("qos", name), qos.group_jobs, qos.group_cores
                yield ("qos user", name, owner.user), qos.user_jobs, qos.user_cores
                yield ("qos account", name, owner.account), qos.account_jobs, qos.account_cores


class Submissions:
    """Which requests are refused when they come: those above limits of one job, or of how many may be submitted.

    Sources: resource_limits.html; a job above ``MaxWall``, ``MaxTRES`` or ``MaxTime`` would wait for ever.
    """

    def __init__(self, site: Site) -> None:
        self._counters = _Counters(site)
        self._held: dict[Hashable, int] = {}

    def take(self, owner: Owner, cores: int, nodes: int, limit: int) -> bool:
        """Count a request that comes; False where it may not."""
        counters = self._counters
        if not counters.enforce:
            return True
        user = counters.users.get((owner.account, owner.user))
        own: list[Association | Qos] = [*([user] if user else ()), *counters._above(owner.account)]
        own += [counters.qos[name] for name in (owner.partition_qos, owner.qos) if name in counters.qos]
        for each in own:
            if limit > each.longest or (each.most_cores is not None and cores > each.most_cores):
                return False
            if isinstance(each, Association) and each.most_nodes is not None and nodes > each.most_nodes:
                return False
        keys = list(self._keys(owner))
        if any(self._held.get(key, 0) >= most for key, most in keys):
            return False
        for key, _ in keys:
            self._held[key] = self._held.get(key, 0) + 1
        return True

    def give(self, owner: Owner) -> None:
        """A request that was taken has ended, or was cancelled."""
        if self._counters.enforce:
            for key, _ in self._keys(owner):
                self._held[key] -= 1

    def _keys(self, owner: Owner) -> Iterator[tuple[Hashable, int]]:
        counters = self._counters
        user = counters.users.get((owner.account, owner.user))
        chain = list(counters._above(owner.account))
        if user is not None:
            most = next((each.most_submitted for each in (user, *chain) if each.most_submitted is not None), None)
            if most is not None:
                yield ("user", owner.account, owner.user), most
        for account in chain:
            if account.group_submitted is not None:
                yield ("account", account.account), account.group_submitted
        for name in dict.fromkeys((owner.partition_qos, owner.qos)):
            qos = counters.qos.get(name)
            if qos is not None and qos.group_submitted is not None:
                yield ("qos", name), qos.group_submitted
            if qos is not None and qos.user_submitted is not None:
                yield ("qos user", name, owner.user), qos.user_submitted
