"""Effects of a change on parts of the jobs, and limits of the site that keep jobs from using what a change adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gridsim.metrics.compare import paired
from gridsim.model.site.tres import CPU, GPUS, JOBS, LICENCE, MEMORY, NODE
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import fitted
from gridsim.questions.changes import NOW, Change, LimitEffect, PartEffect
from gridsim.questions.job_parts import job_parts
from gridsim.record import Record
from gridsim.run_setup import with_clock

__all__ = ["limit_effects", "part_effects"]

MATTERS = 0.05
"""Share of the waiting time of the jobs that request a resource from which a limit on it is reported."""

MOST_LIMITS = 3
"""Limits that are reported of a change."""


def part_effects(
    changes: Sequence[Change], records: Mapping[str, Record], rows: Any, bound: float
) -> dict[str, tuple[PartEffect, ...]]:
    """Waits of each part of the jobs under each change, against those now; the part is a family of its own (Holm)."""
    found: dict[str, list[PartEffect]] = {each.label: [] for each in changes}
    if len(records) < 2:
        return {}
    concerned = {each.label: _concerned(each) for each in changes}
    for part in job_parts(records[NOW].workload, [it for each in changes for it in each.owners]):
        within = part.rows & rows
        if not (within & records[NOW].ran).any():
            continue
        for wait in paired(records, metric="wait", baseline=NOW, bound=bound, rows=within, moved=True):
            found[wait.policy].append(PartEffect(part, wait, (part.kind, part.value) in concerned[wait.policy]))
    return {label: tuple(parts) for label, parts in found.items()}


def _concerned(change: Change) -> set[tuple[str, str]]:
    """Kinds and values of the parts of the jobs that a change is made for."""
    nodes = [each.node for each in change.nodes]
    found = {("partition", name) for node in nodes for name in node.partitions} | set(change.owners)
    found |= {("gpu", "") for node in nodes if node.gpus} | {("gpu type", node.gpu_kind) for node in nodes if node.gpus}
    return found | {("pool", name) for name, _ in change.pools}


def limit_effects(change: Change, policy: Any, record: Record) -> tuple[LimitEffect, ...]:
    """Limits that hold jobs back though the change adds units of what they limit, those with the longest waits first.

    Only of a policy that knows the limits of its site.
    """
    made = fitted(make_policy(policy if change.policy is None else change.policy), change.platform)
    added = _added(change)
    if not added or not capabilities_of(made).site:
        return ()
    requesting = {(it.kind, it.value): it.rows for it in job_parts(record.workload)}
    everybody = np.ones(len(record), dtype=np.bool_)
    waited, found = np.nan_to_num(record.wait), []
    for limit in with_clock(made, record.workload).binding_limits(record):
        if limit.resource not in added:
            continue
        name, _, value = limit.resource.partition(":" if limit.resource.startswith(GPUS) else "/")
        keys = {GPUS: [("gpu type", value), ("gpu", "")], LICENCE[:-1]: [("pool", value)]}.get(name, [])
        jobs = next((requesting[key] for key in keys if key in requesting), everybody)
        if limit.held.sum() < MATTERS * waited[jobs].sum():
            continue
        alone = limit.available is not None and not limit.each and not (jobs & ~limit.members).any()
        found.append(LimitEffect(limit, limit.available - limit.most if alone and limit.available else 0))
    return tuple(found[:MOST_LIMITS])


def _added(change: Change) -> set[str]:
    """TRES names of the resources of which a change adds units; limits on the number of jobs concern each addition."""
    found: Counter[str] = Counter({f"{LICENCE}{name}": more for name, more in change.pools})
    for nodes, node in change.nodes:
        found[NODE] += nodes
        found[CPU] += nodes * node.capacity.get("cores", 0)
        found[MEMORY] += nodes * node.capacity.get("memory", 0)
        found[GPUS] += nodes * node.gpus
        found[f"{GPUS}:{node.gpu_kind}"] += nodes * node.gpus
    added = {name for name, more in found.items() if more > 0}
    return added | ({JOBS} if added else set())
