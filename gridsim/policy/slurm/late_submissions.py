"""Requests that become known during a run: entries are created again for all, and the previous state is kept.

Unused rows look like the first request, so that they add no shares, counters or groups of nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from gridsim.machine.running_set import RUNNING
from gridsim.model.time import IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_allocation import Held
from gridsim.policy.slurm.limits import Counter, Limits
from gridsim.policy.slurm.nodes import GPUS, NodeColumns
from gridsim.policy.slurm.preemption import Rules
from gridsim.policy.slurm.queue_entries import Entries
from gridsim.policy.slurm.tres import columns_of


def with_placeholders(requests: Requests, known: int) -> Requests:
    """Return the requests from which entries are created; those behind the first *known* ones look like the first."""
    if known == len(requests):
        return requests
    rows = np.arange(len(requests))
    rows[known:] = 0
    found = copy.copy(requests)
    found.cores, found.estimate = requests.cores[rows], requests.estimate[rows]
    found.labels = {name: column[rows] for name, column in requests.labels.items()}
    return found


def kept_of(entries: Entries, requests: int, known: int) -> IntArray:
    """Return the entries of the first *known* of *requests* requests; their numbers do not depend on *known*."""
    further = sum(len(rows) for request, rows in entries.further.items() if request < known)
    return np.concatenate([np.arange(known), np.arange(requests, requests + further)])


def resume_limits(
    limits: Limits, counters: Sequence[Counter], before: Limits, counted: Sequence[Counter], kept: IntArray
) -> tuple[IntArray, IntArray]:
    """Take over counted values by counter keys; return the rows of these counters, and their previous rows.

    No running job belongs to a new counter, which would have existed before.
    """
    rows = {counter.key: row for row, counter in enumerate(counted)}
    pairs = [(row, rows[each.key]) for row, each in enumerate(counters) if each.key in rows]
    new, old = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    limits.jobs_used[new], limits.cores_used[new] = before.jobs_used[old], before.cores_used[old]
    tres, was = limits.tres, before.tres
    to, source = columns_of(tres, was, np.arange(len(tres.resource)), np.arange(len(was.resource)))
    tres.used[np.ix_(new, to)] = was.used[np.ix_(old, source)]
    tres.held[kept], tres.left[kept] = was.held[kept], was.left[kept]
    return new, old


def resume_allocations(held: Held, before: Held, kept: IntArray) -> None:
    """Take over the allocations of entries, and the last ones of ended entries."""
    count = before.counts[RUNNING]
    held.running[:, :count] = before.running[:, :count]
    held.counts[:], held.busy[:] = before.counts, before.busy
    pieces = held.pieces[kept] = before.pieces[kept]
    within = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    to, source = (np.repeat(first[kept], pieces) + within for first in (held.first, before.first))
    held.node[to], held.cores[to] = before.node[source], before.cores[source]


def resume_preemption(rules: Rules, before: Rules, kept: IntArray) -> None:
    """Take over start times and pending preemptions."""
    rules.running[:] = before.running
    for name in ("began", "leaves", "taker", "priority"):
        rules.own[name][kept] = before.own[name][kept]


def resume_nodes(machine: NodeColumns, before: NodeColumns, whole: Sequence[int]) -> None:
    """Take over free capacity; GPUs count from the first job that requests one, and *whole* nodes are held with all."""
    rows = len(before.now)
    machine.now[:rows], machine.gpus[:] = before.now, before.gpus
    if rows <= GPUS < len(machine.now):
        machine.now[GPUS] = machine.gpus
        machine.now[GPUS, whole] = 0


def count_gpus(machine: NodeColumns, gpus: IntArray, whole: Sequence[int]) -> None:
    """Change the number of present GPUs; jobs that hold *whole* nodes release all that are present at their end."""
    change = gpus - machine.gpus
    machine.gpus[:] = gpus
    if len(machine.now) > GPUS:
        machine.empty[GPUS] = gpus
        change[whole] = 0
        machine.now[GPUS] += change
