"""Limits on what may run at once: of users, accounts, QOS and job arrays, as counters that requests belong to.

Sources: slurm.schedmd.com/resource_limits.html and sacctmgr(1): ``MaxJobs``, ``GrpJobs``, ``GrpTRES=cpu=``,
``MaxJobsPU``, ``MaxTRESPU=cpu=`` and so on; sbatch(1), ``--array=…%limit``. A request that a limit holds back does not
block others (slurm.conf(5), ``assoc_limit_stop``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.site import Association, Qos, Site
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy.slurm.reasons import WORDS, codes_of
from gridsim.record import Refusal

__all__ = ["Limits", "Owner", "Submissions", "limits_of"]

NO_LIMIT = 1 << 40

Key = tuple[Any, ...]
"""What a counter counts, and of whom: ``("qos user", "low", "ann")``."""


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
    jobs_code, cores_code : (c,) int64
        What is said of a request that they hold back (`gridsim.policy.slurm.reasons.WORDS`).
    """

    jobs: IntArray
    cores: IntArray
    jobs_used: IntArray
    cores_used: IntArray
    first: IntArray
    counter: IntArray
    jobs_code: IntArray
    cores_code: IntArray


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
    codes: IntArray = np.array([codes_of(key[0]) for key in counters.numbers], dtype=np.int64).reshape(-1, 2)
    belong = (np.array(first), np.array(counter, dtype=np.int64))
    return Limits(jobs, cores, zeros, zeros.copy(), *belong, *codes.T.copy())


class _Counters:
    def __init__(self, site: Site) -> None:
        self.enforce = site.enforce
        self.accounts = {each.account: each for each in site.associations if not each.user}
        self.users = {(each.account, each.user): each for each in site.associations if each.user}
        self.qos = {each.name: each for each in site.qos}
        self.numbers: dict[Key, int] = {}
        self.jobs: list[int] = []
        self.cores: list[int] = []

    def number(self, key: Key, jobs: int | None, cores: int | None) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.jobs)
            self.jobs.append(NO_LIMIT if jobs is None else jobs)
            self.cores.append(NO_LIMIT if cores is None else cores)
        return self.numbers[key]

    def of(self, owner: Owner) -> Iterator[tuple[Key, int | None, int | None]]:
        """Counters with a limit: what they count, most jobs, most cores."""
        if owner.array >= 0 and owner.array_limit > 0:
            yield ("array", owner.array), owner.array_limit, None
        if not self.enforce:
            return
        for each in (*self._of_associations(owner), *self._of_qos(owner)):
            if each[1] is not None or each[2] is not None:
                yield each

    def _of_associations(self, owner: Owner) -> Iterator[tuple[Key, int | None, int | None]]:
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

    def _of_qos(self, owner: Owner) -> Iterator[tuple[Key, int | None, int | None]]:
        for name in dict.fromkeys((owner.partition_qos, owner.qos)):
            qos = self.qos.get(name)
            if qos is not None:
                yield ("qos", name), qos.group_jobs, qos.group_cores
                yield ("qos user", name, owner.user), qos.user_jobs, qos.user_cores
                yield ("qos account", name, owner.account), qos.account_jobs, qos.account_cores


def _whose(each: Association) -> str:
    return f"user {each.user} in account {each.account}" if each.user else f"account {each.account}"


_SUBMISSIONS = {
    "user": ("AssocMaxSubmitJobLimit", "MaxSubmitJobs of user"),
    "account": ("AssocGrpSubmitJobsLimit", "GrpSubmitJobs of account"),
    "qos": ("QOSGrpSubmitJobsLimit", "GrpSubmitJobs of QOS"),
    "qos user": ("QOSMaxSubmitJobPerUserLimit", "MaxSubmitJobsPerUser of user"),
}
"""Words for limits on how many jobs are submitted, and what they are called in the site's files."""


