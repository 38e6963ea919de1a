"""Limits on running jobs, on submitted jobs, and on single jobs.

Sources: resource_limits.html, sacctmgr(1), sbatch(1) (``--array=…%limit``). All limits apply together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from gridsim.model.site import Association, Qos, Site, TresLimits
from gridsim.model.site.parameters import licences_requested
from tests.oracles.slurm.entries import Entry
from tests.oracles.slurm.nodes import Held
from tests.oracles.slurm.tres import Used, asked, held_of, seconds

__all__ = ["licences_free", "may_come", "may_run", "uses_will_be_forgotten"]

SECOND = 1_000_000


class Limit(NamedTuple):
    """A limit: counted entries; most jobs and cores; limits of a group of resources; earlier use of its users, s; and
    whether that use decays."""

    counts: Callable[[Entry], bool]
    jobs: int | None
    cores: int | None
    tres: TresLimits = TresLimits()
    brought: float = 0.0
    forgotten: bool = True


def _associations(entry: Entry, site: Site) -> tuple[Association | None, list[Association]]:
    """Return the associations of the user, of the account, and of all accounts above it up to the root."""
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
    """Return the QOS of the partition and the QOS of the entry."""
    known = {each.name: each for each in site.qos}
    return [known[name] for name in dict.fromkeys((entry.partition.qos, entry.qos)) if name in known]


def _below(account: str, site: Site) -> Callable[[Entry], bool]:
    return lambda other: any(each.account == account for each in _associations(other, site)[1])


def _of_qos(name: str) -> Callable[[Entry], bool]:
    return lambda other: name in (other.partition.qos, other.qos)


def _inherited(chain: Iterable[int | None]) -> int | None:
    """Return the nearest value that is set."""
    return next((most for most in chain if most is not None), None)


def _at_once(entry: Entry, site: Site) -> list[Limit]:
    """Yield limits on jobs and cores that run at the same time."""
    user, above = _associations(entry, site)
    found: list[Limit] = []
    if user is not None:
        most = _inherited(each.most_jobs for each in (user, *above))
        found.append(Limit(lambda other: _same_user(entry, other), most, user.group_cores, user.tres, user.usage))
    for each in above:
        tres = replace(each.tres, group_minutes=()) if each.account == "root" else each.tres  # "not enforced"
        counts = _below(each.account, site)
        found.append(Limit(counts, each.group_jobs, each.group_cores, tres, _brought(each.account, site)))
    for qos in _levels(entry, site):
        counts = _of_qos(qos.name)
        found.append(Limit(counts, qos.group_jobs, qos.group_cores, qos.tres, forgotten=qos.decays))
        of_user, of_account = TresLimits(group=qos.tres.user), TresLimits(group=qos.tres.account)
        mine = _both(counts, lambda other: other.user == entry.user)
        found.append(Limit(mine, qos.user_jobs, qos.user_cores, of_user))
        ours = _both(counts, lambda other: other.account == entry.account)
        found.append(Limit(ours, qos.account_jobs, qos.account_cores, of_account))
    return found


def _brought(account: str, site: Site) -> float:
    """Return the earlier use of users of an account and of all accounts below it."""
    own = [each.account for each in site.associations if not each.user and each.parent == account != each.account]
    return sum(each.usage for each in site.associations if each.user and each.account == account) + sum(
        _brought(each, site) for each in own
    )


def _same_user(one: Entry, other: Entry) -> bool:
    return (one.account, one.user) == (other.account, other.user)


def _both(one: Callable[[Entry], bool], other: Callable[[Entry], bool]) -> Callable[[Entry], bool]:
    return lambda entry: one(entry) and other(entry)


def may_run(entry: Entry, site: Site, running: Iterable[Held], used: Used | None = None) -> bool:
    """Return whether all limits let an entry start, given the running entries and past use."""
    others = list(running)
    limits = _at_once(entry, site) if site.enforce else []
    array, throttle = (entry.job.numbers.get(name, -1) for name in ("array", "array_limit"))
    if array >= 0 and throttle > 0:
        limits.append(Limit(lambda other: other.job.numbers["array"] == array, throttle, None))
    for limit in limits:
        inside = [held for held in others if limit.counts(held.entry)]
        cores = [sum(held.pieces.values()) for held in inside]
        if limit.jobs is not None and len(cores) + 1 > limit.jobs:
            return False
        if limit.cores is not None and sum(cores) + entry.cores > limit.cores:
            return False
        if not _tres_last(entry, site, inside, limit, used):
            return False
    return True


def licences_free(entry: Entry, site: Site, running: Iterable[Held]) -> bool:
    """Return whether the requested licences exist and are free (licenses.html)."""
    held = [other.entry for other in running]
    wanted = licences_requested(entry.job.words.get("licenses", ""))
    taken = [licences_requested(other.job.words.get("licenses", "")) for other in held]
    return all(
        count + sum(each.get(name, 0) for each in taken) <= site.licences[name]
        for name, count in wanted.items()
        if name in site.licences
    )


def _tres_last(
    entry: Entry,
    site: Site,
    running: list[Held],
    limit: Limit,
    used: Used | None,
) -> bool:
    """Return whether limits of a group of resources, at once and over time, let an entry start."""
    tres = limit.tres
    for name, most in tres.group:
        if sum(held_of(held, name, site) for held in running) + asked(entry, name, site) > most:
            return False
    own = seconds(entry.limit, entry, site)
    for name, most in tres.group_run_minutes:
        left = sum(held_of(held, name, site) * used.left(held) for held in running) if used else 0
        if left + asked(entry, name, site) * own > most * 60:
            return False
    for name, most in tres.group_minutes if site.priority.kind == "multifactor" else ():
        spent = used.of(name, limit.counts, limit.brought, forgotten=limit.forgotten) if used else 0
        if site.safe:
            spent += sum(held_of(held, name, site) * used.left(held) for held in running) if used else 0
            spent += asked(entry, name, site) * own
        elif asked(entry, name, site):
            spent += 1
        if spent > most * 60:
            return False
    return True


def uses_will_be_forgotten(site: Site, used: Used, entries: Iterable[Entry]) -> bool:
    """Return whether past use that decays blocks an entry, or could block one."""
    if not site.enforce or not site.priority.half_life or site.priority.kind != "multifactor":
        return False
    for entry in entries:
        for limit in _at_once(entry, site):
            for name, most in limit.tres.group_minutes if limit.forgotten else ():
                least = min(1, most * 60) if site.safe else most * 60
                if used.of(name, limit.counts, limit.brought, forgotten=True) >= least:
                    return True
    return False


def may_come(entry: Entry, site: Site, submitted: Iterable[Entry]) -> bool:
    """Return whether a job may be submitted, given submitted jobs: limits of one job, and ``MaxSubmitJobs``."""
    if not site.enforce:
        return True
    user, above = _associations(entry, site)
    for each in ([user] if user else []) + above:
        if each.most_cores is not None and entry.cores > each.most_cores:
            return False
        if each.most_nodes is not None and entry.nodes > each.most_nodes:
            return False
        if entry.limit > each.longest or _tres_refuses(entry, each.tres, site):
            return False
    for qos in _levels(entry, site):
        if entry.limit > qos.longest or (qos.most_cores is not None and entry.cores > qos.most_cores):
            return False
        if _tres_refuses(entry, qos.tres, site):
            return False
    others = list(submitted)
    return all(most is None or sum(map(counts, others)) < most for counts, most in _submitted(entry, site))


def _tres_refuses(entry: Entry, tres: TresLimits, site: Site) -> bool:
    """Return whether limits of one job reject an entry."""
    minutes = entry.limit // SECOND / 60
    return (
        any(asked(entry, name, site) > most for name, most in tres.job)
        or any(asked(entry, name, site) > most * max(entry.nodes, 1) for name, most in tres.node)
        or any(asked(entry, name, site) * minutes > most for name, most in tres.job_minutes)
        or any(asked(entry, name, site) < least for name, least in tres.least)
    )


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
