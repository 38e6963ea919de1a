"""Limits on running jobs of users, accounts, QOS and job arrays, as counters to which requests belong.

Sources: slurm.schedmd.com/resource_limits.html and sacctmgr(1): ``MaxJobs``, ``GrpJobs``, ``GrpTRES=cpu=``,
``MaxJobsPU``, ``MaxTRESPU=cpu=`` and so on; sbatch(1), ``--array=…%limit``. A request that a limit holds back does not
block others (slurm.conf(5), ``assoc_limit_stop``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.site import Association, Qos, Site, TresLimits
from gridsim.model.site.parameters import LICENCE, Amounts, licence, licences_requested
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.nodes import Demands
from gridsim.policy.slurm.queue_entries import Owner
from gridsim.policy.slurm.reasons import WORDS, codes_of, tres_word
from gridsim.policy.slurm.tres import (
    AT_ONCE,
    RUNNING,
    UNLIMITED,
    USED,
    USED_SAFELY,
    Tracked,
    TresColumns,
    licences_of,
    tracked_of,
    with_billed,
)
from gridsim.record import Refusal

NO_LIMIT = 1 << 40

Key = tuple[Any, ...]
"""Kind and owner of a counter: ``("qos user", "low", "ann")``."""


def whose(key: Key) -> str:
    """Return the owner of a counter as text; empty if the name of the limit implies it.

    Examples
    --------
    >>> whose(("qos user", "high", "ann")), whose(("account", "bio")), whose(("licences",))
    ('QOS high', 'account bio', '')
    """
    kind, *names = key
    if kind == "user":
        return f"user {names[1]} in account {names[0]}"
    return f"{'QOS' if kind.startswith('qos') else kind} {names[0]}" if names else ""


class Counter(NamedTuple):
    """A counter of a site and its limits; None or empty for no limit.

    Attributes
    ----------
    key : tuple
        Kind and owner.
    jobs, cores : int or None
        Maximum at once.
    once, used, running : tuple of (str, int)
        Limits of resources held at once; of usage, unit-minutes; of held resources times remaining time, unit-minutes.
    decays : bool
        Whether usage decays.
    """

    key: Key
    jobs: int | None
    cores: int | None
    once: Amounts = ()
    used: Amounts = ()
    running: Amounts = ()
    decays: bool = True


class Limits(NamedTuple):
    """Counters, and the counters of each request.

    Attributes
    ----------
    jobs, cores : (c,) int64
        Maximum at once.
    jobs_used, cores_used : (c,) int64
        Present numbers.
    first, counter : (n + 1,), (m,) int64
        Counters of request *i* are ``counter[first[i]:first[i + 1]]``.
    jobs_code, cores_code : (c,) int64
        Wait reason of a request that the limit holds back (`gridsim.policy.slurm.reasons.WORDS`).
    tres : TresColumns
        Limits of other resources, and over time.
    """

    jobs: IntArray
    cores: IntArray
    jobs_used: IntArray
    cores_used: IntArray
    first: IntArray
    counter: IntArray
    jobs_code: IntArray
    cores_code: IntArray
    tres: TresColumns


def limits_of(
    site: Site, owners: Sequence[Owner], requests: Requests, demands: Demands
) -> tuple[Limits, list[Counter], list[str]]:
    """Return the counters for entries of these owners, as columns and as objects, and the names of the resources."""
    licences = _licences(site, requests)
    asking = _asking(licences, requests)[demands["request"]].tolist()
    counters = _Counters(site)
    kinds: dict[Owner, list[int]] = {}
    counter: list[int] = []
    first = [0]
    for owner, asks_for_licences in zip(owners, asking, strict=True):
        if owner not in kinds:
            kinds[owner] = [counters.number(each) for each in counters.of(owner)]
        counter += kinds[owner]
        if asks_for_licences:
            counter.append(counters.number(Counter(("licences",), None, None, licences)))
        first.append(len(counter))
    found = counters.found
    jobs, cores = (
        np.array([NO_LIMIT if most is None else most for most in column], dtype=np.int64)
        for column in ([each.jobs for each in found], [each.cores for each in found])
    )
    zeros = np.zeros(len(jobs), dtype=np.int64)
    codes: IntArray = np.array([codes_of(each.key[0]) for each in found], dtype=np.int64).reshape(-1, 2)
    belong = (np.array(first), np.array(counter, dtype=np.int64))
    names = with_billed([*tres_names(site), *(name for name, _ in licences)], site)
    tres = _tres_columns(found, site, owners, tracked_of(names, requests, site, demands), names, demands)
    jobs_code, cores_code = codes.T.copy()
    return Limits(jobs, cores, zeros, zeros.copy(), *belong, jobs_code, cores_code, tres), found, names


def _licences(site: Site, requests: Requests) -> Amounts:
    """Return the requested licences and their totals, if the site's files define them."""
    asked = dict.fromkeys(name for text in requests.names.get("licenses", ()) for name in licences_requested(text))
    return tuple((LICENCE + name, site.licences[name]) for name in asked if name in site.licences)


