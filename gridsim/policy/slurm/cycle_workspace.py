"""Preallocated workspace of Slurm's scheduling cycles: loops that do not allocate compile twice as fast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.running_set import RUNNING
from gridsim.model.time import IntArray
from gridsim.policy.slurm.backfill_map import Plan, plan_for
from gridsim.policy.slurm.entry_allocation import Held
from gridsim.policy.slurm.expected_start import CoreCache, Ends, cache_for, ends_for
from gridsim.policy.slurm.nodes import Bytes, Demands, NodeColumns, Trial, trial_on
from gridsim.policy.slurm.preemption import PICKED

STRONG, LATER, CHOSEN = range(3)
"""Rows of `Buffers.states`."""


class Tests(NamedTuple):
    """Entries tested by a backfill cycle: by user, association, partition, and user and partition."""

    users: IntArray
    owners: IntArray
    partitions: IntArray
    both: IntArray


class Booked(NamedTuple):
    """Reservations of a backfill cycle: requests with one, and their number by job array and by partition."""

    requests: Bytes
    arrays: IntArray
    partitions: IntArray


class Buffers(NamedTuple):
    """Workspace of one cycle; its contents are not used afterwards.

    Attributes
    ----------
    trial : Trial
        Workspace of the node selection.
    states : (3, k, n) int64
        Free capacity, rows as `NodeColumns.now`: without entries that an entry may preempt, as running entries end,
        and without entries chosen for preemption (`STRONG`, `LATER`, `CHOSEN`).
    picked : (PICKED, r) int64
        As in `gridsim.policy.slurm.preemption.find_victims`.
    marks : (2, n) int64
        By node: in a main cycle whether it is closed, in a backfill cycle its first reservation.
    blocked : (l,) int64
        Whether an entry of each lane did not fit.
    tests, booked : Tests, Booked
        Counters of a backfill cycle; a main cycle uses the tests of partitions too.
    ends, others : Ends
        Free capacity as running entries end; the same without entries that an entry may preempt.
    known : CoreCache
        Cache of available cores now.
    plan : Plan
        Reservations of a backfill cycle.
    """

    trial: Trial
    states: IntArray
    picked: IntArray
    marks: IntArray
    blocked: IntArray
    tests: Tests
    booked: Booked
    ends: Ends
    others: Ends
    known: CoreCache
    plan: Plan


def buffers_for(order: IntArray, held: Held, demands: Demands, machine: NodeColumns, before: Buffers | None) -> Buffers:
    """Return the workspace of a cycle over entries in *order*: *before* if it suffices, else twice the required size.

    Shapes that depend only on the site are those of its columns.
    """
    nodes, running = len(machine.cores), int(held.counts[RUNNING]) + len(order)
    pieces = int(held.pieces[held.running[1, : held.counts[RUNNING]]].sum())
    cores, unit = demands["cores"][order], demands["unit"][order]
    none = int(np.maximum(demands["nodes"][order] - cores // unit, 0).sum())  # pieces of nodes without a core
    pieces += min(int(np.clip(cores, 1, nodes).sum()), int(machine.cores.sum()) + none)  # upper bound if all start
    if before is not None:
        enough = running < before.picked.shape[1] and pieces <= len(before.ends.node)
        if enough and 2 * len(order) < len(before.plan.begin):
            return before
    lanes, partitions, users, owners, arrays = machine.counts.tolist()

    def zeros(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int64)

    tests = Tests(zeros(users), zeros(owners), zeros(partitions), zeros(users, partitions))
    booked = Booked(np.zeros(len(held.busy), dtype=np.uint8), zeros(arrays), zeros(partitions))
    running, pieces, rows = 2 * running + 1, 2 * pieces, len(machine.now)
    ends, others = ends_for(running, pieces, rows), ends_for(running, pieces, rows)
    states, picked, plan = zeros(3, rows, nodes), zeros(PICKED, running), plan_for(2 * len(order), nodes)
    trial = trial_on(machine.cores) if before is None else before.trial
    known = cache_for(nodes)
    return Buffers(trial, states, picked, zeros(2, nodes), zeros(lanes), tests, booked, ends, others, known, plan)
