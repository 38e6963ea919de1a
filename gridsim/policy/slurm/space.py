"""Room that passes work in, made in Python: loops that make no arrays take half as long to compile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.running_set import RUNNING
from gridsim.model.time import IntArray
from gridsim.policy.slurm.expected import Ends, Rooms, ends_for, rooms_for
from gridsim.policy.slurm.holding import Held
from gridsim.policy.slurm.nodes import Bytes, Demands, NodeColumns, Trial, trial_on
from gridsim.policy.slurm.planned import Plan, plan_for
from gridsim.policy.slurm.preemption import PICKED

STRONG, LATER, CHOSEN = range(3)
"""Rows of `Space.states`."""


class Tests(NamedTuple):
    """How many entries a backfill pass has looked at: of each user, association, partition, and user by partition."""

    users: IntArray
    owners: IntArray
    partitions: IntArray
    both: IntArray


class Booked(NamedTuple):
    """What a backfill pass has reserved: for which requests, how often for each job array and each partition."""

    requests: Bytes
    arrays: IntArray
    partitions: IntArray


class Space(NamedTuple):
    """Room for one pass; nothing in it outlives that.

    Attributes
    ----------
    trial : Trial
        Where an entry is tried.
    states : (3, k, n) int64
        What nodes would have left, rows as `NodeColumns.now`: without those that an entry may preempt, as running
        entries end, and without those that are chosen to be preempted (`STRONG`, `LATER`, `CHOSEN`).
    picked : (PICKED, r) int64
        As `gridsim.policy.slurm.preemption.find_victims` has it.
    marks : (2, n) int64
        Of each node, in a quick pass whether it is kept free, in a backfill pass when it is reserved first.
    blocked : (l,) int64
        Whether an entry of each lane did not fit.
    tests, booked : Tests, Booked
        Counted by a backfill pass; the quick one has tests of partitions too.
    ends, others : Ends
        As running entries end; the same without those that an entry may preempt.
    known : Rooms
        What nodes have left now.
    plan : Plan
        What is reserved in a backfill pass.
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
    known: Rooms
    plan: Plan


def space_for(order: IntArray, held: Held, demands: Demands, machine: NodeColumns, before: Space | None) -> Space:
    """Room for a pass over entries in *order*: what there was *before*, where that suffices, or twice as much.

    Shapes of what is sized by the site alone are those of the columns that it was made for.
    """
    nodes, running = len(machine.cores), int(held.counts[RUNNING]) + len(order)
    pieces = int(held.pieces[held.running[1, : held.counts[RUNNING]]].sum())
    cores, unit = demands["cores"][order], demands["unit"][order]
    none = int(np.maximum(demands["nodes"][order] - cores // unit, 0).sum())  # pieces of nodes without a core
    pieces += min(int(np.clip(cores, 1, nodes).sum()), int(machine.cores.sum()) + none)  # all might start, or all cores
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
    known = rooms_for(nodes)
    return Space(trial, states, picked, zeros(2, nodes), zeros(lanes), tests, booked, ends, others, known, plan)