def _asking(licences: Amounts, requests: Requests) -> npt.NDArray[np.bool_]:
    """Return which requests need any of these licences."""
    found = np.zeros(len(requests), dtype=np.bool_)
    for name, _ in licences:
        found |= licences_of(requests, licence(name)) > 0
    return found


def _tres_columns(
    counters: Sequence[Counter],
    site: Site,
    owners: Sequence[Owner],
    tracked: Tracked,
    names: Sequence[str],
    demands: Demands,
) -> TresColumns:
    """Return columns of the limits of resources that any counter has."""
    used = USED_SAFELY if site.safe else USED
    columns: dict[tuple[int, str], None] = {}
    for over, kind in ((AT_ONCE, "once"), (used, "used"), (RUNNING, "running")):
        columns |= dict.fromkeys((over, name) for each in counters for name, _ in getattr(each, kind))
    size = (len(counters), len(columns))
    most, codes = np.full(size, UNLIMITED), np.zeros(size, dtype=np.int64)
    place = {column: number for number, column in enumerate(columns)}
    for row, each in enumerate(counters):
        for over, amounts, unit in ((AT_ONCE, each.once, 1), (used, each.used, 60), (RUNNING, each.running, 60)):
            for name, amount in amounts:
                column = place[over, name]
                most[row, column] = amount * unit
                codes[row, column] = WORDS.index(tres_word(each.key[0], name, _TRES_CASE[over]))
    factors = {each.name: each.usage_factor for each in site.qos}
    factor = np.array([factors.get(owner.qos, 1.0) for owner in owners])
    time: IntArray = np.floor(demands["limit"] // MICROSECOND * factor + 1e-9).astype(np.int64)
    resource = np.array([names.index(name) for _, name in columns], dtype=np.int64)
    over_of = np.array([over for over, _ in columns], dtype=np.int64)
    asked = tracked.asked[:, resource]
    timed = np.isin(over_of, (USED_SAFELY, RUNNING))
    asked = np.where(timed, asked * time[:, None], np.where(over_of == USED, asked > 0, asked))
    asked = np.ascontiguousarray(asked)  # another layout would compile the loops again
    held = np.zeros_like(tracked.asked)
    zeros = np.zeros(size, dtype=np.int64)
    return TresColumns(resource, over_of, most, zeros, codes, asked, held, time, np.zeros_like(time), tracked)


_TRES_CASE = {AT_ONCE: 0, USED: 1, USED_SAFELY: 1, RUNNING: 2}


def tres_names(site: Site) -> list[str]:
    """Return the resources with limits at a site, if limits are enforced."""
    owners: list[Association | Qos] = [*site.associations, *site.qos] if site.enforce else []
    return list(dict.fromkeys(name for each in owners for name in each.tres.names()))


class _Counters:
    def __init__(self, site: Site) -> None:
        self.enforce = site.enforce
        self.accounts = {each.account: each for each in site.associations if not each.user}
        self.users = {(each.account, each.user): each for each in site.associations if each.user}
        self.qos = {each.name: each for each in site.qos}
        self.used = site.priority.kind == "multifactor"
        self.numbers: dict[Key, int] = {}
        self.found: list[Counter] = []

    def number(self, counter: Counter) -> int:
        if counter.key not in self.numbers:
            self.numbers[counter.key] = len(self.found)
            self.found.append(counter)
        return self.numbers[counter.key]

    def of(self, owner: Owner) -> Iterator[Counter]:
        """Yield the counters of an owner that have a limit."""
        if owner.array >= 0 and owner.array_limit > 0:
            yield Counter(("array", owner.array), owner.array_limit, None)
        if not self.enforce:
            return
        for each in (*self._of_associations(owner), *self._of_qos(owner)):
            if each.jobs is not None or each.cores is not None or each.once or each.used or each.running:
                yield each

    def _of_associations(self, owner: Owner) -> Iterator[Counter]:
        user = self.users.get((owner.account, owner.user))
        chain = list(self._above(owner.account))
        if user is not None:
            key: Key = ("user", owner.account, owner.user)
            yield Counter(key, self._inherited([user, *chain]), user.group_cores, *self._group(user))
        for account in chain:
            key = ("account", account.account)
            yield Counter(key, account.group_jobs, account.group_cores, *self._group(account))

    def _group(self, owner: Association | Qos) -> tuple[Amounts, Amounts, Amounts]:
        """Return limits of a group; usage limits need multifactor priorities and exclude the root (sacctmgr(1))."""
        tres = owner.tres
        root = isinstance(owner, Association) and owner.account == "root" and not owner.user
        return tres.group, tres.group_minutes if self.used and not root else (), tres.group_run_minutes

    def _inherited(self, chain: list[Association]) -> int | None:
        """Return ``MaxJobs`` of a user: its own, or that of the nearest account above it (resource_limits.html)."""
        return next((each.most_jobs for each in chain if each.most_jobs is not None), None)

    def _above(self, account: str) -> Iterator[Association]:
        while account in self.accounts:
            yield self.accounts[account]
            account = self.accounts[account].parent if account != "root" else ""

    def _of_qos(self, owner: Owner) -> Iterator[Counter]:
        for name in dict.fromkeys((owner.partition_qos, owner.qos)):
            qos = self.qos.get(name)
            if qos is not None:
                yield Counter(("qos", name), qos.group_jobs, qos.group_cores, *self._group(qos), qos.decays)
                yield Counter(("qos user", name, owner.user), qos.user_jobs, qos.user_cores, qos.tres.user)
                of_account: Key = ("qos account", name, owner.account)
                yield Counter(of_account, qos.account_jobs, qos.account_cores, qos.tres.account)


def _whose(each: Association) -> str:
    return f"user {each.user} in account {each.account}" if each.user else f"account {each.account}"


_SUBMISSIONS = {
    "user": ("AssocMaxSubmitJobLimit", "MaxSubmitJobs of user"),
    "account": ("AssocGrpSubmitJobsLimit", "GrpSubmitJobs of account"),
    "qos": ("QOSGrpSubmitJobsLimit", "GrpSubmitJobs of QOS"),
    "qos user": ("QOSMaxSubmitJobPerUserLimit", "MaxSubmitJobsPerUser of user"),
}
"""Wait reasons for limits of submitted jobs, and their names in the site's files."""


AT_ONCE_RULES = {
    "user": ("MaxJobs", "GrpTRES", "user {2} in account {1}"),
    "account": ("GrpJobs", "GrpTRES", "account {1}"),
    "qos": ("GrpJobs", "GrpTRES", "QOS {1}"),
    "qos user": ("MaxJobsPerUser", "MaxTRESPerUser", "QOS {1}"),
    "qos account": ("MaxJobsPerAccount", "MaxTRESPerAccount", "QOS {1}"),
}
"""Names of the limits of running jobs and cores in the site's files, and their owners."""


_EACH = {"cpu": "Cpu", "node": "Node", "gres": "GRES", "billing": "Billing", "license": "License"}


def _unit(name: str) -> str:
    return {"cpu": "cores", "mem": "MiB", "node": "nodes", "billing": "units"}.get(name, name.partition("/")[2])


def _beyond_tres(
    limits: TresLimits, kind: str, whose: str, tres: Mapping[str, int], nodes: int, limit: int
) -> Refusal | None:
    """Return why limits per job reject a demand, None if they do not."""

    def word(name: str, middle: str = "", end: str = "") -> str:
        of = name.partition("/")[0]
        memory = "Memory" if kind == "QOS" else "Mem"
        return f"{kind}Max{_EACH.get(of, memory)}{middle}{end}"

    for name, most in limits.job:
        if tres[name] > most:
            end = "PerJobLimit" if name in ("cpu", "node") else "PerJob"
            return Refusal(word(name, end), tres[name], most, _unit(name), f"MaxTRES {name} of {whose}")
    for name, most in limits.node:
        if tres[name] > most * max(nodes, 1):
            each = tres[name] / max(nodes, 1)
            return Refusal(word(name, "PerNode"), each, most, _unit(name), f"MaxTRESPerNode {name} of {whose}")
    for name, most in limits.job_minutes:
        if tres[name] * (limit // MICROSECOND) > most * 60:
            end = "PerJobLimit" if name == "cpu" else "PerJob"
            asked, unit = tres[name] * limit / MICROSECOND / 60, f"{_unit(name)}-minutes"
            return Refusal(word(name, "Minutes", end), asked, most, unit, f"MaxTRESMins {name} of {whose}")
    for name, least in limits.least:
        if tres[name] < least:
            of = name.partition("/")[0]
            reason = "QOSMinCpuNotSatisfied" if of == "cpu" else f"QOSMin{_EACH.get(of, 'Memory')}"
            return Refusal(reason, tres[name], least, _unit(name), f"MinTRES {name} of {whose}")
    return None


class Submissions:
    """Requests that are rejected at submission: above limits per job, or above limits of submitted jobs.

    Source: resource_limits.html. In Slurm, a job above ``MaxWall``, ``MaxTRES`` or ``MaxTime`` would wait
    indefinitely.
    """

    def __init__(self, site: Site) -> None:
        self._counters, self._safe = _Counters(site), site.safe
        self._held: dict[Key, int] = {}

    def refusal(self, owner: Owner, cores: int, nodes: int, limit: int, tres: Mapping[str, int]) -> Refusal | None:
        """Return why a request is rejected at submission now, None if it is not; changes no counters.

        *limit* in whole microseconds; *tres* is its demand for each resource with limits.
        """
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
            if (why := _beyond_tres(each.tres, kind, whose, tres, nodes, limit)) is not None:
                return why
        for key, most in self._keys(owner):
            if (held := self._held.get(key, 0)) >= most:
                word, rule = _SUBMISSIONS[key[0]]
                return Refusal(word, held + 1, most, "jobs", f"{rule} {key[-1] or 'unknown'}")
        return None

    def never(self, owner: Owner, cores: int, tres: Mapping[str, int], time: int) -> Refusal | None:
        """Return why limits of running jobs never let a request start, even on an empty machine; None if they do.

        *tres* is its demand for each resource, *time* the seconds that count for it.
        """
        for counter in self._counters.of(owner):
            key, most_jobs, most_cores = counter[:3]
            if key[0] not in AT_ONCE_RULES:
                continue
            of_jobs, of_cores, whose = AT_ONCE_RULES[key[0]]
            jobs_word, cores_word = (WORDS[code] for code in codes_of(key[0]))
            if most_jobs is not None and most_jobs < 1:
                return Refusal(jobs_word, 1, most_jobs, "jobs", f"{of_jobs} of {whose.format(*key)}")
            if most_cores is not None and most_cores < cores:
                return Refusal(cores_word, cores, most_cores, "cores", f"{of_cores} of {whose.format(*key)}")
            for name, most in counter.once:
                if tres[name] > most:
                    rule = f"{of_cores} {name} of {whose.format(*key)}"
                    return Refusal(tres_word(key[0], name), tres[name], most, _unit(name), rule)
            for over, rule, amounts in ((1, "GrpTRESMins", counter.used), (2, "GrpTRESRunMins", counter.running)):
                for name, most in amounts:
                    wanted = tres[name] * time / 60 if over == 2 or self._safe else float(tres[name] > 0)
                    if wanted > most:
                        word, what = tres_word(key[0], name, over), f"{rule} {name} of {whose.format(*key)}"
                        return Refusal(word, wanted, most, f"{_unit(name)}-minutes", what)
        return None

    def longest(self, owner: Owner) -> int:
        """Return the longest time that a job may request, whole microseconds; `NEVER` without limits."""
        return min((each.longest for each in self._of(owner)), default=NEVER) if self._counters.enforce else NEVER

    def _of(self, owner: Owner) -> list[Association | Qos]:
        """Return the user's association and those above it, and the QOS of the partition and of the job."""
        counters = self._counters
        user = counters.users.get((owner.account, owner.user))
        own: list[Association | Qos] = [*([user] if user else ()), *counters._above(owner.account)]
        return own + [counters.qos[name] for name in (owner.partition_qos, owner.qos) if name in counters.qos]

    def take(self, owner: Owner) -> None:
        """Count a submitted request."""
        if self._counters.enforce:
            for key, _ in self._keys(owner):
                self._held[key] = self._held.get(key, 0) + 1

    def give(self, owner: Owner) -> None:
        """Uncount a request that has ended or was cancelled."""
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
