"""Eligible nodes of a request, and groups of jobs that compete for nodes.

Sources: sbatch(1), ``--partition``, ``--constraint``, ``--mem``, ``--gres`` and ``--reservation``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import IntArray
from gridsim.policy.slurm.nodes import ANY, FREE, GPUS, JOBS, MEMORY, Bytes, capped, need_of, usable_cores
from gridsim.policy.slurm.reservations import open_nodes


@njit_noalloc
def _usable_in(entry, node, most, state, empty, demands, machine):  # type: ignore[no-untyped-def]
    """Return the cores of a node that an entry could get, at most *most*."""
    free = machine.cores[node] if empty else state[FREE, node]
    memory, gpus = machine.memory[node], machine.gpus[node]
    if not empty:
        memory = state[MEMORY, node] if len(state) > MEMORY else memory
        gpus = state[GPUS, node] if len(state) > GPUS else gpus
    need = need_of(entry, demands)
    return usable_cores(
        machine.cores[node],
        machine.memory[node],
        min(free, most),
        memory,
        gpus,
        0 if empty else state[JOBS, node],
        ANY if empty else capped(node, state, need),
        need,
    )


@njit_noalloc
def eligible_cores(entries, now, demands, machine, reservations, trial):  # type: ignore[no-untyped-def]
    """Return the cores of the nodes that a request could use in any of its entries, and those that it could use now.

    The first are all cores of nodes in its partitions and reservations with the requested features, memory and GPUs.
    The second exclude cores that others hold, and cores kept for a reservation within its time limit. The *trial* is
    workspace.
    """
    count, mask, kept, ever, free = len(machine.cores), trial.mask, trial.kept, trial.chosen, trial.given
    ever[:], free[:] = 0, 0
    for entry in entries:
        member, own = machine.member[demands.group[entry]], demands.reservation[entry]
        narrow = own >= 0 and not reservations.flexible[own + 1]
        for node in range(count):
            if member[node] and not narrow and _usable_in(entry, node, ANY, machine.now, True, demands, machine) > 0:
                ever[node] = machine.cores[node]
        if narrow:
            for row in range(len(reservations.rows.node)):
                node = reservations.rows.node[row]
                if reservations.rows.reservation[row] == own and member[node]:
                    cores = reservations.rows.cores[row]
                    ever[node] = machine.cores[node] if cores < 0 else cores
        open_nodes(entry, now, now, now + demands.limit[entry], demands, machine, reservations, mask, kept)
        for node in range(demands.low[entry], demands.high[entry]):
            most = min(mask[node], machine.now[FREE, node] - kept[node])
            if ever[node] > 0 and most > 0:
                free[node] = max(free[node], _usable_in(entry, node, most, machine.now, False, demands, machine))
    return ever.sum(), free.sum()


def pools_of(member: Bytes, groups: Sequence[tuple[int, ...]]) -> IntArray:
    """Return a number for each of *groups* of rows of *member*; groups with different numbers have no common node.

    Examples
    --------
    >>> member = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=np.uint8)
    >>> pools_of(member, [(0,), (1,), (2,)]).tolist(), pools_of(member, [(0, 2), (1,)]).tolist()
    ([0, 0, 1], [0, 0])
    """
    above = list(range(member.shape[1]))

    def top(node: int) -> int:
        while above[node] != node:
            node = above[node] = above[above[node]]
        return node

    kinds = list(dict.fromkeys(groups))
    nodes = {kind: np.flatnonzero(member[list(kind)].any(axis=0)).tolist() for kind in kinds}
    for of_kind in nodes.values():
        for node in of_kind[1:]:
            above[top(node)] = top(of_kind[0])
    numbers: dict[int, int] = {}
    pools = {kind: numbers.setdefault(top(own[0]) if own else -1, len(numbers)) for kind, own in nodes.items()}
    return np.array([pools[kind] for kind in groups], dtype=np.int64)
