"""Limits: on what may run at once, on what may be submitted, and on one job.

Sources: resource_limits.html, sacctmgr(1), sbatch(1) (``--array=…%limit``). All of them hold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gridsim.model.site import Association, Qos, Site
from gridsim.testing.slurm.entries import Entry

__all__ = ["may_come", "may_run"]

Limit = tuple[Callable[[Entry], bool], int | None, int | None]
"""Whom it counts, most jobs, most cores."""


def _associations(entry: Entry, site: Site) -> tuple[Association | None, list[Association]]:
    """The association of its user, and those of its account and of all above, up to the root."""
    mine = [
        each for each in site.associations if each.user and (each.account, each.user) == (entry.account, entry.user)
    ]
    accounts = {each.account: each for each in site.associations if not each.user}
    above, account = [], entry.account
    while account in accounts:
        above.append(accounts[account])
        account = accounts[account].parent if account != "root" else ""
    return (mine[-1] if mine else None), above


def _levels(entry: Entry, site: Site) -> list[Qos]:
    """The QOS of its partition, and its own."""
    known = {each.name: each for each in site.qos}
    return [known[name] for name in dict.fromkeys((entry.partition.qos, entry.qos)) if name in known]


def _below(account: str, site: Site) -> Callable[[Entry], bool]:
    return lambda other: any(each.account == account for each in _associations(other, site)[1])


def _of_qos(name: str) -> Callable[[Entry], bool]:
    return lambda other: name in (other.partition.qos, other.qos)


def _inherited(chain: Iterable[int | None]) -> int | None:
    """The nearest one that is set."""
    return next((most for most in chain if most is not None), None)


def _at_once(entry: Entry, site: Site) -> list[Limit]:
    """Limits on jobs and cores that run at once."""
    user, above = _associations(entry, site)
    found: list[Limit] = []
    if user is not None:
        most = _inherited(each.most_jobs for each in (user, *above))
        found.append((lambda other: _same_user(entry, other), most, user.group_cores))
    found += [(_below(each.account, site), each.group_jobs, each.group_cores) for each in above]
    for qos in _levels(entry, site):
        counts = _of_qos(qos.name)
        found.append((counts, qos.group_jobs, qos.group_cores))
        found.append((_both(counts, lambda other: other.user == entry.user), qos.user_jobs, qos.user_cores))
        found.append((_both(counts, lambda other: other.account == entry.account), qos.account_jobs, qos.account_cores))
    return found


def _same_user(one: Entry, other: Entry) -> bool:
    return (one.account, one.user) == (other.account, other.user)


def _both(one: Callable[[Entry], bool], other: Callable[[Entry], bool]) -> Callable[[Entry], bool]:
    return lambda entry: one(entry) and other(entry)


def may_run(entry: Entry, site: Site, running: Iterable[tuple[Entry, int]]) -> bool:
    """Whether no limit holds an entry back beside those that run, with their cores."""
    others = list(running)
    limits = _at_once(entry, site) if site.enforce else []
    array, throttle = (entry.job.numbers.get(name, -1) for name in ("array", "array_limit"))
    if array >= 0 and throttle > 0:
        limits.append((lambda other: other.job.numbers["array"] == array, throttle, None))
    for counts, most_jobs, most_cores in limits:
        cores = [held for other, held in others if counts(other)]
        if most_jobs is not None and len(cores) + 1 > most_jobs:
            return False
        if most_cores is not None and sum(cores) + entry.cores > most_cores:
            return False
    return True


def may_come(entry: Entry, site: Site, submitted: Iterable[Entry]) -> bool:
    """Whether a job may be submitted beside those that wait and run: limits of one job, and ``MaxSubmitJobs``."""
    if not site.enforce:
        return True
    user, above = _associations(entry, site)
    for each in ([user] if user else []) + above:
        if each.most_cores is not None and entry.cores > each.most_cores:
            return False
        if each.most_nodes is not None and entry.nodes > each.most_nodes:
            return False
        if entry.limit > each.longest:
            return False
    for qos in _levels(entry, site):
        if entry.limit > qos.longest or (qos.most_cores is not None and entry.cores > qos.most_cores):
            return False
    others = list(submitted)
    return all(most is None or sum(map(counts, others)) < most for counts, most in _submitted(entry, site))


def _submitted(entry: Entry, site: Site) -> list[tuple[Callable[[Entry], bool], int | None]]:
    user, above = _associations(entry, site)
    found: list[tuple[Callable[[Entry], bool], int | None]] = []
    if user is not None:
        most = _inherited(each.most_submitted for each in (user, *above))
        found.append((lambda other: _same_user(entry, other), most))
    found += [(_below(each.account, site), each.group_submitted) for each in above]
    for qos in _levels(entry, site):
        counts = _of_qos(qos.name)
        found.append((counts, qos.group_submitted))
        found.append((_both(counts, lambda other: other.user == entry.user), qos.user_submitted))
    return found