_AT_ONCE = {
    "user": ("MaxJobs", "GrpTRES", "user {2} in account {1}"),
    "account": ("GrpJobs", "GrpTRES", "account {1}"),
    "qos": ("GrpJobs", "GrpTRES", "QOS {1}"),
    "qos user": ("MaxJobsPerUser", "MaxTRESPerUser", "QOS {1}"),
    "qos account": ("MaxJobsPerAccount", "MaxTRESPerAccount", "QOS {1}"),
}
"""Limits on how many jobs and cores run at once, as the site's files call them, and whose they are."""


class Submissions:
    """Which requests are refused when they come: those above limits of one job, or of how many may be submitted.

    Sources: resource_limits.html; a job above ``MaxWall``, ``MaxTRES`` or ``MaxTime`` would wait for ever.
    """

    def __init__(self, site: Site) -> None:
        self._counters = _Counters(site)
        self._held: dict[Key, int] = {}

    def refusal(self, owner: Owner, cores: int, nodes: int, limit: int) -> Refusal | None:
        """Why a request may not come now, None where it may; a question. *limit* in whole microseconds."""
        if not self._counters.enforce:
            return None
        for each in self._of(owner):
            kind, whose = ("Assoc", _whose(each)) if isinstance(each, Association) else ("QOS", f"QOS {each.name}")
            if limit > each.longest:
                word = f"{kind}MaxWallDurationPerJobLimit"
                return Refusal(word, limit / MICROSECOND, each.longest / MICROSECOND, "s", f"MaxWall of {whose}")
            if each.most_cores is not None and cores > each.most_cores:
                word = f"{kind}MaxCpuPerJobLimit"
                return Refusal(word, cores, each.most_cores, "cores", f"MaxTRES of {whose}")
            if isinstance(each, Association) and each.most_nodes is not None and nodes > each.most_nodes:
                return Refusal("AssocMaxNodePerJobLimit", nodes, each.most_nodes, "nodes", f"MaxNodes of {whose}")
        for key, most in self._keys(owner):
            if (held := self._held.get(key, 0)) >= most:
                word, rule = _SUBMISSIONS[key[0]]
                return Refusal(word, held + 1, most, "jobs", f"{rule} {key[-1] or 'of everybody'}")
        return None

    def never(self, owner: Owner, cores: int) -> Refusal | None:
        """Why limits on what runs at once would never let a request start, however empty; None where they would."""
        for key, most_jobs, most_cores in self._counters.of(owner):
            if key[0] not in _AT_ONCE:
                continue
            of_jobs, of_cores, whose = _AT_ONCE[key[0]]
            jobs_word, cores_word = (WORDS[code] for code in codes_of(key[0]))
            if most_jobs is not None and most_jobs < 1:
                return Refusal(jobs_word, 1, most_jobs, "jobs", f"{of_jobs} of {whose.format(*key)}")
            if most_cores is not None and most_cores < cores:
                return Refusal(cores_word, cores, most_cores, "cores", f"{of_cores} of {whose.format(*key)}")
        return None

    def longest(self, owner: Owner) -> int:
        """Longest time that a job may ask for by these limits, whole microseconds; `NEVER` for no limit."""
        return min((each.longest for each in self._of(owner)), default=NEVER) if self._counters.enforce else NEVER

    def _of(self, owner: Owner) -> list[Association | Qos]:
        """The user's association and those above it, and the QOS of the partition and of the job."""
        counters = self._counters
        user = counters.users.get((owner.account, owner.user))
        own: list[Association | Qos] = [*([user] if user else ()), *counters._above(owner.account)]
        return own + [counters.qos[name] for name in (owner.partition_qos, owner.qos) if name in counters.qos]

    def take(self, owner: Owner) -> None:
        """Count a request that has come."""
        if self._counters.enforce:
            for key, _ in self._keys(owner):
                self._held[key] = self._held.get(key, 0) + 1

    def give(self, owner: Owner) -> None:
        """A request that was taken has ended, or was cancelled."""
        if self._counters.enforce:
            for key, _ in self._keys(owner):
                self._held[key] -= 1

    def _keys(self, owner: Owner) -> Iterator[tuple[Key, int]]:
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
