"""Limits that held jobs back in a run and are below the totals of the site: more nodes do not help these jobs.

Sources: slurm.schedmd.com/resource_limits.html and job_reason_codes.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gridsim.model.site import Site
from gridsim.model.site.parameters import CPU, JOBS, licence
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_columns import demands_of
from gridsim.policy.slurm.limits import AT_ONCE_RULES, NO_LIMIT, Counter, Limits, limits_of
from gridsim.policy.slurm.queue_entries import entries_of, owners_of
from gridsim.policy.slurm.reasons import WORDS
from gridsim.policy.slurm.tres import AT_ONCE, UNLIMITED, amount_on
from gridsim.record import Record


@dataclass(frozen=True, slots=True, eq=False)
class BindingLimit:
    """A limit of running jobs that was reached while jobs waited for it.

    Attributes
    ----------
    owner, rule : str
        Such as ``QOS gpu`` and ``GrpTRES``.
    resource : str
        Its TRES name, or `JOBS`.
    most : int
        The limit.
    available : int or None
        Total of the resource at the site; None for jobs.
    each : str
        ``user`` or ``account`` if the limit applies to each of these separately.
    members : (n,) bool
        Jobs that count against it.
    held : (n,) float64
        Time that each job waited for it, s.
    """

    owner: str
    rule: str
    resource: str
    most: int
    available: int | None
    each: str
    members: npt.NDArray[np.bool_]
    held: FloatArray


def binding_limits(site: Site, record: Record) -> list[BindingLimit]:
    """Return the limits that were reached in a run while jobs waited for them, by waiting time, longest first.

    A limit is listed if jobs waited with its reason code, if the jobs that count against it left too little of it for
    one of these jobs at some time, and if it is below the total of the site.
    """
    told = record.reasons
    if told is None:
        return []
    lasted = np.where(told.until_us < NEVER, told.until_us - told.since_us, 0)
    waited: dict[int, FloatArray] = {
        WORDS.index(word): _total(told.job[rows], seconds(lasted[rows]), len(record))
        for number, word in enumerate(told.words)
        if word in WORDS and len(rows := np.flatnonzero(told.word == number))
    }
    requests = Requests(record.workload)
    entries = entries_of(requests, site)
    owners = owners_of(requests, site, entries)
    demands = demands_of(requests, site, owners, entries)
    limits, counters, names = limits_of(site, owners, requests, demands)
    entry = np.repeat(np.arange(len(entries.request)), np.diff(limits.first))
    order = np.argsort(limits.counter, kind="stable")
    edges = np.searchsorted(limits.counter[order], np.arange(len(counters) + 1))
    found: dict[tuple[str, str, str], BindingLimit] = {}
    for row, counter in enumerate(counters):
        if counter.key[0] not in AT_ONCE_RULES:
            continue
        own = entry[order[edges[row] : edges[row + 1]]]
        jobs, first = np.unique(entries.request[own], return_index=True)
        for resource, most, code, asked in _limits_of(row, limits, names, demands["cores"]):
            held = waited.get(code)
            available = None if resource == JOBS else _available(site, resource)
            if held is None or (available is not None and most >= available) or not held[jobs].any():
                continue
            amounts = asked[own[first]]
            least = int(amounts[held[jobs] > 0].min())
            if _peak(record.start_us[jobs], record.end_us[jobs], amounts) + least <= most:
                continue
            binding = _named(counter, resource, most, available, jobs, held)
            key = (binding.owner, binding.rule, resource)
            found[key] = _joined(found[key], binding) if key in found else binding
    return sorted(found.values(), key=lambda it: (-float(it.held.sum()), it.owner, it.rule, it.resource))


def _total(job: IntArray, amounts: FloatArray, jobs: int) -> FloatArray:
    found: FloatArray = np.zeros(jobs)
    np.add.at(found, job, amounts)
    return found


def _limits_of(row: int, limits: Limits, names: list[str], cores: IntArray) -> Iterator[tuple[str, int, int, IntArray]]:
    """Yield resource, limit, reason code and demand of each entry, for the limits at once of a counter."""
    if limits.jobs[row] < NO_LIMIT:
        yield JOBS, int(limits.jobs[row]), int(limits.jobs_code[row]), np.ones_like(cores)
    if limits.cores[row] < NO_LIMIT:
        yield CPU, int(limits.cores[row]), int(limits.cores_code[row]), cores
    tres = limits.tres
    for column in np.flatnonzero((tres.over == AT_ONCE) & (tres.most[row] < UNLIMITED)).tolist():
        resource = int(tres.resource[column])
        yield names[resource], int(tres.most[row, column]), int(tres.code[row, column]), tres.tracked.asked[:, resource]


def _available(site: Site, resource: str) -> int:
    """Return the total of a resource at the site."""
    if licence(resource):
        return site.licences.get(licence(resource), 0)
    return sum(amount_on(node, resource) for node in site.nodes)


def _peak(start: IntArray, end: IntArray, amounts: IntArray) -> int:
    """Return the most that jobs held at once; ends precede starts of the same instant."""
    ran = end > start
    times = np.concatenate([start[ran], end[ran]])
    change = np.concatenate([amounts[ran], -amounts[ran]])
    return int(np.cumsum(change[np.lexsort((change, times))]).max(initial=0))


def _named(
    counter: Counter, resource: str, most: int, available: int | None, jobs: IntArray, held: FloatArray
) -> BindingLimit:
    kind = str(counter.key[0])
    of_jobs, of_tres, whose = AT_ONCE_RULES[kind]
    members = np.zeros(len(held), dtype=np.bool_)
    members[jobs] = True
    owner, each = whose.format(*counter.key), kind.removeprefix("qos").strip() if kind.startswith("qos") else ""
    rule = of_jobs if resource == JOBS else of_tres
    return BindingLimit(owner, rule, resource, most, available, each, members, np.where(members, held, 0.0))


def _joined(one: BindingLimit, other: BindingLimit) -> BindingLimit:
    """Return the union of a limit per user for two users."""
    return replace(one, members=one.members | other.members, held=np.maximum(one.held, other.held))
